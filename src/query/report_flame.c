/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the fold comes depth first, rows are numbered depth by depth: the counts of nodes of each
 * depth give the first row of each. Then the columns are written one by one from the cells of each
 * frame, which are made once; a dictionary holds only the texts that its column uses. One
 * thread of the pool can write the columns of values while another writes those of frames.
 *
 * Parca's rules (pkg/query/flamegraph_arrow.go): a child is kept when its value is above the share
 * of its parent's, cut to a whole number in single precision; the root's value is the sum of its
 * kept children, its own one 0; integers are as narrow as their largest value allows; without any
 * row but the root, its values are null.
 */
#include "query/fold.h"
#include "query/lines.h"
#include "query/loaded.h"
#include "query/plan.h"
#include "query/sums.h"
#include "query/tree.h"

#include "arrow/arrow.h"
#include "os/os.h"

#include <stdatomic.h>

#define RECORD_BYTES_MAX ((size_t)1 << 30)

enum text { TEXT_MAPPING, TEXT_BUILD_ID, TEXT_NAME, TEXT_SYSTEM_NAME, TEXT_FILE, TEXT_COUNT };

/* A frame's cells; texts are numbers of tables.strings + 1, 0: null. */
struct cells {
	uint64_t address;
	uint32_t texts[TEXT_COUNT];
	uint32_t line, start_line;
	bool has_function;
};

/* The columns that one thread writes, with room for one of them at a time. */
struct columns {
	const struct flame *f;
	struct arrow_writer w;
	int64_t *ints;
	uint8_t *valid;
	uint32_t *indices;
	struct str *texts;
	uint32_t *numbers; /* by text of the tables: its number in the dictionary + 1; of frames */
	struct map text_index; /* of labels */
	size_t text_count;
	bool no_memory;
};

struct flame {
	const struct query_tree *t;
	struct query_fold fold;
	const struct query_report_request *r;
	struct arena *a;
	struct cells *cells; /* by line */
	size_t count;        /* of rows; each array below is by row */
	uint32_t *node;      /* of the fold; only if labels, times or differences are asked for */
	uint32_t *line;      /* lines.v, QUERY_LINE_NONE */
	uint8_t *mixed;
	uint32_t *child_count;
	int64_t *total, *self;
	uint32_t height;
	uint32_t *depth_end; /* by depth: the row behind its last */
	struct columns frames, values;
	atomic_uint next; /* which of these two is begun next */
};

/* ---- what a frame says ---- */

/* A function's empty texts become null. */
static void fill_function(const struct profile *p, uint32_t number, struct cells *out)
{
	const struct profile_line *line = &p->lines.v[number];
	const struct profile_function *fn = &p->functions.v[line->function];
	uint32_t name = fn->name ? fn->name : fn->system_name;
	out->texts[TEXT_NAME] = name ? name + 1 : 0;
	out->texts[TEXT_SYSTEM_NAME] = fn->system_name ? fn->system_name + 1 : 0;
	out->texts[TEXT_FILE] = fn->filename ? fn->filename + 1 : 0;
	out->line = line->line;
	out->start_line = fn->start_line;
	out->has_function = true;
}

/* A mapping without a build id has "" and not null. */
static enum status make_cells(struct flame *f, struct err *e)
{
	const struct profile *p = &f->t->stacks.tables;
	size_t count = f->t->lines.first[p->locations.len];
	f->cells = ARENA_ARRAY(f->a, struct cells, count);
	if (!f->cells)
		return err_set(e, arena_status(f->a), "%zu frames", count);
	for (size_t i = 0; i < count; i++) {
		const struct query_line *line = &f->t->lines.v[i];
		const struct profile_location *l = &p->locations.v[line->location];
		const struct profile_mapping *m = &p->mappings.v[l->mapping];
		struct cells *out = &f->cells[i];
		*out = (struct cells){ .address = l->address };
		if (l->mapping) {
			out->texts[TEXT_MAPPING] = m->filename + 1;
			out->texts[TEXT_BUILD_ID] = m->build_id + 1;
		}
		if (line->line != QUERY_LINE_NONE)
			fill_function(p, line->line, out);
	}
	return OK;
}

/* ---- rows ---- */

/* row_of[]: by node of the fold, first its depth, then its row. The counts of nodes of each depth
 * give the first row of each. */
static enum status number_rows(struct flame *f, uint32_t *row_of, struct err *e)
{
	const struct query_fold_node *v = f->fold.nodes.v;
	for (size_t i = 1; i < f->count; i++) {
		row_of[i] = row_of[v[i].parent] + 1;
		f->height = MAX(f->height, row_of[i]);
	}
	uint32_t *begin = f->depth_end = ARENA_ARRAY(f->a, uint32_t, f->height + 2);
	if (!begin)
		return err_set(e, arena_status(f->a), "flame graph of %zu rows", f->count);
	for (size_t i = 0; i < f->count; i++)
		begin[row_of[i] + 1]++;
	for (size_t d = 1; d <= f->height; d++)
		begin[d] += begin[d - 1];
	for (size_t i = 0; i < f->count; i++)
		row_of[i] = begin[row_of[i]]++;
	return OK;
}

/* Children of one parent follow each other in the fold (depth first) as in the rows (depth by
 * depth), where the children of the next row come after them. */
static void fill_rows(struct flame *f, const uint32_t *row_of)
{
	f->line[0] = QUERY_LINE_NONE;
	for (uint32_t i = 1; i < f->count; i++) {
		const struct query_fold_node *n = &f->fold.nodes.v[i];
		uint32_t row = row_of[i];
		f->line[row] = n->line;
		f->mixed[row] = n->mixed;
		f->total[row] = n->total;
		f->self[row] = n->self;
		f->child_count[row_of[n->parent]]++;
		if (n->parent == 0)
			f->total[0] = query_add(f->total[0], n->total);
		if (f->node)
			f->node[row] = i;
	}
}

static bool reserve_columns(const struct flame *f, size_t texts, struct columns *c)
{
	c->ints = ARENA_ARRAY(f->a, int64_t, f->count);
	c->valid = ARENA_ARRAY(f->a, uint8_t, f->count);
	c->indices = ARENA_ARRAY(f->a, uint32_t, f->count + 1);
	/* A dictionary holds each text once, and not more texts than there are rows. */
	c->texts = ARENA_ARRAY(f->a, struct str, MIN(texts, f->count));
	return c->ints && c->valid && c->indices && c->texts;
}

static bool reserve(struct flame *f)
{
	const struct query_stacks *s = &f->t->stacks;
	size_t texts = s->tables.strings.len;
	bool nodes = f->r->label_count || f->r->chart || f->r->diff;
	f->line = ARENA_ARRAY(f->a, uint32_t, f->count);
	f->child_count = ARENA_ARRAY(f->a, uint32_t, f->count);
	f->node = nodes ? ARENA_ARRAY(f->a, uint32_t, f->count) : NULL;
	f->total = ARENA_ARRAY(f->a, int64_t, f->count);
	f->self = ARENA_ARRAY(f->a, int64_t, f->count);
	f->mixed = ARENA_ARRAY(f->a, uint8_t, f->count);
	f->frames.numbers = ARENA_ARRAY(f->a, uint32_t, texts);
	return f->line && f->child_count && (f->node || !nodes) && f->total && f->self &&
	       f->mixed && f->frames.numbers && reserve_columns(f, texts, &f->frames) &&
	       reserve_columns(f, (size_t)s->group_count * f->r->label_count, &f->values);
}

static enum status make_rows(struct flame *f, struct err *e)
{
	f->count = f->fold.nodes.len;
	if (f->count > QUERY_FLAME_NODES_MAX)
		return err_set(e, E_LIMIT,
			"a flame graph of %zu rows, at most %u are answered: set "
			"node_trim_threshold, or choose a shorter time range",
			f->count, QUERY_FLAME_NODES_MAX);
	if (!reserve(f))
		return err_set(e, arena_status(f->a), "flame graph of %zu rows", f->count);
	enum status s = make_cells(f, e);
	if (s == OK)
		s = number_rows(f, f->values.indices, e);
	if (s == OK)
		fill_rows(f, f->values.indices);
	return s;
}

/* ---- columns ---- */

static const struct query_fold_node *node_of(const struct flame *f, size_t i)
{
	return &f->fold.nodes.v[f->node[i]];
}

static bool is_frame(const struct flame *f, size_t i)
{
	return f->line[i] != QUERY_LINE_NONE;
}

/* The frame's cells where its frames agree about a column; else NULL. */
static const struct cells *cells_of(const struct flame *f, size_t i, unsigned mixed)
{
	return is_frame(f, i) && !(f->mixed[i] & mixed) ? &f->cells[f->line[i]] : NULL;
}

/* With valid[] where there may be nulls; bits 0: as narrow as possible. */
static void put_ints(struct columns *c, struct str name, const int64_t *ints, uint8_t bits,
	bool is_signed, bool nulls)
{
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_INT,
					  .bits = bits,
					  .is_signed = is_signed,
					  .valid = nulls ? c->valid : NULL,
					  .ints = ints });
}

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	return str_eq(((const struct columns *)ctx)->texts[value], *(const struct str *)key);
}

static void set_text(struct columns *c, size_t i, struct str text)
{
	/* Texts of the tables are interned, so equal texts have equal addresses. */
	uint64_t hash = hash_u64((uint64_t)(uintptr_t)text.p ^ text.len);
	uint32_t at = map_find(&c->text_index, hash, text_equal, c, &text);
	c->valid[i] = 1;
	if (at == MAP_NONE) {
		at = (uint32_t)c->text_count++;
		c->texts[at] = text;
		if (!map_insert(&c->text_index, hash, at))
			c->no_memory = true;
	}
	c->indices[i] = at;
}

static void begin_texts(struct columns *c)
{
	const struct flame *f = c->f;
	map_clear(&c->text_index);
	c->text_count = 0;
	memset(c->valid, 0, f->count);
}

static void put_texts(struct columns *c, struct str name)
{
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_DICT_BINARY,
					  .indices = c->indices,
					  .texts = c->texts,
					  .text_count = c->text_count,
					  .valid = c->valid });
}

static void put_labels_only(struct columns *c)
{
	const struct flame *f = c->f;
	uint8_t *flags = (uint8_t *)c->ints;
	for (size_t i = 0; i < f->count; i++) {
		c->valid[i] = i > 0;
		flags[i] = i > 0 && !is_frame(f, i);
	}
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = STR("labels_only"),
					  .kind = ARROW_WRITE_BOOL,
					  .bools = flags,
					  .valid = c->valid });
}

static void put_inlined(struct columns *c)
{
	const struct flame *f = c->f;
	uint8_t *flags = (uint8_t *)c->ints;
	for (size_t i = 0; i < f->count; i++) {
		c->valid[i] = i == 0 || (is_frame(f, i) && !(f->mixed[i] & QUERY_MIXED_INLINED));
		flags[i] = is_frame(f, i) && f->t->lines.v[f->line[i]].inlined;
	}
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = STR("inlined"),
					  .kind = ARROW_WRITE_BOOL,
					  .nullable = true,
					  .bools = flags,
					  .valid = c->valid });
}

static void put_address(struct columns *c)
{
	const struct flame *f = c->f;
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *cells = cells_of(f, i, QUERY_MIXED_ADDRESS);
		c->valid[i] = cells != NULL;
		c->ints[i] = cells ? (int64_t)cells->address : 0;
	}
	put_ints(c, STR("location_address"), c->ints, 64, false, true);
}

static void put_line(struct columns *c, bool start)
{
	const struct flame *f = c->f;
	unsigned mixed = start ? QUERY_MIXED_START_LINE : QUERY_MIXED_LINE;
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *cells = cells_of(f, i, mixed);
		c->valid[i] = cells && cells->has_function;
		c->ints[i] = !c->valid[i] ? 0 : start ? cells->start_line : cells->line;
	}
	put_ints(c, start ? STR("function_startline") : STR("location_line"), c->ints, 0, false,
		true);
}

static void put_text(struct columns *c, struct str name, enum text which, unsigned mixed)
{
	const struct flame *f = c->f;
	const struct profile *p = &f->t->stacks.tables;
	c->text_count = 0;
	memset(c->numbers, 0, p->strings.len * sizeof(*c->numbers));
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *cells = cells_of(f, i, mixed);
		uint32_t id = cells ? cells->texts[which] : 0;
		c->valid[i] = id != 0;
		if (id == 0)
			continue;
		if (c->numbers[id - 1] == 0) {
			c->texts[c->text_count++] = profile_str(p, id - 1);
			c->numbers[id - 1] = (uint32_t)c->text_count;
		}
		c->indices[i] = c->numbers[id - 1] - 1;
	}
	put_texts(c, name);
}

/* Null for rows without children. As rows are numbered depth by depth, the lists of children
 * together are all rows but the root, in order. */
static void put_children(struct columns *c)
{
	const struct flame *f = c->f;
	uint32_t *offsets = c->indices;
	size_t elements = 0;
	for (size_t i = 0; i < f->count; i++) {
		offsets[i] = (uint32_t)elements;
		c->valid[i] = f->child_count[i] > 0;
		elements += f->child_count[i];
	}
	offsets[f->count] = (uint32_t)elements;
	for (size_t i = 0; i < elements; i++)
		c->ints[i] = (int64_t)i + 1;
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = STR("children"),
					  .kind = ARROW_WRITE_LIST,
					  .bits = 32,
					  .ints = c->ints,
					  .offsets = offsets,
					  .valid = c->valid });
}

static void put_parent(struct columns *c)
{
	const struct flame *f = c->f;
	c->ints[0] = -1;
	for (size_t i = 0, row = 1; i < f->count; i++)
		for (size_t end = row + f->child_count[i]; row < end; row++)
			c->ints[row] = (int64_t)i;
	put_ints(c, STR("parent"), c->ints, 32, true, false);
}

/* Without any row but the root, values are null. */
static bool set_alone(struct columns *c)
{
	const struct flame *f = c->f;
	c->valid[0] = 0;
	return f->count == 1;
}

/* Where a row begins, as a sum of values from the left: children lie side by side from the begin of
 * their parent. */
static void put_offset(struct columns *c)
{
	const struct flame *f = c->f;
	c->ints[0] = 0;
	for (size_t parent = 0, row = 1; parent < f->count; parent++) {
		int64_t at = c->ints[parent];
		for (size_t end = row + f->child_count[parent]; row < end; row++) {
			c->ints[row] = at;
			at = query_add(at, f->total[row]);
		}
	}
	put_ints(c, STR("value_offset"), c->ints, 0, false, false);
}

static void put_values(struct columns *c)
{
	const struct flame *f = c->f;
	bool alone = set_alone(c);
	put_ints(c, STR("cumulative"), f->total, alone ? 64 : 0, false, alone);
	put_ints(c, STR("flat"), f->self, 0, false, alone);
	for (size_t i = 0; i < f->count; i++)
		c->ints[i] = f->r->diff ? node_of(f, i)->total_diff : 0;
	put_ints(c, STR("diff"), c->ints, 0, true, alone);
	for (size_t i = 0; i < f->count; i++)
		c->ints[i] = f->r->chart ? node_of(f, i)->time_ns : 0;
	put_ints(c, STR("timestamp"), c->ints, 64, true, alone);
	for (size_t i = 0, depth = 0; i < f->count; i++) {
		depth += i == f->depth_end[depth];
		c->ints[i] = (int64_t)depth;
	}
	put_ints(c, STR("depth"), c->ints, 0, false, alone);
}

/* A column for each label that some row has. */
static void put_labels(struct columns *c)
{
	const struct flame *f = c->f;
	const struct query_stacks *s = &f->t->stacks;
	for (uint32_t k = 0; k < f->r->label_count; k++) {
		const char *name = arena_printf(f->a, "labels.%.*s", STR_ARG(f->r->labels[k]));
		bool any = false;
		begin_texts(c);
		for (size_t i = 0; i < f->count; i++) {
			uint32_t group = node_of(f, i)->group;
			struct str value =
				group ? s->groups[group * f->r->label_count + k] : STR("");
			if (value.len > 0)
				set_text(c, i, value);
			any |= value.len > 0;
		}
		if (name && any)
			put_texts(c, str_of(name));
		c->no_memory |= !name;
	}
}

/* Columns of frames that have a dictionary. */
#define FRAME_DICTIONARIES 5

static void write_frames(struct columns *c)
{
	put_labels_only(c);
	put_address(c);
	put_text(c, STR("mapping_file"), TEXT_MAPPING, QUERY_MIXED_MAPPING);
	put_text(c, STR("mapping_build_id"), TEXT_BUILD_ID, QUERY_MIXED_BUILD_ID);
	put_line(c, false);
	put_inlined(c);
	put_line(c, true);
	put_text(c, STR("function_name"), TEXT_NAME, 0);
	put_text(c, STR("function_system_name"), TEXT_SYSTEM_NAME, QUERY_MIXED_SYSTEM_NAME);
	put_text(c, STR("function_file_name"), TEXT_FILE, QUERY_MIXED_FILE);
}

static void write_values(struct columns *c)
{
	put_children(c);
	put_parent(c);
	put_values(c);
	put_offset(c);
	put_labels(c);
}

static void write_next(void *ctx, unsigned worker)
{
	struct flame *f = ctx;
	(void)worker;
	for (unsigned i; (i = atomic_fetch_add(&f->next, 1)) < 2;)
		if (i == 0)
			write_frames(&f->frames);
		else
			write_values(&f->values);
}

static enum status write_record(
	struct flame *f, struct os_pool *pool, struct buf *out, struct err *e)
{
	struct arrow_writer *w = &f->frames.w;
	arrow_write_begin(w, f->count, ARROW_WRITE_LZ4, RECORD_BYTES_MAX);
	arrow_write_split(w, FRAME_DICTIONARIES, &f->values.w);
	os_pool_run(pool, 2, write_next, f);
	arrow_write_join(w, &f->values.w);
	enum status s = arrow_write_end(w, false, out, e);
	if (s == OK && f->values.no_memory)
		return err_set(e, E_NOMEM, "flame graph of %zu rows", f->count);
	return s;
}

static enum status flame(struct flame *f, struct os_pool *pool, struct buf *out, struct err *e)
{
	enum status s = query_fold_make(
		&f->fold, f->t, f->r, QUERY_TRIM_ABOVE, 0, QUERY_REPORT_BYTES_MAX, e);
	if (s == OK)
		s = make_rows(f, e);
	return s == OK ? write_record(f, pool, out, e) : s;
}

enum status query_flame_arrow(const struct query_engine *q, const struct query_report_request *r,
	struct buf *out, struct query_report *info, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = query_tree_make(&t, q, r, &a, e);
	if (s != OK)
		return s;
	struct flame f = { .t = &t, .r = r, .a = &a };
	f.frames.f = f.values.f = &f;
	s = flame(&f, q->pool, out, e);
	if (s == OK) {
		query_tree_info(&t, info);
		info->height = (int32_t)f.height + 1;
		info->trimmed = f.fold.trimmed;
	}
	map_deinit(&f.values.text_index);
	query_fold_deinit(&f.fold);
	return s;
}
