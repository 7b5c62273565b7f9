/*
 * A YAML document as a tree of nodes, each with its place in the file.
 *
 * Private to config*.c.  Knows YAML and nothing of investigations.  Scalars stay the text that was written: nothing
 * here decides that 1.63 is a number.
 */
#ifndef BISECTD_DAEMON_CONFIG_NODE_H
#define BISECTD_DAEMON_CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "config_problem.h"

enum {
	CONFIG_DEPTH_LIMIT = 32,         /* of nesting; an investigation needs 8 */
	CONFIG_NODE_LIMIT = 50000,       /* nodes with every alias written out */
	CONFIG_EXPANDED_LIMIT = 4 << 20, /* bytes of text with every alias written out */
	CONFIG_ANCHOR_LIMIT = 1000,
};

enum config_node_kind { CONFIG_SCALAR, CONFIG_LIST, CONFIG_MAPPING };

struct config_node;

struct config_entry {
	const struct config_node *key; /* NULL in a list; a scalar in a mapping, each text once */
	const struct config_node *value;
	bool repeated; /* only while the mapping is read */
};

struct config_node {
	enum config_node_kind kind;
	int line; /* both count from 1 */
	int column;
	char *text;  /* of a scalar; holds no NUL */
	bool plain;  /* a scalar without quotes */
	bool broken; /* a problem was reported for it already: say nothing more */
	bool open;   /* still being read: an alias to it would be a circle */
	struct config_entry *entries;
	size_t count;
	size_t capacity;
	size_t nodes; /* this one and all below, aliases written out */
	size_t bytes;
	struct config_node *next; /* the document's own chain of all nodes */
};

/* Owns every node; an alias makes two entries point at one node, never a circle. */
struct config_document {
	struct config_node *nodes;
	const struct config_node *root; /* NULL where the text is no YAML document */
};

#define cleanup_config_document __attribute__((cleanup(config_document_clear)))

/* Returns -1 where nothing can be read at all (then with exactly one problem more that says why). */
int config_document_read(struct config_document *document, const char *text, size_t length,
			 struct config_problems *problems);
void config_document_clear(struct config_document *document);

/* The value of `key` in a mapping; NULL where there is none, or the node is no mapping. */
const struct config_node *config_node_find(const struct config_node *node, const char *key);
/* Written as nothing, `~` or `null`. */
bool config_node_is_nothing(const struct config_node *node);
/* The text of a scalar that is something; NULL otherwise. */
const char *config_node_text(const struct config_node *node);
/* "a list", "a mapping", "nothing" or the quoted text.  Owned by the caller. */
char *config_node_describe(const struct config_node *node);

#endif
