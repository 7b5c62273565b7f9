/* See sandbox.h. */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "fs.h"
#include "inside.h"
#include "os.h"

enum { START_MS = 10000, STOP_MS = 5000, KILL_TRIES = 400 };

/* A later kind wins where two entries name the same folder. */
enum mount_kind { MOUNT_READ_ONLY, MOUNT_HIDDEN_FILE, MOUNT_HIDDEN, MOUNT_READ_WRITE };

struct mount {
	char *path;
	enum mount_kind kind;
};

struct mounts {
	struct mount *items;
	size_t count;
	size_t capacity;
};

/* The system's own folders.  What is not here and not named by the job does not exist inside. */
static const char *const system_folders[] = {"/bin",
					     "/etc",
					     "/gnu/store",
					     "/lib",
					     "/lib32",
					     "/lib64",
					     "/libx32",
					     "/nix/store",
					     "/opt",
					     "/sbin",
					     "/sys/devices/system/cpu",
					     "/usr"};

/* Where programs read how much of the machine is theirs.  Of version 1 there are a dozen mounts, which is slow. */
#define CONTROL_GROUPS "/sys/fs/cgroup"
#define CONTROL_GROUPS_VERSION_2 CONTROL_GROUPS "/cgroup.controllers"

/* Secrets within them that a daemon's own user might be able to read. */
static const char *const secret_folders[] = {"/etc/bisectd", "/etc/ssh", "/etc/ssl/private"};
static const char *const secret_files[] = {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-",
					   "/etc/sudoers"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void mounts_clear(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++)
		free(mounts->items[i].path);
	free(mounts->items);
}

static void add_mount(struct mounts *mounts, const char *path, enum mount_kind kind)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	cleanup_free char *plain = text_copy_range(path, length);
	for (size_t i = 0; i < mounts->count; i++) {
		if (!text_equal(mounts->items[i].path, plain))
			continue;
		if (kind > mounts->items[i].kind)
			mounts->items[i].kind = kind;
		return;
	}
	mounts->items = memory_grow(mounts->items, mounts->count, &mounts->capacity, sizeof *mounts->items);
	mounts->items[mounts->count++] = (struct mount){.path = text_copy(plain), .kind = kind};
}

static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return strncmp(path, folder, length) == 0 && (path[length] == '/' || folder[length - 1] == '/');
}

static bool is_shown(const struct mounts *mounts, const char *path)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (mounts->items[i].kind == MOUNT_READ_ONLY &&
		    (text_equal(mounts->items[i].path, path) || is_below(path, mounts->items[i].path)))
			return true;
	return false;
}

static void hide(struct mounts *mounts, const char *path, enum mount_kind kind)
{
	if (is_shown(mounts, path) && path_exists(path))
		add_mount(mounts, path, kind);
}

static int compare_mounts(const void *a, const void *b)
{
	return strcmp(((const struct mount *)a)->path, ((const struct mount *)b)->path);
}

static void list_mounts(const struct sandbox_view *view, struct mounts *mounts)
{
	struct stat status;
	for (size_t i = 0; i < COUNT(system_folders); i++)
		if (stat(system_folders[i], &status) == 0)
			add_mount(mounts, system_folders[i], MOUNT_READ_ONLY);
	if (path_exists(CONTROL_GROUPS_VERSION_2))
		add_mount(mounts, CONTROL_GROUPS, MOUNT_READ_ONLY);
	for (size_t i = 0; i < view->read_only.count; i++)
		if (stat(view->read_only.items[i], &status) == 0)
			add_mount(mounts, view->read_only.items[i], MOUNT_READ_ONLY);
	if (view->network && path_exists("/run/systemd/resolve")) /* where /etc/resolv.conf may lead */
		add_mount(mounts, "/run/systemd/resolve", MOUNT_READ_ONLY);
	for (size_t i = 0; i < view->hidden.count; i++)
		hide(mounts, view->hidden.items[i], MOUNT_HIDDEN);
	for (size_t i = 0; i < COUNT(secret_folders); i++)
		hide(mounts, secret_folders[i], MOUNT_HIDDEN);
	for (size_t i = 0; i < COUNT(secret_files); i++)
		hide(mounts, secret_files[i], MOUNT_HIDDEN_FILE);
	for (size_t i = 0; i < view->read_write.count; i++)
		add_mount(mounts, view->read_write.items[i], MOUNT_READ_WRITE);
	/* folders before what is in them */
	qsort(mounts->items, mounts->count, sizeof *mounts->items, compare_mounts);
}

static void add_words(struct strlist *words, const char *first, const char *second, const char *third)
{
	strlist_add(words, first);
	if (second != NULL)
		strlist_add(words, second);
	if (third != NULL)
		strlist_add(words, third);
}

/* Is there a folder at this path already, because a mount brings it? */
static bool is_brought(const struct mounts *mounts, const char *path)
{
	const struct mount *deepest = NULL;
	for (size_t i = 0; i < mounts->count; i++) /* sorted: the last one is the deepest */
		if (text_equal(mounts->items[i].path, path) || is_below(path, mounts->items[i].path))
			deepest = &mounts->items[i];
	return deepest != NULL && (deepest->kind != MOUNT_HIDDEN || text_equal(deepest->path, path));
}

/* The folders that lead to a mount: bubblewrap would make them for their owner only, and the commands are another user.
 */
static void add_parent_words(struct strlist *words, const struct mounts *mounts, const char *path)
{
	for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		cleanup_free char *parent = text_copy_range(path, (size_t)(slash - path));
		if (strcmp(parent, "/tmp") != 0 && !is_brought(mounts, parent))
			add_words(words, "--dir", parent, NULL);
	}
}

static void add_mount_words(struct strlist *words, const struct mount *mount)
{
	char *link = NULL;
	switch (mount->kind) {
	case MOUNT_READ_ONLY:
		/* /bin and its like are links on current systems: a link is cheaper than a mount */
		link = mount->path[1] != '\0' && strchr(mount->path + 1, '/') == NULL ? realpath(mount->path, NULL)
										      : NULL;
		if (link != NULL && text_starts_with(link, "/usr/"))
			add_words(words, "--symlink", link, mount->path);
		else
			add_words(words, "--ro-bind", mount->path, mount->path);
		free(link);
		break;
	case MOUNT_HIDDEN_FILE:
		add_words(words, "--ro-bind", "/dev/null", mount->path);
		break;
	case MOUNT_HIDDEN:
		add_words(words, "--tmpfs", mount->path, NULL);
		break;
	case MOUNT_READ_WRITE:
		add_words(words, "--bind", mount->path, mount->path);
		break;
	}
}

static bool has_mount_below(const struct mounts *mounts, const char *folder)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (is_below(mounts->items[i].path, folder))
			return true;
	return false;
}

/* /tmp is the workspace's, so that it is on disk; but where the job's own folders are below /tmp they need an empty
 * one. */
static void add_temporary_words(struct strlist *words, const struct sandbox_view *view, const struct mounts *mounts)
{
	cleanup_free char *temporary = path_join(view->workspace, "tmp");
	if (has_mount_below(mounts, "/tmp")) {
		add_words(words, "--perms", "1777", NULL);
		add_words(words, "--tmpfs", "/tmp", NULL);
	} else {
		add_words(words, "--bind", temporary, "/tmp");
	}
	add_words(words, "--dir", "/var", NULL);
	if (!has_mount_below(mounts, "/var/tmp"))
		add_words(words, "--symlink", "/tmp", "/var/tmp");
}

static void add_bubblewrap_words(struct strlist *words, const struct sandbox_view *view)
{
	static const char *const isolation[] = {"bwrap",         "--unshare-pid",     "--as-pid-1",   "--unshare-ipc",
						"--unshare-uts", "--die-with-parent", "--new-session"};
	for (size_t i = 0; i < COUNT(isolation); i++)
		strlist_add(words, isolation[i]);
	if (!view->network)
		strlist_add(words, "--unshare-net");
	add_words(words, "--cap-drop", "ALL", NULL);
	if (geteuid() == 0) { /* for the keeper alone, which is to become another user and to kill it */
		add_words(words, "--cap-add", "CAP_SETUID", NULL);
		add_words(words, "--cap-add", "CAP_SETGID", NULL);
		add_words(words, "--cap-add", "CAP_KILL", NULL);
	}
	__attribute__((cleanup(mounts_clear))) struct mounts mounts = {0};
	list_mounts(view, &mounts);
	add_temporary_words(words, view, &mounts);
	for (size_t i = 0; i < mounts.count; i++) {
		add_parent_words(words, &mounts, mounts.items[i].path);
		add_mount_words(words, &mounts.items[i]);
	}
	add_words(words, "--proc", "/proc", NULL);
	add_words(words, "--dev", "/dev", NULL);
	add_words(words, "--remount-ro", "/", NULL);
	strlist_add(words, "--");
}

static void add_keeper_words(struct strlist *words, const struct sandbox_view *view, bool bubblewrap, int program,
			     int kept)
{
	/* by descriptor: our own path need not exist inside */
	strlist_add_owned(words, bubblewrap ? text_format("/proc/self/fd/%d", program) : text_copy(os_own_program()));
	strlist_add(words, "--inside");
	strlist_add(words, bubblewrap || view->network ? "keep" : "leave");
	if (bubblewrap)
		strlist_add_owned(words, text_format("%d", program));
	if (kept >= 0)
		strlist_add_owned(words, text_format("%d", kept));
}

static int start_keeper(struct sandbox *sandbox, const struct strlist *words, int control, int output,
			struct error *error)
{
	/* only to find bwrap by: commands get an environment of their own */
	cleanup_strmap struct strmap environment = {0};
	const char *path = getenv("PATH");
	strmap_set(&environment, "PATH", path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
	const struct child_setup setup = {.command = words,
					  .environment = &environment,
					  .input = control,
					  .output = output,
					  .errors = output,
					  .extra = -1};
	sandbox->id = child_start(&setup, error);
	if (sandbox->id >= 0)
		return 0;
	sandbox->id = 0;
	return -1;
}

int sandbox_start(struct sandbox *sandbox, const struct sandbox_view *view, bool bubblewrap, int kept,
		  struct error *error)
{
	int control[2];
	int output[2];
	*sandbox = SANDBOX_NONE;
	sandbox->bubblewrap = bubblewrap;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, control) < 0)
		return error_set_errno(error, "cannot make a socket for the sandbox");
	sandbox->control = control[0];
	cleanup_fd int keeper_control = control[1];
	if (pipe(output) < 0)
		return error_set_errno(error, "cannot make a pipe for the sandbox");
	sandbox->output = output[0];
	cleanup_fd int keeper_output = output[1];
	cleanup_fd int program = bubblewrap ? open(os_own_program(), O_RDONLY) : -1;
	if (bubblewrap && program < 0)
		return error_set_errno(error, "cannot open this program itself");
	fcntl(sandbox->control, F_SETFD, FD_CLOEXEC);
	fcntl(sandbox->output, F_SETFD, FD_CLOEXEC);
	fcntl(keeper_control, F_SETFD, FD_CLOEXEC);
	fcntl(keeper_output, F_SETFD, FD_CLOEXEC);
	fcntl(sandbox->output, F_SETFL, fcntl(sandbox->output, F_GETFL) | O_NONBLOCK);
	cleanup_strlist struct strlist words = {0};
	if (bubblewrap)
		add_bubblewrap_words(&words, view);
	add_keeper_words(&words, view, bubblewrap, program, kept);
	if (kept >= 0)
		fcntl(kept, F_SETFD, 0);
	int started = start_keeper(sandbox, &words, keeper_control, keeper_output, error);
	if (kept >= 0)
		fcntl(kept, F_SETFD, FD_CLOEXEC);
	return started;
}

/* What bubblewrap said instead of starting the keeper: its last line. */
static char *last_words(const struct sandbox *sandbox)
{
	char text[4096];
	ssize_t length = read(sandbox->output, text, sizeof text - 1);
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		length--;
	if (length <= 0)
		return text_copy("it ended without a word");
	text[length] = '\0';
	const char *line = strrchr(text, '\n');
	return text_copy(line != NULL ? line + 1 : text);
}

int sandbox_await(struct sandbox *sandbox, struct error *error)
{
	struct inside_hello hello;
	struct pollfd polled = {.fd = sandbox->control, .events = POLLIN};
	long long deadline = os_monotonic_ms() + START_MS;
	int ready;
	do {
		long long left = deadline - os_monotonic_ms();
		ready = poll(&polled, 1, left > 0 ? (int)left : 0);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return error_set(error, "it did not start within %d s", START_MS / 1000);
	/* the keeper's first words are one write, and so one read */
	if (read(sandbox->control, &hello, sizeof hello) != (ssize_t)sizeof hello || hello.magic != INSIDE_MAGIC) {
		cleanup_free char *words = last_words(sandbox);
		return error_set(error, "%s", words);
	}
	sandbox->network_left = sandbox->bubblewrap || hello.network_left;
	return 0;
}

/* The keeper kills everything and goes when its socket ends; what does not obey in time is killed with the rest. */
size_t sandbox_stop(struct sandbox *sandbox)
{
	fd_close(&sandbox->control);
	fd_close(&sandbox->output);
	if (sandbox->id <= 0)
		return 0;
	long long deadline = os_monotonic_ms() + STOP_MS;
	unsigned pause_us = 100;
	while (waitpid(sandbox->id, NULL, WNOHANG) == 0) {
		if (os_monotonic_ms() > deadline) {
			kill(sandbox->id, SIGKILL);
			break;
		}
		usleep(pause_us);
		pause_us = pause_us < 5000 ? pause_us * 2 : pause_us;
	}
	sandbox->id = 0;
	return os_kill_descendants(KILL_TRIES);
}

void sandbox_drop(struct sandbox *sandbox)
{
	sandbox_stop(sandbox);
}
