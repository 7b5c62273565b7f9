/* Commands as text that a person pastes into a shell: folder, whole environment, words, all quoted. */
#ifndef BISECTD_WORKER_RECIPE_H
#define BISECTD_WORKER_RECIPE_H

#include "str.h"

/* `cd FOLDER`: what every recipe starts with. */
void recipe_start(struct str *recipe, const char *folder);
/* Go on, where the step before succeeded, with one command under exactly this environment. */
void recipe_add(struct str *recipe, const struct strmap *environment, const struct strlist *words);
/* Newline at the end. */
void recipe_finish(struct str *recipe);

#endif
