/* SPDX-License-Identifier: Apache-2.0 */
/* The store as a samples_sink: each function is one of store.h's, by another name. */
#include "samples/sink.h"
#include "store/state/state.h"

/* Bytes of memory that a message takes while it is decoded and encoded again. */
#define ADMIT_BYTES(message_len) ((message_len)*6ull + 65536)

static struct store *store_of(struct samples_sink *sink)
{
	return (struct store *)((char *)sink - offsetof(struct store, sink));
}

static enum status sink_admit(struct samples_sink *sink, uint64_t message_bytes,
	struct samples_entry **entry, struct err *e)
{
	struct store_entry *own = (struct store_entry *)*entry;
	enum status s = store_admit(store_of(sink), ADMIT_BYTES(message_bytes), &own, e);
	*entry = (struct samples_entry *)own;
	return s;
}

static void sink_keep(struct samples_sink *sink, struct samples_entry *entry, uint64_t bytes)
{
	store_admit_keep(store_of(sink), (struct store_entry *)entry, bytes);
}

static void sink_admit_end(struct samples_sink *sink, struct samples_entry *entry)
{
	store_admit_end(store_of(sink), (struct store_entry *)entry);
}

static enum status sink_put(struct samples_sink *sink, struct str tenant, const struct profile *p,
	struct hash128 batch_id, struct err *e)
{
	return store_append(store_of(sink), tenant, p, batch_id, e);
}

static enum status sink_health(struct samples_sink *sink, struct err *e)
{
	struct store *s = store_of(sink);
	enum status st = OK;
	lock_take(&s->lock);
	if (s->flush_status != OK &&
		atomic_load(&s->active->bytes) + s->reserved_bytes >= s->memtable_bytes)
		st = err_set(e, E_UNAVAILABLE,
			"the memory budget is full, and it cannot be written: %.150s",
			err_text(&s->flush_err, s->flush_status));
	lock_release(&s->lock);
	return st;
}

static const struct samples_sink_ops ops = {
	.admit = sink_admit,
	.keep = sink_keep,
	.admit_end = sink_admit_end,
	.put = sink_put,
	.health = sink_health,
};

struct samples_sink *store_sink(struct store *s)
{
	s->sink.ops = &ops;
	return &s->sink;
}
