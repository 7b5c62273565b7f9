/* See demangle.h. */
#include "evidence/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "str.h"

struct gathered {
	jmp_buf enough;
	size_t length;
	char text[DEMANGLE_MAX];
};

/* libiberty cannot be told to stop: leave it with a jump.  What it holds at that moment (a decoded identifier at most)
 * is lost. */
static void gather(const char *part, size_t length, void *context)
{
	struct gathered *gathered = context;
	if (length > sizeof gathered->text - gathered->length)
		longjmp(gathered->enough, 1);
	memcpy(gathered->text + gathered->length, part, length);
	gathered->length += length;
}

static bool read_symbol(const char *symbol, struct gathered *gathered)
{
	if (setjmp(gathered->enough) != 0)
		return false;
	if (rust_demangle_callback(symbol, DMGL_NO_OPTS, gather, gathered) != 0)
		return true;
	gathered->length = 0;
	return strncmp(symbol, "_Z", 2) == 0 &&
	       cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI, gather, gathered) != 0;
}

char *demangle(const char *symbol)
{
	if (symbol[0] == '_') {
		cleanup_free struct gathered *gathered = memory_new(1, sizeof *gathered);
		if (read_symbol(symbol, gathered) && gathered->length > 0)
			return text_copy_range(gathered->text, gathered->length);
	}
	return text_copy_range(symbol, strlen(symbol));
}
