/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send: gives the batches to the server, in a thread of its own. Private to agent/.
 *
 * sender_push() never blocks and never fails: while the server is away, batches wait in the spool
 * on disk (docs/formats/spool.md), or in memory where there is none; at the limits the oldest are
 * dropped and counted. It is tried again after 1 s, 2 s, … 60 s, each with up to a fifth more or
 * less, so that many agents do not come back together. A new batch goes first, then one from the
 * spool, so that the present is seen while the past is sent.
 *
 * Always: samples + recovered = sent + Σ lost + waiting + spooled.
 *
 * Thread safety: sender_push() from one thread; metrics from any.
 */
#pragma once

#include "agent/send/batch.h"
#include "agent/send/handover.h"
#include "agent/send/remote.h"
#include "agent/send/runtimes_met.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"

/* Bytes that wait in memory: pushed and not yet taken by the thread (QUEUE), and kept there when
 * there is no spool (HELD). */
#define SEND_QUEUE_BYTES_MAX ((size_t)16 << 20)
#define SEND_QUEUE_BATCHES_MAX 256
#define SEND_HELD_BYTES_MAX ((size_t)8 << 20)
/* After so many answers "too much" in a row the batch itself is taken to be too large. */
#define SEND_LIMIT_ANSWERS_MAX 8

struct sender_config {
	struct remote_config remote;
	/* By the sender's thread: the server answers on a new connection; NULL: no callback. */
	void (*connected)(void *ctx);
	void *ctx;
	bool offline;          /* nothing is sent: all goes to the spool */
	const char *spool_dir; /* "" or NULL: none */
	uint64_t spool_bytes_max;
	int64_t timeout_ns;     /* of one attempt */
	int64_t backoff_min_ns; /* 1 s */
	int64_t backoff_max_ns; /* 60 s */
};
void sender_config_default(struct sender_config *c);

#define SEND_LOST "firn_agent_send_lost_total"
#define SEND_LOST_HELP "Samples lost on the way to the server, by reason."
#define SEND_METRICS(X)                                                                        \
	X(batches, COUNTER, "firn_agent_send_batches_total", "Batches to be sent.")            \
	X(samples, COUNTER, "firn_agent_send_samples_total", "Samples to be sent.")            \
	X(recovered, COUNTER, "firn_agent_send_recovered_total",                               \
		"Samples that an earlier agent left in the spool.")                            \
	X(sent, COUNTER, "firn_agent_sent_samples_total", "Samples that the server took.")     \
	X(sent_bytes, COUNTER, "firn_agent_sent_bytes_total", "Bytes of batches sent.")        \
	X(lost_queue, COUNTER, SEND_LOST "{reason=\"memory\"}", SEND_LOST_HELP)                \
	X(lost_spool, COUNTER, SEND_LOST "{reason=\"spool_full\"}", SEND_LOST_HELP)            \
	X(lost_damaged, COUNTER, SEND_LOST "{reason=\"damaged\"}", SEND_LOST_HELP)             \
	X(lost_refused, COUNTER, SEND_LOST "{reason=\"refused\"}", SEND_LOST_HELP)             \
	X(rejected_profiles, COUNTER, "firn_agent_send_rejected_profiles_total",               \
		"Profiles that the server left out of batches it took.")                       \
	X(failures, COUNTER, "firn_agent_send_failures_total", "Attempts that failed.")        \
	X(spool_failures, COUNTER, "firn_agent_spool_failures_total",                          \
		"Times that a batch could not be written to the spool.")                       \
	X(waiting, GAUGE, "firn_agent_send_waiting_samples", "Samples that wait in memory.")   \
	X(waiting_bytes, GAUGE, "firn_agent_send_waiting_bytes", "Bytes that wait in memory.") \
	X(spooled, GAUGE, "firn_agent_spool_samples", "Samples in the spool.")                 \
	X(spool_batches, GAUGE, "firn_agent_spool_batches", "Batches in the spool.")           \
	X(spool_bytes, GAUGE, "firn_agent_spool_bytes", "Bytes of the spool.")                 \
	X(reachable, GAUGE, "firn_agent_server_reachable", "1 when the last attempt was answered.")
struct send_metrics {
	SEND_METRICS(METRIC_FIELD)
};

struct sender;

/* E_EXISTS: another agent uses the spool. E_INVALID: not an address. The server need not be there.
 */
NODISCARD enum status sender_new(const struct sender_config *c, struct sender **out, struct err *e);
/* Takes the message over; it is empty afterwards. */
void sender_push(struct sender *s, struct buf *message, uint32_t samples);
/* Sends what waits in memory while the server answers, at most for so long; the rest goes to the
 * spool, or is lost and counted where there is none. The metrics hold afterwards. */
void sender_stop(struct sender *s, int64_t timeout_ns);
void sender_free(struct sender *s); /* stops it if it was not; NULL is fine */
const struct send_metrics *sender_metrics(const struct sender *s);
/* Nothing waits, neither in memory nor on disk. */
bool sender_is_done(const struct sender *s);
void sender_write_metrics(const struct sender *s, struct buf *out);
