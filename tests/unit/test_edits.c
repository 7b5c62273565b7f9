/* Literal edits, Cargo.lock, cargo's messages, the order of versions, the age of manifests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cargo.h"
#include "edits.h"
#include "fs.h"
#include "lock.h"
#include "vendor.h"
#include "version.h"

/* ---- edits ---- */

struct place {
	char *folder;
	json_t *report;
	struct error error;
};

static int make_place(void **state)
{
	struct place *place = memory_new(1, sizeof *place);
	place->folder = text_copy("/tmp/test-edits-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	place->report = json_array();
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	cleanup_error struct error error = {0};
	fs_remove_tree(place->folder, &error);
	json_decref(place->report);
	error_clear(&place->error);
	free(place->folder);
	free(place);
	return 0;
}

static void write_file(const struct place *place, const char *name, const char *text)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(place->folder, name);
	cleanup_free char *parent = path_parent(path);
	assert_int_equal(fs_make_folder(parent, &error), 0);
	assert_int_equal(fs_write_file(path, text, strlen(text), &error), 0);
}

static void assert_file(const struct place *place, const char *name, const char *text)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(place->folder, name);
	assert_int_equal(fs_read_file(path, 0, &contents, &error), 0);
	assert_string_equal(str_text(&contents), text);
}

/* `edits` is JSON with ' for ". */
static int apply(struct place *place, const char *edits)
{
	cleanup_free char *text = text_copy(edits);
	for (char *byte = text; *byte != '\0'; byte++)
		*byte = *byte == '\'' ? '"' : *byte;
	json_t *array = json_loads(text, 0, NULL);
	assert_non_null(array);
	int result = edits_apply(place->folder, array, "ours", place->report, &place->error);
	json_decref(array);
	return result;
}

static void assert_refused(struct place *place, const char *edits, const char *message)
{
	assert_int_equal(apply(place, edits), -1);
	assert_string_equal(error_text(&place->error), message);
}

static void every_match_is_replaced_and_counted(void **state)
{
	struct place *place = *state;
	write_file(place, "src/a.rs", "one two one\n");
	assert_int_equal(apply(place, "[{'file':'src/a.rs','find':'one','replace':'1','min':2,'max':2}]"), 0);
	assert_file(place, "src/a.rs", "1 two 1\n");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(place->report, 0), "matches")), 2);
}

static void matches_do_not_overlap_and_replacements_are_not_searched(void **state)
{
	struct place *place = *state;
	write_file(place, "a", "aaaaa");
	assert_int_equal(apply(place, "[{'file':'a','find':'aa','replace':'aab','min':2,'max':2}]"), 0);
	assert_file(place, "a", "aabaaba");
}

static void edits_apply_in_order_each_to_what_is_left(void **state)
{
	struct place *place = *state;
	write_file(place, "a", "x");
	assert_int_equal(
		apply(place, "[{'file':'a','find':'x','replace':'yy'},{'file':'a','find':'y','replace':'z','min':2}]"),
		0);
	assert_file(place, "a", "zz");
}

static void bytes_that_are_no_text_survive(void **state)
{
	struct place *place = *state;
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(place->folder, "a");
	assert_int_equal(fs_write_file(path, "\0x\377", 3, &error), 0);
	assert_int_equal(apply(place, "[{'file':'a','find':'x','replace':''}]"), 0);
	assert_int_equal(fs_read_file(path, 0, &contents, &error), 0);
	assert_int_equal(contents.length, 2);
	assert_memory_equal(contents.data, "\0\377", 2);
}

static void too_few_or_too_many_matches_are_refused(void **state)
{
	struct place *place = *state;
	write_file(place, "a", "x x\n");
	assert_refused(place, "[{'file':'a','find':'nothing','replace':'y'}]",
		       "override ours: file a: found 0 times, wanted at least 1: 'nothing'");
	assert_refused(place, "[{'file':'a','find':'x','replace':'y','min':1,'max':1}]",
		       "override ours: file a: found 2 times, wanted exactly 1: 'x'");
	assert_refused(place, "[{'file':'a','find':'x','replace':'y','min':3,'max':4}]",
		       "override ours: file a: found 2 times, wanted 3 to 4: 'x'");
	assert_file(place, "a", "x x\n");
}

static void a_missing_file_is_refused_unless_no_match_is_wanted(void **state)
{
	struct place *place = *state;
	assert_refused(place, "[{'file':'d/a','find':'x','replace':'y'}]",
		       "override ours: file d/a: there is no such file, wanted at least 1 of: 'x'");
	assert_int_equal(apply(place, "[{'file':'d/a','find':'x','replace':'y','min':0}]"), 0);
}

static void paths_that_leave_the_folder_are_refused(void **state)
{
	static const char *const files[] = {"../a", "/etc/passwd", "d/../../a", "d//a", "./a", "", "d/..", "d/"};
	struct place *place = *state;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		cleanup_free char *edits = text_format("[{'file':'%s','find':'x','replace':'y','min':0}]", files[i]);
		assert_int_equal(apply(place, edits), -1);
		assert_non_null(strstr(error_text(&place->error), "it leaves the folder that is edited"));
	}
}

static void links_are_not_followed(void **state)
{
	struct place *place = *state;
	write_file(place, "outside", "x");
	write_file(place, "inside/real", "x");
	cleanup_free char *link = path_join(place->folder, "inside/link");
	cleanup_free char *folder_link = path_join(place->folder, "folder");
	assert_int_equal(symlink("../outside", link), 0);
	assert_int_equal(symlink("inside", folder_link), 0);
	assert_refused(place, "[{'file':'inside/link','find':'x','replace':'y'}]",
		       "override ours: file inside/link: it is a symbolic link, which is not followed");
	assert_int_equal(apply(place, "[{'file':'folder/real','find':'x','replace':'y'}]"), -1);
	assert_file(place, "outside", "x");
	assert_file(place, "inside/real", "x");
}

static void special_files_are_refused(void **state)
{
	struct place *place = *state;
	cleanup_free char *pipe_path = path_join(place->folder, "pipe");
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	assert_refused(place, "[{'file':'pipe','find':'x','replace':'y'}]",
		       "override ours: file pipe: it is no regular file");
}

static void incomplete_edits_are_refused(void **state)
{
	struct place *place = *state;
	assert_refused(place, "[{'file':'a','find':'x'}]",
		       "override ours: an edit needs a file, what to find, and its replacement");
	assert_refused(place, "[{'file':'a','find':'','replace':'x'}]",
		       "override ours: file a: the text to find is empty");
}

/* ---- Cargo.lock ---- */

static const char sample[] =
	"# generated\nversion = 4\n\n"
	"[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\n \"a 2.0.0\",\n \"b\",\n]\n\n"
	"[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n"
	"source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"11\"\n\n"
	"[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n"
	"source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"22\"\n\n"
	"[[package]]\nname = \"b\"\nversion = \"3.0.0+build\"\n"
	"source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"33\"\n"
	"dependencies = [\n \"a 1.0.0\",\n]\n\n"
	"[[patch.unused]]\nname = \"c\"\nversion = \"9.0.0\"\n";

static void parse(struct lock *lock, const char *text)
{
	cleanup_error struct error error = {0};
	assert_int_equal(lock_parse(lock, text, &error), 0);
}

static void a_lock_is_read(void **state)
{
	(void)state;
	cleanup_lock struct lock lock = {0};
	parse(&lock, sample);
	assert_int_equal(lock.version, 4);
	assert_int_equal(lock.count, 4);
	assert_null(lock.packages[0].source);
	assert_string_equal(lock.packages[2].checksum, "22");
	assert_string_equal(lock_direct_version(&lock, "a"), "2.0.0");
	assert_string_equal(lock_direct_version(&lock, "b"), "3.0.0+build");
	assert_null(lock_direct_version(&lock, "c"));
	assert_true(lock_from_crates_io(&lock.packages[1]));
	assert_false(lock_from_crates_io(&lock.packages[0]));
}

static void a_package_without_a_name_is_refused(void **state)
{
	(void)state;
	cleanup_lock struct lock lock = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(lock_parse(&lock, "[[package]]\nversion = \"1.0.0\"\n", &error), -1);
}

static void a_patched_package_loses_its_source_and_no_other_does(void **state)
{
	(void)state;
	cleanup_lock struct lock lock = {0};
	cleanup_free char *text = lock_without_source(sample, "a", "2.0.0");
	parse(&lock, text);
	assert_string_equal(lock.packages[1].checksum, "11");
	assert_null(lock.packages[2].source);
	assert_null(lock.packages[2].checksum);
	assert_string_equal(lock.packages[3].checksum, "33");
}

static void changes_leave_out_what_was_asked_for(void **state)
{
	(void)state;
	cleanup_lock struct lock before = {0};
	cleanup_lock struct lock after = {0};
	cleanup_strlist struct strlist asked = {0};
	strlist_add(&asked, "b");
	parse(&before, sample);
	parse(&after,
	      "[[package]]\nname = \"app\"\nversion = \"0.1.0\"\n[[package]]\nname = \"a\"\nversion = \"1.0.1\"\n"
	      "[[package]]\nname = \"b\"\nversion = \"4.0.0\"\n[[package]]\nname = \"d\"\nversion = \"5.0.0\"\n");
	json_t *changes = lock_changes(&before, &after, &asked);
	char *text = json_dumps(changes, JSON_COMPACT);
	assert_string_equal(text, "[\"a 1.0.0 -> 1.0.1\",\"a 2.0.0 (gone)\",\"d 5.0.0 (new)\"]");
	free(text);
	json_decref(changes);
}

static void a_lock_is_made_readable_for_old_cargos_unless_it_has_git_sources(void **state)
{
	(void)state;
	cleanup_lock struct lock lock = {0};
	cleanup_free char *old = lock_for_old_cargo(sample);
	parse(&lock, old);
	assert_int_equal(lock.version, 3);
	assert_int_equal(strlen(old), strlen(sample));
	static const char git[] =
		"version = 4\n\n[[package]]\nname = \"g\"\nversion = \"1.0.0\"\nsource = \"git+https://x/y#1\"\n";
	cleanup_free char *same = lock_for_old_cargo(git);
	assert_string_equal(same, git);
}

/* ---- cargo ---- */

static void cargo_is_quoted_in_one_line(void **state)
{
	(void)state;
	cleanup_free char *reason =
		cargo_reason("    Updating index\nerror: failed to get `x`\n\nCaused by:\n  no route\n  to host\n");
	assert_string_equal(reason, "failed to get `x`: no route; to host");
	cleanup_free char *plain = cargo_reason("cannot start\n");
	assert_string_equal(plain, "cannot start");
}

static void answers_are_told_from_breakdowns(void **state)
{
	static const struct {
		const char *text;
		enum cargo_trouble trouble;
	} rows[] = {
		{"error: no matching package named `x` found\nlocation searched: crates.io index", CARGO_REFUSED},
		{"error: failed to select a version for the requirement `x = \"=9\"`", CARGO_REFUSED},
		{"error: failed to get `x`\nCaused by:\n  [6] Could not resolve hostname", CARGO_BROKEN},
		{"error: failed to download from `https://x`\nCaused by: HTTP 503", CARGO_BROKEN},
		{"error: no matching package named `x` found\nAs a reminder, you're using offline mode (--offline)",
		 CARGO_BROKEN},
		{"error: failed to write `a`\nCaused by:\n  No space left on device", CARGO_BROKEN},
		{"something new", CARGO_BROKEN},
		{"", CARGO_BROKEN},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(cargo_judge(rows[i].text), rows[i].trouble);
}

static void manifests_tell_the_oldest_cargo(void **state)
{
	(void)state;
	assert_int_equal(vendor_oldest_cargo("[package]\nname = \"x\"\n"), 56);
	assert_int_equal(vendor_oldest_cargo("[package]\nedition = \"2021\"\n"), 56);
	assert_int_equal(vendor_oldest_cargo("[package]\nedition = \"2018\"\n[features]\na = [\"dep:b\"]\n"), 60);
	assert_int_equal(vendor_oldest_cargo("edition = \"2024\"\n[features]\na = [\"dep:b\"]\n"), 85);
	assert_int_equal(vendor_oldest_cargo("# edition = \"2024\"\n"), 56);
}

/* ---- versions ---- */

static void versions_are_in_semver_order(void **state)
{
	/* semver.org 2.0.0, clause 11, and what compilers print */
	static const char *const ordered[] = {"0.9.9",          "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
					      "1.0.0-beta",     "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
					      "1.0.0",          "1.9.0",        "1.63.0",        "1.97.0-beta.3",
					      "1.97.0-nightly", "1.97.0",       "10.0.0",        "gcc",
					      "rustc"};
	(void)state;
	for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++) {
		for (size_t j = 0; j < sizeof ordered / sizeof ordered[0]; j++) {
			int order = version_compare(ordered[i], ordered[j]);
			assert_int_equal(order < 0, i < j);
			assert_int_equal(order > 0, i > j);
		}
	}
	assert_int_equal(version_compare("1.0.0+a", "1.0.0+b"), 0);
	assert_int_equal(version_compare("1.007.0", "1.7.0"), 0);
}

#define in_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_place(every_match_is_replaced_and_counted),
		in_place(matches_do_not_overlap_and_replacements_are_not_searched),
		in_place(edits_apply_in_order_each_to_what_is_left),
		in_place(bytes_that_are_no_text_survive),
		in_place(too_few_or_too_many_matches_are_refused),
		in_place(a_missing_file_is_refused_unless_no_match_is_wanted),
		in_place(paths_that_leave_the_folder_are_refused),
		in_place(links_are_not_followed),
		in_place(special_files_are_refused),
		in_place(incomplete_edits_are_refused),
		cmocka_unit_test(a_lock_is_read),
		cmocka_unit_test(a_package_without_a_name_is_refused),
		cmocka_unit_test(a_patched_package_loses_its_source_and_no_other_does),
		cmocka_unit_test(changes_leave_out_what_was_asked_for),
		cmocka_unit_test(a_lock_is_made_readable_for_old_cargos_unless_it_has_git_sources),
		cmocka_unit_test(cargo_is_quoted_in_one_line),
		cmocka_unit_test(answers_are_told_from_breakdowns),
		cmocka_unit_test(manifests_tell_the_oldest_cargo),
		cmocka_unit_test(versions_are_in_semver_order),
	};
	return cmocka_run_group_tests_name("edits", tests, NULL, NULL);
}
