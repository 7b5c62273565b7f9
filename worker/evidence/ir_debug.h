/* The numbered metadata and attribute groups of a module: debug locations and what a function's name is in the source.
 */
#ifndef BISECTD_WORKER_EVIDENCE_IR_DEBUG_H
#define BISECTD_WORKER_EVIDENCE_IR_DEBUG_H

#include "ir.h"
#include "ir_lexer.h"

struct ir_entry {
	unsigned long long number;
	const char *at; /* behind the "=" */
};

struct ir_table {
	struct ir_entry *entries;
	size_t count;
	size_t capacity;
};

void ir_table_add(struct ir_table *table, unsigned long long number, const char *at);
/* Once, before the first ir_table_find. */
void ir_table_sort(struct ir_table *table);
const char *ir_table_find(const struct ir_table *table, unsigned long long number); /* NULL where there is none */
void ir_table_clear(struct ir_table *table);

struct ir_debug {
	struct ir_table metadata;
	const char *end; /* of the module's text */
};

/* The chain that starts at DILocation `number`: fills in locations and location_count of the block. */
void ir_debug_locate(const struct ir_debug *debug, unsigned long long number, struct ir_block *block);
/* Source name of DISubprogram `number`, "crate::module::function"; owned by the caller, or NULL. */
char *ir_debug_function(const struct ir_debug *debug, unsigned long long number);
/* Was it written in Rust?  For DISubprogram `number`; `otherwise` where nothing says so. */
bool ir_debug_is_rust(const struct ir_debug *debug, unsigned long long number, bool otherwise);
/* Does the line of entry `number`, or of an entry named in it, speak of rustc? */
bool ir_debug_names_rustc(const struct ir_debug *debug, unsigned long long number);

#endif
