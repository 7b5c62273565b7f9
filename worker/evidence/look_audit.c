/* The audit of all IR that the build left, and the declarations that it accuses. */
#include <stdlib.h>
#include <string.h>

#include "evidence/look_inside.h"

enum {
	MOST_BLOCKS = 400, /* in the answer: blocks that keep their promises are left out beyond */
	MOST_DECLARATIONS = 8,
};

/* Audits -------------------------------------------------------------------------------------------------------------------- */

static void add_audit(struct look *look, const char *path)
{
	cleanup_error struct error error = {0};
	look->audits = memory_grow(look->audits, look->audit_count, &look->audit_capacity, sizeof *look->audits);
	struct audit *audit = &look->audits[look->audit_count];
	*audit = (struct audit){0};
	if (audit_ir_file(audit, path, &(struct audit_options){0}, &error) == 0) {
		look->audit_count++;
		return;
	}
	audit_clear(audit);
	look_miss(look, "not audited: %s", error_text(&error));
}

static void add_blocks(const struct audit *audit, bool clean, json_t *blocks)
{
	for (size_t i = 0; i < audit->module.block_count && json_array_size(blocks) < MOST_BLOCKS; i++) {
		const struct audit_block *block = &audit->blocks[i];
		if ((block->violation_count == 0 && block->reason == NULL) == clean)
			json_array_append_new(blocks, audit_block_to_json(audit, block));
	}
}

int look_at_contracts(struct look *look, struct error *error)
{
	size_t index;
	json_t *path;
	size_t judged = 0;
	size_t not_judged = 0;
	size_t violations = 0;
	size_t unread = json_array_size(json_object_get(look->answer, "not_done"));
	(void)error;
	json_array_foreach (json_object_get(look->request, "ir"), index, path)
		add_audit(look, json_string_value(path));
	unread = json_array_size(json_object_get(look->answer, "not_done")) - unread;
	json_t *blocks = json_array();
	for (size_t clean = 0; clean < 2; clean++) /* those that matter first */
		for (size_t i = 0; i < look->audit_count; i++)
			add_blocks(&look->audits[i], clean == 1, blocks);
	for (size_t i = 0; i < look->audit_count; i++) {
		judged += look->audits[i].judged;
		not_judged += look->audits[i].not_judged;
		violations += look->audits[i].violations;
	}
	not_judged += unread; /* a file that could not be read may hold anything */
	json_object_set_new(look->answer, "audit",
			    json_pack("{s:I, s:I, s:I, s:I, s:o}", "files", (json_int_t)look->audit_count, "judged",
				      (json_int_t)judged, "not_judged", (json_int_t)not_judged, "violations",
				      (json_int_t)violations, "blocks", blocks));
	return 0;
}

const struct audit_block *look_next_accused(const struct look *look, struct look_place *at, const char *symbol)
{
	for (; at->audit < look->audit_count; at->audit++, at->block = 0) {
		const struct audit *audit = &look->audits[at->audit];
		while (at->block < audit->module.block_count) {
			const struct audit_block *block = &audit->blocks[at->block++];
			if (block->violation_count > 0 && (symbol == NULL || text_equal(block->ir->symbol, symbol)))
				return block;
		}
	}
	return NULL;
}

/* Twins --------------------------------------------------------------------------------------------------------------------- */

static bool is_known(const json_t *twins, const struct declaration *found)
{
	size_t index;
	json_t *twin;
	json_array_foreach (twins, index, twin)
		if (strcmp(json_string_value(json_object_get(twin, "file")), found->file) == 0 &&
		    strcmp(json_string_value(json_object_get(twin, "find")), found->find) == 0 &&
		    strcmp(json_string_value(json_object_get(twin, "replace")), found->replace) == 0)
			return true;
	return false;
}

static json_t *to_json(const struct declaration *found, const struct violation *violation)
{
	cleanup_free char *name = text_format("%s: %s:%lld %s", found->package.name, found->file, found->line, found->change);
	json_t *twin = json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:s}", "name", name, "file", found->file, "line",
				 (json_int_t)found->line, "find", found->find, "replace", found->replace, "min",
				 (json_int_t)found->matches, "max", (json_int_t)found->matches, "promise", violation->promise);
	if (!found->package.reproducer)
		json_object_set_new(twin, "crate", json_string(found->package.name));
	if (found->package.version != NULL)
		json_object_set_new(twin, "version", json_string(found->package.version));
	return twin;
}

static int add_twin(struct look *look, const struct audit_block *block, const struct violation *violation, json_t *twins,
		    struct error *error)
{
	cleanup_declaration struct declaration found = {0};
	const char *registers = violation->kind == VIOLATION_REGISTER ? violation->what : NULL;
	if (declare_find(&look->roots, block->ir->template, violation->promise, registers, &found, error) < 0)
		return -1;
	if (found.file != NULL && !is_known(twins, &found))
		json_array_append_new(twins, to_json(&found, violation));
	return 0;
}

/* The same block stands in the IR as often as it is inlined: look for each text and promise once. */
static bool is_new(struct strlist *seen, const struct audit_block *block, const struct violation *violation)
{
	cleanup_free char *key = text_format("%s\n%s\n%s", violation->promise, violation->what, block->ir->template);
	if (strlist_contains(seen, key))
		return false;
	strlist_add(seen, key);
	return true;
}

static int add_twins_of(struct look *look, const struct audit_block *block, struct strlist *seen, json_t *twins,
			struct error *error)
{
	for (size_t i = 0; i < block->violation_count && json_array_size(twins) < MOST_DECLARATIONS; i++)
		if (is_new(seen, block, &block->violations[i]) && add_twin(look, block, &block->violations[i], twins, error) < 0)
			return -1;
	return 0;
}

int look_for_twins(struct look *look, struct error *error)
{
	cleanup_strlist struct strlist seen = {0};
	struct look_place at = {0};
	const struct audit_block *block;
	json_t *twins = json_array();
	json_object_set_new(look->answer, "twins", twins);
	while ((block = look_next_accused(look, &at, NULL)) != NULL)
		if (add_twins_of(look, block, &seen, twins, error) < 0)
			return -1;
	return 0;
}
