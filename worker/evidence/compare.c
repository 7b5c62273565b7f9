/* See compare.h.  Here: aligning and marking; code.c makes the lines, compare_text.c writes the result. */
#include "evidence/compare.h"

#include <stdlib.h>
#include <string.h>

#include "evidence/myers.h"

static const char *const mark_names[] = {"same", "renamed", "changed", "left-only", "right-only"};

const char *compare_mark_name(enum compare_mark mark)
{
	return mark_names[mark];
}

void comparison_clear(struct comparison *comparison)
{
	free(comparison->rows);
	*comparison = (struct comparison){0};
}

/* ---- which line goes with which ---- */

struct keyed {
	const char *key;
	size_t place;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

/* The same number for the same text: all of `count` texts. */
static size_t *number_texts(struct keyed *keyed, size_t count)
{
	size_t *numbers = memory_new(count + 1, sizeof *numbers);
	if (count > 0)
		qsort(keyed, count, sizeof *keyed, by_key);
	size_t number = 0;
	for (size_t i = 0; i < count; i++) {
		number += i > 0 && strcmp(keyed[i].key, keyed[i - 1].key) != 0;
		numbers[keyed[i].place] = number;
	}
	return numbers;
}

/* Numbers for the keys of both sides, the right side's behind the left's. */
static size_t *number_keys(const struct code *left, const struct code *right)
{
	size_t count = left->count + right->count;
	cleanup_free struct keyed *keyed = memory_new(count + 1, sizeof *keyed);
	for (size_t i = 0; i < count; i++)
		keyed[i] = (struct keyed){i < left->count ? left->lines[i].key : right->lines[i - left->count].key, i};
	return number_texts(keyed, count);
}

static void add_row(struct comparison *comparison, size_t left, size_t right, enum compare_mark mark)
{
	comparison->rows =
		memory_grow(comparison->rows, comparison->count, &comparison->capacity, sizeof *comparison->rows);
	comparison->rows[comparison->count++] = (struct compare_row){.left = left, .right = right, .mark = mark};
}

static size_t mnemonic_length(const struct code_line *line)
{
	return strcspn(line->key, " ");
}

static bool same_mnemonic(const struct code_line *a, const struct code_line *b)
{
	size_t length = mnemonic_length(a);
	return length == mnemonic_length(b) && memcmp(a->key, b->key, length) == 0;
}

/*
 * What stands between two matches: instructions of one mnemonic in the same order are shown as one that changed.
 * Greedy, the nearest first, and no further away than what is left over on the other side.
 */
static void add_gap(struct comparison *comparison, size_t left, size_t left_end, size_t right, size_t right_end)
{
	while (left < left_end) {
		size_t partner = right;
		while (partner < right_end &&
		       !same_mnemonic(&comparison->left->lines[left], &comparison->right->lines[partner]))
			partner++;
		if (partner < right_end && partner - right <= 8) {
			while (right < partner)
				add_row(comparison, COMPARE_NONE, right++, COMPARE_RIGHT_ONLY);
			add_row(comparison, left, right++, COMPARE_CHANGED);
		} else {
			add_row(comparison, left, COMPARE_NONE, COMPARE_LEFT_ONLY);
		}
		left++;
	}
	while (right < right_end)
		add_row(comparison, COMPARE_NONE, right++, COMPARE_RIGHT_ONLY);
}

static void align_lines(struct comparison *comparison)
{
	size_t left_count = comparison->left->count;
	size_t right_count = comparison->right->count;
	cleanup_free size_t *numbers = number_keys(comparison->left, comparison->right);
	cleanup_free bool *unmatched = memory_new(left_count + right_count + 1, sizeof *unmatched);
	struct myers_side left = {numbers, left_count, unmatched};
	struct myers_side right = {numbers + left_count, right_count, unmatched + left_count};
	comparison->approximate = !myers_align(&left, &right);
	for (size_t i = 0, j = 0; i < left_count || j < right_count;) {
		size_t left_end = i;
		size_t right_end = j;
		while (left_end < left_count && left.unmatched[left_end])
			left_end++;
		while (right_end < right_count && right.unmatched[right_end])
			right_end++;
		add_gap(comparison, i, left_end, j, right_end);
		i = left_end;
		j = right_end;
		if (i < left_count && j < right_count)
			add_row(comparison, i++, j++, COMPARE_SAME);
	}
}

/* ---- which register stands for which ---- */

/* Both directions; REGISTER_NONE: not bound. */
struct renaming {
	signed char left[64];
	signed char right[64];
};

static void unbind_left(struct renaming *renaming, int left)
{
	if (renaming->left[left] != REGISTER_NONE)
		renaming->right[renaming->left[left]] = REGISTER_NONE;
	renaming->left[left] = REGISTER_NONE;
}

static void unbind_right(struct renaming *renaming, int right)
{
	if (renaming->right[right] != REGISTER_NONE)
		renaming->left[renaming->right[right]] = REGISTER_NONE;
	renaming->right[right] = REGISTER_NONE;
}

static void bind(struct renaming *renaming, int left, int right)
{
	unbind_left(renaming, left);
	unbind_right(renaming, right);
	renaming->left[left] = (signed char)right;
	renaming->right[right] = (signed char)left;
}

/* The value is read: is it one value that both sides mean?  What was not bound before is taken to be so from here on.
 */
static bool use(struct renaming *renaming, int left, int right)
{
	bool agrees = renaming->left[left] == right ||
		      (renaming->left[left] == REGISTER_NONE && renaming->right[right] == REGISTER_NONE);
	bind(renaming, left, right);
	return agrees;
}

static register_set named_registers(const struct code_line *line)
{
	register_set named = 0;
	for (unsigned i = 0; i < line->register_count; i++)
		named |= REGISTER(line->registers[i]);
	return named;
}

static bool is_named_again(const struct code_line *line, unsigned place)
{
	for (unsigned i = 0; i < line->register_count; i++)
		if (i != place && line->registers[i] == line->registers[place])
			return true;
	return false;
}

/* Where a register is written and named twice, the first place outside of an address is the one that is written. */
static bool is_definition(const struct code_line *line, unsigned place)
{
	if (line->address_part[place] || (line->written & REGISTER(line->registers[place])) == 0)
		return false;
	for (unsigned i = 0; i < place; i++)
		if (line->registers[i] == line->registers[place] && !line->address_part[i])
			return false;
	return true;
}

/* Whether the register at this place is read; where it is written here and named twice, the other place is the one that
 * says so. */
static bool is_use(const struct code_line *line, unsigned place)
{
	register_set bit = REGISTER(line->registers[place]);
	if (!is_definition(line, place))
		return line->address_part[place] || (line->read & bit) != 0;
	return (line->kept & bit) != 0 || ((line->read & bit) != 0 && !is_named_again(line, place));
}

static const char another_value[] = "a register holds another value than on the other side";
static const char by_convention[] = "registers that this uses without naming them may differ";

/* Registers that are not in the text stand for themselves. */
static bool use_unnamed(struct renaming *renaming, register_set registers)
{
	bool agrees = true;
	for (int number = 0; number < 64; number++) {
		if ((registers & REGISTER(number)) == 0)
			continue;
		agrees = agrees && (renaming->left[number] == REGISTER_NONE || renaming->left[number] == number) &&
			 (renaming->right[number] == REGISTER_NONE || renaming->right[number] == number);
	}
	return agrees;
}

static void define_unnamed(struct renaming *renaming, register_set registers)
{
	for (int number = 0; number < 64; number++)
		if (registers & REGISTER(number))
			bind(renaming, number, number);
}

static void forget(struct renaming *renaming, register_set registers)
{
	for (int number = 0; number < 64; number++)
		if (registers & REGISTER(number)) {
			unbind_left(renaming, number);
			unbind_right(renaming, number);
		}
}

/* Follow one aligned pair; NULL where the renaming so far carries it, else why not. */
static const char *follow_pair(struct renaming *renaming, const struct code *code, const struct code_line *left,
			       const struct code_line *right)
{
	const char *note = NULL;
	register_set left_unnamed = left->read & ~named_registers(left);
	register_set right_unnamed = right->read & ~named_registers(right);
	register_set convention = left->call     ? machine_call_arguments(code->machine)
				  : left->leaves ? machine_return_values(code->machine)
						 : 0;
	for (unsigned i = 0; i < left->register_count; i++)
		if ((is_use(left, i) || is_use(right, i)) && !use(renaming, left->registers[i], right->registers[i]))
			note = another_value;
	if (!use_unnamed(renaming, left_unnamed | right_unnamed | convention))
		note = note != NULL ? note : by_convention;
	for (unsigned i = 0; i < left->register_count; i++) {
		if (is_definition(left, i) != is_definition(right, i))
			note = another_value;
		else if (is_definition(left, i))
			bind(renaming, left->registers[i], right->registers[i]);
	}
	define_unnamed(renaming, (left->written & ~named_registers(left)) | (right->written & ~named_registers(right)));
	if (left->call) {
		forget(renaming, machine_call_clobbers(code->machine));
		define_unnamed(renaming, machine_return_values(code->machine));
	}
	return note;
}

/* What only one side does: the registers that it writes stand for nothing any more. */
static void follow_lone(struct renaming *renaming, const struct code_line *left, const struct code_line *right)
{
	for (int number = 0; number < 64; number++) {
		if (left != NULL && (left->written & REGISTER(number)))
			unbind_left(renaming, number);
		if (right != NULL && (right->written & REGISTER(number)))
			unbind_right(renaming, number);
	}
}

static void mark_rows(struct comparison *comparison)
{
	struct renaming renaming;
	memset(&renaming, REGISTER_NONE, sizeof renaming);
	if (comparison->count > 0) /* both sides are called with the same arguments */
		define_unnamed(&renaming, machine_call_arguments(comparison->left->machine));
	for (size_t i = 0; i < comparison->count; i++) {
		struct compare_row *row = &comparison->rows[i];
		const struct code_line *left = row->left != COMPARE_NONE ? &comparison->left->lines[row->left] : NULL;
		const struct code_line *right =
			row->right != COMPARE_NONE ? &comparison->right->lines[row->right] : NULL;
		if ((left != NULL && left->label != NULL) || (right != NULL && right->label != NULL))
			memset(&renaming, REGISTER_NONE, sizeof renaming);
		if (left == NULL || right == NULL || row->mark != COMPARE_SAME) {
			follow_lone(&renaming, left, right);
			continue;
		}
		row->note = follow_pair(&renaming, comparison->left, left, right);
		if (row->note != NULL)
			row->mark = COMPARE_CHANGED;
		else if (memcmp(left->registers, right->registers, left->register_count) != 0)
			row->mark = COMPARE_RENAMED;
	}
}

/* ---- */

static bool is_among(const struct code *code, size_t line, const uint64_t *addresses, size_t count)
{
	for (size_t i = 0; line != COMPARE_NONE && i < count; i++)
		if (code->lines[line].address == addresses[i])
			return true;
	return false;
}

void compare(struct comparison *comparison, const struct code *left, const struct code *right,
	     const struct compare_deciding *deciding)
{
	*comparison = (struct comparison){.left = left, .right = right};
	align_lines(comparison);
	mark_rows(comparison);
	for (size_t i = 0; i < comparison->count; i++) {
		struct compare_row *row = &comparison->rows[i];
		comparison->marks[row->mark]++;
		row->deciding =
			deciding != NULL && (is_among(left, row->left, deciding->left, deciding->left_count) ||
					     is_among(right, row->right, deciding->right, deciding->right_count));
	}
}
