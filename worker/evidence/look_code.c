/*
 * The functions that matter: listed by cargo-show-asm, disassembled from the program that ran, as IR and as MIR; a good neighbour's
 * next to the bad cell's; and whether they hold unsafe code.
 */
#include <stdlib.h>
#include <string.h>

#include "evidence/compare.h"
#include "evidence/look_inside.h"
#include "evidence/rust_text.h"
#include "fs.h"

enum {
	MOST_FUNCTIONS = 3,
	MOST_MARKS = 200,
	TEXT_LIMIT = 256 << 20, /* of IR, assembly and MIR files */
	SIDE_BY_SIDE_WIDTH = 160,
	ROWS_AROUND = 12, /* of the comparison that go into the answer, around each deciding one */
	MOST_ROWS = 400,
	MOST_FRAMES = 20000,
};

/* -1: the binary does not hold its bytes. */
static int disassemble(const struct look *look, struct binary *binary, const struct listing_function *function, struct code *code,
		       struct error *error)
{
	cleanup_listing_sources struct listing_sources sources = {0};
	for (size_t i = 0; i < look->roots.count; i++)
		strlist_add(&sources.roots, look->roots.items[i].folder);
	return listing_of_binary(binary, look->machine, function, &sources, code, error);
}

/* Which functions ----------------------------------------------------------------------------------------------------------- */

static void list_functions(struct binary *binary, struct listing_functions *all)
{
	size_t count;
	const struct binary_function *functions = binary_functions(binary, &count);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || functions[i].address != functions[i - 1].address)
			listing_add(all, functions[i].symbol, functions[i].address, functions[i].size);
}

static void add_inlined(const struct look *look, struct listing_functions *all)
{
	size_t index;
	json_t *path;
	json_array_foreach (json_object_get(look->request, "ir"), index, path) {
		cleanup_str struct str text = {0};
		cleanup_error struct error error = {0};
		cleanup_listing_functions struct listing_functions inlined = {0};
		if (fs_read_file(json_string_value(path), TEXT_LIMIT, &text, &error) < 0)
			continue;
		listing_ir_functions(str_text(&text), text.length, &inlined);
		listing_add_inlined(all, &inlined);
	}
}

/* Symbols of the functions on broken paths; else of all that hold accused blocks. */
static void list_accused(const struct look *look, struct strlist *symbols)
{
	size_t index;
	json_t *path;
	json_array_foreach (json_object_get(look->answer, "paths"), index, path) {
		const char *symbol = json_string_value(json_object_get(path, "function"));
		const char *state = json_string_value(json_object_get(path, "state"));
		if (text_equal(state, "broken") && symbol != NULL && !strlist_contains(symbols, symbol))
			strlist_add(symbols, symbol);
	}
	struct look_place at = {0};
	const struct audit_block *block;
	if (symbols->count > 0)
		return;
	while ((block = look_next_accused(look, &at, NULL)) != NULL)
		if (!strlist_contains(symbols, block->ir->symbol))
			strlist_add(symbols, block->ir->symbol);
}

/*
 * A function by what it is made of, because its symbol and even its name differ between compilers and levels of inlining (an async
 * fn is found in GenFuture::poll, in run::{{closure}}, or by itself): the names of functions in it, each kind of closure alike.
 */
static char *mark_of(const char *name)
{
	struct str mark = {0};
	size_t depth = 0;
	for (; *name != '\0'; name++) {
		if (*name == '{' && depth++ == 0)
			str_append(&mark, "{}");
		if (depth == 0)
			str_append_bytes(&mark, name, 1);
		if (*name == '}' && depth > 0)
			depth--;
	}
	return str_steal(&mark);
}

static bool is_library(const char *name)
{
	return name[0] == '<' || text_starts_with(name, "core::") || text_starts_with(name, "std::") ||
	       text_starts_with(name, "alloc::");
}

static void add_mark(json_t *marks, const char *name)
{
	if (name == NULL || is_library(name) || json_array_size(marks) >= MOST_MARKS)
		return;
	cleanup_free char *mark = mark_of(name);
	json_array_append_new(marks, json_string(mark));
}

/* Those that accused blocks were written in weigh most. */
static json_t *list_marks(const struct look *look, const struct listing_function *function, json_t **accused)
{
	struct look_place at = {0};
	const struct audit_block *block;
	json_t *marks = json_array();
	*accused = json_array();
	while ((block = look_next_accused(look, &at, function->symbol)) != NULL)
		if (block->ir->location_count > 0)
			add_mark(*accused, block->ir->locations[0].function);
	add_mark(marks, function->name);
	for (size_t i = 0; i < function->inlined.count; i++)
		add_mark(marks, function->inlined.items[i]);
	return marks;
}

static size_t count_marks(const struct strlist *own, const json_t *marks)
{
	size_t index;
	json_t *mark;
	size_t count = 0;
	json_array_foreach (marks, index, mark)
		count += strlist_contains(own, json_string_value(mark));
	return count;
}

static size_t likeness(const json_t *bad, const struct listing_function *candidate)
{
	cleanup_strlist struct strlist own = {0};
	if (text_equal(candidate->symbol, json_string_value(json_object_get(bad, "symbol"))))
		return SIZE_MAX;
	strlist_add_owned(&own, mark_of(candidate->name));
	for (size_t i = 0; i < candidate->inlined.count; i++)
		if (!is_library(candidate->inlined.items[i]))
			strlist_add_owned(&own, mark_of(candidate->inlined.items[i]));
	return MOST_MARKS * count_marks(&own, json_object_get(bad, "accused")) + count_marks(&own, json_object_get(bad, "marks"));
}

/* The bad cell's functions in this program: of those that are equally alike the largest. */
static void list_same(const json_t *bad, const struct listing_functions *all, struct strlist *symbols)
{
	size_t index;
	json_t *function;
	json_array_foreach (json_object_get(bad, "functions"), index, function) {
		const struct listing_function *best = NULL;
		size_t most = 0;
		for (size_t i = 0; i < all->count; i++) {
			const struct listing_function *candidate = &all->items[i];
			size_t alike = likeness(function, candidate);
			if (alike > most || (alike == most && most > 0 && candidate->size > best->size)) {
				best = candidate;
				most = alike;
			}
		}
		if (best != NULL && !strlist_contains(symbols, best->symbol))
			strlist_add(symbols, best->symbol);
	}
}

static bool choose(struct look *look, const json_t *bad, struct listing_functions *chosen)
{
	cleanup_listing_functions struct listing_functions all = {0};
	cleanup_strlist struct strlist symbols = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *said = NULL;
	const char *pattern = bad == NULL ? look_text(look, "function") : NULL;
	list_functions(look->binary, &all);
	add_inlined(look, &all);
	if (bad != NULL)
		list_same(bad, &all, &symbols);
	else if (pattern == NULL)
		list_accused(look, &symbols);
	if (pattern == NULL && symbols.count == 0) {
		look_miss(
			look,
			bad != NULL
				? "nothing in this program resembles the bad cell's functions"
				: "no function was accused: name the one that holds the place of interest, \"evidence: {function: "
				  "REGEX}\", to have it listed");
		return false;
	}
	if (listing_choose(&all, pattern, pattern == NULL ? &symbols : NULL, chosen, &said, &error) < 0) {
		look_miss(look, "no function was listed: %s", error_text(&error));
		return false;
	}
	if (said != NULL)
		look_miss(look, "%s", said);
	return true;
}

/* Listings ------------------------------------------------------------------------------------------------------------------ */

typedef int (*extract)(struct look *look, const struct listing_function *function, const struct strlist *files, struct str *into,
		       struct error *error);

static int extract_ir(struct look *look, const struct listing_function *function, const struct strlist *files, struct str *into,
		      struct error *error)
{
	cleanup_str struct str text = {0};
	cleanup_free char *path = listing_find_file(files, function->symbol, error);
	(void)look;
	if (path == NULL || fs_read_file(path, TEXT_LIMIT, &text, error) < 0)
		return -1;
	return listing_ir(str_text(&text), text.length, function->symbol, true, into, error);
}

/* "task::serial_task::{async_fn#0}" of debug information is "{closure#0}" in MIR. */
static char *mir_name(const char *name)
{
	static const char *const words[] = {"{async_fn_env#", "{async_fn#", "{async_block_env#", "{async_block#", "{closure_env#"};
	struct str plain = {0};
	while (*name != '\0') {
		size_t length = 0;
		for (size_t i = 0; length == 0 && i < sizeof words / sizeof words[0]; i++)
			length = text_starts_with(name, words[i]) ? strlen(words[i]) : 0;
		if (length > 0)
			str_append(&plain, "{closure#");
		else
			str_append_bytes(&plain, name, length = 1);
		name += length;
	}
	return str_steal(&plain);
}

/* MIR is there before anything is inlined: of the function itself, else of those whose accused blocks ended up in it. */
static int extract_mir_of_file(struct look *look, const struct listing_function *function, const struct str *text, struct str *into,
			       struct error *error)
{
	cleanup_strlist struct strlist seen = {0};
	struct look_place at = {0};
	const struct audit_block *block;
	const char *meant = function->why != NULL ? function->why : function->name;
	int result = listing_mir(str_text(text), text->length, meant, true, into, error);
	while ((block = look_next_accused(look, &at, function->symbol)) != NULL) {
		const char *name = block->ir->location_count > 0 ? block->ir->locations[0].function : NULL;
		if (name == NULL)
			continue;
		cleanup_free char *plain = mir_name(name);
		if (strlist_contains(&seen, plain))
			continue;
		strlist_add(&seen, plain);
		cleanup_error struct error trouble = {0};
		if (listing_mir(str_text(text), text->length, plain, true, into, &trouble) == 0)
			result = 0;
	}
	if (result == 0)
		error_clear(error);
	return result;
}

/* The first of the files that has it: MIR knows no symbols to find the file by. */
static int extract_mir(struct look *look, const struct listing_function *function, const struct strlist *files, struct str *into,
		       struct error *error)
{
	for (size_t i = 0; i < files->count; i++) {
		cleanup_str struct str text = {0};
		error_clear(error);
		if (fs_read_file(files->items[i], TEXT_LIMIT, &text, error) == 0 &&
		    extract_mir_of_file(look, function, &text, into, error) == 0)
			return 0;
	}
	return -1;
}

static int extract_assembly(struct look *look, const struct listing_function *function, const struct strlist *files,
			    struct str *into, struct error *error)
{
	cleanup_free char *scratch = path_join(look->folder, "cargo-asm");
	cleanup_free char *path = listing_find_file(files, function->symbol, error);
	cleanup_free char *program = path != NULL ? listing_find_cargo_asm(look_text(look, "tools"), error) : NULL;
	cleanup_strlist struct strlist roots = {0};
	if (program == NULL)
		return -1;
	for (size_t i = 0; i < look->roots.count; i++)
		strlist_add(&roots, look->roots.items[i].folder);
	const struct listing_request request = {.program = program,
						.folder = scratch,
						.assembly = path,
						.symbol = function->symbol,
						.workspace = look_text(look, "reproducer"),
						.roots = &roots,
						.all_crates = true};
	return listing_cargo_asm(&request, listing_run_child, NULL, into, error);
}

static const struct {
	const char *files; /* member of the request */
	const char *kind;
	const char *suffix;
	const char *title;
	extract extract;
} forms[] = {
	{"assembly", "assembly", "cargo-asm.txt", "assembly with source lines (cargo-show-asm)", extract_assembly},
	{"ir", "ir", "function.ll", "LLVM IR as the compiler left it", extract_ir},
	{"mir", "mir", "function.mir", "MIR", extract_mir},
};

static int add_form(struct look *look, size_t form, size_t number, const struct listing_function *function, struct error *error)
{
	size_t index;
	json_t *path;
	cleanup_strlist struct strlist files = {0};
	cleanup_str struct str into = {0};
	cleanup_error struct error trouble = {0};
	json_array_foreach (json_object_get(look->request, forms[form].files), index, path)
		strlist_add(&files, json_string_value(path));
	if (files.count == 0 || forms[form].extract(look, function, &files, &into, &trouble) < 0) {
		look_miss(look, "%s has no listing as %s: %s", function->name, forms[form].title,
			  files.count > 0 ? error_text(&trouble) : "the build left none");
		return 0;
	}
	cleanup_free char *name = text_format("%zu-%s", number, forms[form].suffix);
	cleanup_free char *title = text_format("%s: %s", function->name, forms[form].title);
	return look_add_artifact(look, name, forms[form].kind, title, &into, error);
}

static int list_function(struct look *look, size_t number, const struct listing_function *function, struct error *error)
{
	cleanup_code struct code code = {0};
	cleanup_str struct str text = {0};
	cleanup_free char *name = text_format("%zu-disassembly.txt", number);
	cleanup_free char *title = text_format("%s: disassembled from the program that ran", function->name);
	json_t *accused;
	json_t *marks = list_marks(look, function, &accused);
	json_array_append_new(json_object_get(look->answer, "functions"),
			      json_pack("{s:s, s:s, s:I, s:s?, s:o, s:o}", "symbol", function->symbol, "name", function->name,
					"size", (json_int_t)function->size, "why", function->why, "accused", accused, "marks",
					marks));
	cleanup_error struct error trouble = {0};
	if (disassemble(look, look->binary, function, &code, &trouble) < 0) {
		look_miss(look, "%s is not disassembled: %s", function->name, error_text(&trouble));
		return 0;
	}
	listing_text(&code, look->deciding, look->deciding_count, &text);
	if (look_add_artifact(look, name, "disassembly", title, &text, error) < 0)
		return -1;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (add_form(look, i, number, function, error) < 0)
			return -1;
	return 0;
}

/* Comparison with the bad cell ------------------------------------------------------------------------------------------------ */

static uint64_t *bad_deciding(const json_t *bad, size_t *count)
{
	size_t index;
	size_t step;
	json_t *path;
	json_t *entry;
	size_t capacity = 0;
	uint64_t *addresses = NULL;
	*count = 0;
	json_array_foreach (json_object_get(bad, "paths"), index, path)
		json_array_foreach (json_object_get(path, "chain"), step, entry) {
			const char *address = json_string_value(json_object_get(entry, "address"));
			if (address == NULL)
				continue;
			addresses = memory_grow(addresses, *count, &capacity, sizeof *addresses);
			addresses[(*count)++] = strtoull(address, NULL, 16);
		}
	return addresses;
}

/* The rows around deciding ones; where none decides, the first that differ. */
static json_t *rows_that_matter(const struct comparison *comparison)
{
	json_t *all = compare_json(comparison);
	json_t *rows = json_array();
	bool any = false;
	cleanup_free bool *wanted = memory_new(comparison->count + 1, sizeof *wanted);
	for (size_t i = 0; i < comparison->count; i++)
		any = any || comparison->rows[i].deciding;
	for (size_t i = 0; i < comparison->count; i++) {
		if (any ? !comparison->rows[i].deciding : comparison->rows[i].mark < COMPARE_CHANGED)
			continue;
		size_t last = i + ROWS_AROUND < comparison->count ? i + ROWS_AROUND : comparison->count - 1;
		for (size_t j = i > ROWS_AROUND ? i - ROWS_AROUND : 0; j <= last; j++)
			wanted[j] = true;
	}
	for (size_t i = 0; i < comparison->count && json_array_size(rows) < MOST_ROWS; i++)
		if (wanted[i])
			json_array_append(rows, json_array_get(all, i));
	json_decref(all);
	return rows;
}

static int write_comparison(struct look *look, const struct comparison *comparison, const char *name, struct error *error)
{
	cleanup_str struct str sides = {0};
	cleanup_str struct str unified = {0};
	cleanup_str struct str summary = {0};
	compare_side_by_side(comparison, SIDE_BY_SIDE_WIDTH, &sides);
	compare_unified(comparison, ROWS_AROUND, &unified);
	compare_summary(comparison, &summary);
	size_t changed =
		comparison->marks[COMPARE_CHANGED] + comparison->marks[COMPARE_LEFT_ONLY] + comparison->marks[COMPARE_RIGHT_ONLY];
	json_object_set_new(look->answer, "comparison",
			    json_pack("{s:s, s:s, s:I, s:I, s:I, s:o}", "symbol", name, "summary", str_text(&summary), "same",
				      (json_int_t)comparison->marks[COMPARE_SAME], "renamed",
				      (json_int_t)comparison->marks[COMPARE_RENAMED], "changed", (json_int_t)changed, "rows",
				      rows_that_matter(comparison)));
	if (look_add_artifact(look, "side-by-side.txt", "diff", "the bad cell's function (left) and this one", &sides, error) < 0)
		return -1;
	return look_add_artifact(look, "comparison.diff", "diff", "the same as a unified difference", &unified, error);
}

static int compare_functions(struct look *look, const json_t *bad, const struct listing_function *function, struct error *error)
{
	cleanup_binary struct binary *binary = NULL;
	cleanup_error struct error trouble = {0};
	cleanup_free char *path = path_join(look_text(look, "compare"), "program");
	const json_t *first = json_array_get(json_object_get(bad, "functions"), 0);
	const char *symbol = json_string_value(json_object_get(first, "symbol"));
	if (symbol == NULL)
		return 0;
	if (binary_open(&binary, path, &trouble) < 0) {
		look_miss(look, "not compared with the bad cell: %s", error_text(&trouble));
		return 0;
	}
	size_t count;
	const struct binary_function *functions = binary_functions(binary, &count);
	size_t at = binary_function_named(binary, symbol, 0);
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	cleanup_comparison struct comparison comparison = {0};
	if (at >= count) {
		look_miss(look, "not compared with the bad cell: its program does not hold %s", symbol);
		return 0;
	}
	struct listing_function bad_function = {
		.symbol = function->symbol, .address = functions[at].address, .size = functions[at].size};
	if (disassemble(look, binary, &bad_function, &left, &trouble) < 0 ||
	    disassemble(look, look->binary, function, &right, &trouble) < 0) {
		look_miss(look, "%s is not compared with the bad cell: %s", function->name, error_text(&trouble));
		return 0;
	}
	size_t deciding_count;
	cleanup_free uint64_t *deciding = bad_deciding(bad, &deciding_count);
	const struct compare_deciding marks = {
		.left = deciding, .left_count = deciding_count, .right = look->deciding, .right_count = look->deciding_count};
	compare(&comparison, &left, &right, &marks);
	return write_comparison(look, &comparison, function->name, error);
}

/* Unsafe code --------------------------------------------------------------------------------------------------------------- */

static bool is_word_at(const char *text, const char *at)
{
	return (at == text || !rust_is_word(at[-1])) && !rust_is_word(at[strlen("unsafe")]);
}

/* Words "unsafe" in a file; generous: those in comments count too. */
static long long count_unsafe(const char *text)
{
	long long count = 0;
	for (const char *at = strstr(text, "unsafe"); at != NULL; at = strstr(at + 1, "unsafe"))
		count += is_word_at(text, at);
	return count;
}

/* Files that the function's code comes from, with all that is inlined. */
static void list_files(struct look *look, const struct listing_function *function, struct strlist *files)
{
	size_t asked = 0;
	for (uint64_t address = function->address; address < function->address + function->size && asked < MOST_FRAMES;
	     address += 4) {
		cleanup_source_frames struct source_frames frames = {0};
		asked++;
		binary_frames(look->binary, address, true, &frames);
		for (size_t i = 0; i < frames.count; i++)
			if (frames.items[i].file != NULL && !strlist_contains(files, frames.items[i].file))
				strlist_add(files, frames.items[i].file);
	}
}

/* The standard library is the toolchain's own: its unsafe code is no excuse for the compiler. */
static bool is_toolchains(const char *file)
{
	return text_starts_with(file, "/rustc/") || strstr(file, "/lib/rustlib/src/") != NULL ||
	       strstr(file, "/library/core/src/") != NULL || strstr(file, "/library/std/src/") != NULL ||
	       strstr(file, "/library/alloc/src/") != NULL;
}

/* -1: not known, because a file's text is not at hand. */
static long long look_for_unsafe(struct look *look, const struct listing_functions *chosen)
{
	long long count = 0;
	cleanup_strlist struct strlist files = {0};
	if (!binary_has_lines(look->binary))
		return -1;
	for (size_t i = 0; i < chosen->count && i < MOST_FUNCTIONS; i++)
		list_files(look, &chosen->items[i], &files);
	for (size_t i = 0; i < files.count; i++) {
		cleanup_str struct str text = {0};
		cleanup_error struct error error = {0};
		if (is_toolchains(files.items[i]))
			continue;
		if (fs_read_file(files.items[i], TEXT_LIMIT, &text, &error) < 0)
			return -1;
		count += count_unsafe(str_text(&text));
	}
	return files.count > 0 ? count : -1;
}

/* --------------------------------------------------------------------------------------------------------------------------- */

static json_t *read_bad_answer(struct look *look)
{
	json_error_t trouble;
	const char *folder = look_text(look, "compare");
	if (folder == NULL)
		return NULL;
	cleanup_free char *path = path_join(folder, "answer.json");
	json_t *answer = json_load_file(path, 0, &trouble);
	if (answer == NULL)
		look_miss(look, "not compared with the bad cell: %s: %s", path, trouble.text);
	return answer;
}

int look_at_code(struct look *look, struct error *error)
{
	cleanup_listing_functions struct listing_functions chosen = {0};
	json_object_set_new(look->answer, "functions", json_array());
	if (look->binary == NULL)
		return 0;
	json_t *bad = read_bad_answer(look);
	int result = 0;
	if (choose(look, bad, &chosen)) {
		for (size_t i = 0; result == 0 && i < chosen.count && i < MOST_FUNCTIONS; i++)
			result = list_function(look, i + 1, &chosen.items[i], error);
		if (result == 0 && bad != NULL && chosen.count > 0)
			result = compare_functions(look, bad, &chosen.items[0], error);
		json_object_set_new(look->answer, "unsafe", json_integer(look_for_unsafe(look, &chosen)));
	}
	json_decref(bad);
	return result;
}
