/* What names, URLs, ranges and paths must look like: one predicate a kind, each with the words for its message. */
#include <stdbool.h>
#include <string.h>

#include "config_schema.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

enum { NAME_LIMIT = 64, LABEL_LIMIT = 200 };

static bool is_made_of(const char *text, const char *first, const char *others)
{
	size_t length = strlen(text);
	return length > 0 && length <= NAME_LIMIT && strchr(first, text[0]) != NULL && strspn(text, others) == length;
}

static bool has_blank(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text <= 0x20 || *text == 0x7f)
			return true;
	return false;
}

const char *config_must_be_investigation(const char *text)
{
	return is_made_of(text, LOWER DIGITS, LOWER DIGITS "-")
		       ? NULL
		       : "1 to 64 lower-case letters, digits and dashes, a dash not first";
}

const char *config_must_be_name(const char *text)
{
	for (size_t i = 0; config_builtin_placeholders[i] != NULL; i++)
		if (strcmp(config_builtin_placeholders[i], text) == 0)
			return "another name than those of the built-in placeholders (profile_dir, features, "
			       "rustflags, workspace, target, rustc, cargo, compiler)";
	return is_made_of(text, LOWER UPPER "_", LOWER UPPER DIGITS "_-")
		       ? NULL
		       : "1 to 64 letters, digits, _ and -, starting with a letter or _";
}

const char *config_must_be_source_name(const char *text)
{
	return is_made_of(text, LOWER UPPER DIGITS "_", LOWER UPPER DIGITS "._-")
		       ? NULL
		       : "1 to 64 letters, digits, dots, _ and -, starting with a letter, a digit or _";
}

const char *config_must_be_crate(const char *text)
{
	return is_made_of(text, LOWER UPPER DIGITS "_", LOWER UPPER DIGITS "_-")
		       ? NULL
		       : "the name of one crate (letters, digits, _ and -)";
}

const char *config_must_be_feature(const char *text)
{
	return *text != '\0' && !has_blank(text) && strchr(text, ',') == NULL
		       ? NULL
		       : "one feature an entry, without blanks and commas";
}

const char *config_must_be_variable(const char *text)
{
	return *text != '\0' && !has_blank(text) && strchr(text, '=') == NULL ? NULL
									      : "the name of an environment variable";
}

/* `git@example.org:path`, as ssh takes it. */
static bool is_scp_like(const char *text)
{
	size_t user = strspn(text, LOWER UPPER DIGITS "._-");
	if (text[0] == '-' || user == 0 || text[user] != '@')
		return false;
	const char *host = text + user + 1;
	size_t length = strcspn(host, ":/");
	return length > 0 && host[0] != '-' && host[length] == ':' && host[length + 1] != '\0';
}

static bool has_more_than(const char *text, const char *scheme)
{
	return text_starts_with(text, scheme) && text[strlen(scheme)] != '\0';
}

const char *config_must_be_source_url(const char *text)
{
	static const char *const starts[] = {"https://", "ssh://", "file:///", "/", "./", "../"};
	bool known = is_scp_like(text);
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		known = known || has_more_than(text, starts[i]);
	return known && !has_blank(text) ? NULL
					 : "a git URL: https://..., ssh://..., user@host:path, file:///... or a path "
					   "that starts with /, ./ or ../";
}

const char *config_must_be_web_url(const char *text)
{
	bool known = has_more_than(text, "https://") || has_more_than(text, "http://");
	return known && !has_blank(text) ? NULL : "an address that starts with https:// or http://";
}

const char *config_must_be_range(const char *text)
{
	const char *dots = strstr(text, "..");
	bool is_range = dots != NULL && dots != text && dots[2] != '\0' && dots[2] != '.' &&
			strstr(dots + 2, "..") == NULL && text[0] != '-' && dots[2] != '-' && !has_blank(text);
	return is_range ? NULL : "a range of two revisions, A..B";
}

const char *config_must_be_inside(const char *text)
{
	bool inside = text[0] != '/' && text[0] != '\0';
	for (const char *part = text; inside && part != NULL; part = strchr(part, '/')) {
		part += *part == '/';
		inside = !(text_starts_with(part, "..") && (part[2] == '/' || part[2] == '\0'));
	}
	return inside ? NULL : "a path relative to the root of the tree, without \"..\"";
}

const char *config_must_be_literal(const char *text)
{
	return *text != '\0' ? NULL : "a text that is not empty";
}

const char *config_must_be_label(const char *text)
{
	return strlen(text) <= LABEL_LIMIT ? NULL : "at most 200 characters";
}
