/* SPDX-License-Identifier: Apache-2.0 */
/* known: tables made by the builder from known pieces, in memory. */
#pragma once

#include "test.h"

#include "base/hash.h"
#include "debuginfo/symtab/readers.h"
#include "debuginfo/symtab/table.h"

#include <sys/mman.h>
#include <unistd.h>

static struct debuginfo_builder b;
static uint64_t bytes[1 << 17]; /* aligned */
static size_t len;

static inline uint32_t node(const char *name, const char *file, uint32_t call_line, uint32_t parent)
{
	struct symtab_function f = { .line = 7 };
	struct symtab_node n = { .call_line = call_line, .parent = parent };
	uint32_t id;
	CHECK(debuginfo_builder_text(&b, name, &f.name) == OK);
	CHECK(debuginfo_builder_text(&b, file, &n.file) == OK);
	CHECK(debuginfo_builder_function(&b, f, &n.function) == OK);
	CHECK(debuginfo_builder_node(&b, n, &id) == OK);
	return id;
}

static inline void add(uint64_t start, uint64_t end, uint32_t id, uint32_t line)
{
	CHECK(debuginfo_builder_add(&b, (struct debuginfo_piece){ start, end, id, line }) == OK);
}

static inline int begin(void **state)
{
	(void)state;
	CHECK(debuginfo_builder_init(&b, 1 << 20) == OK);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	debuginfo_builder_deinit(&b);
	return 0;
}

static inline struct debuginfo_table *finish(void)
{
	struct err e = { 0 };
	CHECK(debuginfo_symbols_settle(&b) == OK);
	CHECK(debuginfo_builder_settle(&b) == OK);
	int fd = memfd_create("table", MFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_OK(debuginfo_builder_write(&b, fd, sizeof(bytes), &e), &e);
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	close(fd);
	CHECK(n > 0);
	len = (size_t)n;
	struct debuginfo_table *t;
	CHECK_OK(debuginfo_table_open_bytes(bytes, len, &t, &e), &e);
	return t;
}

static inline void check_frame(const struct debuginfo_table *t, uint64_t at, uint32_t depth,
	const char *name, const char *file, uint32_t line)
{
	struct debuginfo_frame f[8];
	uint32_t n = debuginfo_table_find(t, at, f, 8);
	CHECK(depth < n);
	CHECK_STR(f[depth].name, name);
	CHECK_STR(f[depth].file, file);
	CHECK(f[depth].line == line);
	CHECK(f[depth].inlined == (depth + 1 < n));
}

#define KNOWN(f) cmocka_unit_test_setup_teardown(f, begin, end)
