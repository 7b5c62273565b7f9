/* See checkout.h. */
#include "checkout.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"
#include "str.h"

enum { MANIFEST_LIMIT = 4 << 20, DEPTH_LIMIT = 8 };

void checkout_clear(struct checkout *checkout)
{
	for (size_t i = 0; i < checkout->count; i++) {
		free(checkout->crates[i].name);
		free(checkout->crates[i].version);
		free(checkout->crates[i].folder);
	}
	free(checkout->crates);
	free(checkout->name);
	free(checkout->source);
	free(checkout->tree);
	free(checkout->identity);
	free(checkout->edited);
	json_decref(checkout->plan);
	strlist_clear(&checkout->asked);
	*checkout = (struct checkout){0};
}

int checkout_open(struct checkout *checkout, const char *name, const char *source, const char *tree, const char *oid,
		  struct error *error)
{
	checkout->tree = realpath(tree, NULL);
	if (checkout->tree == NULL)
		return error_set_errno(error, "the checkout %s of %s", tree, name);
	checkout->name = text_copy(name);
	checkout->source = text_copy(source != NULL ? source : name);
	checkout->plan = json_array();
	if (oid != NULL)
		checkout->identity = text_format("commit %s", oid);
	else if (fs_hash_tree(checkout->tree, NULL, &checkout->identity, error) < 0)
		return -1;
	return 0;
}

static const struct checkout_crate *find_listed(const struct checkout *checkout, const char *name)
{
	for (size_t i = 0; i < checkout->count; i++)
		if (strcmp(checkout->crates[i].name, name) == 0)
			return &checkout->crates[i];
	return NULL;
}

/* The folder of a manifest below the tree, owned by the caller; NULL where it lies outside. */
static char *folder_below(const struct checkout *checkout, const char *manifest)
{
	cleanup_free char *folder = path_parent(manifest);
	size_t length = strlen(checkout->tree);
	if (strncmp(folder, checkout->tree, length) != 0 || (folder[length] != '/' && folder[length] != '\0'))
		return NULL;
	return text_copy(folder + length + (folder[length] == '/'));
}

static void add_crate(struct checkout *checkout, const json_t *package)
{
	const char *name = json_string_value(json_object_get(package, "name"));
	const char *version = json_string_value(json_object_get(package, "version"));
	const char *manifest = json_string_value(json_object_get(package, "manifest_path"));
	char *folder = manifest != NULL ? folder_below(checkout, manifest) : NULL;
	if (name == NULL || version == NULL || folder == NULL || find_listed(checkout, name) != NULL) {
		free(folder);
		return;
	}
	checkout->crates =
		memory_grow(checkout->crates, checkout->count, &checkout->capacity, sizeof *checkout->crates);
	checkout->crates[checkout->count++] =
		(struct checkout_crate){.name = text_copy(name), .version = text_copy(version), .folder = folder};
}

static int list_members(struct checkout *checkout, struct cargo *cargo, const char *folder, const char *manifest,
			struct error *error)
{
	if (strlist_contains(&checkout->asked, manifest))
		return 0;
	json_t *metadata = NULL;
	if (cargo_members(cargo, folder, manifest, &metadata, error) < 0)
		return -1;
	strlist_add(&checkout->asked, manifest);
	size_t index;
	json_t *package;
	json_array_foreach (json_object_get(metadata, "packages"), index, package) {
		add_crate(checkout, package);
	}
	json_decref(metadata);
	return 0;
}

/* Does the manifest seem to define that crate?  Cargo is then asked; this only spares asking about every other one. */
static bool seems_to_define(const char *manifest, const char *name)
{
	cleanup_str struct str text = {0};
	cleanup_error struct error ignored = {0};
	cleanup_free char *quoted = text_format("\"%s\"", name);
	return fs_read_file(manifest, MANIFEST_LIMIT, &text, &ignored) == 0 &&
	       strstr(str_text(&text), quoted) != NULL && strstr(str_text(&text), "[package]") != NULL;
}

static bool is_real_folder(const char *path)
{
	struct stat status;
	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int search_below(struct checkout *checkout, struct cargo *cargo, const char *cargo_folder, const char *folder,
			const char *name, int depth, struct error *error)
{
	cleanup_strlist struct strlist names = {0};
	cleanup_free char *manifest = path_join(folder, "Cargo.toml");
	if (path_exists(manifest) && seems_to_define(manifest, name) &&
	    list_members(checkout, cargo, cargo_folder, manifest, error) < 0)
		return -1;
	if (find_listed(checkout, name) != NULL || depth == DEPTH_LIMIT)
		return 0;
	if (fs_list_folder(folder, &names, error) < 0)
		return -1;
	for (size_t i = 0; i < names.count && find_listed(checkout, name) == NULL; i++) {
		cleanup_free char *child = path_join(folder, names.items[i]);
		if (names.items[i][0] == '.' || strcmp(names.items[i], "target") == 0 || !is_real_folder(child))
			continue;
		if (search_below(checkout, cargo, cargo_folder, child, name, depth + 1, error) < 0)
			return -1;
	}
	return 0;
}

int checkout_find(struct checkout *checkout, struct cargo *cargo, const char *folder, const char *name,
		  const struct checkout_crate **found, struct error *error)
{
	cleanup_free char *root = path_join(checkout->tree, "Cargo.toml");
	cargo->trouble = CARGO_BROKEN;
	if (path_exists(root) && list_members(checkout, cargo, folder, root, error) < 0)
		return error_wrap(error, "the crates of %s (%s)", checkout->source, checkout->identity);
	if (find_listed(checkout, name) == NULL &&
	    search_below(checkout, cargo, folder, checkout->tree, name, 0, error) < 0)
		return error_wrap(error, "looking for crate %s in %s (%s)", name, checkout->source, checkout->identity);
	*found = find_listed(checkout, name);
	return 0;
}
