/*
 * libFuzzer on config_parse: any bytes end soon, in 0 without a problem or in -1 with at least one line, and leak
 * nothing.
 *
 *   clang -std=c17 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Icommon -Idaemon tests/fuzz/fuzz_config.c
 * \ daemon/config*.c common/{str,error,fs,outcome,digest}.c -lyaml -lnettle -o build/fuzz_config build/fuzz_config
 * -max_total_time=180 CORPUS tests/unit/data/config tests/unit/data/hostile
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char file[] = "/fuzz/investigation.yaml";
	cleanup_config struct config config = {0};
	cleanup_strlist struct strlist problems = {0};
	int result = config_parse(&config, file, (const char *)data, size, &problems);
	if ((result == 0) != (problems.count == 0))
		abort();
	for (size_t i = 0; i < problems.count; i++)
		if (!text_starts_with(problems.items[i], file) || strpbrk(problems.items[i], "\n\r") != NULL)
			abort();
	return 0;
}
