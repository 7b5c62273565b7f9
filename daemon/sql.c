/* See sql.h. */
#include "sql.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "log.h"
#include "str.h"

struct sql_statement {
	struct sql *sql;
	const char *text; /* the literal: its address is the key */
	sqlite3_stmt *handle;
};

struct sql {
	sqlite3 *handle;
	char *path;
	struct sql_statement **statements;
	size_t count;
	size_t capacity;
};

/* A full disk comes as several codes; the shared-memory file of WAL does not even say ENOSPC. */
static bool disk_is_full(struct sql *sql, int code)
{
	struct statvfs space;
	if ((code & 0xff) == SQLITE_FULL || sqlite3_system_errno(sql->handle) == ENOSPC)
		return true;
	return (code & 0xff) == SQLITE_IOERR && statvfs(sql->path, &space) == 0 && space.f_bavail == 0;
}

static int trouble(struct sql *sql, struct error *error, const char *attempt)
{
	int code = sqlite3_extended_errcode(sql->handle);
	if ((code & 0xff) == SQLITE_NOTADB)
		return error_set(error, "%s is no SQLite database: move it away, or give another state folder", sql->path);
	if ((code & 0xff) == SQLITE_CORRUPT)
		return error_set(error, "%s is damaged (%s): move it away and start again, or restore a copy", sql->path,
				 sqlite3_errmsg(sql->handle));
	if (disk_is_full(sql, code))
		return error_set(error, "no space left for %s: make room and start again", sql->path);
	return error_set(error, "%s in %s: %s (SQLite code %d)", attempt, sql->path, sqlite3_errmsg(sql->handle), code);
}

static int configure(struct sql *sql, enum sql_mode mode, struct error *error)
{
	static const char common[] = "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;";
	static const char writer[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
	sqlite3_db_config(sql->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_busy_timeout(sql->handle, 5000);
	if (sql_script(sql, common, error) < 0)
		return -1;
	return mode == SQL_READ_WRITE ? sql_script(sql, writer, error) : 0;
}

int sql_open(struct sql **result, const char *path, enum sql_mode mode, struct error *error)
{
	struct sql *sql = memory_new(1, sizeof *sql);
	sql->path = text_copy(path);
	int flags = mode == SQL_READ_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
	int code = sqlite3_open_v2(path, &sql->handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (code != SQLITE_OK)
		error_set(error, "cannot open the database %s: %s", path,
			  sql->handle != NULL ? sqlite3_errmsg(sql->handle) : "out of memory");
	if (code != SQLITE_OK || configure(sql, mode, error) < 0) {
		sql_close(sql);
		return -1;
	}
	*result = sql;
	return 0;
}

void sql_close(struct sql *sql)
{
	if (sql == NULL)
		return;
	for (size_t i = 0; i < sql->count; i++) {
		if (sqlite3_stmt_busy(sql->statements[i]->handle))
			log_warning("a statement was left open (please report this): %s", sql->statements[i]->text);
		sqlite3_finalize(sql->statements[i]->handle);
		free(sql->statements[i]);
	}
	free(sql->statements);
	if (sqlite3_close(sql->handle) != SQLITE_OK)
		log_warning("the database %s did not close cleanly: %s", sql->path, sqlite3_errmsg(sql->handle));
	free(sql->path);
	free(sql);
}

int sql_script(struct sql *sql, const char *text, struct error *error)
{
	if (sqlite3_exec(sql->handle, text, NULL, NULL, NULL) != SQLITE_OK)
		return trouble(sql, error, "running a script");
	return 0;
}

static struct sql_statement *find_statement(struct sql *sql, const char *text)
{
	for (size_t i = 0; i < sql->count; i++)
		if (sql->statements[i]->text == text && !sqlite3_stmt_busy(sql->statements[i]->handle))
			return sql->statements[i];
	return NULL;
}

static int prepare(struct sql *sql, struct sql_statement **result, const char *text, struct error *error)
{
	*result = find_statement(sql, text);
	if (*result != NULL)
		return 0;
	sqlite3_stmt *handle;
	if (sqlite3_prepare_v3(sql->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL) != SQLITE_OK)
		return trouble(sql, error, "preparing a statement");
	struct sql_statement *statement = memory_new(1, sizeof *statement);
	*statement = (struct sql_statement){.sql = sql, .text = text, .handle = handle};
	sql->statements = memory_grow(sql->statements, sql->count, &sql->capacity, sizeof *sql->statements);
	sql->statements[sql->count++] = statement;
	*result = statement;
	return 0;
}

/* Texts are copied by SQLite, so that callers may free theirs while they read rows. */
static int bind_all(struct sql_statement *statement, const char *types, va_list arguments, struct error *error)
{
	sqlite3_reset(statement->handle);
	sqlite3_clear_bindings(statement->handle);
	for (int i = 1; *types != '\0'; types++, i++) {
		int code = SQLITE_OK;
		if (*types == 'i')
			code = sqlite3_bind_int64(statement->handle, i, va_arg(arguments, long long));
		else if (*types == 't')
			code = sqlite3_bind_text(statement->handle, i, va_arg(arguments, const char *), -1, SQLITE_TRANSIENT);
		if (code != SQLITE_OK)
			return trouble(statement->sql, error, "binding a value");
	}
	return 0;
}

static int start(struct sql *sql, struct sql_statement **statement, struct error *error, const char *text,
		 const char *types, va_list arguments)
{
	if (prepare(sql, statement, text, error) < 0)
		return -1;
	return bind_all(*statement, types, arguments, error);
}

int sql_start(struct sql *sql, struct sql_statement **statement, struct error *error, const char *text,
	      const char *types, ...)
{
	va_list arguments;
	va_start(arguments, types);
	int result = start(sql, statement, error, text, types, arguments);
	va_end(arguments);
	return result;
}

int sql_next(struct sql_statement *statement, struct error *error)
{
	int code = sqlite3_step(statement->handle);
	if (code == SQLITE_ROW)
		return 1;
	int result = code == SQLITE_DONE ? 0 : trouble(statement->sql, error, "running a statement");
	sql_finish(statement);
	return result;
}

void sql_finish(struct sql_statement *statement)
{
	sqlite3_reset(statement->handle);
}

long long sql_integer(const struct sql_statement *statement, int column)
{
	return sqlite3_column_int64(statement->handle, column);
}

const char *sql_text(const struct sql_statement *statement, int column)
{
	return (const char *)sqlite3_column_text(statement->handle, column);
}

bool sql_is_null(const struct sql_statement *statement, int column)
{
	return sqlite3_column_type(statement->handle, column) == SQLITE_NULL;
}

int sql_column_count(const struct sql_statement *statement)
{
	return sqlite3_column_count(statement->handle);
}

const char *sql_column_name(const struct sql_statement *statement, int column)
{
	return sqlite3_column_name(statement->handle, column);
}

int sql_run(struct sql *sql, struct error *error, const char *text, const char *types, ...)
{
	struct sql_statement *statement;
	va_list arguments;
	va_start(arguments, types);
	int result = start(sql, &statement, error, text, types, arguments);
	va_end(arguments);
	while (result == 0 && (result = sql_next(statement, error)) == 1)
		result = 0;
	return result;
}

int sql_number(struct sql *sql, long long *number, long long missing, struct error *error, const char *text,
	       const char *types, ...)
{
	struct sql_statement *statement;
	va_list arguments;
	va_start(arguments, types);
	int result = start(sql, &statement, error, text, types, arguments);
	va_end(arguments);
	if (result < 0)
		return -1;
	*number = missing;
	int row = sql_next(statement, error);
	if (row == 1) {
		*number = sql_integer(statement, 0);
		sql_finish(statement);
	}
	return row < 0 ? -1 : 0;
}

long long sql_last_id(const struct sql *sql)
{
	return sqlite3_last_insert_rowid(sql->handle);
}

long long sql_changes(const struct sql *sql)
{
	return sqlite3_changes64(sql->handle);
}

int sql_begin(struct sql *sql, struct error *error)
{
	return sql_run(sql, error, "BEGIN IMMEDIATE", "");
}

int sql_commit(struct sql *sql, struct error *error)
{
	if (sql_run(sql, error, "COMMIT", "") == 0)
		return 0;
	sql_rollback(sql);
	return -1;
}

void sql_rollback(struct sql *sql)
{
	if (!sqlite3_get_autocommit(sql->handle))
		sqlite3_exec(sql->handle, "ROLLBACK", NULL, NULL, NULL);
}
