/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 describes itself to debuggers that look at a core file: constants v8dbg_… among its dynamic
 * symbols, 32 bits each, say the numbers of types, the offsets of fields and of the words of a
 * frame. Names change from version to version, so each constant has a list of them. Values without
 * a constant are fixed within the versions distinguished here.
 *
 * Local symbols name V8's own code, its builtins; v8_builtins.c finds it in a stripped file.
 *
 * Source: V8, tools/gen-postmortem-metadata.py, src/execution/frame-constants.h, src/objects/.
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <string.h>

/* What a user can do about a V8 that cannot be walked. */
#define WITHOUT                                                       \
	"its functions have names with V8's flags --perf-basic-prof " \
	"--interpreted-frames-native-stack only"

#define VERSION(major, minor) ((uint16_t)((major) << 8 | (minor)))

enum constant {
	FRAME_BYTECODES,
	SCOPE_VARIABLES,
	FUNCTION_SHARED,
	FUNCTION_FEEDBACK,
	SHARED_NAME,
	SHARED_SCRIPT,
	SHARED_FLAGS,
	SCRIPT_NAME,
	SCRIPT_SOURCE,
	SCRIPT_LINE_ENDS,
	BYTECODES_DATA,
	FIRST_NO_STRING,
	TYPE_FUNCTION,
	TYPE_SHARED,
	TYPE_SCRIPT,
	TYPE_SCOPE,
	TYPE_BYTECODES,
	TYPE_CODE,
	CONSTANT_COUNT
};

#define NAMES_MAX 3

static const char *const constant_names[CONSTANT_COUNT][NAMES_MAX] = {
	[FRAME_BYTECODES] = { "v8dbg_off_fp_bytecode_array" },
	[SCOPE_VARIABLES] = { "v8dbg_scopeinfo_idx_first_vars" },
	[FUNCTION_SHARED] = { "v8dbg_class_JSFunction__shared__SharedFunctionInfo" },
	[FUNCTION_FEEDBACK] = { "v8dbg_class_JSFunction__raw_feedback_cell__FeedbackCell",
		"v8dbg_class_JSFunction__raw_feedback_cell__Tagged_FeedbackCell_" },
	[SHARED_NAME] = { "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
		"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
		"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_" },
	[SHARED_SCRIPT] = { "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
		"v8dbg_class_SharedFunctionInfo__raw_script__Tagged_Object_" },
	[SHARED_FLAGS] = { "v8dbg_class_SharedFunctionInfo__flags__int" },
	[SCRIPT_NAME] = { "v8dbg_class_Script__name__Object" },
	[SCRIPT_SOURCE] = { "v8dbg_class_Script__source__Object" },
	[SCRIPT_LINE_ENDS] = { "v8dbg_class_Script__line_ends__Object" },
	[BYTECODES_DATA] = { "v8dbg_class_BytecodeArray__data__uintptr_t" },
	[FIRST_NO_STRING] = { "v8dbg_FirstNonstringType" },
	[TYPE_FUNCTION] = { "v8dbg_type_JSFunction__JS_FUNCTION_TYPE" },
	[TYPE_SHARED] = { "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" },
	[TYPE_SCRIPT] = { "v8dbg_type_Script__SCRIPT_TYPE" },
	[TYPE_SCOPE] = { "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE" },
	[TYPE_BYTECODES] = { "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE" },
	[TYPE_CODE] = { "v8dbg_type_Code__CODE_TYPE" },
};

enum symbol {
	SYMBOL_MAJOR,
	SYMBOL_MINOR,
	SYMBOL_CONSTANTS,
	SYMBOL_COUNT = SYMBOL_CONSTANTS + CONSTANT_COUNT * NAMES_MAX
};

/* Names in the table of local symbols. The last three are names of one builtin in different
 * versions. */
enum builtin {
	BUILTIN_ENTRY,
	/* No builtins: functions that return the address of the table of codes. */
	BUILTIN_DISPATCH,
	BUILTIN_DISPATCH_OF_ISOLATE,
	BUILTIN_FIRST_HANDLER,
	BUILTIN_LAST_HANDLER,
	BUILTIN_LAST_HANDLER_14, /* to 14.1 it is the last but one */
	BUILTIN_ALL,
	BUILTIN_COUNT = BUILTIN_ALL + 3
};

/* Values without a constant of V8, by the first version that has them. */
static const struct fixed {
	uint16_t version;
	uint16_t bytecodes_data, bytecodes_lines;
	uint16_t scope_first;     /* offset of the first field of a ScopeInfo */
	uint16_t scope_positions; /* offset of its positions; 0: they follow its names */
	uint16_t script_source;
	uint16_t function_code, code_deopt, code_table, code_start, code_is_inline, code_bytes;
	uint16_t literals, inlining; /* indexes of two words of DeoptimizationData */
} fixed_of[] = {
	{ VERSION(8, 4), .bytecodes_data = 54, .bytecodes_lines = 32, .scope_first = 16,
		.script_source = 8, .function_code = 48, .code_deopt = 16, .code_table = 24,
		.code_start = 96, .code_is_inline = 1, .code_bytes = 40, .literals = 2,
		.inlining = 7 },
	{ VERSION(9, 0), .bytecodes_data = 54, .bytecodes_lines = 32, .scope_first = 8,
		.script_source = 8, .function_code = 48, .code_deopt = 16, .code_table = 24,
		.code_start = 96, .code_is_inline = 1, .code_bytes = 40, .literals = 2,
		.inlining = 7 },
	{ VERSION(10, 0), .bytecodes_data = 54, .bytecodes_lines = 32, .scope_first = 8,
		.script_source = 8, .function_code = 48, .code_deopt = 16, .code_table = 24,
		.code_start = 128, .code_is_inline = 1, .code_bytes = 40, .literals = 2,
		.inlining = 7 },
	{ VERSION(11, 0), .bytecodes_data = 54, .bytecodes_lines = 32, .scope_first = 8,
		.script_source = 8, .function_code = 48, .code_deopt = 16, .code_table = 24,
		.code_start = 40, .code_bytes = 56, .literals = 2, .inlining = 7 },
	{ VERSION(12, 0), .bytecodes_data = 64, .bytecodes_lines = 24, .scope_first = 8,
		.script_source = 8, .function_code = 24, .code_deopt = 8, .code_table = 16,
		.code_start = 40, .code_bytes = 52, .literals = 2, .inlining = 7 },
	{ VERSION(13, 0), .bytecodes_data = 64, .bytecodes_lines = 24, .scope_first = 8,
		.scope_positions = 32, .script_source = 8, .code_deopt = 8, .code_table = 16,
		.code_start = 40, .code_bytes = 56, .literals = 3, .inlining = 8 },
};

static enum status find_symbols(
	const struct objfile *obj, struct runtime_symbol symbols[SYMBOL_COUNT], struct err *e)
{
	symbols[SYMBOL_MAJOR] =
		(struct runtime_symbol){ .name = "_ZN2v88internal7Version6major_E" };
	symbols[SYMBOL_MINOR] =
		(struct runtime_symbol){ .name = "_ZN2v88internal7Version6minor_E" };
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_CONSTANTS, e);
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_MAJOR].address || !symbols[SYMBOL_MINOR].address)
		return err_set(e, E_NOTFOUND, "%s: no V8", objfile_name(obj));
	for (uint32_t i = 0; i < CONSTANT_COUNT * NAMES_MAX; i++) {
		const char *name = constant_names[i / NAMES_MAX][i % NAMES_MAX];
		symbols[SYMBOL_CONSTANTS + i] = (struct runtime_symbol){ .name = name ? name : "" };
		if (!name) /* this constant has no further names */
			symbols[SYMBOL_CONSTANTS + i].address = UINT64_MAX;
	}
	return symbols_find(
		obj, SHT_DYNSYM, symbols + SYMBOL_CONSTANTS, SYMBOL_COUNT - SYMBOL_CONSTANTS, e);
}

/* A constant of 0 has no bytes in the file. False: it is not there. */
static bool constant_of(const struct objfile *obj, const struct runtime_symbol *symbols,
	enum constant which, int32_t *out)
{
	const struct runtime_symbol *s = symbols + SYMBOL_CONSTANTS + which * NAMES_MAX;
	for (uint32_t i = 0; i < NAMES_MAX; i++) {
		if (!s[i].address || s[i].address == UINT64_MAX)
			continue;
		if (bytes_at(obj, s[i].address, out, sizeof(*out), NULL) != OK)
			*out = 0;
		return true;
	}
	return false;
}

static enum status find_version(const struct objfile *obj, const struct runtime_symbol *symbols,
	uint16_t *out, const struct fixed **out_fixed, struct err *e)
{
	uint32_t major = 0, minor = 0;
	enum status s = bytes_at(obj, symbols[SYMBOL_MAJOR].address, &major, sizeof(major), e);
	if (s == OK)
		s = bytes_at(obj, symbols[SYMBOL_MINOR].address, &minor, sizeof(minor), e);
	if (s != OK)
		return s;
	*out_fixed = NULL;
	for (size_t i = 0; i < ARRAY_COUNT(fixed_of) && major < 256 && minor < 256; i++) {
		if (VERSION(major, minor) >= fixed_of[i].version)
			*out_fixed = &fixed_of[i];
	}
	*out = VERSION(major & 255, minor & 255);
	return *out_fixed ? OK
			  : err_set(e, E_UNSUPPORTED, "%s: V8 %u.%u is not known",
				    objfile_name(obj), major, minor);
}

/* Checks an offset in an object: it must lie in the bytes that are read of it. */
static bool offset_of(int32_t value, uint32_t bytes, uint16_t *out)
{
	if (value < 8 || (uint32_t)value > bytes - 8 || value % 4)
		return false;
	*out = (uint16_t)value;
	return true;
}

static bool type_of(int32_t value, uint16_t *out)
{
	*out = (uint16_t)value;
	return value > 0 && value < UINT16_MAX - V8_FUNCTION_TYPES;
}

static bool fill(struct v8_layout *l, const int32_t v[CONSTANT_COUNT], const struct fixed *f)
{
	l->frame_bytecodes = (int16_t)v[FRAME_BYTECODES];
	l->scope_variables = (uint16_t)(f->scope_first + 8 * (v[SCOPE_VARIABLES] & 15));
	l->scope_locals = (uint16_t)(f->scope_first + 16);
	l->scope_positions = f->scope_positions;
	l->bytecodes_data = v[BYTECODES_DATA] ? (uint16_t)v[BYTECODES_DATA] : f->bytecodes_data;
	l->bytecodes_lines = f->bytecodes_lines;
	l->first_no_string = (uint16_t)v[FIRST_NO_STRING];
	l->function_code = f->function_code;
	l->code_deopt = f->code_deopt;
	l->code_table = f->code_table;
	l->code_start = f->code_start;
	l->code_is_inline = f->code_is_inline;
	l->code_bytes = f->code_bytes;
	l->deopt_literals = (uint16_t)(16 + 8 * f->literals);
	l->deopt_inlining = (uint16_t)(16 + 8 * f->inlining);
	return l->frame_bytecodes >= -32 && l->frame_bytecodes <= -24 &&
	       l->scope_variables <= V8_SCOPE_BYTES - 8 && l->bytecodes_data <= 128 &&
	       offset_of(v[FUNCTION_SHARED], V8_FUNCTION_BYTES, &l->function_shared) &&
	       offset_of(v[FUNCTION_FEEDBACK], V8_FUNCTION_BYTES, &l->function_feedback) &&
	       offset_of(v[SHARED_NAME], V8_SHARED_BYTES, &l->shared_name) &&
	       offset_of(v[SHARED_SCRIPT], V8_SHARED_BYTES, &l->shared_script) &&
	       offset_of(v[SHARED_FLAGS], V8_SHARED_BYTES, &l->shared_flags) &&
	       offset_of(v[SCRIPT_NAME], V8_SCRIPT_BYTES, &l->script_name) &&
	       offset_of(v[SCRIPT_SOURCE] ? v[SCRIPT_SOURCE] : f->script_source, V8_SCRIPT_BYTES,
		       &l->script_source) &&
	       v[SCRIPT_LINE_ENDS] < V8_SCRIPT_BYTES &&
	       offset_of(v[SCRIPT_LINE_ENDS] + 8, V8_SCRIPT_BYTES, &l->script_id) &&
	       type_of(v[TYPE_FUNCTION], &l->type_function) &&
	       type_of(v[TYPE_SHARED], &l->type_shared) &&
	       type_of(v[TYPE_SCRIPT], &l->type_script) && type_of(v[TYPE_SCOPE], &l->type_scope) &&
	       type_of(v[TYPE_BYTECODES], &l->type_bytecodes) &&
	       type_of(v[TYPE_CODE], &l->type_code);
}

/* Where a thread's Isolate is, from the thread pointer on, by an instruction of
 * v8::Isolate::GetCurrent(): mov %fs:OFFSET, %rax. 0: there is no such instruction. */
static int32_t find_isolate(const struct objfile *obj)
{
	struct runtime_symbol function = { .name = "_ZN2v87Isolate10GetCurrentEv" };
	uint8_t code[16];
	int32_t offset;
	if (symbols_find(obj, SHT_DYNSYM, &function, 1, NULL) != OK || !function.address ||
		bytes_at(obj, function.address, code, sizeof(code), NULL) != OK)
		return 0;
	for (size_t at = 0; at + 9 <= sizeof(code); at++) {
		if (memcmp(code + at, "\x64\x48\x8b\x04\x25", 5) == 0) {
			memcpy(&offset, code + at + 5, sizeof(offset));
			return offset;
		}
	}
	return 0;
}

/* From 13 on a function has a number, by which a table leads to its code. The function that tells
 * where the table is begins with: mov VARIABLE(%rip), %rax; mov OFFSET(%rax), %rax. */
static uint64_t find_dispatch(
	const struct objfile *obj, const struct runtime_symbol *function, struct v8_layout *l)
{
	uint8_t code[16];
	uint32_t offset;
	int32_t distance;
	if (!function->address || bytes_at(obj, function->address, code, sizeof(code), NULL) != OK)
		return 0;
	const uint8_t *at = code;
	if (memcmp(at, "\x48\x8b\x05", 3) != 0 || memcmp(at + 7, "\x48\x8b\x80", 3) != 0)
		return 0;
	memcpy(&distance, at + 3, sizeof(distance));
	memcpy(&offset, at + 10, sizeof(offset));
	if (offset > UINT16_MAX || offset % 8)
		return 0;
	l->dispatch = (uint16_t)offset;
	return function->address + 7 + (uint64_t)(int64_t)distance;
}

/* In 14.6 the Isolate has the table, and the function begins with: mov OFFSET(%rdi), %rax. */
static void find_dispatch_of_isolate(
	const struct objfile *obj, const struct runtime_symbol *function, struct v8_layout *l)
{
	uint8_t code[8];
	uint32_t offset;
	if (!function->address || bytes_at(obj, function->address, code, sizeof(code), NULL) != OK)
		return;
	memcpy(&offset, code + 3, sizeof(offset));
	if (memcmp(code, "\x48\x8b\x87", 3) != 0 || offset > UINT16_MAX || offset % 8)
		return;
	l->isolate_at = find_isolate(obj);
	l->dispatch = l->isolate_at ? (uint16_t)offset : 0;
}

/* Where V8's own code lies in the file. */
static enum status place_builtins(
	const struct objfile *obj, struct runtime_record *r, struct err *e)
{
	struct runtime_symbol b[BUILTIN_COUNT] = {
		[BUILTIN_ENTRY] = { .name = "Builtins_InterpreterEntryTrampoline" },
		[BUILTIN_DISPATCH] = { .name = "_ZN2v88internal17ExternalReference25js_"
					       "dispatch_table_addressEv" },
		[BUILTIN_DISPATCH_OF_ISOLATE] = { .name = "_ZN2v88internal17ExternalReference25js_"
							  "dispatch_table_addressEPNS0_7IsolateE" },
		[BUILTIN_FIRST_HANDLER] = { .name = "Builtins_WideHandler" },
		[BUILTIN_LAST_HANDLER] = { .name = "Builtins_AbortExtraWideHandler" },
		[BUILTIN_LAST_HANDLER_14] = { .name = "Builtins_IncBlockCounterExtraWideHandler" },
		[BUILTIN_ALL] = { .name = "v8_Default_embedded_blob_code_data_" },
		[BUILTIN_ALL + 1] = { .name = "Builtins_DeoptimizationEntry_Eager" },
		[BUILTIN_ALL + 2] = { .name = "Builtins_RecordWrite" },
	};
	struct v8_layout *l = &r->layout.v8;
	enum status s = symbols_find(obj, SHT_SYMTAB, b, BUILTIN_COUNT, e);
	if (s == OK)
		s = symbols_find(obj, SHT_DYNSYM, b + BUILTIN_DISPATCH, 2, e);
	if (s != OK)
		return s;
	struct v8_builtins found;
	if (!b[BUILTIN_ENTRY].address && v8_builtins_find(obj, &found)) {
		b[BUILTIN_ENTRY] = found.entry;
		b[BUILTIN_FIRST_HANDLER] = found.first_handler;
		b[BUILTIN_LAST_HANDLER] = found.last_handler;
		b[BUILTIN_ALL] = found.all;
	}
	uint32_t last[2] = { 0 };
	place_function(obj, &b[BUILTIN_ENTRY], l->entry);
	place_function(obj, &b[BUILTIN_FIRST_HANDLER], l->handlers);
	place_function(obj, &b[BUILTIN_LAST_HANDLER], last);
	if (!last[1])
		place_function(obj, &b[BUILTIN_LAST_HANDLER_14], last);
	for (int i = 0; i < 3 && !l->builtins[0]; i++)
		place_function(obj, &b[BUILTIN_ALL + i], l->builtins);
	if (!l->entry[0] || !l->handlers[0] || !last[1] || !l->builtins[0])
		return err_set(e, E_UNSUPPORTED,
			"%s: V8 %u.%u whose own code (its builtins) is not found; " WITHOUT,
			objfile_name(obj), r->version >> 8, r->version & 255);
	l->handlers[1] = last[1];
	l->builtins[1] = last[1];
	uint64_t root = find_dispatch(obj, &b[BUILTIN_DISPATCH], l);
	find_dispatch_of_isolate(obj, &b[BUILTIN_DISPATCH_OF_ISOLATE], l);
	if (!root)
		root = b[BUILTIN_ENTRY].address;
	return place_root(obj, root, b[BUILTIN_ENTRY].address, r, e);
}

/* Says what is missing, and what works without it. */
static enum status not_described(const struct objfile *obj, uint16_t version,
	const int32_t values[CONSTANT_COUNT], struct err *e)
{
	for (int i = 0; i < CONSTANT_COUNT; i++) {
		bool is_told = values[i] != 0 || i == BYTECODES_DATA || i == SCRIPT_SOURCE;
		if (!is_told)
			return err_set(e, E_UNSUPPORTED,
				"%s: V8 %u.%u without the constant %s, which debuggers need, "
				"too; " WITHOUT,
				objfile_name(obj), version >> 8, version & 255,
				constant_names[i][0]);
	}
	return err_set(e, E_UNSUPPORTED,
		"%s: V8 %u.%u has its objects laid out in a way that is not known; " WITHOUT,
		objfile_name(obj), version >> 8, version & 255);
}

enum status v8_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = { 0 };
	struct runtime_record r = { .kind = RUNTIME_V8 };
	const struct fixed *fixed = NULL;
	int32_t values[CONSTANT_COUNT] = { 0 };
	enum status s = find_symbols(obj, symbols, e);
	if (s == OK)
		s = find_version(obj, symbols, &r.version, &fixed, e);
	if (s != OK)
		return s;
	for (int i = 0; i < CONSTANT_COUNT; i++)
		(void)constant_of(obj, symbols, (enum constant)i, &values[i]);
	if (!values[FRAME_BYTECODES]) /* versions to 9.x do not tell it */
		values[FRAME_BYTECODES] = r.version < VERSION(9, 0) ? -24 : -32;
	if (!fill(&r.layout.v8, values, fixed))
		return not_described(obj, r.version, values, e);
	s = place_builtins(obj, &r, e);
	if (s != OK)
		return s;
	*out = r;
	return OK;
}
