/* See version.h. */
#include "version.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* One field up to '.', '-', '+' or the end (in the prerelease part '-' is a letter). */
static size_t field_length(const char *text, bool prerelease)
{
	return strcspn(text, prerelease ? ".+" : ".-+");
}

static bool is_number(const char *text, size_t length)
{
	return length > 0 && strspn(text, "0123456789") >= length;
}

/* Numbers of any length: without leading zeros the longer one is the greater one. */
static int compare_numbers(const char *a, size_t a_length, const char *b, size_t b_length)
{
	while (a_length > 1 && *a == '0') {
		a++;
		a_length--;
	}
	while (b_length > 1 && *b == '0') {
		b++;
		b_length--;
	}
	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return memcmp(a, b, a_length);
}

static int compare_fields(const char *a, size_t a_length, const char *b, size_t b_length)
{
	bool a_number = is_number(a, a_length);
	bool b_number = is_number(b, b_length);
	if (a_number && b_number)
		return compare_numbers(a, a_length, b, b_length);
	if (a_number != b_number)
		return a_number ? -1 : 1;
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
	if (order != 0)
		return order;
	return a_length == b_length ? 0 : a_length < b_length ? -1 : 1;
}

/* Dotted fields from both; both move to their end.  The one with more fields is the greater one. */
static int compare_dotted(const char **a, const char **b, bool prerelease)
{
	for (;;) {
		size_t a_length = field_length(*a, prerelease);
		size_t b_length = field_length(*b, prerelease);
		int order = compare_fields(*a, a_length, *b, b_length);
		*a += a_length;
		*b += b_length;
		if (order != 0)
			return order;
		bool a_more = **a == '.';
		bool b_more = **b == '.';
		if (a_more != b_more)
			return a_more ? 1 : -1;
		if (!a_more)
			return 0;
		(*a)++;
		(*b)++;
	}
}

int version_compare(const char *a, const char *b)
{
	bool a_version = isdigit((unsigned char)*a);
	bool b_version = isdigit((unsigned char)*b);
	if (!a_version || !b_version)
		return a_version != b_version ? (a_version ? -1 : 1) : strcmp(a, b);
	int order = compare_dotted(&a, &b, false);
	if (order != 0)
		return order;
	if (*a != '-' || *b != '-')
		return (*a == '-') == (*b == '-') ? 0 : *a == '-' ? -1 : 1;
	a++;
	b++;
	return compare_dotted(&a, &b, true);
}
