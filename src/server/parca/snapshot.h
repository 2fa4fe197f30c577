/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: profiles that are kept for sharing. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "server/request/request.h"

/* share.c */

/* Keeps a gzipped profile.proto until `end_ns`; appends the answer of POST /api/snapshots to `out`.
 */
NODISCARD enum status server_snapshot(struct server *s, struct str tenant, struct str profile,
	int64_t end_ns, struct buf *out, struct err *e);
