/*
 * libFuzzer: whatever a build left as IR, MIR or code, listing and comparing it ends soon, in text or in an error.
 *
 * The first byte of the input chooses: 'i' LLVM IR, 'm' MIR, 's' a symbol, anything else two functions of machine code,
 * the first as long as the second byte says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void try_ir(const char *text, size_t length)
{
	cleanup_listing_functions struct listing_functions functions = {0};
	cleanup_listing_functions struct listing_functions chosen = {0};
	cleanup_error struct error error = {0};
	cleanup_free char *said = NULL;
	listing_ir_functions(text, length, &functions);
	for (size_t i = 0; i < functions.count; i++) {
		cleanup_str struct str whole = {0};
		cleanup_str struct str plain = {0};
		require(listing_ir(text, length, functions.items[i].symbol, false, &whole, &error) == 0 &&
			whole.length > 0);
		require(listing_ir(text, length, functions.items[i].symbol, true, &plain, &error) == 0);
		if (i > 8)
			break;
	}
	int status = listing_choose(&functions, "a|main", NULL, &chosen, &said, &error);
	require((status == 0) == (chosen.count > 0) && (status == 0) == (error.text == NULL));
}

static void try_mir(const char *text, size_t length)
{
	cleanup_str struct str found = {0};
	cleanup_error struct error error = {0};
	int status = listing_mir(text, length, "serial::serial_task::{{closure}}", length % 2 == 0, &found, &error);
	require((status == 0) == (error.text == NULL) && (status == 0 || found.length == 0));
}

static void try_symbol(const char *text, size_t length)
{
	cleanup_free char *symbol = text_copy_range(text, length);
	cleanup_free char *name = demangle(symbol);
	require(strlen(name) <= DEMANGLE_MAX || strcmp(name, symbol) == 0);
}

static void try_code(const uint8_t *data, size_t size, unsigned machine_number)
{
	cleanup_machine struct machine *machine = NULL;
	cleanup_error struct error error = {0};
	cleanup_code struct code left = {0};
	cleanup_code struct code right = {0};
	cleanup_comparison struct comparison comparison = {0};
	cleanup_str struct str text = {0};
	require(machine_open(&machine, machine_number, &error) == 0);
	size_t middle = data[0] < size - 1 ? data[0] : size - 1;
	listing_disassemble(&left, machine, data + 1, middle, 0x1000, NULL);
	listing_disassemble(&right, machine, data + 1 + middle, size - 1 - middle, 0x2000, NULL);
	compare(&comparison, &left, &right, NULL);
	size_t lefts = 0;
	size_t rights = 0;
	for (size_t i = 0; i < comparison.count; i++) {
		require(comparison.rows[i].left == COMPARE_NONE || comparison.rows[i].left == lefts++);
		require(comparison.rows[i].right == COMPARE_NONE || comparison.rows[i].right == rights++);
	}
	require(lefts == left.count && rights == right.count);
	compare_unified(&comparison, size % 5, &text);
	compare_side_by_side(&comparison, size % 300, &text);
	json_t *rows = compare_json(&comparison);
	require(json_array_size(rows) == comparison.count);
	json_decref(rows);

	cleanup_comparison struct comparison own = {0};
	compare(&own, &left, &left, NULL);
	require(own.marks[COMPARE_SAME] == left.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 1 << 16)
		return 0;
	if (data[0] == 'i')
		try_ir((const char *)data + 1, size - 1);
	else if (data[0] == 'm')
		try_mir((const char *)data + 1, size - 1);
	else if (data[0] == 's')
		try_symbol((const char *)data + 1, size - 1);
	else
		try_code(data + 1, size - 1, data[0] == 'a' ? 183 : 62);
	return 0;
}
