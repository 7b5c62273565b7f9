/* compare: what two disassemblies have in common, what only uses other registers, what differs; in text and in JSON. */
#include <inttypes.h>

#include "evidence/compare.h"
#include "evidence/listing.h"
#include "evidence/myers.h"
#include "place.h"

/* ---- code from bytes ---- */

static struct machine *x86;

static int open_machine(void **state)
{
	(void)state;
	cleanup_error struct error error = {0};
	return machine_open(&x86, 62, &error);
}

static int close_machine(void **state)
{
	(void)state;
	machine_close(&x86);
	return 0;
}

/* Everything outside of the function is "elsewhere". */
static char *elsewhere(void *context, uint64_t address)
{
	(void)context;
	(void)address;
	return text_copy("elsewhere::h0123456789abcdef");
}

static const struct listing_names names = {.symbol = elsewhere};

#define CODE(code, address, ...)                                                                                       \
	do {                                                                                                           \
		static const uint8_t bytes_[] = {__VA_ARGS__};                                                         \
		listing_disassemble(code, x86, bytes_, sizeof bytes_, address, &names);                                \
	} while (0)

/* One letter a row: = same, ~ renamed, | changed, < left only, > right only. */
static void assert_rows(const struct code *left, const struct code *right, const char *expected)
{
	cleanup_comparison struct comparison comparison = {0};
	cleanup_str struct str letters = {0};
	cleanup_str struct str shown = {0};
	compare(&comparison, left, right, NULL);
	for (size_t i = 0; i < comparison.count; i++)
		str_append_bytes(&letters, &"=~|<>"[comparison.rows[i].mark], 1);
	compare_unified(&comparison, SIZE_MAX, &shown);
	if (strcmp(str_text(&letters), expected) != 0)
		fail_msg("%s instead of %s:\n%s", str_text(&letters), expected, str_text(&shown));
}

/* ---- given the same code elsewhere, when it is compared, then nothing differs ---- */

static void addresses_labels_and_distances_do_not_count(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	/* lea rdi, [rip - 25]; call elsewhere; test rdi, rdi; jne next; nop; ret; beside it another displacement and
	 * target */
	CODE(&left, 0x1000, 0x48, 0x8d, 0x3d, 0xe7, 0xff, 0xff, 0xff, 0xe8, 0xe2, 0xff, 0xff, 0xff, 0x48, 0x85, 0xff,
	     0x75, 0x01, 0x90, 0xc3);
	CODE(&right, 0x987000, 0x48, 0x8d, 0x3d, 0xb9, 0x0f, 0xff, 0xff, 0xe8, 0xb4, 0x0f, 0xff, 0xff, 0x48, 0x85, 0xff,
	     0x75, 0x01, 0x90, 0xc3);
	assert_string_equal(left.lines[0].text, "lea rdi, [rip + elsewhere::h0123456789abcdef]");
	assert_string_equal(left.lines[3].text, "jne .L1");
	assert_string_equal(left.lines[5].label, ".L1");
	assert_rows(&left, &right, "======");
}

static void hashes_in_symbols_do_not_count_and_other_symbols_do(void **state)
{
	(void)state;
	static const struct {
		const char *left, *right;
		bool same;
	} cases[] = {
		{"core::fmt::write::h0123456789abcdef", "core::fmt::write::hfedcba9876543210", true},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "_ZN4core3fmt5write17hfedcba9876543210E", true},
		{".Lanon.0123456789abcdef0123456789abcdef.7", ".Lanon.fedcba9876543210fedcba9876543210.12", true},
		{"core[0123456789abcdef]::fmt::write", "core[fedcba9876543210]::fmt::write", true},
		{"f.llvm.123", "f.llvm.999", true},
		{"core::fmt::write", "core::fmt::writer", false},
		{"a::h0123", "a::h4567", false},
		{"a", NULL, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cleanup_code struct code left = {.machine = x86};
		cleanup_code struct code right = {.machine = x86};
		struct instruction call;
		assert_int_equal(machine_decode(x86, (const uint8_t *)"\xe8\0\0\0\0", 5, 0x1000, &call), 1);
		code_add(&left, &call, cases[i].left, NULL, NULL);
		code_add(&right, &call, cases[i].right, NULL, NULL);
		assert_rows(&left, &right, cases[i].same ? "=" : "|");
	}
}

/* ---- given other registers, when the renaming is consistent, then it is `renamed`, else `changed` ---- */

static void consistent_renaming_counts_as_equal(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	/* mov rax, rdi; sub rax, rsi; mov [rdx], rax; ret  |  mov rcx, rdi; sub rcx, rsi; mov [rdx], rcx; ret */
	CODE(&left, 0, 0x48, 0x89, 0xf8, 0x48, 0x29, 0xf0, 0x48, 0x89, 0x02);
	CODE(&right, 0, 0x48, 0x89, 0xf9, 0x48, 0x29, 0xf1, 0x48, 0x89, 0x0a);
	assert_rows(&left, &right, "~~~");
}

static void another_source_is_no_renaming(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	/* mov rax, rdi; mov rcx, rsi; add rax, rcx  |  mov rax, rdi; mov rcx, rsi; add rax, rax: the same shape */
	CODE(&left, 0, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf1, 0x48, 0x01, 0xc8);
	CODE(&right, 0, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf1, 0x48, 0x01, 0xc0);
	assert_rows(&left, &right, "==|");
}

static void arguments_stand_for_themselves(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	CODE(&left, 0, 0x48, 0x89, 0xf8);  /* mov rax, rdi */
	CODE(&right, 0, 0x48, 0x89, 0xf0); /* mov rax, rsi */
	assert_rows(&left, &right, "|");
}

static void the_result_of_a_function_cannot_be_renamed(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	CODE(&left, 0, 0x48, 0x89, 0xf8, 0xc3);  /* mov rax, rdi; ret */
	CODE(&right, 0, 0x48, 0x89, 0xf9, 0xc3); /* mov rcx, rdi; ret */
	assert_rows(&left, &right, "~|");
}

static void unnamed_registers_cannot_be_renamed(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	/* mov rax, rdi; mov r8, rsi; mul r8  |  mov r8, rdi; mov rax, rsi; mul r8: what goes into rax is the other one
	 */
	CODE(&left, 0, 0x48, 0x89, 0xf8, 0x49, 0x89, 0xf0, 0x49, 0xf7, 0xe0);
	CODE(&right, 0, 0x49, 0x89, 0xf8, 0x48, 0x89, 0xf0, 0x49, 0xf7, 0xe0);
	assert_rows(&left, &right, "~~|");
}

static void the_same_text_with_another_value_is_no_match(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	/* mov rax, rdi; mov rcx, rsi; mov [rdx], rax  |  mov rcx, rdi; mov rax, rsi; mov [rdx], rax */
	CODE(&left, 0, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf1, 0x48, 0x89, 0x02);
	CODE(&right, 0, 0x48, 0x89, 0xf9, 0x48, 0x89, 0xf0, 0x48, 0x89, 0x02);
	cleanup_comparison struct comparison comparison = {0};
	compare(&comparison, &left, &right, NULL);
	assert_int_equal(comparison.rows[2].mark, COMPARE_CHANGED);
	assert_non_null(comparison.rows[2].note);
	assert_rows(&left, &right, "~~|");
}

static void a_new_definition_ends_a_renaming(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	/* xor eax, eax; mov [rdx], rax; xor ecx, ecx; mov [rdx], rcx  |  the same with ecx, then eax */
	CODE(&left, 0, 0x31, 0xc0, 0x48, 0x89, 0x02, 0x31, 0xc9, 0x48, 0x89, 0x0a);
	CODE(&right, 0, 0x31, 0xc9, 0x48, 0x89, 0x0a, 0x31, 0xc0, 0x48, 0x89, 0x02);
	assert_rows(&left, &right, "~~~~");
}

static void another_width_is_a_change(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	CODE(&left, 0, 0x48, 0x89, 0xf8); /* mov rax, rdi */
	CODE(&right, 0, 0x89, 0xf8);      /* mov eax, edi */
	assert_rows(&left, &right, "|");
}

/* ---- usdt-86: the block between the subtraction and its branch ---- */

/* sub rdi, rsi; mov [rdx], rdi; xor rax, rax; jne +1; nop; ret */
static const uint8_t bad[] = {0x48, 0x29, 0xf7, 0x48, 0x89, 0x3a, 0x48, 0x31, 0xc0, 0x75, 0x01, 0x90, 0xc3};
/* sub rdi, rsi; mov [rdx], rdi; xor rax, rax; test rdi, rdi; jne +1; nop; ret */
static const uint8_t good[] = {0x48, 0x29, 0xf7, 0x48, 0x89, 0x3a, 0x48, 0x31,
			       0xc0, 0x48, 0x85, 0xff, 0x75, 0x01, 0x90, 0xc3};

static void compare_bad_with_good(struct comparison *comparison, struct code *left, struct code *right)
{
	static const uint64_t left_addresses[] = {0x1000, 0x1006, 0x1009};
	static const struct compare_deciding deciding = {.left = left_addresses, .left_count = 3};
	left->title = text_copy("bad: usdt 0.5.0");
	right->title = text_copy("good: usdt 0.6.0");
	listing_disassemble(left, x86, bad, sizeof bad, 0x1000, NULL);
	listing_disassemble(right, x86, good, sizeof good, 0x2000, NULL);
	compare(comparison, left, right, &deciding);
}

static void the_missing_test_is_what_differs(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	cleanup_comparison struct comparison comparison = {0};
	compare_bad_with_good(&comparison, &left, &right);
	assert_int_equal(comparison.count, 7);
	assert_int_equal(comparison.marks[COMPARE_SAME], 6);
	assert_int_equal(comparison.rows[3].mark, COMPARE_RIGHT_ONLY);
	cleanup_str struct str summary = {0};
	compare_summary(&comparison, &summary);
	assert_string_equal(str_text(&summary),
			    "6 instructions left, 7 right: 6 the same, 0 with other registers, 0 changed, 0 only left, "
			    "1 only right");
}

static void unified_text_marks_what_decides(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	cleanup_comparison struct comparison comparison = {0};
	cleanup_str struct str text = {0};
	compare_bad_with_good(&comparison, &left, &right);
	compare_unified(&comparison, 0, &text);
	assert_string_equal(str_text(&text), "--- bad: usdt 0.5.0\n"
					     "+++ good: usdt 0.6.0\n"
					     "=>       2000  sub rdi, rsi\n"
					     "@@\n"
					     "=>       2006  xor rax, rax\n"
					     "   +     2009  test rdi, rdi\n"
					     "=>       200c  jne .L1\n");
}

static void side_by_side_text_fits_the_width(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	cleanup_comparison struct comparison comparison = {0};
	cleanup_str struct str text = {0};
	compare_bad_with_good(&comparison, &left, &right);
	compare_side_by_side(&comparison, 60, &text);
	assert_string_equal(str_text(&text), "   bad: usdt 0.5.0               good: usdt 0.6.0\n"
					     "=>   1000  sub rdi, rsi            2000  sub rdi, rsi\n"
					     "     1003  mov qword ptr [rdx…     2003  mov qword ptr [rdx…\n"
					     "=>   1006  xor rax, rax            2006  xor rax, rax\n"
					     "                               >   2009  test rdi, rdi\n"
					     "=>   1009  jne .L1                 200c  jne .L1\n"
					     "     100b  nop                     200e  nop\n"
					     "   .L1:                          .L1:\n"
					     "     100c  ret                     200f  ret\n");
	for (char *line = strtok(text.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		size_t columns = 0;
		for (const char *c = line; *c != '\0'; c++)
			columns += ((unsigned char)*c & 0xc0) != 0x80;
		assert_true(columns <= 60);
	}
}

static void json_has_a_row_for_each(void **state)
{
	(void)state;
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	cleanup_comparison struct comparison comparison = {0};
	compare_bad_with_good(&comparison, &left, &right);
	json_t *rows = compare_json(&comparison);
	assert_int_equal(json_array_size(rows), 7);
	const json_t *test = json_array_get(rows, 3);
	assert_string_equal(json_string_value(json_object_get(test, "mark")), "right-only");
	assert_true(json_is_null(json_object_get(test, "left")));
	const json_t *jump = json_array_get(rows, 4);
	assert_string_equal(json_string_value(json_object_get(jump, "mark")), "deciding");
	assert_string_equal(json_string_value(json_object_get(jump, "difference")), "same");
	assert_string_equal(json_string_value(json_object_get(json_object_get(jump, "left"), "address")), "0x1009");
	assert_string_equal(json_string_value(json_object_get(json_object_get(jump, "right"), "text")), "jne .L1");
	json_decref(rows);
}

/* ---- the alignment itself ---- */

/* The length of the longest common subsequence, the slow and plain way. */
static size_t common(const size_t *left, size_t left_count, const size_t *right, size_t right_count)
{
	size_t *row = memory_new(right_count + 1, sizeof *row);
	for (size_t i = 0; i < left_count; i++) {
		size_t corner = 0;
		for (size_t j = 0; j < right_count; j++) {
			size_t above = row[j + 1];
			row[j + 1] = left[i] == right[j] ? corner + 1 : above > row[j] ? above : row[j];
			corner = above;
		}
	}
	size_t length = row[right_count];
	free(row);
	return length;
}

static void assert_shortest(const size_t *left, size_t left_count, const size_t *right, size_t right_count)
{
	bool unmatched[2][64] = {{false}};
	struct myers_side a = {left, left_count, unmatched[0]};
	struct myers_side b = {right, right_count, unmatched[1]};
	assert_true(myers_align(&a, &b));
	size_t matched = 0;
	for (size_t i = 0, j = 0; i < left_count || j < right_count;) {
		if (i < left_count && unmatched[0][i]) {
			i++;
		} else if (j < right_count && unmatched[1][j]) {
			j++;
		} else {
			assert_true(i < left_count && j < right_count);
			assert_int_equal(left[i++], right[j++]);
			matched++;
		}
	}
	assert_int_equal(matched, common(left, left_count, right, right_count));
}

static void alignment_is_the_shortest_on_random_sequences(void **state)
{
	(void)state;
	uint32_t random = 1;
	for (int round = 0; round < 20000; round++) {
		size_t sides[2][64];
		size_t counts[2];
		for (int side = 0; side < 2; side++) {
			random = random * 1664525 + 1013904223;
			counts[side] = (random >> 16) % 33;
			for (size_t i = 0; i < counts[side]; i++) {
				random = random * 1664525 + 1013904223;
				sides[side][i] = (random >> 16) % (2 + (size_t)round % 7);
			}
		}
		assert_shortest(sides[0], counts[0], sides[1], counts[1]);
	}
}

static void very_different_sequences_end_soon_and_say_so(void **state)
{
	(void)state;
	enum { COUNT = 60000 };
	size_t *left = memory_new(COUNT, sizeof *left);
	size_t *right = memory_new(COUNT, sizeof *right);
	bool *unmatched = memory_new(2 * COUNT, sizeof *unmatched);
	for (size_t i = 0; i < COUNT; i++) {
		left[i] = i % 3 == 0 ? 7 : 2 * i;
		right[i] = i % 5 == 0 ? 7 : 2 * i + 1;
	}
	struct myers_side a = {left, COUNT, unmatched};
	struct myers_side b = {right, COUNT, unmatched + COUNT};
	assert_false(myers_align(&a, &b));
	for (size_t i = 0, j = 0; i < COUNT && j < COUNT;) {
		i += a.unmatched[i];
		j += i < COUNT && b.unmatched[j];
		if (i < COUNT && j < COUNT && !a.unmatched[i] && !b.unmatched[j])
			assert_int_equal(left[i++], right[j++]);
	}
	free(left);
	free(right);
	free(unmatched);
}

static void nothing_compared_with_nothing_is_empty(void **state)
{
	(void)state;
	cleanup_code struct code left = {.machine = x86};
	cleanup_code struct code right = {.machine = x86};
	assert_rows(&left, &right, "");
	CODE(&right, 0, 0x90, 0xc3);
	assert_rows(&left, &right, ">>");
	assert_rows(&right, &left, "<<");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_labels_and_distances_do_not_count),
		cmocka_unit_test(hashes_in_symbols_do_not_count_and_other_symbols_do),
		cmocka_unit_test(consistent_renaming_counts_as_equal),
		cmocka_unit_test(another_source_is_no_renaming),
		cmocka_unit_test(arguments_stand_for_themselves),
		cmocka_unit_test(the_result_of_a_function_cannot_be_renamed),
		cmocka_unit_test(unnamed_registers_cannot_be_renamed),
		cmocka_unit_test(the_same_text_with_another_value_is_no_match),
		cmocka_unit_test(a_new_definition_ends_a_renaming),
		cmocka_unit_test(another_width_is_a_change),
		cmocka_unit_test(the_missing_test_is_what_differs),
		cmocka_unit_test(unified_text_marks_what_decides),
		cmocka_unit_test(side_by_side_text_fits_the_width),
		cmocka_unit_test(json_has_a_row_for_each),
		cmocka_unit_test(alignment_is_the_shortest_on_random_sequences),
		cmocka_unit_test(very_different_sequences_end_soon_and_say_so),
		cmocka_unit_test(nothing_compared_with_nothing_is_empty),
	};
	return cmocka_run_group_tests(tests, open_machine, close_machine);
}
