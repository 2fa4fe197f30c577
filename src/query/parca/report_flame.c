/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the fold comes depth first, rows are numbered depth by depth: the counts of nodes of each
 * depth give the first row of each. Then the columns are written one by one from the cells of each
 * frame, which are made once; a dictionary holds only the texts that its column uses.
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
	bool has_function;
};

struct flame {
	const struct query_tree *t;
	struct query_fold fold;
	const struct query_report_request *r;
	struct arena *a;
	struct arrow_writer w;
	struct cells *cells; /* by line */
	size_t count;        /* of rows; each array below is by row */
	uint32_t *node;      /* of the fold; only if labels, times or differences are asked for */
	uint32_t *line;      /* lines.v, QUERY_LINE_NONE */
	uint8_t *mixed;
	uint32_t *child_count;
	int64_t *total, *self;
	uint32_t height;
	uint32_t *depth_end; /* by depth: the row behind its last */
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

static bool reserve(struct flame *f)
{
	const struct query_stacks *s = &f->t->stacks;
	bool nodes = f->r->label_count || f->r->chart || f->r->diff;
	uint32_t **const columns[] = { &f->line, &f->child_count, &f->node };
	int64_t **const numbers[] = { &f->total, &f->self, &f->ints };
	bool good = true;
	for (size_t i = 0; good && i < ARRAY_COUNT(columns) - !nodes; i++)
		good = (*columns[i] = ARENA_ARRAY(f->a, uint32_t, f->count)) != NULL;
	for (size_t i = 0; good && i < ARRAY_COUNT(numbers); i++)
		good = (*numbers[i] = ARENA_ARRAY(f->a, int64_t, f->count)) != NULL;
	/* A dictionary holds each text once, and not more texts than there are rows. */
	size_t texts =
		MAX((size_t)s->tables.strings.len, (size_t)s->group_count * f->r->label_count);
	f->mixed = ARENA_ARRAY(f->a, uint8_t, f->count);
	f->valid = ARENA_ARRAY(f->a, uint8_t, f->count);
	f->indices = ARENA_ARRAY(f->a, uint32_t, f->count + 1);
	f->texts = ARENA_ARRAY(f->a, struct str, MIN(texts, f->count));
	f->numbers = ARENA_ARRAY(f->a, uint32_t, s->tables.strings.len);
	return good && f->mixed && f->valid && f->indices && f->texts && f->numbers;
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
		s = number_rows(f, f->indices, e);
	if (s == OK)
		fill_rows(f, f->indices);
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
		f->valid[i] = i == 0 || (is_frame(f, i) && !(f->mixed[i] & QUERY_MIXED_INLINED));
		flags[i] = is_frame(f, i) && f->t->lines.v[f->line[i]].inlined;
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
		const struct cells *c = cells_of(f, i, QUERY_MIXED_ADDRESS);
		f->valid[i] = c != NULL;
		f->ints[i] = c ? (int64_t)c->address : 0;
	}
	put_ints(f, STR("location_address"), f->ints, 64, false, true);
}

static void put_line(struct flame *f, bool start)
{
	unsigned mixed = start ? QUERY_MIXED_START_LINE : QUERY_MIXED_LINE;
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *c = cells_of(f, i, mixed);
		f->valid[i] = c && c->has_function;
		f->ints[i] = !f->valid[i] ? 0 : start ? c->start_line : c->line;
	}
	put_ints(f, start ? STR("function_startline") : STR("location_line"), f->ints, 0, false,
		true);
}

static void put_text(struct flame *f, struct str name, enum text which, unsigned mixed)
{
	const struct profile *p = &f->t->stacks.tables;
	f->text_count = 0;
	memset(f->numbers, 0, p->strings.len * sizeof(*f->numbers));
	for (size_t i = 0; i < f->count; i++) {
		const struct cells *c = cells_of(f, i, mixed);
		uint32_t id = c ? c->texts[which] : 0;
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

/* Null for rows without children. As rows are numbered depth by depth, the lists of children
 * together are all rows but the root, in order. */
static void put_children(struct flame *f)
{
	uint32_t *offsets = f->indices;
	size_t elements = 0;
	for (size_t i = 0; i < f->count; i++) {
		offsets[i] = (uint32_t)elements;
		f->valid[i] = f->child_count[i] > 0;
		elements += f->child_count[i];
	}
	offsets[f->count] = (uint32_t)elements;
	for (size_t i = 0; i < elements; i++)
		f->ints[i] = (int64_t)i + 1;
	arrow_write_column(&f->w, &(struct arrow_write_column){ .name = STR("children"),
					  .kind = ARROW_WRITE_LIST,
					  .bits = 32,
					  .ints = f->ints,
					  .offsets = offsets,
					  .valid = f->valid });
}

static void put_parent(struct flame *f)
{
	f->ints[0] = -1;
	for (size_t i = 0, row = 1; i < f->count; i++)
		for (size_t end = row + f->child_count[i]; row < end; row++)
			f->ints[row] = (int64_t)i;
	put_ints(f, STR("parent"), f->ints, 32, true, false);
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

static void put_values(struct flame *f)
{
	bool alone = set_alone(f);
	put_ints(f, STR("cumulative"), f->total, alone ? 64 : 0, false, alone);
	put_ints(f, STR("flat"), f->self, 0, false, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = f->r->diff ? node_of(f, i)->total_diff : 0;
	put_ints(f, STR("diff"), f->ints, 0, true, alone);
	for (size_t i = 0; i < f->count; i++)
		f->ints[i] = f->r->chart ? node_of(f, i)->time_ns : 0;
	put_ints(f, STR("timestamp"), f->ints, 64, true, alone);
	for (size_t i = 0, depth = 0; i < f->count; i++) {
		depth += i == f->depth_end[depth];
		f->ints[i] = (int64_t)depth;
	}
	put_ints(f, STR("depth"), f->ints, 0, false, alone);
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
			uint32_t group = node_of(f, i)->group;
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
