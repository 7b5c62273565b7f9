/*
 * A linked program or an object file: its functions, bytes, relocations, source lines and probe records.
 *
 * The wall around libelf and libdw: nothing of them shows here.  Files come from builds under test, so everything in
 * them is doubted: sizes, counts and offsets are checked, and a file that cannot be read is one line of error.  It
 * knows nothing of instructions.
 *
 * Addresses are those of the file (before a loader moves it).  In an object file (.o), where every section starts at 0,
 * each section is given an address range of its own, so that addresses are unique there as well.
 */
#ifndef BISECTD_WORKER_EVIDENCE_ELF_H
#define BISECTD_WORKER_EVIDENCE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "str.h"

struct binary;

#define cleanup_binary __attribute__((cleanup(binary_close)))

/* A regular file.  The errors: cannot be opened, not ELF, cut off, 32 bits, another byte order.  Stripped files open.
 */
int binary_open(struct binary **binary, const char *path, struct error *error);
/* The same for bytes in memory, which are copied.  `name` is for messages. */
int binary_open_memory(struct binary **binary, const void *bytes, size_t size, const char *name, struct error *error);
void binary_close(struct binary **binary);

unsigned binary_machine(const struct binary *binary); /* e_machine, for machine_open */
bool binary_is_object(const struct binary *binary);   /* not linked */
const char *binary_path(const struct binary *binary);

struct binary_function {
	const char *symbol; /* as it is in the file; owned by the binary */
	uint64_t address;
	uint64_t size; /* in bytes; not 0 */
	bool local;
};

/* Defined functions by address; several symbols may have one address.  None (and count 0) where the file is stripped.
 */
const struct binary_function *binary_functions(const struct binary *binary, size_t *count);
/* The one that covers `address`, or NULL. */
const struct binary_function *binary_function_at(const struct binary *binary, uint64_t address);
/* The index of the first function of that symbol in binary_functions at or after `from`, or the count. */
size_t binary_function_named(const struct binary *binary, const char *symbol, size_t from);
/* The bytes that the file holds for [address, address + size) in one section; NULL where it does not hold them all. */
const uint8_t *binary_bytes(struct binary *binary, uint64_t address, size_t size);
/* The section's name and range around an address; false: none.  `name` may be NULL; it is owned by the binary. */
bool binary_section_at(const struct binary *binary, uint64_t address, const char **name, uint64_t *start,
		       uint64_t *size);
/* The value of a defined symbol (in object files: its address as above). */
bool binary_symbol(struct binary *binary, const char *symbol, uint64_t *address);
/* The addresses of the symbols "<prefix>0", "<prefix>1", … below `count`; those that are not there are left alone. */
void binary_numbered(struct binary *binary, const char *prefix, uint64_t *addresses, size_t count);
/*
 * Whether a relocation of an object file touches [address, address + size): what stands there is the linker's to fill
 * in.  Always false for linked files.
 */
bool binary_relocated(const struct binary *binary, uint64_t address, size_t size);

/*
 * What the loader of a linked program puts into the eight bytes at `slot` (an entry of the global offset table): the address of
 * `symbol`, of another library (owned by the binary), or where that is NULL `address` in this one.  False: nothing, or not known.
 */
bool binary_slot(const struct binary *binary, uint64_t slot, const char **symbol, uint64_t *address);

/* ---- source lines ---- */

struct source_frame {
	char *function; /* demangled; NULL where it is not known */
	char *file;     /* NULL where it is not known */
	int line;       /* 0: none, as for code that was merged from several places */
	int column;
};

/* Innermost first: where the instruction comes from, then each function that it was inlined into. */
struct source_frames {
	struct source_frame *items;
	size_t count;
	size_t capacity;
};

#define cleanup_source_frames __attribute__((cleanup(source_frames_clear)))

/* Whether there is debugging information at all. */
bool binary_has_lines(struct binary *binary);
/* Empty where nothing is known, or `binary` is NULL.  `inlined`: the whole chain; otherwise only the first frame, which
 * is cheaper. */
void binary_frames(struct binary *binary, uint64_t address, bool inlined, struct source_frames *frames);
void source_frames_clear(struct source_frames *frames);

/* ---- probes ---- */

enum probe_source {
	PROBE_DTRACE, /* a record in the section set_dtrace_probes (usdt's standard backend) */
	PROBE_STAPSDT /* a SystemTap note */
};

struct binary_probe {
	enum probe_source source;
	char *provider;
	char *name;
	uint64_t address;
	bool is_enabled; /* the block that asks whether somebody listens; otherwise the probe itself, a nop */
	unsigned arguments;
	uint64_t semaphore; /* SystemTap: address of the counter, or 0 */
};

struct binary_probes {
	struct binary_probe *items; /* by address */
	size_t count;
	size_t capacity;
};

#define cleanup_binary_probes __attribute__((cleanup(binary_probes_clear)))

/* All probes; -1 with an error where records are damaged or of a version that is not known (those before are kept). */
int binary_probes(struct binary *binary, struct binary_probes *probes, struct error *error);
void binary_probes_clear(struct binary_probes *probes);

#endif
