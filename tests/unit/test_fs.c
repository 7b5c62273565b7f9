/* fs: whole files in and out; trees copied, removed and hashed, with links, modes and folders that nobody may enter. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"

/* Root passes every check of permissions: give that up for a test, and take it back. */
static void become_ordinary(const char *folder)
{
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(folder, 65534, 65534), 0);
	assert_int_equal(seteuid(65534), 0);
}

static int remove_place_as_before(void **state)
{
	if (getuid() == 0 && seteuid(0) < 0)
		return -1;
	return remove_place(state);
}

#define as_ordinary_user(test) cmocka_unit_test_setup_teardown(test, make_quick_place, remove_place_as_before)

static void put_link(const char *folder, const char *name, const char *target)
{
	cleanup_free char *path = path_join(folder, name);
	assert_int_equal(symlink(target, path), 0);
}

static void set_mode(const char *folder, const char *name, mode_t mode)
{
	cleanup_free char *path = path_join(folder, name);
	assert_int_equal(chmod(path, mode), 0);
}

static void put_folder(const char *folder, const char *name)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(folder, name);
	assert_done(fs_make_folder(path, &error), &error);
}

static bool is_there(const char *folder, const char *name)
{
	cleanup_free char *path = path_join(folder, name);
	return path_exists(path);
}

static mode_t mode_of(const char *folder, const char *name)
{
	struct stat status;
	cleanup_free char *path = path_join(folder, name);
	assert_int_equal(lstat(path, &status), 0);
	return status.st_mode & 07777;
}

/* ---- paths ---- */

static void paths_are_joined_and_taken_apart(void **state)
{
	(void)state;
	static const struct {
		const char *folder;
		const char *name;
		const char *joined;
		const char *parent; /* of `joined` */
		const char *base;
	} cases[] = {
		{"/a", "b", "/a/b", "/a", "b"},    {"/a/", "b", "/a/b", "/a", "b"}, {"/", "b", "/b", "/", "b"},
		{"/a", "/b/c", "/b/c", "/b", "c"}, {"", "b", "b", ".", "b"},        {"a", "b/c", "a/b/c", "a/b", "c"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_free char *joined = path_join(cases[i].folder, cases[i].name);
		cleanup_free char *parent = path_parent(joined);
		assert_string_equal(joined, cases[i].joined);
		assert_string_equal(parent, cases[i].parent);
		assert_string_equal(path_base(joined), cases[i].base);
	}
}

static void a_relative_path_becomes_absolute_without_touching_the_disk(void **state)
{
	(void)state;
	cleanup_free char *here = getcwd(NULL, 0);
	cleanup_free char *expected = path_join(here, "no/such");
	static const char *const cases[] = {"no/such", "./no/such", "././no/such"};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cleanup_free char *absolute = path_absolute(cases[i]);
		assert_string_equal(absolute, expected);
	}
	cleanup_free char *same = path_absolute("/no/../such");
	assert_string_equal(same, "/no/../such");
}

static void a_link_that_leads_nowhere_exists_and_is_no_folder(void **state)
{
	put_link(*state, "dangling", "nowhere");
	put_link(*state, "up", "..");
	cleanup_free char *dangling = path_join(*state, "dangling");
	cleanup_free char *up = path_join(*state, "up");
	assert_true(path_exists(dangling));
	assert_false(path_is_folder(dangling));
	assert_true(path_is_folder(up));
}

/* ---- folders ---- */

static void folders_are_made_with_their_parents_and_again(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(*state, "a/b/c");
	for (int i = 0; i < 2; i++)
		assert_done(fs_make_folder(path, &error), &error);
	assert_true(path_is_folder(path));
}

static void only_the_last_part_of_a_private_folder_is_private(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(*state, "a/b");
	mode_t mask = umask(022);
	assert_done(fs_make_private_folder(path, &error), &error);
	umask(mask);
	assert_int_equal(mode_of(*state, "a/b"), 0700);
	assert_int_equal(mode_of(*state, "a"), 0755);
}

static void a_folder_cannot_be_where_a_file_is(void **state)
{
	cleanup_error struct error error = {0};
	put_file(*state, "a", "");
	cleanup_free char *path = path_join(*state, "a/b");
	assert_int_equal(fs_make_folder(path, &error), -1);
	assert_says(&error, "cannot make folder ");
	assert_says(&error, "/a: File exists");
	assert_int_equal(fs_make_folder("", &error), -1);
}

static void a_listing_is_sorted_by_bytes_and_leaves_out_the_dots(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist names = {0};
	static const char *const files[] = {"b", "a10", ".hidden", "a2", "B", "...", "\xff"};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		put_file(*state, files[i], "");
	assert_done(fs_list_folder(*state, &names, &error), &error);
	cleanup_free char *joined = strlist_join(&names, " ");
	assert_string_equal(joined, "... .hidden B a10 a2 b \xff");
}

/* ---- files ---- */

static void a_file_comes_back_as_it_was_written(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(*state, "a");
	cleanup_free char *bytes = memory_new(200001, 1);
	for (size_t i = 0; i < 200001; i++)
		bytes[i] = (char)(i * 7);
	static const size_t lengths[] = {0, 1, 65535, 65536, 65537, 200001};
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		assert_done(fs_write_file(path, bytes, lengths[i], &error), &error);
		assert_done(fs_read_file(path, 0, &contents, &error), &error);
		assert_int_equal(contents.length, lengths[i]);
		if (lengths[i] > 0)
			assert_memory_equal(contents.data, bytes, lengths[i]);
	}
}

static void a_file_may_be_as_large_as_the_limit_and_not_larger(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(*state, "a");
	put_file(*state, "a", "12345");
	assert_done(fs_read_file(path, 5, &contents, &error), &error);
	assert_int_equal(fs_read_file(path, 4, &contents, &error), -1);
	assert_says(&error, "/a is larger than 4 bytes");
}

static void a_file_that_cannot_be_read_is_named_with_the_reason(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str contents = {0};
	cleanup_free char *path = path_join(*state, "missing");
	assert_int_equal(fs_read_file(path, 0, &contents, &error), -1);
	assert_says(&error, "/missing: No such file or directory");
	assert_int_equal(fs_read_file(*state, 0, &contents, &error), -1);
	assert_says(&error, "Is a directory");
}

static void a_write_replaces_the_file_and_leaves_who_reads_the_old_one_alone(void **state)
{
	char byte;
	cleanup_free char *path = path_join(*state, "a");
	put_file(*state, "a", "old");
	cleanup_fd int reader = open(path, O_RDONLY | O_CLOEXEC);
	put_file(*state, "a", "new");
	assert_int_equal(read(reader, &byte, 1), 1);
	assert_int_equal(byte, 'o');
	assert_file(*state, "a", "new");
	assert_false(is_there(*state, "a.new"));
}

static void a_write_that_fails_keeps_the_old_file_and_leaves_nothing_behind(void **state)
{
	cleanup_error struct error error = {0};
	put_file(*state, "folder/inside", "old");
	cleanup_free char *folder = path_join(*state, "folder");
	cleanup_free char *below_nothing = path_join(*state, "none/a");
	assert_int_equal(fs_write_file(folder, "new", 3, &error), -1);
	assert_says(&error, "/folder: Is a directory");
	assert_file(*state, "folder/inside", "old");
	assert_false(is_there(*state, "folder.new"));
	assert_int_equal(fs_write_file(below_nothing, "new", 3, &error), -1);
	assert_says(&error, "No such file or directory");
}

/* ---- trees ---- */

/* One of everything that a tree under test may hold. */
static void put_tree(const char *folder)
{
	put_file(folder, "file", "one");
	put_file(folder, "sub/program", "#!/bin/sh\n");
	put_file(folder, "sub/deep/empty", "");
	put_folder(folder, "bare");
	set_mode(folder, "file", 0640);
	set_mode(folder, "sub/program", 0711);
	put_link(folder, "sub/link", "../file");
	put_link(folder, "dangling", "nowhere");
	put_link(folder, "outside", "/etc");
}

static char *hash_of(const char *folder, const char *name, const struct strlist *skip)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(folder, name);
	char *hash = NULL;
	assert_done(fs_hash_tree(path, skip, &hash, &error), &error);
	assert_int_equal(strlen(hash), 64);
	return hash;
}

static void copy(const char *folder, const char *from, const char *to, const struct strlist *skip)
{
	cleanup_error struct error error = {0};
	cleanup_free char *from_path = path_join(folder, from);
	cleanup_free char *to_path = path_join(folder, to);
	assert_done(fs_copy_tree(from_path, to_path, skip, &error), &error);
}

static void a_copied_tree_hashes_like_the_original(void **state)
{
	cleanup_free char *from = path_join(*state, "from");
	put_folder(*state, "from");
	put_tree(from);
	copy(*state, "from", "to/below", NULL);
	cleanup_free char *original = hash_of(*state, "from", NULL);
	cleanup_free char *copied = hash_of(*state, "to/below", NULL);
	assert_string_equal(original, copied);
	assert_int_equal(mode_of(*state, "to/below/sub/program"), 0755);
	assert_int_equal(mode_of(*state, "to/below/file") & 0111, 0);
}

static void a_copy_has_new_times_and_links_stay_links(void **state)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct stat status;
	char target[16] = "";
	cleanup_free char *file = path_join(*state, "from/file");
	cleanup_free char *copied = path_join(*state, "to/file");
	cleanup_free char *link = path_join(*state, "to/link");
	put_file(*state, "from/file", "one");
	put_link(*state, "from/link", "/etc");
	assert_int_equal(utimensat(AT_FDCWD, file, long_ago, 0), 0);
	copy(*state, "from", "to", NULL);
	assert_int_equal(stat(copied, &status), 0);
	assert_true(status.st_mtime > 1000);
	assert_int_equal(readlink(link, target, sizeof target), 4);
	assert_string_equal(target, "/etc");
}

static void only_entries_of_the_top_folder_are_left_out(void **state)
{
	cleanup_strlist struct strlist skip = {0};
	strlist_add(&skip, "target");
	put_file(*state, "from/target/big", "x");
	put_file(*state, "from/sub/target", "y");
	copy(*state, "from", "to", &skip);
	assert_false(is_there(*state, "to/target"));
	assert_file(*state, "to/sub/target", "y");
	cleanup_free char *skipped = hash_of(*state, "from", &skip);
	cleanup_free char *whole = hash_of(*state, "from", NULL);
	cleanup_free char *copied = hash_of(*state, "to", NULL);
	assert_string_equal(skipped, copied);
	assert_string_not_equal(skipped, whole);
}

static void pipes_are_neither_copied_nor_hashed_nor_waited_for(void **state)
{
	cleanup_free char *pipe_path = path_join(*state, "from/pipe");
	put_file(*state, "from/file", "one");
	cleanup_free char *before = hash_of(*state, "from", NULL);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	cleanup_free char *after = hash_of(*state, "from", NULL);
	copy(*state, "from", "to", NULL);
	assert_string_equal(before, after);
	assert_false(is_there(*state, "to/pipe"));
}

static void a_copy_does_not_write_through_a_link_that_is_in_its_way(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *from = path_join(*state, "from");
	cleanup_free char *to = path_join(*state, "to");
	put_file(*state, "from/file", "new");
	put_file(*state, "precious", "old");
	put_folder(*state, "to");
	put_link(*state, "to/file", "../precious");
	assert_int_equal(fs_copy_tree(from, to, NULL, &error), -1);
	assert_says(&error, "/to/file: ");
	assert_file(*state, "precious", "old");
}

/* Each changes a tree in one way that a build could notice. */
static const char *const changes[] = {"contents",    "a new file",       "a file less", "another name",
				      "execute bit", "target of a link", "folder less", "link to file"};

static void change_tree(const char *folder, const char *what)
{
	cleanup_free char *file = path_join(folder, "file");
	cleanup_free char *link = path_join(folder, "dangling");
	cleanup_free char *bare = path_join(folder, "bare");
	cleanup_free char *other = path_join(folder, "filf");
	if (strcmp(what, "contents") == 0)
		put_file(folder, "file", "onf");
	else if (strcmp(what, "a new file") == 0)
		put_file(folder, "bare/new", "");
	else if (strcmp(what, "a file less") == 0)
		assert_int_equal(unlink(file), 0);
	else if (strcmp(what, "another name") == 0)
		assert_int_equal(rename(file, other), 0);
	else if (strcmp(what, "execute bit") == 0)
		set_mode(folder, "file", 0755);
	else if (strcmp(what, "folder less") == 0)
		assert_int_equal(rmdir(bare), 0);
	else if (strcmp(what, "target of a link") == 0 && unlink(link) == 0)
		put_link(folder, "dangling", "elsewhere");
	else if (strcmp(what, "link to file") == 0 && unlink(link) == 0)
		put_file(folder, "dangling", "nowhere");
	else
		fail_msg("no change %s", what);
}

static void whatever_a_build_could_notice_changes_the_hash(void **state)
{
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		cleanup_free char *name = text_format("tree%zu", i);
		cleanup_free char *folder = path_join(*state, name);
		put_folder(*state, name);
		put_tree(folder);
		cleanup_free char *before = hash_of(*state, name, NULL);
		change_tree(folder, changes[i]);
		cleanup_free char *after = hash_of(*state, name, NULL);
		if (strcmp(before, after) == 0)
			fail_msg("%s: the same hash", changes[i]);
	}
}

static void times_and_other_modes_do_not_change_the_hash(void **state)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	cleanup_free char *file = path_join(*state, "tree/file");
	put_file(*state, "tree/file", "one");
	cleanup_free char *before = hash_of(*state, "tree", NULL);
	set_mode(*state, "tree/file", 0600);
	set_mode(*state, "tree", 0700);
	assert_int_equal(utimensat(AT_FDCWD, file, long_ago, 0), 0);
	cleanup_free char *after = hash_of(*state, "tree", NULL);
	assert_string_equal(before, after);
}

static void the_bytes_of_one_file_do_not_pass_for_those_of_two(void **state)
{
	put_file(*state, "one/a", "x");
	put_file(*state, "one/b", "y");
	put_file(*state, "two/a", "xy");
	put_file(*state, "two/b", "");
	put_file(*state, "three/a/b", "y");
	put_file(*state, "four/a", "x4:file=1:b5:bytes=1:1y");
	static const char *const names[] = {"one", "two", "three", "four"};
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < i; j++) {
			cleanup_free char *left = hash_of(*state, names[i], NULL);
			cleanup_free char *right = hash_of(*state, names[j], NULL);
			assert_string_not_equal(left, right);
		}
	}
}

static void the_hash_of_a_file_is_the_sha256_of_its_bytes(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(*state, "a");
	cleanup_free char *hash = NULL;
	put_file(*state, "a", "abc");
	assert_done(fs_hash_file(path, &hash, &error), &error);
	assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	cleanup_free char *missing = path_join(*state, "b");
	cleanup_free char *none = NULL;
	assert_int_equal(fs_hash_file(missing, &none, &error), -1);
	assert_null(none);
}

static void what_may_not_be_read_fails_the_hash_and_the_copy_by_name(void **state)
{
	become_ordinary(*state);
	static const char *const locked[] = {"tree/sub", "tree/sub/file"};
	for (size_t i = 0; i < 2; i++) {
		cleanup_error struct error error = {0};
		cleanup_free char *from = path_join(*state, "tree");
		cleanup_free char *to = path_join(*state, "to");
		char *hash = NULL;
		put_file(*state, "tree/sub/file", "x");
		set_mode(*state, locked[i], 0);
		assert_int_equal(fs_hash_tree(from, NULL, &hash, &error), -1);
		assert_null(hash);
		assert_says(&error, locked[i]);
		assert_says(&error, "Permission denied");
		assert_int_equal(fs_copy_tree(from, to, NULL, &error), -1);
		assert_says(&error, locked[i]);
		assert_says(&error, "Permission denied");
		set_mode(*state, locked[i], 0700);
	}
}

static void a_tree_is_removed_whatever_its_modes_and_links_are_not_followed(void **state)
{
	cleanup_error struct error error = {0};
	become_ordinary(*state);
	put_file(*state, "precious/file", "old");
	put_file(*state, "tree/a/b/file", "x");
	put_file(*state, "tree/a/read-only", "x");
	put_link(*state, "tree/a/link", "../../precious");
	put_link(*state, "tree/a/loop", ".");
	set_mode(*state, "tree/a/read-only", 0400);
	set_mode(*state, "tree/a/b", 0);
	set_mode(*state, "tree/a", 0500);
	set_mode(*state, "tree", 0111);
	cleanup_free char *tree = path_join(*state, "tree");
	assert_done(fs_remove_tree(tree, &error), &error);
	assert_false(is_there(*state, "tree"));
	assert_file(*state, "precious/file", "old");
}

/* In each of `depth` folders a file and the next folder; every third of them is closed to everyone. */
static void put_deep_tree(const char *folder, unsigned depth)
{
	char name[101];
	memset(name, 'd', 100);
	name[100] = '\0';
	int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int parent = -1;
	for (unsigned i = 0; i < depth; i++) {
		cleanup_fd int file = openat(at, ".removing-0", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
		assert_true(file >= 0);
		assert_int_equal(mkdirat(at, name, 0700), 0);
		int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		if (parent >= 0 && i % 3 == 0)
			assert_int_equal(fchmod(at, 0), 0);
		fd_close(&parent);
		parent = at;
		at = next;
	}
	fd_close(&parent);
	fd_close(&at);
}

static void a_tree_deeper_than_a_path_can_be_long_is_removed(void **state)
{
	static const unsigned depths[] = {1, 48, 49, 50, 51, 101, 300};
	become_ordinary(*state);
	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
		cleanup_error struct error error = {0};
		cleanup_free char *tree = path_join(*state, "tree");
		put_folder(*state, "tree");
		put_deep_tree(tree, depths[i]);
		assert_done(fs_remove_tree(tree, &error), &error);
		assert_false(path_exists(tree));
	}
}

static void removing_what_is_not_there_is_fine_and_a_link_goes_alone(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_free char *path = path_join(*state, "link");
	assert_done(fs_remove_tree(path, &error), &error);
	put_file(*state, "folder/file", "old");
	put_link(*state, "link", "folder");
	assert_done(fs_remove_tree(path, &error), &error);
	assert_false(path_exists(path));
	assert_file(*state, "folder/file", "old");
}

static void what_cannot_be_removed_is_named_with_the_reason(void **state)
{
	cleanup_error struct error error = {0};
	become_ordinary(*state);
	put_file(*state, "locked/file", "x");
	set_mode(*state, "locked", 0500);
	cleanup_free char *path = path_join(*state, "locked/file");
	assert_int_equal(fs_remove_tree(path, &error), -1);
	assert_says(&error, "cannot remove ");
	assert_says(&error, "/locked/file: Permission denied");
}

static int note(const char *path, void *context, struct error *error)
{
	strlist_add(context, path_base(path));
	return strcmp(path_base(path), "stop") == 0 ? error_set(error, "told to stop") : 0;
}

static void everything_below_a_path_is_visited_in_order_and_links_are_not_followed(void **state)
{
	cleanup_error struct error error = {0};
	cleanup_strlist struct strlist seen = {0};
	cleanup_free char *top = path_join(*state, "top");
	cleanup_free char *link = path_join(*state, "top/c");
	put_file(*state, "top/b/inner", "");
	put_file(*state, "top/a", "");
	assert_int_equal(symlink("b", link), 0);
	assert_done(fs_each(top, note, &seen, &error), &error);
	cleanup_free char *names = strlist_join(&seen, " ");
	assert_string_equal(names, "top a b inner c");
	put_file(*state, "top/b/stop", "");
	strlist_clear(&seen);
	assert_int_equal(fs_each(top, note, &seen, &error), -1);
	assert_string_equal(seen.items[seen.count - 1], "stop");
	assert_says(&error, "told to stop");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_joined_and_taken_apart),
		cmocka_unit_test(a_relative_path_becomes_absolute_without_touching_the_disk),
		in_quick_place(a_link_that_leads_nowhere_exists_and_is_no_folder),
		in_quick_place(folders_are_made_with_their_parents_and_again),
		in_quick_place(only_the_last_part_of_a_private_folder_is_private),
		in_quick_place(a_folder_cannot_be_where_a_file_is),
		in_quick_place(a_listing_is_sorted_by_bytes_and_leaves_out_the_dots),
		in_quick_place(a_file_comes_back_as_it_was_written),
		in_quick_place(a_file_may_be_as_large_as_the_limit_and_not_larger),
		in_quick_place(a_file_that_cannot_be_read_is_named_with_the_reason),
		in_quick_place(a_write_replaces_the_file_and_leaves_who_reads_the_old_one_alone),
		in_quick_place(a_write_that_fails_keeps_the_old_file_and_leaves_nothing_behind),
		in_quick_place(a_copied_tree_hashes_like_the_original),
		in_quick_place(a_copy_has_new_times_and_links_stay_links),
		in_quick_place(only_entries_of_the_top_folder_are_left_out),
		in_quick_place(pipes_are_neither_copied_nor_hashed_nor_waited_for),
		in_quick_place(a_copy_does_not_write_through_a_link_that_is_in_its_way),
		in_quick_place(whatever_a_build_could_notice_changes_the_hash),
		in_quick_place(times_and_other_modes_do_not_change_the_hash),
		in_quick_place(the_bytes_of_one_file_do_not_pass_for_those_of_two),
		in_quick_place(the_hash_of_a_file_is_the_sha256_of_its_bytes),
		as_ordinary_user(what_may_not_be_read_fails_the_hash_and_the_copy_by_name),
		as_ordinary_user(a_tree_is_removed_whatever_its_modes_and_links_are_not_followed),
		as_ordinary_user(a_tree_deeper_than_a_path_can_be_long_is_removed),
		in_quick_place(removing_what_is_not_there_is_fine_and_a_link_goes_alone),
		as_ordinary_user(what_cannot_be_removed_is_named_with_the_reason),
		in_quick_place(everything_below_a_path_is_visited_in_order_and_links_are_not_followed),
	};
	return cmocka_run_group_tests_name("fs", tests, NULL, NULL);
}
