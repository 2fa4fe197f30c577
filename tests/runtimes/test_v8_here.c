/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Node.js programs of this machine, and those that $FIRN_TEST_NODES names (PATH:PATH): what is
 * found in each of a version that is in the table here is what a debugger has shown of a running
 * one.
 */
#include "runtimes/runtimes.h"
#include "test.h"

#include <stdlib.h>

static const struct known {
	uint16_t version;
	int16_t frame_bytecodes;
	uint16_t shared, name, script, scope_locals, scope_variables, scope_positions;
	uint16_t bytecodes_data, bytecodes_lines, type_function, type_shared;
} known[] = {
	{ 8 << 8 | 4, -24, 24, 16, 32, 32, 40, 0, 54, 32, 1092, 173 },
	{ 9 << 8 | 4, -32, 24, 16, 32, 24, 32, 0, 54, 32, 1059, 179 },
	{ 10 << 8 | 2, -32, 24, 16, 32, 24, 32, 0, 56, 32, 2065, 257 },
	{ 11 << 8 | 3, -32, 24, 16, 32, 24, 32, 0, 54, 32, 2066, 262 },
	{ 12 << 8 | 4, -32, 32, 16, 32, 24, 32, 0, 64, 24, 2066, 274 },
	{ 13 << 8 | 6, -32, 32, 24, 40, 24, 48, 32, 64, 24, 2065, 282 },
	{ 14 << 8 | 1, -32, 32, 24, 40, 24, 48, 32, 64, 24, 2065, 286 },
	{ 14 << 8 | 6, -32, 32, 24, 40, 24, 48, 32, 64, 24, 2066, 288 },
};

static void check_known(const struct runtime_record *r)
{
	const struct v8_layout *l = &r->layout.v8;
	for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
		const struct known *k = &known[i];
		if (k->version != r->version)
			continue;
		CHECK(l->frame_bytecodes == k->frame_bytecodes && l->function_shared == k->shared);
		CHECK(l->shared_name == k->name && l->shared_script == k->script);
		CHECK(l->scope_locals == k->scope_locals &&
			l->scope_variables == k->scope_variables &&
			l->scope_positions == k->scope_positions);
		CHECK(l->bytecodes_data == k->bytecodes_data &&
			l->bytecodes_lines == k->bytecodes_lines);
		CHECK(l->type_function == k->type_function && l->type_shared == k->type_shared);
		CHECK(l->script_name == 16 && l->script_source == 8 && l->script_id == 64);
	}
}

static bool check_node(const char *path)
{
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	struct objfile *obj = NULL;
	if (objfile_open(path, &obj, &e) != OK)
		return false;
	enum status s = runtimes_find(obj, &r, &e);
	objfile_close(obj);
	if (s == E_NOTFOUND) /* a small program, whose library is V8 */
		return false;
	CHECK_OK(s, &e);
	const struct v8_layout *l = &r.layout.v8;
	print_message("%s: V8 %u.%u\n", path, r.version >> 8, r.version & 255);
	CHECK(r.kind == RUNTIME_V8);
	CHECK(l->builtins[0] < l->entry[0] && l->entry[0] < l->entry[1] &&
		l->entry[1] < l->handlers[0] && l->handlers[0] < l->handlers[1] &&
		l->handlers[1] == l->builtins[1]);
	CHECK(l->builtins[0] >= r.text_from && l->builtins[1] - r.text_from <= r.text_bytes);
	check_known(&r);
	return true;
}

static void agrees_with_those_of_this_machine(void **state)
{
	(void)state;
	size_t found = check_node("/usr/bin/node");
	const char *more = getenv("FIRN_TEST_NODES");
	struct str left = str_of(more ? more : ""), one;
	while (left.len && str_split(&left, ':', &one)) {
		char path[512];
		(void)snprintf(path, sizeof(path), "%.*s", STR_ARG(one));
		CHECK(check_node(path));
		found++;
	}
	if (!found)
		SKIP("no Node.js here");
}

TEST_MAIN(cmocka_unit_test(agrees_with_those_of_this_machine))
