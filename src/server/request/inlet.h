/* SPDX-License-Identifier: Apache-2.0 */
/* inlet: where a protocol puts the samples that it brings. */
#pragma once

#include "ingest/ingest.h"
#include "net/net.h"
#include "server/request/state.h"

/* inlet.c: finds the tenant of a message and calls ingest_batch_begin(). The tenant's text lies in
 * the request. */
NODISCARD enum status server_batch_begin(struct ingest_batch *b, const struct server_inlet *in,
	const struct net_request *r, size_t message_bytes, struct err *e);

/* inlet.c: the inlet of a protocol; the first call makes it. */
NODISCARD enum status server_inlet_of(struct server *s, const struct server_protocol *p,
	struct server_inlet **out, struct err *e);
void server_inlets_close(struct server *s);
