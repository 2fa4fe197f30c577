/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java virtual machines of this machine, and those below $FIRN_TEST_JVMS: each is found in its
 * library in the version that its file `release` says, with offsets that were read by other means
 * (vmStructs of a running process) where the version is in the table here.
 */
#include "runtimes/runtimes.h"
#include "test.h"

#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>

static const struct known {
	unsigned version;
	uint16_t name, frame_words, code, method, compile_id, original_pc, deopt, const_name;
	uint16_t const_size, heap_segments, heap_shift, block_bytes;
} known[] = {
	{ 11, 96, 28, 32, 112, 324, 320, 128, 42, 56, 136, 256, 16 },
	{ 17, 96, 28, 32, 112, 304, 300, 128, 34, 48, 136, 256, 16 },
	{ 25, 8, 44, 36, 80, 212, 208, 176, 36, 56, 128, 248, 8 },
	{ 26, 8, 44, 36, 80, 212, 208, 176, 36, 56, 128, 248, 8 },
};

/* JAVA_VERSION="17.0.15" or "1.8.0_504" in the file `release` some folders above; 0: none. */
static unsigned version_of(const char *library)
{
	char path[512], line[256];
	unsigned version = 0, old = 0;
	for (int up = 2; up <= 5 && !version; up++) {
		(void)snprintf(path, sizeof(path), "%s", library);
		char *at = path;
		for (int i = 0; i <= up; i++)
			at = dirname(at);
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/release");
		FILE *f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "JAVA_VERSION=\"1.%u", &old) == 1)
				version = old;
			else
				(void)sscanf(line, "JAVA_VERSION=\"%u", &version);
		}
		if (f)
			(void)fclose(f);
	}
	return version;
}

static void check_known(const struct runtime_record *r)
{
	const struct hotspot_layout *l = &r->layout.hotspot;
	for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
		const struct known *k = &known[i];
		if (k->version != r->version >> 8)
			continue;
		CHECK(l->blob_name == k->name && l->blob_frame_words == k->frame_words);
		CHECK(l->blob_code == k->code && l->nmethod_method == k->method);
		CHECK(l->nmethod_compile_id == k->compile_id);
		CHECK(l->nmethod_original_pc == k->original_pc && l->nmethod_deopt == k->deopt);
		CHECK(l->const_name == k->const_name && l->const_size == k->const_size);
		CHECK(l->heap_segments == k->heap_segments);
		CHECK(l->heap_shift == k->heap_shift && l->block_bytes == k->block_bytes);
	}
}

static void check_library(const char *path)
{
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	struct objfile *obj = NULL;
	unsigned version = version_of(path);
	CHECK_OK(objfile_open(path, &obj, &e), &e);
	enum status s = runtimes_find(obj, &r, &e);
	CHECK_OK(s, &e);
	print_message("%s: %u, flags %x\n", path, r.version >> 8, r.layout.hotspot.flags);
	CHECK(r.kind == RUNTIME_HOTSPOT && r.text_bytes > 0);
	CHECK(version == 0 || r.version == version << 8);
	check_known(&r);
	objfile_close(obj);
}

static void agrees_with_those_of_this_machine(void **state)
{
	(void)state;
	glob_t g = { 0 };
	char pattern[512];
	const char *more = getenv("FIRN_TEST_JVMS");
	(void)glob("/usr/lib/jvm/*/lib/server/libjvm.so", 0, NULL, &g);
	(void)glob("/usr/lib/jvm/*/jre/lib/amd64/server/libjvm.so", GLOB_APPEND, NULL, &g);
	(void)snprintf(pattern, sizeof(pattern), "%s/*/lib/server/libjvm.so", more ? more : "");
	if (more)
		(void)glob(pattern, GLOB_APPEND, NULL, &g);
	(void)snprintf(
		pattern, sizeof(pattern), "%s/*/jre/lib/amd64/server/libjvm.so", more ? more : "");
	if (more)
		(void)glob(pattern, GLOB_APPEND, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++)
		check_library(g.gl_pathv[i]);
	size_t found = g.gl_pathc;
	globfree(&g);
	if (!found)
		SKIP("no Java virtual machine here");
}

TEST_MAIN(cmocka_unit_test(agrees_with_those_of_this_machine))
