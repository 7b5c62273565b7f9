/*
 * See assemble.h.
 *
 * Each block stands in a section of its own between two labels.  The assembler's messages name lines, and lines belong
 * to blocks: blocks that it complains about are taken out and the rest is tried again.  Where it fails without naming a
 * line (it crashed, ran out of time, or a block changed the numbering of lines) the blocks are halved until the culprit
 * stands alone.
 */
#include "assemble.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "evidence/assemble_object.h"
#include "evidence/template.h"
#include "fs.h"
#include "os.h"

enum {
	ROUNDS_MAX = 16,
	BATCH = 4096, /* blocks in one process: an ELF file numbers its sections up to 65,280 without tricks */
	OUTPUT_LIMIT = 8 << 20, /* bytes of messages */
};

/* AArch64: everything that an assembler may know.  What this one does not know is left out after its first complaint.
 */
static const char *const extensions_arm64[] = {
	".arch armv8.7-a",         ".arch_extension crc",    ".arch_extension lse",  ".arch_extension rcpc",
	".arch_extension aes",     ".arch_extension sha2",   ".arch_extension sha3", ".arch_extension sm4",
	".arch_extension rng",     ".arch_extension memtag", ".arch_extension sve2", ".arch_extension ls64",
	".arch_extension predres", ".arch_extension pan",    ".arch_extension ras",  ".arch_extension pauth",
	".arch_extension flagm",
};
enum { EXTENSION_COUNT = sizeof extensions_arm64 / sizeof extensions_arm64[0] };

struct run {
	const struct assembler *assembler;
	struct assembly *blocks;
	size_t count;
	char *program;
	char *folder;
	char *source;
	char *object;
	long long deadline; /* of os_monotonic_ms */
	bool extension_known[EXTENSION_COUNT];
};

/* ---- which clang ---- */

static void look_in_folder(const char *folder, char **plain, char **numbered, long *best)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_error struct error ignored = {0};
	if (folder[0] != '/' || fs_list_folder(folder, &names, &ignored) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		char *end = NULL;
		long number = text_starts_with(name, "clang-") ? strtol(name + 6, &end, 10) : 0;
		bool is_plain = strcmp(name, "clang") == 0;
		bool is_numbered = number > 0 && *end == '\0';
		if (!is_plain && !is_numbered)
			continue;
		cleanup_free char *path = path_join(folder, name);
		if (access(path, X_OK) < 0)
			continue;
		if (is_plain && *plain == NULL) {
			*plain = text_copy(path);
		} else if (is_numbered && number > *best) {
			free(*numbered);
			*numbered = text_copy(path);
			*best = number;
		}
	}
}

/* The N of "clang version N.…"; 0 where it does not say. */
static long ask_version(const char *program)
{
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_child_output struct child_output output = {0};
	cleanup_error struct error ignored = {0};
	strlist_add(&command, program);
	strlist_add(&command, "--version");
	child_own_environment(&environment);
	if (child_capture(&command, &environment, NULL, 10000, 1 << 16, &output, &ignored) < 0)
		return 0;
	const char *version = strstr(str_text(&output.output), "version ");
	return version != NULL ? strtol(version + 8, NULL, 10) : 0;
}

int assemble_find_program(char **program, struct error *error)
{
	const char *path = getenv("PATH");
	cleanup_free char *folders = text_copy(path != NULL ? path : "/usr/bin:/bin");
	cleanup_free char *plain = NULL;
	cleanup_free char *numbered = NULL;
	long best = 0;
	char *rest = folders;
	for (char *folder = strsep(&rest, ":"); folder != NULL; folder = strsep(&rest, ":"))
		look_in_folder(folder, &plain, &numbered, &best);
	if (plain == NULL && numbered == NULL)
		return error_set(error,
				 "there is no clang on PATH, which the audit assembles with (make deps installs it)");
	bool use_plain = numbered == NULL || (plain != NULL && ask_version(plain) >= best);
	*program = text_copy(use_plain ? plain : numbered);
	return 0;
}

/* ---- the file for the assembler ---- */

struct lines {
	size_t *first; /* line on which each block starts, from 1; blocks that are left out start where the next does */
	size_t total;
};

static void add_line(struct str *text, size_t *line, const char *words)
{
	str_append_format(text, "%s\n", words);
	++*line;
}

static void add_block(const struct run *run, size_t index, struct str *text, size_t *line)
{
	const struct assembly *block = &run->blocks[index];
	bool x86 = run->assembler->kind == MACHINE_X86_64;
	cleanup_free char *head =
		text_format(".section .text.bisectd.%zu,\"ax\",%%progbits\n%s\nbisectd_begin_%zu:", index,
			    !x86           ? ""
			    : block->intel ? ".code64\n.intel_syntax noprefix"
					   : ".code64\n.att_syntax prefix",
			    index);
	add_line(text, line, head);
	for (const char *at = head; *at != '\0'; at++)
		*line += *at == '\n';
	add_line(text, line, block->text);
	for (const char *at = block->text; *at != '\0'; at++)
		*line += *at == '\n';
	cleanup_free char *tail = text_format("bisectd_end_%zu:", index);
	add_line(text, line, tail);
	for (size_t label = 0; label < block->label_count; label++) {
		cleanup_free char *name = template_label(index, label);
		cleanup_free char *place = text_format("%s: %s", name, x86 ? ".byte 0x90" : ".inst 0xd503201f");
		add_line(text, line, place);
	}
}

static void write_text(const struct run *run, const size_t *members, size_t count, struct str *text,
		       struct lines *lines)
{
	size_t line = 1;
	for (size_t i = 0; i < EXTENSION_COUNT; i++)
		add_line(text, &line,
			 run->assembler->kind == MACHINE_AARCH64 && run->extension_known[i] ? extensions_arm64[i] : "");
	for (size_t i = 0; i < count; i++) {
		lines->first[i] = line;
		add_block(run, members[i], text, &line);
	}
	lines->total = line;
}

/* ---- what the assembler says ---- */

static void refuse(struct assembly *block, const char *before, const char *words)
{
	if (block->refused == NULL)
		block->refused = text_format("%s%s", before, words);
}

static void blame_line(struct run *run, const size_t *members, size_t count, const struct lines *lines, size_t line,
		       const char *message, size_t *blamed)
{
	if (line >= 1 && line <= EXTENSION_COUNT) {
		*blamed += run->extension_known[line - 1];
		run->extension_known[line - 1] = false;
		return;
	}
	size_t low = 0;
	while (low + 1 < count && lines->first[low + 1] <= line)
		low++;
	if (count == 0 || line < lines->first[0] || line >= lines->total)
		return;
	struct assembly *block = &run->blocks[members[low]];
	*blamed += block->refused == NULL;
	refuse(block, "the assembler refuses it: ", message);
}

/* "FILE:12:3: error: what", or a note of the same form that says where a macro of that error was used. */
static void read_messages(struct run *run, const size_t *members, size_t count, const struct lines *lines,
			  char *messages, size_t *blamed)
{
	cleanup_free char *pending = NULL; /* an error inside a macro: the note that follows has the line */
	char *rest = messages;
	for (char *message = strsep(&rest, "\n"); message != NULL; message = strsep(&rest, "\n")) {
		char *error = strstr(message, ": error: ");
		bool ours = text_starts_with(message, run->source) && message[strlen(run->source)] == ':';
		size_t line = ours ? strtoul(message + strlen(run->source) + 1, NULL, 10) : 0;
		if (error != NULL && ours) {
			blame_line(run, members, count, lines, line, error + strlen(": error: "), blamed);
		} else if (error != NULL) {
			free(pending);
			pending = text_copy(error + strlen(": error: "));
		} else if (ours && pending != NULL && strstr(message, ": note: ") != NULL) {
			blame_line(run, members, count, lines, line, pending, blamed);
			free(pending);
			pending = NULL;
		}
	}
}

/* ---- running it ---- */

/* Limits: seconds of processor time (far above what so many blocks need), KiB of memory, 512 bytes of file. */
static char *limits_text(size_t count)
{
	return text_format("ulimit -c 0; ulimit -t %zu; ulimit -v 4194304; ulimit -f 1048576; exec \"$@\"",
			   3 + count / 100);
}

static void build_command(const struct run *run, const char *limits, struct strlist *command)
{
	const char *const words[] = {"/bin/sh",
				     "-c",
				     limits,
				     "sh",
				     run->program,
				     "-target",
				     run->assembler->kind == MACHINE_X86_64 ? "x86_64-linux-gnu" : "aarch64-linux-gnu",
				     "-w",
				     "-c",
				     "-x",
				     "assembler",
				     "-o",
				     run->object,
				     run->source};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		strlist_add(command, words[i]);
}

enum attempt { ATTEMPT_GOOD, ATTEMPT_BLAMED, ATTEMPT_FAILED };

/* Once, over the members that are not refused; `why` says what happened where nobody could be blamed. */
static int attempt(struct run *run, const size_t *members, size_t count, enum attempt *end, char **why,
		   struct error *error)
{
	cleanup_str struct str text = {0};
	cleanup_strlist struct strlist command = {0};
	cleanup_strmap struct strmap environment = {0};
	cleanup_child_output struct child_output output = {0};
	cleanup_error struct error trouble = {0};
	cleanup_free size_t *first = memory_new(count + 1, sizeof *first);
	struct lines lines = {.first = first};
	long long left = run->deadline - os_monotonic_ms();
	write_text(run, members, count, &text, &lines);
	if (fs_write_file(run->source, str_text(&text), text.length, error) < 0)
		return -1;
	unlink(run->object);
	child_own_environment(&environment);
	strmap_set(&environment, "LC_ALL", "C");
	cleanup_free char *limits = limits_text(count);
	build_command(run, limits, &command);
	*end = ATTEMPT_FAILED;
	if (child_capture(&command, &environment, run->folder, left > 1 ? left : 1, OUTPUT_LIMIT, &output, &trouble) <
	    0) {
		*why = text_copy(error_text(&trouble));
		return 0;
	}
	if (WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0) {
		*end = ATTEMPT_GOOD;
		return 0;
	}
	size_t blamed = 0;
	cleanup_free char *status = child_status_text(output.status);
	*why = text_format("the assembler ended with %s", status);
	if (output.errors.length > 0)
		read_messages(run, members, count, &lines, output.errors.data, &blamed);
	*end = blamed > 0 ? ATTEMPT_BLAMED : ATTEMPT_FAILED;
	return 0;
}

static size_t take_open(const struct run *run, const size_t *from, size_t count, size_t *members)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (run->blocks[from[i]].refused == NULL)
			members[kept++] = from[i];
	return kept;
}

static void refuse_all(struct run *run, const size_t *members, size_t count, const char *why)
{
	for (size_t i = 0; i < count; i++)
		refuse(&run->blocks[members[i]], "", why);
}

/* Every member ends up with bytes or refused. */
static int assemble_members(struct run *run, const size_t *from, size_t count, struct error *error)
{
	cleanup_free size_t *members = memory_new(count + 1, sizeof *members);
	for (size_t round = 0; round < ROUNDS_MAX; round++) {
		cleanup_free char *why = NULL;
		enum attempt end;
		size_t open = take_open(run, from, count, members);
		if (open == 0)
			return 0;
		if (os_monotonic_ms() >= run->deadline) {
			refuse_all(run, members, open, "there was no time left to assemble it");
			return 0;
		}
		if (attempt(run, members, open, &end, &why, error) < 0)
			return -1;
		if (end == ATTEMPT_GOOD)
			return assemble_read_object(run->object, run->blocks, members, open, error);
		if (end == ATTEMPT_BLAMED)
			continue;
		if (open == 1) {
			refuse_all(run, members, 1, why);
			return 0;
		}
		size_t half = open / 2;
		if (assemble_members(run, members, half, error) < 0)
			return -1;
		return assemble_members(run, members + half, open - half, error);
	}
	size_t open = take_open(run, from, count, members);
	refuse_all(run, members, open, "the assembler went on complaining about its neighbours");
	return 0;
}

static int open_run(struct run *run, struct error *error)
{
	const char *parent = getenv("TMPDIR");
	run->folder = text_format("%s/bisectd-assemble-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
	if (mkdtemp(run->folder) == NULL) {
		free(run->folder);
		run->folder = NULL;
		return error_set_errno(error, "cannot make a temporary folder");
	}
	run->source = path_join(run->folder, "blocks.s");
	run->object = path_join(run->folder, "blocks.o");
	if (run->assembler->program == NULL)
		return assemble_find_program(&run->program, error);
	run->program = text_copy(run->assembler->program);
	if (strchr(run->program, '/') != NULL && access(run->program, X_OK) < 0)
		return error_set_errno(error, "cannot run the assembler %s", run->program);
	return 0;
}

static void close_run(struct run *run)
{
	cleanup_error struct error ignored = {0};
	if (run->folder != NULL)
		fs_remove_tree(run->folder, &ignored);
	free(run->folder);
	free(run->source);
	free(run->object);
	free(run->program);
}

int assemble(const struct assembler *assembler, struct assembly *blocks, size_t count, struct error *error)
{
	long long timeout = assembler->timeout_ms > 0 ? assembler->timeout_ms : ASSEMBLE_DEFAULT_MS;
	struct run run = {
		.assembler = assembler, .blocks = blocks, .count = count, .deadline = os_monotonic_ms() + timeout};
	cleanup_free size_t *members = memory_new(count + 1, sizeof *members);
	size_t open = 0;
	for (size_t i = 0; i < EXTENSION_COUNT; i++)
		run.extension_known[i] = true;
	for (size_t i = 0; i < count; i++) {
		const char *refusal =
			blocks[i].text != NULL && blocks[i].refused == NULL ? template_refusal(blocks[i].text) : NULL;
		if (refusal != NULL)
			blocks[i].refused = text_copy(refusal);
		else if (blocks[i].text != NULL && blocks[i].refused == NULL)
			members[open++] = i;
	}
	if (open == 0)
		return 0;
	int result = open_run(&run, error);
	for (size_t at = 0; result == 0 && at < open; at += BATCH)
		result = assemble_members(&run, members + at, open - at < BATCH ? open - at : BATCH, error);
	close_run(&run);
	return result;
}

void assembly_clear(struct assembly *block)
{
	free(block->text);
	free(block->bytes);
	free(block->relocations);
	free(block->refused);
	*block = (struct assembly){0};
}
