/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Erlang's emulator registers objects for GDB that are not ELF files. An object describes the code
 * of a module, or the code common to all ("global"): the name of each range and its lines. Before a
 * text is its length with the NUL. The writer puts whole C structures one after the other; the text
 * takes the place of a structure's padding, so that as many bytes follow the text.
 *
 *   u32 1; 4 bytes; u64 where the code is; u32 ranges; u32 size; text; 6 bytes
 *   each range: u32 from; u32 to; u32 lines; text; 2 bytes
 *   each line: u32 from; u32 line; text: the file; 2 bytes
 *
 * All offsets are from the begin of the code. A line that begins before its range is that of the
 * function itself.
 *
 * Source: Erlang/OTP 24 to 27, as found in the memory of their processes.
 */
#include "base/reader.h"
#include "jit/map.h"

#define KIND_CODE 1
#define HEAD_PADDING 6
#define PADDING 2

struct range {
	uint64_t start, size;
	uint32_t lines;
	struct str name;
};

static struct str read_text(struct reader *r, size_t padding)
{
	uint16_t len = reader_u16(r);
	const void *p = reader_bytes(r, len);
	struct str s = p ? str_make(p, len) : STR("");
	(void)reader_bytes(r, padding);
	s = str_sub(s, 0, MIN(s.len, (size_t)JIT_NAME_BYTES_MAX));
	return str_sub(s, 0, str_index(s, 0));
}

static struct range read_range(struct reader *r, uint64_t base)
{
	uint32_t from = reader_u32(r);
	uint32_t to = reader_u32(r);
	struct range out = { .start = base + from, .size = to - from };
	out.lines = reader_u32(r);
	out.name = read_text(r, PADDING);
	if (to < from)
		r->failed = true;
	return out;
}

static void read_lines(struct reader *r, struct jit_map *m, const struct range *of, uint64_t base)
{
	uint64_t refused = jit_map_refused(m);
	for (uint32_t i = 0; i < of->lines && !r->failed; i++) {
		uint64_t at = base + reader_u32(r);
		uint32_t line = reader_u32(r);
		struct str file = read_text(r, PADDING);
		const struct jit_place place = { MAX(at, of->start), file, line };
		if (!r->failed && jit_map_refused(m) == refused)
			(void)jit_map_add_place(m, &place, of->start);
	}
}

/* False for the data before and after the code. */
static bool is_code(const struct range *x)
{
	return !str_ends(x->name, STR("::codeHeader")) && !str_ends(x->name, STR("::codeFooter"));
}

static void read_ranges(
	struct reader *r, struct jit_map *m, uint64_t base, uint32_t count, uint64_t since_ns)
{
	for (uint32_t i = 0; i < count && !r->failed && reader_left(r); i++) {
		struct range x = read_range(r, base);
		uint32_t first = jit_map_place_count(m);
		read_lines(r, m, &x, base);
		if (r->failed || !is_code(&x)) {
			jit_map_drop_places(m, first);
			continue;
		}
		const struct jit_code code = {
			.start = x.start, .size = x.size, .since_ns = since_ns, .name = x.name
		};
		if (!jit_map_add_lines(m, &code, first, jit_map_place_count(m) - first))
			jit_map_drop_places(m, first);
	}
}

enum status beam_read(
	struct jit_map *m, struct str bytes, uint64_t since_ns, uint32_t *next, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	uint32_t from = *next;
	*next = 0;
	uint32_t kind = reader_u32(&r);
	(void)reader_u32(&r);
	uint64_t base = reader_u64(&r);
	(void)reader_u64(&r); /* number and bytes of the ranges, which fill the object */
	(void)read_text(&r, HEAD_PADDING);
	if (r.failed || kind != KIND_CODE) {
		jit_map_add_bad(m);
		return err_set(
			e, E_CORRUPT, "object of %zu bytes: neither ELF nor Erlang's", bytes.len);
	}
	if (from)
		reader_seek(&r, from);
	read_ranges(&r, m, base, JIT_OBJECT_SYMBOLS_MAX, since_ns);
	if (r.failed)
		jit_map_add_bad(m);
	else if (reader_left(&r))
		*next = (uint32_t)reader_offset(&r);
	return OK;
}
