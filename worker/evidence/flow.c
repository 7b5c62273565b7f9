/*
 * Following one flag or register at a time: forward from the block's end to who reads it, backward from its start to
 * who defined it.
 */
#include "evidence/flow.h"

#include <stdlib.h>
#include <string.h>

/* One flag or one register. */
struct item {
	flag_set flag; /* 0: it is the register */
	int number;
};

/* What one instruction is to an item. */
enum use { USE_NONE, USE_READS, USE_SAVES, USE_MAYBE, USE_KILLS, USE_NARROWS };

struct search {
	struct machine *machine;
	const struct flow_graph *graph;
	size_t first; /* the block's first instruction, and the one behind its last */
	size_t end;
	size_t *from;   /* of each instruction: through which one it was reached, plus one; 0: not yet */
	bool *narrowed; /* of each that was reached: only behind a write to a part of the register */
	size_t *queue;
	size_t head;
	size_t tail;
	bool unknown; /* control goes, with the item destroyed, where it cannot be followed */
	const char *why;
};

/* ---- what an instruction is to an item ---- */

static enum use flag_use(const struct instruction *instruction, flag_set flag)
{
	bool saves = instruction->shape == SHAPE_PUSH_FLAGS || instruction->shape == SHAPE_FLAGS_TO_FIRST;
	bool boundary = instruction->flow == MACHINE_CALL || instruction->flow == MACHINE_RETURN;
	if (instruction->flags_read & flag)
		return saves ? USE_SAVES : USE_READS;
	if (boundary) /* the direction flag must be clear there, the others mean nothing */
		return flag == FLAG_DF ? USE_READS : USE_KILLS;
	if (instruction->flow == MACHINE_TRAP)
		return USE_KILLS;
	return instruction->flags_written & ~instruction->flags_kept & flag ? USE_KILLS : USE_NONE;
}

static enum use boundary_use(const struct search *search, const struct instruction *instruction, register_set bit)
{
	register_set clobbers = machine_call_clobbers(search->machine);
	if (instruction->registers_read & bit)
		return USE_READS; /* call rax */
	if (instruction->flow == MACHINE_CALL) {
		if (machine_call_arguments(search->machine) & bit)
			return USE_MAYBE;
		return clobbers & bit ? USE_KILLS : USE_NONE;
	}
	if (machine_return_values(search->machine) & bit)
		return USE_MAYBE;
	return clobbers & bit ? USE_KILLS : USE_READS; /* the caller's value is lost */
}

static enum use register_use(const struct search *search, const struct instruction *instruction, int number,
			     bool narrowed)
{
	register_set bit = REGISTER(number);
	if (instruction->flow == MACHINE_TRAP)
		return USE_KILLS;
	if (instruction->flow == MACHINE_CALL || instruction->flow == MACHINE_RETURN)
		return boundary_use(search, instruction, bit);
	if (instruction->registers_read & bit) {
		if (!narrowed)
			return USE_READS;
		if (!(instruction->registers_narrow & bit))
			return USE_MAYBE; /* its low part is new, whether the rest matters is not to be seen */
	}
	if (!(instruction->registers_written & bit))
		return USE_NONE;
	return instruction->registers_kept & bit ? USE_NARROWS : USE_KILLS;
}

static enum use use_of(const struct search *search, size_t index, const struct item *item, bool narrowed)
{
	const struct instruction *instruction = &search->graph->code.items[index];
	return item->flag != 0 ? flag_use(instruction, item->flag)
			       : register_use(search, instruction, item->number, narrowed);
}

/* ---- forward ---- */

static void give_up(struct search *search, const char *why)
{
	if (!search->unknown)
		search->why = why;
	search->unknown = true;
}

/* An instruction is visited once, and once more where it was reached narrowed before and is now reached as it is. */
static void reach(struct search *search, size_t index, size_t from, bool narrow)
{
	if (search->from[index] != 0 && (narrow || !search->narrowed[index]))
		return;
	search->from[index] = from + 1;
	search->narrowed[index] = narrow;
	search->queue[search->tail++] = index;
}

/* Control leaves the function by a jump: a tail call, or a table of targets. */
static void leave(struct search *search, const struct instruction *instruction, const struct item *item)
{
	bool expected = item->flag == FLAG_DF; /* by whoever is jumped to */
	bool argument = false;
	if (item->flag == 0) {
		expected = !(machine_call_clobbers(search->machine) & REGISTER(item->number));
		argument = machine_call_arguments(search->machine) & REGISTER(item->number);
	}
	if (!instruction->target_known)
		give_up(search, "it is still destroyed at an indirect jump, whose targets are not known");
	else if (expected || argument)
		give_up(search, argument ? "it is still destroyed at a tail call, whose argument it may be"
					 : "it is still destroyed at a tail call");
}

static void go_on(struct search *search, size_t index, const struct item *item, bool narrow)
{
	const struct flow_graph *graph = search->graph;
	const struct instruction *instruction = &graph->code.items[index];
	bool jumps = instruction->flow == MACHINE_JUMP || instruction->flow == MACHINE_BRANCH;
	size_t next = flow_graph_next(graph, index);
	if (jumps && graph->target[index] == GRAPH_NONE)
		leave(search, instruction, item);
	if (jumps && graph->target[index] != GRAPH_NONE)
		reach(search, graph->target[index], index, narrow);
	if (next != GRAPH_NONE)
		reach(search, next, index, narrow);
	bool continues = instruction->flow != MACHINE_JUMP && instruction->flow != MACHINE_RETURN &&
			 instruction->flow != MACHINE_TRAP;
	if (continues && next == GRAPH_NONE && !graph->whole)
		give_up(search, "some of the function's bytes are no instruction known here");
}

static void start_search(struct search *search, size_t index)
{
	memset(search->from, 0, search->graph->code.count * sizeof *search->from);
	search->head = search->tail = 0;
	if (index < search->graph->code.count)
		reach(search, index, index, false);
	else if (!search->graph->whole)
		give_up(search, "the bytes after it are no instruction known here");
}

/*
 * The nearest reader of the item after the block, or GRAPH_NONE.  A register is followed twice: once as it is, and
 * behind a write to a part of it, where reads of that part are harmless.
 */
static size_t find_reader(struct search *search, const struct item *item)
{
	start_search(search, search->end);
	while (search->head < search->tail) {
		size_t index = search->queue[search->head++];
		if (index >= search->first && index < search->end)
			continue; /* around a loop into the block again: it destroys anew */
		bool narrow = search->narrowed[index];
		enum machine_flow flow = search->graph->code.items[index].flow;
		enum use use = use_of(search, index, item, narrow);
		if (use == USE_READS)
			return index;
		if (use == USE_SAVES)
			give_up(search, "it is saved after the block together with the other flags");
		if (use == USE_MAYBE)
			give_up(search, flow == MACHINE_CALL     ? "it may be an argument of a call"
					: flow == MACHINE_RETURN ? "it may be the function's result"
								 : "more of it is read than was written since");
		if (use == USE_KILLS || (use == USE_MAYBE && flow != MACHINE_NEXT))
			continue;
		go_on(search, index, item, narrow || use == USE_NARROWS);
	}
	return GRAPH_NONE;
}

/* ---- backward ---- */

/* A call or the like between definition and block: what is behind it does not survive. */
static bool defines(const struct search *search, const struct instruction *instruction, const struct item *item,
		    bool *ends)
{
	bool call = instruction->flow == MACHINE_CALL || instruction->flow == MACHINE_SYSTEM;
	if (item->flag != 0) {
		*ends = instruction->flow == MACHINE_CALL || instruction->flags_undefined & item->flag;
		return !*ends && instruction->flags_written & item->flag;
	}
	register_set bit = REGISTER(item->number);
	*ends = false;
	if (call && bit & (machine_return_values(search->machine) & machine_call_clobbers(search->machine)))
		return true; /* a result */
	*ends = instruction->flow == MACHINE_CALL && machine_call_clobbers(search->machine) & bit;
	return !*ends && instruction->registers_written & bit;
}

/* The nearest definition of the item that reaches the block; GRAPH_NONE: none.  `entry`: it came with the call. */
static size_t find_definition(struct search *search, const struct item *item, bool *entry)
{
	const struct flow_graph *graph = search->graph;
	*entry = false;
	start_search(search, search->first);
	while (search->head < search->tail) {
		size_t index = search->queue[search->head++];
		bool inside = index >= search->first && index < search->end;
		bool ends = false;
		if (!inside && defines(search, &graph->code.items[index], item, &ends))
			return index;
		if (ends || (inside && index != search->first))
			continue;
		if (index == 0 && item->flag == 0)
			*entry = true;
		for (size_t i = graph->before_first[index]; i < graph->before_first[index + 1]; i++)
			reach(search, graph->before[i], index, false);
	}
	return GRAPH_NONE;
}

/* ---- the block itself ---- */

struct values {
	flag_set changed; /* since the block's start */
	flag_set known;
	flag_set value;
};

enum { SAVED_MAX = 8 };

/* Flags that pushfq keeps on the stack, and that lahf or mrs keeps in a register, until they are put back. */
struct saved {
	struct values stack[SAVED_MAX];
	int depth; /* how many values are on the block's own stack; below 0: something was popped that it did not push
		    */
	bool flags[SAVED_MAX]; /* whether that entry is flags */
	struct values kept;    /* in a register */
	int keeper;            /* which, or REGISTER_NONE */
};

static void push(struct saved *saved, const struct values *values, bool flags)
{
	if (saved->depth >= 0 && saved->depth < SAVED_MAX) {
		saved->stack[saved->depth] = *values;
		saved->flags[saved->depth] = flags;
	}
	saved->depth++;
}

/* True, and what was saved, where the top of the stack is flags that the block itself put there. */
static bool pop(struct saved *saved, struct values *values)
{
	saved->depth--;
	if (saved->depth < 0 || saved->depth >= SAVED_MAX || !saved->flags[saved->depth])
		return false;
	*values = saved->stack[saved->depth];
	return true;
}

static void apply_writes(const struct instruction *instruction, struct values *values)
{
	flag_set written = instruction->flags_written;
	values->changed |= written;
	values->known &= ~written;
	values->known |= instruction->flags_set | instruction->flags_cleared;
	values->value = (values->value & ~written) | instruction->flags_set;
}

static void apply(const struct instruction *instruction, struct values *values, struct saved *saved)
{
	struct values back;
	if (instruction->shape == SHAPE_PUSH_FLAGS) {
		push(saved, values, true);
	} else if (instruction->shape == SHAPE_POP_FLAGS && pop(saved, &back)) {
		*values = back;
		return;
	} else if (instruction->stack_pushed && instruction->flow != MACHINE_CALL) {
		push(saved, values, false);
	} else if (instruction->stack_popped && instruction->shape != SHAPE_POP_FLAGS) {
		pop(saved, &back);
	} else if (instruction->shape == SHAPE_FLAGS_TO_FIRST) {
		saved->kept = *values;
		saved->keeper = instruction->first;
		return;
	} else if (instruction->shape == SHAPE_FIRST_TO_FLAGS && saved->keeper == instruction->first) {
		/* sahf leaves OF: only what it writes comes back. */
		flag_set written = instruction->flags_written;
		values->changed = (values->changed & ~written) | (saved->kept.changed & written);
		values->known = (values->known & ~written) | (saved->kept.known & written);
		values->value = (values->value & ~written) | (saved->kept.value & written);
		return;
	}
	apply_writes(instruction, values);
	if (saved->keeper != REGISTER_NONE && instruction->registers_written & REGISTER(saved->keeper))
		saved->keeper = REGISTER_NONE;
}

/* What the block leaves of flags: in a straight line with values, otherwise whatever any instruction writes. */
static struct values run_block(const struct search *search)
{
	struct values values = {0};
	struct saved saved = {.keeper = REGISTER_NONE};
	bool straight = true;
	for (size_t i = search->first; i < search->end; i++) {
		const struct instruction *instruction = &search->graph->code.items[i];
		straight &= instruction->flow == MACHINE_NEXT || instruction->flow == MACHINE_SYSTEM;
	}
	for (size_t i = search->first; i < search->end; i++)
		if (straight)
			apply(&search->graph->code.items[i], &values, &saved);
		else
			values.changed |= search->graph->code.items[i].flags_written;
	return values;
}

/* ---- the chain ---- */

static void add_step(struct flow_path *path, struct binary *binary, enum flow_role role,
		     const struct instruction *instruction, const char *text)
{
	cleanup_source_frames struct source_frames frames = {0};
	if (path->step_count >= FLOW_STEPS_MAX)
		return;
	struct flow_step *step = &path->steps[path->step_count++];
	step->role = role;
	step->address = instruction->address;
	step->text = text != NULL ? text_copy(text) : instruction_text(instruction);
	binary_frames(binary, instruction->address, false, &frames);
	if (frames.count > 0 && frames.items[0].line > 0) {
		step->file = text_copy(frames.items[0].file);
		step->line = frames.items[0].line;
	}
}

static size_t find_destroyer(const struct search *search, const struct item *item)
{
	for (size_t i = search->end; i-- > search->first;) {
		const struct instruction *instruction = &search->graph->code.items[i];
		if (item->flag != 0 ? instruction->flags_written & item->flag
				    : instruction->registers_written & REGISTER(item->number))
			return i;
	}
	return search->first;
}

/* Of the block's flag values, those that still stand at the reader, on the way on which it was found. */
static struct values values_at(const struct search *search, size_t reader, struct values values)
{
	for (size_t index = reader; search->from[index] != 0 && search->from[index] - 1 != index;) {
		index = search->from[index] - 1;
		const struct instruction *instruction = &search->graph->code.items[index];
		bool call = instruction->flow == MACHINE_CALL;
		values.known &= ~(call ? FLAGS_STATUS : instruction->flags_written);
		values.changed &= ~(call ? FLAGS_STATUS : instruction->flags_written & ~instruction->flags_kept);
	}
	values.value &= values.known;
	return values;
}

enum { LINE_WITHIN = 16 };

/* Where control goes, and the line of the first instruction there that has one: merged code has none of its own. */
static void find_arm(struct flow_arm *arm, struct binary *binary, const struct flow_graph *graph, uint64_t address)
{
	arm->known = true;
	arm->address = address;
	size_t index = flow_graph_index(graph, address);
	for (int i = 0; i < LINE_WITHIN && index != GRAPH_NONE && arm->line == 0; i++) {
		cleanup_source_frames struct source_frames frames = {0};
		const struct instruction *instruction = &graph->code.items[index];
		binary_frames(binary, instruction->address, false, &frames);
		if (frames.count > 0 && frames.items[0].line > 0) {
			arm->file = text_copy(frames.items[0].file);
			arm->line = frames.items[0].line;
		}
		index = instruction->flow == MACHINE_JUMP ? graph->target[index] : flow_graph_next(graph, index);
	}
}

/* " ZF is always 1 here" for the flags that decided. */
static void append_values(struct str *text, flag_set flags, const struct values *values)
{
	const char *comma = " ";
	for (flag_set flag = 1; flag <= FLAG_V; flag <<= 1) {
		if (!(flags & values->known & flag))
			continue;
		str_append_format(text, "%s%s is always %d", comma, machine_flag_name(flag),
				  (values->value & flag) != 0);
		comma = ", ";
	}
	str_append(text, " here");
}

/* What an instruction does where its condition holds. */
static const char *verb_of(const struct instruction *reader)
{
	if (reader->flow == MACHINE_BRANCH)
		return "jumps";
	if (text_starts_with(reader->mnemonic, "set") || text_starts_with(reader->mnemonic, "cset"))
		return "gives 1";
	return text_starts_with(reader->mnemonic, "cmov") ? "moves" : "takes its first choice";
}

/* "je always jumps: ZF is always 1 here"; NULL where there is nothing to say. */
static char *consequence_of(const struct flow_path *path, const struct search *search, const struct instruction *reader,
			    const struct values *values)
{
	struct str text = {0};
	bool boundary = reader->flow == MACHINE_CALL || reader->flow == MACHINE_RETURN;
	bool carry = reader->condition == 0 && reader->flags_read == FLAG_CF && values->known & FLAG_CF;
	if (path->taken >= 0) {
		str_append_format(&text, "%s %s %s:", reader->mnemonic, path->taken ? "always" : "never",
				  verb_of(reader));
		append_values(&text, reader->flags_read, values);
	} else if (carry) {
		str_append_format(&text, "%s always gets a carry of %d:", reader->mnemonic,
				  (values->value & FLAG_CF) != 0);
		append_values(&text, FLAG_CF, values);
	} else if (boundary && path->read_flags != 0) {
		str_append_format(&text, "%s expects DF to be 0", reader->mnemonic);
	} else if (path->read_flags != 0) {
		str_append_format(&text, "%s decides by what the block left in ", reader->mnemonic);
		machine_flags_text(path->read_flags, &text);
	} else if (reader->flow == MACHINE_RETURN) {
		str_append(&text, "the caller's value is lost: ");
		machine_registers_text(search->machine, path->read_registers, &text);
	} else {
		str_append_format(&text, "%s works on what the block left in ", reader->mnemonic);
		machine_registers_text(search->machine, path->read_registers, &text);
	}
	return str_steal(&text);
}

static void conclude(struct flow_path *path, struct binary *binary, const struct search *search,
		     const struct instruction *reader, const struct values *values)
{
	path->taken = machine_condition(reader->condition, values->known, values->value);
	path->consequence = consequence_of(path, search, reader, values);
	if (path->taken < 0 || reader->flow != MACHINE_BRANCH || !reader->target_known)
		return;
	uint64_t next = reader->address + reader->size;
	find_arm(&path->always, binary, search->graph, path->taken ? reader->target : next);
	find_arm(&path->never, binary, search->graph, path->taken ? next : reader->target);
}

/* True where the item is broken: the chain is in `path`. */
static bool follow_item(struct flow_path *path, struct binary *binary, struct search *search, const struct item *item,
			const struct values *left)
{
	bool entry;
	size_t reader = find_reader(search, item);
	if (reader == GRAPH_NONE)
		return false;
	struct values values = values_at(search, reader, *left);
	size_t definition = find_definition(search, item, &entry);
	if (definition == GRAPH_NONE && !entry) {
		give_up(search, "it is read afterwards, but no definition of it stands before the block");
		return false;
	}
	const struct instruction *code = search->graph->code.items;
	path->state = FLOW_BROKEN;
	add_step(path, binary, FLOW_DEFINITION, &code[definition != GRAPH_NONE ? definition : 0],
		 definition != GRAPH_NONE ? NULL : "(the function's entry)");
	add_step(path, binary, FLOW_DESTROYER, &code[find_destroyer(search, item)], NULL);
	add_step(path, binary, FLOW_READER, &code[reader], NULL);
	path->read_flags = item->flag != 0 ? (code[reader].flags_read & values.changed & path->flags) | item->flag : 0;
	path->read_registers = item->flag != 0 ? 0 : REGISTER(item->number);
	conclude(path, binary, search, &code[reader], &values);
	return true;
}

static void follow_items(struct flow_path *path, struct binary *binary, struct search *search,
			 const struct values *left)
{
	for (flag_set flag = 1; flag <= FLAG_V; flag <<= 1) {
		struct item item = {.flag = flag, .number = REGISTER_NONE};
		bool followed = flag & (FLAGS_STATUS | FLAG_DF);
		if (flag & path->flags && followed && follow_item(path, binary, search, &item, left))
			return;
	}
	for (int i = 0; i < 64; i++) {
		struct item item = {.number = i};
		if (path->registers & REGISTER(i) && follow_item(path, binary, search, &item, left))
			return;
	}
	path->state = search->unknown ? FLOW_UNKNOWN : FLOW_SLEEPING;
	if (search->unknown)
		path->reason = text_copy(search->why);
}

static void set_unknown(struct flow_path *path, const char *reason)
{
	path->state = FLOW_UNKNOWN;
	path->reason = text_copy(reason);
}

void flow_follow(struct flow_path *path, struct binary *binary, struct machine *machine, const struct flow_graph *graph,
		 const struct flow_question *question)
{
	size_t count = graph->code.count;
	struct search search = {.machine = machine, .graph = graph, .first = flow_graph_index(graph, question->start)};
	path->taken = -1;
	if (question->start == question->end) {
		path->state = FLOW_CLEAN;
		return;
	}
	if (search.first == GRAPH_NONE)
		return set_unknown(path, "no instruction of the function starts where the block does");
	for (search.end = search.first; search.end < count && graph->code.items[search.end].address < question->end;
	     search.end++)
		strlist_add_owned(&path->instructions, instruction_text(&graph->code.items[search.end]));
	struct values left = run_block(&search);
	path->flags = question->measured ? left.changed & (machine_status_flags(machine) | FLAG_DF) : question->flags;
	path->registers = question->registers;
	/* cld where it was clear before leaves what every caller expects. */
	if (left.known & FLAG_DF && !(left.value & FLAG_DF))
		path->flags &= ~(flag_set)FLAG_DF;
	if (path->flags == 0 && path->registers == 0) {
		path->state = FLOW_CLEAN;
		return;
	}
	search.from = memory_new(count + 1, sizeof *search.from);
	search.narrowed = memory_new(count + 1, sizeof *search.narrowed);
	search.queue = memory_new(2 * count + 2, sizeof *search.queue);
	follow_items(path, binary, &search, &left);
	free(search.from);
	free(search.narrowed);
	free(search.queue);
}

void flow_path_clear(struct flow_path *path)
{
	for (size_t i = 0; i < path->step_count; i++) {
		free(path->steps[i].text);
		free(path->steps[i].file);
	}
	free(path->reason);
	free(path->consequence);
	free(path->always.file);
	free(path->never.file);
	strlist_clear(&path->instructions);
	source_frames_clear(&path->where);
	*path = (struct flow_path){0};
}

const char *flow_state_name(enum flow_state state)
{
	static const char *const names[] = {"clean", "sleeping", "broken", "unknown"};
	return names[state];
}
