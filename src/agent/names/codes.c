/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function's texts are one block of memory. The next function takes the place of a forgotten one,
 * so that indexes stay valid.
 *
 * When room is needed, all processes get the same limit of functions, as large as possible. So a
 * process with few functions keeps them whatever others do.
 */
#include "agent/names/codes.h"

#include "base/map.h"
#include "base/vec.h"
#include "runtimes/runtimes.h"

#include <stdlib.h>
#include <string.h>

/* In UTF-8, a text with one byte a character may become twice as long, and one with two bytes half
 * again as long. A byte that is no UTF-8 becomes three. */
#define TEXT_BYTES_MAX                                                            \
	(3 * (CODE_OWNER_BYTES_MAX + CODE_NAME_BYTES_MAX + CODE_FILE_BYTES_MAX) + \
		RUNTIMES_NAME_MORE_BYTES_MAX + CODE_LINES_BYTES_MAX)
/* Room is made until this share is left, of eighths. */
#define ROOM_EIGHTHS 7
/* Processes are told apart by so many hashes of their pids when room is made. */
#define SHARES 1024

/* A process that has ended. */
struct ended {
	uint64_t start_ns;
	uint32_t pid;
};

/* In one interval; of more the functions stay until they are the oldest. */
#define ENDED_MAX 65536

struct codes {
	VEC(struct code) v;      /* number 0: free */
	VEC(uint32_t) unused;    /* indexes of free ones */
	VEC(struct ended) ended; /* in this interval */
	struct map index;
	struct buf text;
	size_t bytes, bytes_max;
	uint64_t shares[SHARES]; /* of make_room_by() */
	uint32_t count;
	uint32_t epoch;
	bool missed;
	struct codes_metrics metrics;
};

struct code_key {
	uint64_t number;
	uint32_t pid;
};

static uint64_t key_hash(uint32_t pid, uint64_t number)
{
	return hash_u64(number + ((uint64_t)pid << 44));
}

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct codes *c = ctx;
	const struct code_key *k = key;
	return c->v.v[value].number == k->number && c->v.v[value].pid == k->pid;
}

static uint32_t find(const struct codes *c, uint32_t pid, uint64_t number)
{
	const struct code_key key = { number, pid };
	return map_find(&c->index, key_hash(pid, number), key_equal, c, &key);
}

static size_t bytes_of(const struct code *x)
{
	return sizeof(*x) + x->name.len + x->file.len + x->lines.len;
}

static void note_size(struct codes *c)
{
	metric_set(&c->metrics.known, c->count);
	metric_set(&c->metrics.bytes, c->bytes);
}

static void forget(struct codes *c, uint32_t i)
{
	struct code *x = &c->v.v[i];
	(void)map_remove(&c->index, key_hash(x->pid, x->number), i);
	c->bytes -= bytes_of(x);
	c->count--;
	free((void *)(uintptr_t)x->name.p);
	*x = (struct code){ 0 };
	if (!VEC_PUSH(&c->unused, i))
		return; /* its place is lost */
}

static uint64_t *share_of(struct codes *c, uint32_t pid)
{
	return &c->shares[hash_u64(pid) % SHARES];
}

/* The largest limit for one share with which all shares together fit into `room`. */
static uint64_t fair_share(const struct codes *c, uint64_t room)
{
	uint64_t fits = room / SHARES, over = room + 1;
	while (over - fits > 1) {
		uint64_t middle = fits + (over - fits) / 2, sum = 0;
		for (size_t i = 0; i < SHARES; i++)
			sum += MIN(c->shares[i], middle);
		*(sum <= room ? &fits : &over) = middle;
	}
	return fits;
}

/* Processes that have more than a fair share lose their least recently used functions. */
static void make_room_by(struct codes *c, bool by_bytes, uint64_t room)
{
	memset(c->shares, 0, sizeof(c->shares));
	for (uint32_t i = 0; i < c->v.len; i++) {
		if (c->v.v[i].number)
			*share_of(c, c->v.v[i].pid) += by_bytes ? bytes_of(&c->v.v[i]) : 1;
	}
	uint64_t fair = fair_share(c, room);
	for (uint32_t age = 64;; age /= 2) {
		for (uint32_t i = 0; i < c->v.len; i++) {
			const struct code *x = &c->v.v[i];
			uint64_t *share = share_of(c, x->pid);
			if (!x->number || *share <= fair || c->epoch - x->used_epoch < age)
				continue;
			*share -= by_bytes ? bytes_of(x) : 1;
			forget(c, i);
			metric_add(&c->metrics.forgotten, 1);
		}
		if (age == 0)
			return;
	}
}

static void make_room(struct codes *c)
{
	uint64_t bytes = c->bytes_max / 8 * ROOM_EIGHTHS, count = CODES_MAX / 8 * ROOM_EIGHTHS;
	if (c->bytes > bytes)
		make_room_by(c, true, bytes);
	if (c->count > count)
		make_room_by(c, false, count);
}

/* A piece of a source: where its lines end. */
static bool take_piece(struct codes *c, const struct event_code *e, struct code *out)
{
	struct str text = str_make(e->data, e->lines_bytes);
	if (!v8_newlines(&c->text, text, e->name_unit) || buf_status(&c->text) != OK)
		return false;
	char *block = malloc(c->text.len + 1);
	if (!block)
		return false;
	if (c->text.len)
		memcpy(block, c->text.data, c->text.len);
	out->unit = e->name_unit;
	out->name = str_make(block, 0);
	out->lines = str_make(block, c->text.len);
	return true;
}

/* The event's texts, in one block that begins with the name. */
static bool take_texts(struct codes *c, const struct event_code *e, struct code *out)
{
	const uint8_t *at = e->data;
	buf_clear(&c->text);
	if (e->kind == RUNTIME_V8 && e->form == RUNTIME_FORM_SOURCE)
		return take_piece(c, e, out);
	struct str told = str_make(at, e->name_bytes);
	if (e->kind == RUNTIME_LUA || e->kind == RUNTIME_LUAJIT)
		lua_name(&c->text, e->form, str_make(at + e->name_bytes, e->file_bytes),
			e->first_line);
	else if (e->kind != RUNTIME_HOTSPOT)
		runtimes_name(&c->text, e->kind, e->form, e->owner_bytes, told, e->name_unit);
	else if (e->name_unit)
		hotspot_name(&c->text, told, str_make(at + e->name_bytes, e->file_bytes));
	else
		hotspot_stub_name(&c->text, told);
	size_t name = c->text.len;
	at += e->name_bytes;
	struct str file_told = str_make(at, e->file_bytes);
	if (e->kind == RUNTIME_V8 && str_starts(file_told, STR("file:///"))) /* modules */
		file_told = str_sub(file_told, strlen("file://"), file_told.len);
	(void)runtimes_text(&c->text, file_told, e->file_unit);
	size_t file = c->text.len - name;
	at += e->file_bytes;
	buf_put(&c->text, at, e->lines_bytes);
	if (buf_status(&c->text) != OK)
		return false;
	char *block = malloc(c->text.len + 1);
	if (!block)
		return false;
	if (c->text.len)
		memcpy(block, c->text.data, c->text.len);
	out->name = str_make(block, name);
	out->file = str_make(block + name, file);
	out->lines = str_make(block + name + file, e->lines_bytes);
	return true;
}

static bool keep(struct codes *c, const struct code *x)
{
	uint32_t i = c->unused.len ? c->unused.v[c->unused.len - 1] : (uint32_t)c->v.len;
	if (i == c->v.len && !VEC_PUSH(&c->v, (struct code){ 0 }))
		return false;
	if (c->unused.len && c->unused.v[c->unused.len - 1] == i)
		c->unused.len--;
	c->v.v[i] = *x;
	if (!map_insert(&c->index, key_hash(x->pid, x->number), i)) {
		c->v.v[i] = (struct code){ 0 };
		return false;
	}
	c->bytes += bytes_of(x);
	c->count++;
	return true;
}

void codes_add(struct codes *c, const struct event_code *e)
{
	metric_add(&c->metrics.told, 1);
	uint32_t i = find(c, e->pid, e->code);
	if (i != MAP_NONE) {
		c->v.v[i].used_epoch = c->epoch;
		return;
	}
	struct code x = { .number = e->code,
		.pid = e->pid,
		.kind = e->kind,
		.version = e->version,
		.form = e->form,
		.first_line = e->first_line,
		.process_start_ns = e->process_start_ns,
		.used_epoch = c->epoch };
	if (c->bytes > c->bytes_max - TEXT_BYTES_MAX || c->count >= CODES_MAX)
		make_room(c);
	bool taken = take_texts(c, e, &x);
	if (taken && x.kind == RUNTIME_HOTSPOT)
		(void)hotspot_line(x.version, x.lines, 0, &x.first_line);
	if (!taken || !keep(c, &x)) {
		if (taken)
			free((void *)(uintptr_t)x.name.p);
		metric_add(&c->metrics.refused, 1);
		return;
	}
	note_size(c);
}

const struct code *codes_find(struct codes *c, uint32_t pid, uint64_t number)
{
	uint32_t i = find(c, pid, number);
	if (i == MAP_NONE) {
		c->missed = true;
		metric_add(&c->metrics.unknown, 1);
		return NULL;
	}
	c->v.v[i].used_epoch = c->epoch;
	return &c->v.v[i];
}

uint32_t codes_line(const struct code *x, uint64_t position)
{
	uint32_t line = 0;
	if (position >= FRAME_POSITION_NONE)
		return 0;
	if (x->kind == RUNTIME_CPYTHON)
		(void)cpython_line(x->version, x->first_line, x->lines, (uint32_t)position, &line);
	else if (x->kind == RUNTIME_HOTSPOT)
		(void)hotspot_line(x->version, x->lines, (uint32_t)position, &line);
	else if (x->kind != RUNTIME_V8)
		line = (uint32_t)position; /* the kernel has looked it up */
	return line;
}

/* The line of a character of the source; 0: a piece before it is not known. */
static uint32_t line_of(
	struct codes *c, uint32_t pid, const struct v8_function *f, uint32_t character)
{
	uint32_t line = 1 + f->first_line, unit = 1;
	for (uint32_t piece = 0; piece < V8_PIECES_MAX; piece++) {
		uint32_t i = find(c, pid, v8_piece_number(f->source, piece));
		if (i == MAP_NONE || c->v.v[i].form != RUNTIME_FORM_SOURCE)
			return 0;
		struct code *x = &c->v.v[i];
		x->used_epoch = c->epoch;
		unit = x->unit;
		line += v8_newlines_before(x->lines, character);
		if (character < V8_PIECE_BYTES / unit)
			return line;
		character -= V8_PIECE_BYTES / unit;
	}
	return 0;
}

/* Of a function of V8, at a character of its source. */
static struct code_lines lines_of(struct codes *c, const struct code *x, uint32_t character)
{
	struct code_lines lines = { 0 };
	struct v8_function f;
	if (x->form == RUNTIME_FORM_CODE || !v8_function_told(x->version, x->lines, &f))
		return lines;
	lines.first = line_of(c, x->pid, &f, f.begin);
	if (character != V8_CHARACTER_NONE)
		lines.line = line_of(c, x->pid, &f, character);
	return lines;
}

struct code_lines codes_lines(struct codes *c, const struct code *x, uint64_t position)
{
	struct v8_function f;
	uint32_t character = V8_CHARACTER_NONE;
	if (x->kind != RUNTIME_V8)
		return (struct code_lines){ x->first_line, codes_line(x, position) };
	if (position < FRAME_POSITION_NONE && v8_function_told(x->version, x->lines, &f) &&
		!v8_source_position(&f, (uint32_t)position, &character))
		character = V8_CHARACTER_NONE;
	return lines_of(c, x, character);
}

static_assert(CODE_FRAMES_MAX >= V8_CODE_FRAMES_MAX, "all of V8's have room");

size_t codes_frames(struct codes *c, const struct code *x, uint64_t position,
	struct code_frame out[CODE_FRAMES_MAX])
{
	struct v8_code code;
	struct v8_code_frame frames[V8_CODE_FRAMES_MAX];
	if (x->form != RUNTIME_FORM_CODE || !v8_code_told(x->version, x->lines, &code)) {
		out[0] = (struct code_frame){ x, codes_lines(c, x, position) };
		return 1;
	}
	uint32_t pid = x->pid;
	size_t n = v8_code_frames(&code, (uint32_t)position, frames);
	for (size_t i = 0; i < n; i++) {
		const struct code *f = codes_find(c, pid, frames[i].function);
		out[i] = (struct code_frame){ .function = f };
		if (f)
			out[i].lines = lines_of(c, f, frames[i].character);
	}
	return n;
}

void codes_process_ended(struct codes *c, const struct event_header *exit)
{
	const struct ended x = { exit->process_start_ns, exit->pid };
	if (c->count && c->ended.len < ENDED_MAX && !VEC_PUSH(&c->ended, x))
		return; /* they stay until they are the oldest */
}

static int compare_ended(const void *pa, const void *pb)
{
	const struct ended *a = pa, *b = pb;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

void codes_next_epoch(struct codes *c)
{
	if (c->ended.len > 1)
		qsort(c->ended.v, c->ended.len, sizeof(*c->ended.v), compare_ended);
	for (uint32_t i = 0; i < c->v.len; i++) {
		struct code *x = &c->v.v[i];
		const struct ended key = { x->process_start_ns, x->pid };
		if (x->number && c->ended.len && !x->ended_epoch &&
			bsearch(&key, c->ended.v, c->ended.len, sizeof(key), compare_ended))
			x->ended_epoch = c->epoch;
		else if (x->ended_epoch && c->epoch - x->ended_epoch >= CODES_REST_EPOCHS)
			forget(c, i);
	}
	VEC_CLEAR(&c->ended);
	c->epoch++;
	note_size(c);
}

bool codes_missed(struct codes *c)
{
	bool missed = c->missed;
	c->missed = false;
	return missed;
}

enum status codes_new(size_t bytes_max, struct codes **out, struct err *e)
{
	struct codes *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, E_NOMEM, "codes");
	c->bytes_max = bytes_max;
	c->epoch = 1;
	buf_init(&c->text, TEXT_BYTES_MAX);
	*out = c;
	return OK;
}

void codes_free(struct codes *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->v.len; i++)
		free((void *)(uintptr_t)c->v.v[i].name.p);
	VEC_FREE(&c->v);
	VEC_FREE(&c->unused);
	VEC_FREE(&c->ended);
	map_deinit(&c->index);
	buf_deinit(&c->text);
	free(c);
}

const struct codes_metrics *codes_metrics(const struct codes *c)
{
	return &c->metrics;
}

void codes_write_metrics(const struct codes *c, struct buf *out)
{
	static const struct metric_def defs[] = { CODES_METRICS(METRIC_DEF) };
	metrics_write(out, defs, (const metric_value *)&c->metrics, ARRAY_COUNT(defs));
}
