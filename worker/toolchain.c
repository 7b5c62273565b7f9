/*
 * The job "toolchains": which compilers are there, and what identifies each.
 *
 * A Rust toolchain is identified by the whole text of `rustc -vV` and by the SHA-256 of its driver library
 * (distributions print "commit-hash: unknown"); any other compiler by its `--version` and the SHA-256 of its file.
 * rustup's shims are never taken for a toolchain: they run whatever the folder they are started in says.  Nothing is
 * ever installed.  A toolchain that is missing, broken or hanging is a `skip` with its reason.
 */
#include "jobs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "digest.h"
#include "fs.h"
#include "log.h"
#include "version.h"

enum { DEFAULT_LIMIT_MS = 20000, OUTPUT_LIMIT = 1 << 16, CACHE_LIMIT = 1 << 20, VERSION_LINES = 3 };

struct toolchain {
	char *name;   /* as asked for, or where it was found */
	char *origin; /* the word that tells two of one label apart */
	char *label;
	char *identity; /* NULL: cannot be used */
	char *root;
	char *rustc;
	char *cargo;
	char *program; /* the compiler itself, whatever it is */
	char *skip;
	struct strlist read_only;
	bool found_by_auto;
	bool dropped;
};

struct search {
	const struct job *job;
	struct strmap environment;
	long long limit_ms;
	char *home;       /* rustup's folder of toolchains */
	char *cache_path; /* NULL: no cache */
	json_t *cache;    /* path -> {"stamp", "hash"} */
	bool cache_changed;
	struct toolchain *items;
	size_t count;
	size_t capacity;
};

static void toolchain_clear(struct toolchain *toolchain)
{
	free(toolchain->name);
	free(toolchain->origin);
	free(toolchain->label);
	free(toolchain->identity);
	free(toolchain->root);
	free(toolchain->rustc);
	free(toolchain->cargo);
	free(toolchain->program);
	free(toolchain->skip);
	strlist_clear(&toolchain->read_only);
}

static void search_clear(struct search *search)
{
	for (size_t i = 0; i < search->count; i++)
		toolchain_clear(&search->items[i]);
	free(search->items);
	free(search->home);
	free(search->cache_path);
	json_decref(search->cache);
	strmap_clear(&search->environment);
}

static struct toolchain *add_toolchain(struct search *search, const char *name, const char *origin)
{
	search->items = memory_grow(search->items, search->count, &search->capacity, sizeof *search->items);
	search->items[search->count] =
		(struct toolchain){.name = text_copy(name), .origin = text_copy(origin), .label = text_copy(name)};
	return &search->items[search->count++];
}

static void skip_toolchain(struct toolchain *toolchain, const char *reason)
{
	if (toolchain->skip == NULL)
		toolchain->skip = text_copy(reason);
	free_pointer(&toolchain->identity);
	toolchain->identity = NULL;
}

/* ---- asking programs ---- */

/* What the program says on standard output; -1 when it does not run, does not end in time or fails. */
static int ask(const struct search *search, const char *program, const char *argument, const char *second,
	       struct str *answer, struct error *error)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_child_output struct child_output output = {0};
	strlist_add(&command, program);
	strlist_add(&command, argument);
	if (second != NULL)
		strlist_add(&command, second);
	/* "/": no rust-toolchain.toml and no settings of the folder that we happen to be in */
	if (child_capture(&command, &search->environment, "/", search->limit_ms, OUTPUT_LIMIT, &output, error) < 0)
		return -1;
	str_append_bytes(answer, str_text(&output.output), output.output.length);
	if (WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0)
		return 0;
	cleanup_free char *status = child_status_text(output.status);
	cleanup_free char *first = text_copy_range(str_text(&output.errors), strcspn(str_text(&output.errors), "\n"));
	return error_set(error, "%s %s: %s%s%s", program, argument, status, first[0] != '\0' ? ": " : "", first);
}

static void trim_end(struct str *text)
{
	while (text->length > 0 && isspace((unsigned char)text->data[text->length - 1]))
		text->data[--text->length] = '\0';
}

/* The rest of the line that starts with `start`; owned by the caller, NULL where there is none. */
static char *line_after(const char *text, const char *start)
{
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
		if (text_starts_with(line, start))
			return text_copy_range(line + strlen(start), strcspn(line + strlen(start), "\n"));
	return NULL;
}

/* ---- hashes of big files, remembered by what stat says ---- */

static char *file_stamp(const struct stat *status)
{
	return text_format("%lld %lld.%09ld %lld.%09ld %lld %lld", (long long)status->st_size,
			   (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
			   (long long)status->st_ctim.tv_sec, status->st_ctim.tv_nsec, (long long)status->st_ino,
			   (long long)status->st_dev);
}

static int hash_file(struct search *search, const char *path, char **hash, struct error *error)
{
	struct stat status;
	if (stat(path, &status) < 0)
		return error_set_errno(error, "cannot read %s", path);
	cleanup_free char *stamp = file_stamp(&status);
	json_t *entry = json_object_get(search->cache, path);
	if (text_equal(json_string_value(json_object_get(entry, "stamp")), stamp) &&
	    json_is_string(json_object_get(entry, "hash"))) {
		*hash = text_copy(json_string_value(json_object_get(entry, "hash")));
		return 0;
	}
	if (fs_hash_file(path, hash, error) < 0)
		return -1;
	json_object_set_new(search->cache, path, json_pack("{s:s, s:s}", "stamp", stamp, "hash", *hash));
	search->cache_changed = true;
	return 0;
}

static void open_cache(struct search *search)
{
	cleanup_str struct str text = {0};
	cleanup_error struct error ignored = {0};
	if (search->job->edited != NULL) {
		search->cache_path = path_join(search->job->edited, "toolchain-hashes.json");
		if (fs_read_file(search->cache_path, CACHE_LIMIT, &text, &ignored) == 0)
			search->cache = json_loads(str_text(&text), 0, NULL);
	}
	if (!json_is_object(search->cache)) {
		json_decref(search->cache);
		search->cache = json_object();
	}
}

/* Losing it costs a second of hashing: a failure is no failure of the job. */
static void save_cache(struct search *search)
{
	cleanup_error struct error error = {0};
	if (!search->cache_changed || search->cache_path == NULL)
		return;
	cleanup_free char *text = json_dumps(search->cache, JSON_INDENT(1));
	if (text == NULL || fs_make_folder(search->job->edited, &error) < 0 ||
	    fs_write_file(search->cache_path, text, strlen(text), &error) < 0)
		log_warning("hashes of toolchains are not remembered: %s", error_text(&error));
}

/* ---- one Rust toolchain ---- */

/* rustup's shims are links to (or copies beside) the program rustup itself. */
static bool is_shim(const char *rustc)
{
	cleanup_free char *real = realpath(rustc, NULL);
	if (real != NULL && (strcmp(path_base(real), "rustup") == 0 || strcmp(path_base(real), "rustup-init") == 0))
		return true;
	cleanup_free char *folder = path_parent(real != NULL ? real : rustc);
	cleanup_free char *beside = path_join(folder, "rustup");
	struct stat shim;
	struct stat rustup;
	if (stat(rustc, &shim) < 0 || stat(beside, &rustup) < 0)
		return false;
	return (shim.st_dev == rustup.st_dev && shim.st_ino == rustup.st_ino) || shim.st_size == rustup.st_size;
}

/* The driver is <sysroot>/lib/librustc_driver-HASH.so, or one folder deeper (Debian's lib/x86_64-linux-gnu/). */
static char *find_driver(const char *folder, int depth)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error ignored = {0};
	if (fs_list_folder(folder, &names, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < names.count; i++)
		if (text_starts_with(names.items[i], "librustc_driver") && strstr(names.items[i], ".so") != NULL)
			return path_join(folder, names.items[i]);
	for (size_t i = 0; depth > 0 && i < names.count; i++) {
		cleanup_free char *child = path_join(folder, names.items[i]);
		char *found = strcmp(names.items[i], "rustlib") != 0 && path_is_folder(child)
				      ? find_driver(child, depth - 1)
				      : NULL;
		if (found != NULL)
			return found;
	}
	return NULL;
}

static void show_folder(struct toolchain *toolchain, const char *folder)
{
	for (size_t i = 0; i < toolchain->read_only.count; i++) {
		const char *shown = toolchain->read_only.items[i];
		if (strcmp(shown, folder) == 0 || (text_starts_with(folder, shown) && folder[strlen(shown)] == '/'))
			return;
	}
	strlist_add(&toolchain->read_only, folder);
}

/* What a build needs to see: the toolchain as named, what its links lead to, and its sysroot. */
static void show_folders(struct toolchain *toolchain, const char *sysroot)
{
	cleanup_free char *real = realpath(toolchain->rustc, NULL);
	show_folder(toolchain, toolchain->root);
	if (real != NULL) {
		cleanup_free char *folder = path_parent(real);
		cleanup_free char *root = path_parent(folder);
		if (strcmp(path_base(folder), "bin") == 0 && strcmp(root, "/") != 0)
			show_folder(toolchain, root);
		else
			show_folder(toolchain, folder);
	}
	show_folder(toolchain, sysroot);
}

static int identify_rustc(struct search *search, struct toolchain *toolchain, struct error *error)
{
	cleanup_str struct str version = {0};
	cleanup_str struct str sysroot = {0};
	cleanup_free char *hash = NULL;
	if (ask(search, toolchain->rustc, "-vV", NULL, &version, error) < 0 ||
	    ask(search, toolchain->rustc, "--print", "sysroot", &sysroot, error) < 0)
		return -1;
	trim_end(&version);
	trim_end(&sysroot);
	char *release = line_after(str_text(&version), "release: ");
	if (release == NULL || str_text(&sysroot)[0] != '/') {
		free(release);
		return error_set(error, "%s does not answer as a rustc", toolchain->rustc);
	}
	free(toolchain->label);
	toolchain->label = release;
	cleanup_free char *libraries = path_join(str_text(&sysroot), "lib");
	cleanup_free char *driver = find_driver(libraries, 1);
	/* a rustc linked as one file has no driver library: then the file itself */
	if (hash_file(search, driver != NULL ? driver : toolchain->rustc, &hash, error) < 0)
		return -1;
	toolchain->identity = text_format("%s\ndriver: %s", str_text(&version), hash);
	show_folders(toolchain, str_text(&sysroot));
	return 0;
}

static char *program_in(const char *folder, const char *name)
{
	char *path = path_join(folder, name);
	if (access(path, X_OK) == 0 && !path_is_folder(path))
		return path;
	free(path);
	return NULL;
}

/* `bin` is the folder of rustc and cargo. */
static void examine_rust(struct search *search, struct toolchain *toolchain, const char *bin)
{
	cleanup_error struct error error = {0};
	toolchain->rustc = program_in(bin, "rustc");
	toolchain->root = path_parent(bin);
	if (toolchain->rustc == NULL)
		error_set(&error, "%s holds no rustc", bin);
	else if (is_shim(toolchain->rustc))
		error_set(&error, "%s is rustup's shim, which runs any toolchain: name the toolchain",
			  toolchain->rustc);
	else
		identify_rustc(search, toolchain, &error);
	if (error.text != NULL) {
		skip_toolchain(toolchain, error_text(&error));
		return;
	}
	toolchain->program = text_copy(toolchain->rustc);
	toolchain->cargo = program_in(bin, "cargo");
	if (toolchain->cargo != NULL && is_shim(toolchain->cargo)) {
		free(toolchain->cargo);
		toolchain->cargo = NULL;
	}
}

/* ---- where they come from ---- */

static void add_folder(struct search *search, const char *name, const char *folder)
{
	cleanup_free char *absolute = path_absolute(folder);
	cleanup_free char *bin = path_join(absolute, "bin");
	struct toolchain *toolchain = add_toolchain(search, name, path_base(absolute));
	log_info("looking at toolchain %s", absolute);
	if (path_is_folder(absolute))
		examine_rust(search, toolchain, bin);
	else
		skip_toolchain(toolchain, "there is no such folder");
}

/* All children of a folder that have a bin/rustc. */
static void add_children(struct search *search, const char *parent, bool by_folder)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error error = {0};
	if (fs_list_folder(parent, &names, &error) < 0) {
		log_debug("%s", error_text(&error));
		return;
	}
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *folder = path_join(parent, names.items[i]);
		cleanup_free char *rustc = path_join(folder, "bin/rustc");
		if (path_exists(rustc))
			add_folder(search, by_folder ? folder : names.items[i], folder);
	}
}

/* Every rustc on PATH that is none of rustup's shims. */
static void add_from_path(struct search *search)
{
	const char *path = strmap_get(&search->environment, "PATH");
	while (path != NULL && *path != '\0') {
		size_t length = strcspn(path, ":");
		cleanup_free char *bin = text_copy_range(path, length);
		cleanup_free char *rustc = bin[0] == '/' ? program_in(bin, "rustc") : NULL;
		if (rustc != NULL && !is_shim(rustc)) {
			log_info("looking at %s", rustc);
			examine_rust(search, add_toolchain(search, rustc, bin), bin);
		}
		path += length + (path[length] == ':');
	}
}

static bool is_same(const struct toolchain *a, const struct toolchain *b)
{
	return a->identity != NULL && text_equal(a->identity, b->identity);
}

static int compare(const void *a, const void *b)
{
	const struct toolchain *left = a;
	const struct toolchain *right = b;
	int order = version_compare(left->label, right->label);
	cleanup_free char *left_llvm = left->identity != NULL ? line_after(left->identity, "LLVM version: ") : NULL;
	cleanup_free char *right_llvm = right->identity != NULL ? line_after(right->identity, "LLVM version: ") : NULL;
	if (order == 0 && left_llvm != NULL && right_llvm != NULL)
		order = version_compare(left_llvm, right_llvm);
	return order != 0 ? order : strcmp(left->name, right->name);
}

static void drop_same(struct search *search, size_t from)
{
	for (size_t i = from; i < search->count; i++)
		for (size_t j = 0; j < i && !search->items[i].dropped; j++)
			search->items[i].dropped =
				!search->items[j].dropped && is_same(&search->items[i], &search->items[j]);
}

static void add_auto(struct search *search)
{
	size_t from = search->count;
	add_children(search, search->home, false);
	for (size_t i = 0; i < search->job->search.count; i++)
		add_children(search, search->job->search.items[i], true);
	add_from_path(search);
	for (size_t i = from; i < search->count; i++)
		search->items[i].found_by_auto = true;
	drop_same(search, from);
	if (search->count > from)
		qsort(search->items + from, search->count - from, sizeof *search->items, compare);
	if (search->count == from)
		skip_toolchain(add_toolchain(search, "auto", "auto"), "no Rust toolchain was found");
}

static void add_from_rustup(struct search *search, const char *name)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_child_output struct child_output output = {0};
	cleanup_error struct error error = {0};
	static const char *const words[] = {"rustup", "which", "--toolchain"};
	struct toolchain *toolchain = add_toolchain(search, name, name);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		strlist_add(&command, words[i]);
	strlist_add(&command, name);
	strlist_add(&command, "rustc");
	log_info("asking rustup for toolchain %s", name);
	if (child_capture(&command, &search->environment, "/", search->limit_ms, OUTPUT_LIMIT, &output, &error) < 0) {
		skip_toolchain(toolchain, error_text(&error));
		return;
	}
	trim_end(&output.output);
	const char *rustc = str_text(&output.output);
	if (!WIFEXITED(output.status) || WEXITSTATUS(output.status) != 0 || rustc[0] != '/') {
		cleanup_free char *line = line_after(str_text(&output.errors), "error: ");
		cleanup_free char *reason = text_format("rustup has no toolchain %s%s%s", name,
							line != NULL ? ": " : "", line != NULL ? line : "");
		skip_toolchain(toolchain, reason);
		return;
	}
	cleanup_free char *bin = path_parent(rustc);
	examine_rust(search, toolchain, bin);
}

/* ---- any other compiler ---- */

static char *find_on_path(const char *program, const char *path)
{
	if (strchr(program, '/') != NULL)
		return access(program, X_OK) == 0 ? path_absolute(program) : NULL;
	while (path != NULL && *path != '\0') {
		size_t length = strcspn(path, ":");
		cleanup_free char *folder = text_copy_range(path, length);
		char *found = program_in(folder, program);
		if (found != NULL)
			return found;
		path += length + (path[length] == ':');
	}
	return NULL;
}

static int identify_command(struct search *search, struct toolchain *toolchain, struct error *error)
{
	cleanup_str struct str version = {0};
	cleanup_free char *real = realpath(toolchain->program, NULL);
	cleanup_free char *hash = NULL;
	if (real == NULL)
		return error_set_errno(error, "cannot find %s", toolchain->program);
	if (ask(search, toolchain->program, "--version", NULL, &version, error) < 0 ||
	    hash_file(search, real, &hash, error) < 0)
		return -1;
	const char *end = str_text(&version);
	for (int line = 0; line < VERSION_LINES && *end != '\0'; line++) {
		end += strcspn(end, "\n");
		end += *end == '\n';
	}
	cleanup_str struct str first = {0};
	str_append_bytes(&first, str_text(&version), (size_t)(end - str_text(&version)));
	trim_end(&first);
	toolchain->identity = text_format("%s\nprogram: %s", str_text(&first), hash);
	cleanup_free char *folder = path_parent(toolchain->program);
	cleanup_free char *real_folder = path_parent(real);
	show_folder(toolchain, folder);
	show_folder(toolchain, real_folder);
	return 0;
}

static void add_command(struct search *search, const char *name, const char *program)
{
	cleanup_error struct error error = {0};
	cleanup_free char *found = find_on_path(program, strmap_get(&search->environment, "PATH"));
	cleanup_free char *folder = found != NULL ? path_parent(found) : text_copy(name);
	struct toolchain *toolchain = add_toolchain(search, name, folder);
	free(toolchain->label);
	toolchain->label = text_copy(path_base(program));
	log_info("looking at compiler %s", program);
	if (found == NULL) {
		cleanup_free char *reason = text_format("there is no program %s", program);
		skip_toolchain(toolchain, reason);
		return;
	}
	toolchain->program = text_copy(found);
	if (is_shim(found))
		error_set(&error, "%s is rustup's shim, which runs any toolchain: name the toolchain", found);
	else
		identify_command(search, toolchain, &error);
	if (error.text != NULL)
		skip_toolchain(toolchain, error_text(&error));
}

/* ---- the job ---- */

static void add_named(struct search *search, const char *name)
{
	static const char command[] = "command:";
	if (strcmp(name, "auto") == 0)
		add_auto(search);
	else if (text_starts_with(name, command))
		add_command(search, name, name + strlen(command));
	else if (strchr(name, '/') != NULL)
		add_folder(search, name, name);
	else
		add_from_rustup(search, name);
}

/* Named ones win over the same ones found by auto; of two named ones the second is refused, so that nothing is tried
 * twice. */
static void settle_same(struct search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		struct toolchain *toolchain = &search->items[i];
		for (size_t j = 0; j < search->count; j++) {
			struct toolchain *other = &search->items[j];
			if (i == j || toolchain->dropped || other->dropped || !is_same(toolchain, other))
				continue;
			if (toolchain->found_by_auto) {
				toolchain->dropped = true;
			} else if (!other->found_by_auto && j < i) {
				cleanup_free char *reason = text_format("it is the same toolchain as %s", other->name);
				skip_toolchain(toolchain, reason);
				free(toolchain->label);
				toolchain->label = text_copy(toolchain->name);
			}
		}
	}
}

/* Different toolchains of one label: the origin tells them apart. */
static void settle_labels(struct search *search)
{
	cleanup_free bool *shared = memory_new(search->count, sizeof *shared);
	for (size_t i = 0; i < search->count; i++)
		for (size_t j = 0; j < search->count; j++)
			if (i != j && !search->items[i].dropped && !search->items[j].dropped &&
			    text_equal(search->items[i].label, search->items[j].label))
				shared[i] = true;
	for (size_t i = 0; i < search->count; i++) {
		struct toolchain *toolchain = &search->items[i];
		if (!shared[i] || text_equal(toolchain->label, toolchain->origin))
			continue;
		char *label = text_format("%s (%s)", toolchain->label, toolchain->origin);
		free(toolchain->label);
		toolchain->label = label;
	}
}

static json_t *toolchain_to_json(const struct toolchain *toolchain)
{
	bool usable = toolchain->skip == NULL;
	json_t *read_only = json_array();
	for (size_t i = 0; i < toolchain->read_only.count; i++)
		json_array_append_new(read_only, json_string(toolchain->read_only.items[i]));
	json_t *object = json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:o, s:s?}", "name", toolchain->name,
				   "label", toolchain->label, "identity", toolchain->identity, "root",
				   usable ? toolchain->root : NULL, "rustc", usable ? toolchain->rustc : NULL, "cargo",
				   usable ? toolchain->cargo : NULL, "program", usable ? toolchain->program : NULL,
				   "read_only", read_only, "skip", toolchain->skip);
	if (usable) {
		cleanup_free char *path = path_parent(toolchain->program);
		json_object_set_new(object, "path", json_string(path));
	}
	return object;
}

static void open_search(struct search *search, const struct job *job)
{
	const char *home = getenv("RUSTUP_HOME");
	const char *user = getenv("HOME");
	cleanup_free char *standard = path_join(user != NULL ? user : "/", ".rustup");
	search->job = job;
	search->limit_ms = job->run_ms > 0 ? job->run_ms : DEFAULT_LIMIT_MS;
	search->home = path_join(home != NULL && home[0] == '/' ? home : standard, "toolchains");
	child_own_environment(&search->environment);
	/* never install: new rustups obey the first, old ones find no server */
	strmap_set(&search->environment, "RUSTUP_AUTO_INSTALL", "0");
	strmap_set(&search->environment, "RUSTUP_DIST_SERVER", "http://127.0.0.1:9");
	strmap_set(&search->environment, "RUSTUP_UPDATE_ROOT", "http://127.0.0.1:9");
	open_cache(search);
}

void toolchains_job(const struct job *job, struct result *result)
{
	__attribute__((cleanup(search_clear))) struct search search = {0};
	open_search(&search, job);
	for (size_t i = 0; i < job->names.count; i++)
		add_named(&search, job->names.items[i]);
	settle_same(&search);
	settle_labels(&search);
	save_cache(&search);
	result->data = json_array();
	for (size_t i = 0; i < search.count; i++)
		if (!search.items[i].dropped)
			json_array_append_new(result->data, toolchain_to_json(&search.items[i]));
	result->outcome = OUTCOME_PASS;
}
