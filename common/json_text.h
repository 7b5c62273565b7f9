/* The one thing that readers of JSON ask most. */
#ifndef BISECTD_COMMON_JSON_TEXT_H
#define BISECTD_COMMON_JSON_TEXT_H

#include <jansson.h>

/* A member that is a text; NULL where it is missing or something else.  Borrowed from the object. */
static inline const char *json_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

#endif
