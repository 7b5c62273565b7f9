/* Who is to blame: each rule on its own, and what they come to together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "str.h"
#include "verdict.h"

#define VIOLATION                                                                                                                  \
	"{'function': 'f', 'location': {'file': 'src/main.rs', 'line': 7}, 'judged': true, 'violations': [{'kind': 'flags', "      \
	"'promise': 'preserves_flags', 'text': 'xor rax, rax changes ZF'}]}"
#define KEPT "{'function': 'f', 'judged': true, 'violations': []}"
#define AUDIT(blocks, not_judged) "'audit': {'blocks': [" blocks "], 'not_judged': " not_judged ", 'violations': 0}"
#define BROKEN                                                                                                                     \
	"{'name': 'task', 'state': 'broken', 'consequence': 'jne is never taken', 'chain': [{'role': 'definition', 'text': "       \
	"'sub rdi, rsi'}, {'role': 'destroyer', 'text': 'xor rax, rax'}, {'role': 'reader', 'text': 'jne'}]}"
#define SLEEPING "{'name': 'task', 'state': 'sleeping'}"
#define UNKNOWN "{'name': 'task', 'state': 'unknown'}"
#define BUILD(outcome, audit, paths, more)                                                                                         \
	"'build': {'outcome': 'pass', 'data': {'build': {'outcome': '" outcome "'}, " audit ", 'paths': [" paths "]" more "}}"
#define TWIN(origin, outcome, where)                                                                                               \
	"{'name': 't', 'origin': '" origin "', 'outcome': '" outcome "', 'edit': {" where                                          \
	", 'file': 'src/no-linker.rs', 'line': 94}}"
#define CRATE "'crate': 'usdt-impl', 'version': '0.3.5'"
#define OWN "'reproducer': 'reproducer'"
#define PASS "'passes': {'outcome': 'pass', 'data': {'limit': {'passes': 100, 'bad': 7, 'pass': 'isel', 'unit': 'f'}}}"
#define EVIDENCE(build, passes, twins, neighbours)                                                                                 \
	"{'cell': 1, 'outcome': 'fail', " build ", " passes ", 'twins': [" twins "], 'neighbours': [" neighbours "]}"
#define NONE "'passes': null"

static json_t *read(const char *text)
{
	json_error_t trouble;
	cleanup_free char *plain = text_copy(text);
	for (char *byte = plain; *byte != '\0'; byte++)
		*byte = *byte == '\'' ? '"' : *byte;
	json_t *value = json_loads(plain, 0, &trouble);
	if (value == NULL)
		fail_msg("%s in %s", trouble.text, plain);
	return value;
}

static const char *member(const json_t *verdict, const char *key)
{
	return json_string_value(json_object_get(verdict, key));
}

static void the_rules_come_to_a_verdict(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		const char *evidence;
		const char *verdict;
		const char *blames; /* or NULL */
	} cases[] = {
		{"nothing gathered", EVIDENCE("'build': null", NONE, "", ""), "inconclusive", NULL},
		{"broken, read, cured",
		 EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), PASS, TWIN("audit", "pass", CRATE), ""), "crate",
		 "usdt-impl 0.3.5"},
		{"the same in the reproducer",
		 EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), PASS, TWIN("audit", "pass", OWN), ""), "reproducer",
		 "reproducer"},
		{"broken and read, no twin", EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), NONE, "", ""), "crate",
		 NULL},
		{"broken and read, the twin is not decided",
		 EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), NONE, TWIN("audit", "", CRATE), ""), "crate",
		 "usdt-impl 0.3.5"},
		{"broken and read in a build that is good",
		 EVIDENCE(BUILD("pass", AUDIT(VIOLATION, "0"), BROKEN, ""), NONE, "", ""), "inconclusive", NULL},
		{"broken and read, but no cure",
		 EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), PASS, TWIN("audit", "fail", CRATE), ""), "inconclusive",
		 NULL},
		{"asleep, but cured",
		 EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), SLEEPING, ""), NONE, TWIN("audit", "pass", CRATE), ""), "crate",
		 "usdt-impl 0.3.5"},
		{"asleep, no twin", EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), SLEEPING, ""), PASS, "", ""), "inconclusive",
		 NULL},
		{"only a twin of the user's own cures",
		 EVIDENCE(BUILD("fail", AUDIT(KEPT, "0"), "", ""), PASS, TWIN("user", "pass", CRATE), ""), "inconclusive", NULL},
		{"clean, safe, a pass", EVIDENCE(BUILD("fail", AUDIT(KEPT, "0"), "", ", 'unsafe': 0"), PASS, "", ""), "toolchain",
		 NULL},
		{"clean, but unsafe code", EVIDENCE(BUILD("fail", AUDIT(KEPT, "0"), "", ", 'unsafe': 2"), PASS, "", ""),
		 "inconclusive", NULL},
		{"clean, unsafe not known", EVIDENCE(BUILD("fail", AUDIT(KEPT, "0"), "", ""), PASS, "", ""), "inconclusive", NULL},
		{"clean and safe, no pass", EVIDENCE(BUILD("fail", AUDIT(KEPT, "0"), "", ", 'unsafe': 0"), NONE, "", ""),
		 "inconclusive", NULL},
		{"a pass alone", EVIDENCE("'build': null", PASS, "", ""), "inconclusive", NULL},
		{"not all judged", EVIDENCE(BUILD("fail", AUDIT(KEPT, "1"), "", ", 'unsafe': 0"), PASS, "", ""), "inconclusive",
		 NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		json_t *evidence = read(cases[i].evidence);
		json_t *verdict = verdict_judge(evidence, "file.yaml");
		if (!text_equal(member(verdict, "verdict"), cases[i].verdict) ||
		    !text_equal(member(verdict, "blames"), cases[i].blames))
			fail_msg("%s: %s, blames %s", cases[i].what, member(verdict, "verdict"),
				 member(verdict, "blames") != NULL ? member(verdict, "blames") : "nobody");
		assert_int_equal(json_array_size(json_object_get(verdict, "reasons")), 6);
		if (strcmp(cases[i].verdict, "inconclusive") != 0)
			assert_non_null(strstr(member(verdict, "title"), cases[i].verdict));
		json_decref(verdict);
		json_decref(evidence);
	}
}

static const json_t *reason(const json_t *verdict, const char *kind)
{
	size_t index;
	json_t *entry;
	json_array_foreach (json_object_get(verdict, "reasons"), index, entry)
		if (strcmp(member(entry, "kind"), kind) == 0)
			return entry;
	fail_msg("no reason of kind %s", kind);
	return NULL;
}

static void each_reason_says_what_was_seen(void **state)
{
	(void)state;
	json_t *evidence = read(EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), PASS, TWIN("audit", "pass", CRATE),
					 "{'axis': 'profile', 'value': 'dev', 'data': {'comparison': {'changed': 9}}}"));
	json_t *verdict = verdict_judge(evidence, "file.yaml");
	static const struct {
		const char *kind;
		const char *part;
	} cases[] = {{"audit", "src/no-linker.rs:94 of usdt-impl 0.3.5 breaks a promise: xor rax, rax changes ZF"},
		     {"path", "`sub rdi, rsi`, then `xor rax, rax`, then `jne` in task; jne is never taken."},
		     {"twin", "corrected, and nothing else changed"},
		     {"pass", "pass 7 of 100, isel on f: where it shows, not whose fault it is."},
		     {"assembly", "the good neighbour profile=dev the function differs in 9 instructions"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const json_t *entry = reason(verdict, cases[i].kind);
		assert_true(json_is_true(json_object_get(entry, "holds")));
		if (strstr(member(entry, "text"), cases[i].part) == NULL)
			fail_msg("%s: %s", cases[i].kind, member(entry, "text"));
	}
	assert_int_equal(json_array_size(json_object_get(verdict, "missing")), 0);
	json_decref(verdict);
	json_decref(evidence);
}

#define SIDE(axis, side, change, value, audit)                                                                                     \
	"{'data': {'audit': {'violations': " audit ", 'not_judged': 0}}, 'boundary': {'axis': '" axis "', 'change': '" change      \
	"', 'side': '" side "', 'to': '" value "'}}"

/* On the good side of an innocent axis the promise is broken as ever, and only sleeps. */
static void a_fix_is_named_only_where_the_promise_is_kept_behind_it(void **state)
{
	(void)state;
	json_t *evidence =
		read(EVIDENCE(BUILD("fail", AUDIT(VIOLATION, "0"), BROKEN, ""), NONE, TWIN("audit", "pass", CRATE),
			      SIDE("toolchain', 'type': 'toolchain", "to", "fixed", "1.85", "0") "," SIDE(
				      "rustc", "to", "fixed", "1.85",
				      "2") "," SIDE("usdt", "from", "fixed", "0.6",
						    "2") "," SIDE("usdt", "to", "fixed", "0.6",
								  "0") "," SIDE("tokio", "to", "introduced", "1.25", "0")));
	json_t *verdict = verdict_judge(evidence, "file.yaml");
	assert_int_equal(json_array_size(json_object_get(verdict, "fixed_by")), 1);
	assert_string_equal(member(verdict, "title"), "crate: usdt-impl 0.3.5, fixed by usdt=0.6");
	json_decref(verdict);
	json_decref(evidence);
}

static void what_is_missing_is_said_with_what_supplies_it(void **state)
{
	(void)state;
	json_t *evidence = read(EVIDENCE("'build': {'outcome': 'skip', 'reason': 'the build left no LLVM IR'}", NONE, "", ""));
	json_t *verdict = verdict_judge(evidence, "file.yaml");
	const json_t *missing = json_array_get(json_object_get(verdict, "missing"), 0);
	assert_non_null(strstr(member(missing, "text"), "the build left no LLVM IR"));
	assert_string_equal(member(missing, "command"), "bisectd run file.yaml");
	json_decref(verdict);
	json_decref(evidence);
	verdict = verdict_judge(NULL, "file.yaml");
	assert_string_equal(member(verdict, "verdict"), "inconclusive");
	assert_int_equal(json_array_size(json_object_get(verdict, "missing")), 0);
	json_decref(verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rules_come_to_a_verdict),
		cmocka_unit_test(each_reason_says_what_was_seen),
		cmocka_unit_test(a_fix_is_named_only_where_the_promise_is_kept_behind_it),
		cmocka_unit_test(what_is_missing_is_said_with_what_supplies_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
