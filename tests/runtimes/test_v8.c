/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like V8's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

/* Its constants, one after the other in .data. */
static const struct constant {
	const char *name;
	int32_t value;
} constants[] = {
	{ "_ZN2v88internal7Version6major_E", 11 },
	{ "_ZN2v88internal7Version6minor_E", 3 },
	{ "v8dbg_off_fp_bytecode_array", -32 },
	{ "v8dbg_scopeinfo_idx_first_vars", 3 },
	{ "v8dbg_class_JSFunction__shared__SharedFunctionInfo", 24 },
	{ "v8dbg_class_JSFunction__raw_feedback_cell__FeedbackCell", 40 },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object", 16 },
	{ "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject", 32 },
	{ "v8dbg_class_SharedFunctionInfo__flags__int", 48 },
	{ "v8dbg_class_Script__name__Object", 16 },
	{ "v8dbg_class_Script__source__Object", 8 },
	{ "v8dbg_class_Script__line_ends__Object", 56 },
	{ "v8dbg_class_BytecodeArray__data__uintptr_t", 54 },
	{ "v8dbg_FirstNonstringType", 128 },
	{ "v8dbg_type_JSFunction__JS_FUNCTION_TYPE", 2066 },
	{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262 },
	{ "v8dbg_type_Script__SCRIPT_TYPE", 167 },
	{ "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", 261 },
	{ "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", 191 },
	{ "v8dbg_type_Code__CODE_TYPE", 245 },
};

static const struct made_symbol builtins[] = {
	{ "Builtins_InterpreterEntryTrampoline", MADE_TEXT + 0x100, 0x80 },
	{ "Builtins_WideHandler", MADE_TEXT + 0x400, 0x20 },
	{ "Builtins_AbortExtraWideHandler", MADE_TEXT + 0x600, 0x40 },
	{ "Builtins_DeoptimizationEntry_Eager", MADE_TEXT + 0x80, 0x10 },
};

/* One constant has another value; NULL: none. */
static void make(struct made_elf *m, uint8_t data[1024], const char *name, int32_t value)
{
	m->data = data;
	for (size_t i = 0; i < ARRAY_COUNT(constants); i++) {
		bool is_other = name && strcmp(name, constants[i].name) == 0;
		int32_t x = is_other ? value : constants[i].value;
		memcpy(data + 4 * i, &x, sizeof(x));
		m->symbols[i] =
			(struct made_symbol){ constants[i].name, MADE_DATA + 4 * i, sizeof(x) };
	}
}

static enum status find_with(const char *name, int32_t value, bool has_builtins,
	struct runtime_record *out, struct err *e)
{
	uint8_t data[1024] = { 0 };
	struct made_elf m = { 0 };
	make(&m, data, name, value);
	if (has_builtins)
		memcpy(m.locals, builtins, sizeof(builtins));
	return made_elf_find(&m, out, e);
}

static void knows_what_v8_tells_of_itself(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK_OK(find_with(NULL, 0, true, &r, &e), &e);
	const struct v8_layout *l = &r.layout.v8;
	CHECK(r.kind == RUNTIME_V8 && r.version == (11 << 8 | 3));
	CHECK(l->function_shared == 24 && l->shared_flags == 48 && l->script_id == 64);
	CHECK(l->scope_locals == 24 && l->scope_variables == 32 && l->frame_bytecodes == -32);
	CHECK(l->builtins[0] == r.text_from + 0x80 && l->builtins[1] == r.text_from + 0x640);
	CHECK(l->entry[0] == r.text_from + 0x100 && l->entry[1] == r.text_from + 0x180);
	CHECK(l->handlers[0] == r.text_from + 0x400 && l->handlers[1] == l->builtins[1]);
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name, *constant;
		int32_t value;
		enum status want;
		const char *text;
	} cases[] = {
		{ "an old one", "_ZN2v88internal7Version6major_E", 7, E_UNSUPPORTED, "7.3" },
		{ "no number", "_ZN2v88internal7Version6major_E", -1, E_UNSUPPORTED, "not known" },
		{ "an offset that is none", "v8dbg_class_SharedFunctionInfo__flags__int", 3,
			E_UNSUPPORTED, "not known" },
		{ "one behind the end", "v8dbg_class_SharedFunctionInfo__flags__int", 64,
			E_UNSUPPORTED, "not known" },
		{ "one below the object", "v8dbg_class_Script__name__Object", -8, E_UNSUPPORTED,
			"not known" },
		{ "the largest number", "v8dbg_class_Script__line_ends__Object", INT32_MAX,
			E_UNSUPPORTED, "not known" },
		{ "many variables", "v8dbg_scopeinfo_idx_first_vars", 9, E_UNSUPPORTED,
			"not known" },
		{ "a frame of another form", "v8dbg_off_fp_bytecode_array", -64, E_UNSUPPORTED,
			"not known" },
		{ "no type", "v8dbg_type_Script__SCRIPT_TYPE", 0, E_UNSUPPORTED,
			"without the constant v8dbg_type_Script__SCRIPT_TYPE" },
	};
	FOR_EACH_CASE (c, cases) {
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		enum status s = find_with(c->constant, c->value, true, &r, &e);
		if (s != c->want || !strstr(e.text, c->text))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s == c->want && strstr(e.text, c->text) && r.version == 77);
	}
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK(find_with(NULL, 0, false, &r, &e) == E_UNSUPPORTED && strstr(e.text, "builtins"));
}

/* As in 14.6: the Isolate has the table of codes, and another instruction is the last one. */
static void finds_the_table_of_codes_of_an_isolate(void **state)
{
	(void)state;
	static const struct made_symbol locals[] = {
		{ "Builtins_InterpreterEntryTrampoline", MADE_TEXT + 0x100, 0x80 },
		{ "Builtins_WideHandler", MADE_TEXT + 0x400, 0x20 },
		{ "Builtins_IncBlockCounterExtraWideHandler", MADE_TEXT + 0x600, 0x40 },
		{ "Builtins_DeoptimizationEntry_Eager", MADE_TEXT + 0x80, 0x10 },
		{ "_ZN2v88internal17ExternalReference25js_dispatch_table_addressEPNS0_7IsolateE",
			MADE_TEXT + 0x700, 0x20 },
	};
	static const struct {
		const char *name, *table, *isolate;
		int32_t want_isolate;
		uint16_t want_dispatch;
	} cases[] = {
		{ "as it is", "\x48\x8b\x87\x68\x02\x00\x00\xc3",
			"\x55\x48\x89\xe5\x64\x48\x8b\x04\x25\x88\xfe\xff\xff\x5d", -0x178, 0x268 },
		{ "another first instruction", "\x48\x8b\x86\x68\x02\x00\x00\xc3",
			"\x64\x48\x8b\x04\x25\x88\xfe\xff\xff\xc3\x90\x90\x90\x90", 0, 0 },
		{ "a variable of a library", "\x48\x8b\x87\x68\x02\x00\x00\xc3",
			"\x55\x48\x89\xe5\x48\x8b\x05\x00\x00\x00\x00\x64\x48\x8b", 0, 0 },
		{ "an odd offset", "\x48\x8b\x87\x67\x02\x00\x00\xc3",
			"\x64\x48\x8b\x04\x25\x88\xfe\xff\xff\xc3\x90\x90\x90\x90", 0, 0 },
	};
	FOR_EACH_CASE (c, cases) {
		uint8_t data[1024] = { 0 }, code[MADE_TEXT_BYTES] = { 0 };
		struct made_elf m = { .code = code };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		make(&m, data, "_ZN2v88internal7Version6major_E", 14);
		m.symbols[ARRAY_COUNT(constants)] =
			(struct made_symbol){ "_ZN2v87Isolate10GetCurrentEv", MADE_TEXT + 0x720,
				16 };
		memcpy(m.locals, locals, sizeof(locals));
		memcpy(code + 0x700, c->table, 8);
		memcpy(code + 0x720, c->isolate, 14);
		CHECK_OK(made_elf_find(&m, &r, &e), &e);
		const struct v8_layout *l = &r.layout.v8;
		CHECK(l->handlers[1] == r.text_from + 0x640 && !l->function_code);
		CHECK_CASE(c, l->isolate_at == c->want_isolate && l->dispatch == c->want_dispatch);
	}
}

TEST_MAIN(cmocka_unit_test(knows_what_v8_tells_of_itself),
	cmocka_unit_test(finds_the_table_of_codes_of_an_isolate),
	cmocka_unit_test(refuses_what_it_does_not_know))
