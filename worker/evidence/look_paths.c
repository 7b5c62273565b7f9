/*
 * What happens in the program behind the accused blocks: each block of the compiler's assembly is placed in the program, matched
 * with what the audit says of it, and followed.
 */
#include <stdlib.h>
#include <string.h>

#include "evidence/flow.h"
#include "evidence/look_inside.h"

enum { MOST_PATHS = 200, MOST_NOT_PLACED = 20 };

static bool is_same(struct look *look, const struct region *region, const struct audit_block *block)
{
	return block->reason == NULL && (region->symbol == NULL || strcmp(region->symbol, block->ir->symbol) == 0) &&
	       region_matches(region, look->binary, look->machine, block->instructions.items, block->instructions.count);
}

/* The audited block that the region came from; of several with the same instructions, one that breaks a promise. */
static const struct audit_block *find_block(struct look *look, const struct region *region)
{
	const struct audit_block *found = NULL;
	for (size_t i = 0; i < look->audit_count; i++)
		for (size_t j = 0; j < look->audits[i].module.block_count; j++) {
			const struct audit_block *block = &look->audits[i].blocks[j];
			if ((found == NULL || (found->violation_count == 0 && block->violation_count > 0)) &&
			    is_same(look, region, block))
				found = block;
		}
	return found;
}

static void remember(struct look *look, const struct flow_path *path)
{
	for (size_t i = 0; i < path->step_count; i++) {
		look->deciding =
			memory_grow(look->deciding, look->deciding_count, &look->deciding_capacity, sizeof *look->deciding);
		look->deciding[look->deciding_count++] = path->steps[i].address;
	}
}

/* A block that the audit found clean destroys nothing; one that it does not know is measured by what it leaves changed. */
static void follow(struct look *look, const struct region *region, struct flow_graph *graph, json_t *paths)
{
	cleanup_flow_path struct flow_path path = {0};
	const struct audit_block *block = find_block(look, region);
	struct flow_question question = {.measured = block == NULL};
	if (block != NULL) {
		question.flags = block->destroyed_flags;
		question.registers = block->destroyed_registers;
	}
	if (block != NULL && question.flags == 0 && question.registers == 0)
		return;
	flow_region(&path, look->binary, look->machine, region, &question, graph);
	if (path.state == FLOW_CLEAN)
		return;
	if (path.state == FLOW_BROKEN)
		remember(look, &path);
	json_array_append_new(paths, flow_path_json(&path, region, look->machine));
}

static void place(struct look *look, const char *assembly, struct regions *regions)
{
	cleanup_error struct error error = {0};
	const struct place_setup setup = {.scratch = look->folder};
	if (regions_place(regions, look->binary, look->machine, assembly, &setup, &error) < 0)
		look_miss(look, "blocks were not placed: %s", error_text(&error));
}

/* Of functions with accused blocks; others may well have been left out by the linker. */
static void tell_not_placed(struct look *look, const struct regions *regions)
{
	size_t told = 0;
	for (size_t i = 0; i < regions->count && told < MOST_NOT_PLACED; i++) {
		const struct region *region = &regions->items[i];
		struct look_place at = {0};
		if (region->placed || region->symbol == NULL || look_next_accused(look, &at, region->symbol) == NULL)
			continue;
		look_miss(look, "a block of %s was not placed in the program: %s", region->symbol,
			  region->reason != NULL ? region->reason : "no reason given");
		told++;
	}
}

int look_at_paths(struct look *look, struct error *error)
{
	size_t index;
	json_t *assembly;
	cleanup_regions struct regions regions = {0};
	cleanup_flow_graph struct flow_graph graph = {0};
	json_t *paths = json_array();
	(void)error;
	json_object_set_new(look->answer, "paths", paths);
	if (look->binary == NULL)
		return 0;
	json_array_foreach (json_object_get(look->request, "assembly"), index, assembly)
		place(look, json_string_value(assembly), &regions);
	for (size_t i = 0; i < regions.count && json_array_size(paths) < MOST_PATHS; i++)
		if (regions.items[i].placed)
			follow(look, &regions.items[i], &graph, paths);
	tell_not_placed(look, &regions);
	return 0;
}
