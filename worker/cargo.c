/* See cargo.h. */
#include "cargo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fs.h"

enum { TIME_LIMIT_MS = 15 * 60 * 1000, OUTPUT_LIMIT = 64 << 20, REASON_LIMIT = 400 };

/* What would change cargo's answers from one person's shell to the next; mirrors and proxies are not among it. */
static const char *const dropped[] = {
	"RUSTUP_TOOLCHAIN",
	"RUSTC",
	"RUSTC_WRAPPER",
	"RUSTC_WORKSPACE_WRAPPER",
	"RUSTFLAGS",
	"CARGO_ENCODED_RUSTFLAGS",
	"RUST_BACKTRACE",
	"CARGO_TARGET_DIR",
	"CARGO_BUILD_TARGET_DIR",
	"CARGO_BUILD_TARGET",
	"CARGO_LOG",
};

static bool is_dropped(const char *name)
{
	for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
		if (strcmp(dropped[i], name) == 0)
			return true;
	return false;
}

void cargo_open(struct cargo *cargo, const char *program, const char *target)
{
	cleanup_strmap struct strmap own = {0};
	child_own_environment(&own);
	for (size_t i = 0; i < own.count; i++)
		if (!is_dropped(own.entries[i].key))
			strmap_set(&cargo->environment, own.entries[i].key, own.entries[i].value);
	cargo->program = text_copy(program != NULL ? program : "cargo");
	if (strchr(cargo->program, '/') != NULL) {
		/* cargo asks the rustc beside it, not the first on PATH */
		const char *path = strmap_get(&own, "PATH");
		cleanup_free char *folder = path_parent(cargo->program);
		cleanup_free char *with =
			text_format("%s%s%s", folder, path != NULL ? ":" : "", path != NULL ? path : "");
		strmap_set(&cargo->environment, "PATH", with);
	}
	strmap_set(&cargo->environment, "RUSTUP_AUTO_INSTALL", "0");
	strmap_set(&cargo->environment, "CARGO_TARGET_DIR", target);
	strmap_set(&cargo->environment, "CARGO_TERM_COLOR", "never");
	strmap_set(&cargo->environment, "CARGO_TERM_PROGRESS_WHEN", "never");
	/* dependencies that suit the reproducer's rust-version, from cargo 1.84 on */
	strmap_set(&cargo->environment, "CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
}

void cargo_clear(struct cargo *cargo)
{
	free(cargo->program);
	free(cargo->config);
	strmap_clear(&cargo->environment);
	*cargo = (struct cargo){0};
}

enum cargo_trouble cargo_judge(const char *errors)
{
	/* Only what cargo says after it has read the registry's answer: everything else may be different in a minute.
	 */
	static const char *const answers[] = {
		"no matching package",
		"failed to select a version for",
		"candidate versions found which didn't match",
		"is yanked",
		"did not match any packages",
		"specification `",
		"failed to parse the version requirement",
		"unexpected character",
		"invalid character",
		"failed to parse manifest",
		"failed to load manifest",
		"Cargo.toml:",
		"virtual manifest",
		"because it was requested by",
		"cyclic package dependency",
		"was specified as part of the patch",
		"but --locked was passed",
		"because --locked was passed",
		"patch location",
	};
	static const char *const breakdowns[] = {
		"--offline",           "network failure",         "spurious network error", "Unable to update",
		"failed to download",  "No space left on device", "Input/output error",     "Permission denied",
		"Too many open files", "Cannot allocate memory",
	};
	for (size_t i = 0; i < sizeof breakdowns / sizeof breakdowns[0]; i++)
		if (strstr(errors, breakdowns[i]) != NULL)
			return CARGO_BROKEN;
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
		if (strstr(errors, answers[i]) != NULL)
			return CARGO_REFUSED;
	return CARGO_BROKEN;
}

/* One line of cargo's, trimmed; the joints are "Caused by:", which becomes a colon. */
static void add_line(struct str *reason, const char *line, size_t length, bool *caused)
{
	while (length > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		length--;
	}
	if (length == 0)
		return;
	if (length == strlen("Caused by:") && strncmp(line, "Caused by:", length) == 0) {
		*caused = true;
		return;
	}
	if (reason->length > 0)
		str_append(reason, *caused ? ": " : "; ");
	*caused = false;
	str_append_bytes(reason, line, length);
}

char *cargo_reason(const char *errors)
{
	struct str reason = {0};
	bool caused = false;
	const char *found = strstr(errors, "\nerror: ");
	const char *line = errors;
	if (text_starts_with(errors, "error: "))
		line = errors + strlen("error: ");
	else if (found != NULL)
		line = found + strlen("\nerror: ");
	while (*line != '\0' && reason.length < REASON_LIMIT) {
		size_t length = strcspn(line, "\n");
		add_line(&reason, line, length, &caused);
		line += length + (line[length] == '\n');
	}
	if (reason.length > REASON_LIMIT) {
		cleanup_free char *cut = text_copy_range(reason.data, REASON_LIMIT);
		str_clear(&reason);
		str_append_format(&reason, "%s...", cut);
	}
	return str_steal(&reason);
}

int cargo_run(struct cargo *cargo, const char *folder, const struct strlist *arguments, struct child_output *output,
	      struct error *error)
{
	cleanup_strlist struct strlist command = {0};
	strlist_add(&command, cargo->program);
	if (cargo->config != NULL) {
		strlist_add(&command, "--config");
		strlist_add(&command, cargo->config);
	}
	strlist_add_all(&command, arguments);
	cargo->trouble = CARGO_BROKEN;
	if (child_capture(&command, &cargo->environment, folder, TIME_LIMIT_MS, OUTPUT_LIMIT, output, error) < 0)
		return -1;
	fputs(str_text(&output->errors), stderr);
	fflush(stderr);
	if (WIFEXITED(output->status) && WEXITSTATUS(output->status) == 0) {
		cargo->trouble = CARGO_FINE;
		return 0;
	}
	cleanup_free char *reason = cargo_reason(str_text(&output->errors));
	cleanup_free char *status = child_status_text(output->status);
	cargo->trouble = WIFEXITED(output->status) ? cargo_judge(str_text(&output->errors)) : CARGO_BROKEN;
	return error_set(error, "cargo %s: %s", arguments->count > 0 ? arguments->items[0] : "",
			 reason[0] != '\0' ? reason : status);
}

int cargo_do(struct cargo *cargo, const char *folder, const char *const words[], struct error *error)
{
	cleanup_strlist struct strlist arguments = {0};
	cleanup_child_output struct child_output output = {0};
	for (size_t i = 0; words[i] != NULL; i++)
		strlist_add(&arguments, words[i]);
	return cargo_run(cargo, folder, &arguments, &output, error);
}

int cargo_members(struct cargo *cargo, const char *folder, const char *manifest, json_t **metadata, struct error *error)
{
	static const char *const words[] = {"metadata", "--no-deps", "--format-version", "1", "--manifest-path"};
	cleanup_strlist struct strlist arguments = {0};
	cleanup_child_output struct child_output output = {0};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		strlist_add(&arguments, words[i]);
	strlist_add(&arguments, manifest);
	if (cargo_run(cargo, folder, &arguments, &output, error) < 0)
		return -1;
	json_error_t trouble;
	*metadata = json_loads(str_text(&output.output), 0, &trouble);
	if (*metadata == NULL) {
		cargo->trouble = CARGO_BROKEN;
		return error_set(error, "cargo metadata: its answer is no JSON: %s", trouble.text);
	}
	return 0;
}
