/* cargo-show-asm on an assembly file that is there already: see listing.h. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evidence/listing.h"
#include "fs.h"

enum { ASSEMBLY_MAX = 1 << 30, SOURCE_MAX = 16 << 20, RUN_MS = 60000, OUTPUT_MAX = 16 << 20 };

/* What cargo-asm starts as cargo ("metadata …", "rustc …") and as rustc ("--print=sysroot"). */
static const char cargo_script[] = "#!/bin/sh\n"
				   "# Made by bisect-worker for cargo-asm: everything is built already.\n"
				   "exec cat \"${0%/*}/$1.json\"\n";
static const char rustc_script[] = "#!/bin/sh\n"
				   "# Made by bisect-worker for cargo-asm.\n"
				   "exec cat \"${0%/*}/sysroot\"\n";

/* ---- the copy of the assembly ---- */

/* The files of an assembly by their numbers: which of them may be shown. */
struct files {
	bool *shown;
	size_t count;
	size_t capacity;
};

enum { FILES_MAX = 1 << 20 };

static void set_shown(struct files *files, size_t number, bool shown)
{
	while (number < FILES_MAX && files->count <= number) {
		files->shown = memory_grow(files->shown, files->count, &files->capacity, sizeof *files->shown);
		files->shown[files->count++] = false;
	}
	if (number < files->count)
		files->shown[number] = shown;
}

/* The directive's first word behind ".file" or ".loc", if it is a number; SIZE_MAX otherwise. */
static size_t directive_number(const char **at, const char *end)
{
	const char *start = *at;
	size_t number = 0;
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	if (start == end || !isdigit((unsigned char)*start))
		return SIZE_MAX;
	for (; start < end && isdigit((unsigned char)*start); start++)
		number = number < FILES_MAX ? number * 10 + (size_t)(*start - '0') : FILES_MAX;
	*at = start;
	return number;
}

/* The next text in quotation marks; NULL where there is none, or one with escapes.  Owned by the caller. */
static char *quoted(const char **at, const char *end)
{
	const char *start = *at;
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	if (start == end || *start != '"')
		return NULL;
	const char *close = memchr(start + 1, '"', (size_t)(end - start - 1));
	if (close == NULL || memchr(start, '\\', (size_t)(close - start)) != NULL)
		return NULL;
	*at = close + 1;
	return text_copy_range(start + 1, (size_t)(close - start - 1));
}

/* cargo-asm wants UTF-8 and ends where it finds something else. */
static bool is_readable_text(const char *path)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	if (fs_read_file(path, SOURCE_MAX, &text, &error) < 0 || text.length == 0)
		return false;
	json_t *checked = json_stringn(text.data, text.length);
	json_decref(checked);
	return checked != NULL;
}

/* `.file 12 "folder" "name" md5 …`: may its lines be shown?  `roots` are all folders with sources, the workspace first.
 */
static bool may_be_shown(const struct strlist *roots, const char *at, const char *end)
{
	cleanup_free char *first = quoted(&at, end);
	cleanup_free char *second = first != NULL ? quoted(&at, end) : NULL;
	if (first == NULL)
		return false;
	cleanup_free char *name = second != NULL ? path_join(first, second) : text_copy(first);
	cleanup_free char *path = path_join(roots->items[0], name);
	return listing_is_below(roots, path) && is_readable_text(path);
}

static bool is_directive(const char *line, const char *end, const char *name)
{
	size_t length = strlen(name);
	return (size_t)(end - line) > length && memcmp(line, name, length) == 0;
}

/* The assembly without what cargo-asm must not read, and without .cfi lines. */
static void filter_assembly(const struct listing_request *request, const struct str *assembly, struct str *copy)
{
	struct files files = {0};
	cleanup_strlist struct strlist roots = {0};
	strlist_add(&roots, request->workspace);
	if (request->roots != NULL)
		strlist_add_all(&roots, request->roots);
	const char *end = str_text(assembly) + assembly->length;
	for (const char *line = str_text(assembly); line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *next = newline != NULL ? newline + 1 : end;
		const char *at = line;
		while (at < next && (*at == ' ' || *at == '\t'))
			at++;
		bool kept = !is_directive(at, next, ".cfi_");
		if (is_directive(at, next, ".file\t") || is_directive(at, next, ".file ")) {
			at += strlen(".file");
			size_t number = directive_number(&at, next);
			kept = number == SIZE_MAX || (number < FILES_MAX && may_be_shown(&roots, at, next));
			if (number != SIZE_MAX)
				set_shown(&files, number, kept);
		} else if (is_directive(at, next, ".loc\t") || is_directive(at, next, ".loc ")) {
			at += strlen(".loc");
			size_t number = directive_number(&at, next);
			kept = number < files.count && files.shown[number];
		}
		if (kept)
			str_append_bytes(copy, line, (size_t)(next - line));
		line = next;
	}
	free(files.shown);
}

/* ---- the workspace that cargo-asm believes in ---- */

static int write_text(const char *folder, const char *name, const char *text, size_t length, bool program,
		      struct error *error)
{
	cleanup_free char *path = path_join(folder, name);
	if (fs_write_file(path, text, length, error) < 0)
		return -1;
	if (chmod(path, program ? 0755 : 0644) < 0)
		return error_set_errno(error, "cannot set the mode of %s", path);
	return 0;
}

static int write_json(const char *folder, const char *name, json_t *first, json_t *second, struct error *error)
{
	cleanup_str struct str text = {0};
	for (int i = 0; i < 2; i++) {
		json_t *value = i == 0 ? first : second;
		char *line = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
		if (line != NULL)
			str_append_format(&text, "%s\n", line);
		free(line);
	}
	json_decref(first);
	json_decref(second);
	return write_text(folder, name, str_text(&text), text.length, false, error);
}

/* As `cargo metadata` and `cargo rustc --message-format=json` say it; cargo_metadata's crate wants these members. */
static int write_answers(const struct listing_request *request, struct error *error)
{
	const char *id = "path+file:///listing#0.0.0";
	cleanup_free char *manifest = path_join(request->folder, "Cargo.toml");
	cleanup_free char *built = path_join(request->folder, "deps/listing");
	json_t *target =
		json_pack("{s:[s], s:[s], s:s, s:s, s:s, s:b, s:b, s:b}", "kind", "bin", "crate_types", "bin", "name",
			  "listing", "src_path", manifest, "edition", "2021", "doc", 0, "doctest", 0, "test", 0);
	json_t *package = json_pack("{s:s, s:s, s:s, s:[], s:[O], s:{}, s:s, s:s}", "name", "listing", "version",
				    "0.0.0", "id", id, "dependencies", "targets", target, "features", "manifest_path",
				    manifest, "edition", "2021");
	json_t *metadata =
		json_pack("{s:[o], s:[s], s:[s], s:n, s:s, s:i, s:s, s:n}", "packages", package, "workspace_members",
			  id, "workspace_default_members", id, "resolve", "target_directory", request->folder,
			  "version", 1, "workspace_root", request->workspace, "metadata");
	json_t *profile = json_pack("{s:s, s:i, s:b, s:b, s:b}", "opt_level", "3", "debuginfo", 2, "debug_assertions",
				    0, "overflow_checks", 0, "test", 0);
	json_t *artifact = json_pack("{s:s, s:s, s:s, s:o, s:o, s:[], s:[s], s:n, s:b}", "reason", "compiler-artifact",
				     "package_id", id, "manifest_path", manifest, "target", target, "profile", profile,
				     "features", "filenames", built, "executable", "fresh", 1);
	json_t *finished = json_pack("{s:s, s:b}", "reason", "build-finished", "success", 1);
	if (metadata == NULL || artifact == NULL || finished == NULL) {
		json_decref(metadata);
		json_decref(artifact);
		json_decref(finished);
		return error_set(error, "the folder %s has a name that is not UTF-8", request->folder);
	}
	if (write_json(request->folder, "metadata.json", metadata, NULL, error) < 0) {
		json_decref(artifact);
		json_decref(finished);
		return -1;
	}
	return write_json(request->folder, "rustc.json", artifact, finished, error);
}

static int make_folder(const struct listing_request *request, struct error *error)
{
	cleanup_str struct str assembly = {0};
	cleanup_str struct str copy = {0};
	cleanup_free char *deps = path_join(request->folder, "deps");
	cleanup_free char *sysroot = text_format("%s/no-sysroot\n", request->folder);
	if (fs_read_file(request->assembly, ASSEMBLY_MAX, &assembly, error) < 0)
		return -1;
	filter_assembly(request, &assembly, &copy);
	if (fs_remove_tree(request->folder, error) < 0 || fs_make_folder(deps, error) < 0 ||
	    write_text(deps, "listing.s", str_text(&copy), copy.length, false, error) < 0 ||
	    write_text(request->folder, "cargo", cargo_script, strlen(cargo_script), true, error) < 0 ||
	    write_text(request->folder, "rustc", rustc_script, strlen(rustc_script), true, error) < 0 ||
	    write_text(request->folder, "sysroot", sysroot, strlen(sysroot), false, error) < 0)
		return -1;
	return write_answers(request, error);
}

/* ---- running it ---- */

int listing_run_child(void *context, const struct strlist *command, const struct strmap *environment,
		      const char *folder, struct child_output *output, struct error *error)
{
	(void)context;
	return child_capture(command, environment, folder, RUN_MS, OUTPUT_MAX, output, error);
}

/* The first line with anything in it, for a message. */
static char *first_words(const struct child_output *output)
{
	const struct str *said = output->errors.length > 0 ? &output->errors : &output->output;
	const char *at = str_text(said) + strspn(str_text(said), " \t\r\n");
	size_t length = strcspn(at, "\r\n");
	return length > 0 ? text_copy_range(at, length < 300 ? length : 300) : text_copy("it said nothing");
}

static int run_cargo_asm(const struct listing_request *request, const char *const words[], listing_run run,
			 void *context, struct child_output *output, struct error *error)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_free char *cargo = path_join(request->folder, "cargo");
	cleanup_free char *rustc = path_join(request->folder, "rustc");
	strlist_add(&command, request->program);
	strlist_add(&command, "asm");
	for (const char *const *word = words; *word != NULL; word++)
		strlist_add(&command, *word);
	strmap_set(&environment, "PATH", "/usr/local/bin:/usr/bin:/bin");
	strmap_set(&environment, "HOME", request->folder);
	strmap_set(&environment, "LANG", "C.UTF-8");
	strmap_set(&environment, "CARGO", cargo);
	strmap_set(&environment, "RUSTC", rustc);
	if (run(context, &command, &environment, request->workspace, output, error) < 0)
		return error_wrap(error, "running %s", request->program);
	if (WIFEXITED(output->status) && WEXITSTATUS(output->status) == 0)
		return 0;
	cleanup_free char *status = child_status_text(output->status);
	cleanup_free char *said = first_words(output);
	return error_set(error, "%s ended with %s: %s", request->program, status, said);
}

/* The number that cargo-asm gives the symbol in its list. */
static int find_item(const struct child_output *output, const char *symbol, json_int_t *id, struct error *error)
{
	json_error_t trouble;
	json_t *items = json_loadb(str_text(&output->output), output->output.length, 0, &trouble);
	if (!json_is_array(items)) {
		json_decref(items);
		return error_set(error, "cargo-asm's list of functions cannot be read: %s",
				 items == NULL ? trouble.text : "it is no array");
	}
	int found = -1;
	size_t index;
	json_t *item;
	json_array_foreach (items, index, item)
		if (text_equal(json_string_value(json_object_get(item, "mangled_name")), symbol)) {
			*id = json_integer_value(json_object_get(item, "id"));
			found = 0;
		}
	size_t count = json_array_size(items);
	json_decref(items);
	return found == 0
		       ? 0
		       : error_set(error, "cargo-asm finds %zu functions in the assembly, but not %s", count, symbol);
}

int listing_cargo_asm(const struct listing_request *request, listing_run run, void *context, struct str *text,
		      struct error *error)
{
	static const char *const list[] = {"--no-color", "--json", NULL};
	cleanup_child_output struct child_output listed = {0};
	cleanup_child_output struct child_output printed = {0};
	json_int_t id = 0;
	if (make_folder(request, error) < 0)
		return error_wrap(error, "preparing %s for cargo-asm", request->folder);
	if (run_cargo_asm(request, list, run, context, &listed, error) < 0 ||
	    find_item(&listed, request->symbol, &id, error) < 0)
		return -1;
	cleanup_free char *number = text_format("%lld", (long long)id);
	const char *const show[] = {"--no-color", "--rust", request->all_crates ? "--all-crates" : "--this-workspace",
				    number, NULL};
	if (run_cargo_asm(request, show, run, context, &printed, error) < 0)
		return -1;
	if (printed.output.length == 0)
		return error_set(error, "%s printed nothing for %s", request->program, request->symbol);
	str_append_bytes(text, printed.output.data, printed.output.length);
	return 0;
}

char *listing_find_cargo_asm(const char *tools, struct error *error)
{
	cleanup_free char *own = tools != NULL ? path_join(tools, "bin/cargo-asm") : NULL;
	if (own != NULL && access(own, X_OK) == 0)
		return text_copy(own);
	const char *folder = getenv("PATH");
	while (folder != NULL && *folder != '\0') {
		size_t length = strcspn(folder, ":");
		cleanup_free char *path = text_format("%.*s/cargo-asm", (int)length, folder);
		if (length > 0 && path[0] == '/' && access(path, X_OK) == 0)
			return text_copy(path);
		folder += length + (folder[length] == ':');
	}
	error_set(error,
		  "cargo-show-asm is not installed: `make tools` puts it into %s, `cargo install --locked "
		  "cargo-show-asm` on PATH",
		  tools != NULL ? tools : "the state folder's tools/");
	return NULL;
}
