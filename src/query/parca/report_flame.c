/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the fold comes depth first, rows are numbered depth by depth: the counts of nodes of each
 * depth give the first row of each, and one pass over the nodes fills the rows, which goes on at
 * one place in each depth. Then the columns are written one by one from the cells of each frame,
 * which are made once; a dictionary holds only the texts that its column uses.
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

#define RECORD_BYTES_MAX ((size_t)1 << 30)

enum text { TEXT_MAPPING, TEXT_BUILD_ID, TEXT_NAME, TEXT_SYSTEM_NAME, TEXT_FILE, TEXT_COUNT };

/* A frame's cells; texts are numbers of tables.strings + 1, 0: null. */
struct cells {
	uint64_t address;
	uint32_t texts[TEXT_COUNT];
	uint32_t line, start_line;
	bool is_frame, has_function, inlined;
};

struct flame {
	const struct query_tree *t;
	struct query_fold fold;
	const struct query_report_request *r;
	struct arena *a;
	struct arrow_writer w;
	struct cells *cells; /* by line; the last one, all null, is of rows without a frame */
	uint32_t line_count; /* with that one */
	uint32_t *codes;     /* by line, for one column at a time */
	size_t count;        /* of rows; each array below is by row */
	uint32_t *node;      /* of the fold; only if times or differences are asked for */
	uint32_t *group;     /* of labels; only if these are asked for */
	uint32_t *line;      /* number of its cells */
	uint8_t *mixed;
	uint32_t *child_count;
	int64_t *total, *self;
	uint32_t height;
	uint32_t *depth_end; /* by depth: the row behind its last */
	/* For one column at a time, with room for one more than rows. ints and valid lie in the
	 * memory of the fold's nodes, which nothing needs once the rows are made. */
	uint32_t *words;
	int64_t *ints;
	uint8_t *valid;
	struct str *texts;
	uint32_t *numbers; /* by text of the tables: its number in the column's dictionary + 1 */
	struct map text_index; /* of labels */
	size_t text_count;
	bool no_memory;
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
	f->line_count = (uint32_t)count + 1;
	f->cells = ARENA_ARRAY(f->a, struct cells, f->line_count);
	f->codes = ARENA_ARRAY(f->a, uint32_t, f->line_count);
	if (!f->cells || !f->codes)
		return err_set(e, arena_status(f->a), "%zu frames", count);
	for (size_t i = 0; i < count; i++) {
		const struct query_line *line = &f->t->lines.v[i];
		const struct profile_location *l = &p->locations.v[line->location];
		const struct profile_mapping *m = &p->mappings.v[l->mapping];
		struct cells *out = &f->cells[i];
		*out = (struct cells){
			.address = l->address, .is_frame = true, .inlined = line->inlined
		};
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
	const struct query_stacks *s = &f->t->stacks;
	uint32_t **columns[5] = { &f->line, &f->child_count, &f->words };
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
	/* A dictionary holds each text once, and not more texts than there are rows. */
	size_t texts =
		MAX((size_t)s->tables.strings.len, (size_t)s->group_count * f->r->label_count);
	f->texts = ARENA_ARRAY(f->a, struct str, MIN(texts, f->count));
	f->numbers = ARENA_ARRAY(f->a, uint32_t, s->tables.strings.len);
	return f->texts && f->numbers;
}

/* Fresh memory costs more than most of what is done for a column. */
static void reuse_nodes(struct flame *f)
{
	size_t room = f->count + 1;
	assert(room * (sizeof(*f->ints) + 1) <= f->fold.nodes.cap * sizeof(*f->fold.nodes.v));
	f->ints = (int64_t *)(void *)f->fold.nodes.v;
	f->valid = (uint8_t *)(f->ints + room);
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
		s = number_rows(f, f->words, e);
	if (s != OK)
		return s;
	fill_rows(f, f->words);
	reuse_nodes(f);
	return OK;
}

/* ---- columns ---- */

/* With valid[] where there may be nulls; bits 0: as narrow as possible. */
static void put_ints(struct flame *f, struct str name, const int64_t *ints, uint8_t bits,
	bool is_signed, bool nulls)
{
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_INT,
					  .bits = bits,
					  .is_signed = is_signed,
					  .valid = nulls ? f->valid : NULL,
					  .ints = ints });
}

/* The same of words[]. */
static void put_words(struct flame *f, struct str name, uint8_t bits, bool is_signed, bool nulls)
{
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_INT,
					  .bits = bits,
					  .is_signed = is_signed,
					  .valid = nulls ? f->valid : NULL,
					  .words = f->words });
}

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	return str_eq(((const struct flame *)ctx)->texts[value], *(const struct str *)key);
}

static void set_text(struct flame *f, size_t i, struct str text)
{
	/* Texts of the tables are interned, so equal texts have equal addresses. */
	uint64_t hash = hash_u64((uint64_t)(uintptr_t)text.p ^ text.len);
	uint32_t at = map_find(&f->text_index, hash, text_equal, f, &text);
	f->valid[i] = 1;
	if (at == MAP_NONE) {
		at = (uint32_t)f->text_count++;
		f->texts[at] = text;
		if (!map_insert(&f->text_index, hash, at))
			f->no_memory = true;
	}
	f->words[i] = at;
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
					  .indices = f->words,
					  .texts = f->texts,
					  .text_count = f->text_count,
					  .valid = f->valid });
}

static void put_flags(struct flame *f, struct str name, bool nullable, const uint8_t *flags)
{
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_BOOL,
					  .nullable = nullable,
					  .bools = flags,
					  .valid = f->valid });
}

static void put_labels_only(struct flame *f)
{
	uint8_t *flags = (uint8_t *)f->ints;
	uint32_t none = f->line_count - 1;
	for (size_t i = 0; i < f->count; i++)
		flags[i] = f->line[i] == none;
	memset(f->valid, 1, f->count);
	flags[0] = f->valid[0] = 0;
	put_flags(f, STR("labels_only"), false, flags);
}

/* codes[]: bit 0 of what is inlined, bit 1 of frames. */
static void put_inlined(struct flame *f)
{
	uint8_t *flags = (uint8_t *)f->ints;
	for (uint32_t l = 0; l < f->line_count; l++)
		f->codes[l] = f->cells[l].inlined | (uint32_t)f->cells[l].is_frame << 1;
	for (size_t i = 0; i < f->count; i++) {
		uint32_t code = f->codes[f->line[i]];
		flags[i] = code & 1;
		f->valid[i] = code >> 1 && !(f->mixed[i] & QUERY_MIXED_INLINED);
	}
	f->valid[0] = 1;
	put_flags(f, STR("inlined"), true, flags);
}

static void put_address(struct flame *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *c = &f->cells[f->line[i]];
		bool valid = c->is_frame && !(f->mixed[i] & QUERY_MIXED_ADDRESS);
		f->valid[i] = valid;
		f->ints[i] = valid ? (int64_t)c->address : 0;
	}
	put_ints(f, STR("location_address"), f->ints, 64, false, true);
}

static void put_line(struct flame *f, bool start)
{
	unsigned mixed = start ? QUERY_MIXED_START_LINE : QUERY_MIXED_LINE;
	for (uint32_t l = 0; l < f->line_count; l++)
		f->codes[l] = start ? f->cells[l].start_line : f->cells[l].line;
	for (size_t i = 0; i < f->count; i++) {
		bool valid = f->cells[f->line[i]].has_function && !(f->mixed[i] & mixed);
		f->valid[i] = valid;
		f->words[i] = valid ? f->codes[f->line[i]] : 0;
	}
	put_words(f, start ? STR("function_startline") : STR("location_line"), 0, false, true);
}

#define CODE_NULL 0u
#define CODE_NEW UINT32_MAX /* the text's number in the dictionary is not yet known */

/* The number + 1 of the line's text, which is not null. */
static uint32_t number_text(struct flame *f, const struct cells *c, enum text which)
{
	uint32_t id = c->texts[which] - 1;
	if (f->numbers[id] == 0) {
		f->texts[f->text_count++] = profile_str(&f->t->stacks.tables, id);
		f->numbers[id] = (uint32_t)f->text_count;
	}
	return f->numbers[id];
}

static void put_text(struct flame *f, struct str name, enum text which, unsigned mixed)
{
	f->text_count = 0;
	memset(f->numbers, 0, f->t->stacks.tables.strings.len * sizeof(*f->numbers));
	for (uint32_t l = 0; l < f->line_count; l++)
		f->codes[l] = f->cells[l].texts[which] ? CODE_NEW : CODE_NULL;
	for (size_t i = 0; i < f->count; i++) {
		uint32_t line = f->line[i];
		uint32_t code = f->mixed[i] & mixed ? CODE_NULL : f->codes[line];
		if (code == CODE_NEW)
			code = f->codes[line] = number_text(f, &f->cells[line], which);
		f->valid[i] = code != CODE_NULL;
		f->words[i] = code - (code != CODE_NULL);
	}
	put_texts(f, name);
}

/* Null for rows without children. As rows are numbered depth by depth, the lists of children
 * together are all rows but the root, in order. */
static void put_children(struct flame *f)
{
	uint32_t *offsets = f->words, *rows = (uint32_t *)f->ints;
	size_t elements = 0;
	for (size_t i = 0; i < f->count; i++) {
		offsets[i] = (uint32_t)elements;
		f->valid[i] = f->child_count[i] > 0;
		elements += f->child_count[i];
	}
	offsets[f->count] = (uint32_t)elements;
	for (size_t i = 0; i < elements; i++)
		rows[i] = (uint32_t)i + 1;
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = STR("children"),
					  .kind = ARROW_WRITE_LIST,
					  .bits = 32,
					  .words = rows,
					  .offsets = offsets,
					  .valid = f->valid });
}

static void put_parent(struct flame *f)
{
	f->words[0] = UINT32_MAX; /* -1 */
	for (uint32_t i = 0, row = 1; i < f->count; i++)
		for (uint32_t end = row + f->child_count[i]; row < end; row++)
			f->words[row] = i;
	put_words(f, STR("parent"), 32, true, false);
}

/* Without any row but the root, values are null. */
static bool set_alone(struct flame *f)
{
	f->valid[0] = 0;
	return f->count == 1;
}

/* Where a row begins, as a sum of values from the left: children lie side by side from the begin of
 * their parent. */
static void put_offset(struct flame *f)
{
	f->ints[0] = 0;
	for (size_t parent = 0, row = 1; parent < f->count; parent++) {
		int64_t at = f->ints[parent];
		for (size_t end = row + f->child_count[parent]; row < end; row++) {
			f->ints[row] = at;
			at = query_add(at, f->total[row]);
		}
	}
	put_ints(f, STR("value_offset"), f->ints, 0, false, false);
}

static void put_diff(struct flame *f, bool alone)
{
	if (f->r->diff) {
		for (size_t i = 0; i < f->count; i++)
			f->ints[i] = query_fold_diff(&f->fold, f->node[i]);
		put_ints(f, STR("diff"), f->ints, 0, true, alone);
		return;
	}
	memset(f->words, 0, f->count * sizeof(*f->words));
	put_words(f, STR("diff"), 8, true, alone);
}

static void put_times(struct flame *f, bool alone)
{
	if (!f->r->chart)
		memset(f->ints, 0, f->count * sizeof(*f->ints));
	for (size_t i = 0; f->r->chart && i < f->count; i++)
		f->ints[i] = f->fold.time_ns.v[f->node[i]];
	put_ints(f, STR("timestamp"), f->ints, 64, true, alone);
}

static void put_values(struct flame *f)
{
	bool alone = set_alone(f);
	put_ints(f, STR("cumulative"), f->total, alone ? 64 : 0, false, alone);
	put_ints(f, STR("flat"), f->self, 0, false, alone);
	put_diff(f, alone);
	put_times(f, alone);
	for (uint32_t i = 0, depth = 0; depth <= f->height; depth++)
		for (; i < f->depth_end[depth]; i++)
			f->words[i] = depth;
	put_words(f, STR("depth"), 0, false, alone);
}

/* A column for each label that some row has. */
static void put_labels(struct flame *f)
{
	const struct query_stacks *s = &f->t->stacks;
	for (uint32_t k = 0; k < f->r->label_count; k++) {
		const char *name = arena_printf(f->a, "labels.%.*s", STR_ARG(f->r->labels[k]));
		bool any = false;
		begin_texts(f);
		for (size_t i = 0; i < f->count; i++) {
			uint32_t group = f->group[i];
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
	put_text(f, STR("mapping_file"), TEXT_MAPPING, QUERY_MIXED_MAPPING);
	put_text(f, STR("mapping_build_id"), TEXT_BUILD_ID, QUERY_MIXED_BUILD_ID);
	put_line(f, false);
	put_inlined(f);
	put_line(f, true);
	put_text(f, STR("function_name"), TEXT_NAME, 0);
	put_text(f, STR("function_system_name"), TEXT_SYSTEM_NAME, QUERY_MIXED_SYSTEM_NAME);
	put_text(f, STR("function_file_name"), TEXT_FILE, QUERY_MIXED_FILE);
	put_children(f);
	put_parent(f);
	put_values(f);
	put_offset(f);
	put_labels(f);
	enum status s = arrow_write_end(&f->w, false, out, e);
	if (s == OK && f->no_memory)
		return err_set(e, E_NOMEM, "flame graph of %zu rows", f->count);
	return s;
}

static enum status flame(struct flame *f, struct buf *out, struct err *e)
{
	enum status s = query_fold_make(
		&f->fold, f->t, f->r, QUERY_TRIM_ABOVE, 0, QUERY_REPORT_BYTES_MAX, e);
	if (s == OK)
		s = make_rows(f, e);
	return s == OK ? write_record(f, out, e) : s;
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
	s = flame(&f, out, e);
	if (s == OK) {
		query_tree_info(&t, info);
		info->height = (int32_t)f.height + 1;
		info->trimmed = f.fold.trimmed;
	}
	map_deinit(&f.text_index);
	query_fold_deinit(&f.fold);
	return s;
}
