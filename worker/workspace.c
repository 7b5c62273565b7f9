/* See workspace.h. */
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "edits.h"
#include "fs.h"
#include "os.h"

enum {
	LOCK_MS = 15000,
	FIRST_USER = 61184, /* nobody's: systemd gives users from here on to services, for as long as they run */
	USERS = 1000,
	FULL_BLOCKS_KIB = 1024,
};

/* A target's user never changes, so that what one job built the next may replace (FNV-1a over its path). */
static uid_t user_of(const char *target)
{
	unsigned hash = 2166136261u;
	for (; *target != '\0'; target++)
		hash = (hash ^ (unsigned char)*target) * 16777619u;
	return (uid_t)(FIRST_USER + hash % USERS);
}

static int lock_target(struct workspace *workspace, struct error *error)
{
	cleanup_free char *path = text_format("%s.lock", workspace->target);
	workspace->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (workspace->lock < 0)
		return error_set_errno(error, "cannot open %s", path);
	long long deadline = os_monotonic_ms() + LOCK_MS;
	while (flock(workspace->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_set_errno(error, "cannot lock %s", path);
		if (os_monotonic_ms() > deadline)
			return error_set(error, "another worker uses %s (%s stays locked)", workspace->target, path);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	return 0;
}

static int empty_folder(const char *path, struct error *error)
{
	if (fs_remove_tree(path, error) < 0)
		return -1;
	return fs_make_folder(path, error);
}

static int make_folders(const struct workspace *workspace, bool clean, struct error *error)
{
	const char *const folders[] = {workspace->reproducer, workspace->home, workspace->temporary, workspace->target,
				       workspace->cargo_home};
	if (empty_folder(workspace->folder, error) < 0)
		return -1;
	if (clean && empty_folder(workspace->target, error) < 0)
		return -1;
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		if (fs_make_folder(folders[i], error) < 0)
			return -1;
	return 0;
}

/* Only cargo knows which of what it finds there is up to date: what a script left there would be taken for the next cell's own. */
static bool keeps_target(const struct job *job)
{
	cleanup_free char *manifest = path_join(job->reproducer, "Cargo.toml");
	return path_exists(manifest);
}

int workspace_open(struct workspace *workspace, const struct job *job, struct error *error)
{
	*workspace = WORKSPACE_NONE;
	cleanup_free char *shared = path_parent(job->target);
	workspace->folder = text_copy(job->workspace);
	workspace->target = text_copy(job->target);
	workspace->reproducer = path_join(job->workspace, "reproducer");
	workspace->home = path_join(job->workspace, "home");
	workspace->temporary = path_join(job->workspace, "tmp");
	workspace->cargo_home = path_join(shared, "cargo-home");
	workspace->drop = geteuid() == 0;
	workspace->user = user_of(job->target);
	workspace->group = (gid_t)workspace->user;
	if (fs_make_folder(shared, error) < 0 || lock_target(workspace, error) < 0 ||
	    make_folders(workspace, job->clean || !keeps_target(job), error) < 0)
		return -1;
	/* in a container that knows one user only, there is no other to become */
	if (workspace->drop && chown(workspace->folder, workspace->user, workspace->group) < 0)
		workspace->drop = false;
	return 0;
}

static int copy_over(const char *from_folder, const char *from_name, const char *to, struct error *error)
{
	cleanup_free char *from = path_join(from_folder, from_name);
	if (!path_exists(from))
		return 0;
	if (unlink(to) < 0 && errno != ENOENT)
		return error_set_errno(error, "cannot replace %s", to);
	return fs_copy_file(from, to, error);
}

static int copy_preparation(const struct workspace *workspace, const char *prepared, struct error *error)
{
	cleanup_free char *lock = path_join(workspace->reproducer, "Cargo.lock");
	cleanup_free char *folder = path_join(workspace->folder, ".cargo");
	cleanup_free char *config = path_join(folder, "config.toml");
	if (!path_is_folder(prepared))
		return error_set(error, "the preparation %s is missing", prepared);
	if (fs_make_folder(folder, error) < 0)
		return -1;
	if (copy_over(prepared, "Cargo.lock", lock, error) < 0)
		return -1;
	return copy_over(prepared, "cargo-config.toml", config, error);
}

static int copy_checkout(const struct workspace *workspace, const char *name, const char *from, struct error *error)
{
	if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
		return error_set(error, "\"%s\" is no name for a checkout", name);
	cleanup_free char *to = text_format("%s/checkouts/%s", workspace->folder, name);
	if (fs_make_folder(to, error) < 0)
		return -1;
	return fs_copy_tree(from, to, NULL, error);
}

int workspace_fill(const struct workspace *workspace, const struct job *job, struct error *error)
{
	cleanup_strlist struct strlist skip = {0};
	strlist_add(&skip, "target");
	strlist_add(&skip, ".git");
	if (fs_copy_tree(job->reproducer, workspace->reproducer, &skip, error) < 0)
		return -1;
	for (size_t i = 0; i < job->checkouts.count; i++)
		if (copy_checkout(workspace, job->checkouts.entries[i].key, job->checkouts.entries[i].value, error) < 0)
			return -1;
	if (job->edits != NULL && edits_apply(workspace->reproducer, job->edits, "of the reproducer", NULL, error) < 0)
		return -1;
	return job->prepared != NULL ? copy_preparation(workspace, job->prepared, error) : 0;
}

struct owner {
	uid_t user;
	gid_t group;
};

static int give(const char *path, void *context, struct error *error)
{
	const struct owner *owner = context;
	if (lchown(path, owner->user, owner->group) < 0)
		return error_set_errno(error, "cannot give %s to user %ld", path, (long)owner->user);
	return 0;
}

/* Only where the top is not theirs yet: the trees that stay between jobs are large. */
static int give_kept_tree(const char *path, struct owner *owner, struct error *error)
{
	struct stat status;
	if (lstat(path, &status) == 0 && status.st_uid == owner->user)
		return 0;
	return fs_each(path, give, owner, error);
}

int workspace_give(const struct workspace *workspace, struct error *error)
{
	struct owner owner = {.user = workspace->drop ? workspace->user : geteuid(),
			      .group = workspace->drop ? workspace->group : getegid()};
	if (geteuid() != 0)
		return 0;
	if (fs_each(workspace->folder, give, &owner, error) < 0)
		return -1;
	if (give_kept_tree(workspace->target, &owner, error) < 0)
		return -1;
	return give_kept_tree(workspace->cargo_home, &owner, error);
}

bool workspace_user_reaches(const struct workspace *workspace, const char *path)
{
	struct stat status;
	if (stat(path, &status) < 0)
		return true; /* missing is missing for everybody */
	if (S_ISDIR(status.st_mode) && status.st_uid != workspace->user && (status.st_mode & S_IXOTH) == 0)
		return false;
	if (strcmp(path, "/") == 0)
		return true;
	cleanup_free char *parent = path_parent(path);
	return workspace_user_reaches(workspace, parent);
}

bool workspace_disk_full(const struct workspace *workspace)
{
	const char *const folders[] = {workspace->target, workspace->folder};
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		struct statvfs status;
		if (statvfs(folders[i], &status) < 0)
			continue;
		unsigned long long free_kib = (unsigned long long)status.f_bavail * status.f_frsize / 1024;
		if (free_kib < FULL_BLOCKS_KIB || (status.f_files > 0 && status.f_favail == 0))
			return true;
	}
	return false;
}

void workspace_clear(struct workspace *workspace)
{
	free(workspace->folder);
	free(workspace->reproducer);
	free(workspace->home);
	free(workspace->temporary);
	free(workspace->target);
	free(workspace->cargo_home);
	fd_close(&workspace->lock);
	*workspace = WORKSPACE_NONE;
}
