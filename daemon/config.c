/* See config.h.  Joins the steps: file, nodes (config_yaml.c), records (config_field.c), names (config_check.c). */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config_schema.h"
#include "fs.h"

enum { FILE_LIMIT = 1 << 20 /* bytes */ };

static const char too_large[] = "the file is larger than 1 MiB, which no investigation needs: name the right file";

const char *axis_type_name(enum axis_type type)
{
	return config_axis_types[type];
}

const char *webhook_format_name(enum webhook_format format)
{
	return config_webhook_formats[format];
}

static void read_investigation(struct config_reader *reader, size_t length)
{
	struct config *config = reader->config;
	cleanup_config_document struct config_document document = {0};
	if (length > FILE_LIMIT) {
		config_problem_add(&reader->problems, 1, 1, "%s", too_large);
	} else if (config_document_read(&document, config->text, length, &reader->problems) == 0) {
		config_record_read(reader, &config_schema, document.root, config);
		config_check(reader);
	}
}

static void free_references(struct config_reader *reader)
{
	for (size_t i = 0; i < reader->reference_count; i++) {
		free(reader->references[i].name);
		free(reader->references[i].axis);
	}
	free(reader->references);
}

int config_parse(struct config *config, const char *file, const char *text, size_t length, struct strlist *problems)
{
	cleanup_free char *absolute = path_absolute(file);
	cleanup_free char *folder = path_parent(absolute);
	struct config_reader reader = {.config = config, .folder = folder, .axis_types = ~0u};
	config->file = text_copy(file);
	config->text = text_copy_range(text, length);
	config_record_start(&config_schema, config);
	read_investigation(&reader, length);
	free_references(&reader);
	bool wrong = reader.problems.count > 0;
	config_problems_hand_over(&reader.problems, file, problems);
	return wrong ? -1 : 0;
}

static int fail_load(struct strlist *problems, const char *file, const char *message)
{
	strlist_add_owned(problems, text_format("%s:1:1: %s", file, message));
	return -1;
}

int config_load(struct config *config, const char *file, struct strlist *problems)
{
	cleanup_error struct error error = {0};
	cleanup_str struct str text = {0};
	struct stat status;
	bool known = stat(file, &status) == 0;
	if (known && S_ISDIR(status.st_mode))
		return fail_load(problems, file, "this is a folder: name the investigation's YAML file in it");
	if (known && S_ISREG(status.st_mode) && status.st_size > FILE_LIMIT)
		return fail_load(problems, file, too_large);
	if (fs_read_file(file, FILE_LIMIT, &text, &error) < 0) {
		error_wrap(&error, "check the path and its permissions");
		return fail_load(problems, file, error_text(&error));
	}
	return config_parse(config, file, str_text(&text), text.length, problems);
}

void config_clear(struct config *config)
{
	config_record_clear(&config_schema, config);
	free(config->file);
	free(config->text);
	*config = (struct config){0};
}

const struct config_source *config_find_source(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->source_count; i++)
		if (text_equal(config->sources[i].name, name))
			return &config->sources[i];
	return NULL;
}
