/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bit for each range of a table tells whether an address in it is kept. The written table has all
 * regions, and three kinds of pieces: kept ranges as they are; the rest of their functions, with
 * only the function that is not inlined; everything else, without a node. The last two are marked
 * as left out, so that a reader knows that the complete table may have more about them. Equal
 * neighbours are joined, so the size is proportional to the number of kept ranges.
 */
#include "debuginfo/symtab/builder.h"
#include "debuginfo/symtab/table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most bytes of texts of one table. */
#define TRIM_TEXT_BYTES_MAX ((uint64_t)256 << 20)

struct debuginfo_trim {
	const struct debuginfo_table *t;
	uint8_t *kept; /* a bit for each range */
	uint32_t count;
};

enum status debuginfo_trim_new(
	const struct debuginfo_table *t, struct debuginfo_trim **out, struct err *e)
{
	struct debuginfo_trim *trim = calloc(1, sizeof(*trim));
	uint8_t *kept = calloc((size_t)t->range_count / 8 + 1, 1);
	if (!trim || !kept) {
		free(trim);
		free(kept);
		return err_set(e, E_NOMEM, "%u ranges of a symbol table", t->range_count);
	}
	*trim = (struct debuginfo_trim){ .t = t, .kept = kept };
	*out = trim;
	return OK;
}

void debuginfo_trim_free(struct debuginfo_trim *trim)
{
	if (!trim)
		return;
	free(trim->kept);
	free(trim);
}

static bool is_kept(const struct debuginfo_trim *trim, uint32_t range)
{
	return trim->kept[range / 8] >> range % 8 & 1;
}

void debuginfo_trim_keep(struct debuginfo_trim *trim, uint64_t vaddr)
{
	uint32_t range = debuginfo_table_range(trim->t, vaddr);
	if (range == UINT32_MAX || is_kept(trim, range))
		return;
	trim->kept[range / 8] |= (uint8_t)(1 << range % 8);
	trim->count++;
}

uint32_t debuginfo_trim_count(const struct debuginfo_trim *trim)
{
	return trim->count;
}

bool debuginfo_trim_is_done(const char *path)
{
	struct symtab_header h;
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && pread(fd, &h, sizeof(h), 0) == sizeof(h) &&
	       memcmp(h.magic, SYMTAB_MAGIC, sizeof(h.magic)) == 0 && (h.flags & SYMTAB_TRIMMED);
}

/* ---- what is kept, in a builder ---- */

struct copy {
	const struct debuginfo_trim *trim;
	const struct debuginfo_table *t;
	struct debuginfo_builder b;
	uint32_t *outer; /* by node: the last one of its chain of parents */
	uint32_t *nodes; /* by node of the table: its number in the builder; 0: not needed */
	bool is_ready; /* nodes[] has numbers of the builder; before that, marks of those needed */
};

static void copy_deinit(struct copy *c)
{
	debuginfo_builder_deinit(&c->b);
	free(c->outer);
	free(c->nodes);
}

static uint32_t function_of(const struct copy *c, uint32_t range)
{
	return c->t->nodes[c->outer[c->t->places[range].node]].function;
}

static void need_node(struct copy *c, uint32_t id)
{
	for (; id != 0 && c->nodes[id] == 0; id = c->t->nodes[id].parent)
		c->nodes[id] = UINT32_MAX;
}

static enum status copy_text(struct copy *c, uint32_t id, uint32_t *out)
{
	return strtab_intern(&c->b.strings, debuginfo_table_text(c->t, id), out);
}

static enum status copy_node(struct copy *c, uint32_t id)
{
	struct symtab_node n = c->t->nodes[id];
	struct symtab_function f = c->t->functions[n.function];
	enum status s = copy_text(c, f.name, &f.name);
	if (s == OK)
		s = copy_text(c, f.file, &f.file);
	if (s == OK)
		s = copy_text(c, n.file, &n.file);
	if (s == OK && n.function)
		s = debuginfo_builder_function(&c->b, f, &n.function);
	n.parent = c->nodes[n.parent]; /* the parent's number is smaller, so it is in the builder
					  already */
	return s == OK ? debuginfo_builder_node(&c->b, n, &c->nodes[id]) : s;
}

static enum status copy_nodes(struct copy *c)
{
	enum status s = OK;
	for (uint32_t id = 1; id < c->t->node_count && s == OK; id++)
		if (c->nodes[id])
			s = copy_node(c, id);
	c->is_ready = true;
	return s;
}

static enum status copy_range(
	struct copy *c, const struct symtab_region *r, uint32_t range, bool in_function)
{
	struct symtab_place place = c->t->places[range];
	uint32_t line = SYMTAB_LEFT_OUT, node = in_function ? c->outer[place.node] : 0;
	if (is_kept(c->trim, range)) {
		node = place.node;
		/* Only in a table that was trimmed before does this line mean "left out". */
		bool lacks = debuginfo_table_left_out(c->t, place);
		line = place.line == SYMTAB_LEFT_OUT && !lacks ? 0 : place.line;
	}
	if (!c->is_ready) {
		need_node(c, node);
		return OK;
	}
	bool last = range + 1 == r->first_range + r->range_count;
	uint64_t end = last ? r->end : r->base + c->t->starts[range + 1];
	return debuginfo_builder_add(&c->b, (struct debuginfo_piece){ r->base + c->t->starts[range],
						    end, c->nodes[node], line });
}

/* Copies the ranges [first, end), which are of one function or of none. */
static enum status copy_function(
	struct copy *c, const struct symtab_region *r, uint32_t first, uint32_t end)
{
	bool any = false;
	for (uint32_t i = first; i < end && !any; i++)
		any = is_kept(c->trim, i);
	enum status s = OK;
	for (uint32_t i = first; i < end && s == OK; i++)
		s = copy_range(c, r, i, any);
	return s;
}

static enum status copy_ranges(struct copy *c)
{
	enum status s = OK;
	for (uint32_t i = 0; i < c->t->region_count; i++) {
		const struct symtab_region *r = &c->t->regions[i];
		uint32_t end = r->first_range + r->range_count;
		for (uint32_t at = r->first_range, next; at < end && s == OK; at = next) {
			uint32_t function = function_of(c, at);
			for (next = at + 1; next < end && function_of(c, next) == function;)
				next++;
			s = copy_function(c, r, at, next);
		}
	}
	return s;
}

static enum status copy_all(struct copy *c)
{
	const struct debuginfo_table *t = c->t;
	c->nodes = calloc(t->node_count, sizeof(*c->nodes));
	c->outer = calloc(t->node_count, sizeof(*c->outer));
	if (!c->nodes || !c->outer)
		return E_NOMEM;
	for (uint32_t i = 1; i < t->node_count; i++)
		c->outer[i] = t->nodes[i].parent ? c->outer[t->nodes[i].parent] : i;
	enum status s = copy_ranges(c);
	if (s == OK)
		s = copy_nodes(c);
	if (s == OK)
		s = copy_ranges(c);
	for (uint32_t i = 0; i < t->segment_count && s == OK; i++)
		s = VEC_PUSH(&c->b.segments, t->segments[i]) ? OK : E_NOMEM;
	c->b.flags = t->header->flags | SYMTAB_TRIMMED;
	c->b.build_id_len = t->header->build_id_len;
	memcpy(c->b.build_id, t->header->build_id, t->header->build_id_len);
	return s;
}

/* ---- the file ---- */

static enum status write_file(struct copy *c, const char *out_path, struct err *e)
{
	char tmp[4096];
	int n = snprintf(tmp, sizeof(tmp), "%s.XXXXXX", out_path);
	if (n < 0 || (size_t)n >= sizeof(tmp))
		return err_set(e, E_LIMIT, "path too long: %.100s…", out_path);
	CLEANUP(fd_cleanup) int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "create %s", tmp);
	enum status s = debuginfo_builder_write(&c->b, fd, c->t->bytes, e);
	if (s == OK && fchmod(fd, 0640) != 0)
		s = err_os(e, "chmod %s", tmp);
	if (s == OK && fsync(fd) != 0)
		s = err_os(e, "fsync %s", tmp);
	if (s == OK && rename(tmp, out_path) != 0)
		s = err_os(e, "rename %s", out_path);
	if (s != OK)
		unlink(tmp);
	return s;
}

enum status debuginfo_trim_write(
	const struct debuginfo_trim *trim, const char *out_path, struct err *e)
{
	CLEANUP(copy_deinit) struct copy c = { .trim = trim, .t = trim->t };
	enum status s = debuginfo_builder_init(&c.b, TRIM_TEXT_BYTES_MAX);
	if (s == OK)
		s = copy_all(&c);
	return s == OK ? write_file(&c, out_path, e) : err_set(e, s, "trim %s", out_path);
}
