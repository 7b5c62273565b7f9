/* See verdict.h. */
#include "verdict.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "str.h"

/* What the rules look at, gathered once. */
struct facts {
	const json_t *evidence;
	bool gathered;     /* the bad cell was built for evidence, and its IR and program were looked at */
	bool same_outcome; /* that build was bad in the same way */
	long long blocks;  /* of inline assembly, in the IR of the program */
	long long not_judged;
	long long violations;
	const json_t *violation; /* the first block with one that matters: on a broken path, else any */
	const json_t *broken;    /* the first broken path, or NULL */
	long long broken_count;
	long long sleeping;
	bool paths_unknown;
	const json_t *accused; /* the edit that corrects an accused declaration: where it stands */
	const json_t *cure;    /* the twin that corrects a declaration and is good, or NULL */
	const json_t *no_cure; /* one that was tried and stays bad, or NULL */
	const json_t *limit;   /* of the passes */
	long long unsafe;      /* places of unsafe code that the function is made of; -1: not known */
};

static const json_t *get(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_null(value) ? NULL : value;
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_text(object, key);
	return text != NULL ? text : otherwise;
}

static long long number_of(const json_t *object, const char *key, long long otherwise)
{
	const json_t *value = json_object_get(object, key);
	return json_is_integer(value) ? (long long)json_integer_value(value) : otherwise;
}

static bool is(const json_t *object, const char *key, const char *text)
{
	return strcmp(text_of(object, key, ""), text) == 0;
}

/* Gathering ------------------------------------------------------------------------------------------------------------ */

static void gather_audit(struct facts *facts, const json_t *audit)
{
	size_t index;
	json_t *block;
	facts->blocks = (long long)json_array_size(json_object_get(audit, "blocks"));
	facts->not_judged = number_of(audit, "not_judged", 0);
	json_array_foreach (json_object_get(audit, "blocks"), index, block) {
		size_t count = json_array_size(json_object_get(block, "violations"));
		facts->violations += (long long)count;
		if (count > 0 && facts->violation == NULL)
			facts->violation = block;
	}
}

static void gather_paths(struct facts *facts, const json_t *paths)
{
	size_t index;
	json_t *path;
	json_array_foreach (paths, index, path) {
		if (is(path, "state", "broken")) {
			facts->broken_count++;
			if (facts->broken == NULL)
				facts->broken = path;
		}
		facts->sleeping += is(path, "state", "sleeping");
		facts->paths_unknown = facts->paths_unknown || is(path, "state", "unknown");
	}
}

static void gather_twins(struct facts *facts)
{
	size_t index;
	json_t *twin;
	const char *bad = text_of(facts->evidence, "outcome", "");
	json_array_foreach (json_object_get(facts->evidence, "twins"), index, twin) {
		if (!is(twin, "origin", "audit"))
			continue;
		if (facts->accused == NULL || (facts->cure == NULL && is(twin, "outcome", "pass")))
			facts->accused = json_object_get(twin, "edit");
		if (is(twin, "outcome", "pass") && facts->cure == NULL)
			facts->cure = twin;
		if (is(twin, "outcome", bad) && facts->no_cure == NULL)
			facts->no_cure = twin;
	}
}

static void gather(struct facts *facts, const json_t *evidence)
{
	const json_t *build = get(evidence, "build");
	const json_t *data = get(build, "data");
	*facts = (struct facts){.evidence = evidence, .unsafe = -1};
	facts->gathered = is(build, "outcome", "pass") && data != NULL;
	facts->same_outcome = facts->gathered && is(json_object_get(data, "build"), "outcome", text_of(evidence, "outcome", ""));
	gather_audit(facts, json_object_get(data, "audit"));
	gather_paths(facts, json_object_get(data, "paths"));
	facts->unsafe = number_of(data, "unsafe", -1);
	gather_twins(facts);
	facts->limit = get(get(get(evidence, "passes"), "data"), "limit");
}

/* Words ---------------------------------------------------------------------------------------------------------------- */

/* "src/no-linker.rs:94 of usdt-impl 0.3.5"; owned. */
static char *accused_place(const struct facts *facts)
{
	const json_t *edit = facts->accused;
	const json_t *location = json_object_get(facts->violation, "location");
	if (edit != NULL && get(edit, "crate") != NULL)
		return text_format("%s:%lld of %s%s%s", text_of(edit, "file", "?"), number_of(edit, "line", 0),
				   text_of(edit, "crate", "?"), get(edit, "version") != NULL ? " " : "",
				   text_of(edit, "version", ""));
	if (edit != NULL)
		return text_format("%s:%lld of the reproducer", text_of(edit, "file", "?"), number_of(edit, "line", 0));
	return text_format("the block at %s:%lld", text_of(location, "file", "?"), number_of(location, "line", 0));
}

/* Who declared it: "usdt-impl 0.3.5", the reproducer's name, or NULL where no declaration was found; owned. */
static char *accused_name(const struct facts *facts)
{
	const json_t *edit = facts->accused;
	if (edit == NULL)
		return NULL;
	if (get(edit, "crate") != NULL)
		return text_format("%s%s%s", text_of(edit, "crate", "?"), get(edit, "version") != NULL ? " " : "",
				   text_of(edit, "version", ""));
	return text_copy(text_of(edit, "source", text_of(edit, "reproducer", "the reproducer")));
}

static const json_t *chain_step(const json_t *path, const char *role)
{
	size_t index;
	json_t *step;
	json_array_foreach (json_object_get(path, "chain"), index, step)
		if (is(step, "role", role))
			return step;
	return NULL;
}

/* The rules: each gives what it found in `text` and whether it holds. --------------------------------------------------- */

enum holds { NOT_KNOWN, HOLDS, HOLDS_NOT };

static enum holds contract_is_broken(const struct facts *facts, struct str *text)
{
	if (!facts->gathered) {
		str_append(text, "The inline assembly of the bad program was not audited");
		return NOT_KNOWN;
	}
	if (facts->violations == 0) {
		str_append_format(text, "The audit of %lld blocks of inline assembly found every promise kept%s", facts->blocks,
				  facts->not_judged > 0 ? ", as far as it could judge" : "");
		return facts->not_judged > 0 ? NOT_KNOWN : HOLDS_NOT;
	}
	const json_t *violation = json_array_get(json_object_get(facts->violation, "violations"), 0);
	cleanup_free char *place = accused_place(facts);
	str_append_format(text, "%s breaks a promise: %s (%lld violation%s in %lld blocks)", place,
			  text_of(violation, "text", text_of(violation, "kind", "?")), facts->violations,
			  facts->violations == 1 ? "" : "s", facts->blocks);
	return HOLDS;
}

static enum holds value_is_read(const struct facts *facts, struct str *text)
{
	if (!facts->gathered) {
		str_append(text, "The bad program was not looked at");
		return NOT_KNOWN;
	}
	if (facts->broken == NULL) {
		str_append_format(text, "In this program nothing reads what such a block destroys%s",
				  facts->paths_unknown ? ", as far as its code could be followed" : "");
		return facts->paths_unknown ? NOT_KNOWN : HOLDS_NOT;
	}
	str_append_format(text, "In the program that ran the destroyed value is read: `%s`, then `%s`, then `%s` in %s; %s",
			  text_of(chain_step(facts->broken, "definition"), "text", "?"),
			  text_of(chain_step(facts->broken, "destroyer"), "text", "?"),
			  text_of(chain_step(facts->broken, "reader"), "text", "?"),
			  text_of(facts->broken, "name", text_of(facts->broken, "function", "?")),
			  text_of(facts->broken, "consequence", "the wrong arm may run"));
	if (!facts->same_outcome)
		str_append(text, "; but the build that was looked at did not end as the cell did");
	return HOLDS;
}

static enum holds declaration_cures(const struct facts *facts, struct str *text)
{
	cleanup_free char *place = accused_place(facts);
	if (facts->cure != NULL) {
		str_append_format(
			text,
			"With the declaration at %s corrected, and nothing else changed, the same compiler with the same flags "
			"gives a good program",
			place);
		return HOLDS;
	}
	if (facts->no_cure != NULL) {
		str_append_format(text, "With the declaration at %s corrected the program is as bad as before", place);
		return HOLDS_NOT;
	}
	str_append(text, facts->violations > 0 ? "No twin with the accused declaration corrected was decided"
					       : "There is no accused declaration to correct");
	return facts->violations > 0 ? NOT_KNOWN : HOLDS_NOT;
}

static enum holds pass_is_named(const struct facts *facts, struct str *text)
{
	if (facts->limit == NULL || get(facts->limit, "pass") == NULL) {
		str_append_format(text, "No pass was named%s%s", facts->limit != NULL && get(facts->limit, "reason") ? ": " : "",
				  text_of(facts->limit, "reason", ""));
		return NOT_KNOWN;
	}
	str_append_format(text, "It becomes visible with pass %lld of %lld, %s on %s: where it shows, not whose fault it is",
			  number_of(facts->limit, "bad", 0), number_of(facts->limit, "passes", 0),
			  text_of(facts->limit, "pass", "?"), text_of(facts->limit, "name", text_of(facts->limit, "unit", "?")));
	return HOLDS;
}

/* Of the good cells next to the bad one the one whose code differs least; both sides of a far boundary say less. */
static const json_t *nearest_comparison(const json_t *evidence, const json_t **nearest)
{
	size_t index;
	json_t *neighbour;
	const json_t *best = NULL;
	json_array_foreach (json_object_get(evidence, "neighbours"), index, neighbour) {
		const json_t *comparison = get(get(neighbour, "data"), "comparison");
		if (comparison == NULL || get(neighbour, "axis") == NULL ||
		    (best != NULL && number_of(comparison, "changed", 0) >= number_of(best, "changed", 0)))
			continue;
		best = comparison;
		*nearest = neighbour;
	}
	return best;
}

static enum holds assembly_differs(const struct facts *facts, struct str *text)
{
	const json_t *neighbour = NULL;
	const json_t *comparison = nearest_comparison(facts->evidence, &neighbour);
	if (comparison == NULL) {
		str_append(text, "No good neighbour's assembly could be compared");
		return NOT_KNOWN;
	}
	str_append_format(text,
			  "Compared with the good neighbour %s=%s the function differs in %lld instructions, and %lld are the same",
			  text_of(neighbour, "axis", "?"), text_of(neighbour, "value", "?"), number_of(comparison, "changed", 0),
			  number_of(comparison, "same", 0));
	return HOLDS;
}

static enum holds no_unsafe_code(const struct facts *facts, struct str *text)
{
	if (facts->unsafe < 0)
		str_append(text, "Whether the function is free of unsafe code is not known");
	else if (facts->unsafe == 0)
		str_append(text, "Neither the function nor what is inlined into it holds unsafe code outside the standard library");
	else
		str_append_format(text, "The function, with what is inlined into it, holds unsafe code (%lld places)",
				  facts->unsafe);
	return facts->unsafe < 0 ? NOT_KNOWN : facts->unsafe == 0 ? HOLDS : HOLDS_NOT;
}

enum rule_id { CONTRACT, READ, CURE, PASS, ASSEMBLY, UNSAFE, RULE_COUNT };

static const struct {
	const char *name;
	const char *kind;
	enum holds (*look)(const struct facts *facts, struct str *text);
} rules[RULE_COUNT] = {
	[CONTRACT] = {"contract-is-broken", "audit", contract_is_broken},
	[READ] = {"destroyed-value-is-read", "path", value_is_read},
	[CURE] = {"declaration-alone-cures", "twin", declaration_cures},
	[PASS] = {"pass-is-named", "pass", pass_is_named},
	[ASSEMBLY] = {"assembly-compared", "assembly", assembly_differs},
	[UNSAFE] = {"no-unsafe-code", "audit", no_unsafe_code},
};

static json_t *look(const struct facts *facts, enum holds holds[RULE_COUNT])
{
	json_t *reasons = json_array();
	for (size_t i = 0; i < RULE_COUNT; i++) {
		cleanup_str struct str text = {0};
		holds[i] = rules[i].look(facts, &text);
		str_append(&text, ".");
		json_t *shown = holds[i] == NOT_KNOWN ? json_null() : json_boolean(holds[i] == HOLDS);
		json_array_append_new(reasons, json_pack("{s:s, s:s, s:o, s:s}", "rule", rules[i].name, "kind", rules[i].kind,
							 "holds", shown, "text", str_text(&text)));
	}
	return reasons;
}

/* Conclusions: the first that applies. ---------------------------------------------------------------------------------- */

/* The accused declaration stands in a crate, or in the reproducer itself. */
static const char *blamed_side(const struct facts *facts)
{
	return facts->accused != NULL && get(facts->accused, "crate") == NULL && get(facts->accused, "source") == NULL
		       ? "reproducer"
		       : "crate";
}

static const char *conclude(const struct facts *facts, const enum holds holds[RULE_COUNT])
{
	/* the counter-experiment has the last word: an accusation that it contradicts is none */
	if (holds[CURE] == HOLDS && holds[CONTRACT] == HOLDS)
		return blamed_side(facts);
	if (holds[CONTRACT] == HOLDS && holds[READ] == HOLDS && facts->same_outcome && holds[CURE] != HOLDS_NOT)
		return blamed_side(facts);
	if (holds[CONTRACT] == HOLDS_NOT && holds[UNSAFE] == HOLDS && holds[PASS] == HOLDS && facts->same_outcome)
		return "toolchain";
	return "inconclusive";
}

/* A boundary answers for the accused when its bad side still breaks promises and its good side breaks none: on the good side of an
 * innocent axis they are broken as ever, and only sleep. */
static bool keeps_promises(const json_t *neighbour)
{
	const json_t *audit = get(get(neighbour, "data"), "audit");
	return audit != NULL && number_of(audit, "violations", -1) == 0 && number_of(audit, "not_judged", -1) == 0;
}

static json_t *find_fixes(const json_t *evidence)
{
	size_t index;
	json_t *neighbour;
	json_t *fixes = json_array();
	json_array_foreach (json_object_get(evidence, "neighbours"), index, neighbour) {
		const json_t *boundary = get(neighbour, "boundary");
		/* a compiler that no longer meets the fault has not mended the crate */
		if (boundary == NULL || is(boundary, "type", "toolchain") || !is(boundary, "change", "fixed") ||
		    !is(boundary, "side", "to") || !keeps_promises(neighbour))
			continue;
		json_array_append_new(fixes, json_pack("{s:s, s:s, s:s?}", "axis", text_of(boundary, "axis", "?"), "value",
						       text_of(boundary, "to", "?"), "detail",
						       json_string_value(json_object_get(boundary, "to_detail"))));
	}
	return fixes;
}

static void miss(json_t *missing, const char *text, const char *command)
{
	json_array_append_new(missing, json_pack("{s:s, s:s?}", "text", text, "command", command));
}

static json_t *list_missing(const struct facts *facts, const enum holds holds[RULE_COUNT], const char *verdict, const char *file)
{
	json_t *missing = json_array();
	cleanup_free char *again = text_format("bisectd run %s", file);
	if (facts->evidence == NULL)
		return missing;
	if (!facts->gathered) {
		cleanup_free char *text =
			text_format("The evidence of the bad cell: %s",
				    text_of(get(facts->evidence, "build"), "reason",
					    "none was gathered: it is, for cells that rustc builds, once the first bad combination is "
					    "final and confirmed, unless the investigation says `gather: never`"));
		miss(missing, text, again);
	}
	if (facts->not_judged > 0)
		miss(missing, "Some blocks of inline assembly could not be judged: see the audit's reasons", NULL);
	if (facts->gathered && !facts->same_outcome)
		miss(missing, "A build with debug information and several outputs that fails in the same way: this one did not",
		     NULL);
	if (holds[CONTRACT] == HOLDS && holds[CURE] == NOT_KNOWN)
		miss(missing, "A twin with the accused declaration corrected: name the edit under \"twins\" where it was not found",
		     again);
	if (strcmp(verdict, "inconclusive") == 0 && holds[CONTRACT] == HOLDS_NOT && holds[PASS] == NOT_KNOWN)
		miss(missing, "The pass with which it becomes visible, on an LLVM toolchain", again);
	if (strcmp(verdict, "inconclusive") == 0 && holds[CONTRACT] == HOLDS_NOT && holds[UNSAFE] != HOLDS)
		miss(missing, "A run without undefined behaviour under Miri", "cargo +nightly miri run");
	return missing;
}

static char *make_title(const char *verdict, const char *blames, const json_t *fixes)
{
	struct str title = {0};
	str_append(&title, verdict);
	if (blames != NULL)
		str_append_format(&title, ": %s", blames);
	for (size_t i = 0; i < json_array_size(fixes); i++)
		str_append_format(&title, "%s %s=%s", i == 0 ? ", fixed by" : " and",
				  text_of(json_array_get(fixes, i), "axis", "?"), text_of(json_array_get(fixes, i), "value", "?"));
	return str_steal(&title);
}

json_t *verdict_judge(const json_t *evidence, const char *file)
{
	struct facts facts;
	enum holds holds[RULE_COUNT];
	gather(&facts, evidence);
	json_t *reasons = evidence != NULL ? look(&facts, holds) : json_array();
	const char *verdict = evidence != NULL ? conclude(&facts, holds) : "inconclusive";
	bool accuses = strcmp(verdict, "crate") == 0 || strcmp(verdict, "reproducer") == 0;
	cleanup_free char *blames = accuses ? accused_name(&facts) : NULL;
	json_t *fixes = accuses ? find_fixes(evidence) : json_array();
	cleanup_free char *title = make_title(verdict, blames, fixes);
	return json_pack("{s:s, s:s?, s:s, s:o, s:o, s:o}", "verdict", verdict, "blames", blames, "title", title, "fixed_by", fixes,
			 "reasons", reasons, "missing", list_missing(&facts, holds, verdict, file));
}
