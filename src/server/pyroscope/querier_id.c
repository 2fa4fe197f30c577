/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of profiles, which firn does not keep: an id has the profile's time and a hash of its series'
 * labels, so the profile is found again by searching that series at that time. It has the form of a
 * UUID: 44 bits of milliseconds since 1970, 36 bits of the length in milliseconds, 48 bits of the
 * hash.
 */
#include "server/pyroscope/querier.h"

#include "base/clock.h"
#include "base/hash.h"

#define TIME_BITS 44
#define STEP_BITS 36
#define HASH_BITS 48
/* Times of merged parts are multiples of it, unless the operator says otherwise. */
#define MERGED_NS (10 * NS_PER_SEC)

static uint64_t low_bits(uint64_t v, int bits)
{
	return v & ((UINT64_C(1) << bits) - 1);
}

uint64_t querier_series_hash(const struct str *names, const struct str *values, size_t count)
{
	uint64_t h = 0;
	for (size_t i = 0; i < count; i++)
		if (values[i].len)
			h = hash_u64(h ^ hash64(names[i].p, names[i].len)) ^
			    hash64(values[i].p, values[i].len);
	return low_bits(hash_u64(h), HASH_BITS);
}

struct str querier_id_write(struct server_call *c, int64_t time_ns, int64_t step_ns, uint64_t hash)
{
	uint64_t time = low_bits((uint64_t)(time_ns / NS_PER_MS), TIME_BITS);
	uint64_t step = low_bits((uint64_t)(step_ns / NS_PER_MS), STEP_BITS);
	uint64_t high = time << (64 - TIME_BITS) | step >> (STEP_BITS - (64 - TIME_BITS));
	uint64_t low = step << HASH_BITS | hash;
	char *text = arena_printf(&c->a, "%08llx-%04llx-%04llx-%04llx-%012llx",
		(unsigned long long)(high >> 32), (unsigned long long)(high >> 16 & 0xffff),
		(unsigned long long)(high & 0xffff), (unsigned long long)(low >> 48),
		(unsigned long long)low_bits(low, 48));
	return text ? str_of(text) : STR("");
}

struct id {
	int64_t time_ns, step_ns;
	uint64_t hash;
};

/* False: not 32 hexadecimal digits. */
static bool read_id(struct str text, struct id *out)
{
	uint64_t half[2] = { 0, 0 };
	int digits = 0;
	for (size_t i = 0; i < text.len; i++) {
		uint64_t digit;
		if (text.p[i] == '-')
			continue;
		if (digits == 32 || !str_parse_u64(str_sub(text, i, 1), 16, &digit))
			return false;
		half[digits / 16] = half[digits / 16] << 4 | digit;
		digits++;
	}
	uint64_t step = low_bits(half[0], 64 - TIME_BITS) << (STEP_BITS - (64 - TIME_BITS)) |
			half[1] >> HASH_BITS;
	out->time_ns =
		(int64_t)MIN(half[0] >> (64 - TIME_BITS), (uint64_t)INT64_MAX / NS_PER_MS / 2) *
		NS_PER_MS;
	out->step_ns = (int64_t)MIN(step, (uint64_t)INT64_MAX / NS_PER_MS / 2) * NS_PER_MS;
	out->hash = low_bits(half[1], HASH_BITS);
	return digits == 32;
}

enum status querier_series_labels(
	struct server_call *c, const struct query_request *q, struct str **out, size_t *out_count)
{
	struct str *names = NULL;
	size_t count = 0, kept = 0;
	enum status s = query_list_labels(c->engine, q, &c->a, &names, &count, c->e);
	for (size_t i = 0; s == OK && i < count; i++)
		if (!profile_label_is_of_sample(names[i]))
			names[kept++] = names[i];
	if (s == OK && kept > PROFILE_LABELS_MAX)
		return err_set(c->e, E_LIMIT, "more than %d labels: narrow the selector",
			PROFILE_LABELS_MAX);
	*out = names;
	*out_count = kept;
	return s;
}

/* The series with that hash in [from_ns, to_ns), as matchers of all its labels; none: there is
 * none. */
static enum status find_series(struct server_call *c, const struct query_request *q, uint64_t hash,
	struct selector_matcher *out, uint32_t *out_count)
{
	struct query_request each = *q;
	struct str *labels = NULL;
	struct query_range range = { 0 };
	size_t count = 0;
	enum status s = querier_series_labels(c, q, &labels, &count);
	if (s == OK && count > QUERIER_PROFILE_LABELS_MAX)
		s = err_set(c->e, E_LIMIT, "profile_id_selector: more than %d labels",
			QUERIER_PROFILE_LABELS_MAX);
	if (s != OK || count == 0)
		return s;
	each.step_ns = q->to_ns - q->from_ns;
	s = query_range(c->engine, &each, labels, count, &c->a, &range, c->e);
	for (size_t i = 0; s == OK && i < range.count && *out_count == 0; i++) {
		const struct str *values = range.series[i].values;
		if (querier_series_hash(labels, values, count) != hash)
			continue;
		for (size_t k = 0; k < count; k++)
			out[(*out_count)++] =
				(struct selector_matcher){ .name = labels[k], .value = values[k] };
	}
	return s;
}

/* If the profile is not at its time any more, it is searched at the time to which merging of parts
 * has rounded it down. */
enum status querier_profile_select(struct server_call *c, struct str text, struct query_request *q,
	struct selector_matcher *out, uint32_t *out_count, bool *out_found)
{
	struct id id;
	const int64_t from_ns = q->from_ns, to_ns = q->to_ns;
	enum status s = OK;
	*out_count = 0;
	if (!read_id(text, &id))
		return err_set(c->e, E_INVALID, "profile_id_selector: not an id of a profile");
	for (int rounded = 0; s == OK && *out_count == 0 && rounded < 2; rounded++) {
		int64_t time = rounded ? id.time_ns / MERGED_NS * MERGED_NS : id.time_ns;
		q->from_ns = MAX(from_ns, time);
		q->to_ns = MIN(to_ns, time + (rounded ? MERGED_NS : id.step_ns));
		if (q->from_ns < q->to_ns)
			s = find_series(c, q, id.hash, out, out_count);
	}
	*out_found = *out_count > 0;
	return s;
}
