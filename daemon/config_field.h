/*
 * Mappings read by table: a key is one row, with its type, its place in the record and what is right for it.
 *
 * Private to config*.c.  The same rows read a record, give it its defaults and free it.  Knows forms (a time, a list of
 * words, a list of records), not investigations; those are in config_schema.c.
 */
#ifndef BISECTD_DAEMON_CONFIG_FIELD_H
#define BISECTD_DAEMON_CONFIG_FIELD_H

#include "config.h"
#include "config_node.h"

#define CONFIG_NONE ((size_t)-1) /* as an offset: the record has no such member */

struct config_field;

/* Names used before all definitions are read; config_check.c looks at them in the end. */
enum config_reference_kind {
	CONFIG_AXIS_USED,
	CONFIG_SOURCE_USED,
	CONFIG_PLACEHOLDER_USED,
	CONFIG_PLACEHOLDER_DEFINED,
	CONFIG_VALUE_USED
};

struct config_reference {
	enum config_reference_kind kind;
	char *name;
	char *axis; /* of a CONFIG_VALUE_USED */
	int line;
	int column;
};

struct config_reader {
	struct config *config;
	const char *folder; /* what relative paths are relative to */
	struct config_problems problems;
	unsigned axis_types; /* 1u << axis_type: of the axis being read; all bits outside of axes or where it is unknown
			      */
	struct config_reference *references;
	size_t reference_count;
	size_t reference_capacity;
};

struct config_type {
	const char *expected; /* "a text": completes `"key" must be ...` */
	void (*read)(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		     void *record);
	void (*start)(const struct config_field *field, void *record); /* defaults; may be NULL */
	void (*clear)(const struct config_field *field, void *record); /* may be NULL */
};

struct config_table {
	const char *noun; /* "an axis" */
	const struct config_field *fields;
	size_t count;
	/* Before and after the keys are read; may be NULL.  `finish` also sees records with problems. */
	void (*prepare)(struct config_reader *reader, const struct config_node *node, void *record);
	void (*finish)(struct config_reader *reader, const struct config_node *node, void *record);
};

/* Where a list of records is kept: the field's offset is that of the pointer to them. */
struct config_records {
	size_t count_offset;
	size_t capacity_offset;
	size_t size;          /* of one record, and the offsets in it */
	size_t line_offset;   /* an int, or CONFIG_NONE */
	size_t column_offset; /* likewise */
	size_t name_offset;   /* a char *, for a mapping NAME: record; CONFIG_NONE for a list of records */
	const char *unique;   /* "two axes are called": their names must differ; NULL: they need not */
	const struct config_table *table;
	/* Other forms than a mapping by `table`; NULL: none.  `table` still frees it. */
	void (*read)(struct config_reader *reader, const struct config_node *node, void *record);
	void (*clear)(void *record);
};

struct config_field {
	const char *key;
	const struct config_type *type;
	size_t offset; /* in the record */
	bool required;
	bool not_empty;      /* at least one entry */
	unsigned axis_types; /* where the key is allowed, 0: everywhere */
	long long min;       /* of numbers, times (ms) and sizes (bytes); `max` also of the count of records */
	long long max;
	long long standard; /* the default */
	const char *standard_text;
	const char *const *words; /* NULL-terminated: the only ones allowed */
	/* NULL, or what the text must be instead: "https://..., not empty". */
	const char *(*check)(const char *text);
	const struct config_table *table;     /* of a section */
	const struct config_records *records; /* of a list of records */
	const char *help;                     /* instead of the type's `expected` */
};

#define CONFIG_FIELD_COUNT(fields) (sizeof(fields) / sizeof *(fields))

extern const struct config_type config_type_line;     /* char *: one line, not empty */
extern const struct config_type config_type_text;     /* char *: not empty, without newlines at the end */
extern const struct config_type config_type_literal;  /* char *: as it is, may be empty */
extern const struct config_type config_type_path;     /* char *: made absolute */
extern const struct config_type config_type_word;     /* char *: one of `words` */
extern const struct config_type config_type_lines;    /* strlist: a list of lines, or one line */
extern const struct config_type config_type_literals; /* strlist: of literals, not empty */
extern const struct config_type config_type_paths;    /* strlist: made absolute */
extern const struct config_type config_type_words;    /* strlist: each one of `words` */
extern const struct config_type config_type_map;      /* strmap: `check` is for the keys */
extern const struct config_type config_type_boolean;  /* bool */
extern const struct config_type config_type_number;   /* long long */
extern const struct config_type config_type_time;     /* long long: milliseconds */
extern const struct config_type config_type_size;     /* long long: bytes */
extern const struct config_type config_type_section;  /* a mapping by `table` whose members are in this record */
extern const struct config_type config_type_records;  /* a list, or a mapping by name, of `records` */

/* ---- records ---- */
void config_record_start(const struct config_table *table, void *record);
void config_record_read(struct config_reader *reader, const struct config_table *table, const struct config_node *node,
			void *record);
void config_record_clear(const struct config_table *table, void *record);

/* ---- for readers of special forms ---- */
void *config_member(const struct config_field *field, void *record);
/* `"key" must be EXPECTED, not WHAT IS THERE`; `expected` NULL: the field's or the type's. */
void config_wrong(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		  const char *expected);
/* The node's text; NULL after reporting that there is none. */
const char *config_expect_text(struct config_reader *reader, const struct config_field *field,
			       const struct config_node *node);
/* The index of the node's text in a NULL-terminated array of words; -1 after reporting. */
int config_expect_word(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		       const char *const *words);
/* Call `item` for each entry of a list, or for the one node that is no list. */
void config_each_item(struct config_reader *reader, const struct config_field *field, const struct config_node *node,
		      void *record,
		      void (*item)(struct config_reader *reader, const struct config_field *field,
				   const struct config_node *node, void *record));
/* Absolute, relative ones taken from the file's folder.  Owned by the caller. */
char *config_resolve_path(const struct config_reader *reader, const char *path);
void config_refer(struct config_reader *reader, enum config_reference_kind kind, const char *axis, char *owned_name,
		  const struct config_node *node);
/* Report names that come twice (`WHAT "name", ...`, as in "two axes are called"); entries without a node or without a
 * text are passed over.
 */
struct config_name {
	const struct config_node *node;
};
void config_report_repeated(struct config_reader *reader, struct config_name *names, size_t count, const char *what);
/* Digits only, at the start of `*text`, which moves on.  False where there are none or they are more than a long long
 * holds. */
bool config_take_number(const char **text, long long *number);

/* `"key" must be ...` with numbers in it, `"key" is missing`: problems at a node. */
#define config_report(reader, node, ...)                                                                               \
	config_problem_add(&(reader)->problems, (node)->line, (node)->column, __VA_ARGS__)

#endif
