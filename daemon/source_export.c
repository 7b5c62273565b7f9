/*
 * Writing a commit's tree to disk.  See source_export in source.h.
 *
 * The trees come from repositories under test and may have been made to hurt: names such as "..", ".git" or "/etc", a
 * link followed by an entry of the same name below it, trees nested without end.  So every name is checked, every file
 * and folder is made (never opened where something stands already) relative to a descriptor of its folder, and no link
 * is ever followed.  A tree that git itself would refuse to check out is an error, not a guess.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"
#include "source_internal.h"

enum {
	DEPTH_LIMIT = 256,     /* one descriptor a level */
	ENTRY_LIMIT = 2 << 20, /* a few small objects can describe more files than a disk holds */
	LINK_LIMIT = 4096,     /* bytes of a link's target; what is longer is written as a file */
	WRITE_BLOCK = 1 << 30, /* some systems cannot write more at once */
};

struct export
{
	const struct source *source;
	const git_tree *root;
	size_t entries;
};

static int write_tree(struct export *export, const git_tree *tree, int folder, const char *path, unsigned depth,
		      struct error *error);

/* ---- names ---- */

static int check_name(const char *name, const char *path, struct error *error)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/') != NULL ||
	    strcasecmp(name, ".git") == 0)
		return error_set(error, "refused: its tree has an entry named \"%s\" in \"%s\"", name, path);
	return 0;
}

/* ---- links ---- */

/* Remove the last part of `path`.  False where that leads out of the tree, or through what is no folder of the tree. */
static bool step_up(const struct export *export, struct str *path, bool own_folder)
{
	cleanup_git(tree_entry) git_tree_entry *entry = NULL;
	cleanup_error struct error ignored = {0};
	if (path->length == 0)
		return false;
	if (!own_folder && (source_find_entry(export->source, export->root, str_text(path), &entry, &ignored) != 1 ||
			    git_tree_entry_type(entry) != GIT_OBJECT_TREE))
		return false;
	const char *slash = strrchr(path->data, '/');
	path->length = slash != NULL ? (size_t)(slash - path->data) : 0;
	path->data[path->length] = '\0';
	return true;
}

/*
 * Does a link in `folder` (its path in the tree) stay inside?  Going up is allowed from a real folder of the tree only:
 * "a/../b" means something else when `a` is a link.  Going down is always fine, because every link on that way was
 * checked too.
 */
static bool stays_inside(const struct export *export, const char *folder, const char *target, size_t length)
{
	cleanup_str struct str path = {0};
	bool own_folder = true;
	str_append(&path, folder);
	if (length == 0 || length >= LINK_LIMIT || target[0] == '/' || memchr(target, '\0', length) != NULL)
		return false;
	for (size_t start = 0; start < length;) {
		size_t part = 0;
		while (start + part < length && target[start + part] != '/')
			part++;
		const char *name = target + start;
		if (part == 2 && strncmp(name, "..", 2) == 0) {
			if (!step_up(export, &path, own_folder))
				return false;
		} else if (part > 0 && !(part == 1 && name[0] == '.')) {
			own_folder = false;
			str_append(&path, path.length > 0 ? "/" : "");
			str_append_bytes(&path, name, part);
		}
		start += part + 1;
	}
	return true;
}

/* ---- entries ---- */

static int write_file(int folder, const char *name, const char *path, mode_t mode, const git_blob *blob,
		      struct error *error)
{
	const char *bytes = git_blob_rawcontent(blob);
	size_t left = (size_t)git_blob_rawsize(blob);
	cleanup_fd int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return error_set_errno(error, "cannot write %s", path);
	while (left > 0) {
		ssize_t written = write(fd, bytes, left < WRITE_BLOCK ? left : WRITE_BLOCK);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_set_errno(error, "cannot write %s", path);
		bytes += written;
		left -= (size_t)written;
	}
	return 0;
}

static int write_blob(const struct export *export, const git_tree_entry *entry, int folder, const char *folder_path,
		      const char *path, struct error *error)
{
	const char *name = git_tree_entry_name(entry);
	git_filemode_t mode = git_tree_entry_filemode(entry);
	cleanup_git(blob) git_blob *blob = NULL;
	if (git_blob_lookup(&blob, export->source->repository, git_tree_entry_id(entry)) < 0)
		return source_object_error(export->source, error, "reading %s", path);
	const char *bytes = git_blob_rawcontent(blob);
	size_t length = (size_t)git_blob_rawsize(blob);
	if (mode != GIT_FILEMODE_LINK || !stays_inside(export, folder_path, bytes, length))
		return write_file(folder, name, path, mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644, blob, error);
	cleanup_free char *target = text_copy_range(bytes, length);
	return symlinkat(target, folder, name) < 0 ? error_set_errno(error, "cannot make link %s", path) : 0;
}

static int write_folder(struct export *export, const git_tree_entry *entry, int parent, const char *path,
			unsigned depth, struct error *error)
{
	const char *name = git_tree_entry_name(entry);
	cleanup_git(tree) git_tree *tree = NULL;
	if (depth > DEPTH_LIMIT)
		return error_set(error, "refused: its folders are nested more than %d deep", DEPTH_LIMIT);
	if (mkdirat(parent, name, 0755) < 0)
		return error_set_errno(error, "cannot make folder %s", path);
	if (git_tree_entry_type(entry) == GIT_OBJECT_COMMIT)
		return 0; /* a submodule */
	cleanup_fd int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return error_set_errno(error, "cannot open folder %s", path);
	if (git_tree_lookup(&tree, export->source->repository, git_tree_entry_id(entry)) < 0)
		return source_object_error(export->source, error, "reading %s", path);
	return write_tree(export, tree, folder, path, depth, error);
}

static int write_tree(struct export *export, const git_tree *tree, int folder, const char *path, unsigned depth,
		      struct error *error)
{
	for (size_t i = 0; i < git_tree_entrycount(tree); i++) {
		const git_tree_entry *entry = git_tree_entry_byindex(tree, i);
		const char *name = git_tree_entry_name(entry);
		if (check_name(name, path, error) < 0)
			return -1;
		if (++export->entries > ENTRY_LIMIT)
			return error_set(error, "refused: it has more than %d files and folders", ENTRY_LIMIT);
		cleanup_free char *entry_path = path_join(path, name);
		int result = git_tree_entry_type(entry) == GIT_OBJECT_BLOB
				     ? write_blob(export, entry, folder, path, entry_path, error)
				     : write_folder(export, entry, folder, entry_path, depth + 1, error);
		if (result < 0)
			return -1;
	}
	return 0;
}

/* ---- the folder beside, and the rename ---- */

/* Folders that killed exports of the same commit left: `<base>.new-<process>-<number>`, the process gone. */
static void sweep_leftovers(const char *parent, const char *base)
{
	cleanup_error struct error ignored = {0};
	cleanup_strlist struct strlist names = {0};
	cleanup_free char *start = text_format("%s.new-", base);
	if (fs_list_folder(parent, &names, &ignored) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		if (!text_starts_with(names.items[i], start))
			continue;
		long process = strtol(names.items[i] + strlen(start), NULL, 10);
		cleanup_free char *path = path_join(parent, names.items[i]);
		if (process > 0 && process <= INT_MAX && kill((pid_t)process, 0) < 0 && errno == ESRCH)
			fs_remove_tree(path, &ignored);
	}
}

static char *make_beside(const char *folder, struct error *error)
{
	for (unsigned number = 0;; number++) {
		char *beside = text_format("%s.new-%ld-%u", folder, (long)getpid(), number);
		if (mkdir(beside, 0755) == 0)
			return beside;
		int reason = errno;
		if (reason != EEXIST) {
			errno = reason;
			error_set_errno(error, "cannot make folder %s", beside);
			free(beside);
			return NULL;
		}
		free(beside);
	}
}

static int write_commit(const struct source *source, const git_commit *commit, const char *beside, struct error *error)
{
	cleanup_git(tree) git_tree *root = NULL;
	if (git_commit_tree(&root, commit) < 0)
		return source_object_error(source, error, "reading its tree");
	struct export export = {.source = source, .root = root};
	cleanup_fd int fd = open(beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(error, "cannot open folder %s", beside);
	return write_tree(&export, root, fd, "", 0, error);
}

static int export_beside(const struct source *source, const git_commit *commit, const char *beside, const char *folder,
			 struct error *error)
{
	if (write_commit(source, commit, beside, error) < 0)
		return -1;
	if (rename(beside, folder) == 0)
		return 0;
	if (errno != EEXIST && errno != ENOTEMPTY)
		return error_set_errno(error, "cannot move %s to %s", beside, folder);
	return fs_remove_tree(beside, error); /* somebody else finished the same commit */
}

int source_export(struct source *source, const char *oid, const char *folder, struct error *error)
{
	cleanup_git(commit) git_commit *commit = NULL;
	cleanup_free char *plain = text_copy(folder);
	for (size_t length = strlen(plain); length > 1 && plain[length - 1] == '/'; length--)
		plain[length - 1] = '\0';
	if (path_exists(plain))
		return 0;
	cleanup_free char *parent = path_parent(plain);
	if (source_find_commit(source, oid, &commit, error) < 0 || fs_make_folder(parent, error) < 0)
		return -1;
	sweep_leftovers(parent, path_base(plain));
	cleanup_free char *beside = make_beside(plain, error);
	if (beside == NULL)
		return -1;
	if (export_beside(source, commit, beside, plain, error) < 0) {
		cleanup_error struct error ignored = {0};
		fs_remove_tree(beside, &ignored);
		return error_wrap(error, "exporting %s", oid);
	}
	return 0;
}
