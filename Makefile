# bisectd: no configure step; pkg-config finds the libraries.
#   make            build everything into build/
#   make deps       install what is missing (Debian packages; a Rust toolchain if there is none)
#   make run        install, build, and answer the question of config/usdt-86/ with its state in var/
#   make check      install, build, and run all tests
#   make install    DESTDIR and PREFIX (default /usr/local) are honoured; uninstall takes it away again
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
TEST_PACKAGES := cmocka

BASE_FLAGS := -std=c17 -D_GNU_SOURCE -DBISECTD_VERSION='"$(VERSION)"' -Icommon -Idaemon -Iworker -I$(BUILD) $(WARNINGS) \
	$(HARDENING) -MMD -MP
COMMON_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(COMMON_PACKAGES))
COMMON_LIBS = $(shell $(PKG_CONFIG) --libs $(COMMON_PACKAGES))
DAEMON_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(DAEMON_PACKAGES))
DAEMON_LIBS = $(shell $(PKG_CONFIG) --libs $(DAEMON_PACKAGES)) -lm
TEST_LIBS = $(shell $(PKG_CONFIG) --libs $(TEST_PACKAGES))

COMMON_SOURCES := $(filter-out common/os_%.c,$(wildcard common/*.c)) common/os_$(OS).c
DAEMON_SOURCES := $(wildcard daemon/*.c daemon/plan/*.c)
WORKER_SOURCES := $(wildcard worker/*.c)
UNIT_SOURCES := $(wildcard tests/unit/test_*.c)

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
COMMON_OBJECTS := $(call objects,$(COMMON_SOURCES))
DAEMON_OBJECTS := $(call objects,$(DAEMON_SOURCES)) $(BUILD)/schema.o
WORKER_OBJECTS := $(call objects,$(WORKER_SOURCES))
UNIT_HELPERS := $(call objects,$(filter-out $(UNIT_SOURCES),$(wildcard tests/unit/*.c)))
UNIT_PROGRAMS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SOURCES))

all: $(BUILD)/bisectd $(BUILD)/bisect-worker

$(BUILD)/bisectd: $(DAEMON_OBJECTS) $(COMMON_OBJECTS)
	$(CC) $(CFLAGS) $(HARDENING) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS) $(COMMON_LIBS)

$(BUILD)/bisect-worker: $(WORKER_OBJECTS) $(COMMON_OBJECTS)
	$(CC) $(CFLAGS) $(HARDENING) $(LDFLAGS) -o $@ $^ $(COMMON_LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE_FLAGS) $(COMMON_CFLAGS) $(if $(filter daemon/% tests/%,$<),$(DAEMON_CFLAGS)) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

# schema.sql as a C string: one file, the one that people read.
$(BUILD)/schema.c: schema.sql
	@mkdir -p $(@D)
	@{ echo '#include "store_schema.h"'; echo 'const char store_schema[] ='; \
	   sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$$/\\n"/' $<; echo '	;'; } > $@

$(BUILD)/schema.o: $(BUILD)/schema.c
	$(CC) $(BASE_FLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

# A unit test links every object of the daemon and the worker but the two main files, and the tests' helpers.
UNIT_OBJECTS := $(filter-out $(BUILD)/daemon/main.o $(BUILD)/worker/main.o,$(DAEMON_OBJECTS) $(WORKER_OBJECTS) $(COMMON_OBJECTS))

$(BUILD)/tests/test_%: $(BUILD)/tests/unit/test_%.o $(UNIT_HELPERS) $(UNIT_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(HARDENING) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS) $(COMMON_LIBS) $(TEST_LIBS)

unit-programs: $(UNIT_PROGRAMS)

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: all clean unit-programs
.SECONDARY:
