/* See declare.h. */
#include "evidence/declare.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "evidence/rust_text.h"
#include "fs.h"

enum {
	SOURCE_LIMIT = 4 << 20,
	DEEPEST = 12,
	MOST_FILES = 20000,
	FIND_LIMIT = 16384,
	WILD = 1, /* stands for an operand in normalized templates */
};

void declaration_clear(struct declaration *declaration)
{
	free(declaration->package.name);
	free(declaration->package.version);
	free(declaration->package.folder);
	free(declaration->file);
	free(declaration->find);
	free(declaration->replace);
	free(declaration->change);
	*declaration = (struct declaration){0};
}

void declare_roots_clear(struct declare_roots *roots)
{
	for (size_t i = 0; i < roots->count; i++) {
		free(roots->items[i].name);
		free(roots->items[i].version);
		free(roots->items[i].folder);
	}
	free(roots->items);
	*roots = (struct declare_roots){0};
}

static void add_root(struct declare_roots *roots, const char *name, const char *version, char *folder, bool reproducer)
{
	roots->items = memory_grow(roots->items, roots->count, &roots->capacity, sizeof *roots->items);
	roots->items[roots->count++] = (struct declare_root){
		.name = text_copy(name), .version = text_copy(version), .folder = folder, .reproducer = reproducer};
}

/* Templates ------------------------------------------------------------------------------------------------------------- */

/* One line of a template without blanks around it, runs of blanks as one, and WILD for every operand. */
static void add_line(struct strlist *lines, struct str *line)
{
	while (line->length > 0 && line->data[line->length - 1] == ' ')
		line->data[--line->length] = '\0';
	if (line->length > 0)
		strlist_add(lines, str_text(line));
	str_clear(line);
}

static void add_byte(struct str *line, char byte)
{
	bool blank = byte == ' ' || byte == '\t' || byte == '\r';
	if (blank && (line->length == 0 || line->data[line->length - 1] == ' '))
		return;
	str_append_bytes(line, blank ? " " : &byte, 1);
}

static const char wild[] = {WILD, '\0'};

/* As LLVM writes it: $0, ${0:q}, $$. */
static void normalize_block(const char *text, struct strlist *lines)
{
	cleanup_str struct str line = {0};
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\n') {
			add_line(lines, &line);
		} else if (at[0] == '$' && at[1] == '$') {
			add_byte(&line, '$');
			at++;
		} else if (at[0] == '$' && at[1] == '{') {
			const char *end = strchr(at, '}');
			str_append(&line, wild);
			at = end != NULL ? end : at + strlen(at) - 1;
		} else if (at[0] == '$' && isdigit((unsigned char)at[1])) {
			str_append(&line, wild);
			while (isdigit((unsigned char)at[1]))
				at++;
		} else {
			add_byte(&line, *at);
		}
	}
	add_line(lines, &line);
}

/* As asm! takes it: {name:q}, {{, }}. */
static void normalize_source(const char *text, struct strlist *lines)
{
	cleanup_str struct str line = {0};
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\n') {
			add_line(lines, &line);
		} else if ((at[0] == '{' && at[1] == '{') || (at[0] == '}' && at[1] == '}')) {
			add_byte(&line, *at++);
		} else if (at[0] == '{') {
			const char *end = strchr(at, '}');
			str_append(&line, wild);
			at = end != NULL ? end : at + strlen(at) - 1;
		} else {
			add_byte(&line, *at);
		}
	}
	add_line(lines, &line);
}

/* How much of the block's text the invocation says; 0 where a line of it is missing there. */
static size_t score(const struct strlist *block, const struct rust_invocation *invocation)
{
	size_t length = 0;
	for (size_t i = 0; i < invocation->literals.count; i++) {
		cleanup_strlist struct strlist lines = {0};
		normalize_source(invocation->literals.items[i], &lines);
		for (size_t j = 0; j < lines.count; j++) {
			if (!strlist_contains(block, lines.items[j]))
				return 0;
			length += strlen(lines.items[j]);
		}
	}
	return length;
}

/* Corrections ----------------------------------------------------------------------------------------------------------- */

/* The invocation without one of its options; NULL where it does not have it. */
static char *without_option(const struct rust_invocation *invocation, const char *text, const char *option)
{
	const char *start = text + invocation->start;
	const char *end = text + invocation->end;
	size_t length = strlen(option);
	if (invocation->options_start == 0)
		return NULL;
	for (const char *at = text + invocation->options_start; at + length <= text + invocation->options_end; at++) {
		if (strncmp(at, option, length) != 0 || rust_is_word(at[-1]) || rust_is_word(at[length]))
			continue;
		const char *after = at + length;
		const char *before = at;
		while (isspace((unsigned char)*after))
			after++;
		if (*after == ',') {
			after++;
			while (isspace((unsigned char)*after))
				after++;
		} else {
			while (before > start && (isspace((unsigned char)before[-1]) || before[-1] == ','))
				before--;
			after = at + length;
		}
		return text_format("%.*s%.*s", (int)(before - start), start, (int)(end - after), after);
	}
	return NULL;
}

/* With one more output for each register. */
static char *with_registers(const struct rust_invocation *invocation, const char *text, const char *registers)
{
	struct str corrected = {0};
	cleanup_str struct str outputs = {0};
	for (const char *at = registers; *at != '\0';) {
		size_t length = strcspn(at, ", ");
		if (length > 0)
			str_append_format(&outputs, "out(\"%.*s\") _, ", (int)length, at);
		at += length + strspn(at + length, ", ");
	}
	const char *start = text + invocation->start;
	/* before options(...), which must stand last; else before the closing bracket */
	const char *place = invocation->options_start > 0 ? text + invocation->options_word : text + invocation->end - 1;
	str_append_bytes(&corrected, start, (size_t)(place - start));
	if (invocation->options_start == 0) {
		while (corrected.length > 0 && isspace((unsigned char)corrected.data[corrected.length - 1]))
			corrected.data[--corrected.length] = '\0';
		if (corrected.length > 0 && corrected.data[corrected.length - 1] != ',')
			str_append(&corrected, ", ");
	}
	str_append(&corrected, str_text(&outputs));
	str_append_bytes(&corrected, place, (size_t)(text + invocation->end - place));
	return str_steal(&corrected);
}

static char *correct(const struct rust_invocation *invocation, const char *text, const char *promise, const char *registers,
		     char **change)
{
	static const char *const options[] = {"preserves_flags", "nomem", "readonly", "nostack", "pure"};
	for (size_t i = 0; promise != NULL && i < sizeof options / sizeof options[0]; i++) {
		if (strcmp(options[i], promise) != 0)
			continue;
		char *corrected = without_option(invocation, text, promise);
		*change = corrected != NULL ? text_format("without %s", promise) : NULL;
		return corrected;
	}
	if (registers == NULL || registers[0] == '\0')
		return NULL;
	*change = text_format("with %s declared as clobbered", registers);
	return with_registers(invocation, text, registers);
}

/* Search ---------------------------------------------------------------------------------------------------------------- */

struct search {
	const struct strlist *block;
	const char *promise;
	const char *registers;
	struct declaration *best;
	size_t best_score;
	size_t files;
};

static long long count_lines(const char *text, size_t length)
{
	long long lines = 1;
	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

static long long count_matches(const char *text, const char *find)
{
	long long count = 0;
	size_t length = strlen(find);
	for (const char *at = strstr(text, find); at != NULL; at = strstr(at + length, find))
		count++;
	return count;
}

/* Returns whether it is the best so far. */
static bool consider(struct search *search, const char *text, const struct rust_invocation *invocation)
{
	size_t length = invocation->end - invocation->start;
	size_t value = length <= FIND_LIMIT ? score(search->block, invocation) : 0;
	char *change = NULL;
	if (value <= search->best_score)
		return false;
	char *corrected = correct(invocation, text, search->promise, search->registers, &change);
	if (corrected == NULL)
		return false;
	declaration_clear(search->best);
	search->best_score = value;
	search->best->line = count_lines(text, invocation->start);
	search->best->find = text_copy_range(text + invocation->start, length);
	search->best->replace = corrected;
	search->best->change = change;
	search->best->matches = count_matches(text, search->best->find);
	return true;
}

static bool search_text(struct search *search, const char *text)
{
	struct rust_invocation invocation = {0};
	bool better = false;
	size_t at = 0;
	while (rust_next_invocation(text, &at, "asm", &invocation)) {
		better = consider(search, text, &invocation) || better;
		rust_invocation_clear(&invocation);
	}
	return better;
}

static int search_file(struct search *search, const struct declare_root *root, const char *path, struct error *error)
{
	cleanup_str struct str text = {0};
	if (search->files++ >= MOST_FILES || fs_read_file(path, SOURCE_LIMIT, &text, error) < 0) {
		error_clear(error); /* too large, or gone: no source of this block */
		return 0;
	}
	if (strstr(str_text(&text), "asm") == NULL || !search_text(search, str_text(&text)))
		return 0;
	search->best->file = text_copy(path + strlen(root->folder) + 1);
	search->best->package = (struct declare_root){.name = text_copy(root->name),
						      .version = text_copy(root->version),
						      .folder = text_copy(root->folder),
						      .reproducer = root->reproducer};
	return 0;
}

static int search_folder(struct search *search, const struct declare_root *root, const char *folder, int depth, struct error *error)
{
	cleanup_strlist struct strlist names = {0};
	if (depth > DEEPEST || !path_is_folder(folder))
		return 0;
	if (fs_list_folder(folder, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct stat status;
		cleanup_free char *path = path_join(folder, names.items[i]);
		if (lstat(path, &status) < 0 || strcmp(names.items[i], "target") == 0 || names.items[i][0] == '.')
			continue;
		if (S_ISDIR(status.st_mode) && search_folder(search, root, path, depth + 1, error) < 0)
			return -1;
		if (S_ISREG(status.st_mode) && text_ends_with(path, ".rs") && search_file(search, root, path, error) < 0)
			return -1;
	}
	return 0;
}

int declare_find(const struct declare_roots *roots, const char *block_template, const char *promise, const char *registers,
		 struct declaration *declaration, struct error *error)
{
	cleanup_strlist struct strlist block = {0};
	*declaration = (struct declaration){0};
	normalize_block(block_template, &block);
	struct search search = {.block = &block, .promise = promise, .registers = registers, .best = declaration};
	for (size_t i = 0; i < roots->count; i++)
		if (search_folder(&search, &roots->items[i], roots->items[i].folder, 0, error) < 0)
			return error_wrap(error, "looking for the declaration of a block in %s", roots->items[i].folder);
	return 0;
}

void declare_find_in_text(const char *text, const char *block_template, const char *promise, const char *registers,
			  struct declaration *declaration)
{
	cleanup_strlist struct strlist block = {0};
	*declaration = (struct declaration){0};
	normalize_block(block_template, &block);
	struct search search = {.block = &block, .promise = promise, .registers = registers, .best = declaration};
	search_text(&search, text);
}

/* Roots ----------------------------------------------------------------------------------------------------------------- */

/* The text between the first pair of quotes of a line that starts with `key`; NULL where it does not.  Owned. */
static char *quoted_value(const char *line, const char *key)
{
	if (!text_starts_with(line, key))
		return NULL;
	const char *open = strchr(line, '"');
	const char *newline = strchr(line, '\n');
	const char *close = open != NULL ? strchr(open + 1, '"') : NULL;
	if (close == NULL || (newline != NULL && newline < close))
		return NULL;
	return text_copy_range(open + 1, (size_t)(close - open - 1));
}

static const char *next_line(const char *line)
{
	const char *newline = strchr(line, '\n');
	return newline != NULL ? newline + 1 : line + strlen(line);
}

static void add_locked(const char *lock, const struct strlist *folders, struct declare_roots *roots)
{
	cleanup_free char *name = NULL;
	for (const char *line = lock; *line != '\0'; line = next_line(line)) {
		char *found = quoted_value(line, "name = ");
		if (found != NULL) {
			free(name);
			name = found;
		}
		cleanup_free char *version = quoted_value(line, "version = ");
		for (size_t i = 0; version != NULL && name != NULL && i < folders->count; i++) {
			cleanup_free char *folder = text_format("%s/%s-%s", folders->items[i], name, version);
			cleanup_free char *real = realpath(folder, NULL); /* the vendor folder is made of links */
			if (real != NULL)
				add_root(roots, name, version, text_copy(real), false);
		}
	}
}

/* Every package below an edited copy, whose path cargo was told. */
static void add_edited(const char *folder, int depth, struct declare_roots *roots)
{
	cleanup_free char *manifest = path_join(folder, "Cargo.toml");
	cleanup_str struct str text = {0};
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error error = {0};
	if (depth > 3 || fs_list_folder(folder, &names, &error) < 0)
		return;
	if (path_exists(manifest) && fs_read_file(manifest, SOURCE_LIMIT, &text, &error) == 0) {
		cleanup_free char *name = NULL;
		cleanup_free char *version = NULL;
		for (const char *line = str_text(&text); *line != '\0'; line = next_line(line)) {
			if (name == NULL)
				name = quoted_value(line, "name = ");
			if (version == NULL)
				version = quoted_value(line, "version = ");
			if (line[0] == '[' && name != NULL && version != NULL)
				break;
		}
		if (name != NULL)
			add_root(roots, name, version, text_copy(folder), false);
	}
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *child = path_join(folder, names.items[i]);
		struct stat status;
		if (names.items[i][0] != '.' && strcmp(names.items[i], "src") != 0 && lstat(child, &status) == 0 &&
		    S_ISDIR(status.st_mode))
			add_edited(child, depth + 1, roots);
	}
}

/* <edited>/KEY/NAME/...: the whole copy, because a package's neighbours come from it too. */
static void add_patch(const char *path, struct declare_roots *roots, struct strlist *seen)
{
	const char *edited = strstr(path, "/edited/");
	const char *key = edited != NULL ? strchr(edited + strlen("/edited/"), '/') : NULL;
	const char *end = key != NULL ? strchr(key + 1, '/') : NULL;
	cleanup_free char *top = end != NULL ? text_copy_range(path, (size_t)(end - path)) : text_copy(path);
	if (strlist_contains(seen, top))
		return;
	strlist_add(seen, top);
	add_edited(top, 0, roots);
}

int declare_roots(const char *reproducer, const char *prepared, struct declare_roots *roots, struct error *error)
{
	add_root(roots, path_base(reproducer), NULL, text_copy(reproducer), true);
	if (prepared == NULL)
		return 0;
	cleanup_free char *lock_path = path_join(prepared, "Cargo.lock");
	cleanup_free char *config_path = path_join(prepared, "cargo-config.toml");
	cleanup_str struct str lock = {0};
	cleanup_str struct str config = {0};
	cleanup_strlist struct strlist folders = {0};
	cleanup_strlist struct strlist seen = {0};
	if (!path_exists(lock_path) || !path_exists(config_path))
		return 0;
	if (fs_read_file(lock_path, SOURCE_LIMIT, &lock, error) < 0 || fs_read_file(config_path, SOURCE_LIMIT, &config, error) < 0)
		return -1;
	for (const char *line = str_text(&config); *line != '\0'; line = next_line(line)) {
		cleanup_free char *patch = quoted_value(line, "path = ");
		char *folder = quoted_value(line, "directory = ");
		if (patch != NULL)
			add_patch(patch, roots, &seen);
		if (folder != NULL)
			strlist_add_owned(&folders, folder);
	}
	add_locked(str_text(&lock), &folders, roots);
	return 0;
}
