/* SPDX-License-Identifier: Apache-2.0 */
/* Events name a context by its number; the snapshot that came with them says its labels. */
#include "pb/pb.h"
#include "pyroscope/internal.h"

#include <inttypes.h>
#include <stdio.h>

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

/* "" for what is not there. */
static struct str find(const struct contexts *c, bool is_string, uint64_t id)
{
	struct key k = { is_string, id };
	uint32_t at = map_find(&c->index, key_hash(k), key_equal, c, &k);
	return at == MAP_NONE ? STR("") : c->entries.v[at].bytes;
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
}

/* A label whose value is not there is left out by profile_add_labels(). */
static enum status add(struct profile *p, struct str name, struct str value,
	struct profile_label *out, uint32_t room, uint32_t *count)
{
	struct profile_label *l = &out[*count];
	if (name.len == 0 || str_starts(name, STR("__")))
		return OK;
	if (*count == room)
		return E_LIMIT;
	enum status s = profile_add_name(p, name, &l->name);
	if (s == OK)
		s = profile_add_string(p, value, &l->value);
	*count += s == OK;
	return s;
}

enum status contexts_labels(void *ctx, uint64_t context_id, uint64_t span_id, uint64_t span_name,
	struct profile *p, struct profile_label *out, uint32_t room, uint32_t *out_count)
{
	const struct contexts *c = ctx;
	struct str context = find(c, false, context_id);
	struct reader r = reader_over(context.p, context.len);
	struct pb_field f;
	enum status s = OK;
	*out_count = 0;
	if (span_id) {
		char text[20];
		snprintf(text, sizeof(text), "%016" PRIx64, span_id);
		s = add(p, STR("span_id"), str_of(text), out, room, out_count);
		if (s == OK)
			s = add(p, STR("span_name"), find(c, true, span_name), out, room,
				out_count);
	}
	while (s == OK && pb_next(&r, &f)) {
		struct reader pair = pb_message(&f);
		struct pb_field g;
		uint64_t ids[2] = { 0 };
		if (f.number != 1 || f.wire != PB_BYTES)
			continue;
		while (pb_next(&pair, &g))
			if (g.wire == PB_VARINT && (g.number == 1 || g.number == 2))
				ids[g.number - 1] = g.u64;
		s = add(p, find(c, true, ids[0]), find(c, true, ids[1]), out, room, out_count);
	}
	return s;
}
