/* See shim.h. */
#include "evidence/shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"

#define FOLDER "shim"

void shim_name(struct shim *shim, struct job *job)
{
	shim->wrapper = text_format("%s/" FOLDER "/wrapper", job->workspace);
	shim->direct = text_format("%s/" FOLDER "/rustc", job->workspace);
	shim->rustc = text_copy(strmap_get(&job->placeholders, "rustc"));
	if (shim->rustc != NULL)
		strmap_set(&job->placeholders, "rustc", shim->direct);
}

/* The words look like `rustc --crate-name NAME ... -C codegen-units=N ... -o FILE`. */
static void append_head(struct str *script)
{
	str_append(script, "#!/bin/sh\n"
			   "# Made by bisect-worker: adds flags to the compile of the package under question.\n"
			   "set -f\n"
			   "name= type=bin source= units= previous=\n"
			   "for word; do\n"
			   "\tcase $previous in\n"
			   "\t--crate-name) name=$word ;;\n"
			   "\t--crate-type) type=$word ;;\n"
			   "\tesac\n"
			   "\tcase $word in\n"
			   "\t-o | codegen-units=* | -Ccodegen-units=*) units=given ;;\n"
			   "\t-vV | --print | --print=* | -V | --version) name=___ ;;\n"
			   "\t--crate-type=*) type=${word#*=} ;;\n"
			   "\t*.rs) source=${word##*/} && [ -n \"$name\" ] || name=given ;;\n"
			   "\tesac\n"
			   "\tprevious=$word\n"
			   "done\n"
			   "case $name in '' | ___ | build_script_*) exec \"$@\" ;; esac\n");
}

static void append_words(struct str *script, const struct strlist *words)
{
	for (size_t i = 0; i < words->count; i++) {
		str_append(script, " ");
		str_append_shell_word(script, words->items[i]);
	}
}

static void append_script(struct str *script, const struct strlist *flags, bool units)
{
	append_head(script);
	if (units)
		str_append(script, "[ -n \"$units\" ] || set -- \"$@\" -C codegen-units=16\n");
	str_append(script, "exec \"$@\"");
	append_words(script, flags);
	str_append(script, "\n");
}

static void append_limits(struct str *script, const struct strmap *limits)
{
	str_append(script, "limit=-1\ncase $name.$type in\n");
	for (size_t i = 0; i < limits->count; i++) {
		str_append_shell_word(script, limits->entries[i].key);
		str_append(script, ") limit=");
		str_append_shell_word(script, limits->entries[i].value);
		str_append(script, " ;;\n");
	}
	str_append(script, "esac\nset -- \"$@\" -C llvm-args=-opt-bisect-limit=\"$limit\"\n");
}

/*
 * A jobserver (GNU make's protocol: a pipe of tokens) that has none to give: rustc then has its own token and compiles
 * one codegen unit after the other, which gives a pass the same number each time.
 */
#define ONE_AFTER_THE_OTHER                                                                                            \
	"rm -f \"$folder/tokens\"\n"                                                                                   \
	"mkfifo \"$folder/tokens\"\n"                                                                                  \
	"exec 9<>\"$folder/tokens\"\n"                                                                                 \
	"CARGO_MAKEFLAGS='-j --jobserver-fds=9,9 --jobserver-auth=9,9'\n"                                              \
	"export CARGO_MAKEFLAGS\n"

static void append_traced_script(struct str *script, const struct strlist *flags, const struct shim_trace *trace)
{
	append_head(script);
	str_append(script, "case $type in proc-macro) exec \"$@\" ;; esac\n"
			   "[ \"$name\" != given ] || name=${source%.rs}\n"
			   "case $name.$type in *[!A-Za-z0-9_.-]*) name=given type=other ;; esac\n"
			   "folder=");
	str_append_shell_word(script, trace->folder);
	str_append(script, "\nmkdir -p \"$folder\"\n"
			   "printf '%s\\n' \"$name.$type\" >>\"$folder/order\"\n"
			   "printf '%s\\n' \"$@\" >\"$folder/$name.$type.words\"\n" ONE_AFTER_THE_OTHER);
	if (flags->count > 0) {
		str_append(script, trace->final_only ? "case $type in bin | cdylib | dylib | staticlib) set -- \"$@\""
						     : "set -- \"$@\"");
		append_words(script, flags);
		str_append(script, trace->final_only ? " ;; esac\n" : "\n");
	}
	if (trace->limits != NULL)
		append_limits(script, trace->limits);
	if (trace->quiet)
		str_append(script, "\"$@\" 2>/dev/null && exit\n");
	str_append(script, "\"$@\" 2>\"$folder/$name.$type.lines\"\n"
			   "status=$?\n"
			   "sed '/^BISECT: /d' \"$folder/$name.$type.lines\" >&2\n"
			   "[ \"$status\" -le 128 ] || kill -\"$((status - 128))\" $$\n"
			   "exit \"$status\"\n");
}

static int write_script(const char *path, const struct str *text, struct error *error)
{
	if (fs_write_file(path, str_text(text), text->length, error) < 0)
		return -1;
	if (chmod(path, 0755) < 0)
		return error_set_errno(error, "cannot make %s executable", path);
	return 0;
}

static int touch(const char *path, void *context, struct error *error)
{
	(void)context;
	return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) < 0 ? error_set_errno(error, "cannot touch %s", path) : 0;
}

static void append_direct_script(struct str *script, const struct shim *shim)
{
	/* under cargo, for a build that also says RUSTC={rustc}, the wrapper has been there already */
	str_append(script, "#!/bin/sh\n[ -z \"${CARGO_PKG_NAME+set}\" ] || exec ");
	str_append_shell_word(script, shim->rustc);
	str_append(script, " \"$@\"\nexec ");
	str_append_shell_word(script, shim->wrapper);
	str_append(script, " ");
	str_append_shell_word(script, shim->rustc);
	str_append(script, " \"$@\"\n");
}

static int install(const struct shim *shim, struct cell *cell, const struct str *wrapper, struct error *error)
{
	cleanup_str struct str direct = {0};
	cleanup_free char *folder = path_parent(shim->wrapper);
	if (fs_make_folder(folder, error) < 0 || write_script(shim->wrapper, wrapper, error) < 0)
		return -1;
	if (shim->rustc != NULL) {
		append_direct_script(&direct, shim);
		if (write_script(shim->direct, &direct, error) < 0)
			return -1;
	}
	strmap_set(&cell->environment, "RUSTC_WORKSPACE_WRAPPER", shim->wrapper);
	return fs_each(cell->workspace.reproducer, touch, NULL, error);
}

int shim_write(const struct shim *shim, struct cell *cell, const struct strlist *flags, bool units,
	       struct error *error)
{
	cleanup_str struct str wrapper = {0};
	append_script(&wrapper, flags, units);
	return install(shim, cell, &wrapper, error);
}

int shim_write_traced(const struct shim *shim, struct cell *cell, const struct strlist *flags,
		      const struct shim_trace *trace, struct error *error)
{
	cleanup_str struct str wrapper = {0};
	append_traced_script(&wrapper, flags, trace);
	return install(shim, cell, &wrapper, error);
}

static void append_here_document(struct str *recipe, const char *path, const struct str *script)
{
	str_append(recipe, " &&\ncat >");
	str_append_shell_word(recipe, path);
	str_append(recipe, " <<'END_OF_SCRIPT' &&\n");
	str_append(recipe, str_text(script));
	str_append(recipe, "END_OF_SCRIPT\nchmod 755 ");
	str_append_shell_word(recipe, path);
}

void shim_recipe(const struct shim *shim, const struct strlist *flags, const struct shim_trace *trace,
		 struct str *recipe)
{
	cleanup_str struct str wrapper = {0};
	cleanup_free char *folder = path_parent(shim->wrapper);
	append_traced_script(&wrapper, flags, trace);
	str_append(recipe, " &&\nmkdir -p ");
	str_append_shell_word(recipe, folder);
	append_here_document(recipe, shim->wrapper, &wrapper);
	if (shim->rustc != NULL) {
		cleanup_str struct str direct = {0};
		append_direct_script(&direct, shim);
		append_here_document(recipe, shim->direct, &direct);
	}
	str_append(recipe, " &&\nfind . -exec touch -h {} +");
}

void shim_clear(struct shim *shim)
{
	free(shim->wrapper);
	free(shim->direct);
	free(shim->rustc);
	*shim = (struct shim){0};
}
