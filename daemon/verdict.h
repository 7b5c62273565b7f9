/*
 * Who is to blame, and why: a table of rules over the evidence.
 *
 * Pure: JSON in (view_evidence's), JSON out.  Each rule says what it looks at, whether it holds (or that nothing can be said), and
 * in one sentence why.  A difference between versions, vendors or passes alone never blames anybody: such facts are reported as
 * what they are, and no rule that blames looks at them alone.
 */
#ifndef BISECTD_DAEMON_VERDICT_H
#define BISECTD_DAEMON_VERDICT_H

#include <jansson.h>

/*
 * {"verdict": "crate" | "toolchain" | "reproducer" | "inconclusive",
 *  "blames": "usdt-impl 0.3.5", the toolchain's or the reproducer's name, or null,
 *  "fixed_by": [{"axis", "value", "detail"}]: boundaries on whose good side the accused promise is kept or gone,
 *  "title": one line,
 *  "reasons": [{"rule", "kind": "audit" | "path" | "twin" | "pass" | "assembly", "holds": true | false | null, "text"}],
 *  "missing": [{"text", "command" or null}]: what would have to be known for more}
 *
 * `evidence`: view_evidence's, NULL where nothing is bad; `file`: the investigation's, for commands.  A new reference.
 */
json_t *verdict_judge(const json_t *evidence, const char *file);

#endif
