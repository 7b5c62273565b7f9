/* See constraint.h. */
#include "constraint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const char *text, const char *at, const char *what, struct error *error)
{
	return error_set(error, "%s at character %zu of the constraints", what, (size_t)(at - text) + 1);
}

static const char *take_modifiers(struct constraint *constraint, const char *at)
{
	constraint->kind = CONSTRAINT_INPUT;
	if (*at == '=')
		constraint->kind = CONSTRAINT_OUTPUT;
	else if (*at == '~')
		constraint->kind = CONSTRAINT_CLOBBER;
	else if (*at == '!')
		constraint->kind = CONSTRAINT_LABEL;
	at += constraint->kind != CONSTRAINT_INPUT;
	for (;; at++) {
		if (*at == '*')
			constraint->indirect = true;
		else if (*at == '&')
			constraint->early = true;
		else if (*at != '%') /* commutative: says nothing of what is written */
			return at;
	}
}

static const char *take_fixed(struct constraint *constraint, const char *text, const char *at, struct error *error)
{
	size_t length = strcspn(at + 1, "},");
	if (at[1 + length] != '}' || length == 0) {
		wrong(text, at, "a brace that is not closed", error);
		return NULL;
	}
	free(constraint->fixed);
	constraint->fixed = text_copy_range(at + 1, length);
	return at + length + 2;
}

static const char *take_tie(struct constraint *constraint, const char *text, const char *at, size_t outputs,
			    struct error *error)
{
	char *end;
	unsigned long number = strtoul(at, &end, 10);
	if (number >= outputs || constraint->kind != CONSTRAINT_INPUT) {
		wrong(text, at, "a tie to no output", error);
		return NULL;
	}
	constraint->tie = (int)number;
	return end;
}

/* "^Yk" is two letters behind the sign, "@3abc" as many as the digit says; everything else is one letter. */
static const char *take_code(struct constraint *constraint, const char *text, const char *at, bool first,
			     struct error *error)
{
	size_t skip = 0;
	size_t length = 1;
	if (*at == '^') {
		skip = 1;
		length = 2;
	} else if (*at == '@' && isdigit((unsigned char)at[1])) {
		skip = 2;
		length = (size_t)(at[1] - '0');
	}
	if (strnlen(at, skip + length) < skip + length || length == 0) {
		wrong(text, at, "a code that is cut off", error);
		return NULL;
	}
	cleanup_free char *code = text_copy_range(at + skip, length);
	if (first)
		strlist_add(&constraint->codes, code);
	return at + skip + length;
}

/* Up to the comma or the end. */
static const char *take_constraint(struct constraint *constraint, const char *text, const char *at, size_t outputs,
				   struct error *error)
{
	bool first = true; /* alternative */
	bool any = false;
	at = take_modifiers(constraint, at);
	while (at != NULL && *at != ',' && *at != '\0') {
		any = true;
		if (*at == '|') {
			first = false;
			at++;
		} else if (*at == '#' || *at == '?' || *at == '!' || *at == '*' || *at == '&' || *at == '%' ||
			   *at == ' ') {
			constraint->early = constraint->early || *at == '&';
			at++;
		} else if (*at == '{') {
			struct constraint ignored = {0};
			at = take_fixed(first ? constraint : &ignored, text, at, error);
			free(ignored.fixed);
		} else if (isdigit((unsigned char)*at)) {
			struct constraint ignored = {.kind = constraint->kind};
			at = take_tie(first ? constraint : &ignored, text, at, outputs, error);
		} else {
			at = take_code(constraint, text, at, first, error);
		}
	}
	if (at != NULL && !any && constraint->kind != CONSTRAINT_LABEL) {
		wrong(text, at, "an empty constraint", error);
		return NULL;
	}
	return at;
}

static bool is_empty(const struct constraint *constraint)
{
	return constraint->fixed == NULL && constraint->tie < 0 && constraint->codes.count == 0;
}

int constraints_parse(struct constraints *constraints, const char *text, struct error *error)
{
	size_t outputs = 0; /* they come first, so that this is also the number of the next operand */
	const char *at = text;
	while (*at != '\0') {
		const char *start = at;
		if (constraints->count == CONSTRAINTS_MAX)
			return error_set(error, "it has more than %d constraints", CONSTRAINTS_MAX);
		constraints->items = memory_grow(constraints->items, constraints->count, &constraints->capacity,
						 sizeof *constraints->items);
		struct constraint *constraint = &constraints->items[constraints->count++];
		*constraint = (struct constraint){.tie = -1};
		at = take_constraint(constraint, text, at, outputs, error);
		if (at == NULL)
			return -1;
		if (is_empty(constraint) && constraint->kind != CONSTRAINT_LABEL)
			return wrong(text, start, "a constraint without a code", error);
		if (constraint->kind == CONSTRAINT_CLOBBER && constraint->fixed == NULL)
			return wrong(text, start, "a clobber without a name", error);
		if (constraint->kind == CONSTRAINT_OUTPUT && outputs + 1 < constraints->count)
			return wrong(text, start, "an output behind something else", error);
		outputs += constraint->kind == CONSTRAINT_OUTPUT;
		if (*at == ',' && *++at == '\0')
			return wrong(text, at, "an empty constraint", error);
	}
	return 0;
}

void constraints_clear(struct constraints *constraints)
{
	for (size_t i = 0; i < constraints->count; i++) {
		free(constraints->items[i].fixed);
		strlist_clear(&constraints->items[i].codes);
	}
	free(constraints->items);
	*constraints = (struct constraints){0};
}

bool constraint_has_code(const struct constraint *constraint, const char *code)
{
	return strlist_contains(&constraint->codes, code);
}

bool constraints_clobber(const struct constraints *constraints, const char *name)
{
	for (size_t i = 0; i < constraints->count; i++)
		if (constraints->items[i].kind == CONSTRAINT_CLOBBER && strcmp(constraints->items[i].fixed, name) == 0)
			return true;
	return false;
}
