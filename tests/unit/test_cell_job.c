/* cell_job: what a key covers and what it does not, and the jobs that combinations become. */
#include "cell_job.h"
#include "os.h"
#include "place.h"

enum { AXES = 5, TOOL = 0, USDT = 1, REV = 2, PROFILE = 3, ARM = 4 };

/* All that goes into a cell.  One change is made in every text of it that holds what is to be changed. */
enum text {
	CONFIG_FILE,
	YAML,
	TOOLCHAINS,
	RELEASE,
	OID,
	STATE_FOLDER,
	REPRODUCER_HASH,
	MANIFEST, /* "Cargo.toml" or "" */
	FETCH_CARGO,
	TEXT_COUNT
};

static const char *const base[TEXT_COUNT] = {
	[CONFIG_FILE] = "/inv/a.yaml",
	[YAML] = ("name: inv\n"
		  "question: Who?\n"
		  "workers: 2\n"
		  "confirm: 4\n"
		  "retries: 1\n"
		  "bad: [fail]\n"
		  "sources: {src: {url: /srv/s.git}, other: {url: /srv/o.git}}\n"
		  "axes:\n"
		  "- {name: tool, type: toolchain, values: [auto]}\n"
		  "- {name: usdt, type: crate, values: ['0.5.0']}\n"
		  "- {name: rev, type: commit, source: src, values: [v1]}\n"
		  "- {name: profile, type: profile, values: [release]}\n"
		  "- {name: arm, type: choice, values: [{name: left, features: [feat1, feat2], environment: {ENV: val},"
		  " rustflags: [-Cone], placeholders: {holder: held}, note: remark}]}\n"
		  "overrides:\n"
		  "- {name: over, crate: usdt, reason: because, edits: [{file: lib.rs, find: asm, replace: llvm_asm, "
		  "matches: 1}]}\n"
		  "- {name: elsewhere, crate: usdt, os: illumos, edits: [{file: sun.rs, find: moon, replace: star}]}\n"
		  "exclude: [{tool: '9.*', usdt: '0.5.0'}]\n"
		  "reproducer:\n"
		  "  path: program\n"
		  "  build: [[cargo, build, '--profile', '{profile}']]\n"
		  "  run: ['{target}/{profile_dir}/x', once]\n"
		  "  environment: {REPRO: value}\n"
		  "  runs: 5\n"
		  "  expect: {exit: 7, output: fine}\n"
		  "  limits: {build: 101s, run: 102s, memory: 103MiB, processes: 104, output: 105KiB, file: 106MiB}\n"
		  "  sandbox: auto\n"
		  "  network: never\n"
		  "webhooks: [{name: team, url: 'http://hook/', format: slack}]\n"),
	[TOOLCHAINS] = ("[{\"name\":\"auto\",\"label\":\"1.63.0\",\"identity\":\"rustc "
			"-vV\",\"root\":\"/tc\",\"rustc\":\"/tc/bin/rustc\","
			"\"cargo\":\"/tc/bin/cargo\",\"program\":\"/tc/bin/driver\",\"path\":\"/tc/"
			"bin\",\"read_only\":[\"/tc\"]}]"),
	[RELEASE] = "{\"identity\":\"registry-checksum\"}",
	[OID] = "1111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	[STATE_FOLDER] = "/var/state",
	[REPRODUCER_HASH] = "tree-hash",
	[MANIFEST] = "Cargo.toml",
	[FETCH_CARGO] = "/newest/cargo",
};

struct world {
	char *texts[TEXT_COUNT];
	struct config config;
	struct axes axes;
	struct cell_context context;
};

static const size_t positions[AXES] = {0};

/* Every `from` becomes `to`; false where there is none. */
static bool replace(char **text, const char *from, const char *to)
{
	struct str result = {0};
	const char *rest = *text;
	const char *found = strstr(rest, from);
	if (found == NULL)
		return false;
	for (; found != NULL; found = strstr(rest, from)) {
		str_append_bytes(&result, rest, (size_t)(found - rest));
		str_append(&result, to);
		rest = found + strlen(from);
	}
	str_append(&result, rest);
	free(*text);
	*text = str_steal(&result);
	return true;
}

static void resolve(struct world *world)
{
	cleanup_error struct error error = {0};
	struct source_commit commit = {
		.oid = world->texts[OID], .subject = world->texts[CONFIG_FILE], .date = world->texts[CONFIG_FILE]};
	struct source_commits commits = {.items = &commit, .count = 1};
	const struct config_axis *rev = &world->config.axes[REV];
	json_t *toolchain = json_loads(world->texts[TOOLCHAINS], 0, NULL);
	json_t *release = json_loads(world->texts[RELEASE], 0, NULL);
	axes_start(&world->axes, &world->config);
	assert_done(axis_take_toolchains(&world->axes.items[TOOL], toolchain, &error), &error);
	axis_take_release(&world->axes.items[USDT], &world->config.axes[USDT].values[0], release);
	axis_take_commits(&world->axes.items[REV], &rev->values[0], rev->source, &commits);
	for (size_t i = PROFILE; i < world->config.axis_count; i++)
		axis_take_written(&world->axes.items[i]);
	json_decref(toolchain);
	json_decref(release);
}

/* `from` NULL: the base as it is. */
static void start_world(struct world *world, const char *from, const char *to)
{
	cleanup_strlist struct strlist problems = {0};
	bool found = from == NULL;
	*world = (struct world){0};
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		world->texts[i] = text_copy(base[i]);
		found = (from != NULL && replace(&world->texts[i], from, to)) || found;
	}
	if (!found)
		fail_msg("nothing holds \"%s\"", from);
	if (config_parse(&world->config, world->texts[CONFIG_FILE], world->texts[YAML], strlen(world->texts[YAML]),
			 &problems) < 0)
		fail_msg("\"%s\" to \"%s\": %s", from, to, problems.items[0]);
	resolve(world);
	world->context = (struct cell_context){.config = &world->config,
					       .axes = &world->axes,
					       .state_folder = world->texts[STATE_FOLDER],
					       .reproducer_hash = world->texts[REPRODUCER_HASH],
					       .has_manifest = world->texts[MANIFEST][0] != '\0',
					       .fetch_cargo = world->texts[FETCH_CARGO]};
}

static void end_world(struct world *world)
{
	for (size_t i = 0; i < TEXT_COUNT; i++)
		free(world->texts[i]);
	axes_clear(&world->axes);
	config_clear(&world->config);
}

/* ---- keys ---- */

static void a_key_is_a_sha256_and_always_the_same(void **state)
{
	(void)state;
	cleanup_free char *first = NULL;
	for (int i = 0; i < 3; i++) {
		struct world world;
		start_world(&world, NULL, NULL);
		cleanup_free char *key = cell_key(&world.context, positions);
		assert_int_equal(strlen(key), 64);
		assert_int_equal(strspn(key, "0123456789abcdef"), 64);
		if (first != NULL)
			assert_string_equal(key, first);
		free(first);
		first = text_copy(key);
		end_world(&world);
	}
}

enum covered { NEITHER, CELL, BOTH };

static const struct {
	const char *what;
	const char *from;
	const char *to;
	enum covered covered; /* which keys change: none, the cell's alone, the cell's and its preparation's */
} changes[] = {
	{"name of the file", "/inv/a.yaml", "/elsewhere/b.yaml", NEITHER},
	{"name", "name: inv", "name: vni", NEITHER},
	{"question", "Who?", "What?", NEITHER},
	{"workers", "workers: 2", "workers: 3", NEITHER},
	{"confirm", "confirm: 4", "confirm: 5", NEITHER},
	{"retries", "retries: 1", "retries: 2", NEITHER},
	{"what is bad", "bad: [fail]", "bad: [crash]", NEITHER},
	{"url of a source", "/srv/s.git", "/srv/t.git", NEITHER},
	{"note", "remark", "other remark", NEITHER},
	{"name of an override", "name: over", "name: overt", NEITHER},
	{"reason of an override", "because", "why not", NEITHER},
	{"override of another system", "moon", "mars", NEITHER},
	{"exclude", "'9.*'", "'8.*'", NEITHER},
	{"path of the reproducer", "path: program", "path: elsewhere", NEITHER},
	{"url of a webhook", "http://hook/", "http://hook/2", NEITHER},
	{"format of a webhook", "slack", "generic", NEITHER},
	{"folder of the toolchain", "/tc", "/opt/toolchains/tc", NEITHER},
	{"state folder", "/var/state", "/srv/state", NEITHER},
	{"cargo that fetches", "/newest/cargo", "/newer/cargo", NEITHER},
	{"subject of the commit", "/inv/a.yaml", "/inv/c.yaml", NEITHER},

	{"identity of the toolchain", "rustc -vV", "rustc -vW", CELL},
	{"label of the toolchain that no command uses", "\"1.63.0\"", "\"1.63\"", NEITHER},
	{"commit", "1111111111", "2222222222", CELL},
	{"name of a revision", "values: [v1]", "values: [v2]", CELL},
	{"source of a revision", "source: src", "source: other", CELL},
	{"name of an axis", "name: rev", "name: ver", CELL},
	{"profile", "values: [release]", "values: [bench]", CELL},
	{"name of a choice", "name: left", "name: right", CELL},
	{"feature", "feat1", "feat3", CELL},
	{"order of features", "[feat1, feat2]", "[feat2, feat1]", CELL},
	{"a feature less", "[feat1, feat2]", "[feat1]", CELL},
	{"value of a variable", "{ENV: val}", "{ENV: lav}", CELL},
	{"name of a variable", "{ENV: val}", "{VNE: val}", CELL},
	{"a variable less", "environment: {ENV: val}, ", "", CELL},
	{"flag", "-Cone", "-Ctwo", CELL},
	{"two flags of one", "[-Cone]", "[-C, one]", CELL},
	{"value of a placeholder", "held", "hold", CELL},
	{"name of a placeholder", "{holder:", "{handle:", CELL},
	{"word of the build", "cargo, build,", "cargo, rustc,", CELL},
	{"words of the build", "cargo, build,", "cargo build,", CELL},
	{"commands of the build", "[[cargo, build,", "[['true'], [cargo, build,", CELL},
	{"word of the run", "once", "twice", CELL},
	{"words of the run", "x', once", "x once'", CELL},
	{"variable of the reproducer", "REPRO: value", "REPRO: values", CELL},
	{"runs", "runs: 5", "runs: 6", CELL},
	{"expected exit", "exit: 7", "exit: 8", CELL},
	{"expected output", "output: fine", "output: good", CELL},
	{"no expected output", ", output: fine", "", CELL},
	{"build limit", "101s", "111s", CELL},
	{"run limit", "102s", "112s", CELL},
	{"memory limit", "103MiB", "113MiB", CELL},
	{"process limit", "processes: 104", "processes: 114", CELL},
	{"output limit", "105KiB", "115KiB", CELL},
	{"file limit", "106MiB", "116MiB", CELL},
	{"sandbox", "sandbox: auto", "sandbox: none", CELL},
	{"network", "network: never", "network: build", CELL},

	{"tree of the reproducer", "tree-hash", "other-hash", BOTH},
	{"crate or no crate", "Cargo.toml", "", BOTH},
	{"release", "'0.5.0'", "'0.6.0'", BOTH},
	{"checksum of the release", "registry-checksum", "other-checksum", BOTH},
	{"edited file", "lib.rs", "main.rs", BOTH},
	{"text that an edit looks for", "find: asm", "find: asn", BOTH},
	{"text that an edit writes", "llvm_asm", "global_asm", BOTH},
	{"how often an edit matches", "matches: 1", "matches: 2", BOTH},
	{"how often an edit may match", "matches: 1", "matches: '1..'", BOTH},
	{"system of an override", "os: illumos", "os: [illumos, linux]", BOTH},
	{"a further edit of another system", "moon, replace: star}]",
	 "moon, replace: star}, {file: x, find: y, replace: z}]", NEITHER},
	{"what an override edits", "name: over, crate: usdt", "name: over, source: src", BOTH},
};

static void assert_changed(const char *what, const char *key, const char *before, const char *after, bool expected)
{
	if (text_equal(before, after) == expected)
		fail_msg("%s: the key of the %s %s", what, key, expected ? "stays" : "changes");
}

static void a_key_changes_with_what_can_change_an_outcome_and_with_nothing_else(void **state)
{
	(void)state;
	struct world before;
	start_world(&before, NULL, NULL);
	cleanup_free char *key = cell_key(&before.context, positions);
	cleanup_free char *preparation = cell_preparation_key(&before.context, positions);
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		struct world after;
		if (strcmp(os_name(), "linux") != 0 && strstr(changes[i].what, "system") != NULL)
			continue;
		start_world(&after, changes[i].from, changes[i].to);
		cleanup_free char *other_key = cell_key(&after.context, positions);
		cleanup_free char *other_preparation = cell_preparation_key(&after.context, positions);
		assert_changed(changes[i].what, "cell", key, other_key, changes[i].covered != NEITHER);
		assert_changed(changes[i].what, "preparation", preparation, other_preparation,
			       changes[i].covered == BOTH);
		end_world(&after);
	}
	end_world(&before);
}

static void the_key_of_no_two_changes_is_the_same(void **state)
{
	(void)state;
	enum { COUNT = sizeof changes / sizeof changes[0] };
	char *keys[COUNT] = {0};
	for (size_t i = 0; i < COUNT; i++) {
		struct world world;
		if (changes[i].covered == NEITHER)
			continue;
		start_world(&world, changes[i].from, changes[i].to);
		keys[i] = cell_key(&world.context, positions);
		for (size_t j = 0; j < i; j++)
			if (keys[j] != NULL && strcmp(keys[i], keys[j]) == 0)
				fail_msg("%s and %s have one key", changes[i].what, changes[j].what);
		end_world(&world);
	}
	for (size_t i = 0; i < COUNT; i++)
		free(keys[i]);
}

static void the_toolchain_of_all_cells_counts_like_one_of_an_axis(void **state)
{
	(void)state;
	struct world world;
	start_world(&world, NULL, NULL);
	struct axis *axis = &world.axes.items[TOOL];
	struct axes fewer = {.items = world.axes.items + 1, .count = world.axes.count - 1};
	struct cell_context context = world.context;
	context.axes = &fewer;
	context.default_toolchain = &axis->values[0];
	assert_ptr_equal(cell_toolchain(&world.context, positions), &axis->values[0]);
	assert_ptr_equal(cell_toolchain(&context, positions), &axis->values[0]);
	cleanup_free char *before = cell_key(&context, positions);
	free(axis->values[0].identity);
	axis->values[0].identity = text_copy("another");
	cleanup_free char *after = cell_key(&context, positions);
	context.default_toolchain = NULL;
	cleanup_free char *none = cell_key(&context, positions);
	assert_string_not_equal(before, after);
	assert_string_not_equal(after, none);
	assert_null(cell_toolchain(&context, positions));
	end_world(&world);
}

/* ---- preparations ---- */

static void only_a_cargo_crate_or_an_edited_checkout_needs_a_preparation(void **state)
{
	(void)state;
	static const struct {
		const char *from;
		const char *to;
		bool needed;
	} cases[] = {
		{NULL, NULL, true},
		{"Cargo.toml", "", false},
		{"name: over, crate: usdt", "name: over, source: src", true},
		{"name: over, crate: usdt", "name: over, source: other", true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world world;
		start_world(&world, cases[i].from, cases[i].to);
		cleanup_free char *key = cell_preparation_key(&world.context, positions);
		assert_int_equal(key != NULL, cases[i].needed);
		world.context.has_manifest = false;
		cleanup_free char *bare = cell_preparation_key(&world.context, positions);
		assert_int_equal(bare != NULL, i == 2); /* an override edits the checkout itself */
		end_world(&world);
	}
}

static void an_edited_checkout_makes_its_commit_part_of_the_preparation(void **state)
{
	(void)state;
	char *keys[2] = {NULL, NULL};
	for (int i = 0; i < 2; i++) {
		struct world world;
		start_world(&world, "name: over, crate: usdt", "name: over, source: src");
		memset(world.axes.items[REV].values[0].identity, 'x', i == 0 ? 0 : 10);
		keys[i] = cell_preparation_key(&world.context, positions);
		end_world(&world);
	}
	assert_string_not_equal(keys[0], keys[1]);
	free(keys[0]);
	free(keys[1]);
}

static void a_preparation_asks_for_the_crates_and_the_overrides_of_this_system(void **state)
{
	(void)state;
	struct world world;
	cleanup_job struct job job = {0};
	start_world(&world, NULL, NULL);
	cleanup_free char *key = cell_preparation_key(&world.context, positions);
	cell_fill_preparation(&world.context, positions, key, "locked", &job);
	cleanup_free char *prepared = text_format("/var/state/prepared/%.20s", key);
	cleanup_free char *crates = json_dumps(job.crates, JSON_COMPACT);
	cleanup_free char *overrides = json_dumps(job.overrides, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(job.kind, "prepare");
	assert_string_equal(job.reproducer, "/inv/program");
	assert_string_equal(job.prepared, prepared);
	assert_string_equal(job.cargo, "/newest/cargo");
	assert_string_equal(job.vendor, "/var/state/vendor");
	assert_string_equal(job.edited, "/var/state/edited");
	assert_string_equal(job.lock, "locked");
	assert_string_equal(crates, "[{\"name\":\"usdt\",\"release\":\"0.5.0\"}]");
	assert_string_equal(overrides,
			    "[{\"crate\":\"usdt\",\"edits\":[{\"file\":\"lib.rs\",\"find\":\"asm\",\"max\":1,\"min\":1,"
			    "\"replace\":\"llvm_asm\"}],\"name\":\"over\"}]");
	assert_int_equal(job.checkouts.count, 0);
	end_world(&world);
}

/* ---- cells ---- */

static void the_label_of_a_toolchain_counts_where_a_command_uses_it(void **state)
{
	(void)state;
	struct world world;
	cleanup_job struct job job = {0};
	start_world(&world, "/x', once]", "/x', '{tool}']");
	cell_fill_job(&world.context, positions, "/f", false, &job);
	assert_string_equal(strmap_get(&job.placeholders, "tool"), "1.63.0");
	end_world(&world);
	job_clear(&job);
	start_world(&world, NULL, NULL);
	cell_fill_job(&world.context, positions, "/f", false, &job);
	assert_null(strmap_get(&job.placeholders, "tool"));
	end_world(&world);
}

static void a_cell_becomes_a_job_with_all_that_it_stands_on(void **state)
{
	(void)state;
	struct world world;
	cleanup_job struct job job = {0};
	const struct axis_value *commits[AXES];
	start_world(&world, NULL, NULL);
	cell_fill_job(&world.context, positions, "/var/state/build/t/0", true, &job);
	static const char *const placeholders[][2] = {{"usdt", "0.5.0"},
						      {"rev", "v1"},
						      {"profile", "release"},
						      {"profile_dir", "release"},
						      {"arm", "left"},
						      {"holder", "held"},
						      {"features", "feat1,feat2"},
						      {"rustflags", "-Cone"},
						      {"rustc", "/tc/bin/rustc"},
						      {"compiler", "/tc/bin/driver"},
						      {"cargo", "/tc/bin/cargo"}};
	for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++)
		assert_string_equal(strmap_get(&job.placeholders, placeholders[i][0]), placeholders[i][1]);
	assert_string_equal(job.kind, "cell");
	assert_string_equal(job.id, "tool=1.63.0 usdt=0.5.0 rev=v1 profile=release arm=left");
	assert_string_equal(job.workspace, "/var/state/build/t/0/work");
	assert_string_equal(job.target, "/var/state/build/t/0/target");
	assert_true(job.clean);
	assert_int_equal(job.runs, 5);
	assert_string_equal(strmap_get(&job.environment, "REPRO"), "value");
	assert_string_equal(strmap_get(&job.environment, "ENV"), "val");
	assert_string_equal(strmap_get(&job.environment, "RUSTFLAGS"), "-Cone");
	assert_string_equal(job.path.items[0], "/tc/bin");
	cleanup_free char *read_only = strlist_join(&job.read_only, " ");
	assert_string_equal(read_only, "/tc /var/state/edited /var/state/vendor");
	assert_string_equal(strmap_get(&job.checkouts, "src"),
			    "/var/state/trees/1111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	assert_int_equal(cell_commits(&world.context, positions, commits), 1);
	assert_ptr_equal(commits[0], &world.axes.items[REV].values[0]);
	end_world(&world);
}

static void an_edited_checkout_comes_from_the_preparation(void **state)
{
	(void)state;
	struct world world;
	cleanup_job struct job job = {0};
	cleanup_job struct job preparation = {0};
	start_world(&world, "name: over, crate: usdt", "name: over, source: src");
	cleanup_free char *key = cell_preparation_key(&world.context, positions);
	cell_fill_job(&world.context, positions, "/f", false, &job);
	cell_fill_preparation(&world.context, positions, key, NULL, &preparation);
	cleanup_free char *checkout = text_format("/var/state/prepared/%.20s/checkouts/src", key);
	assert_string_equal(strmap_get(&job.checkouts, "src"), checkout);
	assert_string_equal(strmap_get(&preparation.checkouts, "src"),
			    "/var/state/trees/1111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	assert_int_equal(job.runs, 5);
	assert_false(job.clean);
	end_world(&world);
}

static void a_checkout_that_replaces_a_crate_is_prepared_and_not_copied(void **state)
{
	(void)state;
	struct world world;
	cleanup_job struct job job = {0};
	cleanup_job struct job preparation = {0};
	start_world(&world, "type: commit, source: src", "type: commit, source: src, crate: other-crate");
	cleanup_free char *key = cell_preparation_key(&world.context, positions);
	cell_fill_job(&world.context, positions, "/f", false, &job);
	cell_fill_preparation(&world.context, positions, key, NULL, &preparation);
	cleanup_free char *crate = json_dumps(json_array_get(preparation.crates, 1), JSON_COMPACT | JSON_SORT_KEYS);
	assert_int_equal(job.checkouts.count, 0);
	assert_string_equal(
		crate,
		"{\"name\":\"other-crate\",\"oid\":\"1111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"source\":\"src\","
		"\"tree\":\"/var/state/trees/1111111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}");
	end_world(&world);
}

static void a_profile_has_its_folder(void **state)
{
	(void)state;
	static const char *const cases[][2] = {{"dev", "debug"},
					       {"test", "debug"},
					       {"release", "release"},
					       {"bench", "release"},
					       {"lto-fat", "lto-fat"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world world;
		cleanup_job struct job job = {0};
		cleanup_free char *to = text_format("values: [%s]", cases[i][0]);
		start_world(&world, "values: [release]", to);
		cell_fill_job(&world.context, positions, "/f", false, &job);
		assert_string_equal(strmap_get(&job.placeholders, "profile"), cases[i][0]);
		assert_string_equal(strmap_get(&job.placeholders, "profile_dir"), cases[i][1]);
		end_world(&world);
	}
}

static void what_choices_add_is_joined_in_the_order_of_the_axes(void **state)
{
	(void)state;
	static const struct {
		const char *more; /* another axis behind the last */
		const char *features;
		const char *rustflags;
		const char *environment;
	} cases[] = {
		{"", "feat1,feat2", "-Cone", "val"},
		{"- {name: b, type: choice, values: [plain]}\n", "feat1,feat2", "-Cone", "val"},
		{"- {name: b, type: choice, values: [{name: x, features: [a], rustflags: [-C, two], environment: {ENV: "
		 "later}}]}\n",
		 "feat1,feat2,a", "-Cone -C two", "later"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world world;
		cleanup_job struct job job = {0};
		const size_t more_positions[AXES + 1] = {0};
		cleanup_free char *to = text_format("%soverrides:\n", cases[i].more);
		start_world(&world, "overrides:\n", to);
		cell_fill_job(&world.context, more_positions, "/f", false, &job);
		assert_string_equal(strmap_get(&job.placeholders, "features"), cases[i].features);
		assert_string_equal(strmap_get(&job.placeholders, "rustflags"), cases[i].rustflags);
		assert_string_equal(strmap_get(&job.environment, "RUSTFLAGS"), cases[i].rustflags);
		assert_string_equal(strmap_get(&job.environment, "ENV"), cases[i].environment);
		end_world(&world);
	}
}

static void without_flags_there_is_no_variable_for_them(void **state)
{
	(void)state;
	struct world world;
	cleanup_job struct job job = {0};
	start_world(&world, " rustflags: [-Cone],", "");
	cell_fill_job(&world.context, positions, "/f", false, &job);
	assert_null(strmap_get(&job.environment, "RUSTFLAGS"));
	assert_string_equal(strmap_get(&job.placeholders, "rustflags"), "");
	end_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_a_sha256_and_always_the_same),
		cmocka_unit_test(a_key_changes_with_what_can_change_an_outcome_and_with_nothing_else),
		cmocka_unit_test(the_key_of_no_two_changes_is_the_same),
		cmocka_unit_test(the_toolchain_of_all_cells_counts_like_one_of_an_axis),
		cmocka_unit_test(only_a_cargo_crate_or_an_edited_checkout_needs_a_preparation),
		cmocka_unit_test(an_edited_checkout_makes_its_commit_part_of_the_preparation),
		cmocka_unit_test(a_preparation_asks_for_the_crates_and_the_overrides_of_this_system),
		cmocka_unit_test(the_label_of_a_toolchain_counts_where_a_command_uses_it),
		cmocka_unit_test(a_cell_becomes_a_job_with_all_that_it_stands_on),
		cmocka_unit_test(an_edited_checkout_comes_from_the_preparation),
		cmocka_unit_test(a_checkout_that_replaces_a_crate_is_prepared_and_not_copied),
		cmocka_unit_test(a_profile_has_its_folder),
		cmocka_unit_test(what_choices_add_is_joined_in_the_order_of_the_axes),
		cmocka_unit_test(without_flags_there_is_no_variable_for_them),
	};
	return cmocka_run_group_tests_name("cell_job", tests, NULL, NULL);
}
