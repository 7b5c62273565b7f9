/*
 * One function of a binary as a graph of its instructions: which may follow which, and which may come before.  Whoever
 * asks what happens to a value on the way asks here; it knows nothing of blocks or promises.
 */
#ifndef BISECTD_WORKER_EVIDENCE_FLOW_GRAPH_H
#define BISECTD_WORKER_EVIDENCE_FLOW_GRAPH_H

#include "evidence/elf.h"
#include "evidence/machine.h"

#define GRAPH_NONE ((size_t)-1)

struct flow_graph {
	const struct binary_function *function;
	struct instructions code; /* in the order of addresses, without gaps */
	bool whole;               /* false: from code.decoded bytes on nothing could be decoded */
	size_t *target; /* of each instruction: index of where a jump or branch goes inside the function, or GRAPH_NONE
			 */
	size_t *before_first; /* of each, and one more: where its predecessors start in `before` */
	size_t *before;
};

#define cleanup_flow_graph __attribute__((cleanup(flow_graph_clear)))

/* -1 where the file does not hold the function's bytes, or it is larger than 16 MiB. */
int flow_graph_build(struct flow_graph *graph, struct binary *binary, struct machine *machine,
		     const struct binary_function *function, struct error *error);
/* The same for bytes in memory, as if they stood at `address`.  `function` stays NULL. */
void flow_graph_build_bytes(struct flow_graph *graph, struct machine *machine, const uint8_t *bytes, size_t size,
			    uint64_t address);
/* Index of the instruction that starts at `address`, or GRAPH_NONE. */
size_t flow_graph_index(const struct flow_graph *graph, uint64_t address);
/* The next instruction in line, where control may go there: GRAPH_NONE after a jump, a return, a trap and at the end.
 */
size_t flow_graph_next(const struct flow_graph *graph, size_t index);
void flow_graph_clear(struct flow_graph *graph);

#endif
