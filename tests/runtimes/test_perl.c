/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like Perl's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

#define LOOP                                                    \
	{                                                       \
		"Perl_runops_standard", MADE_TEXT + 0x100, 0x40 \
	}
#define ROOT                                      \
	{                                         \
		"PL_curinterp", MADE_DATA + 64, 8 \
	}
#define REVISION                            \
	{                                   \
		"PL_revision", MADE_DATA, 1 \
	}
#define VERSION                                \
	{                                      \
		"PL_version", MADE_DATA + 1, 1 \
	}

static void knows_its_version_by_its_variables(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint8_t version;
		uint16_t stack, cop, has_body_aux, type, context, cv;
	} cases[] = {
		{ "5.28", 28, 240, 224, 0, 40, 96, 64 },
		{ "5.30", 30, 240, 224, 0, 40, 96, 64 },
		{ "5.32", 32, 240, 224, 0, 44, 104, 72 },
		{ "5.34", 34, 224, 208, 0, 44, 104, 72 },
		{ "5.42", 42, 224, 208, 1, 44, 104, 72 },
		{ "5.44", 44, 224, 208, 1, 44, 104, 72 },
	};
	FOR_EACH_CASE (c, cases) {
		const uint8_t data[1024] = { 5, c->version };
		const struct made_elf m = { .data = data,
			.symbols = { LOOP, ROOT, REVISION, VERSION } };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		CHECK_OK(made_elf_find(&m, &r, &e), &e);
		const struct perl_layout *l = &r.layout.perl;
		CHECK_CASE(c, r.kind == RUNTIME_PERL && r.version == (5 << 8 | c->version));
		CHECK_CASE(c, l->interp_stack == c->stack && l->interp_cop == c->cop);
		CHECK_CASE(c, l->has_body_aux == c->has_body_aux && l->thread_at == 0);
		CHECK_CASE(c, l->stack_type == c->type && l->context_bytes == c->context);
		CHECK_CASE(c, l->context_cv == c->cv);
		CHECK_CASE(c, l->loop[0] == r.text_from + 0x100 && l->loop[1] == l->loop[0] + 0x40);
		CHECK_CASE(c, r.delta == r.text_from + (MADE_DATA + 64 - MADE_TEXT));
	}
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint8_t revision, version;
		struct made_symbol symbols[MADE_SYMBOLS_MAX];
		enum status want;
		const char *text;
	} cases[] = {
		{ "no Perl", 5, 36, { ROOT, REVISION, VERSION }, E_NOTFOUND, "no runtime" },
		{ "no version", 5, 36, { LOOP, ROOT, REVISION }, E_NOTFOUND, "no runtime" },
		{ "5.26", 5, 26, { LOOP, ROOT, REVISION, VERSION }, E_UNSUPPORTED, "5.26 is not" },
		{ "5.37", 5, 37, { LOOP, ROOT, REVISION, VERSION }, E_UNSUPPORTED, "5.37 is not" },
		{ "7.36", 7, 36, { LOOP, ROOT, REVISION, VERSION }, E_UNSUPPORTED, "7.36 is not" },
		{ "no threads", 5, 36,
			{ LOOP, REVISION, VERSION, { "PL_curstackinfo", MADE_DATA + 64, 8 } },
			E_UNSUPPORTED, "without threads" },
		{ "a version that is not in the file", 5, 36,
			{ LOOP, ROOT, REVISION, { "PL_version", 0x900000, 1 } }, E_INVALID,
			"900000" },
	};
	FOR_EACH_CASE (c, cases) {
		const uint8_t data[1024] = { c->revision, c->version };
		struct made_elf m = { .data = data };
		memcpy(m.symbols, c->symbols, sizeof(m.symbols));
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		enum status s = made_elf_find(&m, &r, &e);
		if (s != c->want || !strstr(e.text, c->text))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s == c->want && strstr(e.text, c->text) && r.version == 77);
	}
}

TEST_MAIN(cmocka_unit_test(knows_its_version_by_its_variables),
	cmocka_unit_test(refuses_what_it_does_not_know))
