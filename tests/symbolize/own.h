/* SPDX-License-Identifier: Apache-2.0 */
/* own: a symbolizer in a folder of its own, and this very program as what it names. */
#pragma once

#include "test.h"

#include "objfile/objfile.h"
#include "symbolize/symbolize.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Long, for a loaded machine; a test that passes does not wait. */
#define WAIT_MS 60000

static volatile int sink;

static __attribute__((always_inline)) inline uintptr_t inlined_inner(int x)
{
	sink += x;
	uintptr_t at;
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0" : "=r"(at));
#else
	__asm__ volatile("adr %0, ." : "=r"(at));
#endif
	sink -= x;
	return at;
}

static __attribute__((noinline, unused)) uintptr_t outer_function(int x)
{
	uintptr_t at = inlined_inner(x);
	sink += 2;
	return at;
}

static inline int load_base(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	*(uintptr_t *)out = info->dlpi_addr;
	return 1;
}

static inline uintptr_t base(void)
{
	uintptr_t b = 0;
	dl_iterate_phdr(load_base, &b);
	return b;
}

struct setup {
	char dir[64];
	char exe[256];
	char build_id[129];
	struct symbolizer_config config;
	struct symbolizer *s;
	struct profile p;
};
static struct setup t;

static void shell(const char *fmt, ...) PRINTF(1, 2);
static void shell(const char *fmt, ...)
{
	char command[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	CHECK(system(command) == 0); /* NOLINT */
}

static inline int set_up(void **state)
{
	(void)state;
	t = (struct setup){ 0 };
	snprintf(t.dir, sizeof(t.dir), "/tmp/firn-test-symbolize-XXXXXX");
	CHECK(mkdtemp(t.dir));
	ssize_t n = readlink("/proc/self/exe", t.exe, sizeof(t.exe) - 1);
	CHECK(n > 0);
	struct objfile *obj;
	CHECK_OK(objfile_open(t.exe, &obj, NULL), NULL);
	snprintf(t.build_id, sizeof(t.build_id), "%s", objfile_build_id(obj));
	objfile_close(obj);
	CHECK(t.build_id[0] != '\0');
	symbolizer_config_default(&t.config);
	t.config.dir = t.dir;
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_init(&t.p, 1 << 20), NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	symbolizer_free(t.s);
	profile_deinit(&t.p);
	shell("rm -r %s", t.dir);
	return 0;
}

static inline uint32_t string(const char *s)
{
	uint32_t id;
	CHECK_OK(profile_add_string(&t.p, str_of(s), &id), NULL);
	return id;
}

static inline uint32_t add_mapping(
	const char *file, const char *build_id, uint64_t start, uint64_t limit, uint64_t offset)
{
	struct profile_mapping m = { start, limit, offset, string(file), string(build_id) };
	uint32_t id;
	CHECK_OK(profile_add_mapping(&t.p, &m, &id), NULL);
	return id;
}

static inline uint32_t add_location(uint32_t mapping, uint64_t address, enum frame_kind kind)
{
	struct profile_location loc = {
		.address = address, .mapping = mapping, .kind = (uint8_t)kind
	};
	uint32_t id;
	CHECK_OK(profile_add_location(&t.p, &loc, NULL, 0, &id), NULL);
	return id;
}

static inline struct str name_of(uint32_t location, uint32_t line)
{
	const struct profile_location *loc = &t.p.locations.v[location];
	CHECK(line < loc->line_count);
	uint32_t f = t.p.lines.v[loc->line_first + line].function;
	return profile_str(&t.p, t.p.functions.v[f].name);
}

static inline uint32_t resolve(uint32_t wait_ms)
{
	uint32_t pending = 0;
	struct err e = { 0 };
	CHECK_OK(symbolizer_resolve(t.s, &t.p, wait_ms, &pending, &e), &e);
	CHECK_OK(profile_validate(&t.p, &e), &e);
	return pending;
}

static inline uint64_t metric(const char *name)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	symbolizer_write_metrics(t.s, &b);
	buf_u8(&b, 0);
	char line[128];
	snprintf(line, sizeof(line), "\n%s ", name);
	const char *at = strstr((const char *)b.data, line);
	CHECK(at);
	return strtoull(at + strlen(line), NULL, 10);
}

static inline void check_own(uint32_t location)
{
	CHECK(t.p.locations.v[location].line_count == 2);
	CHECK_STR(name_of(location, 0), "inlined_inner");
	CHECK_STR(name_of(location, 1), "outer_function");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
