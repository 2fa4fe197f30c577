/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover: passes each new executable to the server on the same host, as an open descriptor, and
 * the agent's own figures and status page (docs/formats/handover.md). Private to agent/. Thread
 * safe.
 */
#pragma once

#include "base/err.h"
#include "base/metrics.h"

/* Executables that wait for room in the socket; more are dropped and counted. */
#define HANDOVER_WAITING_MAX 64
#define HANDOVER_FIGURES_MAX 65532 /* bytes of text */
#define HANDOVER_PAGE_MAX 65532

#define HANDOVER_METRICS(X)                                                                     \
	X(sent, COUNTER, "firn_agent_handover_sent_total", "Executables handed to the server.") \
	X(dropped, COUNTER, "firn_agent_handover_dropped_total",                                \
		"Executables that could not be handed over.")
struct handover_metrics {
	HANDOVER_METRICS(METRIC_FIELD)
};

struct handover;

/* `fd` is a connected SOCK_SEQPACKET socket, and stays the caller's; -1: everything is a no-op. */
NODISCARD enum status handover_new(int fd, struct handover **out, struct err *e);
void handover_free(struct handover *h); /* NULL is fine; what waits is dropped */
/* Never blocks. `fd` is duplicated. Of the form of files_seen_fn, ctx being the handover. */
void handover_send(void *ctx, const char *build_id, const char *path, int fd);
/* Tries to send what waits. True while something waits. */
bool handover_retry(struct handover *h);
/* The agent's metrics as they are now; never blocks. What does not fit is left out: newer ones
 * follow. */
void handover_send_figures(struct handover *h, struct str text);
/* Likewise its status page, without the tags that end it. */
void handover_send_page(struct handover *h, struct str html);
/* False: there is no server on this host, so no figures are needed. */
bool handover_is_connected(struct handover *h);
/* True when the server was started again since the last call: what it had taken may be lost. Never
 * blocks. */
bool handover_server_is_new(struct handover *h);
void handover_write_metrics(const struct handover *h, struct buf *out);
