/* See fs.h. */
#include "fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"

enum { COPY_BLOCK = 1 << 16, REMOVE_DEPTH = 50 };

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_folder(DIR **folder)
{
	if (*folder != NULL)
		closedir(*folder);
}

char *path_join(const char *folder, const char *name)
{
	if (name[0] == '/' || folder[0] == '\0')
		return text_copy(name);
	return text_format("%s%s%s", folder, text_ends_with(folder, "/") ? "" : "/", name);
}

char *path_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (slash == NULL)
		return text_copy(".");
	return slash == path ? text_copy("/") : text_copy_range(path, (size_t)(slash - path));
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

char *path_absolute(const char *path)
{
	if (path[0] == '/')
		return text_copy(path);
	cleanup_free char *folder = getcwd(NULL, 0);
	while (text_starts_with(path, "./"))
		path += 2;
	return path_join(folder != NULL ? folder : ".", path);
}

bool path_exists(const char *path)
{
	struct stat status;
	return lstat(path, &status) == 0;
}

bool path_is_folder(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int make_folder(const char *path, mode_t mode, struct error *error)
{
	if (path_is_folder(path))
		return 0;
	cleanup_free char *parent = path_parent(path);
	if (!text_equal(parent, path) && make_folder(parent, 0755, error) < 0)
		return -1;
	if (mkdir(path, mode) < 0 && !(errno == EEXIST && path_is_folder(path)))
		return error_set_errno(error, "cannot make folder %s", path);
	return 0;
}

int fs_make_folder(const char *path, struct error *error)
{
	return make_folder(path, 0755, error);
}

int fs_make_private_folder(const char *path, struct error *error)
{
	return make_folder(path, 0700, error);
}

static int read_all(int fd, const char *path, size_t limit, struct str *contents, struct error *error)
{
	cleanup_free char *block = memory_new(COPY_BLOCK, 1);
	for (;;) {
		ssize_t got = read(fd, block, COPY_BLOCK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, "cannot read %s", path);
		if (got == 0)
			return 0;
		if (limit > 0 && contents->length + (size_t)got > limit)
			return error_set(error, "%s is larger than %zu bytes", path, limit);
		str_append_bytes(contents, block, (size_t)got);
	}
}

int fs_read_file(const char *path, size_t limit, struct str *contents, struct error *error)
{
	str_clear(contents);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(error, "cannot open %s", path);
	return read_all(fd, path, limit, contents, error);
}

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

int fs_write_file(const char *path, const char *bytes, size_t length, struct error *error)
{
	cleanup_free char *beside = text_format("%s.new", path);
	cleanup_fd int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return error_set_errno(error, "cannot write %s", beside);
	if (write_all(fd, bytes, length) < 0 || fsync(fd) < 0 || rename(beside, path) < 0) {
		error_set_errno(error, "cannot write %s", path);
		unlink(beside);
		return -1;
	}
	return 0;
}

int fs_list_folder(const char *path, struct strlist *names, struct error *error)
{
	__attribute__((cleanup(close_folder))) DIR *folder = opendir(path);
	if (folder == NULL)
		return error_set_errno(error, "cannot list %s", path);
	struct dirent *entry;
	while ((entry = readdir(folder)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			strlist_add(names, entry->d_name);
	strlist_sort(names);
	return 0;
}

/*
 * Trees that programs under test made may be deeper than a path can be long and than a stack can be high: what lies
 * deeper than REMOVE_DEPTH is moved up to the top, whose entries are removed until none is left.
 */
struct removal {
	const char *path; /* for messages */
	int top;          /* the top folder */
	unsigned moved;   /* how many were moved up, for their names */
};

static int remove_entries(struct removal *removal, int folder, unsigned depth, struct error *error);

static int move_up(struct removal *removal, int folder, const char *name, struct error *error)
{
	struct stat status;
	for (;;) {
		cleanup_free char *unused = text_format(".removing-%u", removal->moved++);
		if (fstatat(removal->top, unused, &status, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (renameat(folder, name, removal->top, unused) < 0)
			return error_set_errno(error, "cannot remove %s: moving up %s", removal->path, name);
		return 0;
	}
}

static int remove_entry(struct removal *removal, int folder, const char *name, unsigned depth, struct error *error)
{
	struct stat status;
	if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
		return 0;
	int number = errno;
	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode)) {
		errno = number;
		return error_set_errno(error, "cannot remove %s: %s", removal->path, name);
	}
	if ((status.st_mode & S_IRWXU) != S_IRWXU && fchmodat(folder, name, status.st_mode | S_IRWXU, 0) < 0)
		return error_set_errno(error, "cannot remove %s: opening up %s", removal->path, name);
	if (depth >= REMOVE_DEPTH)
		return move_up(removal, folder, name, error);
	cleanup_fd int child = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (child < 0)
		return error_set_errno(error, "cannot remove %s: opening %s", removal->path, name);
	if (remove_entries(removal, child, depth + 1, error) < 0)
		return -1;
	if (unlinkat(folder, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return error_set_errno(error, "cannot remove folder %s in %s", name, removal->path);
	return 0;
}

/* Once over all entries; what was moved up meanwhile needs another time. */
static int remove_entries(struct removal *removal, int folder, unsigned depth, struct error *error)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_fd int again = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	__attribute__((cleanup(close_folder))) DIR *listed = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *entry;
	if (listed == NULL)
		return error_set_errno(error, "cannot list %s to remove it", removal->path);
	again = -1; /* the list's from here on */
	rewinddir(listed);
	while ((entry = readdir(listed)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			strlist_add(&names, entry->d_name);
	for (size_t i = 0; i < names.count; i++)
		if (remove_entry(removal, folder, names.items[i], depth, error) < 0)
			return -1;
	return 0;
}

int fs_remove_tree(const char *path, struct error *error)
{
	struct stat status;
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	if (lstat(path, &status) < 0 || !S_ISDIR(status.st_mode))
		return error_set_errno(error, "cannot remove %s", path);
	if ((status.st_mode & S_IRWXU) != S_IRWXU && chmod(path, status.st_mode | S_IRWXU) < 0)
		return error_set_errno(error, "cannot open up %s to remove it", path);
	cleanup_fd int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0)
		return error_set_errno(error, "cannot open %s to remove it", path);
	struct removal removal = {.path = path, .top = top};
	unsigned moved;
	do {
		moved = removal.moved;
		if (remove_entries(&removal, top, 1, error) < 0)
			return -1;
	} while (removal.moved > moved);
	if (rmdir(path) < 0 && errno != ENOENT)
		return error_set_errno(error, "cannot remove folder %s", path);
	return 0;
}

int fs_copy_file(const char *from, const char *to, struct error *error)
{
	cleanup_fd int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;
	if (source < 0 || fstat(source, &status) < 0)
		return error_set_errno(error, "cannot open %s", from);
	mode_t mode = (status.st_mode & S_IXUSR) != 0 ? 0755 : 0644;
	cleanup_fd int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (target < 0)
		return error_set_errno(error, "cannot write %s", to);
	cleanup_free char *block = memory_new(COPY_BLOCK, 1);
	for (;;) {
		ssize_t got = read(source, block, COPY_BLOCK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, "cannot read %s", from);
		if (got == 0)
			return 0;
		if (write_all(target, block, (size_t)got) < 0)
			return error_set_errno(error, "cannot write %s", to);
	}
}

static int read_link(const char *path, char **target, struct error *error)
{
	char *text = memory_new(PATH_MAX + 1, 1);
	if (readlink(path, text, PATH_MAX) < 0) {
		free(text);
		return error_set_errno(error, "cannot read link %s", path);
	}
	*target = text;
	return 0;
}

static int copy_link(const char *from, const char *to, struct error *error)
{
	cleanup_free char *target = NULL;
	if (read_link(from, &target, error) < 0)
		return -1;
	if (symlink(target, to) < 0)
		return error_set_errno(error, "cannot make link %s", to);
	return 0;
}

int fs_copy_tree(const char *from, const char *to, const struct strlist *skip, struct error *error)
{
	struct stat status;
	if (lstat(from, &status) < 0)
		return error_set_errno(error, "cannot copy %s", from);
	if (S_ISREG(status.st_mode))
		return fs_copy_file(from, to, error);
	if (S_ISLNK(status.st_mode))
		return copy_link(from, to, error);
	if (!S_ISDIR(status.st_mode))
		return 0;
	if (fs_make_folder(to, error) < 0)
		return -1;
	cleanup_strlist struct strlist names = {0};
	if (fs_list_folder(from, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (skip != NULL && strlist_contains(skip, names.items[i]))
			continue;
		cleanup_free char *child_from = path_join(from, names.items[i]);
		cleanup_free char *child_to = path_join(to, names.items[i]);
		if (fs_copy_tree(child_from, child_to, NULL, error) < 0)
			return -1;
	}
	return 0;
}

static int hash_contents(struct digest *digest, const char *path, struct error *error)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(error, "cannot open %s", path);
	cleanup_free char *block = memory_new(COPY_BLOCK, 1);
	for (;;) {
		ssize_t got = read(fd, block, COPY_BLOCK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, "cannot read %s", path);
		if (got == 0)
			return 0;
		digest_add_bytes(digest, block, (size_t)got);
	}
}

static int hash_entry(struct digest *digest, const char *path, const char *relative, const struct strlist *skip,
		      struct error *error)
{
	struct stat status;
	if (lstat(path, &status) < 0)
		return error_set_errno(error, "cannot read %s", path);
	if (S_ISREG(status.st_mode)) {
		digest_add(digest, status.st_mode & S_IXUSR ? "program" : "file", relative);
		digest_add_number(digest, "bytes", (long long)status.st_size);
		return hash_contents(digest, path, error);
	}
	if (S_ISLNK(status.st_mode)) {
		cleanup_free char *target = NULL;
		if (read_link(path, &target, error) < 0)
			return -1;
		digest_add(digest, "link", relative);
		digest_add(digest, "target", target);
		return 0;
	}
	if (!S_ISDIR(status.st_mode))
		return 0;
	digest_add(digest, "folder", relative);
	cleanup_strlist struct strlist names = {0};
	if (fs_list_folder(path, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (skip != NULL && strlist_contains(skip, names.items[i]))
			continue;
		cleanup_free char *child = path_join(path, names.items[i]);
		cleanup_free char *child_relative = path_join(relative, names.items[i]);
		if (hash_entry(digest, child, child_relative, NULL, error) < 0)
			return -1;
	}
	return 0;
}

int fs_hash_tree(const char *path, const struct strlist *skip, char **hash, struct error *error)
{
	struct digest digest;
	digest_start(&digest);
	if (hash_entry(&digest, path, "", skip, error) < 0)
		return -1;
	*hash = digest_finish(&digest);
	return 0;
}

int fs_hash_file(const char *path, char **hash, struct error *error)
{
	struct digest digest;
	digest_start(&digest);
	if (hash_contents(&digest, path, error) < 0)
		return -1;
	*hash = digest_finish(&digest);
	return 0;
}

int fs_each(const char *path, int (*visit)(const char *path, void *context, struct error *error), void *context,
	    struct error *error)
{
	struct stat status;
	cleanup_strlist struct strlist names = {0};
	if (visit(path, context, error) < 0)
		return -1;
	if (lstat(path, &status) < 0)
		return error_set_errno(error, "cannot look at %s", path);
	if (!S_ISDIR(status.st_mode))
		return 0;
	if (fs_list_folder(path, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *child = path_join(path, names.items[i]);
		if (fs_each(child, visit, context, error) < 0)
			return -1;
	}
	return 0;
}
