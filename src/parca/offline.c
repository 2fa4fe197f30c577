/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack is in the file once, with the first batch that uses it: `known` has the stacks of earlier
 * batches.
 */
#include "parca/columns.h"

#include "base/reader.h"

#define MAGIC "\xa6\xe7\xcc\xca"
#define VERSION 0
#define NO_STACK UINT32_MAX

struct offline {
	struct reader in;
	size_t memory_bytes;
	struct profile *out;
	struct parca_arrow_stats *stats;
	struct strtab ids;
	VEC(uint32_t) stacks; /* of each id */
};

bool parca_is_offline(struct str file)
{
	return str_starts(file, str_make(MAGIC, 4));
}

static uint64_t big_endian(struct reader *r, size_t bytes)
{
	struct str s = reader_str(r, bytes);
	uint64_t v = 0;
	for (size_t i = 0; i < s.len; i++)
		v = v << 8 | (uint8_t)s.p[i];
	return v;
}

static enum status next_piece(struct offline *o, const char *what, struct str *out, struct err *e)
{
	size_t at = reader_offset(&o->in), left;
	uint64_t bytes = big_endian(&o->in, 4);
	if (o->in.failed)
		return err_set(e, E_INVALID,
			"the file ends before the length of its %s, at byte %zu", what, at);
	left = reader_left(&o->in);
	*out = reader_str(&o->in, (size_t)bytes);
	if (o->in.failed)
		return err_set(e, E_INVALID, "%s of %zu bytes at byte %zu, where %zu are left",
			what, (size_t)bytes, at, left);
	return OK;
}

/* Whether the batch is of schema v2, which contains the stacks. The file's header has the same
 * version for both. */
static enum status has_stacks(struct offline *o, struct str ipc, bool *out, struct err *e)
{
	struct arrow_stream stream;
	enum status st = arrow_stream_open(&stream, ipc, o->memory_bytes, e);
	if (st != OK)
		return st;
	*out = false;
	for (uint32_t i = 0; i < stream.root.child_count; i++)
		*out |= str_eq(stream.root.children[i].name, STR("stacktrace"));
	arrow_stream_close(&stream);
	return OK;
}

/* ---- schema v1 ---- */

static void recall(struct offline *o, struct parca_session *s)
{
	for (uint32_t i = 1; i < parca_session_stack_count(s); i++) {
		uint32_t id = strtab_find(&o->ids, parca_session_stack_id(s, i));
		if (id != MAP_NONE && o->stacks.v[id] != NO_STACK)
			parca_session_set_stack(s, i, o->stacks.v[id]);
	}
}

static enum status remember(struct offline *o, struct parca_session *s)
{
	enum status st = OK;
	uint32_t stack, id;
	for (uint32_t i = 1; st == OK && i < parca_session_stack_count(s); i++) {
		if (!parca_session_stack(s, i, &stack))
			continue;
		st = strtab_intern(&o->ids, parca_session_stack_id(s, i), &id);
		while (st == OK && o->stacks.len < o->ids.len)
			st = VEC_PUSH(&o->stacks, NO_STACK) ? OK : E_NOMEM;
		if (st == OK)
			o->stacks.v[id] = stack;
	}
	return st;
}

static enum status take_session(
	struct offline *o, struct parca_session *s, struct str samples, struct err *e)
{
	struct str stacks;
	enum status st = parca_session_samples(s, samples, e);
	if (st != OK)
		return err_prefix(e, st, "samples");
	recall(o, s);
	st = next_piece(o, "stacks", &stacks, e);
	if (st != OK)
		return st;
	st = parca_session_stacks(s, stacks, e);
	if (st != OK)
		return err_prefix(e, st, "stacks");
	st = remember(o, s);
	if (st != OK)
		return err_set(e, st, "stacks: %s", status_text(st));
	return parca_session_finish(s, e);
}

static enum status take_batch(struct offline *o, struct err *e)
{
	struct str samples;
	struct parca_session *session = NULL;
	bool is_v2 = false;
	enum status st = next_piece(o, "samples", &samples, e);
	if (st != OK)
		return st;
	st = has_stacks(o, samples, &is_v2, e);
	if (st == OK && is_v2)
		st = parca_arrow_decode(samples, o->memory_bytes, o->out, o->stats, e);
	if (st != OK || is_v2)
		return st == OK ? OK : err_prefix(e, st, "samples");
	st = parca_session_new(o->memory_bytes, o->out, o->stats, &session);
	if (st != OK)
		return err_set(e, st, "%s", status_text(st));
	st = take_session(o, session, samples, e);
	parca_session_free(session);
	return st;
}

/* ---- the file ---- */

static enum status read_head(struct offline *o, uint32_t *out_batches, struct err *e)
{
	struct str magic = reader_str(&o->in, 4);
	uint64_t version = big_endian(&o->in, 2), batches = big_endian(&o->in, 2);
	if (o->in.failed || !parca_is_offline(magic))
		return err_set(e, E_INVALID, "not a file of parca-agent's offline mode");
	if (version != VERSION)
		return err_set(e, E_UNSUPPORTED, "version %u of parca-agent's offline files",
			(unsigned)version);
	*out_batches = (uint32_t)batches;
	return OK;
}

enum status parca_offline_decode(struct str file, size_t memory_bytes, struct profile *out,
	struct parca_arrow_stats *stats, struct parca_offline_sum *sum, struct err *e)
{
	struct err none;
	struct offline o = { .in = reader_over(file.p, file.len),
		.memory_bytes = memory_bytes,
		.out = out,
		.stats = stats };
	e = e ? e : &none;
	*sum = (struct parca_offline_sum){ 0 };
	enum status st = read_head(&o, &sum->told, e);
	if (st != OK)
		return st;
	st = strtab_init(&o.ids, memory_bytes);
	if (st == OK && !VEC_PUSH(&o.stacks, NO_STACK))
		st = E_NOMEM;
	if (st != OK)
		err_set(e, st, "%s", status_text(st));
	while (st == OK && sum->batches < sum->told) {
		st = take_batch(&o, e);
		if (st == OK)
			sum->batches++;
		else
			err_prefix(e, st, "batch %u of %u", sum->batches + 1, sum->told);
	}
	sum->rest_bytes = st == OK ? reader_left(&o.in) : 0;
	strtab_deinit(&o.ids);
	VEC_FREE(&o.stacks);
	return st;
}
