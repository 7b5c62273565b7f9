/*
 * The audit of inline assembly: an IR file in, what each block promises, does and breaks out.
 *
 * Puts together ir (what the compiler was told), constraint, operand, template and assemble (what the machine is told)
 * and contract (whether both agree).  Structures for other rooms of the evidence, JSON for reports; docs/audit.md shows
 * the latter.
 */
#ifndef BISECTD_WORKER_EVIDENCE_AUDIT_H
#define BISECTD_WORKER_EVIDENCE_AUDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "evidence/contract.h"
#include "evidence/ir.h"
#include "evidence/machine.h"
#include "str.h"

struct audit_options {
	const char *clang;    /* the assembler's program; NULL: the newest clang on PATH */
	long long timeout_ms; /* for assembling a file's blocks; 0: a minute */
};

struct audit_block {
	const struct ir_block *ir; /* function, template, constraints, places: borrowed from the audit's module */
	char *probe;               /* "provider:name" or NULL */
	char *crate;               /* of the innermost place, or NULL */
	char *version;             /* of that crate, or NULL */
	struct strlist promises;
	struct instructions instructions; /* decoded; what stands in the block's own section */
	uint8_t *bytes;                   /* as clang assembled them with registers of our choice */
	size_t size;
	char *reason; /* why it is not judged; NULL: it is */
	struct violation *violations;
	size_t violation_count;
	register_set destroyed_registers; /* undeclared, at the block's end */
	flag_set destroyed_flags;
};

struct audit {
	char *file;
	struct ir_module module;
	struct machine *machine;
	struct audit_block *blocks; /* module.block_count of them, in its order */
	size_t judged;
	size_t not_judged;
	size_t violations;
};

#define cleanup_audit __attribute__((cleanup(audit_clear)))

/*
 * Audits a file of textual LLVM IR.  -1 where it cannot be read, is no IR, is for a machine that is not known, or where
 * there is no assembler; a block that cannot be judged is no error.
 */
int audit_ir_file(struct audit *audit, const char *path, const struct audit_options *options, struct error *error);
/* The same from memory; `name` stands for the file. */
int audit_ir_text(struct audit *audit, const char *name, const char *text, size_t length,
		  const struct audit_options *options, struct error *error);
void audit_clear(struct audit *audit);

/* {"file", "target", "blocks": […], "judged", "not_judged", "violations", "cut_off"?}; a new reference. */
json_t *audit_to_json(const struct audit *audit);
/* One block of it; a new reference. */
json_t *audit_block_to_json(const struct audit *audit, const struct audit_block *block);

/* Any file that can be audited (textual IR, a binary), as JSON: a new reference, or NULL with the error. */
json_t *audit_file(const char *path, const struct audit_options *options, struct error *error);

/*
 * The crate that a source path belongs to (…/registry/src/…/NAME-VERSION/…, …/crates/NAME-VERSION/…, …/vendor/NAME/…,
 * …/library/NAME/src/…).  False where it shows none; otherwise both are owned by the caller, `version` may be NULL.
 */
bool audit_crate_of_path(const char *path, char **crate, char **version);

#endif
