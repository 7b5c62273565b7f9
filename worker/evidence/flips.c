/* See flips.h. */
#include "evidence/flips.h"

#include <string.h>

/* The first ones tell most. */
const struct flip flips[] = {
	{"opt-level=0", "opt-level", "0", {"-C", "opt-level=0"}, NULL, false, false},
	{"opt-level=1", "opt-level", "1", {"-C", "opt-level=1"}, NULL, false, false},
	{"opt-level=2", "opt-level", "2", {"-C", "opt-level=2"}, NULL, false, false},
	{"opt-level=3", "opt-level", "3", {"-C", "opt-level=3"}, NULL, false, false},
	{"opt-level=s", "opt-level", "s", {"-C", "opt-level=s"}, NULL, false, false},
	{"codegen-units=1", "codegen-units", "1", {"-C", "codegen-units=1"}, NULL, false, false},
	{"codegen-units=16", "codegen-units", "16", {"-C", "codegen-units=16"}, NULL, false, false},
	{"mir-opt-level=0", "-Z mir-opt-level", "0", {"-Z", "mir-opt-level=0"}, NULL, false, true},
	{"codegen-backend=cranelift",
	 "-Z codegen-backend",
	 "cranelift",
	 {"-Z", "codegen-backend=cranelift"},
	 NULL,
	 false,
	 true},
	{"lto=off", "lto", "off", {"-C", "lto=off"}, NULL, true, true},
	{"lto=thin", "lto", "thin", {"-C", "embed-bitcode=yes", "-C", "lto=thin"}, NULL, true, true},
	{"lto=fat", "lto", "fat", {"-C", "embed-bitcode=yes", "-C", "lto=fat"}, NULL, true, true},
	{"panic=abort", "panic", "abort", {"-C", "panic=abort"}, NULL, false, true},
	{"panic=unwind", "panic", "unwind", {"-C", "panic=unwind"}, NULL, false, true},
	{"target-cpu=native", "target-cpu", "native", {"-C", "target-cpu=native"}, NULL, false, true},
	{"target-cpu=x86-64-v2", "target-cpu", "x86-64-v2", {"-C", "target-cpu=x86-64-v2"}, "x86_64", false, true},
	{"debuginfo=0", "debuginfo", "0", {"-C", "debuginfo=0"}, NULL, false, false},
	{"debuginfo=2", "debuginfo", "2", {"-C", "debuginfo=2"}, NULL, false, false},
	{"overflow-checks=on", "overflow-checks", "on", {"-C", "overflow-checks=on"}, NULL, false, false},
	{"overflow-checks=off", "overflow-checks", "off", {"-C", "overflow-checks=off"}, NULL, false, false},
};
const size_t flip_count = sizeof flips / sizeof flips[0];

/* Other spellings of a value, as rustc takes them; "" is a key without a value. */
static const struct {
	const char *key;
	const char *spelling;
	const char *value;
} spellings[] = {
	{"debuginfo", "none", "0"},
	{"debuginfo", "limited", "1"},
	{"debuginfo", "full", "2"},
	{"lto", "", "fat"},
	{"lto", "yes", "fat"},
	{"lto", "y", "fat"},
	{"lto", "on", "fat"},
	{"lto", "true", "fat"},
	{"lto", "no", "off"},
	{"lto", "n", "off"},
	{"lto", "false", "off"},
	{"overflow-checks", "", "on"},
	{"overflow-checks", "yes", "on"},
	{"overflow-checks", "y", "on"},
	{"overflow-checks", "true", "on"},
	{"overflow-checks", "no", "off"},
	{"overflow-checks", "n", "off"},
	{"overflow-checks", "false", "off"},
	{"debug-assertions", "", "on"},
	{"debug-assertions", "yes", "on"},
	{"debug-assertions", "y", "on"},
	{"debug-assertions", "true", "on"},
	{"debug-assertions", "no", "off"},
	{"debug-assertions", "n", "off"},
	{"debug-assertions", "false", "off"},
};

static const struct {
	const char *key;
	const char *value;
} defaults[] = {
	{"opt-level", "0"},
	{"codegen-units", "16"},
	{"panic", "unwind"},
	{"debuginfo", "0"},
};

static void take_setting(struct strmap *settings, const char *prefix, const char *text)
{
	const char *equals = strchr(text, '=');
	cleanup_free char *name = text_copy_range(text, equals != NULL ? (size_t)(equals - text) : strlen(text));
	cleanup_free char *key = text_format("%s%s", prefix, name);
	const char *value = equals != NULL ? equals + 1 : "";
	for (char *at = key + strlen(prefix); *at != '\0'; at++)
		if (*at == '_') /* rustc takes both */
			*at = '-';
	for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
		if (strcmp(key, spellings[i].key) == 0 && strcmp(value, spellings[i].spelling) == 0)
			value = spellings[i].value;
	strmap_set(settings, key, value);
}

/* `-C x`, `-Cx`, `--codegen x`, `--codegen=x`, and the same for -Z.  `next` may be NULL.  Returns words taken beyond
 * the first. */
static size_t take_word(struct strmap *settings, const char *word, const char *next)
{
	static const struct {
		const char *option;
		const char *prefix;
	} options[] = {{"-C", ""}, {"--codegen=", ""}, {"-Z", "-Z "}};
	if (strcmp(word, "-O") == 0)
		strmap_set(settings, "opt-level", "O");
	else if (strcmp(word, "-g") == 0)
		strmap_set(settings, "debuginfo", "2");
	else if (next != NULL && (strcmp(word, "-C") == 0 || strcmp(word, "--codegen") == 0))
		take_setting(settings, "", next);
	else if (next != NULL && strcmp(word, "-Z") == 0)
		take_setting(settings, "-Z ", next);
	else {
		for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
			if (text_starts_with(word, options[i].option) && word[strlen(options[i].option)] != '\0')
				take_setting(settings, options[i].prefix, word + strlen(options[i].option));
		return 0;
	}
	return word[1] == 'O' || word[1] == 'g' ? 0 : 1;
}

void settings_read(const struct strlist *words, struct strmap *settings)
{
	for (size_t i = 0; i < words->count; i++)
		i += take_word(settings, words->items[i], i + 1 < words->count ? words->items[i + 1] : NULL);
	for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
		if (strmap_get(settings, defaults[i].key) == NULL)
			strmap_set(settings, defaults[i].key, defaults[i].value);
	const char *assertions = strmap_get(settings, "debug-assertions");
	if (assertions == NULL)
		assertions = text_equal(strmap_get(settings, "opt-level"), "0") ? "on" : "off";
	cleanup_free char *checks = text_copy(assertions); /* the map may move what it holds */
	if (strmap_get(settings, "overflow-checks") == NULL)
		strmap_set(settings, "overflow-checks", checks);
}

bool flip_differs(const struct flip *flip, const struct strmap *settings, const char *machine)
{
	if (flip->machine != NULL && strcmp(flip->machine, machine) != 0)
		return false;
	return !text_equal(strmap_get(settings, flip->key), flip->value);
}
