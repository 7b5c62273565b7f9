/* The store's life: opening, locking, migrating; pinned answers.  See store.h. */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fs.h"
#include "log.h"
#include "store_internal.h"
#include "store_schema.h"

enum { SCHEMA_VERSION = 2 };

long long store_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A record lock: it goes with the process, whatever way that ends, and tells who holds it. */
static int take_lock(struct store *store, const char *folder, struct error *error)
{
	cleanup_free char *path = path_join(folder, "lock");
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	store->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->lock < 0)
		return error_set_errno(error, "cannot open %s", path);
	if (fcntl(store->lock, F_SETLK, &lock) == 0)
		return 0;
	if (errno != EACCES && errno != EAGAIN)
		return error_set_errno(error, "cannot lock %s", path);
	fcntl(store->lock, F_GETLK, &lock);
	return error_set(error,
			 "the state folder %s is in use by another bisectd (process %ld): stop that one, or give another "
			 "folder with --state",
			 folder, (long)lock.l_pid);
}

/*
 * What the schema adds is added, what is there stays: its tables are made where they do not exist, its views always.  A version
 * that changes a table of an older one does so here, by version, before.
 */
static int apply_schema(struct store *store, struct error *error)
{
	if (sql_begin(store->sql, error) < 0)
		return -1;
	if (sql_script(store->sql, store_schema, error) < 0 ||
	    sql_script(store->sql, "PRAGMA user_version = 2", error) < 0) {
		sql_rollback(store->sql);
		return error_wrap(error, "creating the tables");
	}
	return sql_commit(store->sql, error);
}

/* An empty database becomes ours; one with somebody's tables does not. */
static int check_empty(struct store *store, const char *path, struct error *error)
{
	long long tables;
	if (sql_number(store->sql, &tables, 0, error, "SELECT count(*) FROM sqlite_master", "") < 0)
		return -1;
	if (tables > 0)
		return error_set(error, "%s is the database of another program: move it away, or give another folder with --state",
				 path);
	return 0;
}

static int migrate(struct store *store, const char *path, struct error *error)
{
	long long version;
	if (sql_number(store->sql, &version, 0, error, "PRAGMA user_version", "") < 0)
		return -1;
	if (version > SCHEMA_VERSION)
		return error_set(error,
				 "%s was written by a newer bisectd (schema %lld, this one knows %d): use that one, or give "
				 "another folder with --state",
				 path, version, SCHEMA_VERSION);
	if (version == SCHEMA_VERSION)
		return 0;
	if (version == 0 && check_empty(store, path, error) < 0)
		return -1;
	return apply_schema(store, error);
}

static int mark_interrupted(struct store *store, struct error *error)
{
	return sql_run(store->sql, error,
		       "UPDATE attempt SET state = 'interrupted', reason = 'bisectd was killed while it ran', "
		       "finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE state = 'running'",
		       "");
}

int store_open(struct store **result, const char *state_folder, struct error *error)
{
	cleanup_free char *path = path_join(state_folder, "bisectd.db");
	struct store *store = memory_new(1, sizeof *store);
	store->lock = -1;
	if (fs_make_private_folder(state_folder, error) < 0 || take_lock(store, state_folder, error) < 0 ||
	    sql_open(&store->sql, path, SQL_READ_WRITE, error) < 0 || migrate(store, path, error) < 0 ||
	    mark_interrupted(store, error) < 0) {
		store_close(store);
		return -1;
	}
	*result = store;
	return 0;
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	sql_close(store->sql);
	fd_close(&store->lock);
	free(store);
}

struct sql *store_connection(struct store *store)
{
	return store->sql;
}

int store_begin(struct store *store, struct error *error)
{
	return sql_begin(store->sql, error);
}

int store_commit(struct store *store, struct error *error)
{
	return sql_commit(store->sql, error);
}

void store_rollback(struct store *store)
{
	sql_rollback(store->sql);
}

int store_recall(struct store *store, const char *kind, const char *name, char **content, struct error *error)
{
	struct sql_statement *statement;
	*content = NULL;
	if (sql_start(store->sql, &statement, error, "SELECT content FROM resolution WHERE kind = ? AND name = ?", "tt",
		      kind, name) < 0)
		return -1;
	int row = sql_next(statement, error);
	if (row == 1) {
		*content = text_copy(sql_text(statement, 0));
		sql_finish(statement);
	}
	return row < 0 ? -1 : 0;
}

int store_pin(struct store *store, const char *kind, const char *name, const char *content, struct error *error)
{
	return sql_run(store->sql, error, "INSERT OR IGNORE INTO resolution (kind, name, content) VALUES (?, ?, ?)",
		       "ttt", kind, name, content);
}
