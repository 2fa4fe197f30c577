/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is a header and records; each begins with its kind, length and time. The lines of a
 * piece of code come directly before it. Machine code and unwinding information are skipped without
 * being read.
 */
#include "base/reader.h"
#include "jit/map.h"

#include <elf.h>

#define MAGIC 0x4A695444u
#define VERSION 1
#define HEADER_BYTES 40
#define HEADER_BYTES_MAX 4096
#define RECORD_BYTES 16
#define FLAG_OTHER_CLOCK 1u /* times are counts of the processor's clock */
/* V8 gives addresses of lines as in the ELF file that perf makes of a jitdump: its header's size is
 * added. */
#define V8_PLACES_AHEAD 64

enum record_kind {
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_DEBUG_INFO = 2,
};

struct record {
	uint32_t kind, size; /* size: of the whole record */
	uint64_t time_ns;
};

static enum status read_header(
	struct jit_dump *d, struct reader *r, uint64_t *out_taken, struct err *e)
{
	uint32_t magic = reader_u32(r), version = reader_u32(r);
	uint32_t size = reader_u32(r), machine = reader_u32(r);
	reader_skip(r, 4 + 4 + 8); /* padding, pid, time */
	uint64_t flags = reader_u64(r);
	if (r->failed)
		return OK; /* not yet written */
	if (magic != MAGIC || size < HEADER_BYTES || size > HEADER_BYTES_MAX)
		return err_set(e, E_CORRUPT, "jitdump: magic %x, header of %u bytes", magic, size);
	if (version != VERSION || machine != EM_X86_64)
		return err_set(
			e, E_UNSUPPORTED, "jitdump: version %u of machine %u", version, machine);
	d->has_header = true;
	d->other_clock = flags & FLAG_OTHER_CLOCK;
	*out_taken = size;
	return OK;
}

static struct jit_place take_place(struct reader *r)
{
	struct jit_place p = { .address = reader_u64(r) };
	int32_t line = reader_i32(r);
	reader_skip(r, 4); /* discriminator */
	p.line = line > 0 ? (uint32_t)line : 0;
	return p;
}

static bool is_near(uint64_t base, const struct jit_place *p)
{
	return p->address + JIT_CODE_BYTES_MAX - base < 2 * JIT_CODE_BYTES_MAX;
}

/* V8 (Node 20) writes file names from freed memory: their first bytes are random, and may be zeros.
 * All entries have the same length, so they are found by that; the file's name is in the name of
 * the code. Returns the length of an entry, or 0 if the names are good. */
static size_t even_length(struct reader r, uint64_t base, uint64_t count)
{
	size_t head = 8 + 4 + 4, length = count ? reader_left(&r) / count : 0;
	bool is_wrong = false;
	struct reader named = r;
	for (uint64_t i = 0; i < count && !is_wrong && !reader_done(&named); i++) {
		struct jit_place p = take_place(&named);
		is_wrong = !is_near(base, &p);
		(void)reader_cstr(&named);
	}
	if (!(is_wrong || named.failed) || length <= head)
		return 0;
	for (uint64_t i = 0; i < count; i++) {
		struct reader one = reader_sub(&r, length);
		struct jit_place p = take_place(&one);
		if (one.failed || !is_near(base, &p))
			return 0;
	}
	return length;
}

/* Reads the lines of the code that comes next. */
static void read_places(struct jit_dump *d, struct jit_map *m, struct reader r)
{
	uint64_t base = reader_u64(&r), count = reader_u64(&r);
	struct str file = STR("");
	d->has_places = true;
	d->places_of = base;
	d->place_first = jit_map_place_count(m);
	size_t even = even_length(r, base, count);
	uint64_t refused = jit_map_refused(m);
	for (uint64_t i = 0; i < count && !reader_done(&r) && jit_map_refused(m) == refused; i++) {
		struct reader one = even ? reader_sub(&r, even) : r;
		struct jit_place p = take_place(&one);
		struct str name = even ? STR("") : reader_cstr(&one);
		if (one.failed) {
			r.failed = true;
			break;
		}
		if (!even)
			r = one;
		if (!str_eq(name, STR("\xff"))) /* else it is the same as the one before */
			file = name;
		p.file = file;
		(void)jit_map_add_place(m, &p, base);
	}
	if (jit_map_refused(m) != refused) /* some are missing, so others would be wrong */
		jit_map_drop_places(m, d->place_first);
	d->place_count = jit_map_place_count(m) - d->place_first;
	if (r.failed)
		jit_map_add_bad(m);
}

/* Whether the code is V8's, by its name: "JS:*f file:1:2", "LazyCompile:~f …". */
static bool is_of_v8(struct str name)
{
	return jit_name_parse(name).kind == FRAME_V8JS;
}

/* Reads a name; a longer one is truncated. */
static struct str take_name(struct reader *r)
{
	struct reader cut = *r;
	struct str name = reader_cstr(r);
	if (!r->failed || reader_left(&cut) < JIT_NAME_BYTES_MAX)
		return name;
	*r = cut;
	return reader_str(r, JIT_NAME_BYTES_MAX);
}

static void read_load(
	struct jit_dump *d, struct jit_map *m, const struct record *rec, struct reader r)
{
	reader_skip(&r, 4 + 4 + 8); /* pid, tid, address in the file */
	struct jit_code c = { .since_ns = rec->time_ns };
	c.start = reader_u64(&r);
	c.size = reader_u64(&r);
	reader_skip(&r, 8); /* number */
	c.name = take_name(&r);
	bool has_places = d->has_places && d->places_of == c.start;
	d->has_places = false;
	if (r.failed) {
		jit_map_add_bad(m);
		return;
	}
	if (has_places && is_of_v8(c.name))
		jit_map_shift_places(m, d->place_first, d->place_count, V8_PLACES_AHEAD);
	jit_map_add_lines(m, &c, has_places ? d->place_first : 0, has_places ? d->place_count : 0);
}

static void read_move(struct jit_map *m, const struct record *rec, struct reader r)
{
	reader_skip(&r, 4 + 4 + 8);
	uint64_t from = reader_u64(&r);
	struct jit_code c = { .since_ns = rec->time_ns };
	c.start = reader_u64(&r);
	c.size = reader_u64(&r);
	if (r.failed)
		jit_map_add_bad(m);
	else
		(void)jit_map_add_moved(m, from, &c);
}

/* How many bytes of a record must be available before it is read. */
static size_t needed(const struct record *rec)
{
	size_t most = RECORD_BYTES + 40 + JIT_NAME_BYTES_MAX + 1;
	switch (rec->kind) {
	case CODE_LOAD:
	case CODE_MOVE:
		return MIN((size_t)rec->size, most);
	case CODE_DEBUG_INFO:
		return rec->size <= JIT_DUMP_WINDOW_BYTES ? rec->size : RECORD_BYTES;
	default:
		return RECORD_BYTES;
	}
}

static void read_record(
	struct jit_dump *d, struct jit_map *m, const struct record *rec, struct reader body)
{
	switch (rec->kind) {
	case CODE_LOAD:
		read_load(d, m, rec, body);
		break;
	case CODE_MOVE:
		read_move(m, rec, body);
		break;
	case CODE_DEBUG_INFO:
		if (rec->size <= JIT_DUMP_WINDOW_BYTES)
			read_places(d, m, body);
		else
			jit_map_add_bad(m);
		break;
	default: /* the end, unwinding information, future kinds */
		break;
	}
}

enum status jit_dump_read(struct jit_dump *d, struct jit_map *m, struct str window, uint64_t now_ns,
	uint64_t *out_taken, struct err *e)
{
	struct reader r = reader_over(window.p, window.len);
	uint64_t taken = 0;
	if (!d->has_header) {
		enum status s = read_header(d, &r, &taken, e);
		if (s != OK)
			return s;
	}
	while (d->has_header && taken <= window.len) {
		r = reader_over(window.p, window.len);
		reader_seek(&r, (size_t)taken);
		struct record rec = { .kind = reader_u32(&r), .size = reader_u32(&r) };
		rec.time_ns = reader_u64(&r);
		if (r.failed)
			break;
		if (rec.size < RECORD_BYTES)
			return err_set(e, E_CORRUPT, "jitdump: a record of %u bytes", rec.size);
		size_t need = needed(&rec) - RECORD_BYTES;
		if (reader_left(&r) < need)
			break;
		if (d->other_clock)
			rec.time_ns = now_ns;
		read_record(d, m, &rec, reader_over(r.at, need));
		taken += rec.size;
	}
	*out_taken = taken;
	return OK;
}
