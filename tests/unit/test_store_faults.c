/*
 * The store on a disk that fails: in each operation the first, second, third, ... system call of a kind fails, until
 * none does. Whatever happens, the operation says so and names the file, nothing was changed, and once the disk works
 * again so does all else.
 *
 * SQLite lets a test stand between it and the system (sqlite3_vfs.xSetSystemCall), so no other build is needed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "place.h"
#include "store.h"

/* ---- the failing disk ---- */

static struct {
	long countdown; /* calls until one fails; 0: none does */
	int number;     /* errno of the failure */
	bool stays;     /* all calls after it fail too, as on a full disk */
	bool happened;
	bool cuts; /* half of what is written arrives first */
	ssize_t (*pwrite)(int fd, const void *bytes, size_t length, off_t offset);
	int (*ftruncate)(int fd, off_t length);
} disk;

static bool fails_now(void)
{
	if (disk.countdown == 0 || (--disk.countdown > 0))
		return false;
	disk.countdown = disk.stays ? 1 : 0;
	disk.happened = true;
	errno = disk.number;
	return true;
}

static ssize_t failing_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	if (!fails_now())
		return disk.pwrite(fd, bytes, length, offset);
	if (disk.cuts && length > 1)
		disk.pwrite(fd, bytes, length / 2, offset);
	errno = disk.number;
	return -1;
}

static int failing_ftruncate(int fd, off_t length)
{
	return fails_now() ? -1 : disk.ftruncate(fd, length);
}

static int stand_between(void **state)
{
	(void)state;
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	const char *write_call = vfs->xGetSystemCall(vfs, "pwrite64") != NULL ? "pwrite64" : "pwrite";
	disk.pwrite = (ssize_t(*)(int, const void *, size_t, off_t))vfs->xGetSystemCall(vfs, write_call);
	disk.ftruncate = (int (*)(int, off_t))vfs->xGetSystemCall(vfs, "ftruncate");
	if (disk.pwrite == NULL || disk.ftruncate == NULL)
		return -1;
	if (vfs->xSetSystemCall(vfs, write_call, (sqlite3_syscall_ptr)failing_pwrite) != SQLITE_OK ||
	    vfs->xSetSystemCall(vfs, "ftruncate", (sqlite3_syscall_ptr)failing_ftruncate) != SQLITE_OK)
		return -1;
	return 0;
}

static int step_aside(void **state)
{
	(void)state;
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	return vfs->xSetSystemCall(vfs, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

/* ---- the operations ---- */

struct world {
	struct store *store;
	long long investigation;
	long long cell;
	long long attempt;
	long long delivery;
};

static const bool fail_is_bad[OUTCOME_COUNT] = {[OUTCOME_FAIL] = true};

/* As investigation_matrix.c does it: all of it in one transaction. */
static int save_matrix(struct world *world, struct error *error)
{
	enum { CELLS = 60 };
	const struct store_investigation investigation = {
		.name = "a", .file = "f", .text = "t", .notes = "", .bad = fail_is_bad};
	long long axis;
	if (store_begin(world->store, error) < 0)
		return -1;
	if (store_save_investigation(world->store, &investigation, &world->investigation, error) < 0 ||
	    store_save_axis(world->store, world->investigation, 0, "tool", "toolchain", true, CELLS, 1, &axis, error) <
		    0)
		goto failed;
	for (size_t i = 0; i < CELLS; i++) {
		struct store_cell cell;
		cleanup_free char *label = text_format("%0300zu", i); /* several pages */
		if (store_save_value(world->store, axis, i, label, "identity", NULL, NULL, error) < 0 ||
		    store_save_place(world->store, world->investigation, i, label, label, &cell, error) < 0)
			goto failed;
		world->cell = cell.id;
	}
	return store_commit(world->store, error);
failed:
	store_rollback(world->store);
	return -1;
}

static int start_attempt(struct world *world, struct error *error)
{
	cleanup_free char *log = NULL;
	return store_start_attempt(world->store, world->cell, "walk", &world->attempt, &log, error);
}

static int finish_attempt(struct world *world, struct error *error)
{
	const struct store_decision decision = {.outcome = OUTCOME_FAIL, .reason = "why"};
	struct result result = {.outcome = OUTCOME_FAIL};
	result.runs = json_array();
	for (int i = 0; i < 100; i++)
		json_array_append_new(result.runs, json_pack("{s:s, s:i, s:i, s:i}", "outcome", "fail", "exit", 1,
							     "signal", 0, "ms", i));
	int done = store_finish_attempt(world->store, world->attempt, &result, &decision, error);
	json_decref(result.runs);
	return done;
}

static int add_finding(struct world *world, struct error *error)
{
	static const struct store_webhook webhooks[] = {{"team", 1000}, {"ci", 1000}};
	cleanup_free char *body = text_format("%09000d", 1);
	const struct store_finding finding = {.kind = "first-bad",
					      .key = "k",
					      .title = "t",
					      .text = "t",
					      .body = body,
					      .webhooks = webhooks,
					      .webhook_count = 2};
	bool added;
	if (store_add_finding(world->store, world->investigation, &finding, &added, error) < 0)
		return -1;
	assert_true(added);
	return 0;
}

static int record_delivery(struct world *world, struct error *error)
{
	return store_record_delivery(world->store, 1, "delivered", 200, NULL, 0, error);
}

static int pin(struct world *world, struct error *error)
{
	return store_pin(world->store, "lock", "key", "text", error);
}

static int set_state(struct world *world, struct error *error)
{
	return store_set_state(world->store, world->investigation, "finished", error);
}

/* In the order of a run: each stands on those before it. */
static const struct operation {
	const char *name;
	int (*run)(struct world *world, struct error *error);
} operations[] = {
	{"save_matrix", save_matrix}, {"start_attempt", start_attempt},     {"finish_attempt", finish_attempt},
	{"add_finding", add_finding}, {"record_delivery", record_delivery}, {"pin", pin},
	{"set_state", set_state},
};

enum { OPERATION_COUNT = sizeof operations / sizeof operations[0] };

/* Everything but times, as one text. */
static char *dump(struct store *store)
{
	cleanup_error struct error error = {0};
	struct sql_statement *row;
	assert_done(
		sql_start(
			store_connection(store), &row, &error,
			"SELECT (SELECT coalesce(group_concat(id || name || state), '') FROM investigation) || '/' || "
			"(SELECT count(*) FROM axis) || '/' || (SELECT count(*) FROM value) || '/' || "
			"(SELECT coalesce(group_concat(walk_index || combination || cell_id), '') FROM place) || '/' "
			"|| "
			"(SELECT coalesce(group_concat(id || key || coalesce(outcome, '') || errors), '') FROM cell) "
			"|| '/' || "
			"(SELECT coalesce(group_concat(id || state || log || coalesce(outcome, '')), '') FROM attempt) "
			"|| '/' || "
			"(SELECT count(*) FROM run) || '/' || (SELECT coalesce(group_concat(key || body), '') FROM "
			"finding) || '/' || "
			"(SELECT coalesce(group_concat(idempotency_key || state || attempts), '') FROM delivery) || "
			"'/' || "
			"(SELECT coalesce(group_concat(kind || name || content), '') FROM resolution)",
			""),
		&error);
	assert_int_equal(sql_next(row, &error), 1);
	char *text = text_copy(sql_text(row, 0));
	sql_finish(row);
	return text;
}

static void assert_sound(struct store *store)
{
	cleanup_error struct error error = {0};
	long long wrong;
	assert_done(sql_number(store_connection(store), &wrong, 0, &error,
			       "SELECT (SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok') + "
			       "(SELECT count(*) FROM pragma_foreign_key_check)",
			       ""),
		    &error);
	assert_int_equal(wrong, 0);
}

/* A new state folder in which everything before `operation` is done. */
static char *start_world(const char *place, const struct operation *operation, size_t kind, struct world *world)
{
	cleanup_error struct error error = {0};
	cleanup_free char *name = text_format("%s-%zu", operation->name, kind);
	char *folder = path_join(place, name);
	*world = (struct world){0};
	assert_done(store_open(&world->store, folder, &error), &error);
	for (const struct operation *earlier = operations; earlier < operation; earlier++)
		assert_done(earlier->run(world, &error), &error);
	return folder;
}

static int run_on_failing_disk(const struct operation *operation, struct world *world, long call, struct error *error)
{
	disk.happened = false;
	disk.countdown = call;
	int result = operation->run(world, error);
	disk.countdown = 0;
	return result;
}

static void fail_operation(const char *place, const struct operation *operation, size_t kind)
{
	struct world world;
	cleanup_error struct error error = {0};
	cleanup_free char *folder = start_world(place, operation, kind, &world);
	cleanup_free char *path = path_join(folder, "bisectd.db");
	cleanup_free char *before = dump(world.store);
	long call = 1;
	for (; run_on_failing_disk(operation, &world, call, &error) < 0; call++) {
		cleanup_free char *unchanged = dump(world.store);
		assert_true(disk.happened);
		assert_string_equal(unchanged, before);
		assert_says(&error, path);
		if (disk.number == ENOSPC)
			assert_says(&error, "no space left for ");
		assert_sound(world.store);
	}
	if (disk.happened)
		fail_msg("%s: call %ld failed and nobody said so", operation->name, call);
	assert_true(call > 1); /* each writes at least once */
	cleanup_free char *after = dump(world.store);
	assert_string_not_equal(after, before);
	if (world.attempt != 0) /* else the next start takes it for a killed run's */
		assert_done(store_interrupt_attempt(world.store, world.attempt, &error), &error);
	cleanup_free char *at_the_end = dump(world.store);
	store_close(world.store);
	assert_done(store_open(&world.store, folder, &error), &error);
	cleanup_free char *again = dump(world.store);
	assert_string_equal(again, at_the_end);
	assert_sound(world.store);
	store_close(world.store);
}

static void every_write_that_fails_leaves_everything_as_it_was_and_is_told(void **state)
{
	static const struct {
		int number;
		bool stays;
		bool cuts;
	} kinds[] = {{EIO, false, false}, {EIO, true, true}, {ENOSPC, true, false}, {ENOSPC, false, true}};
	for (size_t i = 0; i < OPERATION_COUNT; i++) {
		for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
			disk.number = kinds[kind].number;
			disk.stays = kinds[kind].stays;
			disk.cuts = kinds[kind].cuts;
			fail_operation(*state, &operations[i], kind);
		}
	}
}

static void a_folder_that_cannot_be_opened_now_can_be_opened_later(void **state)
{
	static const int numbers[] = {EIO, ENOSPC};
	for (size_t kind = 0; kind < 2; kind++) {
		disk.happened = true;
		for (long call = 1; disk.happened; call++) {
			cleanup_error struct error error = {0};
			cleanup_free char *name = text_format("%zu-%ld", kind, call);
			cleanup_free char *folder = path_join(*state, name);
			struct store *store = NULL;
			disk.happened = false;
			disk.number = numbers[kind];
			disk.stays = true;
			disk.countdown = call;
			int result = store_open(&store, folder, &error);
			disk.countdown = 0;
			assert_int_equal(result < 0, disk.happened);
			if (result < 0) {
				assert_says(&error, folder);
				assert_null(store);
				assert_done(store_open(&store, folder, &error), &error);
			}
			assert_sound(store);
			store_close(store);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_quick_place(every_write_that_fails_leaves_everything_as_it_was_and_is_told),
		in_quick_place(a_folder_that_cannot_be_opened_now_can_be_opened_later),
	};
	return cmocka_run_group_tests_name("store on a failing disk", tests, stand_between, step_aside);
}
