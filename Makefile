# bisectd: no configure step; pkg-config finds the libraries.
#   make            build everything into build/
#   make deps       install what is missing (Debian packages; a Rust toolchain if there is none)
#   make tools      build cargo-show-asm, which lists functions as evidence
#   make run        install, build, and answer the question of config/usdt-86/ with its state in var/
#   make check      install, build, and run all tests
#   make install    DESTDIR and PREFIX (default /usr/local) are honoured; uninstall takes it away again
#   make bench      the figures of docs/design.md, measured side by side
#   make lint       cppcheck, clang-tidy, shellcheck, and the walls between the rooms
#   make fuzz       FUZZ_SECONDS (default 60) for each of tests/fuzz, under clang
# CC=clang works.  SANITIZE=address,undefined builds with sanitizers.  WERROR=1 makes warnings errors (CI does).

PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
CC ?= cc
PKG_CONFIG ?= pkg-config
OS := $(shell uname -s | sed 's/SunOS/illumos/; s/Linux/linux/')
VERSION := 0.1.0

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
	-Wformat=2 -Wundef -Wpointer-arith
CFLAGS ?= -O2 -g
HARDENING := -fstack-protector-strong -D_FORTIFY_SOURCE=2
ifneq ($(SANITIZE),)
HARDENING := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ifeq ($(WERROR),1)
WARNINGS += -Werror
endif

COMMON_PACKAGES := jansson nettle
DAEMON_PACKAGES := libgit2 sqlite3 libcurl libuv yaml-0.1
WORKER_PACKAGES := capstone libelf libdw
TEST_PACKAGES := cmocka

BASE_FLAGS := -std=c17 -D_GNU_SOURCE -DBISECTD_VERSION='"$(VERSION)"' -Icommon -Idaemon -Iworker -I$(BUILD) $(WARNINGS) \
	$(HARDENING) -MMD -MP
COMMON_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(COMMON_PACKAGES))
COMMON_LIBS = $(shell $(PKG_CONFIG) --libs $(COMMON_PACKAGES))
DAEMON_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(DAEMON_PACKAGES))
DAEMON_LIBS = $(shell $(PKG_CONFIG) --libs $(DAEMON_PACKAGES)) -lm
WORKER_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(WORKER_PACKAGES))
# libiberty (the demanglers) has no .pc file.
WORKER_LIBS = $(shell $(PKG_CONFIG) --libs $(WORKER_PACKAGES)) -liberty
TEST_LIBS = $(shell $(PKG_CONFIG) --libs $(TEST_PACKAGES))

COMMON_SOURCES := $(filter-out common/os_%.c,$(wildcard common/*.c)) common/os_$(OS).c
DAEMON_SOURCES := $(wildcard daemon/*.c daemon/plan/*.c)
WORKER_SOURCES := $(wildcard worker/*.c worker/evidence/*.c)
UNIT_SOURCES := $(wildcard tests/unit/test_*.c)

# One line a file; V=1 shows the whole commands.
Q := $(if $(V),,@)
SAY := @$(if $(V),true,echo)

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
COMMON_OBJECTS := $(call objects,$(COMMON_SOURCES))
DAEMON_OBJECTS := $(call objects,$(DAEMON_SOURCES)) $(BUILD)/schema.o
WORKER_OBJECTS := $(call objects,$(WORKER_SOURCES))
UNIT_PROGRAMS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SOURCES))

all: $(BUILD)/bisectd $(BUILD)/bisect-worker

$(BUILD)/bisectd: $(DAEMON_OBJECTS) $(COMMON_OBJECTS)
	$(SAY) "  LINK $@"
	$(Q)$(CC) $(CFLAGS) $(HARDENING) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS) $(COMMON_LIBS)

$(BUILD)/bisect-worker: $(WORKER_OBJECTS) $(COMMON_OBJECTS)
	$(SAY) "  LINK $@"
	$(Q)$(CC) $(CFLAGS) $(HARDENING) $(LDFLAGS) -o $@ $^ $(WORKER_LIBS) $(COMMON_LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(SAY) "  CC   $@"
	$(Q)$(CC) $(BASE_FLAGS) $(COMMON_CFLAGS) $(if $(filter daemon/% tests/%,$<),$(DAEMON_CFLAGS)) $(if $(filter worker/% tests/%,$<),$(WORKER_CFLAGS)) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

# schema.sql as a C string: one file, the one that people read.
$(BUILD)/schema.c: schema.sql
	@mkdir -p $(@D)
	@{ echo '#include "store_schema.h"'; echo 'const char store_schema[] ='; \
	   sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$$/\\n"/' $<; echo '	;'; } > $@

$(BUILD)/schema.o: $(BUILD)/schema.c
	$(SAY) "  CC   $@"
	$(Q)$(CC) $(BASE_FLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

# A unit test links every object of the daemon and the worker but the two main files.
UNIT_OBJECTS := $(filter-out $(BUILD)/daemon/main.o $(BUILD)/worker/main.o,$(DAEMON_OBJECTS) $(WORKER_OBJECTS) $(COMMON_OBJECTS))
TEST_HELPERS := $(call objects,$(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))

$(BUILD)/tests/test_%: $(BUILD)/tests/unit/test_%.o $(TEST_HELPERS) $(UNIT_OBJECTS)
	@mkdir -p $(@D)
	$(SAY) "  LINK $@"
	$(Q)$(CC) $(CFLAGS) $(HARDENING) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS) $(WORKER_LIBS) $(COMMON_LIBS) $(TEST_LIBS)

unit-programs: $(UNIT_PROGRAMS)

# What is missing is installed; what is there is left alone.  Without apt-get the list is only printed.
DEBIAN_PACKAGES := build-essential pkg-config ca-certificates libgit2-dev libsqlite3-dev libcurl4-openssl-dev libjansson-dev \
	libuv1-dev libyaml-dev nettle-dev libcapstone-dev libelf-dev libdw-dev libiberty-dev clang bubblewrap sqlite3 libcmocka-dev git python3 python3-pytest python3-pytest-xdist openssl

deps:
	@contrib/deps $(DEBIAN_PACKAGES)

# The compilers that the distribution offers, unpacked side by side where bisectd looks for them.
STATE ?= var
toolchains: deps
	@contrib/toolchains/debian $(STATE)/toolchains

# cargo-show-asm, for the listings of evidence: built once, by the newest cargo at hand.
tools: toolchains
	@contrib/cargo-show-asm $(STATE)/tools $(STATE)/toolchains

run: deps toolchains tools
	@$(MAKE) --no-print-directory all
	$(BUILD)/bisectd run --state $(STATE) config/usdt-86/investigation.yaml

# Everything once as it is shipped, and once more under AddressSanitizer and UndefinedBehaviorSanitizer.
check: deps toolchains tools
	@$(MAKE) --no-print-directory -j$(JOBS) all unit-programs
	@$(MAKE) --no-print-directory -j$(JOBS) all unit-programs BUILD=$(BUILD)/sanitized SANITIZE=address,undefined
	@tests/run --toolchains $(STATE)/toolchains $(BUILD) $(BUILD)/sanitized

JOBS ?= $(shell getconf _NPROCESSORS_ONLN)

bench: all toolchains
	@tests/bench/audit $(BUILD)
	@tests/bench/walk $(BUILD) $(STATE)/toolchains

# cppcheck, clang-tidy and shellcheck over everything, and the walls between the rooms.
DEBIAN_LINT_PACKAGES := cppcheck clang-tidy clang shellcheck
lint:
	@contrib/deps $(DEBIAN_PACKAGES) $(DEBIAN_LINT_PACKAGES)
	@tests/lint $(BASE_FLAGS) $(COMMON_CFLAGS) $(DAEMON_CFLAGS) $(WORKER_CFLAGS)

# Everything anew under clang, with its sanitizers and its eyes for new paths; then each of tests/fuzz for FUZZ_SECONDS.
FUZZ_SECONDS ?= 60
DEBIAN_FUZZ_PACKAGES := clang libclang-rt-14-dev
FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(UNIT_OBJECTS)
	$(CC) $(CFLAGS) $(HARDENING) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS) $(WORKER_LIBS) $(COMMON_LIBS)

fuzz-programs: $(FUZZ_PROGRAMS)

fuzz:
	@contrib/deps $(DEBIAN_PACKAGES) $(DEBIAN_FUZZ_PACKAGES)
	@$(MAKE) --no-print-directory -j$(JOBS) fuzz-programs CC=clang BUILD=$(BUILD)/fuzz SANITIZE=fuzzer-no-link,address,undefined
	@tests/fuzz/run $(FUZZ_SECONDS) $(BUILD)/fuzz

format:
	clang-format -i $(wildcard common/*.[ch] daemon/*.[ch] daemon/plan/*.[ch] worker/*.[ch] worker/evidence/*.[ch] tests/unit/*.[ch] tests/fuzz/*.c)

LIBEXECDIR := $(PREFIX)/libexec
DOCDIR := $(PREFIX)/share/doc/bisectd
INSTALLED := $(PREFIX)/bin/bisectd $(LIBEXECDIR)/bisectd $(DOCDIR) $(PREFIX)/share/bisectd

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBEXECDIR)/bisectd $(DESTDIR)$(DOCDIR) $(DESTDIR)$(PREFIX)/share/bisectd
	install -m 755 $(BUILD)/bisectd $(DESTDIR)$(PREFIX)/bin/bisectd
	install -m 755 $(BUILD)/bisect-worker $(DESTDIR)$(LIBEXECDIR)/bisectd/bisect-worker
	install -m 755 contrib/toolchains/debian $(DESTDIR)$(PREFIX)/share/bisectd/toolchains-debian
	install -m 755 contrib/cargo-show-asm $(DESTDIR)$(PREFIX)/share/bisectd/cargo-show-asm
	install -m 644 schema.sql $(DESTDIR)$(PREFIX)/share/bisectd/schema.sql
	cp -R config/usdt-86 $(DESTDIR)$(PREFIX)/share/bisectd/
	install -m 644 README.md LICENSE-MIT LICENSE-APACHE docs/*.md $(DESTDIR)$(DOCDIR)

uninstall:
	rm -rf $(addprefix $(DESTDIR),$(INSTALLED))

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: all clean unit-programs fuzz-programs deps toolchains tools run check bench lint fuzz format install uninstall
.SECONDARY:
