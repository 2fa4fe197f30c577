/* SPDX-License-Identifier: Apache-2.0 */
/* files: executables, debug files and source texts by their build id. */
#pragma once

#include "debuginfo/debuginfo.h"
#include "net/net.h"
#include "server/request/request.h"

/* debuginfod.c: the executable or debug file of a build id, if the client may have it. E_NOTFOUND:
 * there is none, or the client may not have it. */
NODISCARD enum status server_build_file(struct server *s, const struct net_request *r,
	const struct debuginfo_key *key, int *out_fd, struct err *e);

/* debuginfo.c */

/* Appends the text of a source file to `out`, from an upload or from another debuginfod server;
 * *out_origin (may be NULL) is "upload" or "debuginfod". It waits for such a server until
 * `until_ns`, which is the deadline of all texts of one request: clock_monotonic_ns() +
 * SERVER_SOURCE_WAIT_NS. E_NOTFOUND: there is no text; E_UNAVAILABLE: it may come later. */
#define SERVER_SOURCE_WAIT_NS (5 * NS_PER_SEC)
NODISCARD enum status server_source_text(const struct server *s, struct str tenant,
	struct str build_id, struct str filename, int64_t until_ns, debuginfo_cancel_fn *cancel,
	void *cancel_ctx, const char **out_origin, struct buf *out, struct err *e);
bool server_has_sources(const struct server *s, struct str tenant, struct str build_id);
