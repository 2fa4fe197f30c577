/* SPDX-License-Identifier: Apache-2.0 */
/* handover: what the agent of the same `firn up` gives the server. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "server/request/request.h"

/* handover.c */
NODISCARD enum status server_handover_start(struct server *s, struct err *e);
void server_handover_stop(struct server *s);
/* Writes the agent's last figures, if it has sent some. */
void server_handover_write_figures(struct server *s, struct buf *out);
