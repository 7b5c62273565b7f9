/*
 * The broken path: whether what a block of inline assembly destroys is needed afterwards.
 *
 * Given a block's place in a function of a binary, this looks for a chain: an instruction before the block that defines
 * a flag or register (the definition), an instruction in the block that changes it (the destroyer), and an instruction
 * that can be reached from the block's end, without a new definition in between, that looks at it (the reader).  Where
 * the block leaves a known value, it is also said which way the reader then goes.  Nothing is run.
 *
 * Calls end the life of flags and of the registers that the platform's convention lets a callee change.  Where control
 * goes on to places that are not known (jump tables), a value that is still destroyed there makes the answer "unknown".
 */
#ifndef BISECTD_WORKER_EVIDENCE_FLOW_H
#define BISECTD_WORKER_EVIDENCE_FLOW_H

#include <jansson.h>

#include "evidence/elf.h"
#include "evidence/flow_graph.h"
#include "evidence/machine.h"
#include "evidence/place.h"

enum flow_state {
	FLOW_CLEAN,    /* the block changes nothing that it was asked about: no flags, no registers */
	FLOW_SLEEPING, /* it does, and nothing reads it afterwards in this binary */
	FLOW_BROKEN,   /* a value that stood before the block is read after it, and is gone */
	FLOW_UNKNOWN   /* cannot be decided: `reason` */
};

enum flow_role { FLOW_DEFINITION, FLOW_DESTROYER, FLOW_READER };

struct flow_step {
	enum flow_role role;
	uint64_t address;
	char *text; /* of the instruction; "(the function's entry)" for what came with the call */
	char *file; /* NULL: not known */
	int line;   /* 0: not known */
};

/* Where a branch that now always goes one way would lead. */
struct flow_arm {
	bool known;
	uint64_t address;
	char *file;
	int line;
};

enum { FLOW_STEPS_MAX = 3 };

struct flow_path {
	enum flow_state state;
	char *reason;           /* FLOW_UNKNOWN: why; otherwise NULL */
	register_set registers; /* destroyed at the block's end */
	flag_set flags;
	struct strlist instructions; /* of the block */
	struct source_frames where;  /* of the block's first instruction, with what it was inlined into (flow_region) */
	struct flow_step steps[FLOW_STEPS_MAX];
	size_t step_count;
	flag_set read_flags; /* broken: what the reader looks at of what is destroyed */
	register_set read_registers;
	int taken;              /* broken, at a condition: 1 it always holds, 0 never, -1 not known */
	char *consequence;      /* "je always jumps: ZF is always 1 here"; NULL: nothing to say */
	struct flow_arm always; /* where control goes; known where `taken` is and the reader is a branch */
	struct flow_arm never;
};

#define cleanup_flow_path __attribute__((cleanup(flow_path_clear)))

/*
 * What to look at: what the block destroys without saying so, as an audit found it.  `measured`: take instead what its
 * instructions leave changed of the status flags (and DF), for a block of which no declaration is known.
 */
struct flow_question {
	uint64_t start; /* the block: [start, end) */
	uint64_t end;
	bool measured;
	flag_set flags;
	register_set registers;
};

/* Always fills in `path`; `binary` is for source lines (NULL: none are given); what cannot be decided is FLOW_UNKNOWN
 * with its reason.  `graph` holds the block. */
void flow_follow(struct flow_path *path, struct binary *binary, struct machine *machine, const struct flow_graph *graph,
		 const struct flow_question *question);
void flow_path_clear(struct flow_path *path);

/* "broken", "sleeping", "unknown", "clean" */
const char *flow_state_name(enum flow_state state);

/*
 * One region and what became of it, as JSON: {"function", "name", "block": {"address", "size", "location", "probe",
 * "is_enabled", "instructions"}, "state", "reason", "destroys", "chain", "consequence", "taken", "arms", "text"}.
 * Members are absent where they do not apply; addresses are text, "0x14c05".
 */
json_t *flow_path_json(const struct flow_path *path, const struct region *region, struct machine *machine);

/*
 * Follow one placed region.  `question` without start and end, which are the region's.  `graph` starts as {0} and is
 * the caller's to clear: it keeps the last function, so that the regions of one function, asked about in a row, share
 * the work.
 */
void flow_region(struct flow_path *path, struct binary *binary, struct machine *machine, const struct region *region,
		 const struct flow_question *question, struct flow_graph *graph);

/*
 * Every probe of a binary, or every block of `assembly` (paths of .s files of the same build; NULL or empty: the
 * binary's own probe records), with its state: {"file", "machine", "paths": [...], "not_placed": [{"function", "probe",
 * "location", "reason"}], "broken": N, "sleeping": N, "unknown": N, "clean": N, "troubles": [text]}.  NULL with an
 * error where the binary cannot be read.
 */
json_t *flow_binary(const char *path, const struct strlist *assembly, const struct place_setup *setup,
		    struct error *error);

#endif
