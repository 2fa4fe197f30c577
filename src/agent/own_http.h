/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_http: the agent's own HTTP server: /metrics, /healthy, /ready, and a status page at /.
 * Private to agent/.
 */
#pragma once

#include "agent/parts.h"
#include "base/buf.h"

/* Nothing is started where config.http_address is empty. */
NODISCARD enum status own_http_start(struct agent *a, struct err *e);
/* All counters, as Prometheus reads them. */
void own_http_metrics(struct agent *a, struct buf *out);
/* The status page without what ends it, with as many rows as fit; nothing when it does not. */
void own_http_page(struct agent *a, size_t bytes_max, struct buf *out);
