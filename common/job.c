/*
 * See job.h.  Both structures are described by a table of fields, and the tables drive both directions, so that the two
 * programs cannot disagree about a field.
 */
#include "job.h"

#include <stdint.h>

#include <stdlib.h>
#include <string.h>

enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_FLAG, FIELD_LIST, FIELD_MAP, FIELD_JSON, FIELD_OUTCOME };

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
};

#define JOB_FIELD(kind, member)                                                                                        \
	{                                                                                                              \
		#member, kind, offsetof(struct job, member)                                                            \
	}
static const struct field job_fields[] = {
	JOB_FIELD(FIELD_TEXT, kind),
	JOB_FIELD(FIELD_TEXT, id),
	JOB_FIELD(FIELD_TEXT, reproducer),
	JOB_FIELD(FIELD_TEXT, workspace),
	JOB_FIELD(FIELD_TEXT, target),
	JOB_FIELD(FIELD_TEXT, prepared),
	JOB_FIELD(FIELD_FLAG, clean),
	JOB_FIELD(FIELD_MAP, checkouts),
	JOB_FIELD(FIELD_LIST, path),
	JOB_FIELD(FIELD_LIST, read_only),
	JOB_FIELD(FIELD_MAP, environment),
	JOB_FIELD(FIELD_MAP, placeholders),
	JOB_FIELD(FIELD_JSON, build),
	JOB_FIELD(FIELD_LIST, run),
	JOB_FIELD(FIELD_NUMBER, runs),
	JOB_FIELD(FIELD_NUMBER, expect_exit),
	JOB_FIELD(FIELD_TEXT, expect_output),
	JOB_FIELD(FIELD_NUMBER, build_ms),
	JOB_FIELD(FIELD_NUMBER, run_ms),
	JOB_FIELD(FIELD_NUMBER, memory_bytes),
	JOB_FIELD(FIELD_NUMBER, processes),
	JOB_FIELD(FIELD_NUMBER, output_bytes),
	JOB_FIELD(FIELD_NUMBER, file_bytes),
	JOB_FIELD(FIELD_TEXT, sandbox),
	JOB_FIELD(FIELD_FLAG, network_for_build),
	JOB_FIELD(FIELD_LIST, names),
	JOB_FIELD(FIELD_LIST, search),
	JOB_FIELD(FIELD_TEXT, cargo),
	JOB_FIELD(FIELD_TEXT, crate),
	JOB_FIELD(FIELD_TEXT, vendor),
	JOB_FIELD(FIELD_TEXT, edited),
	JOB_FIELD(FIELD_TEXT, lock),
	JOB_FIELD(FIELD_JSON, crates),
	JOB_FIELD(FIELD_JSON, overrides),
	JOB_FIELD(FIELD_JSON, edits),
	JOB_FIELD(FIELD_TEXT, evidence),
	JOB_FIELD(FIELD_FLAG, all_packages),
	JOB_FIELD(FIELD_TEXT, compare),
	JOB_FIELD(FIELD_TEXT, function),
	JOB_FIELD(FIELD_TEXT, tools),
	JOB_FIELD(FIELD_TEXT, bad_outcome),
	JOB_FIELD(FIELD_NUMBER, budget_ms),
	JOB_FIELD(FIELD_LIST, files),
	JOB_FIELD(FIELD_FLAG, compile),
	JOB_FIELD(FIELD_LIST, flags),
	JOB_FIELD(FIELD_TEXT, clang),
	JOB_FIELD(FIELD_TEXT, report),
};

#define RESULT_FIELD(kind, member)                                                                                     \
	{                                                                                                              \
		#member, kind, offsetof(struct result, member)                                                         \
	}
static const struct field result_fields[] = {
	RESULT_FIELD(FIELD_OUTCOME, outcome),
	RESULT_FIELD(FIELD_TEXT, reason),
	RESULT_FIELD(FIELD_TEXT, signature),
	RESULT_FIELD(FIELD_TEXT, binary),
	RESULT_FIELD(FIELD_TEXT, commands),
	RESULT_FIELD(FIELD_TEXT, sandbox),
	RESULT_FIELD(FIELD_NUMBER, exit_status),
	RESULT_FIELD(FIELD_NUMBER, signal),
	RESULT_FIELD(FIELD_NUMBER, build_ms),
	RESULT_FIELD(FIELD_NUMBER, run_ms),
	RESULT_FIELD(FIELD_JSON, runs),
	RESULT_FIELD(FIELD_JSON, data),
};

enum {
	JOB_FIELD_COUNT = sizeof job_fields / sizeof job_fields[0],
	RESULT_FIELD_COUNT = sizeof result_fields / sizeof result_fields[0],
};

/* Text from a program under test may be no UTF-8: jansson refuses it, so every byte that is not ASCII is then shown as '?'. */
static json_t *text_to_json(const char *text)
{
	json_t *value = json_string(text);
	if (value != NULL)
		return value;
	cleanup_free char *plain = text_copy(text);
	for (char *byte = plain; *byte != '\0'; byte++)
		if ((unsigned char)*byte >= 0x80)
			*byte = '?';
	return json_string(plain);
}

static json_t *list_to_json(const struct strlist *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array, text_to_json(list->items[i]));
	return array;
}

static json_t *map_to_json(const struct strmap *map)
{
	json_t *object = json_object();
	for (size_t i = 0; i < map->count; i++)
		json_object_set_new(object, map->entries[i].key, text_to_json(map->entries[i].value));
	return object;
}

/* NULL where the field is empty and is left out. */
static json_t *field_to_json(const struct field *field, const char *base)
{
	const void *at = base + field->offset;
	switch (field->kind) {
	case FIELD_TEXT:
		return *(char *const *)at != NULL ? text_to_json(*(char *const *)at) : NULL;
	case FIELD_NUMBER:
		return json_integer(*(const long long *)at);
	case FIELD_FLAG:
		return *(const bool *)at ? json_true() : NULL;
	case FIELD_LIST:
		return ((const struct strlist *)at)->count > 0 ? list_to_json(at) : NULL;
	case FIELD_MAP:
		return ((const struct strmap *)at)->count > 0 ? map_to_json(at) : NULL;
	case FIELD_JSON:
		return json_incref(*(json_t *const *)at);
	case FIELD_OUTCOME:
		return json_string(outcome_name(*(const enum outcome *)at));
	}
	return NULL;
}

static json_t *encode_fields(const struct field *fields, size_t count, const void *base)
{
	json_t *object = json_object();
	for (size_t i = 0; i < count; i++) {
		json_t *value = field_to_json(&fields[i], base);
		if (value != NULL)
			json_object_set_new(object, fields[i].name, value);
	}
	return object;
}

static int json_to_list(struct strlist *list, const json_t *array)
{
	size_t index;
	json_t *item;
	if (!json_is_array(array))
		return -1;
	json_array_foreach(array, index, item)
	{
		if (!json_is_string(item))
			return -1;
		strlist_add(list, json_string_value(item));
	}
	return 0;
}

static int json_to_map(struct strmap *map, const json_t *object)
{
	const char *key;
	json_t *value;
	if (!json_is_object(object))
		return -1;
	/* jansson's iteration macro wants a mutable object, and changes nothing */
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (!json_is_string(value))
			return -1;
		strmap_set(map, key, json_string_value(value));
	}
	return 0;
}

static int json_to_field(const struct field *field, char *base, json_t *value)
{
	void *at = base + field->offset;
	switch (field->kind) {
	case FIELD_TEXT:
		if (!json_is_string(value))
			return -1;
		free(*(char **)at);
		*(char **)at = text_copy(json_string_value(value));
		return 0;
	case FIELD_NUMBER:
		if (!json_is_integer(value))
			return -1;
		*(long long *)at = json_integer_value(value);
		return 0;
	case FIELD_FLAG:
		if (!json_is_boolean(value))
			return -1;
		*(bool *)at = json_is_true(value);
		return 0;
	case FIELD_LIST:
		return json_to_list(at, value);
	case FIELD_MAP:
		return json_to_map(at, value);
	case FIELD_JSON:
		json_decref(*(json_t **)at);
		*(json_t **)at = json_incref(value);
		return 0;
	case FIELD_OUTCOME:
		return json_is_string(value) && outcome_parse(json_string_value(value), at) ? 0 : -1;
	}
	return -1;
}

static int decode_fields(const struct field *fields, size_t count, void *base, const json_t *object, const char *what,
			 struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		json_t *value = json_object_get(object, fields[i].name);
		if (value == NULL || json_is_null(value))
			continue;
		if (json_to_field(&fields[i], base, value) < 0)
			return error_set(error, "%s: \"%s\" has a value of the wrong type", what, fields[i].name);
	}
	return 0;
}

static void clear_fields(const struct field *fields, size_t count, void *base)
{
	for (size_t i = 0; i < count; i++) {
		void *at = (char *)base + fields[i].offset;
		if (fields[i].kind == FIELD_TEXT)
			free(*(char **)at);
		else if (fields[i].kind == FIELD_LIST)
			strlist_clear(at);
		else if (fields[i].kind == FIELD_MAP)
			strmap_clear(at);
		else if (fields[i].kind == FIELD_JSON)
			json_decref(*(json_t **)at);
	}
}

void job_clear(struct job *job)
{
	clear_fields(job_fields, JOB_FIELD_COUNT, job);
	*job = (struct job){0};
}

static char *dump(json_t *object)
{
	char *line = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (line == NULL)
		memory_exhausted();
	return line;
}

char *job_encode(const struct job *job)
{
	json_t *object = encode_fields(job_fields, JOB_FIELD_COUNT, job);
	json_object_set_new(object, "version", json_integer(PROTOCOL_VERSION));
	return dump(object);
}

int job_decode(struct job *job, const char *line, size_t length, struct error *error)
{
	json_error_t trouble;
	json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &trouble);
	if (object == NULL)
		return error_set(error, "the job is no JSON: %s (byte %d)", trouble.text, trouble.position);
	long long version = json_integer_value(json_object_get(object, "version"));
	int result = 0;
	if (!json_is_object(object))
		result = error_set(error, "the job is no JSON object");
	else if (version != PROTOCOL_VERSION)
		result = error_set(
			error,
			"the job speaks protocol version %lld, this worker %d: install both programs from one release",
			version, PROTOCOL_VERSION);
	else
		result = decode_fields(job_fields, JOB_FIELD_COUNT, job, object, "the job", error);
	json_decref(object);
	if (result == 0 && job->kind == NULL)
		return error_set(error, "the job has no \"kind\"");
	return result;
}

void result_clear(struct result *result)
{
	clear_fields(result_fields, RESULT_FIELD_COUNT, result);
	*result = (struct result){0};
}

char *result_encode(const struct result *result)
{
	json_t *object = encode_fields(result_fields, RESULT_FIELD_COUNT, result);
	json_object_set_new(object, "event", json_string("result"));
	return dump(object);
}

int result_decode(struct result *result, const json_t *object, struct error *error)
{
	if (decode_fields(result_fields, RESULT_FIELD_COUNT, result, object, "the result", error) < 0)
		return -1;
	if (result->outcome == OUTCOME_UNDECIDED)
		return error_set(error, "the result has no \"outcome\"");
	return 0;
}
