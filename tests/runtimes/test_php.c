/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like PHP's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

static enum status find(const struct made_elf *m, struct runtime_record *out, struct err *e)
{
	return made_elf_find(m, out, e);
}

#define LOOP                                           \
	{                                              \
		"execute_ex", MADE_TEXT + 0x100, 0x200 \
	}
#define GLOBALS                                         \
	{                                               \
		"executor_globals", MADE_DATA + 64, 700 \
	}
#define RESUME                                                  \
	{                                                       \
		"zend_generator_resume", MADE_TEXT + 0x80, 0x20 \
	}

#define OFFSET                                          \
	{                                               \
		"executor_globals_offset", MADE_DATA, 8 \
	}
#define CACHE                                                         \
	{                                                             \
		"tsrm_get_ls_cache_tcb_offset", MADE_TEXT + 0x40, 0x8 \
	}

static void knows_its_version_by_its_header(void **state)
{
	(void)state;
	static const struct {
		const char *name, *constants;
		uint16_t version, file;
	} cases[] = {
		{ "7.4", "x X-Powered-By: PHP/7.4.33", 0x704, 136 },
		{ "8.1", "X-Powered-By: PHP/8.1.2-1ubuntu2", 0x801, 144 },
		{ "8.4", "X-Powered-By: PHP/8.4.24", 0x804, 168 },
		{ "8.5", "X-Powered-By: PHP/8.5.2", 0x805, 168 },
		{ "8.6", "X-Powered-By: PHP/8.6.0RC3", 0x806, 168 },
	};
	FOR_EACH_CASE (c, cases) {
		const struct made_elf m = { .constants = c->constants,
			.symbols = { LOOP, GLOBALS, RESUME } };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		CHECK_OK(find(&m, &r, &e), &e);
		const struct php_layout *l = &r.layout.php;
		CHECK_CASE(c, r.kind == RUNTIME_PHP && r.version == c->version);
		CHECK_CASE(c, l->function_file == c->file);
		CHECK_CASE(
			c, l->loop[0] == r.text_from + 0x100 && l->loop[1] == l->loop[0] + 0x200);
		CHECK_CASE(c, l->loop[2] == 0 && l->resume[0] == r.text_from + 0x80);
		CHECK_CASE(c, r.delta == r.text_from + (MADE_DATA + 64 - MADE_TEXT));
	}
}

/* By either instruction, behind a mark for indirect calls or not. */
static void finds_the_variables_of_threads(void **state)
{
	(void)state;
	static const struct {
		const char *name, *code;
		size_t len;
		uint16_t root;
		int32_t at;
	} cases[] = {
		{ "a program's", "\x48\xc7\xc0\xf8\xff\xff\xff\xc3", 8, PHP_ROOT_FIXED, -8 },
		{ "marked", "\xf3\x0f\x1e\xfa\x48\xc7\xc0\xe0\xff\xff\xff\xc3", 12, PHP_ROOT_FIXED,
			-32 },
		{ "by a word", "\x48\x8b\x05\x00\x01\x00\x00\xc3", 8, PHP_ROOT_OFFSET,
			(int32_t)(MADE_TEXT + 0x40 + 7 + 0x100 - MADE_DATA) },
	};
	FOR_EACH_CASE (c, cases) {
		static uint8_t code[MADE_TEXT_BYTES];
		memset(code, 0, sizeof(code));
		memcpy(code + 0x40, c->code, c->len);
		const struct made_elf m = { .constants = "X-Powered-By: PHP/8.2.1",
			.code = code,
			.symbols = { LOOP, OFFSET, CACHE } };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		CHECK_OK(find(&m, &r, &e), &e);
		CHECK_CASE(c, r.layout.php.root == c->root && r.layout.php.thread_at == c->at);
		CHECK_CASE(c, r.delta == r.text_from + (MADE_DATA - MADE_TEXT));
	}
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct made_elf made;
		enum status want;
		const char *text;
	} cases[] = {
		{ "no PHP", { .symbols = { GLOBALS } }, E_NOTFOUND, "no runtime" },
		{ "an extension", { .symbols = { LOOP } }, E_NOTFOUND, "no runtime" },
		{ "no version", { .symbols = { LOOP, GLOBALS } }, E_UNSUPPORTED, "not say" },
		{ "no number", { .constants = "X-Powered-By: PHP/x", .symbols = { LOOP, GLOBALS } },
			E_UNSUPPORTED, "not say" },
		{ "9.0", { .constants = "X-Powered-By: PHP/9.0.1", .symbols = { LOOP, GLOBALS } },
			E_UNSUPPORTED, "9.0 is not known" },
		{ "threads, but not where their variables are",
			{ .constants = "X-Powered-By: PHP/8.2.1",
				.symbols = { LOOP, { "executor_globals_offset", MADE_DATA, 8 } } },
			E_UNSUPPORTED, "not say where" },
		{ "threads, their variables anyhow",
			{ .constants = "X-Powered-By: PHP/8.2.1",
				.symbols = { LOOP, OFFSET, CACHE } },
			E_UNSUPPORTED, "unknown way" },
		{ "a loop that is not in the code",
			{ .constants = "X-Powered-By: PHP/8.2.1",
				.symbols = { { "execute_ex", MADE_DATA, 8 }, GLOBALS } },
			E_INVALID, "no code" },
	};
	FOR_EACH_CASE (c, cases) {
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		enum status s = find(&c->made, &r, &e);
		if (s != c->want || !strstr(e.text, c->text))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s == c->want && strstr(e.text, c->text) && r.version == 77);
	}
}

TEST_MAIN(cmocka_unit_test(knows_its_version_by_its_header),
	cmocka_unit_test(finds_the_variables_of_threads),
	cmocka_unit_test(refuses_what_it_does_not_know))
