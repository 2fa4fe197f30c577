/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/instructions: the instructions of a function with their values, and the line of each.
 * How: the samples give the build and the addresses; the symbol table gives the bounds of the
 * function; the bytes come from the executable, if the client may have it (as /buildid/ sends it);
 * a child disassembles them; the symbolizer gives their lines.
 */
#include "query/query.h"
#include "server/debuginfo/files.h"
#include "server/debuginfo/source.h"
#include "server/request/request.h"

#include <inttypes.h>

#define ARENA_BYTES_MAX ((size_t)256 << 20)
#define LISTING_BYTES_MAX ((size_t)16 << 20)
/* Bytes of a function that are listed at most, from its begin on. */
#define WINDOW_BYTES ((uint64_t)64 << 10)

struct listing {
	struct server *s;
	const struct net_request *r;
	const struct query_request *q;
	const struct query_engine *engine;
	struct arena *a;
	struct str function, binary, build_id;
	struct query_places places;
	uint64_t begin, end; /* addresses that are listed */
	struct buf text;
	struct debuginfo_instruction *v;
	size_t count;
	struct profile named; /* location i + 1 is instruction i */
	struct err *e;
};

static void listing_deinit(struct listing *l)
{
	buf_deinit(&l->text);
	profile_deinit(&l->named);
}

static enum status take_names(struct listing *l)
{
	(void)net_query_param(l->r, "build_id", 0, l->a, &l->build_id);
	(void)net_query_param(l->r, "binary", 0, l->a, &l->binary);
	if (!net_query_param(l->r, "function", 0, l->a, &l->function) || l->function.len == 0)
		return err_set(l->e, E_INVALID, "function: the name of one is expected");
	return OK;
}

/* Finds the bounds of the function around the costliest address. */
static enum status find_bounds(struct listing *l)
{
	const struct query_place *hottest = l->places.v;
	for (uint32_t i = 0; i < l->places.count; i++)
		if (l->places.v[i].total > hottest->total)
			hottest = &l->places.v[i];
	enum status s = symbolizer_function(
		l->engine->symbolizer, l->build_id, hottest->at, &l->begin, &l->end, l->e);
	if (s != OK)
		return s;
	if (l->end - l->begin > WINDOW_BYTES) {
		/* From the beginning of the function, since an instruction is known to begin there.
		 */
		if (hottest->at - l->begin >= WINDOW_BYTES)
			return err_set(l->e, E_LIMIT,
				"the function is %" PRIu64 " bytes long; up to %" PRIu64
				" are listed",
				l->end - l->begin, WINDOW_BYTES);
		l->end = l->begin + WINDOW_BYTES;
	}
	return OK;
}

/* The executable that was uploaded or is kept; else the one that ran on this host. */
static enum status open_executable(struct listing *l, int *out_fd)
{
	const struct debuginfo_key key = { l->build_id, l->q->tenant, DEBUGINFO_EXECUTABLE };
	enum status s = server_build_file(l->s, l->r, &key, out_fd, l->e);
	bool tenants = l->s->config->tenant_header || l->r->caller.has_tenant;
	if (s == E_NOTFOUND && !tenants)
		s = symbolizer_program(
			l->engine->symbolizer, l->build_id, l->places.path, out_fd, l->e);
	return s;
}

static enum status read_code(struct listing *l)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct debuginfo_code code = { .address = l->begin };
	code.bytes.len = (size_t)(l->end - l->begin);
	uint8_t *bytes = arena_alloc(l->a, code.bytes.len, 1);
	if (!bytes)
		return err_set(l->e, arena_status(l->a), "code");
	enum status s = open_executable(l, &fd);
	if (s == OK)
		s = symbolizer_code(fd, bytes, &code, l->e);
	if (s == OK)
		s = debuginfo_disassemble(&code, &l->text, l->a, &l->v, &l->count, l->e);
	return s;
}

static enum status name_lines(struct listing *l)
{
	uint32_t mapping, pending = 0, at;
	struct profile_mapping m = { 0 };
	enum status s = profile_add_string(&l->named, l->build_id, &m.build_id);
	if (s == OK)
		s = profile_add_string(&l->named, l->binary, &m.filename);
	if (s == OK)
		s = profile_add_mapping(&l->named, &m, &mapping);
	for (size_t i = 0; s == OK && i < l->count; i++) {
		const struct profile_location location = {
			.address = l->v[i].address, .mapping = mapping, .kind = FRAME_NATIVE
		};
		s = profile_add_location(&l->named, &location, NULL, 0, &at);
		assert(s != OK || at == i + 1);
	}
	if (s != OK)
		return err_set(l->e, s, "%zu instructions", l->count);
	return symbolizer_resolve(l->engine->symbolizer, &l->named, 0, &pending, l->e);
}

/* [ADDRESS, TEXT, SELF, TOTAL, FILE, LINE, FUNCTION]. The last three are of the innermost call, and
 * absent where it is not known. */
static void write_instruction(const struct listing *l, size_t i, uint32_t *place, struct buf *b)
{
	const struct debuginfo_instruction *one = &l->v[i];
	const struct profile *p = &l->named;
	const struct profile_location *at = &p->locations.v[i + 1];
	int64_t self = 0, total = 0;
	/* A caller's place is the last byte of its call. */
	while (*place < l->places.count && l->places.v[*place].at < one->address + one->size) {
		const struct query_place *from = &l->places.v[(*place)++];
		self += from->at >= one->address ? from->self : 0;
		total += from->at >= one->address ? from->total : 0;
	}
	buf_printf(b, "%s[\"%" PRIx64 "\",", i ? "," : "", one->address);
	buf_json_str(b, one->text);
	buf_printf(b, ",%lld,%lld", (long long)self, (long long)total);
	if (at->line_count && !at->unnamed) {
		const struct profile_line *line = &p->lines.v[at->line_first];
		const struct profile_function *f = &p->functions.v[line->function];
		buf_u8(b, ',');
		buf_json_str(b, profile_str(p, f->filename));
		buf_printf(b, ",%u,", line->line);
		buf_json_str(b, profile_str(p, f->name));
	}
	buf_u8(b, ']');
}

static enum status list(struct listing *l)
{
	enum status s = find_bounds(l);
	if (s == OK)
		s = read_code(l);
	return s == OK ? name_lines(l) : s;
}

enum status server_instructions(struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct query_request *q, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(listing_deinit)
	struct listing l = { .s = s, .r = r, .q = q, .engine = engine, .a = &a, .e = e };
	arena_init(&a, ARENA_BYTES_MAX);
	buf_init(&l.text, LISTING_BYTES_MAX);
	enum status st = profile_init(&l.named, LISTING_BYTES_MAX);
	if (st != OK)
		return err_set(e, st, "instructions");
	st = take_names(&l);
	if (st == OK)
		st = query_code_places(
			engine, q, l.function, l.binary, l.build_id, &a, &l.places, e);
	if (st != OK)
		return st;
	server_write_places(&l.places, out);
	if (l.binary.len == 0)
		l.binary = str_base_name(l.places.path);
	buf_cstr(out, ",\"binary\":");
	buf_json_str(out, l.binary);
	if (l.build_id.len == 0 && l.places.build_count)
		l.build_id = l.places.builds[0];
	/* Values without instructions are an answer, which says why. */
	struct err why = { 0 };
	l.e = &why;
	if (l.places.count)
		st = list(&l);
	if (st == E_NOMEM || st == E_CANCELED)
		return err_set(e, st, "%s", err_text(&why, st));
	if (st != OK) {
		buf_cstr(out, ",\"missing\":");
		buf_json_str(out, str_of(err_text(&why, st)));
		l.count = 0;
	}
	buf_cstr(out, ",\"instructions\":[");
	uint32_t place = 0;
	for (size_t i = 0; i < l.count; i++)
		write_instruction(&l, i, &place, out);
	buf_cstr(out, "]}");
	return buf_status(out) == OK ? OK : err_set(e, buf_status(out), "the answer is too large");
}
