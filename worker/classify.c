/* See classify.h. */
#include "classify.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "child.h"

enum { EXIT_SKIP = 125, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127, SIGNATURE_BYTES = 200 };

static void judge(struct judgement *judgement, enum outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void judge(struct judgement *judgement, enum outcome outcome, const char *format, ...)
{
	struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	free(judgement->reason);
	judgement->outcome = outcome;
	judgement->reason = str_steal(&text);
}

void judgement_clear(struct judgement *judgement)
{
	free(judgement->reason);
	free(judgement->signature);
	*judgement = (struct judgement){0};
}

/* The next line of [at, end) without its newline; false at the end. */
static bool next_line(const char **at, const char *end, const char **line, size_t *length)
{
	if (*at >= end)
		return false;
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	*line = *at;
	*length = (size_t)((newline != NULL ? newline : end) - *at);
	*at = newline != NULL ? newline + 1 : end;
	return true;
}

/* The length of a terminal's escape sequence (ECMA-48: ESC [ parameters, final byte) at `at`; 0 where there is none. */
static size_t escape_length(const char *at, size_t left)
{
	if (left < 2 || at[0] != '\033' || at[1] != '[')
		return 0;
	size_t length = 2;
	while (length < left && (unsigned char)at[length] < '@')
		length++;
	return length < left ? length + 1 : left;
}

/* A line as one clean text: no colours, control characters as blanks, cut at 200 bytes but not within a UTF-8
 * character. */
static char *clean_line(const char *line, size_t length)
{
	struct str text = {0};
	for (size_t i = 0; i < length && text.length <= SIGNATURE_BYTES; i++) {
		size_t escape = escape_length(line + i, length - i);
		bool control = (unsigned char)line[i] < ' ' || line[i] == 0x7f;
		if (escape > 0)
			i += escape - 1;
		else if (text.length > 0 || !(control || line[i] == ' '))
			str_append_bytes(&text, control ? " " : line + i, 1);
	}
	char *clean = str_steal(&text);
	size_t end = strlen(clean);
	if (end > SIGNATURE_BYTES)
		for (end = SIGNATURE_BYTES; end > 0 && ((unsigned char)clean[end] & 0xc0) == 0x80;)
			end--;
	while (end > 0 && clean[end - 1] == ' ')
		end--;
	clean[end] = '\0';
	return clean;
}

char *first_line(const char *output, size_t length)
{
	const char *end = output + length;
	const char *line;
	size_t line_length;
	while (next_line(&output, end, &line, &line_length)) {
		char *text = clean_line(line, line_length);
		if (*text != '\0')
			return text;
		free(text);
	}
	return NULL;
}

static bool is_crash_signal(int number)
{
	return number == SIGSEGV || number == SIGABRT || number == SIGILL || number == SIGBUS || number == SIGFPE ||
	       number == SIGTRAP;
}

/* Compilers show the source beside their messages as "  12 | text": what stands there is not theirs. */
static bool is_shown_source(const char *line)
{
	line += strspn(line, " ");
	size_t digits = strspn(line, "0123456789");
	line += digits;
	line += strspn(line, " ");
	return *line == '|';
}

/*
 * cargo on a child that a signal killed: "process didn't exit successfully: `/path/rustc --crate-name ...` (signal: 11,
 * SIGSEGV: invalid memory reference)".  A build script that crashes is reported in the same words and is no compiler.
 */
static bool is_killed_rustc(const char *line)
{
	const char *program = strstr(line, "process didn't exit successfully: `");
	const char *signal_text = strstr(line, "(signal: ");
	if (program == NULL || signal_text == NULL)
		return false;
	program = strchr(program, '`') + 1;
	cleanup_free char *words = text_copy_range(program, strcspn(program, "`"));
	bool rustc = false;
	/* a wrapper may stand before it: `sccache /path/rustc ...` */
	for (char *rest = NULL, *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		const char *slash = strrchr(word, '/');
		if (word[0] == '-')
			break;
		rustc = rustc || strcmp(slash != NULL ? slash + 1 : word, "rustc") == 0;
	}
	return rustc && is_crash_signal((int)strtol(signal_text + strlen("(signal: "), NULL, 10));
}

static bool tells_compiler_crash(const char *line)
{
	static const char *const signs[] = {
		"internal compiler error",            /* gcc, rustc */
		"the compiler unexpectedly panicked", /* rustc */
		"rustc interrupted by SIG",           /* rustc from 1.79 on */
		"PLEASE submit a bug report",         /* clang */
		"PLEASE ATTACH THE FOLLOWING FILES",  /* clang */
		"LLVM ERROR: ", /* LLVM in either; what it says for want of memory comes elsewhere */
	};
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
		if (strstr(line, signs[i]) != NULL && strstr(line, "out of memory") == NULL)
			return true;
	return is_killed_rustc(line);
}

char *find_compiler_crash(const char *output, size_t length)
{
	const char *end = output + length;
	const char *line;
	size_t line_length;
	while (next_line(&output, end, &line, &line_length)) {
		cleanup_free char *text = text_copy_range(line, line_length);
		if (!is_shown_source(text) && tells_compiler_crash(text))
			return clean_line(line, line_length);
	}
	return NULL;
}

/* The first line that looks like a compiler's error. */
static char *find_error_line(const char *output, size_t length)
{
	const char *end = output + length;
	const char *line;
	size_t line_length;
	while (next_line(&output, end, &line, &line_length)) {
		cleanup_free char *text = text_copy_range(line, line_length);
		if (text_starts_with(text, "error: ") || text_starts_with(text, "error[") ||
		    strstr(text, ": error: ") != NULL || strstr(text, ": fatal error: ") != NULL)
			return clean_line(line, line_length);
	}
	return NULL;
}

static bool output_holds(const struct command_result *result, const char *text)
{
	return result->output.length > 0 &&
	       memmem(result->output.data, result->output.length, text, strlen(text)) != NULL;
}

static bool ended_with(const struct command_result *result, int exit_status)
{
	return result->end == COMMAND_ENDED && WIFEXITED(result->status) && WEXITSTATUS(result->status) == exit_status;
}

static bool killed_by(const struct command_result *result, int number)
{
	return result->end == COMMAND_ENDED && WIFSIGNALED(result->status) && WTERMSIG(result->status) == number;
}

/* Trouble that is ours or the machine's, not the cell's.  True where it is. */
static bool judge_infrastructure(const struct command_setup *setup, const struct command_result *result, bool disk_full,
				 struct judgement *judgement)
{
	cleanup_free char *end = command_end_text(setup, result);
	bool says_full = output_holds(result, "No space left on device") || output_holds(result, "os error 28") ||
			 output_holds(result, "Disk quota exceeded");
	if (result->end == COMMAND_NOT_STARTED || result->end == COMMAND_LOST || result->end == COMMAND_SYSTEM_MEMORY)
		judge(judgement, OUTCOME_ERROR, "%s: %s", setup->title, end);
	else if (disk_full || (says_full && setup->title[0] == 'b'))
		judge(judgement, OUTCOME_ERROR, "%s: the disk is full (%s)", setup->title, end);
	else
		return false;
	return true;
}

static bool is_program_missing(const struct command_result *result)
{
	return ended_with(result, EXIT_CANNOT_RUN) || ended_with(result, EXIT_NOT_FOUND);
}

static void judge_missing(const struct command_setup *setup, const struct command_result *result,
			  struct judgement *judgement)
{
	int status = WEXITSTATUS(result->status);
	judge(judgement, OUTCOME_ERROR, "%s: exit status %d: a program that it needs %s", setup->title, status,
	      status == EXIT_CANNOT_RUN ? "cannot be run" : "is missing");
}

void judge_build(const struct command_setup *setup, const struct command_result *result, bool disk_full,
		 struct judgement *judgement)
{
	*judgement = (struct judgement){.outcome = OUTCOME_PASS};
	if (ended_with(result, 0))
		return;
	if (judge_infrastructure(setup, result, disk_full, judgement))
		return;
	cleanup_free char *end = command_end_text(setup, result);
	const char *output = str_text(&result->output);
	cleanup_free char *crash = find_compiler_crash(output, result->output.length);
	if (ended_with(result, EXIT_SKIP)) {
		judge(judgement, OUTCOME_SKIP, "%s: exit status %d asks to skip", setup->title, EXIT_SKIP);
	} else if (is_program_missing(result)) {
		judge_missing(setup, result, judgement);
	} else if (result->end != COMMAND_ENDED) {
		judge(judgement, OUTCOME_BUILD_FAIL, "%s: %s", setup->title, end);
	} else if (crash != NULL) {
		judge(judgement, OUTCOME_ICE, "%s: the compiler crashed: %s", setup->title, crash);
		judgement->signature = text_copy(crash);
	} else if (WIFSIGNALED(result->status) && is_crash_signal(WTERMSIG(result->status))) {
		judge(judgement, OUTCOME_ICE, "%s: the compiler crashed: %s", setup->title, end);
		judgement->signature = text_copy(end);
	} else if (killed_by(result, SIGXFSZ)) {
		judge(judgement, OUTCOME_BUILD_FAIL, "%s: it wrote a file of more than %lld MiB", setup->title,
		      setup->limits.file_bytes >> 20);
	} else {
		judgement->signature = find_error_line(output, result->output.length);
		judge(judgement, OUTCOME_BUILD_FAIL, "%s: %s%s%s", setup->title, end,
		      judgement->signature != NULL ? ": " : "",
		      judgement->signature != NULL ? judgement->signature : "");
	}
}

/* regexec stops at a NUL, which a program may print. */
static bool output_matches(const struct command_result *result, const regex_t *pattern)
{
	cleanup_free char *text = text_copy_range(str_text(&result->output), result->output.length);
	for (size_t i = 0; i < result->output.length; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	return regexec(pattern, text, 0, NULL, 0) == 0;
}

static void judge_exit(const struct command_setup *setup, const struct command_result *result,
		       const struct expectation *expected, struct judgement *judgement)
{
	int status = WEXITSTATUS(result->status);
	if (status == expected->exit_status) {
		if (expected->output == NULL || output_matches(result, expected->output))
			return;
		judge(judgement, OUTCOME_FAIL, "%s: the output does not match%s", setup->title,
		      result->output_cut ? " (as far as it was kept)" : "");
	} else if (status == EXIT_SKIP) {
		judge(judgement, OUTCOME_SKIP, "%s: exit status %d asks to skip", setup->title, EXIT_SKIP);
	} else if (is_program_missing(result)) {
		judge_missing(setup, result, judgement);
	} else {
		judge(judgement, OUTCOME_FAIL, "%s: exit status %d, not %d", setup->title, status,
		      expected->exit_status);
	}
}

void judge_run(const struct command_setup *setup, const struct command_result *result,
	       const struct expectation *expected, bool disk_full, struct judgement *judgement)
{
	*judgement = (struct judgement){.outcome = OUTCOME_PASS};
	cleanup_free char *end = command_end_text(setup, result);
	if (!ended_with(result, expected->exit_status) && judge_infrastructure(setup, result, disk_full, judgement))
		return;
	if (result->end == COMMAND_OVER_TIME)
		judge(judgement, OUTCOME_TIMEOUT, "%s: %s", setup->title, end);
	else if (result->end != COMMAND_ENDED)
		judge(judgement, OUTCOME_FAIL, "%s: %s", setup->title, end);
	else if (killed_by(result, SIGXFSZ))
		judge(judgement, OUTCOME_FAIL, "%s: it wrote a file of more than %lld MiB", setup->title,
		      setup->limits.file_bytes >> 20);
	else if (WIFSIGNALED(result->status))
		judge(judgement, OUTCOME_CRASH, "%s: %s", setup->title, end);
	else
		judge_exit(setup, result, expected, judgement);
	if (judgement->outcome != OUTCOME_PASS)
		judgement->signature = first_line(str_text(&result->output), result->output.length);
}

enum outcome judge_runs(const size_t counts[OUTCOME_COUNT])
{
	static const enum outcome order[] = {OUTCOME_ERROR, OUTCOME_SKIP};
	static const enum outcome failures[] = {OUTCOME_CRASH, OUTCOME_TIMEOUT, OUTCOME_FAIL};
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
		if (counts[order[i]] > 0)
			return order[i];
	for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
		if (counts[failures[i]] > 0)
			return counts[OUTCOME_PASS] > 0 ? OUTCOME_FLAKY : failures[i];
	return OUTCOME_PASS;
}
