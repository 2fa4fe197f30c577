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
static enum status find_with(const char *name, int32_t value, bool has_builtins,
	struct runtime_record *out, struct err *e)
{
	uint8_t data[1024] = { 0 };
	struct made_elf m = { .data = data };
	for (size_t i = 0; i < ARRAY_COUNT(constants); i++) {
		bool is_other = name && strcmp(name, constants[i].name) == 0;
		int32_t x = is_other ? value : constants[i].value;
		memcpy(data + 4 * i, &x, sizeof(x));
		m.symbols[i] =
			(struct made_symbol){ constants[i].name, MADE_DATA + 4 * i, sizeof(x) };
	}
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
			E_UNSUPPORTED, "describe" },
		{ "one behind the end", "v8dbg_class_SharedFunctionInfo__flags__int", 64,
			E_UNSUPPORTED, "describe" },
		{ "one below the object", "v8dbg_class_Script__name__Object", -8, E_UNSUPPORTED,
			"describe" },
		{ "the largest number", "v8dbg_class_Script__line_ends__Object", INT32_MAX,
			E_UNSUPPORTED, "describe" },
		{ "many variables", "v8dbg_scopeinfo_idx_first_vars", 9, E_UNSUPPORTED,
			"describe" },
		{ "a frame of another form", "v8dbg_off_fp_bytecode_array", -64, E_UNSUPPORTED,
			"describe" },
		{ "no type", "v8dbg_type_Script__SCRIPT_TYPE", 0, E_UNSUPPORTED, "describe" },
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

TEST_MAIN(cmocka_unit_test(knows_what_v8_tells_of_itself),
	cmocka_unit_test(refuses_what_it_does_not_know))
