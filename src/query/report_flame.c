/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: rows are numbered breadth first by walking them in their own order: the kept children of row
 * i are appended behind all rows there are, and what they say is taken then: calls lie in another
 * order, and each look at one of a million is a miss of the cache. Then column by column;
 * dictionaries hold what the column uses.
 *
 * Parca's rules (pkg/query/flamegraph_arrow.go): a child is kept when its value is above the share
 * of its parent's, cut to a whole number in single precision; the root's value is the sum of its
 * kept children, its own one 0; integers are as narrow as their largest value allows; without any
 * row but the root, its values are null.
 */
#include "query/report.h"

#include "arrow/arrow.h"

#define RECORD_BYTES_MAX ((size_t)1 << 30)

enum text { TEXT_MAPPING, TEXT_BUILD_ID, TEXT_NAME, TEXT_SYSTEM_NAME, TEXT_FILE, TEXT_COUNT };
#define HAS_ADDRESS 0x1u
#define HAS_LINE 0x2u
#define HAS_START_LINE 0x4u
#define HAS_INLINED 0x8u
#define IS_INLINED 0x10u
#define IS_FRAME 0x20u

struct row {
	uint32_t call;
	uint32_t parent; /* row */
	uint32_t depth;
	uint32_t child_count; /* their rows follow each other: BFS keeps siblings together */
	uint32_t first_child;
	int64_t offset; /* of value, from the left */
	int64_t total, self;
};

/* What a row says of its frame; texts are numbers of tables.strings + 1, 0: null. */
struct cells {
	uint64_t address;
	uint32_t texts[TEXT_COUNT];
	uint32_t line, start_line;
	uint8_t has; /* HAS_…, IS_… */
};

struct flame {
	const struct query_calls *c;
	const struct query_report_request *r;
	struct arena *a;
	struct arrow_writer w;
	struct row *rows;
	struct cells *cells; /* by row */
	size_t count;
	int64_t root_total;
	int64_t trimmed;
	uint32_t height;
	/* for one column at a time */
	int64_t *ints;
	uint8_t *valid;
	uint32_t *indices;
	struct str *texts;
	uint32_t *numbers; /* by text of the tables: its number in the column's dictionary + 1 */
	struct map text_index; /* of labels */
	size_t text_count;
	bool no_memory;
};

/* ---- what a row says of its frame ---- */

static uint32_t text_unless(bool unknown, uint32_t id)
{
	return unknown ? 0 : id + 1;
}

/* Texts of a function that are empty are null. */
static void fill_function(const struct flame *f, const struct query_call *call, struct cells *out)
{
	const struct profile *p = &f->c->stacks.tables;
	const struct profile_line *line = &p->lines.v[call->line];
	const struct profile_function *fn = &p->functions.v[line->function];
	uint32_t name = fn->name ? fn->name : fn->system_name;
	out->texts[TEXT_NAME] = text_unless(name == 0, name);
	out->texts[TEXT_SYSTEM_NAME] = text_unless(
		fn->system_name == 0 || (call->mixed & QUERY_MIXED_SYSTEM_NAME), fn->system_name);
	out->texts[TEXT_FILE] =
		text_unless(fn->filename == 0 || (call->mixed & QUERY_MIXED_FILE), fn->filename);
	out->line = line->line;
	out->start_line = fn->start_line;
	if (!(call->mixed & QUERY_MIXED_LINE))
		out->has |= HAS_LINE;
	if (!(call->mixed & QUERY_MIXED_START_LINE))
		out->has |= HAS_START_LINE;
}

/* A mapping without a build id has an empty one. */
static void fill_cells(const struct flame *f, const struct query_call *call, struct cells *out)
{
	const struct profile *p = &f->c->stacks.tables;
	*out = (struct cells){ 0 };
	if (call->inlined)
		out->has |= IS_INLINED;
	if (call->key == QUERY_LINE_NONE)
		return;
	const struct profile_location *l = &p->locations.v[call->location];
	const struct profile_mapping *m = &p->mappings.v[l->mapping];
	out->has |= IS_FRAME;
	out->address = l->address;
	if (!(call->mixed & QUERY_MIXED_INLINED))
		out->has |= HAS_INLINED;
	if (!(call->mixed & QUERY_MIXED_ADDRESS))
		out->has |= HAS_ADDRESS;
	out->texts[TEXT_MAPPING] =
		text_unless(l->mapping == 0 || (call->mixed & QUERY_MIXED_MAPPING), m->filename);
	out->texts[TEXT_BUILD_ID] =
		text_unless(l->mapping == 0 || (call->mixed & QUERY_MIXED_BUILD_ID), m->build_id);
	if (call->line != QUERY_LINE_NONE)
		fill_function(f, call, out);
}

/* ---- rows ---- */

static int64_t least_of(int64_t total, double share)
{
	float least = (float)total * (float)share;
	return least >= 0x1p63f ? INT64_MAX : (int64_t)least;
}

/* How many rows ahead memory is asked for what they need: in turn where the children of a call are
 * listed, the list, the first child. */
#define AHEAD 8u

static void add_children(struct flame *f, size_t i)
{
	const struct query_calls *c = f->c;
	struct row *row = &f->rows[i];
	/* (Not in a function of its own: gcc 12 takes one that only prefetches for one that does
	 * nothing.) */
	if (i + 3 * AHEAD < f->count)
		__builtin_prefetch(&c->first_child[f->rows[i + 3 * AHEAD].call]);
	if (i + 2 * AHEAD < f->count)
		__builtin_prefetch(&c->child[c->first_child[f->rows[i + 2 * AHEAD].call]]);
	if (i + AHEAD < f->count) {
		uint32_t first = c->first_child[f->rows[i + AHEAD].call];
		const struct query_call *child = &c->v.v[first < c->v.len ? c->child[first] : 0];
		__builtin_prefetch(child);
		__builtin_prefetch((const char *)(child + 1) - 1);
	}
	int64_t least = least_of(row->total, f->r->trim), offset = row->offset;
	row->first_child = (uint32_t)f->count;
	for (uint32_t k = c->first_child[row->call]; k < c->first_child[row->call + 1]; k++) {
		const struct query_call *child = &c->v.v[c->child[k]];
		if (child->total <= least) {
			f->trimmed = query_add(f->trimmed, child->total);
			continue;
		}
		fill_cells(f, child, &f->cells[f->count]);
		f->rows[f->count++] = (struct row){ .call = c->child[k],
			.parent = (uint32_t)i,
			.depth = row->depth + 1,
			.offset = offset,
			.total = child->total,
			.self = child->self };
		offset = query_add(offset, child->total);
		f->height = MAX(f->height, row->depth + 1);
	}
	row->child_count = (uint32_t)f->count - row->first_child;
}

static enum status make_rows(struct flame *f, struct err *e)
{
	const struct query_calls *c = f->c;
	f->rows = ARENA_ARRAY(f->a, struct row, c->v.len);
	f->cells = ARENA_ARRAY(f->a, struct cells, c->v.len);
	if (!f->rows || !f->cells)
		return err_set(e, arena_status(f->a), "flame graph of %zu calls", c->v.len);
	f->rows[0] = (struct row){ .total = c->v.v[0].total };
	fill_cells(f, &c->v.v[0], &f->cells[0]);
	f->count = 1;
	for (size_t i = 0; i < f->count; i++)
		add_children(f, i);
	for (uint32_t i = 0; i < f->rows[0].child_count; i++)
		f->root_total = query_add(f->root_total, f->rows[1 + i].total);
	if (f->count > QUERY_FLAME_NODES_MAX)
		return err_set(e, E_LIMIT,
			"a flame graph of %zu rows, at most %u are answered: set "
			"node_trim_threshold, or choose a shorter time range",
			f->count, QUERY_FLAME_NODES_MAX);
	f->ints = ARENA_ARRAY(f->a, int64_t, f->count);
	f->valid = ARENA_ARRAY(f->a, uint8_t, f->count);
	f->indices = ARENA_ARRAY(f->a, uint32_t, f->count + 1);
	/* Each text once, and no more than there are rows. */
	size_t texts = MAX((size_t)c->stacks.tables.strings.len,
		(size_t)c->stacks.group_count * f->r->label_count);
	f->texts = ARENA_ARRAY(f->a, struct str, MIN(texts, f->count));
	f->numbers = ARENA_ARRAY(f->a, uint32_t, c->stacks.tables.strings.len);
	if (!f->ints || !f->valid || !f->indices || !f->texts || !f->numbers)
		return err_set(e, arena_status(f->a), "flame graph of %zu rows", f->count);
	return OK;
}

/* ---- columns ---- */

static const struct query_call *call_of(const struct flame *f, size_t i)
{
	return &f->c->v.v[f->rows[i].call];
}

static bool is_frame(const struct flame *f, size_t i)
{
	return (f->cells[i].has & IS_FRAME) != 0;
}

/* ints[] with valid[]; bits 0: as narrow as possible. */
static void put_ints(struct flame *f, struct str name, uint8_t bits, bool is_signed, bool nulls)
{
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_INT,
					  .bits = bits,
					  .is_signed = is_signed,
					  .valid = nulls ? f->valid : NULL,
					  .ints = f->ints });
}

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	return str_eq(((const struct flame *)ctx)->texts[value], *(const struct str *)key);
}

static void set_text(struct flame *f, size_t i, struct str text)
{
	/* Texts of the tables are interned: their address says which they are. */
	uint64_t hash = hash_u64((uint64_t)(uintptr_t)text.p ^ text.len);
	uint32_t at = map_find(&f->text_index, hash, text_equal, f, &text);
	f->valid[i] = 1;
	if (at == MAP_NONE) {
		at = (uint32_t)f->text_count++;
		f->texts[at] = text;
		if (!map_insert(&f->text_index, hash, at))
			f->no_memory = true;
	}
	f->indices[i] = at;
}

static void begin_texts(struct flame *f)
{
	map_clear(&f->text_index);
	f->text_count = 0;
	memset(f->valid, 0, f->count);
}

static void put_texts(struct flame *f, struct str name)
{
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_DICT_BINARY,
					  .indices = f->indices,
					  .texts = f->texts,
					  .text_count = f->text_count,
					  .valid = f->valid });
}

static void put_labels_only(struct flame *f)
{
	uint8_t *flags = (uint8_t *)f->ints;
	for (size_t i = 0; i < f->count; i++) {
		f->valid[i] = i > 0;
		flags[i] = i > 0 && !is_frame(f, i);
	}
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = STR("labels_only"),
					  .kind = ARROW_WRITE_BOOL,
					  .bools = flags,
					  .valid = f->valid });
}

static void put_inlined(struct flame *f)
{
	uint8_t *flags = (uint8_t *)f->ints;
	for (size_t i = 0; i < f->count; i++) {
		f->valid[i] = i == 0 || (f->cells[i].has & HAS_INLINED);
		flags[i] = (f->cells[i].has & IS_INLINED) != 0;
	}
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = STR("inlined"),
					  .kind = ARROW_WRITE_BOOL,
					  .nullable = true,
					  .bools = flags,
					  .valid = f->valid });
}

static void put_address(struct flame *f)
{
	for (size_t i = 0; i < f->count; i++) {
		f->valid[i] = (f->cells[i].has & HAS_ADDRESS) != 0;
		f->ints[i] = f->valid[i] ? (int64_t)f->cells[i].address : 0;
	}
	put_ints(f, STR("location_address"), 64, false, true);
}

static void put_line(struct flame *f, bool start)
{
	unsigned has = start ? HAS_START_LINE : HAS_LINE;
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *c = &f->cells[i];
		f->valid[i] = (c->has & has) != 0;
		f->ints[i] = !f->valid[i] ? 0 : start ? c->start_line : c->line;
	}
	put_ints(f, start ? STR("function_startline") : STR("location_line"), 0, false, true);
}

static void put_text(struct flame *f, struct str name, enum text which)
{
	const struct profile *p = &f->c->stacks.tables;
	f->text_count = 0;
	memset(f->numbers, 0, p->strings.len * sizeof(*f->numbers));
	for (size_t i = 0; i < f->count; i++) {
		uint32_t id = f->cells[i].texts[which];
		f->valid[i] = id != 0;
		if (id == 0)
			continue;
		if (f->numbers[id - 1] == 0) {
			f->texts[f->text_count++] = profile_str(p, id - 1);
			f->numbers[id - 1] = (uint32_t)f->text_count;
		}
		f->indices[i] = f->numbers[id - 1] - 1;
	}
	put_texts(f, name);
}

/* Null for rows without children. */
static void put_children(struct flame *f)
{
	uint32_t *offsets = f->indices;
	size_t elements = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct row *row = &f->rows[i];
		offsets[i] = (uint32_t)elements;
		f->valid[i] = row->child_count > 0;
		for (uint32_t k = 0; k < row->child_count; k++)
			f->ints[elements++] = row->first_child + k;
	}
	offsets[f->count] = (uint32_t)elements;
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = STR("children"),
					  .kind = ARROW_WRITE_LIST,
					  .bits = 32,
					  .ints = f->ints,
					  .offsets = offsets,
					  .valid = f->valid });
}

static void put_parent(struct flame *f)
{
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = i ? (int64_t)f->rows[i].parent : -1;
	put_ints(f, STR("parent"), 32, true, false);
}

/* Without rows but the root there is nothing to say. */
static bool set_alone(struct flame *f)
{
	f->valid[0] = 0;
	return f->count == 1;
}

static void put_values(struct flame *f)
{
	bool alone = set_alone(f);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = i ? f->rows[i].total : f->root_total;
	put_ints(f, STR("cumulative"), alone ? 64 : 0, false, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = i ? f->rows[i].self : 0;
	put_ints(f, STR("flat"), 0, false, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = f->r->diff ? call_of(f, i)->total_diff : 0;
	put_ints(f, STR("diff"), 0, true, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = f->r->chart ? call_of(f, i)->time_ns : 0;
	put_ints(f, STR("timestamp"), 64, true, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = f->rows[i].depth;
	put_ints(f, STR("depth"), 0, false, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = f->rows[i].offset;
	put_ints(f, STR("value_offset"), 0, false, false);
}

/* A column for each label that some row has. */
static void put_labels(struct flame *f)
{
	const struct query_stacks *s = &f->c->stacks;
	for (uint32_t k = 0; k < f->r->label_count; k++) {
		const char *name = arena_printf(f->a, "labels.%.*s", STR_ARG(f->r->labels[k]));
		bool any = false;
		begin_texts(f);
		for (size_t i = 0; i < f->count; i++) {
			uint32_t group = call_of(f, i)->group;
			struct str value =
				group ? s->groups[group * f->r->label_count + k] : STR("");
			if (value.len > 0)
				set_text(f, i, value);
			any |= value.len > 0;
		}
		if (name && any)
			put_texts(f, str_of(name));
		f->no_memory |= !name;
	}
}

static enum status write_record(struct flame *f, struct buf *out, struct err *e)
{
	arrow_write_begin(&f->w, f->count, ARROW_WRITE_LZ4, RECORD_BYTES_MAX);
	put_labels_only(f);
	put_address(f);
	put_text(f, STR("mapping_file"), TEXT_MAPPING);
	put_text(f, STR("mapping_build_id"), TEXT_BUILD_ID);
	put_line(f, false);
	put_inlined(f);
	put_line(f, true);
	put_text(f, STR("function_name"), TEXT_NAME);
	put_text(f, STR("function_system_name"), TEXT_SYSTEM_NAME);
	put_text(f, STR("function_file_name"), TEXT_FILE);
	put_children(f);
	put_parent(f);
	put_values(f);
	put_labels(f);
	enum status s = arrow_write_end(&f->w, false, out, e);
	if (s == OK && f->no_memory)
		return err_set(e, E_NOMEM, "flame graph of %zu rows", f->count);
	return s;
}

void query_report_info(const struct query_calls *c, struct query_report *info)
{
	struct str unit = str_sub(c->stacks.unit, 0, sizeof(info->unit) - 1);
	*info = (struct query_report){
		.total = c->total, .filtered = c->filtered, .found = c->stacks.sample_count > 0
	};
	if (unit.len)
		memcpy(info->unit, unit.p, unit.len);
}

enum status query_flame_arrow(const struct query_engine *q, const struct query_report_request *r,
	struct buf *out, struct query_report *info, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct query_calls c;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = query_calls_make(&c, q, r, &a, e);
	if (s != OK)
		return s;
	struct flame f = { .c = &c, .r = r, .a = &a };
	s = make_rows(&f, e);
	if (s == OK)
		s = write_record(&f, out, e);
	if (s == OK) {
		query_report_info(&c, info);
		info->height = (int32_t)f.height + 1;
		info->trimmed = f.trimmed;
	}
	map_deinit(&f.text_index);
	query_calls_deinit(&c);
	return s;
}
