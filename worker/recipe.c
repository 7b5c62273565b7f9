/* See recipe.h. */
#include "recipe.h"

void recipe_start(struct str *recipe, const char *folder)
{
	str_append(recipe, "cd ");
	str_append_shell_word(recipe, folder);
}

void recipe_add(struct str *recipe, const struct strmap *environment, const struct strlist *words)
{
	str_append(recipe, " &&\nenv -i \\\n");
	for (size_t i = 0; i < environment->count; i++) {
		cleanup_free char *pair =
			text_format("%s=%s", environment->entries[i].key, environment->entries[i].value);
		str_append(recipe, "  ");
		str_append_shell_word(recipe, pair);
		str_append(recipe, " \\\n");
	}
	str_append(recipe, " ");
	for (size_t i = 0; i < words->count; i++) {
		str_append(recipe, " ");
		str_append_shell_word(recipe, words->items[i]);
	}
}

void recipe_finish(struct str *recipe)
{
	str_append(recipe, "\n");
}
