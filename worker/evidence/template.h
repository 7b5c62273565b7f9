/*
 * The template of an asm block with its operands put in: text for the assembler.
 *
 * The modifiers ("${0:q}") are those that LLVM's X86AsmPrinter and AArch64AsmPrinter know.
 */
#ifndef BISECTD_WORKER_EVIDENCE_TEMPLATE_H
#define BISECTD_WORKER_EVIDENCE_TEMPLATE_H

#include <stddef.h>

#include "error.h"
#include "evidence/machine.h"
#include "operand.h"
#include "str.h"

/*
 * -1 where the template refers to what is not there or asks for what is not known here.  `unique` is what ${:uid}
 * becomes and numbers the labels of an asm goto: template_label.
 */
int template_expand(const struct ir_block *block, const struct operands *operands, const struct machine *machine,
		    size_t unique, struct str *text, struct error *error);
/* Name of the label that stands for place number `label` of an asm goto. */
char *template_label(size_t unique, size_t label);

/*
 * Why this text is not given to the assembler, or NULL: directives that make it read files of this machine, or that
 * could hide one that does.
 */
const char *template_refusal(const char *text);

/* "provider:probe" where the template writes a record of a USDT probe (set_dtrace_probes, .note.stapsdt); owned, or
 * NULL. */
char *template_probe(const char *template);

#endif
