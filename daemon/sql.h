/*
 * SQLite behind one file: sqlite3.h is included by sql.c alone.
 *
 * Statements are prepared once a connection and found again by the address of their text, so SQL must be a string literal that
 * stands beside the one function that runs it.  Values are always bound.  A connection is used by one thread at a time.
 */
#ifndef BISECTD_DAEMON_SQL_H
#define BISECTD_DAEMON_SQL_H

#include <stdbool.h>

#include "error.h"

struct sql;	      /* a connection */
struct sql_statement; /* owned by the connection */

enum sql_mode { SQL_READ_WRITE, SQL_READ_ONLY };

/*
 * Open (SQL_READ_WRITE: create) a database with WAL, foreign keys, DEFENSIVE and an untrusted schema.  A file that is no
 * database, or a damaged one, is an error that says so.
 */
int sql_open(struct sql **sql, const char *path, enum sql_mode mode, struct error *error);
/* NULL is fine.  Statements that are still open are logged as a mistake of ours. */
void sql_close(struct sql *sql);

/* Several statements without results or parameters (the schema). */
int sql_script(struct sql *sql, const char *text, struct error *error);

/*
 * Start a statement.  `types` has one letter for each parameter: 'i' long long, 't' const char * (NULL is null), 'n' a null without
 * an argument.  Then either sql_next until it returns 0, or sql_finish.
 */
int sql_start(struct sql *sql, struct sql_statement **statement, struct error *error, const char *text,
	      const char *types, ...);
/* 1: there is a row; 0: the end (the statement is finished); -1: error (finished too). */
int sql_next(struct sql_statement *statement, struct error *error);
void sql_finish(struct sql_statement *statement);
long long sql_integer(const struct sql_statement *statement, int column); /* 0 for null */
/* Valid until the next step; NULL for null. */
const char *sql_text(const struct sql_statement *statement, int column);
bool sql_is_null(const struct sql_statement *statement, int column);
int sql_column_count(const struct sql_statement *statement);
const char *sql_column_name(const struct sql_statement *statement, int column);

/* Start and run to the end, for statements without rows. */
int sql_run(struct sql *sql, struct error *error, const char *text, const char *types, ...);
/* The first column of the first row as a number; `missing` where there is no row. */
int sql_number(struct sql *sql, long long *number, long long missing, struct error *error, const char *text,
	       const char *types, ...);

long long sql_last_id(const struct sql *sql);
long long sql_changes(const struct sql *sql); /* rows that the latest statement changed */

/* BEGIN IMMEDIATE; COMMIT (which rolls back when it fails); ROLLBACK (never fails). */
int sql_begin(struct sql *sql, struct error *error);
int sql_commit(struct sql *sql, struct error *error);
void sql_rollback(struct sql *sql);

#endif
