/*
 * Walking ranges: the commits of A..B, oldest first, and which of them touch a path.
 *
 * The walk goes by the graph alone.  git_revwalk orders and cuts by commit dates, which lie in real histories (clock
 * skew, dates before 1970), and then its answer can hold commits that A reaches.  Parents here are visited in the order
 * in which a commit names them, so that the same history gives the same list on every machine.
 */
#include <stdlib.h>
#include <string.h>

#include "source_internal.h"

/* ---- sets of oids: open addressing, grown at half full; an oid is its own hash ---- */

struct oid_set {
	git_oid *slots; /* the zero oid marks a free slot: no commit has it */
	size_t size;    /* a power of two */
	size_t count;
};

static size_t oid_slot(const struct oid_set *set, const git_oid *oid)
{
	size_t hash;
	memcpy(&hash, oid->id, sizeof hash);
	size_t slot = hash & (set->size - 1);
	while (!git_oid_is_zero(&set->slots[slot]) && !git_oid_equal(&set->slots[slot], oid))
		slot = (slot + 1) & (set->size - 1);
	return slot;
}

static bool oid_set_contains(const struct oid_set *set, const git_oid *oid)
{
	return set->size > 0 && !git_oid_is_zero(&set->slots[oid_slot(set, oid)]);
}

static void oid_set_grow(struct oid_set *set)
{
	struct oid_set larger = {.size = set->size == 0 ? 256 : set->size * 2, .count = set->count};
	larger.slots = memory_new(larger.size, sizeof *larger.slots);
	for (size_t i = 0; i < set->size; i++)
		if (!git_oid_is_zero(&set->slots[i]))
			larger.slots[oid_slot(&larger, &set->slots[i])] = set->slots[i];
	free(set->slots);
	*set = larger;
}

/* False where it was there already. */
static bool oid_set_add(struct oid_set *set, const git_oid *oid)
{
	if (set->count * 2 >= set->size)
		oid_set_grow(set);
	size_t slot = oid_slot(set, oid);
	if (!git_oid_is_zero(&set->slots[slot]))
		return false;
	set->slots[slot] = *oid;
	set->count++;
	return true;
}

static void oid_set_clear(struct oid_set *set)
{
	free(set->slots);
}

struct oid_list {
	git_oid *items;
	size_t count;
	size_t capacity;
};

static void oid_list_add(struct oid_list *list, const git_oid *oid)
{
	list->items = memory_grow(list->items, list->count, &list->capacity, sizeof *list->items);
	list->items[list->count++] = *oid;
}

static void oid_list_clear(struct oid_list *list)
{
	free(list->items);
}

#define cleanup_oid_set __attribute__((cleanup(oid_set_clear)))
#define cleanup_oid_list __attribute__((cleanup(oid_list_clear)))

/* ---- the graph ---- */

static int find_node(const struct source *source, const git_oid *oid, git_commit **commit, struct error *error)
{
	if (git_commit_lookup(commit, source->repository, oid) < 0)
		return source_object_error(source, error, "walking the history");
	return 0;
}

/* Everything that `start` reaches, itself included. */
static int collect_ancestors(const struct source *source, const git_oid *start, struct oid_set *reached,
			     struct error *error)
{
	cleanup_oid_list struct oid_list pending = {0};
	oid_list_add(&pending, start);
	oid_set_add(reached, start);
	while (pending.count > 0) {
		git_oid oid = pending.items[--pending.count];
		cleanup_git(commit) git_commit *commit = NULL;
		if (find_node(source, &oid, &commit, error) < 0)
			return -1;
		for (unsigned i = 0; i < git_commit_parentcount(commit); i++)
			if (oid_set_add(reached, git_commit_parent_id(commit, i)))
				oid_list_add(&pending, git_commit_parent_id(commit, i));
	}
	return 0;
}

/* A commit on the way down, with the parents that are still to be visited: items [next, end) of the pool of parents. */
struct step {
	git_oid oid;
	size_t next;
	size_t end;
};

struct descent {
	struct step *steps;
	size_t count;
	size_t capacity;
	struct oid_list parents; /* a stack as well: a step's parents lie above those of the steps below it */
};

static void descent_clear(struct descent *descent)
{
	free(descent->steps);
	oid_list_clear(&descent->parents);
}

static int descend(const struct source *source, struct descent *descent, const git_oid *oid, struct error *error)
{
	cleanup_git(commit) git_commit *commit = NULL;
	if (find_node(source, oid, &commit, error) < 0)
		return -1;
	struct step step = {.oid = *oid, .next = descent->parents.count};
	for (unsigned i = 0; i < git_commit_parentcount(commit); i++)
		oid_list_add(&descent->parents, git_commit_parent_id(commit, i));
	step.end = descent->parents.count;
	descent->steps = memory_grow(descent->steps, descent->count, &descent->capacity, sizeof *descent->steps);
	descent->steps[descent->count++] = step;
	return 0;
}

/* What `start` reaches and `hidden` does not hold: depth first, a commit after all of its parents. */
static int walk_all(const struct source *source, const git_oid *start, const struct oid_set *hidden,
		    struct oid_list *found, struct error *error)
{
	cleanup_oid_set struct oid_set seen = {0};
	__attribute__((cleanup(descent_clear))) struct descent descent = {0};
	if (oid_set_contains(hidden, start))
		return 0;
	oid_set_add(&seen, start);
	if (descend(source, &descent, start, error) < 0)
		return -1;
	while (descent.count > 0) {
		struct step *step = &descent.steps[descent.count - 1];
		if (step->next == step->end) {
			oid_list_add(found, &step->oid);
			descent.count--;
			descent.parents.count = descent.count > 0 ? descent.steps[descent.count - 1].end : 0;
			continue;
		}
		git_oid parent = descent.parents.items[step->next++];
		if (!oid_set_contains(hidden, &parent) && oid_set_add(&seen, &parent) &&
		    descend(source, &descent, &parent, error) < 0)
			return -1;
	}
	return 0;
}

static int walk_first_parents(const struct source *source, const git_oid *start, const struct oid_set *hidden,
			      struct oid_list *found, struct error *error)
{
	for (git_oid oid = *start; !oid_set_contains(hidden, &oid);) {
		cleanup_git(commit) git_commit *commit = NULL;
		if (find_node(source, &oid, &commit, error) < 0)
			return -1;
		oid_list_add(found, &oid);
		if (git_commit_parentcount(commit) == 0)
			break;
		oid = *git_commit_parent_id(commit, 0);
	}
	for (size_t i = 0; i < found->count / 2; i++) {
		git_oid swapped = found->items[i];
		found->items[i] = found->items[found->count - 1 - i];
		found->items[found->count - 1 - i] = swapped;
	}
	return 0;
}

/* ---- which commits touch a path ---- */

/* 1 where the two trees differ at `path`, 0 where not, -1 error.  `before` may be NULL: nothing. */
static int differs_at(const struct source *source, const git_tree *before, const git_tree *after, const char *path,
		      struct error *error)
{
	cleanup_git(tree_entry) git_tree_entry *old = NULL;
	cleanup_git(tree_entry) git_tree_entry *new = NULL;
	if (path[0] == '\0')
		return before == NULL || !git_oid_equal(git_tree_id(before), git_tree_id(after));
	if ((before != NULL && source_find_entry(source, before, path, &old, error) < 0) ||
	    source_find_entry(source, after, path, &new, error) < 0)
		return -1;
	if (old == NULL || new == NULL)
		return old != new;
	return !git_oid_equal(git_tree_entry_id(old), git_tree_entry_id(new)) ||
	       git_tree_entry_filemode_raw(old) != git_tree_entry_filemode_raw(new);
}

static int touches(const struct source *source, const git_commit *commit, const struct strlist *paths,
		   struct error *error)
{
	cleanup_git(commit) git_commit *parent = NULL;
	cleanup_git(tree) git_tree *before = NULL;
	cleanup_git(tree) git_tree *after = NULL;
	if (git_commit_parentcount(commit) > 0 &&
	    find_node(source, git_commit_parent_id(commit, 0), &parent, error) < 0)
		return -1;
	if (parent != NULL && git_oid_equal(git_commit_tree_id(parent), git_commit_tree_id(commit)))
		return 0;
	if ((parent != NULL && git_commit_tree(&before, parent) < 0) || git_commit_tree(&after, commit) < 0)
		return source_object_error(source, error, "comparing trees");
	int result = 0;
	for (size_t i = 0; result == 0 && i < paths->count; i++)
		result = differs_at(source, before, after, paths->items[i], error);
	return result;
}

/* ---- ranges ---- */

static int find_ends(const struct source *source, const char *range, git_commit **from, git_commit **to,
		     struct error *error)
{
	const char *dots = strstr(range, "..");
	if (dots == NULL || dots == range || dots[2] == '\0' || dots[2] == '.' || strstr(dots + 2, "..") != NULL)
		return error_set(error, "\"%s\" is not a range: write A..B", range);
	cleanup_free char *first = text_copy_range(range, (size_t)(dots - range));
	if (source_find_revision(source, first, from, error) < 0)
		return -1;
	return source_find_revision(source, dots + 2, to, error);
}

static int keep_commits(const struct source *source, const struct oid_list *found, const struct strlist *paths,
			struct source_commits *commits, struct error *error)
{
	for (size_t i = 0; i < found->count; i++) {
		cleanup_git(commit) git_commit *commit = NULL;
		if (find_node(source, &found->items[i], &commit, error) < 0)
			return -1;
		int kept = paths->count == 0 ? 1 : touches(source, commit, paths, error);
		if (kept < 0)
			return -1;
		if (kept == 0)
			continue;
		commits->items =
			memory_grow(commits->items, commits->count, &commits->capacity, sizeof *commits->items);
		source_describe(commit, &commits->items[commits->count++]);
	}
	return 0;
}

int source_list(struct source *source, const char *range, bool first_parent, const struct strlist *paths,
		struct source_commits *commits, struct error *error)
{
	cleanup_git(commit) git_commit *from = NULL;
	cleanup_git(commit) git_commit *to = NULL;
	cleanup_oid_set struct oid_set hidden = {0};
	cleanup_oid_list struct oid_list found = {0};
	cleanup_strlist struct strlist clean_paths = {0};
	source_commits_clear(commits);
	for (size_t i = 0; paths != NULL && i < paths->count; i++) {
		char *clean = NULL;
		if (source_clean_path(paths->items[i], &clean, error) < 0)
			return -1;
		strlist_add_owned(&clean_paths, clean);
	}
	if (find_ends(source, range, &from, &to, error) < 0 ||
	    collect_ancestors(source, git_commit_id(from), &hidden, error) < 0 ||
	    (first_parent ? walk_first_parents : walk_all)(source, git_commit_id(to), &hidden, &found, error) < 0)
		return error_wrap(error, "listing %s", range);
	if (keep_commits(source, &found, &clean_paths, commits, error) < 0) {
		source_commits_clear(commits);
		return error_wrap(error, "listing %s", range);
	}
	return 0;
}
