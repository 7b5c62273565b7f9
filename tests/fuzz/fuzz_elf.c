/*
 * libFuzzer: whatever an ELF file holds, reading it ends in answers or in one line of error, and following the probes
 * that it claims to have ends as well.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/demangle.h"
#include "evidence/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libdw 0.188 forgets a block of 32 bytes where debugging information is damaged: not ours to free. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw.so\n";
}

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void ask_functions(struct binary *binary)
{
	size_t count;
	const struct binary_function *functions = binary_functions(binary, &count);
	for (size_t i = 0; i < count && i < 64; i++) {
		const struct binary_function *function = &functions[i];
		cleanup_free char *name = demangle(function->symbol);
		require(name[0] != '\0' || function->symbol[0] == '\0');
		cleanup_source_frames struct source_frames frames = {0};
		require(*name != '\0');
		require(binary_function_named(binary, function->symbol, 0) <= i);
		const uint8_t *bytes = binary_bytes(binary, function->address, (size_t)function->size);
		volatile uint8_t sink = bytes != NULL ? bytes[function->size - 1] : 0;
		(void)sink;
		binary_relocated(binary, function->address, (size_t)function->size);
		binary_frames(binary, function->address, true, &frames);
	}
}

static void follow_probes(struct binary *binary)
{
	cleanup_machine struct machine *machine = NULL;
	cleanup_regions struct regions regions = {0};
	cleanup_flow_graph struct flow_graph graph = {0};
	cleanup_error struct error error = {0};
	const struct flow_question question = {.measured = true};
	if (machine_open(&machine, binary_machine(binary), &error) != 0)
		return;
	regions_of_probes(&regions, binary, machine, &error);
	for (size_t i = 0; i < regions.count && i < 16; i++) {
		cleanup_flow_path struct flow_path path = {0};
		if (!regions.items[i].placed)
			continue;
		flow_region(&path, binary, machine, &regions.items[i], &question, &graph);
		json_t *report = flow_path_json(&path, &regions.items[i], machine);
		require(report != NULL);
		json_decref(report);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_binary struct binary *binary = NULL;
	cleanup_error struct error error = {0};
	int status = binary_open_memory(&binary, data, size, "input", &error);
	require((status == 0) == (error.text == NULL));
	if (status != 0) {
		require(binary == NULL && strchr(error_text(&error), '\n') == NULL);
		return 0;
	}
	ask_functions(binary);
	follow_probes(binary);
	return 0;
}
