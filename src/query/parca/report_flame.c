/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the fold comes depth first, rows are numbered depth by depth: the counts of nodes of each
 * depth give the first row of each, and one pass over the nodes fills the rows, which goes on at
 * one place in each depth. Then the columns are written one by one from the cells of each frame,
 * which are made once; a dictionary holds only the texts that its column uses. If another thread is
 * idle, it writes the second half of the columns at the same time.
 *
 * Parca's rules (pkg/query/flamegraph_arrow.go): a child is kept when its value is above the share
 * of its parent's, cut to a whole number in single precision; the root's value is the sum of its
 * kept children, its own one 0; integers are as narrow as their largest value allows; without any
 * row but the root, its values are null.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"

#include "arrow/arrow.h"
#include "os/os.h"

#include <stdatomic.h>

#define RECORD_BYTES_MAX ((size_t)1 << 30)
#define RECORD_BYTES_PER_ROW 48 /* at most, nearly always */
#define FIRST_HALF_DICTIONARIES 2

enum text { TEXT_MAPPING, TEXT_BUILD_ID, TEXT_NAME, TEXT_SYSTEM_NAME, TEXT_FILE, TEXT_COUNT };

/* A frame's cells; texts are numbers of tables.strings + 1, 0: null. */
struct cells {
	uint64_t address;
	uint32_t texts[TEXT_COUNT];
	uint32_t line, start_line;
};
/* What most columns ask of a frame; a byte each, for the processor's cache. */
#define MARK_FRAME 1u
#define MARK_FUNCTION 2u
#define MARK_INLINED 4u

/* Half of the columns, as one thread makes them. */
struct columns {
	const struct flame *f;
	struct arrow_writer w;
	/* For one column at a time, with room for one more than rows. */
	uint32_t *words;
	int64_t *ints;
	uint8_t *valid;
	uint32_t *codes; /* by line */
	struct str *texts;
	uint32_t *numbers; /* by text of the tables: its number in the column's dictionary + 1 */
	struct map text_index; /* of labels */
	size_t text_count;
	bool no_memory;
};

struct flame {
	const struct query_tree *t;
	struct query_fold fold;
	const struct query_report_request *r;
	struct arena *a;
	struct cells *cells; /* by line; the last one, all null, is of rows without a frame */
	uint8_t *marks;      /* by line: MARK_… */
	uint32_t line_count; /* with that one */
	size_t count;        /* of rows; each array below is by row */
	uint32_t *node;      /* of the fold; only if times or differences are asked for */
	uint32_t *group;     /* of labels; only if these are asked for */
	uint32_t *line;      /* number of its cells */
	uint8_t *mixed;
	uint32_t *child_count;
	int64_t *total, *self;
	uint32_t *depth;
	uint32_t height;
	uint32_t *depth_end; /* by depth: the row behind its last */
	struct columns halves[2];
	atomic_bool second_taken;
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
}

/* A mapping without a build id has "" and not null. */
static enum status make_cells(struct flame *f, struct err *e)
{
	const struct profile *p = &f->t->stacks.tables;
	size_t count = f->t->lines.first[p->locations.len];
	f->line_count = (uint32_t)count + 1;
	f->cells = ARENA_ARRAY(f->a, struct cells, f->line_count);
	f->marks = ARENA_ARRAY(f->a, uint8_t, f->line_count);
	if (!f->cells || !f->marks)
		return err_set(e, arena_status(f->a), "%zu frames", count);
	for (size_t i = 0; i < count; i++) {
		const struct query_line *line = &f->t->lines.v[i];
		const struct profile_location *l = &p->locations.v[line->location];
		const struct profile_mapping *m = &p->mappings.v[l->mapping];
		struct cells *out = &f->cells[i];
		out->address = l->address;
		f->marks[i] = line->inlined ? MARK_FRAME | MARK_INLINED : MARK_FRAME;
		if (l->mapping) {
			out->texts[TEXT_MAPPING] = m->filename + 1;
			out->texts[TEXT_BUILD_ID] = m->build_id + 1;
		}
		if (line->line == QUERY_LINE_NONE)
			continue;
		fill_function(p, line->line, out);
		f->marks[i] |= MARK_FUNCTION;
	}
	return OK;
}

/* ---- rows ---- */

/* depth[]: by node of the fold. The counts of nodes of each depth give the first row of each. */
static enum status number_rows(struct flame *f, uint32_t *depth, struct err *e)
{
	const struct query_fold_node *v = f->fold.nodes.v;
	for (size_t i = 1; i < f->count; i++) {
		depth[i] = depth[v[i].parent] + 1;
		f->height = MAX(f->height, depth[i]);
	}
	uint32_t *begin = f->depth_end = ARENA_ARRAY(f->a, uint32_t, f->height + 2);
	if (!begin)
		return err_set(e, arena_status(f->a), "flame graph of %zu rows", f->count);
	for (size_t i = 0; i < f->count; i++)
		begin[depth[i] + 1]++;
	for (size_t d = 1; d <= f->height; d++)
		begin[d] += begin[d - 1];
	return OK;
}

/* Children of one parent follow each other in the fold (depth first) as in the rows (depth by
 * depth). The node above is the last one so far of the depth above. */
static void fill_rows(struct flame *f, const uint32_t *depth)
{
	const struct query_fold_node *v = f->fold.nodes.v;
	uint32_t *restrict next = f->depth_end; /* by depth: the next row */
	uint32_t *restrict line = f->line, *restrict child_count = f->child_count;
	uint32_t *restrict node = f->node, *restrict group = f->group;
	uint8_t *restrict mixed = f->mixed;
	int64_t *restrict total = f->total, *restrict self = f->self;
	uint32_t none = f->line_count - 1;
	line[0] = none;
	next[0] = 1;
	for (size_t i = 1, count = f->count; i < count; i++) {
		uint32_t row = next[depth[i]]++;
		line[row] = MIN(v[i].line, none);
		mixed[row] = v[i].mixed;
		total[row] = v[i].total;
		self[row] = v[i].self;
		child_count[next[depth[i] - 1] - 1]++;
		if (v[i].parent == 0)
			total[0] = query_add(total[0], v[i].total);
		if (node)
			node[row] = (uint32_t)i;
		if (group)
			group[row] = v[i].group;
	}
}

/* The arrays of rows are cut from one piece: the system has large pages only for large pieces. */
static bool reserve(struct flame *f)
{
	uint32_t **columns[5] = { &f->line, &f->child_count, &f->depth };
	size_t column_count = 3, room = f->count + 1;
	if (f->r->chart || f->r->diff)
		columns[column_count++] = &f->node;
	if (f->r->label_count)
		columns[column_count++] = &f->group;
	int64_t *at = ARENA_ARRAY(f->a, int64_t, room * (2 * 8 + column_count * 4 + 1) / 8 + 1);
	if (!at)
		return false;
	f->total = at;
	f->self = at + room;
	uint32_t *column = (uint32_t *)(at + 2 * room);
	for (size_t i = 0; i < column_count; i++, column += room)
		*columns[i] = column;
	f->mixed = (uint8_t *)column;
	return true;
}

/* Nothing needs the nodes of the fold once the rows are made, and fresh memory costs more than most
 * of what is done for a column. */
static bool reserve_columns(struct flame *f)
{
	const struct query_stacks *s = &f->t->stacks;
	size_t room = f->count + 1, strings = s->tables.strings.len;
	/* A dictionary holds each text once, and not more texts than there are rows. */
	size_t texts = MIN(MAX(strings, (size_t)s->group_count * f->r->label_count), f->count);
	unsigned char *at = (unsigned char *)f->fold.nodes.v;
	assert(2 * room * (8 + 4 + 1) <= f->fold.nodes.cap * sizeof(*f->fold.nodes.v));
	for (size_t i = 0; i < 2; i++) {
		struct columns *c = &f->halves[i];
		c->f = f;
		c->ints = (int64_t *)(void *)(at + i * room * 8);
		c->words = (uint32_t *)(void *)(at + room * (2 * 8 + i * 4));
		c->valid = at + room * (2 * 8 + 2 * 4 + i);
		c->codes = ARENA_ARRAY(f->a, uint32_t, f->line_count);
		c->texts = ARENA_ARRAY(f->a, struct str, texts);
		c->numbers = ARENA_ARRAY(f->a, uint32_t, strings);
		if (!c->codes || !c->texts || !c->numbers)
			return false;
	}
	return true;
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
		s = number_rows(f, f->depth, e);
	if (s != OK)
		return s;
	fill_rows(f, f->depth);
	if (!reserve_columns(f))
		return err_set(e, arena_status(f->a), "flame graph of %zu rows", f->count);
	return OK;
}

/* ---- columns ---- */

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

/* The same of words[]. */
static void put_words(struct columns *c, struct str name, uint8_t bits, bool is_signed, bool nulls)
{
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_INT,
					  .bits = bits,
					  .is_signed = is_signed,
					  .valid = nulls ? c->valid : NULL,
					  .words = c->words });
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
	c->words[i] = at;
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
					  .indices = c->words,
					  .texts = c->texts,
					  .text_count = c->text_count,
					  .valid = c->valid });
}

static void put_flags(struct columns *c, struct str name, bool nullable, const uint8_t *flags)
{
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_BOOL,
					  .nullable = nullable,
					  .bools = flags,
					  .valid = c->valid });
}

static void put_labels_only(struct columns *c)
{
	const struct flame *f = c->f;
	uint8_t *flags = (uint8_t *)c->ints;
	uint32_t none = f->line_count - 1;
	for (size_t i = 0; i < f->count; i++)
		flags[i] = f->line[i] == none;
	memset(c->valid, 1, f->count);
	flags[0] = c->valid[0] = 0;
	put_flags(c, STR("labels_only"), false, flags);
}

static void put_inlined(struct columns *c)
{
	const struct flame *f = c->f;
	uint8_t *flags = (uint8_t *)c->ints;
	for (size_t i = 0; i < f->count; i++) {
		uint8_t marks = f->marks[f->line[i]];
		flags[i] = (marks & MARK_INLINED) != 0;
		c->valid[i] = (marks & MARK_FRAME) && !(f->mixed[i] & QUERY_MIXED_INLINED);
	}
	c->valid[0] = 1;
	put_flags(c, STR("inlined"), true, flags);
}

static void put_address(struct columns *c)
{
	const struct flame *f = c->f;
	for (size_t i = 0; i < f->count; i++) {
		uint32_t line = f->line[i];
		bool valid = (f->marks[line] & MARK_FRAME) && !(f->mixed[i] & QUERY_MIXED_ADDRESS);
		c->valid[i] = valid;
		c->ints[i] = valid ? (int64_t)f->cells[line].address : 0;
	}
	put_ints(c, STR("location_address"), c->ints, 64, false, true);
}

static void put_line(struct columns *c, bool start)
{
	const struct flame *f = c->f;
	unsigned mixed = start ? QUERY_MIXED_START_LINE : QUERY_MIXED_LINE;
	for (uint32_t l = 0; l < f->line_count; l++)
		c->codes[l] = start ? f->cells[l].start_line : f->cells[l].line;
	for (size_t i = 0; i < f->count; i++) {
		uint32_t line = f->line[i];
		bool valid = (f->marks[line] & MARK_FUNCTION) && !(f->mixed[i] & mixed);
		c->valid[i] = valid;
		c->words[i] = valid ? c->codes[line] : 0;
	}
	put_words(c, start ? STR("function_startline") : STR("location_line"), 0, false, true);
}

#define CODE_NULL 0u
#define CODE_NEW UINT32_MAX /* the text's number in the dictionary is not yet known */

/* The number + 1 of the line's text, which is not null. */
static uint32_t number_text(struct columns *c, const struct cells *cells, enum text which)
{
	const struct flame *f = c->f;
	uint32_t id = cells->texts[which] - 1;
	if (c->numbers[id] == 0) {
		c->texts[c->text_count++] = profile_str(&f->t->stacks.tables, id);
		c->numbers[id] = (uint32_t)c->text_count;
	}
	return c->numbers[id];
}

static void put_text(struct columns *c, struct str name, enum text which, unsigned mixed)
{
	const struct flame *f = c->f;
	c->text_count = 0;
	memset(c->numbers, 0, f->t->stacks.tables.strings.len * sizeof(*c->numbers));
	for (uint32_t l = 0; l < f->line_count; l++)
		c->codes[l] = f->cells[l].texts[which] ? CODE_NEW : CODE_NULL;
	for (size_t i = 0; i < f->count; i++) {
		uint32_t line = f->line[i];
		uint32_t code = f->mixed[i] & mixed ? CODE_NULL : c->codes[line];
		if (code == CODE_NEW)
			code = c->codes[line] = number_text(c, &f->cells[line], which);
		c->valid[i] = code != CODE_NULL;
		c->words[i] = code - (code != CODE_NULL);
	}
	put_texts(c, name);
}

/* Null for rows without children. As rows are numbered depth by depth, the lists of children
 * together are all rows but the root, in order. */
static void put_children(struct columns *c)
{
	const struct flame *f = c->f;
	uint32_t *offsets = c->words, *rows = (uint32_t *)c->ints;
	size_t elements = 0;
	for (size_t i = 0; i < f->count; i++) {
		offsets[i] = (uint32_t)elements;
		c->valid[i] = f->child_count[i] > 0;
		elements += f->child_count[i];
	}
	offsets[f->count] = (uint32_t)elements;
	for (size_t i = 0; i < elements; i++)
		rows[i] = (uint32_t)i + 1;
	arrow_write_column(&c->w, &(struct arrow_write_column){ .name = STR("children"),
					  .kind = ARROW_WRITE_LIST,
					  .bits = 32,
					  .words = rows,
					  .offsets = offsets,
					  .valid = c->valid });
}

static void put_parent(struct columns *c)
{
	const struct flame *f = c->f;
	c->words[0] = UINT32_MAX; /* -1 */
	for (uint32_t i = 0, row = 1; i < f->count; i++)
		for (uint32_t end = row + f->child_count[i]; row < end; row++)
			c->words[row] = i;
	put_words(c, STR("parent"), 32, true, false);
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

static void put_diff(struct columns *c, bool alone)
{
	const struct flame *f = c->f;
	if (f->r->diff) {
		for (size_t i = 0; i < f->count; i++)
			c->ints[i] = query_fold_diff(&f->fold, f->node[i]);
		put_ints(c, STR("diff"), c->ints, 0, true, alone);
		return;
	}
	memset(c->words, 0, f->count * sizeof(*c->words));
	put_words(c, STR("diff"), 8, true, alone);
}

static void put_times(struct columns *c, bool alone)
{
	const struct flame *f = c->f;
	if (!f->r->chart)
		memset(c->ints, 0, f->count * sizeof(*c->ints));
	for (size_t i = 0; f->r->chart && i < f->count; i++)
		c->ints[i] = f->fold.time_ns.v[f->node[i]];
	put_ints(c, STR("timestamp"), c->ints, 64, true, alone);
}

static void put_values(struct columns *c)
{
	const struct flame *f = c->f;
	bool alone = set_alone(c);
	put_ints(c, STR("cumulative"), f->total, alone ? 64 : 0, false, alone);
	put_ints(c, STR("flat"), f->self, 0, false, alone);
	put_diff(c, alone);
	put_times(c, alone);
	for (uint32_t i = 0, depth = 0; depth <= f->height; depth++)
		for (; i < f->depth_end[depth]; i++)
			c->words[i] = depth;
	put_words(c, STR("depth"), 0, false, alone);
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
			uint32_t group = f->group[i];
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

static void put_first_half(struct columns *c)
{
	put_labels_only(c);
	put_address(c);
	put_text(c, STR("mapping_file"), TEXT_MAPPING, QUERY_MIXED_MAPPING);
	put_text(c, STR("mapping_build_id"), TEXT_BUILD_ID, QUERY_MIXED_BUILD_ID);
	put_line(c, false);
	put_inlined(c);
	put_line(c, true);
}

static void put_second_half(struct columns *c)
{
	put_text(c, STR("function_name"), TEXT_NAME, 0);
	put_text(c, STR("function_system_name"), TEXT_SYSTEM_NAME, QUERY_MIXED_SYSTEM_NAME);
	put_text(c, STR("function_file_name"), TEXT_FILE, QUERY_MIXED_FILE);
	put_children(c);
	put_parent(c);
	put_values(c);
	put_offset(c);
	put_labels(c);
}

/* The second half is for another thread, if one is idle before the first half is done. Only the
 * second half allocates from the arena. */
static void put_half(void *ctx, unsigned worker)
{
	struct flame *f = ctx;
	if (worker == 0)
		put_first_half(&f->halves[0]);
	if (!atomic_exchange(&f->second_taken, true))
		put_second_half(&f->halves[worker]);
}

static enum status write_record(
	struct flame *f, struct os_pool *pool, struct buf *out, struct err *e)
{
	struct columns *first = &f->halves[0], *second = &f->halves[1];
	arrow_write_begin(&first->w, f->count, ARROW_WRITE_LZ4, RECORD_BYTES_MAX);
	arrow_write_begin_part(
		&second->w, f->count, FIRST_HALF_DICTIONARIES, ARROW_WRITE_LZ4, RECORD_BYTES_MAX);
	arrow_write_expect(&first->w, f->count * RECORD_BYTES_PER_ROW);
	os_pool_run(pool, 2, put_half, f);
	arrow_write_append(&first->w, &second->w);
	enum status s = arrow_write_end(&first->w, false, out, e);
	if (s == OK && (first->no_memory || second->no_memory))
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
	s = flame(&f, q->pool, out, e);
	if (s == OK) {
		query_tree_info(&t, info);
		info->height = (int32_t)f.height + 1;
		info->trimmed = f.fold.trimmed;
	}
	for (size_t i = 0; i < 2; i++)
		map_deinit(&f.halves[i].text_index);
	query_fold_deinit(&f.fold);
	return s;
}
