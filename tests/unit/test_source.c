/* Sources against repositories made on the spot: see daemon/source.h.  No network but a server on the loopback address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs.h"
#include "make_repository.h"
#include "os.h"
#include "source.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FILES(...) ((const struct made_file[]){__VA_ARGS__, {NULL, NULL, 0}})

/* ---- one upstream and its mirror ---- */

struct fixture {
	char *folder;
	char *upstream; /* path */
	char *url;
	char *mirror; /* path */
	git_repository *repository;
	git_oid last;
	struct error error;
};

static int setup(void **state)
{
	struct fixture *f = memory_new(1, sizeof *f);
	f->folder = make_folder();
	f->upstream = path_join(f->folder, "upstream.git");
	f->url = text_format("file://%s", f->upstream);
	f->mirror = path_join(f->folder, "sources/mirror");
	f->repository = make_repository(f->upstream);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	git_repository_free(f->repository);
	remove_folder(f->folder);
	free(f->upstream);
	free(f->url);
	free(f->mirror);
	error_clear(&f->error);
	free(f);
	return 0;
}

/* Put a commit with these files on main, after the last one. */
static git_oid grow(struct fixture *f, const char *message, const struct made_file *files)
{
	struct made_commit commit = {.branch = "refs/heads/main", .message = message, .files = files};
	commit.parents[0] = f->last;
	return f->last = make_commit(f->repository, &commit);
}

static void assert_fetched(struct fixture *f)
{
	if (source_fetch(f->mirror, f->url, NULL, NULL, NULL, &f->error) < 0)
		fail_msg("%s", error_text(&f->error));
}

static struct source *open_mirror(struct fixture *f)
{
	struct source *source = NULL;
	if (source_open(&source, f->mirror, &f->error) < 0)
		fail_msg("%s", error_text(&f->error));
	return source;
}

static struct source *fetched(struct fixture *f)
{
	assert_fetched(f);
	return open_mirror(f);
}

static void assert_contains(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		fail_msg("\"%s\" contains \"%s\"", text, part);
}

static void assert_resolves(struct source *source, const char *revision, const git_oid *oid)
{
	cleanup_source_commit struct source_commit commit = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *expected = oid_string(oid);
	if (source_resolve(source, revision, &commit, &error) < 0)
		fail_msg("%s", error_text(&error));
	assert_string_equal(commit.oid, expected);
}

static void assert_unresolved(struct source *source, const char *revision, const char *reason)
{
	cleanup_source_commit struct source_commit commit = {0};
	cleanup_error struct error error = {0};
	assert_int_equal(source_resolve(source, revision, &commit, &error), -1);
	assert_contains(error_text(&error), reason);
	assert_null(strchr(error_text(&error), '\n'));
}

/* The subjects of a listed range, joined by spaces; owned by the caller. */
static char *listed(struct source *source, const char *range, bool first_parent, const struct strlist *paths)
{
	cleanup_source_commits struct source_commits commits = {0};
	cleanup_error struct error error = {0};
	struct strlist subjects = {0};
	if (source_list(source, range, first_parent, paths, &commits, &error) < 0)
		fail_msg("%s", error_text(&error));
	for (size_t i = 0; i < commits.count; i++)
		strlist_add(&subjects, commits.items[i].subject);
	char *joined = strlist_join(&subjects, " ");
	strlist_clear(&subjects);
	return joined;
}

static void assert_listed(struct source *source, const char *range, bool first_parent, const char *path,
			  const char *expected)
{
	cleanup_strlist struct strlist paths = {0};
	if (path != NULL)
		strlist_add(&paths, path);
	cleanup_free char *subjects = listed(source, range, first_parent, path != NULL ? &paths : NULL);
	assert_string_equal(subjects, expected);
}

static char *inside(const char *folder, const char *name)
{
	return path_join(folder, name);
}

static bool has(const char *folder, const char *name)
{
	cleanup_free char *path = inside(folder, name);
	return path_exists(path);
}

static void write_text(const char *folder, const char *name, const char *text)
{
	cleanup_free char *path = inside(folder, name);
	cleanup_error struct error error = {0};
	assert_int_equal(fs_write_file(path, text, strlen(text), &error), 0);
}

static void assert_file(const char *folder, const char *name, const char *expected)
{
	cleanup_free char *path = inside(folder, name);
	cleanup_str struct str contents = {0};
	cleanup_error struct error error = {0};
	if (fs_read_file(path, 0, &contents, &error) < 0)
		fail_msg("%s", error_text(&error));
	assert_string_equal(str_text(&contents), expected);
}

/* ---- fetching ---- */

static void test_clone_mirrors_branches_tags_and_head(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", FILES({"a", "1", 0}));
	git_oid second = grow(f, "second\n", FILES({"a", "2", 0}));
	make_reference(f->repository, "refs/tags/v1", &first);
	make_reference(f->repository, "refs/heads/topic/x", &first);
	cleanup_source struct source *source = fetched(f);
	assert_resolves(source, "HEAD", &second);
	assert_resolves(source, "main", &second);
	assert_resolves(source, "v1", &first);
	assert_resolves(source, "topic/x", &first);
	assert_false(has(f->mirror, "../mirror.new"));
	assert_file(f->mirror, "HEAD", "ref: refs/heads/main\n");
}

static void test_fetch_follows_forced_moved_and_deleted_references(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", FILES({"a", "1", 0}));
	make_reference(f->repository, "refs/tags/moved", &first);
	make_reference(f->repository, "refs/tags/deleted", &first);
	make_reference(f->repository, "refs/heads/gone", &first);
	cleanup_source struct source *source = fetched(f);
	struct made_commit rewritten = {.branch = "refs/heads/main", .message = "rewritten\n"};
	git_oid other = make_commit(f->repository, &rewritten);
	make_reference(f->repository, "refs/tags/moved", &other);
	drop_reference(f->repository, "refs/tags/deleted");
	drop_reference(f->repository, "refs/heads/gone");
	assert_fetched(f);
	assert_resolves(source, "main", &other);
	assert_resolves(source, "moved", &other);
	assert_unresolved(source, "deleted", "no such tag, branch or commit");
	assert_unresolved(source, "gone", "no such tag, branch or commit");
}

static void test_branch_that_becomes_a_folder_and_back(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	make_reference(f->repository, "refs/heads/a", &first);
	cleanup_source struct source *source = fetched(f);
	drop_reference(f->repository, "refs/heads/a");
	make_reference(f->repository, "refs/heads/a/b", &first);
	assert_fetched(f);
	assert_resolves(source, "a/b", &first);
	drop_reference(f->repository, "refs/heads/a/b");
	make_reference(f->repository, "refs/heads/a", &first);
	assert_fetched(f);
	assert_resolves(source, "a", &first);
}

static void test_pull_requests_are_not_mirrored(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	make_reference(f->repository, "refs/pull/1/head", &first);
	cleanup_source struct source *source = fetched(f);
	assert_unresolved(source, "refs/pull/1/head", "no such");
	assert_false(has(f->mirror, "refs/pull"));
}

static void test_head_follows_the_default_branch(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	git_oid second = grow(f, "second\n", NULL);
	make_reference(f->repository, "refs/heads/trunk", &first);
	cleanup_source struct source *source = fetched(f);
	assert_resolves(source, "HEAD", &second);
	assert_int_equal(git_repository_set_head(f->repository, "refs/heads/trunk"), 0);
	assert_fetched(f);
	assert_resolves(source, "HEAD", &first);
}

static void test_detached_head_that_no_branch_reaches(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	struct made_commit apart = {.message = "apart\n", .files = FILES({"z", "z", 0})};
	apart.parents[0] = first;
	git_oid alone = make_commit(f->repository, &apart);
	assert_int_equal(git_repository_set_head_detached(f->repository, &alone), 0);
	cleanup_source struct source *source = fetched(f);
	assert_resolves(source, "HEAD", &alone);
	assert_resolves(source, "HEAD^", &first);
	assert_fetched(f);
	assert_resolves(source, "HEAD", &alone);
}

static void test_empty_repository_and_its_first_commit(void **state)
{
	struct fixture *f = *state;
	cleanup_source struct source *source = fetched(f);
	assert_unresolved(source, "HEAD", "has no commits yet");
	assert_unresolved(source, "v1", "has no commits yet");
	git_oid first = grow(f, "first\n", NULL);
	assert_fetched(f);
	assert_resolves(source, "HEAD", &first);
}

static void count_progress(void *context, const char *phase, size_t done, size_t total)
{
	struct strlist *phases = context;
	assert_true(total == 0 || done <= total);
	if (!strlist_contains(phases, phase))
		strlist_add(phases, phase);
}

static void test_progress_names_the_phases(void **state)
{
	struct fixture *f = *state;
	grow(f, "first\n", FILES({"a", "1", 0}));
	cleanup_strlist struct strlist phases = {0};
	assert_int_equal(source_fetch(f->mirror, f->url, NULL, count_progress, &phases, &f->error), 0);
	assert_true(strlist_contains(&phases, "connecting"));
	assert_true(strlist_contains(&phases, "receiving objects"));
	assert_true(strlist_contains(&phases, "updating branches and tags"));
}

static void test_plain_path_and_trailing_slash(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	cleanup_free char *slashed = text_format("%s//", f->mirror);
	assert_int_equal(source_fetch(slashed, f->upstream, NULL, NULL, NULL, &f->error), 0);
	cleanup_source struct source *source = open_mirror(f);
	assert_resolves(source, "HEAD", &first);
}

static void test_alternates_are_tried_in_order(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	cleanup_free char *wrong_path = inside(f->folder, "wrong.git");
	git_repository *wrong = make_repository(wrong_path);
	git_repository_free(wrong);
	cleanup_strlist struct strlist alternates = {0};
	strlist_add(&alternates, "/nowhere/at/all");
	strlist_add(&alternates, f->url);
	strlist_add(&alternates, wrong_path);
	assert_int_equal(source_fetch(f->mirror, "file:///nowhere.git", &alternates, NULL, NULL, &f->error), 0);
	cleanup_source struct source *source = open_mirror(f);
	assert_resolves(source, "HEAD", &first);
}

static void test_failure_of_all_names_each_and_keeps_the_mirror(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	cleanup_source struct source *source = fetched(f);
	cleanup_strlist struct strlist alternates = {0};
	strlist_add(&alternates, "/nowhere/at/all");
	strlist_add(&alternates, "https://user:hunter2@127.0.0.1:1/x.git");
	assert_int_equal(source_fetch(f->mirror, "file:///nowhere.git", &alternates, NULL, NULL, &f->error), -1);
	assert_contains(error_text(&f->error), "file:///nowhere.git: ");
	assert_contains(error_text(&f->error), "; /nowhere/at/all: there is no such folder");
	assert_contains(error_text(&f->error), "; https://***@127.0.0.1:1/x.git: ");
	assert_lacks(error_text(&f->error), "hunter2");
	assert_resolves(source, "HEAD", &first);
	assert_false(has(f->folder, "sources/mirror.new"));
}

static void test_failed_first_clone_leaves_no_mirror(void **state)
{
	struct fixture *f = *state;
	struct source *source = NULL;
	assert_int_equal(source_fetch(f->mirror, "/nowhere", NULL, NULL, NULL, &f->error), -1);
	assert_int_equal(source_open(&source, f->mirror, &f->error), -1);
	assert_null(source);
	assert_contains(error_text(&f->error), "there is no mirror at");
	git_oid first = grow(f, "first\n", NULL);
	cleanup_source struct source *later = fetched(f);
	assert_resolves(later, "HEAD", &first);
}

static void test_wrong_urls_get_one_clear_line(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *url, *shown, *reason;
	} rows[] = {
		{"", "\"\"", "not the URL of a repository"},
		{"relative/path", "relative/path", "not the URL of a repository"},
		{"./here", "./here", "not the URL of a repository"},
		{"-oProxyCommand=x:y", "-oProxyCommand=x:y", "not the URL of a repository"},
		{"htps://host/x", "htps://host/x", "unknown scheme \"htps\""},
		{"://host/x", "://host/x", "unknown scheme \"\""},
		{"https://", "https://", "there is no host"},
		{"https:///x", "https:///x", "there is no host"},
		{"https://host", "https://host", "there is no path"},
		{"https://host:port/x", "https://host:port/x", "the port in this URL is not a number"},
		{"file://host/x", "file://host/x", "needs an absolute path"},
		{"file:///x\ny", "file:///x?y", "control characters"},
		{"https://u:secret@host", "https://***@host", "there is no path"},
		{"https://u:sec/ret@host/x", "https://***@host/x", "must be written %2F"},
		{"htps://u:secret@host/x", "htps://***@host/x", "unknown scheme \"htps\""},
		{"u:secret@host:x", "***@host:x", "a password is not possible in this form"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(source_fetch(f->mirror, rows[i].url, NULL, NULL, NULL, &f->error), -1);
		cleanup_free char *start = text_format("%s: ", rows[i].shown);
		if (!text_starts_with(error_text(&f->error), start))
			fail_msg("\"%s\" does not start with \"%s\"", error_text(&f->error), start);
		assert_contains(error_text(&f->error), rows[i].reason);
		assert_null(strchr(error_text(&f->error), '\n'));
		assert_lacks(error_text(&f->error), "secret");
	}
}

static void test_passwords_are_masked(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *url, *shown;
	} rows[] = {
		{"https://user:hunter22@127.0.0.1:1/x", "https://***@127.0.0.1:1/x: "},
		{"http://hunter22@127.0.0.1:1/x", "http://***@127.0.0.1:1/x: "},
		{"http://user:hun@hunter22@127.0.0.1:1/x", "http://***@127.0.0.1:1/x: "},
		{"http://user:hunter22'\"@127.0.0.1:1/x", "http://***@127.0.0.1:1/x: "},
		{"ssh://git:hunter22@127.0.0.1:1/x", "ssh://git:***@127.0.0.1:1/x: "},
		{"ssh://git@127.0.0.1:1/x", "ssh://git@127.0.0.1:1/x: "},
		{"git://user:hunter22@127.0.0.1:1/x", "git://***@127.0.0.1:1/x: "},
		{"http://127.0.0.1:1/path@v1", "http://127.0.0.1:1/path@v1: "},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(source_fetch(f->mirror, rows[i].url, NULL, NULL, NULL, &f->error), -1);
		assert_contains(error_text(&f->error), rows[i].shown);
		assert_lacks(error_text(&f->error), "hunter22");
	}
}

static void test_shallow_upstream_is_refused_clearly(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	cleanup_free char *text = oid_string(&first);
	cleanup_free char *line = text_format("%s\n", text);
	write_text(f->upstream, "shallow", line);
	assert_int_equal(source_fetch(f->mirror, f->url, NULL, NULL, NULL, &f->error), -1);
	assert_contains(error_text(&f->error), "is a shallow clone");
}

/* A server that asks everybody for a password and ends after `limit` requests. */
static pid_t start_refusing_server(int *port, int limit)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	*port = ntohs(address.sin_port);
	pid_t child = fork();
	if (child != 0) {
		close(listener);
		return child;
	}
	static const char answer[] = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
				     "Content-Length: 0\r\nConnection: close\r\n\r\n";
	for (int served = 0; served < limit; served++) {
		char request[8192];
		int client = accept(listener, NULL, NULL);
		ssize_t got = read(client, request, sizeof request - 1);
		request[got > 0 ? got : 0] = '\0';
		/* "env-pass" in base64 would be sent only by the environment's credentials: "env-user:env-pass" */
		if (strstr(request, "ZW52LXVzZXI6ZW52LXBhc3M") != NULL)
			_exit(77);
		if (write(client, answer, sizeof answer - 1) < 0)
			_exit(1);
		close(client);
	}
	_exit(78);
}

static void test_credentials_are_offered_once_and_never_in_the_clear(void **state)
{
	struct fixture *f = *state;
	int port = 0;
	int status = 0;
	pid_t server = start_refusing_server(&port, 20);
	setenv("BISECTD_GIT_USERNAME", "env-user", 1);
	setenv("BISECTD_GIT_PASSWORD", "env-pass", 1);
	cleanup_free char *url = text_format("http://user:hunter22@127.0.0.1:%d/x.git", port);
	int result = source_fetch(f->mirror, url, NULL, NULL, NULL, &f->error);
	unsetenv("BISECTD_GIT_USERNAME");
	unsetenv("BISECTD_GIT_PASSWORD");
	assert_int_equal(waitpid(server, &status, WNOHANG), 0); /* it was not asked 20 times */
	kill(server, SIGKILL);
	waitpid(server, &status, 0);
	assert_int_equal(result, -1);
	assert_contains(error_text(&f->error), "over https only");
	assert_lacks(error_text(&f->error), "hunter22");
	assert_lacks(error_text(&f->error), "env-pass");
}

/* ---- killed runs ---- */

/* Enough for a clone to take a while: commits, files and branches. */
static void fill(struct fixture *f, size_t commits)
{
	for (size_t i = 0; i < commits; i++) {
		cleanup_str struct str text = {0};
		for (size_t line = 0; line < 40; line++)
			str_append_format(&text, "line %zu of %zu: %zu\n", line, i, (line * 7919 + i * 104729) % 65537);
		cleanup_free char *name = text_format("folder-%zu/file-%zu", i % 7, i % 31);
		cleanup_free char *branch = text_format("refs/heads/b%zu/x", i);
		grow(f, "more\n", FILES({name, str_text(&text), 0}, {"same", "same", 0}));
		make_reference(f->repository, branch, &f->last);
	}
}

static void assert_same_references(struct fixture *f)
{
	git_repository *mirror = NULL;
	git_strarray theirs = {0};
	git_strarray ours = {0};
	assert_int_equal(git_repository_open_bare(&mirror, f->mirror), 0);
	assert_int_equal(git_reference_list(&theirs, f->repository), 0);
	assert_int_equal(git_reference_list(&ours, mirror), 0);
	assert_int_equal(ours.count, theirs.count);
	for (size_t i = 0; i < theirs.count; i++) {
		git_oid wanted;
		git_oid got;
		assert_int_equal(git_reference_name_to_id(&wanted, f->repository, theirs.strings[i]), 0);
		assert_int_equal(git_reference_name_to_id(&got, mirror, theirs.strings[i]), 0);
		assert_true(git_oid_equal(&wanted, &got));
	}
	git_strarray_dispose(&theirs);
	git_strarray_dispose(&ours);
	git_repository_free(mirror);
}

/* Every commit, tree and blob can be read. */
static void assert_complete(struct source *source, size_t commits)
{
	cleanup_source_commits struct source_commits all = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *range = text_format("main~%zu..main", commits - 1);
	if (source_list(source, range, false, NULL, &all, &error) < 0)
		fail_msg("%s", error_text(&error));
	assert_int_equal(all.count, commits - 1);
	for (size_t i = 0; i < all.count; i += 5) {
		cleanup_str struct str contents = {0};
		if (source_read_file(source, all.items[i].oid, "same", 100, &contents, &error) < 0)
			fail_msg("%s", error_text(&error));
	}
}

static void die_in_phase(void *context, const char *phase, size_t done, size_t total)
{
	(void)done;
	(void)total;
	if (text_equal(phase, context))
		kill(getpid(), SIGKILL);
}

/* Fetch in a child that is killed after so many microseconds or, with `phase`, when it gets there.  False: it was done.
 */
static bool fetch_and_kill(struct fixture *f, useconds_t after, char *phase)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		struct error error = {0};
		_exit(source_fetch(f->mirror, f->url, NULL, phase != NULL ? die_in_phase : NULL, phase, &error) < 0);
	}
	if (phase == NULL) {
		usleep(after);
		kill(child, SIGKILL);
	}
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void assert_mended(struct fixture *f, size_t commits)
{
	cleanup_source struct source *source = fetched(f);
	assert_same_references(f);
	assert_complete(source, commits);
	assert_false(has(f->folder, "sources/mirror.new"));
	assert_false(has(f->folder, "sources/mirror.old"));
	cleanup_strlist struct strlist packs = {0};
	cleanup_free char *folder = inside(f->mirror, "objects/pack");
	assert_int_equal(fs_list_folder(folder, &packs, &f->error), 0);
	for (size_t i = 0; i < packs.count; i++)
		assert_true(text_starts_with(packs.items[i], "pack-"));
}

/* After a kill: what can be opened is whole, and the next fetch makes everything right. */
static void assert_recovers(struct fixture *f, size_t commits, bool existed)
{
	struct source *source = NULL;
	if (source_open(&source, f->mirror, &f->error) == 0) {
		if (!existed)
			assert_complete(source, commits);
	} else {
		assert_false(existed);
	}
	source_free(source);
	assert_mended(f, commits);
}

static void remove_mirror(struct fixture *f)
{
	cleanup_free char *fresh = text_format("%s.new", f->mirror);
	assert_int_equal(fs_remove_tree(f->mirror, &f->error), 0);
	assert_int_equal(fs_remove_tree(fresh, &f->error), 0);
}

static char connecting[] = "connecting";
static char receiving[] = "receiving objects";
static char updating[] = "updating branches and tags";
static char *const fatal_phases[] = {connecting, receiving, updating};

static void test_clone_killed_at_any_moment_is_completed(void **state)
{
	enum { COMMITS = 60, MOMENTS = 24 };
	struct fixture *f = *state;
	fill(f, COMMITS);
	long long start = os_monotonic_ms();
	assert_fetched(f);
	useconds_t whole = (useconds_t)(os_monotonic_ms() - start + 2) * 1000;
	size_t killed = 0;
	for (size_t i = 0; i < COUNT(fatal_phases); i++) {
		remove_mirror(f);
		assert_true(fetch_and_kill(f, 0, fatal_phases[i]));
		assert_recovers(f, COMMITS, false);
	}
	for (useconds_t i = 0; i < MOMENTS; i++) {
		remove_mirror(f);
		killed += fetch_and_kill(f, whole * i / MOMENTS, NULL);
		assert_recovers(f, COMMITS, false);
	}
	assert_true(killed > 0);
}

static void test_clone_killed_again_and_again_is_completed(void **state)
{
	enum { COMMITS = 60 };
	struct fixture *f = *state;
	fill(f, COMMITS);
	for (useconds_t after = 1000; after < 40000; after += 3000)
		fetch_and_kill(f, after, NULL);
	assert_recovers(f, COMMITS, path_exists(f->mirror));
}

static void test_fetch_killed_at_any_moment_keeps_the_mirror(void **state)
{
	enum { FIRST = 20, MORE = 4, MOMENTS = 10 };
	struct fixture *f = *state;
	size_t commits = FIRST;
	fill(f, FIRST);
	assert_fetched(f);
	for (size_t i = 0; i < MOMENTS + COUNT(fatal_phases); i++) {
		fill(f, MORE);
		commits += MORE;
		fetch_and_kill(f, (useconds_t)i * 700, i < COUNT(fatal_phases) ? fatal_phases[i] : NULL);
		assert_recovers(f, commits, true);
	}
}

static void test_stale_locks_and_half_packs_are_removed(void **state)
{
	struct fixture *f = *state;
	grow(f, "first\n", NULL);
	make_reference(f->repository, "refs/heads/deep/branch", &f->last);
	assert_fetched(f);
	static const char *const left[] = {"HEAD.lock",
					   "config.lock",
					   "packed-refs.lock",
					   "refs/heads/main.lock",
					   "refs/heads/deep/branch.lock",
					   "objects/pack/pack_git2_abcdef",
					   "objects/pack/pack-0.idx.lock"};
	for (size_t i = 0; i < COUNT(left); i++)
		write_text(f->mirror, left[i], "");
	git_oid second = grow(f, "second\n", FILES({"a", "2", 0}));
	make_reference(f->repository, "refs/heads/deep/branch", &second);
	cleanup_source struct source *source = fetched(f);
	assert_resolves(source, "main", &second);
	assert_resolves(source, "deep/branch", &second);
	for (size_t i = 0; i < COUNT(left); i++)
		assert_false(has(f->mirror, left[i]));
}

static void test_finished_mirror_that_was_not_moved_is_used_offline(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	assert_fetched(f);
	cleanup_free char *fresh = text_format("%s.new", f->mirror);
	assert_int_equal(rename(f->mirror, fresh), 0);
	assert_int_equal(source_fetch(f->mirror, "/nowhere", NULL, NULL, NULL, &f->error), -1);
	cleanup_source struct source *source = open_mirror(f);
	assert_resolves(source, "HEAD", &first);
}

/* ---- damage ---- */

static void first_pack(struct fixture *f, const char *suffix, char **path)
{
	cleanup_free char *folder = inside(f->mirror, "objects/pack");
	cleanup_strlist struct strlist names = {0};
	assert_int_equal(fs_list_folder(folder, &names, &f->error), 0);
	for (size_t i = 0; i < names.count; i++) {
		if (text_ends_with(names.items[i], suffix)) {
			*path = path_join(folder, names.items[i]);
			chmod(*path, 0644);
			return;
		}
	}
	fail_msg("no %s", suffix);
}

static void cut_pack(struct fixture *f)
{
	cleanup_free char *path = NULL;
	first_pack(f, ".pack", &path);
	assert_int_equal(truncate(path, 20), 0);
}

static void empty_index(struct fixture *f)
{
	cleanup_free char *path = NULL;
	first_pack(f, ".idx", &path);
	assert_int_equal(truncate(path, 0), 0);
}

static void lose_pack(struct fixture *f)
{
	cleanup_free char *path = NULL;
	first_pack(f, ".pack", &path);
	assert_int_equal(unlink(path), 0);
}

static void lose_objects(struct fixture *f)
{
	cleanup_free char *path = inside(f->mirror, "objects");
	assert_int_equal(fs_remove_tree(path, &f->error), 0);
}

static void lose_head(struct fixture *f)
{
	cleanup_free char *path = inside(f->mirror, "HEAD");
	assert_int_equal(unlink(path), 0);
}

static void empty_head(struct fixture *f)
{
	write_text(f->mirror, "HEAD", "");
}

static void empty_branch(struct fixture *f)
{
	write_text(f->mirror, "refs/heads/main", "");
}

static void spoil_config(struct fixture *f)
{
	write_text(f->mirror, "config", "[core\nwhat");
}

static void lose_references(struct fixture *f)
{
	cleanup_free char *path = inside(f->mirror, "refs");
	assert_int_equal(fs_remove_tree(path, &f->error), 0);
}

static void (*const damages[])(struct fixture *) = {cut_pack,   empty_index,  lose_pack,    lose_objects,   lose_head,
						    empty_head, empty_branch, spoil_config, lose_references};

static void test_damaged_mirror_is_made_anew(void **state)
{
	struct fixture *f = *state;
	fill(f, 5);
	for (size_t i = 0; i < COUNT(damages); i++) {
		assert_fetched(f);
		damages[i](f);
		assert_mended(f, 5);
	}
}

static void test_damage_is_named_when_no_url_answers(void **state)
{
	struct fixture *f = *state;
	fill(f, 2);
	assert_fetched(f);
	cut_pack(f);
	assert_int_equal(source_fetch(f->mirror, "/nowhere", NULL, NULL, NULL, &f->error), -1);
	assert_contains(error_text(&f->error), "is damaged (");
	assert_contains(error_text(&f->error), "cannot be made anew: /nowhere: there is no such folder");
	assert_true(has(f->mirror, "bisectd-mirror"));
	assert_mended(f, 2);
}

static void test_damage_met_while_reading_is_mended_by_the_next_fetch(void **state)
{
	struct fixture *f = *state;
	git_oid old = grow(f, "old\n", FILES({"old", "text", 0}));
	assert_fetched(f);
	/* a second pack holds the tips: the first one's loss is not seen by looking at them */
	cleanup_free char *pack = NULL;
	first_pack(f, ".pack", &pack);
	grow(f, "new\n", FILES({"new", "text", 0}));
	assert_fetched(f);
	assert_true(pack != NULL && unlink(pack) == 0);
	cleanup_source struct source *source = open_mirror(f);
	cleanup_source_commit struct source_commit commit = {0};
	assert_int_equal(source_resolve(source, "main^", &commit, &f->error), -1);
	assert_contains(error_text(&f->error), "is damaged and will be made anew by the next fetch");
	cleanup_source struct source *mended = fetched(f);
	assert_resolves(mended, "main^", &old);
}

static void test_what_is_not_ours_is_never_replaced(void **state)
{
	struct fixture *f = *state;
	grow(f, "first\n", NULL);
	assert_int_equal(fs_make_folder(f->mirror, &f->error), 0);
	write_text(f->mirror, "precious", "data");
	assert_int_equal(source_fetch(f->mirror, f->url, NULL, NULL, NULL, &f->error), -1);
	assert_contains(error_text(&f->error), "is not a mirror made by bisectd");
	assert_file(f->mirror, "precious", "data");
	struct source *source = NULL;
	assert_int_equal(source_open(&source, f->mirror, &f->error), -1);
	cleanup_free char *precious = inside(f->mirror, "precious");
	assert_int_equal(source_fetch(precious, f->url, NULL, NULL, NULL, &f->error), -1);
	assert_contains(error_text(&f->error), "is not a folder");
	unlink(precious);
	assert_fetched(f); /* an empty folder is in nobody's way */
}

/* ---- revisions ---- */

static void test_revisions_resolve(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", FILES({"a", "1", 0}));
	struct made_commit side = {.branch = "refs/heads/side", .message = "side\n"};
	side.parents[0] = first;
	git_oid second = make_commit(f->repository, &side);
	git_oid third = grow(f, "third\n", FILES({"a", "3", 0}));
	struct made_commit merge = {.branch = "refs/heads/main", .message = "merge\n"};
	merge.parents[0] = third;
	merge.parents[1] = second;
	git_oid fourth = make_commit(f->repository, &merge);
	git_oid tag = make_tag(f->repository, "v1", &first);
	git_oid tag_of_tag = make_tag(f->repository, "v1-again", &tag);
	make_reference(f->repository, "refs/tags/v1", &tag);
	make_reference(f->repository, "refs/tags/v1-again", &tag_of_tag);
	make_reference(f->repository, "refs/tags/side", &first); /* a tag goes before the branch */
	cleanup_source struct source *source = fetched(f);
	cleanup_free char *full = oid_string(&third);
	cleanup_free char *upper = text_copy(full);
	for (char *at = upper; *at != '\0'; at++)
		*at = (char)(*at >= 'a' && *at <= 'f' ? *at - 32 : *at);
	cleanup_free char *brief = text_copy_range(full, 12);
	cleanup_free char *tag_oid = oid_string(&tag);
	const struct {
		const char *revision;
		const git_oid *oid;
	} rows[] = {
		{"HEAD", &fourth},
		{"main", &fourth},
		{"heads/main", &fourth},
		{"refs/heads/main", &fourth},
		{full, &third},
		{upper, &third},
		{brief, &third},
		{"v1", &first},
		{"tags/v1", &first},
		{"v1^{}", &first},
		{"v1^{commit}", &first},
		{"v1-again", &first},
		{"side", &first},
		{tag_oid, &first},
		{"refs/heads/side", &second},
		{"main^", &third},
		{"main^1", &third},
		{"main^2", &second},
		{"main^0", &fourth},
		{"main~0", &fourth},
		{"main~2", &first},
		{"main^^", &first},
		{"main^2~1", &first},
		{"main~1^1", &first},
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_resolves(source, rows[i].revision, rows[i].oid);
}

static void test_revisions_that_do_not_resolve_say_why(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first\n", NULL);
	git_oid blob = make_blob(f->repository, "x", 1);
	git_oid tag = make_tag(f->repository, "of-blob", &blob);
	make_reference(f->repository, "refs/tags/v0.2.1", &first);
	make_reference(f->repository, "refs/tags/v0.5.0", &first);
	make_reference(f->repository, "refs/tags/blob", &blob);
	make_reference(f->repository, "refs/tags/of-blob", &tag);
	cleanup_source struct source *source = fetched(f);
	static const struct {
		const char *revision, *reason;
	} rows[] = {
		{"", "is not a revision"},
		{"^", "is not a revision"},
		{"v0.5.1", "no such tag, branch or commit (did you mean v0.5.0?)"},
		{"0.5.0", "did you mean v0.5.0?"},
		{"nothing-like-it", "nothing-like-it: no such tag, branch or commit"},
		{"0123456789abcdef0123456789abcdef01234567", "no such tag, branch or commit"},
		{"abc", "too short for a commit"},
		{"HEAD^", "is a first commit, nothing goes before it"},
		{"HEAD~7", "is a first commit, nothing goes before it"},
		{"HEAD^3", "is a first commit"},
		{"HEAD^{tree}", "write a tag, a branch"},
		{"HEAD~99999999999999999999", "write a tag, a branch"},
		{"HEAD^x", "write a tag, a branch"},
		{"HEAD:file", "no such tag"},
		{":/first", "no such tag"},
		{"a b", "no such tag"},
		{"../../HEAD", "no such tag"},
		{"blob", "is not a commit but a blob"},
		{"of-blob", "is a tag of something that is not a commit"},
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_unresolved(source, rows[i].revision, rows[i].reason);
}

static void test_short_oid_of_several_objects(void **state)
{
	enum { DIGITS = 4, TRIES = 4000 };
	struct fixture *f = *state;
	git_oid seen[TRIES];
	git_oid twin = {0};
	size_t count = 0;
	/* make commits until two share four digits: about 300 */
	for (; count < TRIES && git_oid_is_zero(&twin); count++) {
		seen[count] = grow(f, "again\n", NULL);
		for (size_t i = 0; i < count; i++)
			if (git_oid_ncmp(&seen[i], &seen[count], DIGITS) == 0)
				twin = seen[i];
	}
	assert_false(git_oid_is_zero(&twin));
	/* and blobs until one shares four digits with the first commit */
	git_oid blob = {0};
	struct made_file files[] = {{"blob", NULL, 0}, {NULL, NULL, 0}};
	char text[32];
	for (unsigned i = 0; git_oid_ncmp(&blob, &seen[0], DIGITS) != 0; i++) {
		snprintf(text, sizeof text, "%u", i);
		assert_int_equal(git_odb_hash(&blob, text, strlen(text), GIT_OBJECT_BLOB), 0);
	}
	files[0].contents = text;
	grow(f, "the blob\n", files);
	cleanup_source struct source *source = fetched(f);
	cleanup_free char *one = oid_string(&twin);
	cleanup_free char *other = oid_string(&seen[count - 1]);
	cleanup_free char *ambiguous = text_copy_range(one, DIGITS);
	assert_unresolved(source, ambiguous, "is ambiguous: write more digits of ");
	assert_unresolved(source, ambiguous, one);
	assert_unresolved(source, ambiguous, other);
	if (git_oid_ncmp(&twin, &seen[0], DIGITS) != 0) {
		cleanup_free char *first = oid_string(&seen[0]);
		first[DIGITS] = '\0';
		assert_resolves(source, first, &seen[0]);
	}
}

/* ---- what a commit says ---- */

static void describe(struct fixture *f, const char *author, const char *when, const char *message, size_t length,
		     struct source_commit *commit)
{
	git_oid tree = make_tree(f->repository, NULL);
	cleanup_free char *tree_text = oid_string(&tree);
	cleanup_str struct str bytes = {0};
	str_append_format(&bytes, "tree %s\nauthor %s <a@b> %s\ncommitter C <c@d> 1700000000 +0000\n\n", tree_text,
			  author, when);
	str_append_bytes(&bytes, message, length);
	git_oid oid = make_raw_object(f->repository, GIT_OBJECT_COMMIT, str_text(&bytes), bytes.length);
	make_reference(f->repository, "refs/heads/main", &oid);
	cleanup_source struct source *source = fetched(f);
	if (source_resolve(source, "main", commit, &f->error) < 0)
		fail_msg("%s", error_text(&f->error));
}

static void test_dates_are_utc(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *when, *date;
	} rows[] = {
		{"0 +0000", "1970-01-01T00:00:00Z"},          {"1738688591 +0000", "2025-02-04T17:03:11Z"},
		{"1738688591 +0530", "2025-02-04T17:03:11Z"}, {"1738688591 -1145", "2025-02-04T17:03:11Z"},
		{"-1 +0100", "1969-12-31T23:59:59Z"},         {"-86400 -0800", "1969-12-31T00:00:00Z"},
		{"4102444800 +0000", "2100-01-01T00:00:00Z"}, {"9223372036854775807 +0000", "9999-12-31T23:59:59Z"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		cleanup_source_commit struct source_commit commit = {0};
		describe(f, "A", rows[i].when, "x\n", 2, &commit);
		assert_string_equal(commit.date, rows[i].date);
	}
}

static void test_subjects_and_authors_are_clean_utf8(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *message, *subject;
	} rows[] = {
		{"plain\n\nbody\n", "plain"},
		{"", ""},
		{"\n\nafter empty lines\n", "after empty lines"},
		{"dos\r\nbody", "dos"},
		{"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\n", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"},
		{"latin \xfc!\n", "latin \xef\xbf\xbd!"},
		{"cut \xe2\x82\n", "cut \xef\xbf\xbd\xef\xbf\xbd"},
		{"overlong \xc0\xaf\n", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
		{"surrogate \xed\xa0\x80\n", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"too high \xf4\x90\x80\x80\n", "too high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"tab\there \x1b[31mred \x7f \xc2\x9b\n", "tab here \xef\xbf\xbd[31mred \xef\xbf\xbd \xef\xbf\xbd"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		cleanup_source_commit struct source_commit commit = {0};
		describe(f, "Gr\xfc\xdf", "1 +0000", rows[i].message, strlen(rows[i].message), &commit);
		assert_string_equal(commit.subject, rows[i].subject);
		assert_string_equal(commit.author, "Gr\xef\xbf\xbd\xef\xbf\xbd");
	}
	cleanup_source_commit struct source_commit commit = {0};
	describe(f, "", "1 +0000", "before\0after\n", 13, &commit);
	assert_string_equal(commit.subject, "before");
	assert_string_equal(commit.author, "");
}

/* ---- ranges ---- */

/*
 *   a - b - c - m - e      main, the date of every commit before its parent's
 *    \         /
 *     s - - - t            side
 */
static void make_history(struct fixture *f)
{
	static const char *const names[] = {"a", "b", "c", "s", "t", "m", "e"};
	static const int parents[][2] = {{-1, -1}, {0, -1}, {1, -1}, {0, -1}, {3, -1}, {2, 4}, {5, -1}};
	static const struct made_file trees[][6] = {
		{{"src/lib.rs", "1", 0}, {"README", "1", 0}},
		{{"src/lib.rs", "2", 0}, {"README", "1", 0}},
		{{"src/lib.rs", "2", 0}, {"README", "2", 0}},
		{{"src/lib.rs", "1", 0}, {"README", "1", 0}, {"tests/t.rs", "1", 0}},
		{{"src/lib.rs", "1", 0}, {"README", "1", 0}, {"tests/u.rs", "1", 0}},
		{{"src/lib.rs", "2", 0}, {"README", "2", 0}, {"tests/u.rs", "1", 0}},
		{{"src/lib.rs", "2", GIT_FILEMODE_BLOB_EXECUTABLE}, {"README", "2", 0}, {"tests/u.rs", "1", 0}},
	};
	git_oid made[COUNT(names)] = {0};
	for (size_t i = 0; i < COUNT(names); i++) {
		struct made_commit commit = {
			.message = names[i], .files = trees[i], .time = 1700000000 - (git_time_t)i * 86400};
		for (size_t p = 0; p < 2 && parents[i][p] >= 0; p++)
			commit.parents[p] = made[parents[i][p]];
		made[i] = make_commit(f->repository, &commit);
		cleanup_free char *tag = text_format("refs/tags/%s", names[i]);
		make_reference(f->repository, tag, &made[i]);
	}
	make_reference(f->repository, "refs/heads/main", &made[6]);
}

static void test_ranges_list_parents_before_children(void **state)
{
	struct fixture *f = *state;
	make_history(f);
	cleanup_source struct source *source = fetched(f);
	assert_listed(source, "a..e", false, NULL, "b c s t m e");
	assert_listed(source, "a..main", true, NULL, "b c m e");
	assert_listed(source, "b..e", false, NULL, "c s t m e");
	assert_listed(source, "m..e", false, NULL, "e");
	assert_listed(source, "e~1..e", false, NULL, "e");
}

static void test_ranges_whose_start_is_no_ancestor(void **state)
{
	struct fixture *f = *state;
	make_history(f);
	struct made_commit unrelated = {.branch = "refs/heads/unrelated", .message = "u"};
	make_commit(f->repository, &unrelated);
	cleanup_source struct source *source = fetched(f);
	assert_listed(source, "t..c", false, NULL, "b c");
	assert_listed(source, "c..t", false, NULL, "s t");
	assert_listed(source, "t..e", true, NULL, "b c m e");
	assert_listed(source, "unrelated..b", false, NULL, "a b");
	assert_listed(source, "e..a", false, NULL, "");
	assert_listed(source, "e..e", false, NULL, "");
}

static void test_paths_filter_by_the_first_parent(void **state)
{
	struct fixture *f = *state;
	make_history(f);
	struct made_commit unrelated = {.branch = "refs/heads/unrelated", .message = "u"};
	make_commit(f->repository, &unrelated);
	cleanup_source struct source *source = fetched(f);
	static const struct {
		const char *range, *path, *expected;
	} rows[] = {
		{"a..e", "src", "b e"}, /* a change of the execute bit counts */
		{"a..e", "src/lib.rs", "b e"}, {"a..e", "./src//lib.rs/", "b e"},
		{"a..e", "tests", "s t m"},    /* the merge brings it to the main line */
		{"a..e", "tests/t.rs", "s t"}, /* added, then renamed away */
		{"a..e", "tests/u.rs", "t m"}, {"a..e", "README", "c"},
		{"a..e", ".", "b c s t m e"},  {"a..e", "src/lib.rs/below-a-file", ""},
		{"a..e", "no/such", ""},       {"unrelated..b", "README", "a"}, /* the first commit, against nothing */
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_listed(source, rows[i].range, false, rows[i].path, rows[i].expected);
	assert_listed(source, "a..e", true, "tests", "m");
	cleanup_strlist struct strlist paths = {0};
	strlist_add(&paths, "README");
	strlist_add(&paths, "tests/t.rs");
	cleanup_free char *both = listed(source, "a..e", false, &paths);
	assert_string_equal(both, "c s t");
}

static void test_what_is_not_a_range_says_so(void **state)
{
	struct fixture *f = *state;
	make_history(f);
	cleanup_source struct source *source = fetched(f);
	static const struct {
		const char *range, *path, *reason;
	} rows[] = {
		{"a", NULL, "write A..B"},           {"..e", NULL, "write A..B"},
		{"a..", NULL, "write A..B"},         {"a...e", NULL, "write A..B"},
		{"a..b..e", NULL, "write A..B"},     {"", NULL, "write A..B"},
		{"a..zzzz", NULL, "zzzz: no such"},  {"yyyy..e", NULL, "listing yyyy..e: yyyy: no such"},
		{"a..e", "/src", "without a slash"}, {"a..e", "src/../x", "\"..\" is not possible"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		cleanup_source_commits struct source_commits commits = {0};
		cleanup_strlist struct strlist paths = {0};
		if (rows[i].path != NULL)
			strlist_add(&paths, rows[i].path);
		assert_int_equal(source_list(source, rows[i].range, false, &paths, &commits, &f->error), -1);
		assert_contains(error_text(&f->error), rows[i].reason);
		assert_int_equal(commits.count, 0);
	}
}

static void test_long_histories_are_walked_quickly(void **state)
{
	enum { COMMITS = 2000 };
	struct fixture *f = *state;
	const git_oid trees[2] = {make_tree(f->repository, FILES({"a/b/c", "1", 0}, {"x", "1", 0})),
				  make_tree(f->repository, FILES({"a/b/c", "2", 0}, {"x", "1", 0}))};
	struct made_commit commit = {.message = "x"};
	for (size_t i = 0; i < COMMITS; i++) {
		commit.tree = trees[i % 500 == 0];
		commit.parents[0] = make_commit(f->repository, &commit);
	}
	make_reference(f->repository, "refs/heads/main", &commit.parents[0]);
	cleanup_source struct source *source = fetched(f);
	cleanup_strlist struct strlist paths = {0};
	cleanup_source_commits struct source_commits commits = {0};
	strlist_add(&paths, "a/b/c");
	long long start = os_monotonic_ms();
	assert_int_equal(source_list(source, "main~1999..main", false, &paths, &commits, &f->error), 0);
	assert_int_equal(commits.count, 7);
	/* A tenth of a second as a rule; the limit only tells linear from quadratic, under valgrind too. */
	assert_true(os_monotonic_ms() - start < 10000);
}

/* ---- exports ---- */

static char *export_text(struct fixture *f, const git_oid *oid, const char *name, int expected)
{
	cleanup_source struct source *source = fetched(f);
	cleanup_free char *text = oid_string(oid);
	char *folder = inside(f->folder, name);
	int result = source_export(source, text, folder, &f->error);
	if (result < 0 && expected == 0)
		fail_msg("%s", error_text(&f->error));
	assert_int_equal(result, expected);
	return folder;
}

static void assert_no_leftovers(struct fixture *f, const char *folder)
{
	cleanup_strlist struct strlist names = {0};
	assert_int_equal(fs_list_folder(folder, &names, &f->error), 0);
	for (size_t i = 0; i < names.count; i++)
		assert_null(strstr(names.items[i], ".new"));
}

static void test_export_writes_the_tree(void **state)
{
	struct fixture *f = *state;
	struct timespec before;
	git_oid oid = grow(f, "x",
			   FILES({"a/b/c.txt", "c\r\n", 0}, {"run.sh", "#!/bin/sh\n", GIT_FILEMODE_BLOB_EXECUTABLE},
				 {"empty", "", 0}, {".gitattributes", "* text=auto eol=lf\n", 0}));
	clock_gettime(CLOCK_REALTIME, &before);
	cleanup_free char *folder = export_text(f, &oid, "exports/x", 0);
	struct stat status;
	cleanup_free char *program = inside(folder, "run.sh");
	cleanup_free char *plain = inside(folder, "a/b/c.txt");
	assert_file(folder, "a/b/c.txt", "c\r\n");
	assert_file(folder, "empty", "");
	assert_int_equal(stat(program, &status), 0);
	assert_true((status.st_mode & S_IXUSR) != 0);
	assert_true(status.st_mtime >= before.tv_sec - 1);
	assert_int_equal(stat(plain, &status), 0);
	assert_true((status.st_mode & S_IXUSR) == 0);
	cleanup_free char *parent = inside(f->folder, "exports");
	assert_no_leftovers(f, parent);
}

static void test_export_leaves_what_exists(void **state)
{
	struct fixture *f = *state;
	git_oid oid = grow(f, "x", FILES({"a", "1", 0}));
	cleanup_free char *folder = export_text(f, &oid, "x", 0);
	write_text(folder, "a", "changed");
	cleanup_free char *again = export_text(f, &oid, "x", 0);
	assert_string_equal(again, folder);
	assert_file(folder, "a", "changed");
}

static void test_export_of_what_is_not_there(void **state)
{
	struct fixture *f = *state;
	grow(f, "x", NULL);
	cleanup_source struct source *source = fetched(f);
	cleanup_free char *folder = inside(f->folder, "x");
	static const char *const oids[] = {"0123456789abcdef0123456789abcdef01234567", "main", "", "0123"};
	for (size_t i = 0; i < COUNT(oids); i++) {
		assert_int_equal(source_export(source, oids[i], folder, &f->error), -1);
		assert_false(path_exists(folder));
	}
}

static git_oid commit_raw_tree(struct fixture *f, const struct raw_entry *entries, size_t count)
{
	struct made_commit commit = {.branch = "refs/heads/main", .message = "hostile"};
	commit.tree = make_raw_tree(f->repository, entries, count);
	return make_commit(f->repository, &commit);
}

static void assert_nothing_escaped(struct fixture *f)
{
	cleanup_strlist struct strlist names = {0};
	assert_int_equal(fs_list_folder(f->folder, &names, &f->error), 0);
	for (size_t i = 0; i < names.count; i++)
		if (!text_equal(names.items[i], "upstream.git") && !text_equal(names.items[i], "sources") &&
		    !text_equal(names.items[i], "exports"))
			fail_msg("%s was written outside", names.items[i]);
	assert_false(path_exists("/tmp/bisectd-escaped"));
}

static void test_hostile_names_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {
		"..", ".", ".git", ".GIT", ".giT", "../escaped", "/tmp/bisectd-escaped", "a/../../escaped", "a/b"};
	git_oid blob = make_blob(f->repository, "evil", 4);
	struct raw_entry below = {"100644", "escaped", blob};
	git_oid folder_oid = make_raw_tree(f->repository, &below, 1);
	for (size_t i = 0; i < COUNT(names); i++) {
		const struct raw_entry kinds[] = {
			{"100644", names[i], blob}, {"40000", names[i], folder_oid}, {"120000", names[i], blob}};
		for (size_t kind = 0; kind < COUNT(kinds); kind++) {
			git_oid oid = commit_raw_tree(f, &kinds[kind], 1);
			cleanup_free char *target = export_text(f, &oid, "exports/deep/x", -1);
			assert_contains(error_text(&f->error), "refused: its tree has an entry named");
			assert_false(path_exists(target));
			cleanup_free char *parent = path_parent(target);
			assert_no_leftovers(f, parent);
			assert_nothing_escaped(f);
		}
	}
}

static void test_hostile_name_deep_in_the_tree_is_refused(void **state)
{
	struct fixture *f = *state;
	git_oid blob = make_blob(f->repository, "evil", 4);
	const struct raw_entry evil = {"100644", "..", blob};
	const struct raw_entry middle = {"40000", "b", make_raw_tree(f->repository, &evil, 1)};
	const struct raw_entry top[] = {{"100644", "a", blob},
					{"40000", "c", make_raw_tree(f->repository, &middle, 1)}};
	git_oid oid = commit_raw_tree(f, top, COUNT(top));
	cleanup_free char *target = export_text(f, &oid, "exports/x", -1);
	assert_contains(error_text(&f->error), "named \"..\" in \"c/b\"");
	assert_false(path_exists(target));
}

static void test_link_followed_by_an_entry_below_it(void **state)
{
	struct fixture *f = *state;
	git_oid blob = make_blob(f->repository, "evil", 4);
	git_oid outside = make_blob(f->repository, "../..", 5);
	git_oid within = make_blob(f->repository, "real", 4);
	struct raw_entry below = {"100644", "escaped", blob};
	git_oid tree = make_raw_tree(f->repository, &below, 1);
	const struct raw_entry trees[][3] = {
		{{"120000", "d", outside}, {"40000", "d", tree}, {"40000", "real", tree}},
		{{"120000", "d", within}, {"40000", "d", tree}, {"40000", "real", tree}},
		{{"40000", "d", tree}, {"120000", "d", outside}, {"40000", "real", tree}},
		{{"100644", "d", blob}, {"40000", "d", tree}, {"40000", "real", tree}},
		{{"40000", "d", tree}, {"40000", "d", tree}, {"40000", "real", tree}},
		{{"120000", "d", within}, {"100644", "d", blob}, {"40000", "real", tree}},
	};
	for (size_t i = 0; i < COUNT(trees); i++) {
		git_oid oid = commit_raw_tree(f, trees[i], 3);
		cleanup_free char *target = export_text(f, &oid, "exports/x", -1);
		assert_contains(error_text(&f->error), "exporting ");
		assert_false(path_exists(target));
		assert_nothing_escaped(f);
	}
}

static void test_links_are_links_only_where_they_stay_inside(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *path, *target;
		bool is_link;
	} rows[] = {
		{"in/same", "file", true},
		{"in/up", "../top", true},
		{"in/up-down", "../in/file", true},
		{"in/real-and-back", "folder/../file", true},
		{"in/dangling", "not-there/yet", true},
		{"in/dot", "./file", true},
		{"to-root", "in/..", true},
		{"in/link-to-root", "..", true},
		{"in/out", "../../etc/passwd", false},
		{"out", "..", false},
		{"absolute", "/etc/passwd", false},
		{"in/long-way-out", "folder/../../../x", false},
		{"in/through-link", "link-to-root/../x", false},    /* lexically in/x, really beside the tree */
		{"in/through-nothing", "not-there/../file", false}, /* nobody knows what it will be */
		{"in/through-file", "file/../file", false},
		{"sneaky", "in/link-to-root/../../x", false},
		{"empty", "", false},
	};
	struct made_file files[COUNT(rows) + 4] = {{"in/file", "1", 0}, {"in/folder/x", "1", 0}, {"top", "1", 0}};
	for (size_t i = 0; i < COUNT(rows); i++)
		files[3 + i] = (struct made_file){rows[i].path, rows[i].target, GIT_FILEMODE_LINK};
	git_oid oid = grow(f, "links", files);
	cleanup_free char *folder = export_text(f, &oid, "exports/x", 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		cleanup_free char *path = inside(folder, rows[i].path);
		struct stat status;
		assert_int_equal(lstat(path, &status), 0);
		if (S_ISLNK(status.st_mode) != rows[i].is_link)
			fail_msg("%s -> %s: %s", rows[i].path, rows[i].target, rows[i].is_link ? "no link" : "a link");
		if (rows[i].is_link) {
			char target[256] = "";
			assert_true(readlink(path, target, sizeof target - 1) > 0);
			assert_string_equal(target, rows[i].target);
		} else {
			assert_file(folder, rows[i].path, rows[i].target);
		}
	}
}

static void test_link_with_a_nul_or_without_end_is_a_file(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *endless = memory_new(70000, 1);
	memset(endless, 'x', 69999);
	const struct raw_entry entries[] = {{"120000", "endless", make_blob(f->repository, endless, 69999)},
					    {"120000", "nul", make_blob(f->repository, "a\0b", 3)}};
	git_oid oid = commit_raw_tree(f, entries, COUNT(entries));
	cleanup_free char *folder = export_text(f, &oid, "exports/x", 0);
	assert_file(folder, "endless", endless);
	assert_file(folder, "nul", "a");
}

static void test_submodule_becomes_an_empty_folder(void **state)
{
	struct fixture *f = *state;
	git_oid first = grow(f, "first", NULL);
	const struct raw_entry entry = {"160000", "vendored", first};
	git_oid oid = commit_raw_tree(f, &entry, 1);
	cleanup_free char *folder = export_text(f, &oid, "exports/x", 0);
	cleanup_free char *submodule = inside(folder, "vendored");
	cleanup_strlist struct strlist names = {0};
	assert_int_equal(fs_list_folder(submodule, &names, &f->error), 0);
	assert_int_equal(names.count, 0);
}

static void test_trees_without_end_are_refused(void **state)
{
	struct fixture *f = *state;
	git_oid blob = make_blob(f->repository, "x", 1);
	struct raw_entry entry = {"100644", "f", blob};
	for (int i = 0; i < 400; i++)
		entry = (struct raw_entry){"40000", "d", make_raw_tree(f->repository, &entry, 1)};
	git_oid oid = commit_raw_tree(f, &entry, 1);
	cleanup_free char *folder = export_text(f, &oid, "exports/x", -1);
	assert_contains(error_text(&f->error), "nested more than");
	assert_false(path_exists(folder));
}

static void test_large_blob_is_exported(void **state)
{
	enum { SIZE = 40 << 20 };
	struct fixture *f = *state;
	cleanup_free char *bytes = memory_new(SIZE, 1);
	for (size_t i = 0; i < SIZE; i += 4096)
		bytes[i] = (char)(i >> 12);
	const struct raw_entry entry = {"100644", "large", make_blob(f->repository, bytes, SIZE)};
	git_oid oid = commit_raw_tree(f, &entry, 1);
	cleanup_free char *folder = export_text(f, &oid, "exports/x", 0);
	cleanup_free char *path = inside(folder, "large");
	cleanup_str struct str contents = {0};
	assert_int_equal(fs_read_file(path, 0, &contents, &f->error), 0);
	assert_int_equal(contents.length, SIZE);
	assert_memory_equal(contents.data, bytes, SIZE);
}

static void test_export_sweeps_what_a_killed_one_left(void **state)
{
	struct fixture *f = *state;
	git_oid oid = grow(f, "x", FILES({"a", "1", 0}));
	pid_t gone = fork();
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	cleanup_free char *dead = text_format("%s/exports/x.new-%ld-0", f->folder, (long)gone);
	cleanup_free char *alive = text_format("%s/exports/x.new-%ld-0", f->folder, (long)getppid());
	assert_int_equal(fs_make_folder(dead, &f->error), 0);
	assert_int_equal(fs_make_folder(alive, &f->error), 0);
	cleanup_free char *folder = export_text(f, &oid, "exports/x", 0);
	assert_file(folder, "a", "1");
	assert_false(path_exists(dead));
	assert_true(path_exists(alive));
}

static void test_two_processes_export_the_same_commit(void **state)
{
	enum { PROCESSES = 4, ROUNDS = 10 };
	struct fixture *f = *state;
	fill(f, 31);
	cleanup_free char *oid = oid_string(&f->last);
	assert_fetched(f);
	for (int round = 0; round < ROUNDS; round++) {
		cleanup_free char *folder = text_format("%s/exports/%d", f->folder, round);
		pid_t children[PROCESSES];
		for (int i = 0; i < PROCESSES; i++) {
			if ((children[i] = fork()) == 0) {
				struct source *source = NULL;
				struct error error = {0};
				_exit(source_open(&source, f->mirror, &error) < 0 ||
				      source_export(source, oid, folder, &error) < 0);
			}
		}
		for (int i = 0; i < PROCESSES; i++) {
			int status = 0;
			waitpid(children[i], &status, 0);
			assert_int_equal(status, 0);
		}
		assert_file(folder, "same", "same");
	}
	cleanup_free char *parent = inside(f->folder, "exports");
	assert_no_leftovers(f, parent);
}

/* ---- one file ---- */

static void test_read_file(void **state)
{
	struct fixture *f = *state;
	const struct raw_entry below[] = {{"100644", "binary", make_blob(f->repository, "a\0b", 3)}};
	const struct raw_entry entries[] = {{"120000", "link", make_blob(f->repository, "x", 1)},
					    {"40000", "src", make_raw_tree(f->repository, below, 1)}};
	git_oid oid = commit_raw_tree(f, entries, COUNT(entries));
	cleanup_source struct source *source = fetched(f);
	cleanup_free char *commit = oid_string(&oid);
	cleanup_str struct str contents = {0};
	str_append(&contents, "replaced");
	assert_int_equal(source_read_file(source, commit, "./src//binary", 3, &contents, &f->error), 0);
	assert_int_equal(contents.length, 3);
	assert_memory_equal(contents.data, "a\0b", 3);
	static const struct {
		const char *path, *reason;
	} rows[] = {
		{"src", "is not a file but a folder"},
		{"link", "is not a file but a symbolic link"},
		{"src/no", "no such file"},
		{"src/binary/x", "no such file"},
		{"", "no such file"},
		{".", "no such file"},
		{"../x", "\"..\" is not possible"},
		{"/src/binary", "without a slash"},
		{"src/binary", "is larger than 2 bytes"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(source_read_file(source, commit, rows[i].path, 2, &contents, &f->error), -1);
		assert_contains(error_text(&f->error), rows[i].reason);
		assert_int_equal(contents.length, 0);
	}
	assert_int_equal(source_read_file(source, "main", "link", 2, &contents, &f->error), -1);
	assert_contains(error_text(&f->error), "is not the full oid of a commit");
}

static void test_freeing_nothing_is_fine(void **state)
{
	(void)state;
	struct source_commit commit = {0};
	struct source_commits commits = {0};
	source_free(NULL);
	source_commit_clear(&commit);
	source_commits_clear(&commits);
}

static int start_library(void **state)
{
	(void)state;
	struct error error = {0};
	return source_library_start(&error);
}

static int stop_library(void **state)
{
	(void)state;
	source_library_stop();
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(clone_mirrors_branches_tags_and_head),
		TEST(fetch_follows_forced_moved_and_deleted_references),
		TEST(branch_that_becomes_a_folder_and_back),
		TEST(pull_requests_are_not_mirrored),
		TEST(head_follows_the_default_branch),
		TEST(detached_head_that_no_branch_reaches),
		TEST(empty_repository_and_its_first_commit),
		TEST(progress_names_the_phases),
		TEST(plain_path_and_trailing_slash),
		TEST(alternates_are_tried_in_order),
		TEST(failure_of_all_names_each_and_keeps_the_mirror),
		TEST(failed_first_clone_leaves_no_mirror),
		TEST(wrong_urls_get_one_clear_line),
		TEST(passwords_are_masked),
		TEST(shallow_upstream_is_refused_clearly),
		TEST(credentials_are_offered_once_and_never_in_the_clear),
		TEST(clone_killed_at_any_moment_is_completed),
		TEST(clone_killed_again_and_again_is_completed),
		TEST(fetch_killed_at_any_moment_keeps_the_mirror),
		TEST(stale_locks_and_half_packs_are_removed),
		TEST(finished_mirror_that_was_not_moved_is_used_offline),
		TEST(damaged_mirror_is_made_anew),
		TEST(damage_is_named_when_no_url_answers),
		TEST(damage_met_while_reading_is_mended_by_the_next_fetch),
		TEST(what_is_not_ours_is_never_replaced),
		TEST(revisions_resolve),
		TEST(revisions_that_do_not_resolve_say_why),
		TEST(short_oid_of_several_objects),
		TEST(dates_are_utc),
		TEST(subjects_and_authors_are_clean_utf8),
		TEST(ranges_list_parents_before_children),
		TEST(ranges_whose_start_is_no_ancestor),
		TEST(paths_filter_by_the_first_parent),
		TEST(what_is_not_a_range_says_so),
		TEST(long_histories_are_walked_quickly),
		TEST(export_writes_the_tree),
		TEST(export_leaves_what_exists),
		TEST(export_of_what_is_not_there),
		TEST(hostile_names_are_refused),
		TEST(hostile_name_deep_in_the_tree_is_refused),
		TEST(link_followed_by_an_entry_below_it),
		TEST(links_are_links_only_where_they_stay_inside),
		TEST(link_with_a_nul_or_without_end_is_a_file),
		TEST(submodule_becomes_an_empty_folder),
		TEST(trees_without_end_are_refused),
		TEST(large_blob_is_exported),
		TEST(export_sweeps_what_a_killed_one_left),
		TEST(two_processes_export_the_same_commit),
		TEST(read_file),
		TEST(freeing_nothing_is_fine),
	};
	return cmocka_run_group_tests(tests, start_library, stop_library);
}
