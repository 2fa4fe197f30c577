/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink that stands in for a store: it says what the test wants, counts, and keeps what it was
 * given last. And the limits of a server without flags.
 */
#pragma once

#include "ingest/ingest.h"
#include "test.h"

struct fake_sink {
	struct samples_sink base; /* the first member */
	enum status health, admit, put;
	uint32_t admit_from; /* the call of admit() from which on `admit` holds */
	uint32_t admits, puts;
	size_t samples;    /* put so far */
	uint64_t admitted; /* bytes, not given back yet */
	uint64_t kept;     /* of them, while a sender was waited for last */
	uint64_t lent;     /* given back then, until they are asked for again */
	struct hash128 id;
	void (*look)(const struct profile *p); /* at what is put; may be NULL */
};

/* What a message takes. */
static inline uint64_t fake_sink_bytes(uint64_t message_bytes)
{
	return 6 * message_bytes + 1;
}

static inline enum status fake_sink_admit(
	struct samples_sink *s, uint64_t message_bytes, struct samples_entry **entry, struct err *e)
{
	struct fake_sink *f = (struct fake_sink *)s;
	if (f->admit != OK && f->admits++ >= f->admit_from)
		return err_set(e, f->admit, "no memory now");
	f->admitted += fake_sink_bytes(message_bytes) + f->lent;
	f->lent = 0;
	*entry = (struct samples_entry *)f;
	return OK;
}

static inline void fake_sink_keep(
	struct samples_sink *s, struct samples_entry *entry, uint64_t bytes)
{
	struct fake_sink *f = (struct fake_sink *)s;
	CHECK(entry != NULL);
	f->kept = MIN(bytes, f->admitted);
	f->lent += f->admitted - f->kept;
	f->admitted = f->kept;
}

static inline void fake_sink_admit_end(struct samples_sink *s, struct samples_entry *entry)
{
	struct fake_sink *f = (struct fake_sink *)s;
	CHECK((entry != NULL) == (f->admitted > 0));
	f->admitted = f->lent = 0;
}

static inline enum status fake_sink_put(struct samples_sink *s, struct str tenant,
	const struct profile *p, struct hash128 batch_id, struct err *e)
{
	struct fake_sink *f = (struct fake_sink *)s;
	(void)tenant;
	CHECK_OK(profile_validate(p, e), e);
	f->puts++;
	f->id = batch_id;
	if (f->look)
		f->look(p);
	if (f->put != OK)
		return err_set(e, f->put, "the store says no");
	f->samples += p->samples.len;
	return OK;
}

static inline enum status fake_sink_health(struct samples_sink *s, struct err *e)
{
	struct fake_sink *f = (struct fake_sink *)s;
	return f->health == OK ? OK : err_set(e, f->health, "the store is ill");
}

static inline void fake_sink_init(struct fake_sink *f)
{
	static const struct samples_sink_ops ops = { .admit = fake_sink_admit,
		.keep = fake_sink_keep,
		.admit_end = fake_sink_admit_end,
		.put = fake_sink_put,
		.health = fake_sink_health };
	*f = (struct fake_sink){ .base = { &ops } };
}

static const struct ingest_config fake_sink_config = { .limits = { .labels = 128,
							       .label_name_bytes = 256,
							       .label_value_bytes = 4096,
							       .stack_frames = PROFILE_STACK_MAX,
							       .series = 1000000 } };

/* With that sink behind it. */
static inline void fake_sink_ingest(struct fake_sink *f, struct ingest *in)
{
	struct err e = { 0 };
	fake_sink_init(f);
	CHECK_OK(ingest_init(in, &fake_sink_config, &e), &e);
	ingest_open(in, &f->base, NULL);
}
