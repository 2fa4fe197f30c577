/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as compilers make them, in each dialect of thread-local storage, and torn ones. */
#include "runtimes/runtimes.h"
#include "test.h"

#include <stdio.h>

static const struct {
	const char *name, *path;
	enum thread_context_form form;
} cases[] = {
	{ "by a call", CONTEXT_CALL, THREAD_CONTEXT_PAIR },
#ifdef CONTEXT_DESCRIPTOR
	{ "by a descriptor", CONTEXT_DESCRIPTOR, THREAD_CONTEXT_DESCRIPTOR },
#endif
	{ "by a distance", CONTEXT_DISTANCE, THREAD_CONTEXT_OFFSET },
};

static bool is_in_data(const struct objfile *obj, uint64_t at)
{
	uint32_t count;
	const struct objfile_segment *s = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (at >= s[i].vaddr && at + 8 <= s[i].vaddr + s[i].mem_size)
			return at % 8 == 0 && !(s[i].flags & 1);
	}
	return false;
}

static void finds_each_form(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct objfile *obj;
		struct runtimes_thread_context found = { 0 };
		struct err e;
		CHECK_OK(objfile_open(c->path, &obj, &e), &e);
		CHECK_CASE(c, runtimes_thread_context(obj, &found) && found.form == c->form);
		CHECK_CASE(c, is_in_data(obj, found.at));
		objfile_close(obj);
	}
}

/* Cut, and with any byte changed: it is found or not, and nothing is read behind its end. */
static void survives_torn_files(void **state)
{
	(void)state;
	static uint8_t bytes[1 << 16], copy[1 << 16];
	FILE *f = fopen(CONTEXT_CALL, "rb");
	CHECK(f);
	size_t len = fread(bytes, 1, sizeof(bytes), f), found = 0, opened = 0;
	fclose(f);
	for (size_t i = 0; i < len; i += i < 4096 ? 1 : 61) {
		struct objfile *obj;
		struct runtimes_thread_context x;
		memcpy(copy, bytes, len);
		copy[i] ^= 0xff;
		if (objfile_open_bytes(copy, i % 2 ? len : i, "torn", &obj, NULL) != OK)
			continue;
		opened++;
		found += runtimes_thread_context(obj, &x);
		objfile_close(obj);
	}
	CHECK(opened > found && found > 0);
}

TEST_MAIN(cmocka_unit_test(finds_each_form), cmocka_unit_test(survives_torn_files))
