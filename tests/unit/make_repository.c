/* See make_repository.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "error.h"
#include "fs.h"
#include "make_repository.h"
#include "str.h"

static void must(int result)
{
	if (result < 0)
		fail_msg("libgit2: %s", git_error_last() != NULL ? git_error_last()->message : "no reason");
}

char *make_folder(void)
{
	const char *temporary = getenv("TMPDIR");
	char *folder = text_format("%s/bisectd-source-XXXXXX", temporary != NULL ? temporary : "/tmp");
	assert_non_null(mkdtemp(folder));
	return folder;
}

void remove_folder(char *folder)
{
	struct error error = {0};
	if (fs_remove_tree(folder, &error) < 0)
		fail_msg("%s", error_text(&error));
	free(folder);
}

git_repository *make_repository(const char *folder)
{
	git_repository *repository = NULL;
	git_repository_init_options options;
	git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	options.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH;
	options.initial_head = "main";
	must(git_repository_init_ext(&repository, folder, &options));
	return repository;
}

git_oid make_raw_object(git_repository *repository, git_object_t type, const void *bytes, size_t length)
{
	git_odb *odb = NULL;
	git_oid oid;
	must(git_repository_odb(&odb, repository));
	must(git_odb_write(&oid, odb, bytes, length, type));
	git_odb_free(odb);
	return oid;
}

git_oid make_blob(git_repository *repository, const void *bytes, size_t length)
{
	return make_raw_object(repository, GIT_OBJECT_BLOB, bytes, length);
}

git_oid make_tree(git_repository *repository, const struct made_file *files)
{
	git_index *index = NULL;
	git_oid tree;
	must(git_index_new(&index));
	for (; files != NULL && files->path != NULL; files++) {
		git_index_entry entry = {.path = files->path,
					 .mode = files->mode != 0 ? files->mode : GIT_FILEMODE_BLOB};
		entry.id = make_blob(repository, files->contents, strlen(files->contents));
		must(git_index_add(index, &entry));
	}
	must(git_index_write_tree_to(&tree, index, repository));
	git_index_free(index);
	return tree;
}

git_oid make_commit(git_repository *repository, const struct made_commit *commit)
{
	static git_time_t clock = 1700000000;
	git_signature *who = NULL;
	git_tree *tree = NULL;
	git_commit *parents[4] = {0};
	const git_commit *pointers[4] = {0};
	size_t count = 0;
	git_oid tree_oid = commit->tree;
	git_oid oid;
	must(git_signature_new(&who, commit->author != NULL ? commit->author : "A U Thor", "author@example.com",
			       commit->time != 0 ? commit->time : (clock += 60), commit->offset));
	if (git_oid_is_zero(&tree_oid))
		tree_oid = make_tree(repository, commit->files);
	for (; count < 4 && !git_oid_is_zero(&commit->parents[count]); count++) {
		must(git_commit_lookup(&parents[count], repository, &commit->parents[count]));
		pointers[count] = parents[count];
	}
	must(git_tree_lookup(&tree, repository, &tree_oid));
	must(git_commit_create(&oid, repository, NULL, who, who, NULL,
			       commit->message != NULL ? commit->message : "work\n", tree, count, pointers));
	if (commit->branch != NULL)
		make_reference(repository, commit->branch, &oid);
	while (count > 0)
		git_commit_free(parents[--count]);
	git_tree_free(tree);
	git_signature_free(who);
	return oid;
}

void make_reference(git_repository *repository, const char *name, const git_oid *oid)
{
	git_reference *reference = NULL;
	must(git_reference_create(&reference, repository, name, oid, 1, NULL));
	git_reference_free(reference);
}

void drop_reference(git_repository *repository, const char *name)
{
	must(git_reference_remove(repository, name));
}

git_oid make_tag(git_repository *repository, const char *name, const git_oid *target)
{
	git_object *object = NULL;
	git_signature *who = NULL;
	git_oid oid;
	must(git_object_lookup(&object, repository, target, GIT_OBJECT_ANY));
	must(git_signature_new(&who, "A U Thor", "author@example.com", 1700000000, 0));
	must(git_tag_annotation_create(&oid, repository, name, object, who, "a release\n"));
	git_signature_free(who);
	git_object_free(object);
	return oid;
}

git_oid make_raw_tree(git_repository *repository, const struct raw_entry *entries, size_t count)
{
	struct str bytes = {0};
	for (size_t i = 0; i < count; i++) {
		str_append_format(&bytes, "%s %s", entries[i].mode, entries[i].name);
		str_append_bytes(&bytes, "", 1);
		str_append_bytes(&bytes, (const char *)entries[i].oid.id, GIT_OID_RAWSZ);
	}
	git_oid oid = make_raw_object(repository, GIT_OBJECT_TREE, str_text(&bytes), bytes.length);
	str_clear(&bytes);
	return oid;
}

char *oid_string(const git_oid *oid)
{
	char text[GIT_OID_HEXSZ + 1];
	return text_copy(git_oid_tostr(text, sizeof text, oid));
}
