/*
 * Files and folders: whole files in and out, trees copied, removed and hashed.
 *
 * Nothing here follows a symbolic link out of a tree that it copies, removes or hashes: those trees come from
 * repositories under test.  Returned paths and contents are owned by the caller.
 */
#ifndef BISECTD_COMMON_FS_H
#define BISECTD_COMMON_FS_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "str.h"

#define cleanup_fd __attribute__((cleanup(fd_close)))

void fd_close(int *fd); /* closes where it is not negative, and makes it negative */

char *path_join(const char *folder, const char *name); /* an absolute `name` is returned as it is */
char *path_parent(const char *path);
const char *path_base(const char *path); /* points into `path` */
char *path_absolute(const char *path);   /* against the current folder, without touching the disk */
bool path_exists(const char *path);
bool path_is_folder(const char *path);

/* mkdir -p, mode 0755 (0700 for fs_make_private_folder's last part). */
int fs_make_folder(const char *path, struct error *error);
int fs_make_private_folder(const char *path, struct error *error);
/* Whole file; more than `limit` bytes is an error (0: no limit).  `contents` is replaced. */
int fs_read_file(const char *path, size_t limit, struct str *contents, struct error *error);
/* Written beside, flushed to disk, renamed: readers see the old file or the new one. */
int fs_write_file(const char *path, const char *bytes, size_t length, struct error *error);
/* rm -rf; a path that does not exist is fine; folders without write permission are opened up first. */
int fs_remove_tree(const char *path, struct error *error);
/*
 * `visit` for the path and then, where that is a folder, for everything below it, in bytewise order; ends at the first that returns -1.
 */
int fs_each(const char *path, int (*visit)(const char *path, void *context, struct error *error), void *context,
	    struct error *error);
/*
 * cp -R with new modification times (Cargo trusts times).  Regular files keep their execute bit, symbolic links are
 * copied as links, anything else is skipped.  `skip` may name entries of the top folder to leave out (NULL: none).
 */
int fs_copy_tree(const char *from, const char *to, const struct strlist *skip, struct error *error);
int fs_copy_file(const char *from, const char *to, struct error *error);
/*
 * SHA-256 (hex, 64 characters) of a tree: of every entry, in byte order of the relative paths, its path, kind,
 * execute bit and contents or link target.  `skip` as above.
 */
int fs_hash_tree(const char *path, const struct strlist *skip, char **hash, struct error *error);
int fs_hash_file(const char *path, char **hash, struct error *error);
/* Names in a folder, sorted bytewise, without "." and "..". */
int fs_list_folder(const char *path, struct strlist *names, struct error *error);

#endif
