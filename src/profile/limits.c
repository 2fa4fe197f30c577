/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the samples. Each label set is checked once; a sample is refused for the first
 * reason found, and the remaining samples move up.
 */
#include "profile/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S 1000000000

/* The reason to refuse one label set, if any. */
struct set_fault {
	bool known;
	uint8_t reason; /* enum profile_refusal */
	uint32_t label; /* labels[] that is at fault */
};

struct checker {
	struct profile *p;
	const struct profile_limits *l;
	struct set_fault *sets;
	struct profile_refused *out;
};

const char *profile_refusal_name(enum profile_refusal r)
{
	static const char *const names[] = {
#define REFUSAL_NAME(id, name, help) name,
		PROFILE_REFUSALS(REFUSAL_NAME)
#undef REFUSAL_NAME
	};
	return (size_t)r < ARRAY_COUNT(names) ? names[r] : "";
}

/* A label that a decoder packed from several has a limit of its own. */
static size_t value_bytes_max(const struct checker *c, struct str name)
{
	size_t most = c->l->label_value_bytes_max;
	return profile_label_is_hidden(name) ? MAX(most, (size_t)PROFILE_COMMENTS_BYTES_MAX) : most;
}

static const struct set_fault *look_at_set(struct checker *c, uint32_t id)
{
	struct set_fault *f = &c->sets[id];
	const struct profile_labels *set = &c->p->label_sets.v[id];
	if (f->known)
		return f;
	*f = (struct set_fault){ .known = true, .reason = PROFILE_REFUSALS_COUNT };
	for (uint32_t i = 0; i < set->count && f->reason == PROFILE_REFUSALS_COUNT; i++) {
		const struct profile_label *label = &c->p->labels.v[set->first + i];
		if (profile_str(c->p, label->name).len > c->l->label_name_bytes_max)
			f->reason = PROFILE_REFUSED_LABEL_NAME;
		else if (profile_str(c->p, label->value).len >
			 value_bytes_max(c, profile_str(c->p, label->name)))
			f->reason = PROFILE_REFUSED_LABEL_VALUE;
		f->label = set->first + i;
	}
	return f;
}

/* ---- the sentence, for the first one ---- */

static void put_time(char out[40], int64_t ns)
{
	struct tm t;
	time_t s = (time_t)(ns / NS_PER_S);
	if (!gmtime_r(&s, &t) || !strftime(out, 40, "%Y-%m-%dT%H:%M:%SZ", &t))
		out[0] = 0;
}

static void say_label(struct checker *c, const struct set_fault *f, const char *what, uint32_t max)
{
	const struct profile_label *label = &c->p->labels.v[f->label];
	struct str name = profile_str(c->p, label->name);
	size_t len = f->reason == PROFILE_REFUSED_LABEL_NAME ? name.len
							     : profile_str(c->p, label->value).len;
	snprintf(c->out->reason, sizeof(c->out->reason),
		"label %.*s: its %s has %zu bytes; %" PRIu32 " are allowed",
		STR_ARG(str_sub(name, 0, 64)), what, len, max);
}

static void say(struct checker *c, const struct profile_sample *s, enum profile_refusal r,
	const struct set_fault *f)
{
	char time[40], limit[40];
	put_time(time, s->time_ns);
	char *out = c->out->reason;
	size_t size = sizeof(c->out->reason);
	switch (r) {
	case PROFILE_REFUSED_LABELS:
		snprintf(out, size, "%" PRIu32 " labels; %" PRIu32 " are allowed",
			c->p->label_sets.v[s->resource].count + c->p->label_sets.v[s->own].count,
			c->l->labels_max);
		return;
	case PROFILE_REFUSED_LABEL_NAME:
		say_label(c, f, "name", c->l->label_name_bytes_max);
		return;
	case PROFILE_REFUSED_LABEL_VALUE:
		say_label(c, f, "value", c->l->label_value_bytes_max);
		return;
	case PROFILE_REFUSED_OLD:
		put_time(limit, c->l->time_min_ns);
		snprintf(out, size, "time %s (%" PRId64 " ns) is before %s, where retention begins",
			time, s->time_ns, limit);
		return;
	case PROFILE_REFUSED_FUTURE:
		put_time(limit, c->l->time_max_ns);
		snprintf(out, size, "time %s (%" PRId64 " ns) is in the future (after %s)", time,
			s->time_ns, limit);
		return;
	case PROFILE_REFUSED_PERIOD:
		snprintf(out, size, "period %" PRId64 ", duration %" PRId64,
			c->p->heads.v[s->head].period, c->p->heads.v[s->head].duration_ns);
		return;
	case PROFILE_REFUSALS_COUNT:
		return;
	}
}

/* ---- samples ---- */

static enum profile_refusal refusal_of(
	struct checker *c, const struct profile_sample *s, const struct set_fault **out_fault)
{
	const struct profile_head *h = &c->p->heads.v[s->head];
	const struct set_fault *resource = look_at_set(c, s->resource);
	const struct set_fault *own = look_at_set(c, s->own);
	*out_fault = resource->reason != PROFILE_REFUSALS_COUNT ? resource : own;
	if ((*out_fault)->reason != PROFILE_REFUSALS_COUNT)
		return (enum profile_refusal)(*out_fault)->reason;
	if (c->p->label_sets.v[s->resource].count + c->p->label_sets.v[s->own].count >
		c->l->labels_max)
		return PROFILE_REFUSED_LABELS;
	if (s->time_ns < c->l->time_min_ns)
		return PROFILE_REFUSED_OLD;
	if (s->time_ns > c->l->time_max_ns)
		return PROFILE_REFUSED_FUTURE;
	if (h->period < 0 || h->duration_ns < 0)
		return PROFILE_REFUSED_PERIOD;
	return PROFILE_REFUSALS_COUNT;
}

static bool are_alike(const struct profile_sample *a, const struct profile_sample *b)
{
	return a->head == b->head && a->time_ns == b->time_ns && a->resource == b->resource &&
	       a->own == b->own;
}

enum status profile_limit(
	struct profile *p, const struct profile_limits *l, struct profile_refused *out)
{
	struct checker c = { .p = p, .l = l, .out = out };
	size_t kept = 0;
	*out = (struct profile_refused){ 0 };
	c.sets = calloc(p->label_sets.len, sizeof(*c.sets));
	if (!c.sets)
		return E_NOMEM;
	const struct set_fault *fault = NULL;
	enum profile_refusal r = PROFILE_REFUSALS_COUNT;
	for (size_t i = 0; i < p->samples.len; i++) {
		struct profile_sample *x = &p->samples.v[i]; /* x - 1 is still unchanged */
		/* Consecutive samples of a profile without labels of samples are alike. */
		if (i == 0 || !are_alike(x - 1, x))
			r = refusal_of(&c, x, &fault);
		if (r == PROFILE_REFUSALS_COUNT) {
			if (kept != i)
				p->samples.v[kept] = *x;
			kept++;
			continue;
		}
		if (out->samples == 0)
			out->first = r;
		if (out->samples++ == 0)
			say(&c, x, r, fault);
		out->by_reason[r]++;
	}
	p->samples.len = kept;
	free(c.sets);
	return OK;
}
