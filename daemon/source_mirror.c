/*
 * Mirrors: made, fetched into and mended.  See source_fetch in source.h.
 *
 * A mirror is made in `<folder>.new`, gets its marker as its last file and is then renamed to `<folder>`: whatever
 * stands at
 * `<folder>` was finished once.  A damaged mirror stays where it is until its replacement is finished; for an instant
 * it is
 * `<folder>.old`.  The daemon's lock on the state folder makes us the only writer, so every lock file and half-written
 * pack that is found was left by a run that was killed, and is removed.
 *
 * The only file that meets URLs, and so the only one that must keep passwords out of messages.  URLs are never stored
 * in a mirror: the remote is anonymous and FETCH_HEAD is not written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"
#include "os.h"
#include "source_internal.h"

enum {
	PROGRESS_INTERVAL_MS = 100,
	PASSWORD_MINIMUM = 4, /* shorter ones are not searched for outside of URLs: every word would hold them */
};

static const char marker_text[] = "A mirror made by bisectd: branches and tags, format 1.\n";

/* ---- no password in a message ---- */

/* Append `text` with each occurrence of `from` (not empty) replaced. */
static char *replace_all(const char *text, const char *from, const char *to)
{
	struct str result = {0};
	for (const char *found; (found = strstr(text, from)) != NULL; text = found + strlen(from)) {
		str_append_bytes(&result, text, (size_t)(found - text));
		str_append(&result, to);
	}
	str_append(&result, text);
	return str_steal(&result);
}

/* The end of user:password in `rest` (what follows "://", `length` bytes long): its "@", or NULL where there is none.
 */
static const char *userinfo_end(const char *rest, size_t length)
{
	size_t authority = 0;
	while (authority < length && strchr("/?#", rest[authority]) == NULL)
		authority++;
	for (size_t i = authority; i > 0; i--)
		if (rest[i - 1] == '@')
			return rest + i - 1;
	/* "https://user:pass/word@host": a slash that should have been written %2F.  A port would be digits. */
	const char *colon = memchr(rest, ':', authority);
	if (colon == NULL || (size_t)(colon - rest) + 1 + strspn(colon + 1, "0123456789") >= authority)
		return NULL;
	for (size_t i = length; i > authority; i--)
		if (rest[i - 1] == '@')
			return rest + i - 1;
	return NULL;
}

/* A token may stand alone before the "@" of https, so all of it goes; the user of ssh is no secret. */
static void append_masked_userinfo(struct str *masked, const char *userinfo, size_t length, bool keeps_user)
{
	const char *colon = memchr(userinfo, ':', length);
	if (!keeps_user) {
		str_append(masked, "***");
	} else if (colon != NULL) {
		str_append_bytes(masked, userinfo, (size_t)(colon - userinfo));
		str_append(masked, ":***");
	} else {
		str_append_bytes(masked, userinfo, length);
	}
}

/* `text` with every URL's user and password masked; an URL ends at one of `ends`. */
static char *mask_userinfos(const char *text, const char *ends)
{
	struct str masked = {0};
	for (const char *found; (found = strstr(text, "://")) != NULL;) {
		const char *rest = found + strlen("://");
		size_t length = strcspn(rest, ends);
		const char *at = userinfo_end(rest, length);
		bool ssh = found - text >= 3 && strncmp(found - 3, "ssh", 3) == 0;
		str_append_bytes(&masked, text, (size_t)(rest - text));
		if (at != NULL)
			append_masked_userinfo(&masked, rest, (size_t)(at - rest), ssh);
		text = at != NULL ? at : rest;
	}
	str_append(&masked, text);
	return str_steal(&masked);
}

/* A URL as it may be shown: on one line, without its password.  Owned by the caller. */
static char *mask_url(const char *url)
{
	char *masked = mask_userinfos(url, "");
	/* user:password@host:path, which nobody means but somebody writes */
	const char *at = strstr(url, "://") == NULL && url[0] != '/' ? strrchr(url, '@') : NULL;
	if (at != NULL && memchr(url, ':', (size_t)(at - url)) != NULL) {
		free(masked);
		masked = text_format("***%s", at);
	}
	for (char *byte = masked; *byte != '\0'; byte++)
		if ((unsigned char)*byte < ' ' || *byte == 0x7f)
			*byte = '?';
	return masked;
}

/* libgit2's reasons repeat the URL, or parts of it. */
static char *mask_text(const char *text, const char *url)
{
	cleanup_free char *shown = mask_url(url);
	cleanup_free char *without_url = url[0] != '\0' ? replace_all(text, url, shown) : text_copy(text);
	char *masked = mask_userinfos(without_url, " \t'\"<>");
	const char *rest = strstr(url, "://");
	rest = rest != NULL ? rest + strlen("://") : url;
	const char *at = userinfo_end(rest, strlen(rest));
	const char *colon = at != NULL ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
	if (colon != NULL && at - colon > PASSWORD_MINIMUM) {
		cleanup_free char *password = text_copy_range(colon + 1, (size_t)(at - colon - 1));
		char *without_password = replace_all(masked, password, "***");
		free(masked);
		masked = without_password;
	}
	return masked;
}

/* ---- which URLs there are ---- */

static int check_scheme(const char *url, const char *rest, struct error *error)
{
	static const char *const schemes[] = {"https", "http", "ssh", "git", "git+ssh", "ssh+git", "file"};
	size_t length = (size_t)(rest - url) - strlen("://");
	bool known = false;
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		known = known || (strlen(schemes[i]) == length && strncmp(schemes[i], url, length) == 0);
	if (!known)
		return error_set(error,
				 "unknown scheme \"%.*s\": write https://, ssh://, user@host:path, file:///path or an "
				 "absolute path",
				 (int)length, url);
	if (text_starts_with(url, "file:"))
		return rest[0] == '/' ? 0 : error_set(error, "a file URL needs an absolute path: write file:///path");
	size_t authority = strcspn(rest, "/?#");
	const char *at = userinfo_end(rest, strlen(rest));
	if (at != NULL && at > rest + authority)
		return error_set(error, "a slash in the password must be written %%2F");
	const char *host = at != NULL ? at + 1 : rest;
	size_t host_length = authority - (size_t)(host - rest);
	const char *port = host[0] == '[' ? memchr(host, ']', host_length) : memchr(host, ':', host_length);
	if (port != NULL && *port == ']')
		port = port[1] == ':' ? port + 1 : NULL;
	if (host_length == 0 || host[0] == ':' || host[0] == '-')
		return error_set(error, "there is no host in this URL");
	if (port != NULL && strspn(port + 1, "0123456789") + 1 != (size_t)(host + host_length - port))
		return error_set(error, "the port in this URL is not a number");
	return rest[authority] != '/' ? error_set(error, "there is no path in this URL") : 0;
}

static int check_url(const char *url, struct error *error)
{
	for (const char *at = url; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return error_set(error, "control characters are not possible in a URL");
	const char *scheme_end = strstr(url, "://");
	if (url[0] == '/')
		return 0;
	if (scheme_end != NULL && strcspn(url, "/@") > (size_t)(scheme_end - url))
		return check_scheme(url, scheme_end + strlen("://"), error);
	size_t colon = strcspn(url, ":/");
	if (url[0] == '-' || url[0] == '\0' || url[colon] != ':' || colon == 0 || url[colon + 1] == '\0')
		return error_set(
			error,
			"not the URL of a repository: write https://, ssh://, user@host:path, file:///path or an "
			"absolute path");
	if (strchr(url + colon, '@') != NULL && memchr(url, '@', colon) == NULL)
		return error_set(error, "a password is not possible in this form: write ssh:// or user@host:path");
	return 0;
}

/*
 * What libgit2 1.5 says badly of a repository on this machine: "unsupported URL protocol" where there is none, and that
 * some object is missing where it is shallow.
 */
static int check_local(const char *url, struct error *error)
{
	const char *path = text_starts_with(url, "file://") ? url + strlen("file://") : url;
	cleanup_git(repository) git_repository *repository = NULL;
	if (url[0] == '/' && !path_is_folder(url))
		return error_set(error, "there is no such folder");
	if (path[0] == '/' && git_repository_open_ext(&repository, path, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0 &&
	    git_repository_is_shallow(repository) == 1)
		return error_set(error, "is a shallow clone: its history is cut off, and bisecting needs all of it");
	return 0;
}

/* ---- one transfer ---- */

struct transfer {
	source_progress *progress;
	void *context;
	const char *phase;
	long long reported_at; /* os_monotonic_ms */
	bool tried_username;   /* every credential is offered once: libgit2 asks again and again */
	bool tried_agent;
	bool tried_password;
	bool refused;
	struct error refusal; /* why there is no credential (left) to offer */
};

/* Not more often than people can see; but every phase's first and last step. */
static void report_progress(struct transfer *transfer, const char *phase, size_t done, size_t total)
{
	long long now = os_monotonic_ms();
	bool last = total > 0 && done == total;
	if (transfer->progress == NULL ||
	    (phase == transfer->phase && !last && now - transfer->reported_at < PROGRESS_INTERVAL_MS))
		return;
	transfer->phase = phase;
	transfer->reported_at = now;
	transfer->progress(transfer->context, phase, done, total);
}

static const char phase_connecting[] = "connecting";
static const char phase_receiving[] = "receiving objects";
static const char phase_resolving[] = "resolving deltas";
static const char phase_updating[] = "updating branches and tags";

static int on_transfer(const git_indexer_progress *stats, void *context)
{
	struct transfer *transfer = context;
	if (stats->total_objects > 0 && stats->received_objects == stats->total_objects && stats->total_deltas > 0)
		report_progress(transfer, phase_resolving, stats->indexed_deltas, stats->total_deltas);
	else
		report_progress(transfer, phase_receiving, stats->received_objects, stats->total_objects);
	return 0;
}

static int refuse(struct transfer *transfer, const char *reason)
{
	transfer->refused = true;
	error_set(&transfer->refusal, "%s", reason);
	git_error_set_str(GIT_ERROR_CALLBACK, reason);
	return GIT_EAUTH;
}

static int on_password(git_credential **credential, const char *url, struct transfer *transfer)
{
	const char *user = getenv("BISECTD_GIT_USERNAME");
	const char *password = getenv("BISECTD_GIT_PASSWORD");
	if (!text_starts_with(url, "https://"))
		return refuse(transfer, "it asks for a password, which is sent over https only");
	if (user == NULL || password == NULL)
		return refuse(transfer,
			      "it asks for a user and a password: set BISECTD_GIT_USERNAME and BISECTD_GIT_PASSWORD "
			      "(a server may also ask when there is no such repository)");
	if (transfer->tried_password)
		return refuse(transfer, "it does not accept BISECTD_GIT_USERNAME and BISECTD_GIT_PASSWORD");
	transfer->tried_password = true;
	return git_credential_userpass_plaintext_new(credential, user, password);
}

static int on_credential(git_credential **credential, const char *url, const char *user, unsigned allowed,
			 void *context)
{
	struct transfer *transfer = context;
	if ((allowed & GIT_CREDENTIAL_USERNAME) != 0 && !transfer->tried_username) {
		transfer->tried_username = true;
		return git_credential_username_new(credential, user != NULL ? user : "git");
	}
	if ((allowed & GIT_CREDENTIAL_SSH_KEY) != 0) {
		if (transfer->tried_agent)
			return refuse(transfer, "it does not accept the keys of the SSH agent");
		if (getenv("SSH_AUTH_SOCK") == NULL)
			return refuse(transfer,
				      "it asks for an SSH key, and no SSH agent is running (SSH_AUTH_SOCK is not set)");
		transfer->tried_agent = true;
		return git_credential_ssh_key_from_agent(credential, user != NULL ? user : "git");
	}
	if ((allowed & GIT_CREDENTIAL_USERPASS_PLAINTEXT) != 0)
		return on_password(credential, url, transfer);
	return refuse(transfer, "it asks for credentials of a kind that bisectd does not have");
}

static void set_options(git_fetch_options *options, struct transfer *transfer)
{
	options->callbacks.credentials = on_credential;
	options->callbacks.transfer_progress = on_transfer;
	options->callbacks.payload = transfer;
	options->proxy_opts.type = GIT_PROXY_AUTO;
	options->download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE; /* a refspec of ours fetches them all */
	options->update_fetchhead = 0;
	/* Our password belongs to the host that was asked for. */
	options->follow_redirects =
		getenv("BISECTD_GIT_PASSWORD") != NULL ? GIT_REMOTE_REDIRECT_NONE : GIT_REMOTE_REDIRECT_INITIAL;
}

/* Make HEAD what it is at the remote: its default branch, or where it is detached its commit. */
static int set_head(git_repository *repository, git_remote *remote, struct error *error)
{
	const git_remote_head **heads = NULL;
	size_t count = 0;
	git_buf branch = {0};
	cleanup_git(reference) git_reference *head = NULL;
	cleanup_git(odb) git_odb *odb = NULL;
	int result = git_remote_default_branch(&branch, remote);
	if (result == 0 && text_starts_with(branch.ptr, "refs/heads/"))
		result = git_reference_symbolic_create(&head, repository, "HEAD", branch.ptr, 1, NULL);
	else if (git_remote_ls(&heads, &count, remote) == 0 && count > 0 && text_equal(heads[0]->name, "HEAD") &&
		 git_repository_odb(&odb, repository) == 0 && git_odb_exists(odb, &heads[0]->oid))
		result = git_reference_create(&head, repository, "HEAD", &heads[0]->oid, 1, NULL);
	else
		result = 0; /* an empty repository */
	git_buf_dispose(&branch);
	return result < 0 ? source_error(error, "setting HEAD") : 0;
}

/* Whether the remote's HEAD is a commit of its own, which no branch need reach. */
static bool has_detached_head(git_remote *remote)
{
	const git_remote_head **heads = NULL;
	size_t count = 0;
	git_buf branch = {0};
	bool named = git_remote_default_branch(&branch, remote) == 0 && text_starts_with(branch.ptr, "refs/heads/");
	git_buf_dispose(&branch);
	return !named && git_remote_ls(&heads, &count, remote) == 0 && count > 0 && text_equal(heads[0]->name, "HEAD");
}

static int transfer_all(git_repository *repository, git_remote *remote, struct transfer *transfer, struct error *error)
{
	char branches[] = "+refs/heads/*:refs/heads/*";
	char tags[] = "+refs/tags/*:refs/tags/*";
	char head[] = "HEAD"; /* without a target: downloaded only, set_head sets it */
	char *refspecs[] = {branches, tags, head};
	git_strarray wanted = {.strings = refspecs, .count = 2};
	git_fetch_options options;
	git_remote_connect_options connection;
	git_fetch_options_init(&options, GIT_FETCH_OPTIONS_VERSION);
	git_remote_connect_options_init(&connection, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
	set_options(&options, transfer);
	connection.callbacks = options.callbacks;
	connection.proxy_opts = options.proxy_opts;
	connection.follow_redirects = options.follow_redirects;
	report_progress(transfer, phase_connecting, 0, 0);
	if (git_remote_connect_ext(remote, GIT_DIRECTION_FETCH, &connection) < 0)
		return source_error(error, "cannot connect");
	if (has_detached_head(remote))
		wanted.count = 3;
	if (git_remote_download(remote, &wanted, &options) < 0)
		return source_error(error, "cannot fetch");
	report_progress(transfer, phase_updating, 0, 0);
	/* Pruned first: a deleted branch `a` is in the way of a new branch `a/b`. */
	if (git_remote_prune(remote, &options.callbacks) < 0)
		return source_error(error, "cannot remove deleted branches and tags");
	if (git_remote_update_tips(remote, &options.callbacks, 0, GIT_REMOTE_DOWNLOAD_TAGS_NONE, NULL) < 0)
		return source_error(error, "cannot update branches and tags");
	return set_head(repository, remote, error);
}

static int transfer_from(git_repository *repository, const char *url, struct transfer *transfer, struct error *error)
{
	cleanup_git(remote) git_remote *remote = NULL;
	git_remote_create_options options;
	git_remote_create_options_init(&options, GIT_REMOTE_CREATE_OPTIONS_VERSION);
	/*
	 * Without url.*.insteadOf: what is fetched is what the investigation says, `alternates` are there for the rest,
	 * and libgit2 1.5 leaks 20 KiB for every entry of the configuration that it compares.
	 */
	options.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF | GIT_REMOTE_CREATE_SKIP_DEFAULT_FETCHSPEC;
	options.repository = repository;
	if (git_remote_create_with_opts(&remote, url, &options) < 0)
		return source_error(error, "cannot use this URL");
	int result = transfer_all(repository, remote, transfer, error);
	if (result < 0 && transfer->refused)
		error_set(error, "%s", error_text(&transfer->refusal));
	git_remote_disconnect(remote);
	return result;
}

static int fetch_url(git_repository *repository, const char *url, struct transfer *transfer, struct error *error)
{
	if (check_url(url, error) < 0 || check_local(url, error) < 0)
		return -1;
	transfer->tried_username = transfer->tried_agent = transfer->tried_password = transfer->refused = false;
	if (transfer_from(repository, url, transfer, error) == 0)
		return 0;
	cleanup_free char *masked = mask_text(error_text(error), url);
	return error_set(error, "%s", masked);
}

/* The URL, then each alternate.  -1 with every URL and its reason when none can be used. */
static int fetch_any(git_repository *repository, const char *url, const struct strlist *alternates,
		     struct transfer *transfer, struct error *error)
{
	size_t others = alternates != NULL ? alternates->count : 0;
	cleanup_str struct str reasons = {0};
	for (size_t i = 0; i <= others; i++) {
		const char *tried = i == 0 ? url : alternates->items[i - 1];
		cleanup_error struct error reason = {0};
		if (fetch_url(repository, tried, transfer, &reason) == 0)
			return 0;
		cleanup_free char *shown = mask_url(tried);
		str_append_format(&reasons, "%s%s: %s", i > 0 ? "; " : "", shown[0] != '\0' ? shown : "\"\"",
				  error_text(&reason));
	}
	return error_set(error, "%s", str_text(&reasons));
}

/* ---- what a killed run left ---- */

static int sweep_locks(const char *folder, bool deep, struct error *error)
{
	cleanup_strlist struct strlist names = {0};
	if (fs_list_folder(folder, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *path = path_join(folder, names.items[i]);
		struct stat status;
		if (lstat(path, &status) < 0)
			return error_set_errno(error, "cannot read %s", path);
		if (S_ISDIR(status.st_mode)) {
			if (deep && sweep_locks(path, deep, error) < 0)
				return -1;
		} else if (text_ends_with(path, ".lock") && fs_remove_tree(path, error) < 0) {
			return -1;
		}
	}
	return 0;
}

static int sweep_objects(const char *folder, struct error *error)
{
	cleanup_free char *packs = path_join(folder, "objects/pack");
	cleanup_strlist struct strlist names = {0};
	if (!path_exists(packs))
		return 0;
	if (fs_list_folder(packs, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		bool finished = text_starts_with(names.items[i], "pack-") && !text_ends_with(names.items[i], ".lock");
		cleanup_free char *path = path_join(packs, names.items[i]);
		if (!finished && fs_remove_tree(path, error) < 0)
			return -1;
	}
	return 0;
}

/* Remove lock files and half-written packs: see the top of this file. */
static int sweep(const char *folder, struct error *error)
{
	cleanup_free char *references = path_join(folder, "refs");
	if (sweep_locks(folder, false, error) < 0 || sweep_objects(folder, error) < 0)
		return -1;
	return path_is_folder(references) ? sweep_locks(references, true, error) : 0;
}

/* ---- the state of a mirror ---- */

/* libgit2's iterator passes over branches that it cannot parse, such as the empty files that a power cut leaves. */
static int check_loose_references(git_repository *repository, const char *folder, const char *prefix,
				  struct error *error)
{
	cleanup_strlist struct strlist names = {0};
	if (fs_list_folder(folder, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		cleanup_git(reference) git_reference *reference = NULL;
		cleanup_free char *path = path_join(folder, names.items[i]);
		cleanup_free char *name = path_join(prefix, names.items[i]);
		if (path_is_folder(path)) {
			if (check_loose_references(repository, path, name, error) < 0)
				return -1;
		} else if (git_reference_lookup(&reference, repository, name) < 0) {
			return source_error(error, "%s", name);
		}
	}
	return 0;
}

/* Whether what the branches and tags name can be read: that finds lost packs, cut packs and empty files after a crash.
 */
static int check_references(git_repository *repository, struct error *error)
{
	cleanup_git(reference_iterator) git_reference_iterator *iterator = NULL;
	cleanup_git(reference) git_reference *head = NULL;
	cleanup_free char *loose = path_join(git_repository_path(repository), "refs");
	if (git_reference_lookup(&head, repository, "HEAD") < 0)
		return source_error(error, "HEAD");
	if (check_loose_references(repository, loose, "refs", error) < 0)
		return -1;
	if (git_reference_iterator_new(&iterator, repository) < 0)
		return source_error(error, "cannot list branches and tags");
	for (;;) {
		cleanup_git(reference) git_reference *reference = NULL;
		cleanup_git(object) git_object *object = NULL;
		cleanup_git(object) git_object *tree = NULL;
		int result = git_reference_next(&reference, iterator);
		if (result == GIT_ITEROVER)
			return 0;
		if (result < 0)
			return source_error(error, "cannot list branches and tags");
		const git_oid *target = git_reference_target(reference);
		if (target == NULL)
			continue;
		if (git_object_lookup(&object, repository, target, GIT_OBJECT_ANY) < 0)
			return source_error(error, "%s", git_reference_name(reference));
		if (git_object_type(object) == GIT_OBJECT_COMMIT && git_object_peel(&tree, object, GIT_OBJECT_TREE) < 0)
			return source_error(error, "%s", git_reference_name(reference));
	}
}

/* Opened and found whole, or -1 with what is wrong with it. */
static int open_whole(git_repository **repository, const char *folder, struct error *error)
{
	cleanup_git(repository) git_repository *opened = NULL;
	cleanup_git(config) git_config *config = NULL;
	cleanup_free char *mark = path_join(folder, SOURCE_DAMAGE_FILE);
	*repository = NULL;
	if (path_exists(mark))
		return error_set(error, "reading it failed before (see %s)", mark);
	if (git_repository_open_bare(&opened, folder) < 0)
		return source_error(error, "cannot open it");
	if (git_repository_config_snapshot(&config, opened) < 0)
		return source_error(error, "cannot read its configuration");
	if (check_references(opened, error) < 0)
		return -1;
	*repository = opened;
	opened = NULL;
	return 0;
}

static bool has_marker(const char *folder)
{
	cleanup_free char *marker = path_join(folder, SOURCE_MARKER_FILE);
	return path_exists(marker);
}

/* A folder to make a mirror in: what an interrupted run left there is gone on with where it is whole. */
static int open_fresh(git_repository **repository, const char *fresh, struct error *error)
{
	cleanup_error struct error ignored = {0};
	if (path_is_folder(fresh) && sweep(fresh, &ignored) == 0 && open_whole(repository, fresh, &ignored) == 0)
		return 0;
	git_repository_init_options options;
	git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	options.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR | GIT_REPOSITORY_INIT_NO_REINIT;
	options.initial_head = "main";
	cleanup_free char *parent = path_parent(fresh);
	if (fs_remove_tree(fresh, error) < 0 || fs_make_folder(parent, error) < 0)
		return -1;
	return git_repository_init_ext(repository, fresh, &options) < 0 ? source_error(error, "cannot make %s", fresh)
									: 0;
}

/* Put a finished mirror in its place. */
static int install(const char *fresh, const char *folder, const char *old, struct error *error)
{
	cleanup_free char *marker = path_join(fresh, SOURCE_MARKER_FILE);
	if (fs_write_file(marker, marker_text, strlen(marker_text), error) < 0)
		return -1;
	if (path_exists(folder) && rename(folder, old) < 0)
		return error_set_errno(error, "cannot move %s away", folder);
	if (rename(fresh, folder) < 0)
		return error_set_errno(error, "cannot move %s to %s", fresh, folder);
	return fs_remove_tree(old, error);
}

/* Whether `folder` may be replaced: it is ours, or there is nothing in it. */
static int check_ours(const char *folder, struct error *error)
{
	cleanup_strlist struct strlist names = {0};
	if (!path_exists(folder) || has_marker(folder))
		return 0;
	if (!path_is_folder(folder))
		return error_set(error, "%s is in the way: it is not a folder", folder);
	if (fs_list_folder(folder, &names, error) < 0)
		return -1;
	return names.count > 0 ? error_set(error, "%s is in the way: it is not a mirror made by bisectd", folder) : 0;
}

static int make_anew(const char *folder, const char *fresh, const char *old, const char *url,
		     const struct strlist *alternates, struct transfer *transfer, struct error *error)
{
	cleanup_git(repository) git_repository *repository = NULL;
	if (open_fresh(&repository, fresh, error) < 0 || fetch_any(repository, url, alternates, transfer, error) < 0)
		return -1;
	return install(fresh, folder, old, error);
}

static int fetch_mirror(const char *folder, const char *url, const struct strlist *alternates,
			struct transfer *transfer, struct error *error)
{
	cleanup_free char *fresh = text_format("%s.new", folder);
	cleanup_free char *old = text_format("%s.old", folder);
	cleanup_git(repository) git_repository *repository = NULL;
	cleanup_error struct error damage = {0};
	if (check_ours(folder, error) < 0)
		return -1;
	if (!path_exists(folder) && has_marker(fresh) && rename(fresh, folder) < 0)
		return error_set_errno(error, "cannot move %s to %s", fresh, folder);
	if (fs_remove_tree(old, error) < 0)
		return -1;
	if (!has_marker(folder))
		return make_anew(folder, fresh, old, url, alternates, transfer, error);
	if (sweep(folder, &damage) < 0 || open_whole(&repository, folder, &damage) < 0) {
		if (make_anew(folder, fresh, old, url, alternates, transfer, error) < 0)
			return error_wrap(error, "the mirror %s is damaged (%s) and cannot be made anew", folder,
					  error_text(&damage));
		return 0;
	}
	return fs_remove_tree(fresh, error) < 0 ? -1 : fetch_any(repository, url, alternates, transfer, error);
}

int source_fetch(const char *folder, const char *url, const struct strlist *alternates, source_progress *progress,
		 void *context, struct error *error)
{
	struct transfer transfer = {.progress = progress, .context = context};
	cleanup_free char *plain = text_copy(folder);
	for (size_t length = strlen(plain); length > 1 && plain[length - 1] == '/'; length--)
		plain[length - 1] = '\0';
	int result = fetch_mirror(plain, url, alternates, &transfer, error);
	error_clear(&transfer.refusal);
	return result;
}
