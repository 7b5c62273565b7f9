/*
 * libFuzzer: whatever a line of the job protocol holds, decoding it ends in a structure or in an error, and what was
 * decoded can be encoded and read back unchanged.
 *
 * The first byte of the input chooses the direction: 'j' a job, as the worker reads it; anything else an event, as the
 * daemon does.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void try_job(const char *line, size_t length)
{
	cleanup_job struct job job = {0};
	cleanup_job struct job again = {0};
	cleanup_error struct error error = {0};
	int status = job_decode(&job, line, length, &error);
	require((status == 0) == (error.text == NULL));
	if (status != 0)
		return;
	require(job.kind != NULL);
	cleanup_free char *first = job_encode(&job);
	require(job_decode(&again, first, strlen(first), &error) == 0);
	cleanup_free char *second = job_encode(&again);
	require(strcmp(first, second) == 0 && strchr(first, '\n') == NULL);
}

static json_t *load(const char *line, size_t length)
{
	json_error_t trouble;
	return json_loadb(line, length, JSON_REJECT_DUPLICATES, &trouble);
}

static void try_result(const char *line, size_t length)
{
	cleanup_result struct result result = {0};
	cleanup_result struct result again = {0};
	cleanup_error struct error error = {0};
	json_t *event = load(line, length);
	int status = event != NULL ? result_decode(&result, event, &error) : -1;
	json_decref(event);
	require(event == NULL || (status == 0) == (error.text == NULL));
	if (status != 0)
		return;
	require(outcome_name(result.outcome) != NULL);
	cleanup_free char *first = result_encode(&result);
	event = load(first, strlen(first));
	require(event != NULL && result_decode(&again, event, &error) == 0);
	json_decref(event);
	cleanup_free char *second = result_encode(&again);
	require(strcmp(first, second) == 0 && strchr(first, '\n') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] == 'j')
		try_job((const char *)data + 1, size - 1);
	else
		try_result((const char *)data + 1, size - 1);
	return 0;
}
