/* Which function to look at: see listing.h. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/listing.h"

struct listing_function *listing_add(struct listing_functions *functions, const char *symbol, uint64_t address,
				     uint64_t size)
{
	functions->items =
		memory_grow(functions->items, functions->count, &functions->capacity, sizeof *functions->items);
	struct listing_function *function = &functions->items[functions->count++];
	*function = (struct listing_function){
		.symbol = text_copy(symbol), .name = demangle(symbol), .address = address, .size = size};
	return function;
}

void listing_functions_clear(struct listing_functions *functions)
{
	for (size_t i = 0; i < functions->count; i++) {
		free(functions->items[i].symbol);
		free(functions->items[i].name);
		free(functions->items[i].why);
		strlist_clear(&functions->items[i].inlined);
	}
	free(functions->items);
	*functions = (struct listing_functions){0};
}

static int by_symbol(const void *a, const void *b)
{
	return strcmp((*(const struct listing_function *const *)a)->symbol,
		      (*(const struct listing_function *const *)b)->symbol);
}

void listing_add_inlined(struct listing_functions *functions, const struct listing_functions *from)
{
	const struct listing_function **sorted = memory_new(from->count + 1, sizeof(const struct listing_function *));
	for (size_t i = 0; i < from->count; i++)
		sorted[i] = &from->items[i];
	if (from->count > 0)
		qsort(sorted, from->count, sizeof(const struct listing_function *), by_symbol);
	for (size_t i = 0; i < functions->count && from->count > 0; i++) {
		const struct listing_function *key = &functions->items[i];
		const struct listing_function **found =
			bsearch(&key, sorted, from->count, sizeof(const struct listing_function *), by_symbol);
		if (found != NULL)
			strlist_add_all(&functions->items[i].inlined, &(*found)->inlined);
	}
	free(sorted);
}

/* ---- choosing ---- */

/* Best first. */
enum rank { RANK_NAMED, RANK_INLINED, RANK_GLUE, RANK_NONE };

struct candidate {
	const struct listing_function *function;
	enum rank rank;
	const char *why; /* borrowed */
};

/* The code that the compiler makes to drop, call or debug-print something bears that thing's name. */
static bool is_glue(const char *name)
{
	static const char *const starts[] = {"core::ptr::drop_in_place", "core::ops::function::FnOnce::call_once"};
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (text_starts_with(name, starts[i]))
			return true;
	return false;
}

/* A name of what is inlined that matches; NULL: none.  Borrowed. */
static const char *inlined_match(const struct listing_function *function, const regex_t *pattern)
{
	for (size_t i = 0; i < function->inlined.count; i++)
		if (!is_glue(function->inlined.items[i]) &&
		    regexec(pattern, function->inlined.items[i], 0, NULL, 0) == 0)
			return function->inlined.items[i];
	return NULL;
}

static enum rank rank_function(const struct listing_function *function, const regex_t *pattern,
			       const struct strlist *symbols, const char **why)
{
	*why = NULL;
	if (symbols != NULL && strlist_contains(symbols, function->symbol))
		return RANK_NAMED;
	if (pattern == NULL)
		return RANK_NONE;
	bool named = regexec(pattern, function->name, 0, NULL, 0) == 0 ||
		     regexec(pattern, function->symbol, 0, NULL, 0) == 0;
	if (!named ||
	    function->name[0] ==
		    '<') /* the name may be that of a wrapper: <GenFuture<serial_task::{closure#0}> as Future>::poll */
		*why = inlined_match(function, pattern);
	if (!named && *why == NULL)
		return RANK_NONE;
	return is_glue(function->name) ? RANK_GLUE : named ? RANK_NAMED : RANK_INLINED;
}

static int best_first(const void *a, const void *b)
{
	const struct candidate *left = a;
	const struct candidate *right = b;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	if (left->function->size != right->function->size)
		return left->function->size > right->function->size ? -1 : 1;
	return strcmp(left->function->symbol, right->function->symbol);
}

enum { COMPARED_MAX = 80 }; /* bytes: of longer texts nobody mistypes one letter */

/* The smallest distance of the pattern to a segment of the path. */
static size_t segment_distance(const char *name, const char *pattern)
{
	size_t least = SIZE_MAX;
	while (*name != '\0') {
		const char *end = strstr(name, "::");
		size_t length = end != NULL ? (size_t)(end - name) : strlen(name);
		if (length > 0 && length <= COMPARED_MAX) {
			cleanup_free char *segment = text_copy_range(name, length);
			size_t distance = text_distance(segment, pattern);
			least = distance < least ? distance : least;
		}
		name += length + (end != NULL ? 2 : 0);
	}
	return least;
}

/* The name (own or inlined) that resembles the pattern most; NULL where none does. */
static const char *nearest_name(const struct listing_functions *all, const char *pattern)
{
	const char *nearest = NULL;
	size_t least = strlen(pattern) / 2 + 1;
	for (size_t i = 0; i < all->count && strlen(pattern) <= COMPARED_MAX; i++) {
		const struct strlist *inlined = &all->items[i].inlined;
		for (size_t j = 0; j <= inlined->count; j++) {
			const char *name = j < inlined->count ? inlined->items[j] : all->items[i].name;
			size_t distance = is_glue(name) ? SIZE_MAX : segment_distance(name, pattern);
			bool better = distance < least ||
				      (distance == least && nearest != NULL && strlen(name) < strlen(nearest));
			least = better ? distance : least;
			nearest = better ? name : nearest;
		}
	}
	return nearest;
}

static int nothing_matches(const struct listing_functions *all, const char *pattern, const struct strlist *symbols,
			   struct error *error)
{
	if (all->count == 0)
		return error_set(error, "no functions are known: was the program stripped of its symbols?");
	const char *nearest = pattern != NULL ? nearest_name(all, pattern) : NULL;
	if (pattern == NULL)
		return error_set(error, "none of the %zu functions has one of the %zu symbols asked for", all->count,
				 symbols != NULL ? symbols->count : 0);
	return error_set(error, "none of the %zu functions matches \"%s\"%s%s%s", all->count, pattern,
			 nearest != NULL ? "; the nearest name is \"" : "", nearest != NULL ? nearest : "",
			 nearest != NULL ? "\"" : "");
}

static int compile_pattern(regex_t *compiled, const char *pattern, struct error *error)
{
	char message[200];
	int status = regcomp(compiled, pattern, REG_EXTENDED | REG_NOSUB);
	if (status == 0)
		return 0;
	regerror(status, compiled, message, sizeof message);
	return error_set(error, "\"%s\" is no regular expression: %s", pattern, message);
}

static void take(struct listing_functions *chosen, const struct candidate *candidate)
{
	const struct listing_function *from = candidate->function;
	struct listing_function *function = listing_add(chosen, from->symbol, from->address, from->size);
	strlist_add_all(&function->inlined, &from->inlined);
	function->why = text_copy(candidate->why);
}

int listing_choose(const struct listing_functions *all, const char *pattern, const struct strlist *symbols,
		   struct listing_functions *chosen, char **said, struct error *error)
{
	regex_t compiled;
	*said = NULL;
	if (pattern != NULL && compile_pattern(&compiled, pattern, error) < 0)
		return -1;
	cleanup_free struct candidate *candidates = memory_new(all->count + 1, sizeof *candidates);
	size_t count = 0;
	for (size_t i = 0; i < all->count; i++) {
		struct candidate *candidate = &candidates[count];
		candidate->function = &all->items[i];
		candidate->rank =
			rank_function(&all->items[i], pattern != NULL ? &compiled : NULL, symbols, &candidate->why);
		count += candidate->rank != RANK_NONE;
	}
	if (pattern != NULL)
		regfree(&compiled);
	if (count == 0)
		return nothing_matches(all, pattern, symbols, error);
	qsort(candidates, count, sizeof *candidates, best_first);
	for (size_t i = 0; i < count && i < LISTING_CHOSEN_MAX; i++)
		take(chosen, &candidates[i]);
	if (count > LISTING_CHOSEN_MAX)
		*said = text_format(
			"%zu functions match%s%s%s: %d are shown, those with the name first, the largest first", count,
			pattern != NULL ? " \"" : "", pattern != NULL ? pattern : "", pattern != NULL ? "\"" : "",
			LISTING_CHOSEN_MAX);
	return 0;
}
