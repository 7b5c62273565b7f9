#include "jobs.h"

void cell_job(const struct job *job, struct result *result)
{
	(void)job;
	result_set(result, OUTCOME_ERROR, "not yet");
}
