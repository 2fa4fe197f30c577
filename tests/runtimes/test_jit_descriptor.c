/* SPDX-License-Identifier: Apache-2.0 */
/* This program has one, and does not export it. */
#include "runtimes/runtimes.h"

#include "jit_registered.h"
#include "test.h"

#include <link.h>

struct registered_descriptor __jit_debug_descriptor = { .version = 1 };

static int bias_of(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr; /* the program is the first */
	return 1;
}

static void finds_it_among_all_symbols(void **state)
{
	(void)state;
	struct err e;
	struct objfile *obj;
	struct vaddr at = { 0 };
	uint64_t bias = 0;
	CHECK_OK(objfile_open("/proc/self/exe", &obj, &e), &e);
	CHECK(runtimes_jit_descriptor(obj, &at));
	dl_iterate_phdr(bias_of, &bias);
	CHECK(at.v + bias == (uint64_t)(uintptr_t)&__jit_debug_descriptor);
	objfile_close(obj);
}

static void most_have_none(void **state)
{
	(void)state;
	struct err e;
	struct objfile *obj;
	struct vaddr at = { 7 };
	CHECK_OK(objfile_open("/bin/sh", &obj, &e), &e);
	CHECK(!runtimes_jit_descriptor(obj, &at));
	CHECK(at.v == 7);
	objfile_close(obj);
}

TEST_MAIN(cmocka_unit_test(finds_it_among_all_symbols), cmocka_unit_test(most_have_none))
