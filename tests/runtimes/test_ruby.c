/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like Ruby's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

#define ERRINFO (MADE_TEXT + 0x100)
#define EVAL (MADE_TEXT + 0x200)
#define NAMES (MADE_TEXT + 0x300)
#define LOOP (MADE_TEXT + 0x400)
#define NAMES_BODY (MADE_TEXT + 0x500)
#define PAIR (MADE_DATA + 64)
#define LIST (MADE_DATA + 256)
#define LAST_OPERATOR 169

/* clang-format off */
static const struct made_symbol version_symbol = { "ruby_version", MADE_DATA, 6 };
static const struct made_symbol errinfo_symbol = { "rb_errinfo", ERRINFO, 0x20 };
static const struct made_symbol eval_symbol = { "rb_iseq_eval", EVAL, 0x40 };
static const struct made_symbol names_symbol = { "rb_id2str", NAMES, 0x20 };
static const struct made_symbol loop_symbol = { "rb_vm_exec", LOOP, 0x80 };
static const struct made_symbol pointer_symbol = {
	"ruby_current_execution_context_ptr", MADE_DATA + 32, 8 };
/* clang-format on */

/* Puts code at an address, whose last four bytes say how far `to` is from its end; to 0: as it is.
 */
static uint64_t put(uint8_t *code, uint64_t at, const char *bytes, size_t len, uint64_t to)
{
	int32_t distance = (int32_t)(to - (at + len));
	memcpy(code + (at - MADE_TEXT), bytes, len);
	if (to)
		memcpy(code + (at - MADE_TEXT) + len - 4, &distance, 4);
	return at + len;
}

/* As GCC writes it for a library; `take`: how the variable is read. */
static void put_module(uint8_t *code, const char *take, size_t take_bytes)
{
	uint64_t at = put(code, ERRINFO, "\x48\x83\xec\x08\x66\x48\x8d\x3d....", 12, PAIR);
	at = put(code, at, "\x66\x66\x48\xe8....", 8, MADE_TEXT);
	(void)put(code, at, take, take_bytes, 0);
}

static void put_others(uint8_t *code)
{
	(void)put(code, EVAL, "\x55\x48\x89\xfd\xe9....", 9, LOOP);
	uint64_t at = put(code, NAMES, "\x48\x81\xff\xa9\x00\x00\x00", 7, 0);
	(void)put(code, at, "\xe9....", 5, NAMES_BODY);
	(void)put(code, NAMES_BODY, "\x53\x48\x8b\x3d....", 8, LIST);
}

static enum status find(const uint8_t *code, const char *version,
	const struct made_symbol *const *symbols, struct runtime_record *out, struct err *e)
{
	uint8_t data[1024] = { 0 };
	memcpy(data, version, strlen(version));
	struct made_elf m = { .data = data, .code = code };
	for (size_t i = 0; symbols[i]; i++)
		m.symbols[i] = *symbols[i];
	return made_elf_find(&m, out, e);
}

static const struct made_symbol *const all[] = { &version_symbol, &errinfo_symbol, &eval_symbol,
	&names_symbol, &loop_symbol, &pointer_symbol, NULL };

static void knows_its_version(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned minor;
		uint16_t root, frame_bytes, lines, line_bytes, text, class_kind;
	} cases[] = {
		{ "2.7.4", 0x207, RUBY_ROOT_POINTER, 56, 120, 8, 16, RUBY_CLASS_TABLE },
		{ "3.0.2", 0x300, RUBY_ROOT_MODULE, 56, 120, 8, 16, RUBY_CLASS_TABLE },
		{ "3.1.7", 0x301, RUBY_ROOT_MODULE, 64, 120, 12, 16, RUBY_CLASS_TABLE },
		{ "3.2.9", 0x302, RUBY_ROOT_MODULE, 64, 112, 12, 24, RUBY_CLASS_NONE },
		{ "3.3.8", 0x303, RUBY_ROOT_MODULE, 56, 112, 12, 24, RUBY_CLASS_FIELD },
		{ "3.4.1", 0x304, RUBY_ROOT_MODULE, 56, 112, 12, 24, RUBY_CLASS_FIELD },
	};
	FOR_EACH_CASE (c, cases) {
		uint8_t code[MADE_TEXT_BYTES] = { 0 };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		put_module(code, "\x48\x8b\x00", 3);
		put_others(code);
		CHECK_OK(find(code, c->name, all, &r, &e), &e);
		const struct ruby_layout *l = &r.layout.ruby;
		uint64_t root = c->root == RUBY_ROOT_POINTER ? MADE_DATA + 32 : PAIR;
		CHECK_CASE(c, r.kind == RUNTIME_RUBY && r.version == c->minor);
		CHECK_CASE(c, l->root == c->root && l->root_at == 0 && !l->is_musl);
		CHECK_CASE(c, r.delta == r.text_from + (root - MADE_TEXT));
		CHECK_CASE(c, l->loop[0] == r.text_from + (LOOP - MADE_TEXT));
		CHECK_CASE(c, l->loop[1] == l->loop[0] + 0x80);
		CHECK_CASE(c, l->frame_bytes == c->frame_bytes && l->body_lines == c->lines);
		CHECK_CASE(c, l->line_bytes == c->line_bytes && l->text_data == c->text);
		CHECK_CASE(c, l->class_kind == c->class_kind);
		CHECK_CASE(c, l->last_operator == LAST_OPERATOR);
		CHECK_CASE(c, l->symbols_at == (int32_t)(LIST - root));
	}
}

/* How the variable of threads is read, by the kind of file and the compiler. */
static void finds_the_variable_of_threads(void **state)
{
	(void)state;
	static const struct {
		const char *name, *code;
		size_t len;
		uint16_t root;
		int32_t at;
	} cases[] = {
		{ "a library's", "\x48\x8b\x00", 3, RUBY_ROOT_MODULE, 0 },
		{ "local in its module", "\x48\x8b\x40\x10", 4, RUBY_ROOT_MODULE, 16 },
		{ "further", "\x48\x8b\x80\x00\x01\x00\x00", 7, RUBY_ROOT_MODULE, 256 },
		{ "a program's", "\x64\x48\x8b\x04\x25\xf8\xff\xff\xff", 9, RUBY_ROOT_FIXED, -8 },
		{ "by a word", "\x48\x8b\x05....\x64\x48\x8b\x00", 11, RUBY_ROOT_OFFSET, 0 },
	};
	FOR_EACH_CASE (c, cases) {
		uint8_t code[MADE_TEXT_BYTES] = { 0 };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		uint64_t root = c->root == RUBY_ROOT_FIXED ? ERRINFO : PAIR;
		if (c->root == RUBY_ROOT_MODULE)
			put_module(code, c->code, c->len);
		else
			(void)put(code, ERRINFO, c->code, c->len, 0);
		if (c->root == RUBY_ROOT_OFFSET)
			(void)put(code, ERRINFO, c->code, 7, PAIR);
		put_others(code);
		CHECK_OK(find(code, "3.3.8", all, &r, &e), &e);
		CHECK_CASE(c, r.layout.ruby.root == c->root && r.layout.ruby.root_at == c->at);
		CHECK_CASE(c, r.delta == r.text_from + (root - MADE_TEXT));
	}
}

/* The loop of a stripped build is where rb_iseq_eval jumps to, and ends where the index of call
 * frame information says. */
static void finds_the_loop_of_a_stripped_build(void **state)
{
	(void)state;
	static const struct made_symbol *const stripped[] = { &version_symbol, &errinfo_symbol,
		&eval_symbol, NULL };
	const uint64_t index_at = MADE_CONSTANTS + 0x1000;
	const int32_t functions[] = { 3, (int32_t)(LOOP - index_at), 0,
		(int32_t)(NAMES_BODY - index_at), 0, (int32_t)(NAMES_BODY + 4096 - index_at), 0 };
	uint8_t code[MADE_TEXT_BYTES] = { 0 }, data[1024] = "3.3.8",
		index[36] = { 1, 0x1b, 3, 0x3b };
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	memcpy(index + 8, functions, sizeof(functions));
	put_module(code, "\x48\x8b\x00", 3);
	put_others(code);
	(void)put(code, LOOP + 8, "\xe8....", 5, LOOP);
	(void)put(code, LOOP + 16, "\xe8....", 5, NAMES_BODY);
	struct made_elf m = {
		.data = data, .code = code, .index = index, .index_bytes = sizeof(index)
	};
	for (size_t i = 0; stripped[i]; i++)
		m.symbols[i] = *stripped[i];
	CHECK_OK(made_elf_find(&m, &r, &e), &e);
	const struct ruby_layout *l = &r.layout.ruby;
	CHECK(l->loop[0] == r.text_from + (LOOP - MADE_TEXT));
	CHECK(l->loop[1] == r.text_from + (NAMES_BODY - MADE_TEXT));
	CHECK(l->core[0] == l->loop[1] && l->core[1] == l->core[0] + 4096); /* it calls it */
	CHECK(l->symbols_at == 0); /* names of functions in C are not found */
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct made_symbol far = { "ruby_version", 0x900000, 6 };
	static const struct {
		const char *name, *version;
		const struct made_symbol *symbols[MADE_SYMBOLS_MAX];
		bool has_code;
		enum status want;
		const char *text;
	} cases[] = {
		{ "no Ruby", "3.1.7", { &version_symbol, &loop_symbol }, true, E_NOTFOUND,
			"no runtime" },
		{ "2.6", "2.6.1", { &version_symbol, &errinfo_symbol }, true, E_UNSUPPORTED,
			"Ruby 2.6 is not known" },
		{ "no version", "x", { &version_symbol, &errinfo_symbol }, true, E_UNSUPPORTED,
			"does not say its version" },
		{ "its version is not in the file", "", { &far, &errinfo_symbol }, true, E_INVALID,
			"900000" },
		{ "no loop", "3.1.7", { &version_symbol, &errinfo_symbol }, true, E_UNSUPPORTED,
			"vm_exec" },
		{ "no code that reads the variable", "3.1.7",
			{ &version_symbol, &errinfo_symbol, &loop_symbol }, false, E_UNSUPPORTED,
			"ruby_current_ec" },
		{ "2.7 without the variable", "2.7.1",
			{ &version_symbol, &errinfo_symbol, &loop_symbol }, true, E_UNSUPPORTED,
			"ruby_current_ec" },
	};
	FOR_EACH_CASE (c, cases) {
		uint8_t code[MADE_TEXT_BYTES] = { 0 };
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		if (c->has_code)
			put_module(code, "\x48\x8b\x00", 3);
		enum status s = find(code, c->version, c->symbols, &r, &e);
		if (s != c->want || !strstr(e.text, c->text))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s == c->want && strstr(e.text, c->text) && r.version == 77);
	}
}

TEST_MAIN(cmocka_unit_test(knows_its_version), cmocka_unit_test(finds_the_variable_of_threads),
	cmocka_unit_test(finds_the_loop_of_a_stripped_build),
	cmocka_unit_test(refuses_what_it_does_not_know))
