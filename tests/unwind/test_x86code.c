/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules read from code: over pieces of machine code, and over the code of installed libraries that
 * have call frame information, which says what is right.
 */
#include "test.h"

#include "unwind/unwind.h"
#include "unwind/x86.h"

#include <unistd.h>

#define ROWS_MAX 64

struct rows {
	struct machine_row v[ROWS_MAX];
	size_t count;
};

static void put(void *ctx, size_t offset, struct unwind_rule rule)
{
	struct rows *r = ctx;
	CHECK(r->count < ROWS_MAX && (r->count == 0 || offset > r->v[r->count - 1].offset));
	r->v[r->count++] = (struct machine_row){ offset, rule };
}

static struct unwind_rule rule_at(const struct rows *r, size_t offset)
{
	struct unwind_rule rule = { 0 };
	for (size_t i = 0; i < r->count && r->v[i].offset <= offset; i++)
		rule = r->v[i].rule;
	return rule;
}

/* clang-format off */
static const struct {
	const char *name;
	uint8_t code[64]; size_t len;
	struct { size_t at; int cfa; int cfa_off; int fp_off; } want[5]; /* cfa 0: no rule */
} cases[] = {
	{ "push, sub, add, pop, ret", { 0x53, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3 }, 12,
		{ { 0, 1, 8, 0 }, { 1, 1, 16, 0 }, { 5, 1, 48, 0 }, { 10, 1, 16, 0 }, { 11, 1, 8, 0 } } },
	{ "frame pointer, leave", { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0, 1, 0, 0, 0x90, 0xc9, 0xc3 }, 14,
		{ { 0, 1, 8, 0 }, { 1, 1, 16, -16 }, { 4, 2, 16, -16 }, { 11, 2, 16, -16 }, { 13, 1, 8, 0 } } },
	{ "aligned by rbp", { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x8d, 0x65, 0x00, 0x5d, 0xc3 }, 14,
		{ { 4, 2, 16, -16 }, { 8, 2, 16, -16 }, { 12, 2, 16, -16 }, { 13, 1, 8, 0 } } },
	{ "a branch over a return", { 0x53, 0x85, 0xc0, 0x74, 0x02, 0x5b, 0xc3, 0x90, 0x5b, 0xc3 }, 10,
		{ { 5, 1, 16, 0 }, { 6, 1, 8, 0 }, { 7, 1, 16, 0 }, { 8, 1, 16, 0 }, { 9, 1, 8, 0 } } },
	{ "ends with a call that does not return", { 0x53, 0xe8, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x55, 0x5d, 0xc3 }, 14,
		{ { 1, 1, 16, 0 }, { 5, 1, 16, 0 }, { 11, 1, 8, 0 }, { 12, 1, 16, -16 }, { 13, 1, 8, 0 } } },
	{ "returns with something on the stack", { 0x53, 0xc3, 0x53, 0x5b, 0xc3 }, 5,
		{ { 0, 0, 0, 0 }, { 1, 0, 0, 0 }, { 2, 1, 8, 0 }, { 3, 1, 16, 0 } } },
	{ "never returns", { 0x53, 0x90, 0xeb, 0xfd, 0x90 }, 5, { { 0, 0, 0, 0 }, { 2, 0, 0, 0 } } },
	{ "no code", { 0x06, 0x07, 0x60, 0x61 }, 4, { { 0, 0, 0, 0 } } },
	{ "sp from elsewhere", { 0x53, 0x48, 0x89, 0xfc, 0x5b, 0xc3 }, 6, { { 0, 0, 0, 0 }, { 4, 0, 0, 0 } } },
	{ "a call in its own place", { 0xe9, 0, 0, 1, 0, 0x53, 0x5b, 0xc3 }, 8,
		{ { 0, 1, 8, 0 }, { 6, 1, 16, 0 }, { 7, 1, 8, 0 } } },
	{ "a return for who has nothing on the stack, behind a jump back",
		{ 0x85, 0xff, 0x74, 0x0a, 0x53, 0x85, 0xc0, 0x75, 0x03, 0x5b, 0xc3, 0x90, 0xeb, 0xf7, 0xc3 }, 15,
		{ { 4, 1, 8, 0 }, { 5, 1, 16, 0 }, { 10, 1, 8, 0 }, { 12, 1, 16, 0 }, { 14, 1, 8, 0 } } },
	{ "a block behind a return, which only a branch back leads to",
		{ 0x53, 0xeb, 0x04, 0x5b, 0xc3, 0x31, 0xc0, 0x85, 0xc0, 0x75, 0xfa, 0xeb, 0xf6 }, 13,
		{ { 1, 1, 16, 0 }, { 4, 1, 8, 0 }, { 5, 1, 16, 0 }, { 7, 1, 16, 0 }, { 11, 1, 16, 0 } } },
	{ "a call by a pointer in its own place", { 0x53, 0x74, 0x03, 0x5b, 0xff, 0xe0, 0x5b, 0xc3 }, 8,
		{ { 1, 1, 16, 0 }, { 4, 1, 8, 0 }, { 6, 1, 16, 0 }, { 7, 1, 8, 0 } } },
	{ "vfork: the return address in rdx",
		{ 0x5a, 0xb8, 58, 0, 0, 0, 0x0f, 0x05, 0x52, 0x48, 0x89, 0xc7, 0xe9, 0, 0, 1, 0 }, 17,
		{ { 0, 1, 8, 0 }, { 1, 12, 0, 0 }, { 8, 12, 0, 0 }, { 9, 1, 8, 0 } } },
	{ "a function right behind a call that does not return",
		{ 0x53, 0x74, 0x02, 0x5b, 0xc3, 0xe8, 0, 0, 1, 0, 0x53, 0x50, 0x58, 0x5b, 0xc3 }, 15,
		{ { 5, 1, 16, 0 }, { 10, 1, 8, 0 }, { 11, 1, 16, 0 }, { 12, 1, 24, 0 }, { 14, 1, 8, 0 } } },
	{ "calls without end", { 0x53, 0xe8, 0, 0, 1, 0, 0xe8, 0, 0, 1, 0, 0xeb, 0xf4 }, 13,
		{ { 0, 1, 8, 0 }, { 1, 1, 16, 0 }, { 11, 1, 16, 0 } } },
	{ "outermost where rbp is cleared, and not in the parent: musl's clone",
		{ 0x31, 0xc0, 0xb0, 0x38, 0x49, 0x89, 0xfb, 0x48, 0x89, 0xd7, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xc8,
		0x4c, 0x8b, 0x54, 0x24, 0x08, 0x4d, 0x89, 0xd9, 0x48, 0x83, 0xe6, 0xf0, 0x48, 0x83, 0xee, 0x08,
		0x48, 0x89, 0x0e, 0x0f, 0x05, 0x85, 0xc0, 0x75, 0x0f, 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89,
		0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4, 0xc3 }, 57,
		{ { 35, 1, 8, 0 }, { 43, 7, 0, 0 }, { 46, 7, 0, 0 }, { 55, 7, 0, 0 }, { 56, 1, 8, 0 } } },
	{ "rbp is cleared, and was saved", { 0x55, 0x31, 0xed, 0x90, 0x5d, 0xc3 }, 6,
		{ { 1, 1, 16, -16 }, { 3, 1, 16, -16 }, { 5, 1, 8, 0 } } },
	{ "rbp is cleared, and was kept elsewhere",
		{ 0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed, 0x90, 0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3 }, 14,
		{ { 5, 1, 8, 0 }, { 7, 1, 8, 0 }, { 13, 1, 8, 0 } } },
	{ "zeros between functions", { 0x53, 0x5b, 0xc3, 0, 0, 0, 0x50, 0x58, 0xc3, 0, 0, 0x53, 0x5b, 0xc3 }, 14,
		{ { 1, 1, 16, 0 }, { 6, 1, 8, 0 }, { 7, 1, 16, 0 }, { 11, 1, 8, 0 }, { 12, 1, 16, 0 } } },
	{ "aligned by a copy of the CFA",
		{ 0x4c, 0x8d, 0x54, 0x24, 0x08, 0x48, 0x83, 0xe4, 0xc0, 0x41, 0xff, 0x72, 0xf8, 0x55, 0x48, 0x89,
		0xe5, 0x41, 0x52, 0x48, 0x83, 0xec, 0x68, 0x90, 0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62,
		0xf8, 0xc3 }, 34,
		{ { 5, 1, 8, 0 }, { 9, 11, 0, 0 }, { 19, 3, -8, 0 }, { 29, 11, 0, 0 }, { 33, 1, 8, 0 } } },
	{ "the same, with registers saved before it",
		{ 0x4c, 0x8d, 0x54, 0x24, 0x08, 0x48, 0x83, 0xe4, 0xc0, 0x41, 0xff, 0x72, 0xf8, 0x55, 0x48, 0x89,
		0xe5, 0x41, 0x57, 0x41, 0x52, 0x90, 0x48, 0x8d, 0x65, 0xf0, 0x41, 0x5a, 0x41, 0x5f, 0x5d, 0x49,
		0x8d, 0x62, 0xf8, 0xc3 }, 36,
		{ { 19, 11, 0, 0 }, { 21, 3, -16, 0 }, { 30, 3, -16, 0 }, { 31, 11, 0, 0 }, { 35, 1, 8, 0 } } },
	{ "vector instructions, prefixes", { 0x53, 0xc5, 0xf8, 0x77, 0xc4, 0xe2, 0x7d, 0x18, 0x05, 0, 0, 0, 0,
		0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 0x01, 0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08, 0xf3, 0x0f, 0x1e, 0xfa, 0x5b, 0xc3 }, 32,
		{ { 4, 1, 16, 0 }, { 30, 1, 16, 0 }, { 31, 1, 8, 0 } } },
};
/* clang-format on */

static void reads_functions(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct rows r = { 0 };
		CHECK_CASE(c, x86_code_rows(c->code, c->len, true, put, &r) == c->len);
		for (size_t i = 0; i < ARRAY_COUNT(c->want); i++) {
			struct unwind_rule rule = rule_at(&r, c->want[i].at);
			if (i > 0 && c->want[i].at == 0)
				break;
			if (rule.cfa != c->want[i].cfa || rule.cfa_off != c->want[i].cfa_off ||
				rule.fp_off != c->want[i].fp_off)
				fail_msg("[%s] at %zu: %u%+d fp %+d", c->name, c->want[i].at,
					rule.cfa, rule.cfa_off, rule.fp_off);
		}
	}
}

static void leaves_what_goes_on(void **state)
{
	(void)state;
	static uint8_t code[X86_FUNCTION_BYTES_MAX + 3] = { 0x53, 0x5b, 0xc3, 0x53 };
	struct rows r = { 0 };
	CHECK(x86_code_rows(code, sizeof(code) - 1, false, put, &r) == 3);
	CHECK(r.count == 3);
	r.count = 0; /* one that is too long */
	memset(code + 4, 0x90, sizeof(code) - 4);
	CHECK(x86_code_rows(code + 3, sizeof(code) - 3, true, put, &r) == sizeof(code) - 3);
	CHECK(r.count == 1 && r.v[0].rule.cfa == UNWIND_CFA_NONE);
}

static void any_bytes(void **state)
{
	(void)state;
	static uint8_t code[4096];
	uint32_t seed = 1;
	for (int round = 0; round < 300; round++) {
		size_t len = (size_t)round * 13 % sizeof(code) + 1;
		uint8_t *exact = malloc(len); /* so that a sanitizer sees each byte too far */
		CHECK(exact != NULL);
		for (size_t i = 0; i < len; i++) {
			seed = seed * 1664525 + 1013904223;
			exact[i] = (uint8_t)(seed >> 24);
			if (round % 3 == 0 && i % 5 == 0)
				exact[i] = "\x53\x5b\xc3\x55\x5d\x74\xeb"[seed >> 16 & 7];
		}
		for (int last = 0; last < 2; last++) {
			struct rows many = { 0 };
			size_t at = 0;
			while (at < len) {
				many.count = 0;
				size_t n = x86_code_rows(exact + at, MIN(len - at, (size_t)40),
					last || len - at <= 40, put, &many);
				CHECK(n > 0 && n <= len - at);
				at += n;
			}
		}
		free(exact);
	}
}

/* ---- against call frame information ---- */

struct judge {
	const struct unwind_table *table;
	uint64_t offset; /* of the code in the file */
	size_t from;
	struct unwind_rule rule;
	uint64_t read, known, right, wrong;
};

static void judge_to(struct judge *j, size_t to)
{
	for (size_t i = j->from; i < to; i += 3) {
		struct unwind_rule want = unwind_table_find(j->table, j->offset + i);
		if (want.cfa != UNWIND_CFA_SP && want.cfa != UNWIND_CFA_FP)
			continue;
		j->read++;
		j->known += j->rule.cfa != UNWIND_CFA_NONE;
		if (j->rule.cfa == want.cfa)
			j->right += j->rule.cfa_off == want.cfa_off;
		/* By the other register: as far as this can tell it is neither. */
		j->wrong += j->rule.cfa == want.cfa && j->rule.cfa_off != want.cfa_off;
	}
	j->from = to;
}

static void judge_row(void *ctx, size_t offset, struct unwind_rule rule)
{
	struct judge *j = ctx;
	judge_to(j, offset);
	j->rule = rule;
}

static void agrees_with_call_frame_information(void **state)
{
	(void)state;
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/bash",
		"/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/bin/python3.11",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3" };
	size_t done = 0;
	for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
		struct err e = { 0 };
		struct objfile *obj = NULL;
		struct unwind_table *t = NULL;
		if (objfile_open(paths[i], &obj, &e) != OK)
			continue;
		CHECK_OK(unwind_table_build(obj, &t, &e), &e);
		const struct objfile_section *text = objfile_section(obj, ".text");
		CHECK(text != NULL);
		uint8_t *code = malloc(text->size);
		CHECK(code != NULL);
		CHECK_OK(objfile_read(obj, text->offset, code, text->size, &e), &e);
		struct judge j = { .table = t, .offset = text->offset };
		CHECK(x86_code_rows(code, text->size, true, judge_row, &j) == text->size);
		judge_to(&j, text->size);
		print_message("%s: %.2f %% of the code has a rule, %.3f %% of these are wrong\n",
			paths[i], 100.0 * (double)j.known / (double)j.read,
			100.0 * (double)j.wrong / (double)j.known);
		CHECK((double)j.known >= 0.6 * (double)j.read);
		CHECK((double)j.wrong <= 0.005 * (double)j.known);
		free(code);
		unwind_table_free(t);
		objfile_close(obj);
		done++;
	}
	if (done == 0)
		SKIP("none of the libraries is here");
}

TEST_MAIN(cmocka_unit_test(reads_functions), cmocka_unit_test(leaves_what_goes_on),
	cmocka_unit_test(any_bytes), cmocka_unit_test(agrees_with_call_frame_information))
