/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CPython is recognized by its variable _PyRuntime, which every build exports (3.7), and which
 * has a section of its own from 3.10 on. The version is taken from Py_Version (3.11), the name of
 * the library, or the path "python3.N" in its constants, which all builds have.
 *
 * Up to 3.12 the offsets of a minor version are fixed, and are in a table here. From 3.13 on the
 * file has them: _PyRuntime begins with _Py_DebugOffsets, initialised data, groups of numbers whose
 * order depends on the minor version. The file is not trusted: each offset must lie in the bytes
 * that the walk reads.
 *
 * Source: CPython, Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h,
 * Include/cpython/code.h, pystate.h, unicodeobject.h; Include/internal/pycore_debug_offsets.h.
 */
#include "runtimes/internal.h"

#include "base/reader.h"

#include <elf.h>
#include <stddef.h>

#define VERSION(minor) ((uint16_t)(3 << 8 | (minor)))
#define MINOR_MIN 7
#define MINOR_MAX 15
/* Builds without a global lock: from this minor version on each thread may have its own copy of a
 * function's instructions; in a text's state a whole byte stands before the kind. */
#define MINOR_FREE_COPIES 14
#define TEXT_FREE_SHIFT 8
/* The level in Py_Version. Alphas, betas and candidates of a release have other offsets than the
 * release. */
#define RELEASE_FINAL 0xf

/* What 3.7 to 3.10 have in common. */
#define FROM_3_7                                                                            \
	.frames = CPYTHON_OBJECTS, .interp_threads = 8, .thread_next = 8, .thread_id = 176, \
	.thread_frame = 24, .frame_code = 32, .frame_previous = 24, .text_ascii = 48,       \
	.text_compact = 72, .object_head = CPYTHON_HEAD_BYTES

/* What 3.8 to 3.10 have in common. */
#define FROM_3_8                                                                                 \
	FROM_3_7, .runtime_head = 32, .code_first_line = 40, .code_file = 104, .code_name = 112, \
		  .code_lines = 120

static const struct cpython_layout layouts[] = {
	[7] = { FROM_3_7,
		.runtime_head = 24,
		.runtime_current = 1480,
		.frame_instr = 104,
		.instr_unit = 1,
		.code_first_line = 36,
		.code_file = 96,
		.code_name = 104,
		.code_lines = 112 },
	[8] = { FROM_3_8, .runtime_current = 1368, .frame_instr = 104, .instr_unit = 1 },
	[9] = { FROM_3_8, .runtime_current = 568, .frame_instr = 104, .instr_unit = 1 },
	[10] = { FROM_3_8, .runtime_current = 568, .frame_instr = 96, .instr_unit = 2 },
	[11] = {
		.frames = CPYTHON_ENTRIES,
		.runtime_head = 40,
		.runtime_current = 576,
		.interp_threads = 16,
		.thread_next = 8,
		.thread_id = 152,
		.thread_frame = 56,
		.cframe_frame = 8,
		.cframe_previous = 16,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_instr = 56,
		.frame_owner = 68,
		.owner_loop = 1,
		.code_first_line = 72,
		.code_file = 112,
		.code_name = 128,
		.code_lines = 136,
		.code_instr = 184,
		.text_ascii = 48,
		.text_compact = 72,
		.object_head = CPYTHON_HEAD_BYTES,
	},
	[12] = {
		.frames = CPYTHON_CFRAMES,
		.runtime_head = 40,
		.interp_threads = 72,
		.interp_gil = 384,
		.gil_holder = 8,
		.thread_next = 8,
		.thread_id = 136,
		.thread_frame = 56,
		.cframe_frame = 0,
		.cframe_previous = 8,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instr = 56,
		.frame_owner = 70,
		.owner_loop = 3,
		.code_first_line = 68,
		.code_file = 112,
		.code_name = 128,
		.code_lines = 136,
		.code_instr = 192,
		.text_ascii = 40,
		.text_compact = 56,
		.object_head = CPYTHON_HEAD_BYTES,
	},
};

/* ---- 3.13 and later: offsets from the file ---- */

#define COOKIE STR("xdebugpy")

/* The numbers that are needed, by their index after the cookie. */
struct offset_order {
	uint8_t runtime_head, interp_next, interp_threads, interp_gil, gil, gil_holder;
	uint8_t thread_next, thread_frame, thread_id;
	uint8_t frame_previous, frame_code, frame_instr, frame_owner;
	uint8_t code_file, code_name, code_lines, code_first_line, code_instr;
	uint8_t frame_copy, code_copies; /* from MINOR_FREE_COPIES on */
};

/* The numbers: version, free_threaded, then the groups, each of which begins with the size of its
 * structure. */
#define FREE_THREADED 1
static const struct offset_order orders[] = {
	[13] = { .runtime_head = 4,
		.interp_next = 7,
		.interp_threads = 8,
		.interp_gil = 13,
		.gil = 14,
		.gil_holder = 17,
		.thread_next = 20,
		.thread_frame = 22,
		.thread_id = 23,
		.frame_previous = 28,
		.frame_code = 29,
		.frame_instr = 30,
		.frame_owner = 32,
		.code_file = 34,
		.code_name = 36,
		.code_lines = 37,
		.code_first_line = 38,
		.code_instr = 42 },
	[14] = { .runtime_head = 4,
		.interp_next = 7,
		.interp_threads = 8,
		.interp_gil = 14,
		.gil = 15,
		.gil_holder = 18,
		.thread_next = 23,
		.thread_frame = 25,
		.thread_id = 26,
		.frame_previous = 31,
		.frame_code = 32,
		.frame_instr = 33,
		.frame_owner = 35,
		.code_file = 39,
		.code_name = 41,
		.code_lines = 42,
		.code_first_line = 43,
		.code_instr = 47,
		.frame_copy = 37,
		.code_copies = 48 },
	[15] = { .runtime_head = 4,
		.interp_next = 7,
		.interp_threads = 8,
		.interp_gil = 14,
		.gil = 15,
		.gil_holder = 18,
		.thread_next = 23,
		.thread_frame = 25,
		.thread_id = 29,
		.frame_previous = 39,
		.frame_code = 40,
		.frame_instr = 41,
		.frame_owner = 43,
		.code_file = 47,
		.code_name = 49,
		.code_lines = 50,
		.code_first_line = 51,
		.code_instr = 55,
		.frame_copy = 45,
		.code_copies = 56 },
};
#define OFFSETS_COUNT 57

struct told_offset {
	uint8_t from;  /* index among the file's numbers */
	uint8_t bytes; /* of the field */
	uint16_t max;  /* bytes of its structure that are read; 0: the field is read by itself */
	uint16_t *to;
};

static enum status take_offsets(const struct objfile *obj, const uint64_t *told,
	const struct told_offset *fields, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t offset = told[fields[i].from];
		uint64_t max = fields[i].max ? fields[i].max : UINT16_MAX;
		if (offset + fields[i].bytes > max || offset > max)
			return err_set(e, E_UNSUPPORTED,
				"%s: CPython's debug offset %u is %llu, and %llu is the most",
				objfile_name(obj), fields[i].from, (unsigned long long)offset,
				(unsigned long long)max - fields[i].bytes);
		*fields[i].to = (uint16_t)offset;
	}
	return OK;
}

static enum status layout_told(const struct objfile *obj, uint64_t runtime, unsigned minor,
	struct cpython_layout *out, struct err *e)
{
	struct {
		char cookie[8];
		uint64_t numbers[OFFSETS_COUNT];
	} told;
	enum status s = bytes_at(obj, runtime, &told, sizeof(told), e);
	if (s != OK)
		return s;
	if (!str_eq(str_make(told.cookie, sizeof(told.cookie)), COOKIE))
		return err_set(e, E_UNSUPPORTED, "%s: CPython 3.%u without debug offsets",
			objfile_name(obj), minor);
	bool is_free = told.numbers[FREE_THREADED] != 0;
	const struct offset_order *o = &orders[minor];
	const uint16_t head = is_free ? CPYTHON_HEAD_FREE_BYTES : CPYTHON_HEAD_BYTES;
	const uint16_t code = is_free ? CPYTHON_CODE_FREE_BYTES : CPYTHON_CODE_BYTES;
	struct cpython_layout l = { .frames = CPYTHON_OWNED,
		.owner_loop = 3,
		.object_head = head,
		.text_ascii = (uint16_t)(head + 24),
		.text_compact = (uint16_t)(head + 40) };
	uint16_t gil, holder;
	const struct told_offset fields[] = {
		{ o->runtime_head, 8, 0, &l.runtime_head },
		{ o->interp_next, 8, 0, &l.interp_next },
		{ o->interp_threads, 8, 0, &l.interp_threads },
		{ o->interp_gil, 8, 0, &l.interp_gil },
		{ o->gil, 8, 0, &gil },
		{ o->gil_holder, 8, 0, &holder },
		{ o->thread_next, 8, CPYTHON_THREAD_BYTES, &l.thread_next },
		{ o->thread_frame, 8, 0, &l.thread_frame },
		{ o->thread_id, 8, CPYTHON_THREAD_BYTES, &l.thread_id },
		{ o->frame_previous, 8, CPYTHON_FRAME_BYTES, &l.frame_previous },
		{ o->frame_code, 8, CPYTHON_FRAME_BYTES, &l.frame_code },
		{ o->frame_instr, 8, CPYTHON_FRAME_BYTES, &l.frame_instr },
		{ o->frame_owner, 1, CPYTHON_FRAME_BYTES, &l.frame_owner },
		{ o->code_file, 8, code, &l.code_file },
		{ o->code_name, 8, code, &l.code_name },
		{ o->code_lines, 8, code, &l.code_lines },
		{ o->code_first_line, 4, code, &l.code_first_line },
		{ o->code_instr, 1, 0, &l.code_instr },
	};
	s = take_offsets(obj, told.numbers, fields, ARRAY_COUNT(fields), e);
	if (s != OK)
		return s;
	l.gil_holder = holder > gil ? (uint16_t)(holder - gil) : 0;
	if (is_free && minor >= MINOR_FREE_COPIES) {
		const struct told_offset more[] = {
			{ o->frame_copy, 4, CPYTHON_FRAME_BYTES, &l.frame_copy },
			{ o->code_copies, 8, 0, &l.code_copies },
		};
		s = take_offsets(obj, told.numbers, more, ARRAY_COUNT(more), e);
		l.text_shift = TEXT_FREE_SHIFT;
	}
	if (s != OK)
		return s;
	*out = l;
	return OK;
}

/* ---- the version ---- */

/* N of "3.N" at the beginning. 0: the text begins otherwise. */
static unsigned minor_of(struct str s)
{
	unsigned minor = 0;
	size_t at = 2;
	if (!str_starts(s, STR("3.")))
		return 0;
	for (; at < s.len && at < 4 && s.p[at] >= '0' && s.p[at] <= '9'; at++)
		minor = minor * 10 + (unsigned)(s.p[at] - '0');
	return minor;
}

/* The version that "python3.N" in these bytes names; 0: none, or several. */
static unsigned minor_in_constants(const struct buf *bytes)
{
	static const char word[] = "python3.";
	const uint8_t *at = bytes->data, *end = bytes->data + bytes->len;
	unsigned minor = 0;
	while (at && (at = memmem(at, (size_t)(end - at), word, sizeof(word) - 1))) {
		const size_t prefix = sizeof(word) - sizeof("3.");
		unsigned found = minor_of(str_make(at + prefix, (size_t)(end - at) - prefix));
		if (found && minor && found != minor)
			return 0;
		minor = found ? found : minor;
		at += sizeof(word) - 1;
	}
	return minor;
}

/* Reads Py_Version, which says more than the minor version. */
static enum status minor_from_variable(
	const struct objfile *obj, uint64_t address, unsigned *out, struct err *e)
{
	uint8_t hex[4]; /* serial and level, micro, minor, major */
	enum status s = bytes_at(obj, address, hex, sizeof(hex), e);
	if (s != OK)
		return s;
	if (hex[3] != 3)
		return err_set(
			e, E_UNSUPPORTED, "%s: CPython %u.%u", objfile_name(obj), hex[3], hex[2]);
	if (hex[0] >> 4 != RELEASE_FINAL && hex[2] < 13)
		return err_set(e, E_UNSUPPORTED, "%s: CPython 3.%u.%u before its release",
			objfile_name(obj), hex[2], hex[1]);
	*out = hex[2];
	return OK;
}

static enum status find_minor(
	const struct objfile *obj, uint64_t version_at, unsigned *out, struct err *e)
{
	if (version_at)
		return minor_from_variable(obj, version_at, out, e);
	const struct objfile_section *constants = objfile_section(obj, ".rodata");
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, RUNTIMES_CONSTANTS_BYTES_MAX);
	enum status s = constants ? objfile_read_section(obj, constants, &bytes, e) : E_NOTFOUND;
	unsigned minor = s == OK ? minor_in_constants(&bytes) : 0;
	if (!minor)
		return err_set(e, E_UNSUPPORTED, "%s: a CPython that does not say its version",
			objfile_name(obj));
	*out = minor;
	return OK;
}

/* ---- */

enum symbol {
	SYMBOL_RUNTIME,
	SYMBOL_LOOP,
	SYMBOL_VERSION,
	SYMBOL_COLD,
	SYMBOL_OLD, /* a symbol of 2.7 to 3.6, which are not walked */
	SYMBOL_COUNT,
};

static enum status find_symbols(
	const struct objfile *obj, struct runtime_symbol *symbols, struct err *e)
{
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_COUNT, e);
	const struct objfile_section *section = objfile_section(obj, ".PyRuntime");
	if (s == OK && section && !symbols[SYMBOL_RUNTIME].address)
		symbols[SYMBOL_RUNTIME].address = section->addr;
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_RUNTIME].address && symbols[SYMBOL_OLD].address)
		return err_set(e, E_UNSUPPORTED, "%s: CPython before 3.7", objfile_name(obj));
	if (!symbols[SYMBOL_RUNTIME].address)
		return err_set(e, E_NOTFOUND, "%s: no CPython", objfile_name(obj));
	s = symbols_find(obj, SHT_SYMTAB, symbols, SYMBOL_COUNT, e);
	/* The second table only adds symbols to the first one's: if it is too large, it adds
	 * nothing. */
	return s == E_LIMIT && symbols[SYMBOL_LOOP].address ? OK : s;
}

enum status cpython_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_RUNTIME] = { .name = "_PyRuntime" },
		[SYMBOL_LOOP] = { .name = "_PyEval_EvalFrameDefault" },
		[SYMBOL_VERSION] = { .name = "Py_Version" },
		[SYMBOL_COLD] = { .name = "_PyEval_EvalFrameDefault.cold" },
		[SYMBOL_OLD] = { .name = "_PyThreadState_Current" },
	};
	unsigned minor = 0;
	struct runtime_record r = { .kind = RUNTIME_CPYTHON };
	enum status s = find_symbols(obj, symbols, e);
	if (s == OK)
		s = find_minor(obj, symbols[SYMBOL_VERSION].address, &minor, e);
	if (s != OK)
		return s;
	uint64_t runtime = symbols[SYMBOL_RUNTIME].address, loop = symbols[SYMBOL_LOOP].address;
	if (minor < MINOR_MIN || minor > MINOR_MAX)
		return err_set(e, E_UNSUPPORTED, "%s: CPython 3.%u is not known", objfile_name(obj),
			minor);
	if (!loop)
		return err_set(e, E_UNSUPPORTED, "%s: CPython 3.%u whose loop is not named",
			objfile_name(obj), minor);
	if (minor < ARRAY_COUNT(layouts))
		r.layout.cpython = layouts[minor];
	else
		s = layout_told(obj, runtime, minor, &r.layout.cpython, e);
	if (s == OK)
		s = place_root(obj, runtime, loop, &r, e);
	if (s != OK)
		return s;
	r.version = VERSION(minor);
	place_function(obj, &symbols[SYMBOL_LOOP], r.layout.cpython.loop);
	place_function(obj, &symbols[SYMBOL_COLD], r.layout.cpython.loop + 2);
	*out = r;
	return OK;
}
