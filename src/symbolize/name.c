/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations are named one after the other. They mostly come by mapping and address, so many are at
 * the same place of the table as the one before. They take its lines, but for the line number of
 * the first. A text of a table is interned and demangled once, and found again by its address in
 * the table; a function is found again by its name's.
 *
 * Two namers may work on parts of the same locations at the same time. The second keeps strings,
 * functions and lines of its own, numbered from 0, and reads nothing that the first one changes.
 * Joined in order, they get the numbers that a single namer would have given them.
 */
#include "symbolize/name.h"
#include "symbolize/find.h"
#include "symbolize/tables.h"

#include <stdio.h>
#include <stdlib.h>

/* Memory for demangled names of one resolve. */
#define SCRATCH_BYTES_MAX ((size_t)256 << 20)

void symbolize_namer_init(
	struct symbolize_namer *n, struct profile *p, const struct symbolize_mapping *mappings)
{
	*n = (struct symbolize_namer){ .p = p, .to = p, .mappings = mappings };
	arena_init(&n->scratch, SCRATCH_BYTES_MAX);
}

enum status symbolize_namer_apart(struct symbolize_namer *n)
{
	enum status s = profile_init(&n->own, SCRATCH_BYTES_MAX);
	if (s != OK)
		return s;
	n->to = &n->own;
	n->apart = true;
	return OK;
}

void symbolize_namer_deinit(struct symbolize_namer *n)
{
	if (n->apart)
		profile_deinit(&n->own);
	arena_deinit(&n->scratch);
	VEC_FREE(&n->texts);
	VEC_FREE(&n->named);
	map_deinit(&n->text_index);
}

/* ---- texts ---- */

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct symbolize_namer *n = ctx;
	return n->texts.v[value].from == key;
}

/* Finds a text by its address; NULL: it is new. */
static struct symbolize_text *find_text(struct symbolize_namer *n, struct str s)
{
	uint32_t at = map_find(&n->text_index, hash_u64((uintptr_t)s.p), text_equal, n, s.p);
	return at == MAP_NONE ? NULL : &n->texts.v[at];
}

/* The entry of a text in an open table, found by the text's address. */
static enum status known(struct symbolize_namer *n, struct str s, struct symbolize_text **out)
{
	*out = find_text(n, s);
	if (*out)
		return OK;
	uint32_t at = (uint32_t)n->texts.len;
	if (!VEC_PUSH(&n->texts, (struct symbolize_text){ .from = s.p }) ||
		!map_insert(&n->text_index, hash_u64((uintptr_t)s.p), at))
		return E_NOMEM;
	*out = &n->texts.v[at];
	return OK;
}

static enum status plain(struct symbolize_namer *n, struct symbolize_text *t, struct str s)
{
	if (t->has_plain)
		return OK;
	enum status st = profile_add_string(n->to, s, &t->plain);
	t->has_plain = st == OK;
	return st;
}

struct str symbolize_base_name(struct str file)
{
	size_t slash = str_rindex(file, '/');
	if (slash < file.len)
		file = str_sub(file, slash + 1, file.len);
	return str_sub(file, 0, SYMBOLIZE_PATH_MAX / 2);
}

/* The text before "+0x…" of a location without a better name. */
static struct str place_of(const struct symbolize_namer *n, const struct profile_location *loc)
{
	struct str file = n->mappings[loc->mapping].file;
	if (file.len > 0)
		return file;
	switch ((enum frame_kind)loc->kind) {
	case FRAME_KERNEL:
		return STR("[kernel]");
	case FRAME_NATIVE:
	case FRAME_UNKNOWN:
		return STR("[unknown mapping]");
	case FRAME_MARKER:
		return STR("[marker]");
	default:
		return STR("");
	}
}

/* A function of which only the place in its file is known: "+0x…" in the table. */
static bool is_nameless(struct str name)
{
	return str_starts(name, STR("+0x"));
}

/* A text ends at its first NUL. */
static struct str without_nul(struct str s)
{
	const char *end = s.len ? memchr(s.p, 0, s.len) : NULL;
	return end ? str_make(s.p, (size_t)(end - s.p)) : s;
}

/* `place` and `name` in one text; without memory for it `name` alone. */
static struct str name_in_place(struct symbolize_namer *n, struct str place, struct str name)
{
	struct str a = without_nul(place), b = without_nul(name);
	char *text = arena_alloc(&n->scratch, a.len + b.len + 1, 1);
	if (!text)
		return name;
	if (a.len)
		memcpy(text, a.p, a.len);
	memcpy(text + a.len, b.p, b.len);
	return str_make(text, a.len + b.len);
}

/* The text that people see for a table's name; the same text if it is not mangled. */
static enum status demangled(struct symbolize_namer *n, const struct profile_location *loc,
	struct symbolize_text *t, struct str name)
{
	if (t->has_demangled)
		return OK;
	if (is_nameless(name))
		name = name_in_place(n, place_of(n, loc), name);
	struct str s = symbolize_demangle(name, &n->scratch);
	bool same = t->has_plain && s.p == name.p && s.len == name.len;
	enum status st = OK;
	if (same)
		t->demangled = t->plain;
	else
		st = profile_add_string(n->to, s, &t->demangled);
	t->has_demangled = st == OK;
	return st;
}

/* ---- frames ---- */

/* Many locations are in one function, which its name mostly identifies. */
static bool same_function(const struct symbolize_text *t, const struct debuginfo_frame *frame)
{
	return t && t->has_function && t->file == frame->file.p &&
	       t->start_line == frame->start_line;
}

static enum status add_frame(struct symbolize_namer *n, const struct profile_location *loc,
	const struct debuginfo_frame *frame, struct profile_line *out)
{
	struct profile_function f = { .start_line = frame->start_line };
	struct symbolize_text *t = find_text(n, frame->name);
	bool nameless = is_nameless(frame->name);
	*out = (struct profile_line){ .line = frame->line };
	if (same_function(t, frame)) {
		out->function = t->function;
		return OK;
	}
	enum status s = known(n, frame->file, &t);
	if (s == OK)
		s = plain(n, t, frame->file);
	if (s != OK)
		return s;
	f.filename = t->plain;
	s = known(n, frame->name, &t);
	if (s == OK && !nameless)
		s = plain(n, t, frame->name);
	if (s == OK)
		s = demangled(n, loc, t, frame->name);
	if (s != OK)
		return s;
	/* It is a function, unlike an address outside of all functions, which has no system name.
	 */
	f.system_name = nameless ? t->demangled : t->plain;
	f.name = t->demangled;
	s = profile_add_function(n->to, &f, &out->function);
	t->has_function = s == OK;
	t->file = frame->file.p;
	t->start_line = frame->start_line;
	t->function = out->function;
	return s;
}

static enum status set_lines(struct symbolize_namer *n, struct profile_location *loc,
	const struct profile_line *lines, uint32_t count)
{
	struct profile *p = n->to;
	if (p->lines.len + count > PROFILE_TABLE_MAX)
		return E_LIMIT;
	if (!VEC_RESERVE(&p->lines, p->lines.len + count) ||
		(n->apart && !VEC_PUSH(&n->named, (uint32_t)(loc - n->p->locations.v))))
		return E_NOMEM;
	loc->line_first = (uint32_t)p->lines.len;
	loc->line_count = count;
	memcpy(p->lines.v + p->lines.len, lines, count * sizeof(*lines));
	p->lines.len += count;
	return OK;
}

static bool is_elf_address(const struct profile_mapping *m)
{
	return m->start == 0 && m->limit == 0 && m->offset == 0;
}

/* The address within the file: a virtual address where the table (or the sender) gives one, else a
 * file offset. False for the latter. */
bool symbolize_file_address(const struct profile_mapping *m, const struct debuginfo_table *t,
	uint64_t address, uint64_t *out)
{
	*out = address;
	if (is_elf_address(m))
		return true;
	if (address < m->start || (m->limit && address >= m->limit))
		return true; /* not from the mapping's own range: relative already */
	*out = address - m->start + m->offset;
	return t && debuginfo_table_vaddr(t, *out, out);
}

bool symbolize_lacks(
	const struct profile_mapping *m, const struct debuginfo_table *t, uint64_t address)
{
	uint64_t vaddr;
	return symbolize_file_address(m, t, address, &vaddr) && debuginfo_table_lacks(t, vaddr);
}

static enum status lines_from_table(struct symbolize_namer *n, struct profile_location *loc,
	const struct debuginfo_table *t, uint64_t vaddr)
{
	struct debuginfo_frame frames[DEBUGINFO_FRAMES_MAX];
	struct debuginfo_at place;
	_Static_assert(DEBUGINFO_FRAMES_MAX <= PROFILE_LINES_MAX, "one location's lines");
	if (!debuginfo_table_at(t, vaddr, &place))
		return OK;
	if (n->last_table != t || n->last_node != place.node) {
		n->last_table = NULL;
		n->last_count = debuginfo_table_frames(t, place, frames, DEBUGINFO_FRAMES_MAX);
		for (uint32_t i = 0; i < n->last_count; i++) {
			enum status s = add_frame(n, loc, &frames[i], &n->last_lines[i]);
			if (s != OK)
				return s;
		}
		n->last_table = t;
		n->last_node = place.node;
		n->last_nameless = n->last_count && is_nameless(frames[n->last_count - 1].name);
	}
	n->unknown += n->last_nameless;
	n->last_lines[0].line = place.line;
	return n->last_count ? set_lines(n, loc, n->last_lines, n->last_count) : OK;
}

static enum status line_by_offset(
	struct symbolize_namer *n, struct profile_location *loc, uint64_t address)
{
	char name[SYMBOLIZE_PATH_MAX];
	struct str place = place_of(n, loc);
	const char *kind = frame_kind_name((enum frame_kind)loc->kind);
	int len = place.len ? snprintf(name, sizeof(name), "%.*s+0x%llx", STR_ARG(place),
				      (unsigned long long)address)
			    : snprintf(name, sizeof(name), "[%s]+0x%llx", kind,
				      (unsigned long long)address);
	struct profile_function f = { 0 };
	enum status s = profile_add_string(n->to, str_make(name, (size_t)len), &f.name);
	struct profile_line line = { 0 };
	if (s == OK)
		s = profile_add_function(n->to, &f, &line.function);
	if (s == OK)
		s = set_lines(n, loc, &line, 1);
	loc->unnamed = s == OK;
	return s;
}

enum status symbolize_name(struct symbolize_namer *n, struct profile_location *loc)
{
	const struct profile_mapping *m = &n->p->mappings.v[loc->mapping];
	const struct symbolize_mapping *state = &n->mappings[loc->mapping];
	const struct debuginfo_table *t = state->ref ? symbolize_ref_table(state->ref) : NULL;
	uint64_t address;
	bool found = symbolize_file_address(m, t, loc->address, &address);
	n->lookups++;
	if (t && found) {
		enum status s = lines_from_table(n, loc, t, address);
		if (s != OK || loc->line_count)
			return s;
	}
	n->unknown++;
	n->pending += state->pending;
	return line_by_offset(n, loc, address);
}

/* ---- joining ---- */

static enum status join_functions(struct symbolize_namer *n, uint32_t *strings, uint32_t *functions)
{
	struct profile *p = n->p;
	const struct profile *own = &n->own;
	enum status s = OK;
	for (uint32_t i = 1; i < own->strings.len && s == OK; i++)
		s = strtab_intern(&p->strings, profile_str(own, i), &strings[i]);
	for (uint32_t i = 1; i < own->functions.len && s == OK; i++) {
		struct profile_function f = own->functions.v[i];
		f.name = strings[f.name];
		f.system_name = strings[f.system_name];
		f.filename = strings[f.filename];
		s = profile_add_function(p, &f, &functions[i]);
	}
	return s;
}

enum status symbolize_namer_join(struct symbolize_namer *n)
{
	struct profile *p = n->p;
	const struct profile *own = &n->own;
	CLEANUP(free_cleanup) uint32_t *strings = calloc(own->strings.len, sizeof(*strings));
	CLEANUP(free_cleanup) uint32_t *functions = calloc(own->functions.len, sizeof(*functions));
	if (!strings || !functions)
		return E_NOMEM;
	enum status s = join_functions(n, strings, functions);
	if (s != OK)
		return s;
	if (p->lines.len + own->lines.len > PROFILE_TABLE_MAX)
		return E_LIMIT;
	if (!VEC_RESERVE(&p->lines, p->lines.len + own->lines.len))
		return E_NOMEM;
	uint32_t first = (uint32_t)p->lines.len;
	for (size_t i = 0; i < own->lines.len; i++) {
		struct profile_line line = own->lines.v[i];
		line.function = functions[line.function];
		p->lines.v[p->lines.len++] = line;
	}
	for (size_t i = 0; i < n->named.len; i++)
		p->locations.v[n->named.v[i]].line_first += first;
	return OK;
}
