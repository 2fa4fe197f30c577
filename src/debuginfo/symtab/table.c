/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is mapped read-only and checked once, completely: after check_table() every number in it
 * is known to be in range, so that a lookup is one search in a bucket and a walk over parents.
 */
#include "debuginfo/symtab/table.h"

#include "base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A table up to this size stays in memory after the check. */
#define KEEP_BYTES_MAX ((size_t)1 << 20)

static const struct {
	const char *name;
	size_t size;
} sections[] = {
#define SECTION_ROW(name, type, text) { text, sizeof(type) },
	SYMTAB_SECTIONS(SECTION_ROW)
#undef SECTION_ROW
};

static enum status corrupt(struct err *e, enum symtab_section s, uint64_t id)
{
	return err_set(e, E_CORRUPT, "section %s, element %llu, +%llu", sections[s].name,
		(unsigned long long)id, (unsigned long long)(id * sections[s].size));
}

static enum status check_header(const struct symtab_header *h, size_t bytes, struct err *e)
{
	if (bytes < sizeof(*h) || memcmp(h->magic, SYMTAB_MAGIC, sizeof(h->magic)) != 0)
		return err_set(e, E_CORRUPT, "no symbol table: wrong magic at +0");
	if (h->version != SYMTAB_VERSION || h->zero != 0)
		return err_set(e, E_CORRUPT, "version %u at +8 is not known", h->version);
	if (h->file_bytes != bytes)
		return err_set(e, E_CORRUPT, "%zu bytes, but +16 says %llu", bytes,
			(unsigned long long)h->file_bytes);
	if (h->build_id_len > SYMTAB_BUILD_ID_MAX)
		return err_set(e, E_CORRUPT, "build id of %u bytes at +32", h->build_id_len);
	const uint8_t *p = (const uint8_t *)h;
	if (hash64(p + SYMTAB_CHECKSUM_FROM, bytes - SYMTAB_CHECKSUM_FROM) != h->checksum)
		return err_set(e, E_CORRUPT, "wrong checksum at +24");
	uint64_t end = sizeof(*h);
	for (int i = 0; i < SYMTAB_SECTION_COUNT; i++) {
		const struct symtab_extent *x = &h->sections[i];
		if (x->offset % 8 != 0 || x->offset < end || x->offset > bytes ||
			x->count > (bytes - x->offset) / sections[i].size || x->count > UINT32_MAX)
			return err_set(
				e, E_CORRUPT, "section %s: offset or count", sections[i].name);
		end = x->offset + x->count * sections[i].size;
	}
	if (h->sections[SYMTAB_STARTS].count != h->sections[SYMTAB_PLACES].count)
		return err_set(e, E_CORRUPT, "sections starts and places differ in count");
	if (h->sections[SYMTAB_NODES].count == 0 || h->sections[SYMTAB_FUNCTIONS].count == 0 ||
		h->sections[SYMTAB_STRING_OFFSETS].count < 2)
		return err_set(e, E_CORRUPT, "a section without its null element");
	return OK;
}

static void set_sections(struct debuginfo_table *t)
{
	const struct symtab_header *h = t->header;
	const char *p = (const char *)h;
	const struct symtab_extent *x = h->sections;
	t->segments = (const struct symtab_segment *)(p + x[SYMTAB_SEGMENTS].offset);
	t->regions = (const struct symtab_region *)(p + x[SYMTAB_REGIONS].offset);
	t->buckets = (const uint32_t *)(p + x[SYMTAB_BUCKETS].offset);
	t->starts = (const uint32_t *)(p + x[SYMTAB_STARTS].offset);
	t->places = (const struct symtab_place *)(p + x[SYMTAB_PLACES].offset);
	t->nodes = (const struct symtab_node *)(p + x[SYMTAB_NODES].offset);
	t->functions = (const struct symtab_function *)(p + x[SYMTAB_FUNCTIONS].offset);
	t->string_offsets = (const uint32_t *)(p + x[SYMTAB_STRING_OFFSETS].offset);
	t->strings = p + x[SYMTAB_STRINGS].offset;
	t->segment_count = (uint32_t)x[SYMTAB_SEGMENTS].count;
	t->region_count = (uint32_t)x[SYMTAB_REGIONS].count;
	t->range_count = (uint32_t)x[SYMTAB_STARTS].count;
	t->node_count = (uint32_t)x[SYMTAB_NODES].count;
	t->function_count = (uint32_t)x[SYMTAB_FUNCTIONS].count;
	t->string_count = (uint32_t)x[SYMTAB_STRING_OFFSETS].count - 1;
}

/* Checks one region's starts and buckets; its extents are checked already. */
static enum status check_region(
	const struct debuginfo_table *t, const struct symtab_region *r, struct err *e)
{
	const uint32_t *starts = t->starts + r->first_range;
	uint64_t span = r->end - r->base;
	if (starts[0] != 0)
		return corrupt(e, SYMTAB_STARTS, r->first_range);
	for (uint32_t i = 1; i < r->range_count; i++)
		if (starts[i] <= starts[i - 1])
			return corrupt(e, SYMTAB_STARTS, r->first_range + (uint64_t)i);
	if (starts[r->range_count - 1] >= span)
		return corrupt(e, SYMTAB_STARTS, r->first_range + (uint64_t)r->range_count - 1);

	const uint32_t *buckets = t->buckets + r->first_bucket;
	uint64_t bucket_count = symtab_bucket_count(span, r->shift);
	uint32_t at = 0; /* range */
	for (uint64_t b = 0; b < bucket_count; b++) {
		while (at < r->range_count && (starts[at] >> r->shift) < b)
			at++;
		if (buckets[b] != r->first_range + at)
			return corrupt(e, SYMTAB_BUCKETS, r->first_bucket + b);
	}
	return at == r->range_count ? OK : corrupt(e, SYMTAB_BUCKETS, r->first_bucket);
}

static enum status check_regions(const struct debuginfo_table *t, struct err *e)
{
	uint64_t bucket_total = t->header->sections[SYMTAB_BUCKETS].count;
	uint64_t end = 0, ranges = 0, buckets = 0;
	for (uint32_t i = 0; i < t->region_count; i++) {
		const struct symtab_region *r = &t->regions[i];
		if (r->base < end || r->end <= r->base ||
			r->end - r->base > SYMTAB_REGION_BYTES_MAX || r->shift < SYMTAB_SHIFT_MIN ||
			r->shift > SYMTAB_SHIFT_MAX || r->first_range != ranges ||
			r->range_count == 0 || r->range_count > t->range_count - ranges ||
			r->first_bucket != buckets)
			return corrupt(e, SYMTAB_REGIONS, i);
		end = r->end;
		ranges += r->range_count;
		buckets += symtab_bucket_count(r->end - r->base, r->shift);
		if (buckets > bucket_total)
			return corrupt(e, SYMTAB_REGIONS, i);
		enum status s = check_region(t, r, e);
		if (s != OK)
			return s;
	}
	if (ranges != t->range_count || buckets != bucket_total)
		return corrupt(e, SYMTAB_REGIONS, t->region_count);
	return OK;
}

static enum status check_names(const struct debuginfo_table *t, struct err *e)
{
	for (uint32_t i = 0; i < t->range_count; i++)
		if (t->places[i].node >= t->node_count)
			return corrupt(e, SYMTAB_PLACES, i);
	for (uint32_t i = 0; i < t->node_count; i++) {
		const struct symtab_node *n = &t->nodes[i];
		if (n->function >= t->function_count || n->file >= t->string_count ||
			(i == 0 ? n->parent != 0 : n->parent >= i))
			return corrupt(e, SYMTAB_NODES, i);
	}
	for (uint32_t i = 0; i < t->function_count; i++)
		if (t->functions[i].name >= t->string_count ||
			t->functions[i].file >= t->string_count)
			return corrupt(e, SYMTAB_FUNCTIONS, i);
	const uint32_t *off = t->string_offsets;
	if (off[0] != 0 || off[t->string_count] != t->header->sections[SYMTAB_STRINGS].count)
		return corrupt(e, SYMTAB_STRING_OFFSETS, off[0] != 0 ? 0 : t->string_count);
	/* Checks first that offsets rise: then the last one bounds all of them. */
	for (uint32_t i = 0; i < t->string_count; i++)
		if (off[i + 1] <= off[i])
			return corrupt(e, SYMTAB_STRING_OFFSETS, i + 1);
	for (uint32_t i = 0; i < t->string_count; i++)
		if (t->strings[off[i + 1] - 1] != '\0')
			return corrupt(e, SYMTAB_STRINGS, off[i + 1] - 1);
	return OK;
}

static enum status check_table(struct debuginfo_table *t, struct err *e)
{
	enum status s = check_header(t->header, t->bytes, e);
	if (s != OK)
		return s;
	set_sections(t);
	s = check_regions(t, e);
	return s == OK ? check_names(t, e) : s;
}

static void table_cleanup(struct debuginfo_table **t)
{
	debuginfo_table_close(*t);
}

enum status debuginfo_table_open_bytes(
	const void *bytes, size_t len, struct debuginfo_table **out, struct err *e)
{
	CLEANUP(table_cleanup) struct debuginfo_table *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "symbol table");
	assert((uintptr_t)bytes % 8 == 0);
	t->header = bytes;
	t->bytes = len;
	enum status s = check_table(t, e);
	if (s == OK)
		*out = STEAL_PTR(t);
	return s;
}

enum status debuginfo_table_open_fd(
	int fd, const char *name, struct debuginfo_table **out, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_os(e, "stat %s", name);
	if (st.st_size < (off_t)sizeof(struct symtab_header))
		return err_set(e, E_CORRUPT, "%s: %lld bytes are no symbol table", name,
			(long long)st.st_size);
	size_t bytes = (size_t)st.st_size;
	bool small = bytes <= KEEP_BYTES_MAX; /* reads its pages at once, not one by one */
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED | (small ? MAP_POPULATE : 0), fd, 0);
	if (p == MAP_FAILED)
		return err_os(e, "mmap %s", name);
	enum status s = debuginfo_table_open_bytes(p, bytes, out, e);
	if (s != OK) {
		munmap(p, bytes);
		return err_prefix(e, s, "%s", name);
	}
	(*out)->mapped = true;
	/* The check has read every page; lookups read the pages that they need again. */
	if (!small)
		madvise(p, bytes, MADV_DONTNEED);
	return OK;
}

enum status debuginfo_table_open(const char *path, struct debuginfo_table **out, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_os(e, "open %s", path);
	return debuginfo_table_open_fd(fd, path, out, e);
}

void debuginfo_table_close(struct debuginfo_table *t)
{
	if (!t)
		return;
	if (t->mapped)
		munmap((void *)(uintptr_t)t->header, t->bytes);
	free(t);
}

struct str debuginfo_table_text(const struct debuginfo_table *t, uint32_t id)
{
	uint32_t from = t->string_offsets[id];
	return str_make(t->strings + from, t->string_offsets[id + 1] - from - 1);
}

static const struct symtab_region *find_region(const struct debuginfo_table *t, uint64_t vaddr)
{
	uint32_t lo = 0, hi = t->region_count; /* the last region with base <= vaddr is below hi */
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (t->regions[mid].base <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || vaddr >= t->regions[lo - 1].end)
		return NULL;
	return &t->regions[lo - 1];
}

uint32_t debuginfo_table_range(const struct debuginfo_table *t, uint64_t vaddr)
{
	const struct symtab_region *r = find_region(t, vaddr);
	if (!r)
		return UINT32_MAX;
	uint32_t x = (uint32_t)(vaddr - r->base);
	const uint32_t *bucket = t->buckets + r->first_bucket + (x >> r->shift);
	uint32_t lo = bucket[0], hi = bucket[1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (t->starts[mid] <= x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - 1; /* the region's first start is 0, so there is one */
}

bool debuginfo_table_at(const struct debuginfo_table *t, uint64_t vaddr, struct debuginfo_at *out)
{
	uint32_t range = debuginfo_table_range(t, vaddr);
	if (range == UINT32_MAX || t->places[range].node == 0)
		return false;
	struct symtab_place p = t->places[range];
	*out = (struct debuginfo_at){ p.node, debuginfo_table_left_out(t, p) ? 0 : p.line };
	return true;
}

bool debuginfo_table_lacks(const struct debuginfo_table *t, uint64_t vaddr)
{
	uint32_t range = debuginfo_table_range(t, vaddr);
	return range != UINT32_MAX && debuginfo_table_left_out(t, t->places[range]);
}

uint32_t debuginfo_table_frames(const struct debuginfo_table *t, struct debuginfo_at p,
	struct debuginfo_frame *out, uint32_t max)
{
	uint32_t line = p.line, count = 0;
	assert(p.node < t->node_count);
	for (uint32_t id = p.node; id != 0 && count < max; count++) {
		const struct symtab_node *n = &t->nodes[id];
		const struct symtab_function *f = &t->functions[n->function];
		out[count] = (struct debuginfo_frame){
			.name = debuginfo_table_text(t, f->name),
			.file = debuginfo_table_text(t, n->file),
			.line = line,
			.start_line = f->line,
			.inlined = n->parent != 0,
		};
		line = n->call_line;
		id = n->parent;
	}
	return count;
}

uint32_t debuginfo_table_find(
	const struct debuginfo_table *t, uint64_t vaddr, struct debuginfo_frame *out, uint32_t max)
{
	struct debuginfo_at p;
	return debuginfo_table_at(t, vaddr, &p) ? debuginfo_table_frames(t, p, out, max) : 0;
}

/* The function of a range that is not inlined; 0: none. */
static uint32_t outer_function(const struct debuginfo_table *t, uint32_t range)
{
	uint32_t id = t->places[range].node;
	while (id != 0 && t->nodes[id].parent != 0)
		id = t->nodes[id].parent;
	return t->nodes[id].function;
}

bool debuginfo_table_bounds(
	const struct debuginfo_table *t, uint64_t vaddr, uint64_t *out_begin, uint64_t *out_end)
{
	uint32_t at = debuginfo_table_range(t, vaddr), r = 0;
	if (at == UINT32_MAX || outer_function(t, at) == 0)
		return false;
	while (vaddr < t->regions[r].base || vaddr >= t->regions[r].end)
		r++;
	const struct symtab_region *region = &t->regions[r];
	uint32_t first = at, last = at, end = region->first_range + region->range_count;
	while (first > region->first_range && outer_function(t, first - 1) == outer_function(t, at))
		first--;
	while (last + 1 < end && outer_function(t, last + 1) == outer_function(t, at))
		last++;
	*out_begin = region->base + t->starts[first];
	*out_end = last + 1 < end ? region->base + t->starts[last + 1] : region->end;
	return true;
}

bool debuginfo_table_vaddr(const struct debuginfo_table *t, uint64_t file_offset, uint64_t *out)
{
	for (uint32_t i = 0; i < t->segment_count; i++) {
		const struct symtab_segment *s = &t->segments[i];
		if (file_offset >= s->offset && file_offset - s->offset < s->size) {
			*out = s->vaddr + (file_offset - s->offset);
			return true;
		}
	}
	return false;
}

enum status debuginfo_table_files(
	const struct debuginfo_table *t, debuginfo_file_fn *fn, void *ctx, struct err *e)
{
	CLEANUP(free_cleanup) bool *told = calloc((size_t)t->string_count + 1, sizeof(*told));
	if (!told)
		return err_set(e, E_NOMEM, "%u texts", t->string_count);
	for (uint32_t i = 0; i < t->node_count + t->function_count; i++) {
		uint32_t file =
			i < t->node_count ? t->nodes[i].file : t->functions[i - t->node_count].file;
		if (told[file] || debuginfo_table_text(t, file).len == 0)
			continue;
		told[file] = true;
		enum status s = fn(ctx, debuginfo_table_text(t, file), e);
		if (s != OK)
			return s;
	}
	return OK;
}

void debuginfo_table_describe(const struct debuginfo_table *t, struct debuginfo_table_info *out)
{
	const struct symtab_header *h = t->header;
	*out = (struct debuginfo_table_info){
		.ranges = t->range_count,
		.functions = t->function_count - 1,
		.bytes = t->bytes,
		.has_dwarf = h->flags & SYMTAB_DWARF,
		.has_symtab = h->flags & SYMTAB_SYMTAB,
		.has_dynsym = h->flags & SYMTAB_DYNSYM,
		.has_minidebuginfo = h->flags & SYMTAB_MINIDEBUGINFO,
		.has_plt = h->flags & SYMTAB_PLT,
		.has_gopclntab = h->flags & SYMTAB_GOPCLNTAB,
		.has_eh_frame = h->flags & SYMTAB_EH_FRAME,
		.trimmed = h->flags & SYMTAB_TRIMMED,
		.dwarf_cut = h->flags & SYMTAB_DWARF_CUT,
		.dwarf_damaged = h->flags & SYMTAB_DWARF_DAMAGED,
	};
	for (uint32_t i = 0; i < h->build_id_len; i++)
		snprintf(out->build_id + (size_t)i * 2, 3, "%02x", h->build_id[i]);
}
