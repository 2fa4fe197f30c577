/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events name a context by its number; the snapshot that came with them has its labels. The labels
 * of a context and the string of a text are made only once.
 */
#include "pyroscope/contexts.h"
#include "pb/pb.h"
#include "pyroscope/types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct key {
	bool is_string;
	uint64_t id;
};

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct context_entry *e = &((const struct contexts *)ctx)->entries.v[value];
	const struct key *k = key;
	return e->id == k->id && e->is_string == k->is_string;
}

static uint64_t key_hash(struct key k)
{
	return hash_u64(k.id ^ (uint64_t)k.is_string << 63);
}

/* Finds an entry; NULL: there is none. */
static struct context_entry *find(const struct contexts *c, bool is_string, uint64_t id)
{
	struct key k = { is_string, id };
	uint32_t at = map_find(&c->index, key_hash(k), key_equal, c, &k);
	return at == MAP_NONE ? NULL : &c->entries.v[at];
}

/* An entry of either map: key = 1, value = 2. */
static bool read_entry(const struct pb_field *field, struct context_entry *out)
{
	struct reader r = pb_message(field);
	struct pb_field f;
	*out = (struct context_entry){ .is_string = field->number == 2 };
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_VARINT)
			out->id = f.u64;
		else if (f.number == 2 && f.wire == PB_BYTES)
			out->bytes = f.bytes;
	}
	return !r.failed;
}

enum status contexts_read(struct str message, struct contexts *out, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	*out = (struct contexts){ 0 };
	while (pb_next(&r, &f)) {
		struct context_entry entry;
		if (f.wire != PB_BYTES || (f.number != 1 && f.number != 2))
			continue;
		if (!read_entry(&f, &entry))
			return err_set(
				e, E_INVALID, "labels: malformed at byte %zu", reader_offset(&r));
		if (out->entries.len == CONTEXTS_MAX)
			return err_set(e, E_LIMIT, "labels: more than %u contexts and texts",
				CONTEXTS_MAX);
		struct key k = { entry.is_string, entry.id };
		if (map_find(&out->index, key_hash(k), key_equal, out, &k) != MAP_NONE)
			continue;
		if (!map_insert(&out->index, key_hash(k), (uint32_t)out->entries.len) ||
			!VEC_PUSH(&out->entries, entry))
			return err_set(e, E_NOMEM, "labels");
	}
	if (r.failed)
		return err_set(e, E_INVALID, "labels: malformed at byte %zu", reader_offset(&r));
	return OK;
}

void contexts_deinit(struct contexts *c)
{
	map_deinit(&c->index);
	VEC_FREE(&c->entries);
	VEC_FREE(&c->labels);
}

/* The index in strings[] of the value with that number; 0: there is none. */
static enum status value_of(const struct contexts *c, uint64_t id, struct profile *p, uint32_t *out)
{
	struct context_entry *e = find(c, true, id);
	enum status s = OK;
	if (e && !e->value)
		s = profile_add_string(p, e->bytes, &e->value);
	*out = e ? e->value : 0;
	return s;
}

/* The same for a name; also 0 for names that are left out. */
static enum status name_of(const struct contexts *c, uint64_t id, struct profile *p, uint32_t *out)
{
	struct context_entry *e = find(c, true, id);
	enum status s = OK;
	*out = 0;
	if (!e || e->bytes.len == 0 || str_starts(e->bytes, STR("__")))
		return OK;
	if (!e->name)
		s = profile_add_name(p, e->bytes, &e->name);
	*out = e->name;
	return s;
}

/* A label with a missing value is left out by profile_add_labels(). */
static enum status make_labels(struct contexts *c, struct context_entry *e, struct profile *p)
{
	struct reader r = reader_over(e->bytes.p, e->bytes.len);
	struct pb_field f;
	enum status s = OK;
	e->made = true;
	e->first = (uint32_t)c->labels.len;
	while (s == OK && pb_next(&r, &f)) {
		struct reader pair = pb_message(&f);
		struct pb_field g;
		struct profile_label l = { 0 };
		uint64_t ids[2] = { 0 };
		if (f.number != 1 || f.wire != PB_BYTES)
			continue;
		while (pb_next(&pair, &g))
			if (g.wire == PB_VARINT && (g.number == 1 || g.number == 2))
				ids[g.number - 1] = g.u64;
		s = name_of(c, ids[0], p, &l.name);
		if (s == OK && l.name)
			s = value_of(c, ids[1], p, &l.value);
		if (s != OK || !l.name)
			continue;
		if (e->count == JFR_CONTEXT_LABELS_MAX)
			return E_LIMIT;
		e->count++;
		s = VEC_PUSH(&c->labels, l) ? OK : E_NOMEM;
	}
	return s;
}

static enum status add_span(const struct contexts *c, uint64_t span_id, uint64_t span_name,
	struct profile *p, struct profile_label out[2])
{
	char text[20];
	snprintf(text, sizeof(text), "%016" PRIx64, span_id);
	enum status s = profile_add_name(p, STR("span_id"), &out[0].name);
	if (s == OK)
		s = profile_add_string(p, str_of(text), &out[0].value);
	if (s == OK)
		s = profile_add_name(p, STR("span_name"), &out[1].name);
	return s == OK ? value_of(c, span_name, p, &out[1].value) : s;
}

enum status contexts_labels(void *ctx, uint64_t context_id, uint64_t span_id, uint64_t span_name,
	struct profile *p, struct profile_label *out, uint32_t room, uint32_t *out_count)
{
	struct contexts *c = ctx;
	struct context_entry *e = find(c, false, context_id);
	uint32_t spans = span_id ? 2 : 0;
	enum status s = OK;
	*out_count = 0;
	if (e && !e->made)
		s = make_labels(c, e, p);
	uint32_t count = e ? e->count : 0;
	if (s == OK && (room < spans || count > room - spans))
		s = E_LIMIT;
	if (s == OK && spans)
		s = add_span(c, span_id, span_name, p, out);
	if (s != OK)
		return s;
	if (count)
		memcpy(out + spans, c->labels.v + e->first, count * sizeof(*out));
	*out_count = spans + count;
	return OK;
}
