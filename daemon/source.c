/*
 * See source.h.  Here: the library itself, opening a mirror, from a revision to a commit, reading one file.
 *
 * Revisions are parsed here and not by git_revparse_single: that accepts searches through messages and reflogs that
 * mean something else tomorrow, and answers with errors that do not say what was looked for.
 */
#include "source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs.h"
#include "source_internal.h"

enum {
	OBJECT_CACHE_BYTES = 16 << 20, /* libgit2's default is 256 MiB; walking needs little */
	SHORT_OID_MINIMUM = 4,         /* git's */
	PARENT_LIMIT = 1 << 20,        /* in REV~N */
	SUGGESTION_DISTANCE = 2,
	SUGGESTED_CANDIDATES = 5,
};

/* ---- the library ---- */

int source_library_start(struct error *error)
{
	if (git_libgit2_init() < 0)
		return source_error(error, "cannot start libgit2");
	/*
	 * libgit2 refuses repositories of other users, because a git program would run what their configuration names.
	 * Nothing is run here, a file:// source often belongs to somebody else, and the mirrors may have been made by
	 * the user that the service had before.
	 */
	if (git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0) < 0 ||
	    git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, (ssize_t)OBJECT_CACHE_BYTES) < 0) {
		source_error(error, "cannot set up libgit2");
		git_libgit2_shutdown();
		return -1;
	}
	return 0;
}

void source_library_stop(void)
{
	git_libgit2_shutdown();
}

char *source_library_text(void)
{
	const git_error *last = git_error_last();
	char *text = text_copy(last != NULL && last->message != NULL ? last->message : "no reason given");
	for (char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = ' ';
	return text;
}

static int append_reason(struct error *error, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

static int append_reason(struct error *error, const char *format, va_list arguments)
{
	cleanup_free char *reason = source_library_text();
	cleanup_str struct str attempt = {0};
	str_append_format_list(&attempt, format, arguments);
	return error_set(error, "%s: %s", str_text(&attempt), reason);
}

int source_error(struct error *error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int result = append_reason(error, format, arguments);
	va_end(arguments);
	return result;
}

int source_object_error(const struct source *source, struct error *error, const char *format, ...)
{
	const git_error *last = git_error_last();
	int kind = last != NULL ? last->klass : GIT_ERROR_NONE;
	va_list arguments;
	va_start(arguments, format);
	append_reason(error, format, arguments);
	va_end(arguments);
	/* Not for GIT_ERROR_OS and GIT_ERROR_NOMEMORY: too many open files today is no damage. */
	if (kind == GIT_ERROR_ODB || kind == GIT_ERROR_ZLIB || kind == GIT_ERROR_OBJECT || kind == GIT_ERROR_TREE ||
	    kind == GIT_ERROR_SHA) {
		cleanup_free char *mark = path_join(source->folder, SOURCE_DAMAGE_FILE);
		cleanup_error struct error ignored = {0};
		fs_write_file(mark, error_text(error), strlen(error_text(error)), &ignored);
		return error_wrap(error, "the mirror %s is damaged and will be made anew by the next fetch",
				  source->folder);
	}
	return -1;
}

/* ---- opening ---- */

int source_open(struct source **source, const char *folder, struct error *error)
{
	*source = NULL;
	cleanup_free char *marker = path_join(folder, SOURCE_MARKER_FILE);
	if (!path_exists(folder))
		return error_set(error, "there is no mirror at %s yet", folder);
	if (!path_exists(marker))
		return error_set(error, "%s is not a mirror that bisectd finished", folder);
	git_repository *repository = NULL;
	if (git_repository_open_bare(&repository, folder) < 0)
		return source_error(error, "cannot open the mirror %s", folder);
	*source = memory_new(1, sizeof **source);
	**source = (struct source){.repository = repository, .folder = text_copy(folder)};
	return 0;
}

void source_free(struct source *source)
{
	if (source == NULL)
		return;
	git_repository_free(source->repository);
	free(source->folder);
	free(source);
}

void source_free_pointer(struct source **source)
{
	source_free(*source);
	*source = NULL;
}

void source_commit_clear(struct source_commit *commit)
{
	free(commit->oid);
	free(commit->subject);
	free(commit->author);
	free(commit->date);
	*commit = (struct source_commit){0};
}

void source_commits_clear(struct source_commits *commits)
{
	for (size_t i = 0; i < commits->count; i++)
		source_commit_clear(&commits->items[i]);
	free(commits->items);
	*commits = (struct source_commits){0};
}

/* ---- describing a commit ---- */

/* Length of the well-formed UTF-8 sequence at the start of `bytes` (RFC 3629: no surrogates, nothing overlong), or 0.
 */
static size_t utf8_sequence(const unsigned char *bytes, size_t length)
{
	unsigned char first = bytes[0];
	size_t wanted = first < 0x80                    ? 1
			: first >= 0xc2 && first < 0xe0 ? 2
			: (first & 0xf0) == 0xe0        ? 3
			: first >= 0xf0 && first < 0xf5 ? 4
							: 0;
	if (wanted == 0 || wanted > length)
		return 0;
	for (size_t i = 1; i < wanted; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] >= 0xa0) ||
	    (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] >= 0x90))
		return 0;
	return wanted;
}

/* C0 controls, DEL and the C1 controls: what a terminal would obey. */
static bool is_control(const unsigned char *bytes, size_t sequence)
{
	return (sequence == 1 && (bytes[0] < ' ' || bytes[0] == 0x7f)) ||
	       (sequence == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0);
}

/* Valid UTF-8 without control characters, owned by the caller: tabs become spaces, what cannot stay U+FFFD. */
static char *clean_text(const char *text, size_t length)
{
	struct str clean = {0};
	const unsigned char *bytes = (const unsigned char *)text;
	for (size_t i = 0; i < length;) {
		size_t sequence = utf8_sequence(bytes + i, length - i);
		if (bytes[i] == '\t')
			str_append(&clean, " ");
		else if (sequence == 0 || is_control(bytes + i, sequence))
			str_append(&clean, "\xef\xbf\xbd");
		else
			str_append_bytes(&clean, text + i, sequence);
		i += sequence > 0 ? sequence : 1;
	}
	return str_steal(&clean);
}

/* ISO 8601, UTC.  Years that four digits cannot hold are clamped: a forged date must not break what sorts or parses it.
 */
static char *date_text(git_time_t seconds)
{
	const git_time_t first = -62135596800; /* 0001-01-01T00:00:00Z */
	const git_time_t last = 253402300799;  /* 9999-12-31T23:59:59Z */
	time_t clamped = (time_t)(seconds < first ? first : seconds > last ? last : seconds);
	struct tm parts = {0};
	gmtime_r(&clamped, &parts);
	return text_format("%04d-%02d-%02dT%02d:%02d:%02dZ", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
			   parts.tm_hour, parts.tm_min, parts.tm_sec);
}

static char *oid_text(const git_oid *oid)
{
	char text[GIT_OID_HEXSZ + 1];
	git_oid_tostr(text, sizeof text, oid);
	return text_copy(text);
}

void source_describe(const git_commit *commit, struct source_commit *described)
{
	const char *message = git_commit_message(commit); /* leading newlines are skipped */
	if (message == NULL)
		message = "";
	size_t length = strcspn(message, "\r\n");
	const git_signature *author = git_commit_author(commit);
	const char *name = author != NULL && author->name != NULL ? author->name : "";
	*described = (struct source_commit){
		.oid = oid_text(git_commit_id(commit)),
		.subject = clean_text(message, length),
		.author = clean_text(name, strlen(name)),
		.date = date_text(author != NULL ? author->when.time : git_commit_time(commit)),
	};
}

/* ---- from a revision to a commit ---- */

static bool is_hexadecimal(const char *text, size_t length)
{
	return strspn(text, "0123456789abcdefABCDEF") == length;
}

/* From what a tag, a branch or an oid names to the commit that it stands for. */
static int peel_to_commit(const struct source *source, const git_oid *oid, const char *name, git_commit **commit,
			  struct error *error)
{
	cleanup_git(object) git_object *object = NULL;
	cleanup_git(object) git_object *peeled = NULL;
	if (git_object_lookup(&object, source->repository, oid, GIT_OBJECT_ANY) < 0)
		return source_object_error(source, error, "%s", name);
	if (git_object_type(object) != GIT_OBJECT_COMMIT && git_object_type(object) != GIT_OBJECT_TAG)
		return error_set(error, "%s is not a commit but a %s", name,
				 git_object_type2string(git_object_type(object)));
	int result = git_object_peel(&peeled, object, GIT_OBJECT_COMMIT);
	if (result == GIT_EPEEL || result == GIT_EINVALIDSPEC)
		return error_set(error, "%s is a tag of something that is not a commit", name);
	if (result < 0)
		return source_object_error(source, error, "%s", name);
	*commit = (git_commit *)peeled;
	peeled = NULL;
	return 0;
}

/* 1 and the oid when there is such a reference, 0 when not, -1 error. */
static int find_reference(const struct source *source, const char *prefix, const char *name, git_oid *oid,
			  struct error *error)
{
	cleanup_free char *full = text_format("%s%s", prefix, name);
	int result = git_reference_name_to_id(oid, source->repository, full);
	if (result == GIT_ENOTFOUND || result == GIT_EINVALIDSPEC)
		return 0;
	if (result < 0)
		return source_error(error, "%s", name);
	return 1;
}

/* git's order: a tag goes before a branch of the same name. */
static int find_named(const struct source *source, const char *name, git_oid *oid, struct error *error)
{
	static const char *const prefixes[] = {"refs/tags/", "refs/heads/", "refs/"};
	if (text_equal(name, "HEAD") || text_starts_with(name, "refs/"))
		return find_reference(source, "", name, oid, error);
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		int found = find_reference(source, prefixes[i], name, oid, error);
		if (found != 0)
			return found;
	}
	return 0;
}

struct candidates {
	git_odb *odb;
	const char *prefix;
	git_oid only;
	size_t count;
	struct strlist texts;
};

static int collect_candidate(const git_oid *oid, void *context)
{
	struct candidates *candidates = context;
	cleanup_free char *text = oid_text(oid);
	size_t length = 0;
	git_object_t type = GIT_OBJECT_INVALID;
	if (strncasecmp(text, candidates->prefix, strlen(candidates->prefix)) != 0 ||
	    strlist_contains(&candidates->texts, text) ||
	    git_odb_read_header(&length, &type, candidates->odb, oid) < 0 || type != GIT_OBJECT_COMMIT)
		return 0;
	candidates->count++;
	git_oid_cpy(&candidates->only, oid);
	strlist_add(&candidates->texts, text);
	return 0;
}

/* A short oid that several objects share: right where only one of them is a commit, else say which they are. */
static int choose_commit(const struct source *source, const char *prefix, git_oid *oid, struct error *error)
{
	cleanup_git(odb) git_odb *odb = NULL;
	if (git_repository_odb(&odb, source->repository) < 0)
		return source_error(error, "%s", prefix);
	struct candidates candidates = {.odb = odb, .prefix = prefix};
	cleanup_strlist struct strlist shown = {0};
	if (git_odb_foreach(odb, collect_candidate, &candidates) < 0) {
		strlist_clear(&candidates.texts);
		return source_error(error, "%s", prefix);
	}
	git_oid_cpy(oid, &candidates.only);
	strlist_sort(&candidates.texts);
	for (size_t i = 0; i < candidates.texts.count && i < SUGGESTED_CANDIDATES; i++)
		strlist_add(&shown, candidates.texts.items[i]);
	bool more = candidates.texts.count > shown.count;
	strlist_clear(&candidates.texts);
	if (candidates.count == 1)
		return 1;
	if (candidates.count == 0)
		return 0;
	cleanup_free char *list = strlist_join(&shown, ", ");
	return error_set(error, "%s is ambiguous: write more digits of %s%s", prefix, list, more ? ", ..." : "");
}

static int find_short_oid(const struct source *source, const char *prefix, git_oid *oid, struct error *error)
{
	cleanup_git(odb) git_odb *odb = NULL;
	git_oid start;
	size_t length = strlen(prefix);
	if (git_repository_odb(&odb, source->repository) < 0 || git_oid_fromstrn(&start, prefix, length) < 0)
		return source_error(error, "%s", prefix);
	int result = git_odb_exists_prefix(oid, odb, &start, length);
	if (result == GIT_EAMBIGUOUS)
		return choose_commit(source, prefix, oid, error);
	if (result == GIT_ENOTFOUND)
		return 0;
	return result < 0 ? source_error(error, "%s", prefix) : 1;
}

struct suggestion {
	const char *name;
	size_t distance;
	size_t common; /* bytes at the start: of names that are equally near, v0.5.0 is nearer to v0.5.1 than v0.2.1 */
	char *nearest;
};

static int consider_reference(const char *reference, void *context)
{
	struct suggestion *suggestion = context;
	const char *name = text_starts_with(reference, "refs/tags/")    ? reference + strlen("refs/tags/")
			   : text_starts_with(reference, "refs/heads/") ? reference + strlen("refs/heads/")
									: NULL;
	if (name == NULL)
		return 0;
	size_t distance = text_distance(name, suggestion->name);
	size_t common = 0;
	while (name[common] != '\0' && name[common] == suggestion->name[common])
		common++;
	if (distance < suggestion->distance || (distance == suggestion->distance && common > suggestion->common)) {
		suggestion->distance = distance;
		suggestion->common = common;
		free(suggestion->nearest);
		suggestion->nearest = text_copy(name);
	}
	return 0;
}

/* Not git_repository_is_empty, which wants HEAD to be the default branch of the user's configuration as well. */
static bool has_no_references(git_repository *repository)
{
	cleanup_git(reference_iterator) git_reference_iterator *iterator = NULL;
	const char *name = NULL;
	return git_reference_iterator_new(&iterator, repository) == 0 &&
	       git_reference_next_name(&name, iterator) == GIT_ITEROVER;
}

static int no_such_revision(const struct source *source, const char *name, struct error *error)
{
	if (has_no_references(source->repository))
		return error_set(error, "%s: the repository has no commits yet", name);
	if (text_equal(name, "HEAD"))
		return error_set(error, "HEAD: the repository's default branch has no commits or is not known");
	if (is_hexadecimal(name, strlen(name)) && strlen(name) < SHORT_OID_MINIMUM)
		return error_set(error, "%s: no such tag or branch, and too short for a commit (%d digits at least)",
				 name, SHORT_OID_MINIMUM);
	struct suggestion suggestion = {.name = name, .distance = SUGGESTION_DISTANCE + 1};
	if (strlen(name) > SUGGESTION_DISTANCE && strlen(name) < 256)
		git_reference_foreach_name(source->repository, consider_reference, &suggestion);
	cleanup_free char *nearest = suggestion.nearest;
	return error_set(error, "%s: no such tag, branch or commit%s%s%s", name,
			 nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
			 nearest != NULL ? "?)" : "");
}

/* The part of a revision before any ^ or ~. */
static int find_base(const struct source *source, const char *name, git_commit **commit, struct error *error)
{
	git_oid oid;
	size_t length = strlen(name);
	bool hexadecimal = length > 0 && is_hexadecimal(name, length);
	int found = 0;
	if (hexadecimal && length == GIT_OID_HEXSZ)
		found = find_short_oid(source, name, &oid, error);
	if (found == 0)
		found = find_named(source, name, &oid, error);
	if (found == 0 && hexadecimal && length >= SHORT_OID_MINIMUM && length < GIT_OID_HEXSZ)
		found = find_short_oid(source, name, &oid, error);
	if (found < 0)
		return -1;
	return found > 0 ? peel_to_commit(source, &oid, name, commit, error) : no_such_revision(source, name, error);
}

static int replace_by_parent(const struct source *source, const char *revision, unsigned number, git_commit **commit,
			     struct error *error)
{
	unsigned count = git_commit_parentcount(*commit);
	if (number > count) {
		cleanup_free char *oid = oid_text(git_commit_id(*commit));
		if (count == 0)
			return error_set(error, "%s: %s is a first commit, nothing goes before it", revision, oid);
		return error_set(error, "%s: %s has only %u parent%s", revision, oid, count, count == 1 ? "" : "s");
	}
	git_commit *parent = NULL;
	if (git_commit_parent(&parent, *commit, number - 1) < 0)
		return source_object_error(source, error, "%s", revision);
	git_commit_free(*commit);
	*commit = parent;
	return 0;
}

/* The number after ^ or ~ (1 where there is none); `*at` moves behind it.  -1 where it is too large or something else
 * follows. */
static long parse_count(const char **at)
{
	long count = **at < '0' || **at > '9';
	for (; **at >= '0' && **at <= '9'; (*at)++)
		if ((count = count * 10 + (**at - '0')) > PARENT_LIMIT)
			return -1;
	return **at == '\0' || **at == '^' || **at == '~' ? count : -1;
}

static int apply_suffix(const struct source *source, const char *revision, const char **at, git_commit **commit,
			struct error *error)
{
	static const char *const peels[] = {"{commit}", "{}"}; /* we always peel */
	char kind = *(*at)++;
	for (size_t i = 0; kind == '^' && i < sizeof peels / sizeof *peels; i++) {
		if (text_starts_with(*at, peels[i])) {
			*at += strlen(peels[i]);
			return 0;
		}
	}
	long count = kind == '^' || kind == '~' ? parse_count(at) : -1;
	if (count < 0)
		return error_set(error,
				 "%s: write a tag, a branch, a commit, HEAD, or one of these with ^ or ~N behind it",
				 revision);
	if (kind == '^')
		return count == 0 ? 0 : replace_by_parent(source, revision, (unsigned)count, commit, error);
	for (; count > 0; count--)
		if (replace_by_parent(source, revision, 1, commit, error) < 0)
			return -1;
	return 0;
}

int source_find_revision(const struct source *source, const char *revision, git_commit **commit, struct error *error)
{
	*commit = NULL;
	size_t length = strcspn(revision, "^~");
	if (length == 0)
		return error_set(error, "\"%s\" is not a revision", revision);
	cleanup_free char *name = text_copy_range(revision, length);
	cleanup_git(commit) git_commit *found = NULL;
	if (find_base(source, name, &found, error) < 0)
		return -1;
	for (const char *at = revision + length; *at != '\0';)
		if (apply_suffix(source, revision, &at, &found, error) < 0)
			return -1;
	*commit = found;
	found = NULL;
	return 0;
}

int source_resolve(struct source *source, const char *revision, struct source_commit *commit, struct error *error)
{
	cleanup_git(commit) git_commit *found = NULL;
	if (source_find_revision(source, revision, &found, error) < 0)
		return -1;
	source_commit_clear(commit);
	source_describe(found, commit);
	return 0;
}

int source_find_commit(const struct source *source, const char *oid, git_commit **commit, struct error *error)
{
	git_oid binary;
	*commit = NULL;
	if (strlen(oid) != GIT_OID_HEXSZ || !is_hexadecimal(oid, GIT_OID_HEXSZ) || git_oid_fromstr(&binary, oid) < 0)
		return error_set(error, "\"%s\" is not the full oid of a commit", oid);
	int result = git_commit_lookup(commit, source->repository, &binary);
	if (result == GIT_ENOTFOUND)
		return error_set(error, "%s: no such commit", oid);
	return result < 0 ? source_object_error(source, error, "%s", oid) : 0;
}

/* ---- one file ---- */

int source_clean_path(const char *path, char **clean, struct error *error)
{
	cleanup_str struct str joined = {0};
	*clean = NULL;
	if (path[0] == '/')
		return error_set(error, "%s: write the path inside the repository, without a slash before it", path);
	for (const char *part = path; *part != '\0';) {
		size_t length = strcspn(part, "/");
		if (length == 2 && strncmp(part, "..", 2) == 0)
			return error_set(error, "%s: \"..\" is not possible in a path inside the repository", path);
		if (length > 0 && !(length == 1 && part[0] == '.')) {
			str_append(&joined, joined.length > 0 ? "/" : "");
			str_append_bytes(&joined, part, length);
		}
		part += length + strspn(part + length, "/");
	}
	*clean = str_steal(&joined);
	return 0;
}

int source_find_entry(const struct source *source, const git_tree *tree, const char *path, git_tree_entry **entry,
		      struct error *error)
{
	cleanup_git(tree) git_tree *below = NULL;
	*entry = NULL;
	for (const char *part = path;;) {
		size_t length = strcspn(part, "/");
		cleanup_free char *name = text_copy_range(part, length);
		const git_tree_entry *found = git_tree_entry_byname(below != NULL ? below : tree, name);
		if (found == NULL)
			return 0;
		if (part[length] == '\0') {
			if (git_tree_entry_dup(entry, found) < 0)
				memory_exhausted();
			return 1;
		}
		if (git_tree_entry_type(found) != GIT_OBJECT_TREE)
			return 0;
		git_tree *next = NULL;
		if (git_tree_lookup(&next, source->repository, git_tree_entry_id(found)) < 0)
			return source_object_error(source, error, "reading %s", path);
		git_tree_free(below);
		below = next;
		part += length + 1;
	}
}

static int read_entry(const struct source *source, const git_tree_entry *entry, size_t limit, struct str *contents,
		      struct error *error)
{
	cleanup_git(odb) git_odb *odb = NULL;
	cleanup_git(blob) git_blob *blob = NULL;
	size_t size = 0;
	git_object_t type = GIT_OBJECT_INVALID;
	git_filemode_t mode = git_tree_entry_filemode(entry);
	if (mode != GIT_FILEMODE_BLOB && mode != GIT_FILEMODE_BLOB_EXECUTABLE)
		return error_set(error, "is not a file but a %s",
				 mode == GIT_FILEMODE_TREE     ? "folder"
				 : mode == GIT_FILEMODE_COMMIT ? "submodule"
							       : "symbolic link");
	if (git_repository_odb(&odb, source->repository) < 0 ||
	    git_odb_read_header(&size, &type, odb, git_tree_entry_id(entry)) < 0)
		return source_object_error(source, error, "cannot be read");
	if (size > limit)
		return error_set(error, "is larger than %zu bytes", limit);
	if (git_blob_lookup(&blob, source->repository, git_tree_entry_id(entry)) < 0)
		return source_object_error(source, error, "cannot be read");
	str_append_bytes(contents, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
	return 0;
}

int source_read_file(struct source *source, const char *oid, const char *path, size_t limit, struct str *contents,
		     struct error *error)
{
	cleanup_git(commit) git_commit *commit = NULL;
	cleanup_git(tree) git_tree *tree = NULL;
	cleanup_git(tree_entry) git_tree_entry *entry = NULL;
	cleanup_free char *clean = NULL;
	str_clear(contents);
	if (source_clean_path(path, &clean, error) < 0 || clean == NULL ||
	    source_find_commit(source, oid, &commit, error) < 0)
		return -1;
	if (git_commit_tree(&tree, commit) < 0)
		return source_object_error(source, error, "reading the tree of %s", oid);
	int found = clean[0] != '\0' ? source_find_entry(source, tree, clean, &entry, error) : 0;
	if (found == 0)
		return error_set(error, "%s: no such file at %s", path, oid);
	if (found < 0)
		return -1;
	return read_entry(source, entry, limit, contents, error) < 0 ? error_wrap(error, "%s at %s", path, oid) : 0;
}
