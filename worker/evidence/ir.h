/*
 * A reader of textual LLVM IR, as rustc and clang of LLVM 14 to 22 print it: finds the inline assembly and where in the
 * source it stands.
 *
 * It knows as much of the language as that needs and is patient with the rest: what newer versions add is passed over.
 * Text in strings and comments is never taken for code.  An asm call that it cannot read is a block with `unread` set,
 * never left out. It knows nothing of machines: templates and constraint strings are texts here.
 */
#ifndef BISECTD_WORKER_EVIDENCE_IR_H
#define BISECTD_WORKER_EVIDENCE_IR_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "str.h"

/* A place in source text; lines and columns count from 1, 0 where the compiler gave none. */
struct ir_location {
	char *file;     /* as the compiler names it, with its folder put before a relative name; NULL where unknown */
	char *function; /* source name of the function around it, "core::arch::asm_user"; NULL where unknown */
	long long line;
	long long column;
	bool merged; /* code of several places became one: file and line are where the function around it begins */
};

/* A value that goes into the block, or a slot of its result. */
struct ir_value {
	char *type;    /* "i64", "ptr", "<4 x float>" */
	unsigned bits; /* 0 where the type has no size known here */
	char *element; /* type behind the pointer of an indirect operand (elementtype), or NULL */
	char *text;    /* "%x", "5", "@symbol"; NULL in results */
};

struct ir_block {
	char *symbol;      /* of the function that holds it, unescaped */
	char *name;        /* its source name (from debug information), or NULL */
	char *template;    /* unescaped */
	char *constraints; /* unescaped */
	char *unread; /* why this asm call could not be read; then only symbol, name, locations and text_line hold */
	struct ir_value *results;
	size_t result_count;
	struct ir_value *arguments;
	size_t argument_count;
	size_t label_count; /* of a callbr: places it may jump to */
	bool side_effect;
	bool align_stack;
	bool intel;
	/* What the call may do to memory that others can see, by its attributes: true where nothing forbids it. */
	bool may_read;
	bool may_write;
	bool no_red_zone; /* of the function */
	bool naked;       /* of the function */
	bool ends;        /* "unreachable" follows: control never comes out behind the block */
	bool rust;        /* the function was written in Rust */
	struct ir_location
		*locations; /* where the block stands, then where that function was inlined, and so on outwards */
	size_t location_count;
	size_t text_line; /* in the IR file, from 1 */
};

struct ir_module {
	char *triple; /* "" where the file has none */
	bool rust;
	struct ir_block *blocks; /* in the order of the file */
	size_t block_count;
	char *cut_off; /* what is missing where the file ends too early: one clause; NULL where it is whole */
};

#define cleanup_ir_module __attribute__((cleanup(ir_module_clear)))

/*
 * Reads `length` bytes.  -1 where they are no textual IR at all (an object file, bitcode, any other text): the error
 * then says what they are and what to give instead.
 */
int ir_read(struct ir_module *module, const char *text, size_t length, struct error *error);
void ir_module_clear(struct ir_module *module);

/* Is this LLVM IR, textual or bitcode, by its first bytes?  For telling it from a binary. */
bool ir_looks_like_ir(const char *text, size_t length);

/* Size of a first-class type's value in bits; 0 where it is not known. */
unsigned ir_type_bits(const char *type);

#endif
