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
static void append_script(struct str *script, const struct strlist *flags, bool units, const char *errors)
{
	str_append(script, "#!/bin/sh\n"
			   "# Made by bisect-worker: adds flags to the compile of the package under question.\n"
			   "set -f\n"
			   "name= units= previous=\n"
			   "for word; do\n"
			   "\tcase $previous in\n"
			   "\t--crate-name) name=$word ;;\n"
			   "\tesac\n"
			   "\tcase $word in\n"
			   "\t-o | codegen-units=* | -Ccodegen-units=*) units=given ;;\n"
			   "\t-vV | --print | --print=* | -V | --version) name=___ ;;\n"
			   "\t*.rs) [ -n \"$name\" ] || name=given ;;\n"
			   "\tesac\n"
			   "\tprevious=$word\n"
			   "done\n"
			   "case $name in '' | ___ | build_script_*) exec \"$@\" ;; esac\n");
	if (units)
		str_append(script, "[ -n \"$units\" ] || set -- \"$@\" -C codegen-units=16\n");
	str_append(script, "exec \"$@\"");
	for (size_t i = 0; i < flags->count; i++) {
		str_append(script, " ");
		str_append_shell_word(script, flags->items[i]);
	}
	if (errors != NULL) {
		str_append(script, " 2>");
		str_append_shell_word(script, errors);
	}
	str_append(script, "\n");
}

static int write_script(const char *path, const struct str *text, struct error *error)
{
	if (fs_write_file(path, str_text(text), text->length, error) < 0)
		return -1;
	if (chmod(path, 0755) < 0)
		return error_set_errno(error, "cannot make %s executable", path);
	return 0;
}

static int touch_tree(const char *path, struct error *error)
{
	struct stat status;
	if (lstat(path, &status) < 0 || utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set_errno(error, "cannot touch %s", path);
	if (!S_ISDIR(status.st_mode))
		return 0;
	cleanup_strlist struct strlist names = {0};
	if (fs_list_folder(path, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *child = path_join(path, names.items[i]);
		if (touch_tree(child, error) < 0)
			return -1;
	}
	return 0;
}

int shim_write(const struct shim *shim, struct cell *cell, const struct strlist *flags, bool units, const char *errors,
	       struct error *error)
{
	cleanup_str struct str wrapper = {0};
	cleanup_str struct str direct = {0};
	cleanup_free char *folder = path_parent(shim->wrapper);
	append_script(&wrapper, flags, units, errors);
	if (fs_make_folder(folder, error) < 0 || write_script(shim->wrapper, &wrapper, error) < 0)
		return -1;
	if (shim->rustc != NULL) {
		str_append(&direct, "#!/bin/sh\nexec ");
		str_append_shell_word(&direct, shim->wrapper);
		str_append(&direct, " ");
		str_append_shell_word(&direct, shim->rustc);
		str_append(&direct, " \"$@\"\n");
		if (write_script(shim->direct, &direct, error) < 0)
			return -1;
	}
	strmap_set(&cell->environment, "RUSTC_WORKSPACE_WRAPPER", shim->wrapper);
	return touch_tree(cell->workspace.reproducer, error);
}

void shim_clear(struct shim *shim)
{
	free(shim->wrapper);
	free(shim->direct);
	free(shim->rustc);
	*shim = (struct shim){0};
}
