/*
 * See passes.h: the bisection of -opt-bisect-limit.
 *
 * Passes are numbered by each compile for itself.  A package can have several (a library, programs): they are put in a
 * row, in the order in which they started, so that one number says how many passes run in all of them together.
 */
#include "evidence/passes.h"

#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/pass_lines.h"
#include "fs.h"
#include "jobs.h"

enum { MOST_COMPILES = 64, PATIENCE = 12, MOST_FLAGS = 4, MOST_LIKELY = 1 << 16 };

/*
 * How a bisection can be done; the first in which the cell is bad with all passes is taken.  One codegen unit gives the
 * plainest numbers but is another program; with several, LLVM's thin LTO among them cannot always take what a limit
 * leaves (rustc 1.63 crashes).
 */
static const struct way {
	const char *flags[MOST_FLAGS];
	const char *flip; /* of flips.h: what its first build is at the same time */
	const char *title;
} ways[] = {
	{{"-C", "codegen-units=1"}, "codegen-units=1", "with codegen-units=1"},
	{{"-C", "lto=off"}, "lto=off", "with the cell's own codegen units, one after the other, and lto=off"},
	{{NULL}, NULL, "with the cell's own codegen units, one after the other"},
};

static const char warning[] =
	"The pass at which a fault appears is where it becomes visible, not who is to blame: a broken asm! contract "
	"turns bad in an innocent pass just as well. Only the audit and the repaired twin tell the two apart.";

struct compile {
	char *name; /* NAME.TYPE */
	long long passes;
	long long before; /* passes of all compiles before it */
};

struct bisection {
	struct passes *passes;
	const struct way *way;
	struct compile compiles[MOST_COMPILES];
	size_t count;
	long long total;
	long long *likely; /* passes on functions that the job names */
	size_t likely_count;
	size_t likely_capacity;
	long long tried;
	char *unknown; /* why the first step that was neither good nor bad was neither */
	struct error *error;
	bool failed; /* error is set */
};

static void forget_compiles(struct bisection *bisection)
{
	for (size_t i = 0; i < bisection->count; i++)
		free(bisection->compiles[i].name);
	free(bisection->likely);
	bisection->likely = NULL;
	bisection->likely_count = bisection->likely_capacity = 0;
	bisection->count = 0;
	bisection->total = 0;
}

/* What the script makes: crate and type. */
static bool is_compile_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' &&
	       name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")] == '\0';
}

static int read_passes(const struct passes *passes, const char *compile, long long wanted,
		       const struct pass_visitor *visitor, long long *count, struct pass_line *line,
		       struct error *error)
{
	cleanup_free char *name = text_format("%s.lines", compile);
	cleanup_fd int fd = passes_open(passes, name, error);
	return fd >= 0 ? pass_lines_read(fd, wanted, visitor, count, line, error) : -1;
}

/* Many lines in a row are about one function: it is looked at once. */
struct looking {
	struct bisection *bisection;
	struct str unit;
	bool matches;
};

static bool is_likely(const struct passes *passes, const char *unit, size_t length)
{
	cleanup_free char *symbol = pass_unit_function(unit, length);
	if (symbol == NULL)
		return false;
	cleanup_free char *name = demangle(symbol);
	return regexec(&passes->function, symbol, 0, NULL, 0) == 0 || regexec(&passes->function, name, 0, NULL, 0) == 0;
}

static void visit(void *context, long long number, const char *unit, size_t length)
{
	struct looking *looking = context;
	struct bisection *bisection = looking->bisection;
	if (looking->unit.length != length || memcmp(str_text(&looking->unit), unit, length) != 0) {
		str_clear(&looking->unit);
		str_append_bytes(&looking->unit, unit, length);
		looking->matches = is_likely(bisection->passes, unit, length);
	}
	if (!looking->matches || bisection->likely_count == MOST_LIKELY)
		return;
	bisection->likely = memory_grow(bisection->likely, bisection->likely_count, &bisection->likely_capacity,
					sizeof *bisection->likely);
	bisection->likely[bisection->likely_count++] = bisection->total + number;
}

static int count_passes(struct bisection *bisection, const char *compile, long long *count, struct error *error)
{
	cleanup_pass_line struct pass_line none = {0};
	struct looking looking = {.bisection = bisection};
	const struct pass_visitor visitor = {visit, &looking};
	int result = read_passes(bisection->passes, compile, 0, bisection->passes->has_function ? &visitor : NULL,
				 count, &none, error);
	str_clear(&looking.unit);
	return result;
}

static int add_compile(struct bisection *bisection, const char *name, struct error *error)
{
	struct compile *compile = &bisection->compiles[bisection->count];
	for (size_t i = 0; i < bisection->count; i++)
		if (strcmp(bisection->compiles[i].name, name) == 0)
			return 0;
	if (bisection->count == MOST_COMPILES)
		return error_set(error, "the packages have more than %d crates", MOST_COMPILES);
	if (!is_compile_name(name))
		return error_set(error, "the trace names no crate");
	if (count_passes(bisection, name, &compile->passes, error) < 0)
		return error_wrap(error, "%s", name);
	compile->name = text_copy(name);
	compile->before = bisection->total;
	bisection->total += compile->passes;
	bisection->count++;
	return 0;
}

/* After a build with all passes. */
static int read_compiles(struct bisection *bisection, struct error *error)
{
	cleanup_strlist struct strlist order = {0};
	if (passes_read_lines(bisection->passes, "order", &order, error) < 0)
		return -1;
	for (size_t i = 0; i < order.count; i++)
		if (add_compile(bisection, order.items[i], error) < 0)
			return -1;
	if (bisection->total == 0)
		return error_set(error, "the compiler numbers no passes");
	return 0;
}

static void limits_at(const struct bisection *bisection, long long limit, struct strmap *limits)
{
	for (size_t i = 0; i < bisection->count; i++) {
		const struct compile *compile = &bisection->compiles[i];
		long long own = limit - compile->before;
		cleanup_free char *number = text_format("%lld", own >= compile->passes ? -1 : own > 0 ? own : 0);
		strmap_set(limits, compile->name, number);
	}
}

/* -1: bisection->failed.  `limits` must outlive the step's use. */
static int do_step(struct bisection *bisection, const struct strmap *limits, struct step *step)
{
	struct error *error = bisection->error;
	step->flags = bisection->way->flags;
	step->limits = limits;
	if (step_do(bisection->passes, step, error) < 0)
		bisection->failed = true;
	else if (step->done && step->outcome == OUTCOME_ERROR)
		bisection->failed = error_set(error, "%s", step->reason) < 0;
	bisection->tried += step->done;
	return bisection->failed ? -1 : 0;
}

static enum sight observe(void *context, long long limit)
{
	struct bisection *bisection = context;
	cleanup_strmap struct strmap limits = {0};
	cleanup_step struct step step = {.quiet = true};
	if (limit == bisection->total)
		return SIGHT_BAD; /* what the bound was read from */
	limits_at(bisection, limit, &limits);
	if (do_step(bisection, &limits, &step) < 0)
		return SIGHT_END;
	enum sight sight = step_sight(bisection->passes, &step);
	if (sight != SIGHT_END)
		event_progress("%lld of %lld passes: %s", limit, bisection->total, outcome_name(step.outcome));
	if (sight == SIGHT_UNKNOWN && bisection->unknown == NULL)
		bisection->unknown = text_format("with %lld passes: %s", limit,
						 step.reason != NULL ? step.reason : "the compiler was not called");
	return sight;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (text != NULL)
		json_object_set_new(object, key, json_line(text));
}

static void set_reason(json_t *limit, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void set_reason(json_t *limit, const char *format, ...)
{
	cleanup_str struct str text = {0};
	va_list arguments;
	va_start(arguments, format);
	str_append_format_list(&text, format, arguments);
	va_end(arguments);
	set_text(limit, "reason", str_text(&text));
}

/* The compile whose pass the number is the last of. */
static const struct compile *compile_of(const struct bisection *bisection, long long number)
{
	for (size_t i = 0; i < bisection->count; i++) {
		const struct compile *compile = &bisection->compiles[i];
		if (number > compile->before && number <= compile->before + compile->passes)
			return compile;
	}
	return &bisection->compiles[0];
}

static void tell_numbers(const struct bisection *bisection, const struct limit_search *search, json_t *limit)
{
	const struct compile *compile = compile_of(bisection, search->bad > 0 ? search->bad : 1);
	/* in that compile's own numbers, unless the range goes over several */
	bool within = search->bad > 0 && search->good >= compile->before;
	long long before = within ? compile->before : 0;
	json_object_set_new(limit, "passes", json_integer(within ? compile->passes : bisection->total));
	if (search->good >= 0)
		json_object_set_new(limit, "good", json_integer(search->good - before));
	if (search->bad >= 0)
		json_object_set_new(limit, "bad", json_integer(search->bad - before));
	if (within)
		set_text(limit, "crate", compile->name);
}

static void tell_pass(const struct pass_line *line, json_t *limit)
{
	cleanup_free char *function = pass_line_function(line);
	set_text(limit, "pass", line->pass);
	set_text(limit, "unit", line->unit);
	if (function != NULL) {
		cleanup_free char *name = demangle(function);
		set_text(limit, "function", function);
		set_text(limit, "name", name);
	}
}

/* One end once more.  Keeps the line of pass `number`; the reason says what is wrong.  Returns whether all is as
 * before. */
static bool repeat(struct bisection *bisection, long long at, enum sight expected, const struct compile *compile,
		   long long number, struct pass_line *line, json_t *limit)
{
	cleanup_strmap struct strmap limits = {0};
	cleanup_step struct step step = {0};
	cleanup_error struct error error = {0};
	long long count;
	limits_at(bisection, at, &limits);
	if (do_step(bisection, &limits, &step) < 0)
		return false;
	enum sight sight = step_sight(bisection->passes, &step);
	if (expected == SIGHT_BAD) {
		free(bisection->passes->commands);
		bisection->passes->commands = step_commands(bisection->passes, &step);
	}
	if (sight == SIGHT_END)
		set_reason(limit, "no time left to repeat the build with %lld passes", at - compile->before);
	else if (sight != expected)
		set_reason(limit, "not stable: a repeat with %lld passes was %s", at - compile->before,
			   outcome_name(step.outcome));
	else if (read_passes(bisection->passes, compile->name, number, NULL, &count, line, &error) < 0)
		set_reason(limit, "%s", error_text(&error));
	else if (line->text == NULL || line->running != (expected == SIGHT_BAD))
		set_reason(limit, "the compiler printed no line for pass %lld", number);
	else
		return true;
	return false;
}

/*
 * Both ends again, and both builds must call the pass by the same name: else the numbers say nothing, and of the pass
 * only the line that was seen is told.
 */
static void verify(struct bisection *bisection, const struct limit_search *search, json_t *limit)
{
	cleanup_pass_line struct pass_line bad = {0};
	cleanup_pass_line struct pass_line good = {0};
	const struct compile *compile = compile_of(bisection, search->bad);
	long long number = search->bad - compile->before;
	bool certain = repeat(bisection, search->bad, SIGHT_BAD, compile, number, &bad, limit) &&
		       repeat(bisection, search->good, SIGHT_GOOD, compile, number, &good, limit);
	if (certain && (!text_equal(bad.pass, good.pass) || !text_equal(bad.unit, good.unit))) {
		set_reason(limit, "not stable: pass %lld is also called %s on %s", number, good.pass, good.unit);
		certain = false;
	}
	set_text(limit, "line", bad.text);
	if (certain)
		tell_pass(&bad, limit);
}

static void tell_end(struct bisection *bisection, const struct limit_search *search, json_t *limit)
{
	const char *unknown = bisection->unknown != NULL ? bisection->unknown : "nothing was tried";
	switch (search->end) {
	case LIMIT_FOUND:
		verify(bisection, search, limit);
		break;
	case LIMIT_RANGE:
		set_reason(limit, "between these numbers no build is good or bad; %s", unknown);
		break;
	case LIMIT_NOT_BAD:
		set_reason(limit, "not bad with all passes");
		break;
	case LIMIT_BAD_AT_ZERO:
		set_reason(limit, "bad with no optional pass of the package's own crates: what makes it bad is a pass "
				  "that always runs, "
				  "the front end, or code of a dependency");
		break;
	case LIMIT_NO_GOOD:
		set_reason(limit, "no build with fewer passes is good; %s", unknown);
		break;
	case LIMIT_STOPPED:
		set_reason(limit, "no time left after %lld builds", bisection->tried);
		break;
	}
}

static void list_flags(const struct way *way, json_t *limit)
{
	json_t *flags = json_array();
	for (const char *const *flag = way->flags; *flag != NULL; flag++)
		json_array_append_new(flags, json_string(*flag));
	json_object_set_new(limit, "flags", flags);
}

/* Search in this way, whose build with all passes was bad.  Returns whether the answer is final. */
static bool search_way(struct bisection *bisection, json_t *limit)
{
	struct limit_search search = {.bound = bisection->total,
				      .patience = PATIENCE,
				      .observe = observe,
				      .context = bisection,
				      .likely = bisection->likely,
				      .likely_count = bisection->likely_count};
	limit_search(&search);
	if (bisection->failed)
		return true;
	json_object_clear(limit);
	list_flags(bisection->way, limit);
	tell_numbers(bisection, &search, limit);
	tell_end(bisection, &search, limit);
	return search.end != LIMIT_NO_GOOD;
}

/* All passes in this way.  Returns whether the whole bisection has ended; else notes say why not in this way. */
static bool try_way(struct bisection *bisection, struct known_flips *known, json_t *limit, json_t *notes)
{
	const struct way *way = bisection->way;
	struct strmap all = {0}; /* every compile is "the rest" */
	struct step step = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *note = NULL;
	bool ended = false;
	if (do_step(bisection, &all, &step) < 0) {
		step_clear(&step);
		return true;
	}
	enum sight sight = step_sight(bisection->passes, &step);
	if (sight == SIGHT_END) {
		note = text_format("%s: not tried: no time left", way->title);
		set_reason(limit, "no time left after %lld builds", bisection->tried);
		ended = true;
	} else if (sight != SIGHT_BAD) {
		note = text_format("%s: not bad: %s%s%s", way->title, outcome_name(step.outcome),
				   step.reason != NULL ? ": " : "", step.reason != NULL ? step.reason : "");
	} else if (read_compiles(bisection, &error) < 0) {
		note = text_format("%s: %s", way->title, error_text(&error));
	} else {
		event_progress("%s: %lld passes", way->title, bisection->total);
		free(bisection->passes->commands);
		bisection->passes->commands = step_commands(bisection->passes, &step);
		ended = search_way(bisection, limit);
		if (!ended)
			note = text_format("%s: %s", way->title, json_string_value(json_object_get(limit, "reason")));
	}
	if (note != NULL)
		json_array_append_new(notes, json_line(note));
	if (way->flip != NULL && known->count < KNOWN_FLIPS)
		known->items[known->count++] = (struct known_flip){way->flip, step};
	else
		step_clear(&step);
	return ended;
}

json_t *passes_bisect(struct passes *passes, struct known_flips *known, struct error *error)
{
	struct bisection bisection = {.passes = passes, .error = error};
	json_t *limit = json_object();
	json_t *notes = json_array();
	bool ended = false;
	event_phase("passes", 0, 0);
	for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !ended; i++) {
		bisection.way = &ways[i];
		ended = try_way(&bisection, known, limit, notes);
		forget_compiles(&bisection);
		free(bisection.unknown);
		bisection.unknown = NULL;
	}
	if (!ended && json_object_get(limit, "reason") == NULL)
		set_reason(limit, "the pass cannot be bisected: in no way of building one codegen unit after the other "
				  "is the cell bad "
				  "with numbered passes");
	json_object_set_new(limit, "tried", json_integer(bisection.tried));
	json_object_set_new(limit, "notes", notes);
	json_object_set_new(limit, "warning", json_string(warning));
	if (!bisection.failed)
		return limit;
	json_decref(limit);
	return NULL;
}
