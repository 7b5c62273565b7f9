/* The audit as JSON: what reports, the database and `bisectd audit --json` show.  docs/audit.md describes it. */
#include "evidence/audit.h"

#include <stdlib.h>
#include <string.h>

/* A new reference to a string; bytes that are no UTF-8 are shown as '?'. */
static json_t *text(const char *words)
{
	json_t *value = json_string(words);
	if (value != NULL)
		return value;
	cleanup_free char *plain = text_copy(words);
	for (char *byte = plain; *byte != '\0'; byte++)
		if ((unsigned char)*byte >= 0x80)
			*byte = '?';
	return json_string(plain);
}

static void set_text(json_t *object, const char *key, const char *words)
{
	if (words != NULL)
		json_object_set_new(object, key, text(words));
}

static json_t *texts(const struct strlist *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array, text(list->items[i]));
	return array;
}

static json_t *location_to_json(const struct ir_location *location)
{
	json_t *object = json_object();
	cleanup_free char *crate = NULL;
	cleanup_free char *version = NULL;
	set_text(object, "file", location->file != NULL ? location->file : "");
	json_object_set_new(object, "line", json_integer(location->line));
	json_object_set_new(object, "column", json_integer(location->column));
	set_text(object, "function", location->function);
	if (location->merged)
		json_object_set_new(object, "merged", json_true());
	if (location->file != NULL && audit_crate_of_path(location->file, &crate, &version)) {
		set_text(object, "crate", crate);
		set_text(object, "version", version);
	}
	return object;
}

static void add_locations(json_t *object, const struct audit_block *block)
{
	const struct ir_block *ir = block->ir;
	if (ir->location_count == 0)
		return;
	json_t *location = location_to_json(&ir->locations[0]);
	set_text(location, "crate", block->crate);
	set_text(location, "version", block->version);
	json_object_set_new(object, "location", location);
	if (ir->location_count == 1)
		return;
	json_t *outer = json_array();
	for (size_t i = 1; i < ir->location_count; i++)
		json_array_append_new(outer, location_to_json(&ir->locations[i]));
	json_object_set_new(object, "inlined_at", outer);
}

static json_t *instructions_to_json(const struct instructions *instructions)
{
	json_t *array = json_array();
	for (size_t i = 0; i < instructions->count; i++) {
		cleanup_free char *words = instruction_text(&instructions->items[i]);
		json_array_append_new(array, text(words));
	}
	return array;
}

static json_t *violation_to_json(const struct audit_block *block, const struct violation *violation)
{
	json_t *object = json_object();
	set_text(object, "kind", violation_name(violation->kind));
	set_text(object, "promise", violation->promise);
	if (violation->instruction < block->instructions.count) {
		cleanup_free char *words = instruction_text(&block->instructions.items[violation->instruction]);
		set_text(object, "instruction", words);
		json_object_set_new(object, "index", json_integer((json_int_t)violation->instruction));
	}
	set_text(object, "what", violation->what);
	set_text(object, "text", violation->text);
	return object;
}

static json_t *destroys_to_json(const struct audit *audit, const struct audit_block *block)
{
	json_t *registers = json_array();
	json_t *flags = json_array();
	for (int i = 0; i < 64; i++)
		if (block->destroyed_registers & REGISTER(i))
			json_array_append_new(registers, text(machine_register_name(audit->machine, i)));
	for (unsigned i = 0; i < 32; i++)
		if (block->destroyed_flags & (flag_set)1 << i)
			json_array_append_new(flags, text(machine_flag_name((flag_set)1 << i)));
	return json_pack("{s:o, s:o}", "registers", registers, "flags", flags);
}

json_t *audit_block_to_json(const struct audit *audit, const struct audit_block *block)
{
	const struct ir_block *ir = block->ir;
	json_t *object = json_object();
	set_text(object, "function", ir->symbol);
	set_text(object, "name", ir->name);
	json_object_set_new(object, "ir_line", json_integer((json_int_t)ir->text_line));
	set_text(object, "template", ir->template);
	set_text(object, "constraints", ir->constraints);
	set_text(object, "dialect", ir->intel ? "intel" : "att");
	set_text(object, "language", ir->rust ? "rust" : "c");
	add_locations(object, block);
	set_text(object, "probe", block->probe);
	json_object_set_new(object, "promises", texts(&block->promises));
	json_object_set_new(object, "instructions", instructions_to_json(&block->instructions));
	json_object_set_new(object, "judged", json_boolean(block->reason == NULL));
	set_text(object, "reason", block->reason);
	json_t *violations = json_array();
	for (size_t i = 0; i < block->violation_count; i++)
		json_array_append_new(violations, violation_to_json(block, &block->violations[i]));
	json_object_set_new(object, "violations", violations);
	if (block->destroyed_registers != 0 || block->destroyed_flags != 0)
		json_object_set_new(object, "destroys", destroys_to_json(audit, block));
	return object;
}

json_t *audit_to_json(const struct audit *audit)
{
	json_t *object = json_object();
	json_t *blocks = json_array();
	set_text(object, "file", audit->file);
	set_text(object, "target", audit->module.triple);
	for (size_t i = 0; audit->blocks != NULL && i < audit->module.block_count; i++)
		json_array_append_new(blocks, audit_block_to_json(audit, &audit->blocks[i]));
	json_object_set_new(object, "blocks", blocks);
	json_object_set_new(object, "judged", json_integer((json_int_t)audit->judged));
	json_object_set_new(object, "not_judged", json_integer((json_int_t)audit->not_judged));
	json_object_set_new(object, "violations", json_integer((json_int_t)audit->violations));
	set_text(object, "cut_off", audit->module.cut_off);
	return object;
}
