/*
 * The keys of an investigation, and what is particular about their values.
 *
 * Private to config*.c and its tests, which walk the tables.
 */
#ifndef BISECTD_DAEMON_CONFIG_SCHEMA_H
#define BISECTD_DAEMON_CONFIG_SCHEMA_H

#include "config_field.h"

/* The whole file, into a struct config. */
extern const struct config_table config_schema;

/* NULL-terminated, by enum axis_type and enum webhook_format. */
extern const char *const config_axis_types[];
extern const char *const config_webhook_formats[];
/* Placeholders that every job has: "target", "profile_dir", ...; NULL-terminated. */
extern const char *const config_builtin_placeholders[];

/* ---- forms that only one key has: config_form.c ---- */
extern const struct config_type config_type_axis_type;      /* enum axis_type */
extern const struct config_type config_type_webhook_format; /* enum webhook_format */
extern const struct config_type config_type_outcomes;       /* bool[OUTCOME_COUNT] */
extern const struct config_type config_type_command;        /* strlist */
extern const struct config_type config_type_commands;       /* reproducer.build */
extern const struct config_type config_type_matches;        /* config_edit.min and .max */
extern const struct config_type config_type_regex;          /* char * */
extern const struct config_type config_type_network;        /* bool */

/* One entry of exclude and include. */
void config_read_rule(struct config_reader *reader, const struct config_node *node, void *record);
void config_clear_rule(void *record);
/* Every {name} in the texts of a node is looked up in the end. */
void config_refer_placeholders(struct config_reader *reader, const struct config_node *node);

/* ---- what texts must be, NULL where they are right: config_text.c ---- */
const char *config_must_be_investigation(const char *text);
const char *config_must_be_name(const char *text);        /* of an axis or a placeholder */
const char *config_must_be_source_name(const char *text); /* becomes a folder's name */
const char *config_must_be_crate(const char *text);
const char *config_must_be_feature(const char *text);
const char *config_must_be_variable(const char *text);
const char *config_must_be_source_url(const char *text);
const char *config_must_be_web_url(const char *text);
const char *config_must_be_range(const char *text);
const char *config_must_be_inside(const char *text);  /* a path that stays inside of its root */
const char *config_must_be_literal(const char *text); /* not empty */
const char *config_must_be_label(const char *text);

/* ---- after all is read: config_check.c ---- */
void config_check(struct config_reader *reader);

#endif
