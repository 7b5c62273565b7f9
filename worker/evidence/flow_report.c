/* Regions of a binary and what becomes of them, as JSON and as sentences. */
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/flow.h"

/* ---- sentences ---- */

static void append_destroyed(struct str *text, const struct flow_path *path, struct machine *machine)
{
	machine_flags_text(path->flags, text);
	if (path->flags != 0 && path->registers != 0)
		str_append(text, ", ");
	machine_registers_text(machine, path->registers, text);
}

static void append_place(struct str *text, const char *file, int line)
{
	if (file != NULL && line > 0)
		str_append_format(text, " (%s:%d)", file, line);
}

static void append_arm(struct str *text, const struct flow_arm *arm)
{
	str_append_format(text, "0x%llx", (unsigned long long)arm->address);
	append_place(text, arm->file, arm->line);
}

static void append_broken(struct str *text, const struct flow_path *path, struct machine *machine)
{
	const struct flow_step *definition = &path->steps[0];
	const struct flow_step *destroyer = &path->steps[1];
	const struct flow_step *reader = &path->steps[2];
	str_append_format(text, "`%s`", definition->text);
	append_place(text, definition->file, definition->line);
	str_append(text, " defines ");
	machine_flags_text(path->read_flags, text);
	machine_registers_text(machine, path->read_registers, text);
	str_append_format(text, ", the block's `%s` destroys it, `%s`", destroyer->text, reader->text);
	append_place(text, reader->file, reader->line);
	str_append(text, " reads it");
	if (path->consequence != NULL)
		str_append_format(text, "; %s", path->consequence);
	if (path->always.known) {
		str_append(text, ", so that control always goes to ");
		append_arm(text, &path->always);
		str_append(text, " and never to ");
		append_arm(text, &path->never);
	}
}

static char *sentence(const struct flow_path *path, struct machine *machine)
{
	struct str text = {0};
	if (path->state == FLOW_BROKEN) {
		append_broken(&text, path, machine);
	} else if (path->state == FLOW_SLEEPING) {
		str_append(&text, "the block changes ");
		append_destroyed(&text, path, machine);
		str_append(&text, ", and nothing reads that before it is defined anew");
	} else if (path->state == FLOW_UNKNOWN) {
		str_append_format(&text, "cannot be decided: %s", path->reason);
	} else
		str_append(&text, "the block changes no flag");
	return str_steal(&text);
}

/* ---- JSON ---- */

static json_t *text_json(const char *text)
{
	json_t *value = json_string(text);
	/* Names in a binary may be no UTF-8. */
	return value != NULL ? value : json_string("(not UTF-8)");
}

static json_t *address_json(uint64_t address)
{
	cleanup_free char *text = text_format("0x%llx", (unsigned long long)address);
	return json_string(text);
}

static json_t *location_json(const char *file, int line, int column)
{
	json_t *location = json_object();
	if (file != NULL)
		json_object_set_new(location, "file", text_json(file));
	if (line > 0)
		json_object_set_new(location, "line", json_integer(line));
	if (column > 0)
		json_object_set_new(location, "column", json_integer(column));
	return location;
}

static void set_where(json_t *block, const struct flow_path *path, const struct region *region)
{
	const struct source_frames *where = &path->where;
	bool framed = where->count > 0 && where->items[0].file != NULL;
	if (region->line > 0)
		json_object_set_new(block, "location", location_json(region->file, region->line, 0));
	else if (framed)
		json_object_set_new(block, "location",
				    location_json(where->items[0].file, where->items[0].line, where->items[0].column));
	else if (region->file != NULL)
		json_object_set_new(block, "location", location_json(region->file, 0, 0));
	if (where->count < 2)
		return;
	json_t *inlined = json_array();
	for (size_t i = 1; i < where->count; i++)
		json_array_append_new(
			inlined, location_json(where->items[i].file, where->items[i].line, where->items[i].column));
	json_object_set_new(block, "inlined_at", inlined);
}

static void set_probe(json_t *object, const struct region *region)
{
	if (region->name == NULL)
		return;
	cleanup_free char *probe = text_format("%s:%s", region->provider, region->name);
	json_object_set_new(object, "probe", text_json(probe));
	json_object_set_new(object, "is_enabled", json_boolean(region->is_enabled));
}

static json_t *block_json(const struct flow_path *path, const struct region *region)
{
	json_t *block = json_object();
	json_t *instructions = json_array();
	json_object_set_new(block, "address", address_json(region->start));
	json_object_set_new(block, "size", json_integer((json_int_t)(region->end - region->start)));
	set_where(block, path, region);
	set_probe(block, region);
	for (size_t i = 0; i < path->instructions.count; i++)
		json_array_append_new(instructions, text_json(path->instructions.items[i]));
	json_object_set_new(block, "instructions", instructions);
	return block;
}

/* ["ZF", "CF", "rbx"] */
static json_t *destroyed_json(const struct flow_path *path, struct machine *machine)
{
	json_t *names = json_array();
	for (unsigned i = 0; i < 32; i++)
		if (path->flags >> i & 1)
			json_array_append_new(names, json_string(machine_flag_name((flag_set)1 << i)));
	for (int i = 0; i < 64; i++)
		if (path->registers & REGISTER(i))
			json_array_append_new(names, json_string(machine_register_name(machine, i)));
	return names;
}

static json_t *chain_json(const struct flow_path *path)
{
	static const char *const roles[] = {"definition", "destroyer", "reader"};
	json_t *chain = json_array();
	for (size_t i = 0; i < path->step_count; i++) {
		const struct flow_step *step = &path->steps[i];
		json_t *object = json_object();
		json_object_set_new(object, "role", json_string(roles[step->role]));
		json_object_set_new(object, "address", address_json(step->address));
		json_object_set_new(object, "text", text_json(step->text));
		if (step->file != NULL)
			json_object_set_new(object, "file", text_json(step->file));
		if (step->line > 0)
			json_object_set_new(object, "line", json_integer(step->line));
		json_array_append_new(chain, object);
	}
	return chain;
}

static json_t *arm_json(const struct flow_arm *arm)
{
	json_t *object = location_json(arm->file, arm->line, 0);
	json_object_set_new(object, "address", address_json(arm->address));
	return object;
}

static void set_function(json_t *object, const struct region *region)
{
	if (region->symbol == NULL)
		return;
	cleanup_free char *name = demangle(region->symbol);
	json_object_set_new(object, "function", text_json(region->symbol));
	json_object_set_new(object, "name", text_json(name));
}

json_t *flow_path_json(const struct flow_path *path, const struct region *region, struct machine *machine)
{
	json_t *object = json_object();
	cleanup_free char *text = sentence(path, machine);
	set_function(object, region);
	json_object_set_new(object, "block", block_json(path, region));
	json_object_set_new(object, "state", json_string(flow_state_name(path->state)));
	if (path->reason != NULL)
		json_object_set_new(object, "reason", json_string(path->reason));
	json_object_set_new(object, "destroys", destroyed_json(path, machine));
	if (path->step_count > 0)
		json_object_set_new(object, "chain", chain_json(path));
	if (path->consequence != NULL)
		json_object_set_new(object, "consequence", text_json(path->consequence));
	if (path->state == FLOW_BROKEN)
		json_object_set_new(object, "taken",
				    json_string(path->taken < 0 ? "unknown"
						: path->taken   ? "always"
								: "never"));
	if (path->always.known) {
		json_t *arms = json_object();
		json_object_set_new(arms, "always", arm_json(&path->always));
		json_object_set_new(arms, "never", arm_json(&path->never));
		json_object_set_new(object, "arms", arms);
	}
	json_object_set_new(object, "text", text_json(text));
	return object;
}

/* ---- a region, a binary ---- */

void flow_region(struct flow_path *path, struct binary *binary, struct machine *machine, const struct region *region,
		 const struct flow_question *question, struct flow_graph *graph)
{
	cleanup_error struct error error = {0};
	const struct binary_function *function = binary_function_at(binary, region->start);
	struct flow_question asked = *question;
	asked.start = region->start;
	asked.end = region->end;
	path->taken = -1;
	binary_frames(binary, region->start, true, &path->where);
	if (function == NULL) {
		path->state = FLOW_UNKNOWN;
		path->reason =
			text_copy("it stands in no function that the binary names (a stripped binary names none)");
		return;
	}
	if (graph->function != function) {
		flow_graph_clear(graph);
		if (flow_graph_build(graph, binary, machine, function, &error) != 0) {
			path->state = FLOW_UNKNOWN;
			path->reason = text_copy(error_text(&error));
			return;
		}
	}
	flow_follow(path, binary, machine, graph, &asked);
}

static json_t *not_placed_json(const struct region *region)
{
	json_t *object = json_object();
	set_function(object, region);
	set_probe(object, region);
	if (region->file != NULL)
		json_object_set_new(object, "location", location_json(region->file, region->line, 0));
	json_object_set_new(object, "reason", json_string(region->reason != NULL ? region->reason : "not known"));
	return object;
}

static void follow_all(json_t *report, const struct regions *regions, struct binary *binary, struct machine *machine)
{
	cleanup_flow_graph struct flow_graph graph = {0};
	json_t *paths = json_array();
	json_t *not_placed = json_array();
	const struct flow_question question = {.measured = true};
	long long counts[4] = {0};
	for (size_t i = 0; i < regions->count; i++) {
		const struct region *region = &regions->items[i];
		cleanup_flow_path struct flow_path path = {0};
		if (!region->placed) {
			json_array_append_new(not_placed, not_placed_json(region));
			continue;
		}
		if (region->start == region->end)
			continue; /* nothing but a barrier for the compiler */
		flow_region(&path, binary, machine, region, &question, &graph);
		counts[path.state]++;
		json_array_append_new(paths, flow_path_json(&path, region, machine));
	}
	json_object_set_new(report, "paths", paths);
	json_object_set_new(report, "not_placed", not_placed);
	for (enum flow_state state = FLOW_CLEAN; state <= FLOW_UNKNOWN; state++)
		json_object_set_new(report, flow_state_name(state), json_integer(counts[state]));
}

static void find_regions(struct regions *regions, struct binary *binary, struct machine *machine,
			 const struct strlist *assembly, const struct place_setup *setup, json_t *troubles)
{
	size_t files = assembly != NULL ? assembly->count : 0;
	for (size_t i = 0; i < files; i++) {
		cleanup_error struct error error = {0};
		if (regions_place(regions, binary, machine, assembly->items[i], setup, &error) != 0)
			json_array_append_new(troubles, text_json(error_text(&error)));
	}
	cleanup_error struct error error = {0};
	if (files == 0 && regions_of_probes(regions, binary, machine, &error) != 0)
		json_array_append_new(troubles, text_json(error_text(&error)));
}

json_t *flow_binary(const char *path, const struct strlist *assembly, const struct place_setup *setup,
		    struct error *error)
{
	cleanup_binary struct binary *binary = NULL;
	cleanup_machine struct machine *machine = NULL;
	cleanup_regions struct regions regions = {0};
	size_t functions = 0;
	if (binary_open(&binary, path, error) != 0)
		return NULL;
	if (machine_open(&machine, binary_machine(binary), error) != 0) {
		error_wrap(error, "%s", path);
		return NULL;
	}
	json_t *report = json_object();
	json_t *troubles = json_array();
	binary_functions(binary, &functions);
	if (functions == 0)
		json_array_append_new(
			troubles,
			json_string("stripped: the binary names no functions, so that no path can be followed"));
	find_regions(&regions, binary, machine, assembly, setup, troubles);
	json_object_set_new(report, "file", text_json(path));
	json_object_set_new(report, "machine",
			    json_string(machine_kind(machine) == MACHINE_X86_64 ? "x86-64" : "AArch64"));
	follow_all(report, &regions, binary, machine);
	json_object_set_new(report, "troubles", troubles);
	return report;
}
