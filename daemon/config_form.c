/* Forms that only one key has: commands, outcomes, counts of matches, patterns, the regular expression. */
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "config_schema.h"

enum {
	REGEX_LENGTH_LIMIT = 1000, /* bytes */
	REGEX_COST_LIMIT = 10000,  /* atoms with every {n,m} written out, which is what regcomp does in memory */
};

/* ---- words that become something other than a text ---- */

static void read_axis_type(struct config_reader *reader, const struct config_field *field,
			   const struct config_node *node, void *record)
{
	enum axis_type *type = config_member(field, record);
	int word = config_expect_word(reader, field, node, config_axis_types);
	if (word >= 0)
		*type = (enum axis_type)word;
}

static void read_webhook_format(struct config_reader *reader, const struct config_field *field,
				const struct config_node *node, void *record)
{
	enum webhook_format *format = config_member(field, record);
	int word = config_expect_word(reader, field, node, config_webhook_formats);
	if (word >= 0)
		*format = (enum webhook_format)word;
}

static void read_network(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	static const char *const words[] = {"never", "build", NULL};
	bool *network = config_member(field, record);
	*network = config_expect_word(reader, field, node, words) == 1;
}

const struct config_type config_type_axis_type = {"the type of an axis", read_axis_type, NULL, NULL};
const struct config_type config_type_webhook_format = {"a format", read_webhook_format, NULL, NULL};
const struct config_type config_type_network = {"build or never", read_network, NULL, NULL};

static void start_outcomes(const struct config_field *field, void *record)
{
	bool *bad = config_member(field, record);
	bad[OUTCOME_FAIL] = true;
	bad[OUTCOME_CRASH] = true;
}

static void add_outcome(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			void *record)
{
	static const bool refused[OUTCOME_COUNT] = {
		[OUTCOME_PASS] = true, [OUTCOME_SKIP] = true, [OUTCOME_ERROR] = true};
	const char *words[OUTCOME_COUNT] = {NULL};
	size_t count = 0;
	const char *text = config_node_text(node);
	enum outcome outcome = OUTCOME_UNDECIDED;
	if (text != NULL && outcome_parse(text, &outcome) && refused[outcome]) {
		config_report(reader, node, "\"%s\" cannot count as bad (%s): remove it", text,
			      outcome_meaning(outcome));
		return;
	}
	for (int i = OUTCOME_PASS; i < OUTCOME_COUNT; i++)
		if (!refused[i])
			words[count++] = outcome_name((enum outcome)i);
	bool *bad = config_member(field, record);
	if (config_expect_word(reader, field, node, words) >= 0)
		bad[outcome] = true;
}

static void read_outcomes(struct config_reader *reader, const struct config_field *field,
			  const struct config_node *node, void *record)
{
	memset(config_member(field, record), 0, sizeof(bool) * OUTCOME_COUNT);
	config_each_item(reader, field, node, record, add_outcome);
}

const struct config_type config_type_outcomes = {"a list of outcomes", read_outcomes, start_outcomes, NULL};

/* ---- commands ---- */

static const char list_of_words[] = "a list of words, [program, argument, ...]";

/* One text is a command of one word: one with blanks would be looked for as a program of that whole name. */
static void read_words(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       struct strlist *command)
{
	const char *only = config_node_text(node);
	if (only != NULL && strpbrk(only, " \t\n") == NULL && only[0] != '\0') {
		strlist_add(command, only);
		return;
	}
	if (node->kind != CONFIG_LIST || node->broken) {
		config_wrong(reader, field, node, list_of_words);
		return;
	}
	for (size_t i = 0; i < node->count; i++) {
		const char *word = config_expect_text(reader, field, node->entries[i].value);
		if (word != NULL && i == 0 && word[0] == '\0')
			config_report(reader, node->entries[i].value,
				      "the first word of \"%s\" is empty: name the program to run", field->key);
		if (word != NULL)
			strlist_add(command, word);
	}
	if (node->count == 0)
		config_report(reader, node, "a command of \"%s\" is empty: name the program to run", field->key);
}

static void read_command(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	read_words(reader, field, node, config_member(field, record));
}

static void clear_command(const struct config_field *field, void *record)
{
	strlist_clear(config_member(field, record));
}

static void add_command(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			struct config_reproducer *reproducer)
{
	reproducer->build = memory_grow(reproducer->build, reproducer->build_count, &reproducer->build_capacity,
					sizeof *reproducer->build);
	struct strlist *command = &reproducer->build[reproducer->build_count++];
	*command = (struct strlist){0};
	read_words(reader, field, node, command);
}

/* One command or a list of commands: the first element decides. */
static void read_commands(struct config_reader *reader, const struct config_field *field,
			  const struct config_node *node, void *record)
{
	struct config_reproducer *reproducer = record;
	if (node->kind == CONFIG_LIST && node->count == 0)
		return;
	bool several = node->kind == CONFIG_LIST && node->entries[0].value->kind == CONFIG_LIST;
	if (!several) {
		add_command(reader, field, node, reproducer);
		return;
	}
	for (size_t i = 0; i < node->count; i++)
		add_command(reader, field, node->entries[i].value, reproducer);
}

static void clear_commands(const struct config_field *field, void *record)
{
	(void)field;
	struct config_reproducer *reproducer = record;
	for (size_t i = 0; i < reproducer->build_count; i++)
		strlist_clear(&reproducer->build[i]);
	free(reproducer->build);
	reproducer->build = NULL;
	reproducer->build_count = 0;
	reproducer->build_capacity = 0;
}

const struct config_type config_type_command = {list_of_words, read_command, NULL, clear_command};
const struct config_type config_type_commands = {"a command (a list of words) or a list of commands", read_commands,
						 NULL, clear_commands};

static bool is_identifier_byte(char byte, bool first)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
	       (!first && ((byte >= '0' && byte <= '9') || byte == '-'));
}

/* Length of what stands between braces when it looks like a placeholder's name, else 0. */
static size_t placeholder_length(const char *text)
{
	static const char checkout[] = "checkout:";
	size_t length = text_starts_with(text, checkout) ? sizeof checkout - 1 : 0;
	if (length > 0)
		length += strspn(text + length, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	else
		while (is_identifier_byte(text[length], length == 0))
			length++;
	return text[length] == '}' ? length : 0;
}

/* `${HOME}` is the shell's; `{print $1}`, `{ "json": 1 }` and `{a,b}` do not look like names. */
static void refer_placeholders_of_text(struct config_reader *reader, const struct config_node *node)
{
	for (const char *brace = strchr(node->text, '{'); brace != NULL; brace = strchr(brace + 1, '{')) {
		size_t length = placeholder_length(brace + 1);
		if (length > 0 && (brace == node->text || brace[-1] != '$'))
			config_refer(reader, CONFIG_PLACEHOLDER_USED, NULL, text_copy_range(brace + 1, length), node);
	}
}

/* Depth is limited by CONFIG_DEPTH_LIMIT. */
void config_refer_placeholders(struct config_reader *reader, const struct config_node *node)
{
	if (node == NULL)
		return;
	if (node->kind == CONFIG_SCALAR)
		refer_placeholders_of_text(reader, node);
	for (size_t i = 0; i < node->count; i++)
		config_refer_placeholders(reader, node->entries[i].value);
}

/* ---- matches: 1, "1..", "..2", "0..2" ---- */

static bool take_bounds(const char *text, long long *min, long long *max)
{
	*min = 0;
	*max = -1;
	bool has_min = config_take_number(&text, min);
	if (has_min && *text == '\0') {
		*max = *min;
		return true;
	}
	if (!text_starts_with(text, ".."))
		return false;
	text += 2;
	bool has_max = config_take_number(&text, max);
	return *text == '\0' && (has_min || has_max);
}

static void read_matches(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			 void *record)
{
	struct config_edit *edit = record;
	const char *text = config_node_text(node);
	long long min = 0;
	long long max = 0;
	if (text == NULL || !take_bounds(text, &min, &max))
		config_wrong(reader, field, node, NULL);
	else if (max == 0 || (max > 0 && min > max))
		config_report(reader, node,
			      "no edit can match \"%s\" times: the second number must be at least 1 and "
			      "not below the first",
			      text);
	else {
		edit->min = min;
		edit->max = max;
	}
}

static void start_matches(const struct config_field *field, void *record)
{
	(void)field;
	struct config_edit *edit = record;
	edit->min = 1;
	edit->max = 1;
}

const struct config_type config_type_matches = {"a number or a range (1, \"1..\", \"0..2\")", read_matches,
						start_matches, NULL};

/* ---- the regular expression ---- */

/* The upper bound of the `{n}`, `{n,}`, `{,m}` or `{n,m}` at `*at`, at least 1.  Moves to its `}`; stays where it is
 * none. */
static long long take_repeats(const char **at)
{
	const char *end = *at + 1;
	long long low = 1;
	long long high = 1;
	bool bounded = config_take_number(&end, &low);
	high = low;
	if (*end == ',') {
		end++;
		bounded = config_take_number(&end, &high) || bounded;
	}
	if (*end != '}' || !bounded)
		return 1;
	*at = end;
	return high < 1 ? 1 : high;
}

/* The last byte of the bracket expression that starts at `at` (POSIX 9.3.5), or of the text where it does not end. */
static const char *bracket_end(const char *at)
{
	at += at[1] == '^' ? 2 : 1;
	if (*at == ']')
		at++;
	for (; *at != '\0' && *at != ']'; at++) {
		if (*at != '[' || at[1] == '\0' || strchr(":.=", at[1]) == NULL)
			continue;
		const char end[] = {at[1], ']', '\0'};
		const char *class_end = strstr(at + 2, end);
		if (class_end != NULL)
			at = class_end + 1;
	}
	return *at != '\0' ? at : at - 1;
}

/* To the last byte of the one atom at `at`: `x`, `\x` or `[...]`. */
static const char *atom_end(const char *at)
{
	if (*at == '\\' && at[1] != '\0')
		return at + 1;
	return *at == '[' ? bracket_end(at) : at;
}

/*
 * regcomp writes `{n,m}` out, so a few nested ones take all memory.  Counts what comes of it, roughly and from above: a
 * group costs what is in it, a repeated atom its cost times the bound.
 */
static bool is_affordable(const char *text)
{
	long long before[REGEX_LENGTH_LIMIT + 1]; /* cost outside of each open group */
	size_t depth = 0;
	long long cost = 0;
	long long last = 0; /* of the latest atom, which is in `cost` */
	for (; *text != '\0' && cost <= REGEX_COST_LIMIT; text++) {
		if (*text == '(') {
			before[depth++] = cost;
			cost = 0;
			last = 0;
		} else if (*text == ')' && depth > 0) {
			last = cost + 1;
			cost = before[--depth] + last;
		} else if (*text == '{') {
			long long times = take_repeats(&text);
			if (times > REGEX_COST_LIMIT)
				return false;
			cost += last * (times - 1);
			last *= times;
		} else if (strchr("*+?", *text) == NULL) {
			text = atom_end(text);
			last = 1;
			cost++;
		}
	}
	return cost <= REGEX_COST_LIMIT;
}

static void read_regex(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       void *record)
{
	const char *text = config_expect_text(reader, field, node);
	if (text == NULL)
		return;
	if (strlen(text) > REGEX_LENGTH_LIMIT || !is_affordable(text)) {
		config_report(reader, node,
			      "the regular expression of \"%s\" is too large: make it shorter, with smaller "
			      "{n,m}",
			      field->key);
		return;
	}
	regex_t compiled;
	int result = regcomp(&compiled, text, REG_EXTENDED | REG_NOSUB);
	if (result != 0) {
		char why[200];
		regerror(result, &compiled, why, sizeof why);
		cleanup_free char *quoted = config_quote(text);
		config_report(reader, node, "\"%s\" must be a POSIX extended regular expression, not %s: %s",
			      field->key, quoted, why);
		return;
	}
	regfree(&compiled);
	config_type_literal.read(reader, field, node, record);
}

static void clear_regex(const struct config_field *field, void *record)
{
	config_type_literal.clear(field, record);
}

const struct config_type config_type_regex = {"a regular expression", read_regex, NULL, clear_regex};

/* ---- exclude and include ---- */

static void check_special(struct config_reader *reader, const struct config_node *node, const char *pattern)
{
	static const char *const specials[] = {"@first", "@last", "@commits", "@releases", NULL};
	struct config_nearest nearest = {.word = pattern};
	for (size_t i = 0; specials[i] != NULL; i++) {
		if (strcmp(specials[i], pattern) == 0)
			return;
		config_nearest_consider(&nearest, specials[i]);
	}
	cleanup_free char *quoted = config_quote(pattern);
	cleanup_free char *hint = config_nearest_hint(&nearest, "");
	config_report(reader, node,
		      "a pattern that starts with @ must be one of @first, @last, @commits, @releases, not "
		      "%s%s",
		      quoted, hint);
}

static void add_pattern(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
			void *record)
{
	const char *text = config_expect_text(reader, field, node);
	if (text == NULL)
		return;
	const char *pattern = text + (text[0] == '!');
	if (pattern[0] == '\0')
		config_wrong(reader, field, node, "a pattern that is not empty (\"*\" stands for every value)");
	else if (pattern[0] == '@')
		check_special(reader, node, pattern);
	else
		config_refer(reader, CONFIG_VALUE_USED, field->key, text_copy(pattern), node);
	strlist_add(config_member(field, record), text);
}

void config_read_rule(struct config_reader *reader, const struct config_node *node, void *record)
{
	struct config_rule *rule = record;
	if (node->broken)
		return;
	if (node->kind != CONFIG_MAPPING || node->count == 0) {
		cleanup_free char *what = config_node_describe(node);
		config_report(reader, node,
			      "an entry here must be a mapping of axes to patterns (axis: pattern), not %s%s",
			      node->kind == CONFIG_MAPPING ? "an empty one" : what,
			      node->kind == CONFIG_MAPPING ? ", which would match every cell" : "");
		return;
	}
	for (size_t i = 0; i < node->count; i++) {
		const struct config_node *axis = node->entries[i].key;
		const struct config_field field = {.key = axis->text,
						   .type = &config_type_lines,
						   .offset = offsetof(struct config_match, patterns),
						   .not_empty = true,
						   .help = "a pattern or a list of patterns"};
		rule->matches =
			memory_grow(rule->matches, rule->match_count, &rule->match_capacity, sizeof *rule->matches);
		struct config_match *match = &rule->matches[rule->match_count++];
		*match = (struct config_match){.axis = text_copy(axis->text)};
		config_refer(reader, CONFIG_AXIS_USED, NULL, text_copy(axis->text), axis);
		config_each_item(reader, &field, node->entries[i].value, match, add_pattern);
	}
}

void config_clear_rule(void *record)
{
	struct config_rule *rule = record;
	for (size_t i = 0; i < rule->match_count; i++) {
		free(rule->matches[i].axis);
		strlist_clear(&rule->matches[i].patterns);
	}
	free(rule->matches);
	*rule = (struct config_rule){0};
}
