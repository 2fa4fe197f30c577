/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resolve has three steps: get the tables of all mappings that have nameless locations (waiting
 * for builds as long as the caller allows), fill the lines of those locations, give the rest a name
 * made of file and offset. Texts of a table that many locations share are interned and demangled
 * once, by their address in the table, and a function that many share is found by its name's.
 */
#include "symbolize/private.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* Scratch for demangled names of one resolve. */
#define SCRATCH_BYTES_MAX ((size_t)256 << 20)

struct symbolizer {
	struct symbolize_metrics metrics;
	struct symbolize_tables *tables;
};

void symbolizer_config_default(struct symbolizer_config *c)
{
	*c = (struct symbolizer_config){
		.dir = "",
		.debug_dirs = "/usr/lib/debug",
		.local_files = true,
		.memory_bytes = (uint64_t)256 << 20,
		.workers = 1,
	};
	debuginfo_limits_default(&c->limits);
}

static void symbolizer_cleanup(struct symbolizer **s)
{
	symbolizer_free(*s);
}

enum status symbolizer_new(
	const struct symbolizer_config *c, struct symbolizer **out, struct err *e)
{
	CLEANUP(symbolizer_cleanup) struct symbolizer *sym = calloc(1, sizeof(*sym));
	if (!sym)
		return err_set(e, E_NOMEM, "symbolizer");
	enum status s = symbolize_tables_new(c, &sym->metrics, &sym->tables, e);
	if (s == OK)
		*out = STEAL_PTR(sym);
	return s;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	symbolize_tables_free(s->tables);
	free(s);
}

enum status symbolizer_offer(
	struct symbolizer *s, const char *build_id, const char *path, int fd, struct err *e)
{
	return symbolize_tables_offer(s->tables, build_id, path, fd, e);
}

enum status symbolizer_look_again(
	struct symbolizer *s, const char *build_id, bool replace, struct err *e)
{
	return symbolize_tables_look_again(s->tables, build_id, replace, e);
}

void symbolizer_write_metrics(struct symbolizer *s, struct buf *out)
{
	static const struct metric_def defs[] = { SYMBOLIZE_METRICS(METRIC_DEF) };
	metrics_write(out, defs, (const metric_value *)&s->metrics, ARRAY_COUNT(defs));
}

/* ---- one resolve ---- */

/* A text of a table that is in the profile already. */
struct known_text {
	const char *from;
	uint32_t plain;
	uint32_t demangled;
	bool has_demangled;
	/* Of a function's name: the last one that has it. */
	bool has_function;
	const char *file;
	uint32_t start_line;
	uint32_t function;
};

struct mapping_state {
	struct symbolize_ref *ref; /* NULL: no table */
	bool wanted;
	bool pending;
};

struct resolve {
	struct symbolizer *s;
	struct profile *p;
	struct mapping_state *mappings;
	struct arena scratch;
	VEC(struct known_text) texts;
	struct map text_index;
	uint64_t lookups, unknown;
	uint32_t pending;
};

static void resolve_deinit(struct resolve *r)
{
	for (size_t i = 0; r->mappings && i < r->p->mappings.len; i++)
		symbolize_ref_release(r->s->tables, r->mappings[i].ref);
	free(r->mappings);
	arena_deinit(&r->scratch);
	VEC_FREE(&r->texts);
	map_deinit(&r->text_index);
	metric_add(&r->s->metrics.lookups, r->lookups);
	metric_add(&r->s->metrics.unknown, r->unknown);
}

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct resolve *r = ctx;
	return r->texts.v[value].from == key;
}

/* NULL: not known yet. */
static struct known_text *find_text(struct resolve *r, struct str s)
{
	uint32_t at = map_find(&r->text_index, hash_u64((uintptr_t)s.p), text_equal, r, s.p);
	return at == MAP_NONE ? NULL : &r->texts.v[at];
}

/* A text that lies in an open table, by its address. */
static enum status known(struct resolve *r, struct str s, struct known_text **out)
{
	*out = find_text(r, s);
	if (!*out) {
		struct known_text t = { .from = s.p };
		enum status st = profile_add_string(r->p, s, &t.plain);
		if (st != OK)
			return st;
		uint32_t at = (uint32_t)r->texts.len;
		if (!VEC_PUSH(&r->texts, t) ||
			!map_insert(&r->text_index, hash_u64((uintptr_t)s.p), at))
			return E_NOMEM;
		*out = &r->texts.v[at];
	}
	return OK;
}

/* What stands before "+0x…" where there is no better name. */
static struct str place_of(const struct profile *p, const struct profile_location *loc)
{
	struct str file = profile_str(p, p->mappings.v[loc->mapping].filename);
	size_t slash = str_rindex(file, '/');
	if (slash < file.len)
		file = str_sub(file, slash + 1, file.len);
	if (file.len > 0)
		return str_sub(file, 0, SYMBOLIZE_PATH_MAX / 2);
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

/* `place` and `name` in one; `name` alone where there is no memory. */
static struct str name_in_place(struct resolve *r, struct str place, struct str name)
{
	struct str a = without_nul(place), b = without_nul(name);
	char *text = arena_alloc(&r->scratch, a.len + b.len + 1, 1);
	if (!text)
		return name;
	if (a.len)
		memcpy(text, a.p, a.len);
	memcpy(text + a.len, b.p, b.len);
	return str_make(text, a.len + b.len);
}

/* What people see of a table's name. */
static enum status demangled(struct resolve *r, const struct profile_location *loc,
	struct known_text *t, struct str name)
{
	if (t->has_demangled)
		return OK;
	if (is_nameless(name))
		name = name_in_place(r, place_of(r->p, loc), name);
	enum status s =
		profile_add_string(r->p, symbolize_demangle(name, &r->scratch), &t->demangled);
	t->has_demangled = s == OK;
	return s;
}

/* Many locations are in one function: its name tells it mostly. */
static bool same_function(const struct known_text *t, const struct debuginfo_frame *frame)
{
	return t && t->has_function && t->file == frame->file.p &&
	       t->start_line == frame->start_line;
}

static enum status add_frame(struct resolve *r, const struct profile_location *loc,
	const struct debuginfo_frame *frame, struct profile_line *out)
{
	struct profile_function f = { .start_line = frame->start_line };
	struct known_text *t = find_text(r, frame->name);
	*out = (struct profile_line){ .line = frame->line };
	if (same_function(t, frame)) {
		out->function = t->function;
		return OK;
	}
	enum status s = known(r, frame->file, &t);
	if (s != OK)
		return s;
	f.filename = t->plain;
	s = known(r, frame->name, &t);
	if (s == OK)
		s = demangled(r, loc, t, frame->name);
	if (s != OK)
		return s;
	f.system_name = is_nameless(frame->name) ? 0 : t->plain;
	f.name = t->demangled;
	s = profile_add_function(r->p, &f, &out->function);
	t->has_function = s == OK;
	t->file = frame->file.p;
	t->start_line = frame->start_line;
	t->function = out->function;
	return s;
}

static enum status set_lines(struct resolve *r, struct profile_location *loc,
	const struct profile_line *lines, uint32_t count)
{
	struct profile *p = r->p;
	if (p->lines.len + count > PROFILE_TABLE_MAX)
		return E_LIMIT;
	if (!VEC_RESERVE(&p->lines, p->lines.len + count))
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
static bool file_address(const struct profile_mapping *m, const struct debuginfo_table *t,
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

static enum status lines_from_table(struct resolve *r, struct profile_location *loc,
	const struct debuginfo_table *t, uint64_t vaddr)
{
	struct debuginfo_frame frames[DEBUGINFO_FRAMES_MAX];
	struct profile_line lines[DEBUGINFO_FRAMES_MAX];
	_Static_assert(DEBUGINFO_FRAMES_MAX <= PROFILE_LINES_MAX, "one location's lines");
	uint32_t count = debuginfo_table_find(t, vaddr, frames, DEBUGINFO_FRAMES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		enum status s = add_frame(r, loc, &frames[i], &lines[i]);
		if (s != OK)
			return s;
	}
	if (count && is_nameless(frames[count - 1].name))
		r->unknown++;
	return count ? set_lines(r, loc, lines, count) : OK;
}

static enum status line_by_offset(struct resolve *r, struct profile_location *loc, uint64_t address)
{
	char name[SYMBOLIZE_PATH_MAX];
	struct str place = place_of(r->p, loc);
	const char *kind = frame_kind_name((enum frame_kind)loc->kind);
	int n = place.len ? snprintf(name, sizeof(name), "%.*s+0x%llx", STR_ARG(place),
				    (unsigned long long)address)
			  : snprintf(name, sizeof(name), "[%s]+0x%llx", kind,
				    (unsigned long long)address);
	struct profile_function f = { 0 };
	enum status s = profile_add_string(r->p, str_make(name, (size_t)n), &f.name);
	struct profile_line line = { 0 };
	if (s == OK)
		s = profile_add_function(r->p, &f, &line.function);
	return s == OK ? set_lines(r, loc, &line, 1) : s;
}

static enum status name_location(struct resolve *r, struct profile_location *loc)
{
	const struct profile_mapping *m = &r->p->mappings.v[loc->mapping];
	const struct mapping_state *state = &r->mappings[loc->mapping];
	const struct debuginfo_table *t = state->ref ? symbolize_ref_table(state->ref) : NULL;
	uint64_t address;
	bool found = file_address(m, t, loc->address, &address);
	r->lookups++;
	if (t && found) {
		enum status s = lines_from_table(r, loc, t, address);
		if (s != OK || loc->line_count)
			return s;
	}
	r->unknown++;
	r->pending += state->pending;
	return line_by_offset(r, loc, address);
}

/* ---- the tables ---- */

static bool needs_lines(const struct profile *p, size_t i)
{
	return i != 0 && p->locations.v[i].line_count == 0;
}

static void get_tables(struct resolve *r, bool *out_any_pending)
{
	*out_any_pending = false;
	for (size_t i = 1; i < r->p->mappings.len; i++) {
		struct mapping_state *state = &r->mappings[i];
		const struct profile_mapping *m = &r->p->mappings.v[i];
		if (!state->wanted || state->ref)
			continue;
		symbolize_tables_get(r->s->tables, profile_str(r->p, m->build_id),
			profile_str(r->p, m->filename), &state->ref, &state->pending);
		*out_any_pending |= state->pending;
	}
}

static void wait_for_tables(struct resolve *r, uint32_t wait_ms)
{
	uint64_t seen = 0;
	int64_t deadline = clock_monotonic_ns() + (int64_t)wait_ms * NS_PER_MS;
	bool pending;
	get_tables(r, &pending);
	while (pending && wait_ms && symbolize_tables_wait(r->s->tables, &seen, deadline))
		get_tables(r, &pending);
}

/* Functions that came with names: those a compiler mangled are made readable. */
static enum status demangle_functions(struct resolve *r)
{
	struct profile *p = r->p;
	for (size_t i = 1; i < p->functions.len; i++) {
		struct profile_function f = p->functions.v[i];
		struct str name = profile_str(p, f.name);
		if (name.len < 4 || name.p[0] != '_' || (name.p[1] != 'Z' && name.p[1] != 'R'))
			continue;
		uint32_t id;
		enum status s = profile_add_string(p, symbolize_demangle(name, &r->scratch), &id);
		if (s != OK)
			return s;
		if (id == f.name)
			continue;
		if (f.system_name == 0)
			p->functions.v[i].system_name = f.name;
		p->functions.v[i].name = id;
	}
	return OK;
}

static enum status resolve(struct resolve *r, uint32_t wait_ms)
{
	struct profile *p = r->p;
	bool any = false;
	for (size_t i = 0; i < p->locations.len; i++) {
		if (!needs_lines(p, i))
			continue;
		any = true;
		/* Of an interpreter's frames and the kernel's, only the sender knows names. */
		uint8_t kind = p->locations.v[i].kind;
		if (kind == FRAME_NATIVE || kind == FRAME_UNKNOWN || kind == FRAME_GO ||
			kind == FRAME_RUST)
			r->mappings[p->locations.v[i].mapping].wanted = true;
	}
	enum status s = demangle_functions(r);
	if (s != OK || !any)
		return s;
	wait_for_tables(r, wait_ms);
	for (size_t i = 0; s == OK && i < p->locations.len; i++)
		if (needs_lines(p, i))
			s = name_location(r, &p->locations.v[i]);
	return s;
}

enum status symbolizer_resolve(struct symbolizer *s, struct profile *p, uint32_t wait_ms,
	uint32_t *out_pending, struct err *e)
{
	CLEANUP(resolve_deinit) struct resolve r = { .s = s, .p = p };
	arena_init(&r.scratch, SCRATCH_BYTES_MAX);
	r.mappings = calloc(p->mappings.len, sizeof(*r.mappings));
	if (!r.mappings)
		return err_set(e, E_NOMEM, "names of locations");
	enum status status = resolve(&r, wait_ms);
	if (status != OK)
		return err_set(e, status, "names of locations: %s", status_text(status));
	*out_pending = r.pending;
	return OK;
}
