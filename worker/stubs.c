/* Stand-ins until worker/toolchain.c and worker/prepare.c arrive. */
#include "jobs.h"

__attribute__((weak)) void toolchains_job(const struct job *job, struct result *result)
{
	result_set(result, OUTCOME_ERROR, "jobs of kind \"%s\" are not built in", job->kind);
}

__attribute__((weak)) void releases_job(const struct job *job, struct result *result)
{
	result_set(result, OUTCOME_ERROR, "jobs of kind \"%s\" are not built in", job->kind);
}

__attribute__((weak)) void prepare_job(const struct job *job, struct result *result)
{
	result_set(result, OUTCOME_ERROR, "jobs of kind \"%s\" are not built in", job->kind);
}
