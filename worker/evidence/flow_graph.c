/* A function as a graph, by decoding it from its first byte to its last: compilers put jump tables elsewhere on both
 * machines. */
#include "evidence/flow_graph.h"

#include <stdlib.h>
#include <string.h>

enum { FUNCTION_MAX = 16 << 20 };

static void link_targets(struct flow_graph *graph)
{
	for (size_t i = 0; i < graph->code.count; i++) {
		const struct instruction *instruction = &graph->code.items[i];
		bool goes = instruction->flow == MACHINE_JUMP || instruction->flow == MACHINE_BRANCH;
		graph->target[i] =
			goes && instruction->target_known ? flow_graph_index(graph, instruction->target) : GRAPH_NONE;
	}
}

/* Predecessors: counted, then filled in. */
static void link_back(struct flow_graph *graph)
{
	size_t count = graph->code.count;
	for (size_t i = 0; i < count; i++) {
		size_t next = flow_graph_next(graph, i);
		if (next != GRAPH_NONE)
			graph->before_first[next + 1]++;
		if (graph->target[i] != GRAPH_NONE)
			graph->before_first[graph->target[i] + 1]++;
	}
	for (size_t i = 0; i < count; i++)
		graph->before_first[i + 1] += graph->before_first[i];
	graph->before = memory_new(graph->before_first[count] + 1, sizeof *graph->before);
	cleanup_free size_t *filled = memory_new(count + 1, sizeof *filled);
	for (size_t i = 0; i < count; i++) {
		size_t next = flow_graph_next(graph, i);
		size_t target = graph->target[i];
		if (next != GRAPH_NONE)
			graph->before[graph->before_first[next] + filled[next]++] = i;
		if (target != GRAPH_NONE)
			graph->before[graph->before_first[target] + filled[target]++] = i;
	}
}

void flow_graph_build_bytes(struct flow_graph *graph, struct machine *machine, const uint8_t *bytes, size_t size,
			    uint64_t address)
{
	cleanup_error struct error ignored = {0};
	graph->whole = machine_decode_all(machine, bytes, size, address, &graph->code, &ignored) == 0;
	graph->target = memory_new(graph->code.count + 1, sizeof *graph->target);
	graph->before_first = memory_new(graph->code.count + 2, sizeof *graph->before_first);
	link_targets(graph);
	link_back(graph);
}

int flow_graph_build(struct flow_graph *graph, struct binary *binary, struct machine *machine,
		     const struct binary_function *function, struct error *error)
{
	if (function->size > FUNCTION_MAX)
		return error_set(error, "the function is larger than 16 MiB");
	const uint8_t *bytes = binary_bytes(binary, function->address, (size_t)function->size);
	if (bytes == NULL)
		return error_set(error, "the file does not hold the function's code");
	flow_graph_build_bytes(graph, machine, bytes, (size_t)function->size, function->address);
	graph->function = function;
	return 0;
}

size_t flow_graph_index(const struct flow_graph *graph, uint64_t address)
{
	size_t low = 0, high = graph->code.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (graph->code.items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < graph->code.count && graph->code.items[low].address == address ? low : GRAPH_NONE;
}

size_t flow_graph_next(const struct flow_graph *graph, size_t index)
{
	enum machine_flow flow = graph->code.items[index].flow;
	bool ends = flow == MACHINE_JUMP || flow == MACHINE_RETURN || flow == MACHINE_TRAP;
	return ends || index + 1 >= graph->code.count ? GRAPH_NONE : index + 1;
}

void flow_graph_clear(struct flow_graph *graph)
{
	instructions_clear(&graph->code);
	free(graph->target);
	free(graph->before_first);
	free(graph->before);
	*graph = (struct flow_graph){0};
}
