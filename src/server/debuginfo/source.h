/* SPDX-License-Identifier: Apache-2.0 */
/* source: the answers of GET /api/source and GET /api/instructions. */
#pragma once

#include "net/net.h"
#include "query/query.h"
#include "server/request/request.h"

#include <sys/stat.h>

/* source.c */

/* The source file of this path on this host, appended to `out`. False: there is none, or the client
 * may not have it. The caller must have checked that symbols name it. */
#define SERVER_HOST_SOURCE_BYTES_MAX ((size_t)4 << 20)
bool server_host_source(const struct server *s, const struct net_request *r, struct str file,
	struct buf *out, struct stat *out_stat);
NODISCARD enum status server_source(struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct query_request *q, struct buf *out, struct err *e);
/* Writes the beginning of an answer with places in code, up to "builds" and its value. */
void server_write_places(const struct query_places *p, struct buf *b);
/* code.c: the answer of GET /api/instructions. */
NODISCARD enum status server_instructions(struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct query_request *q, struct buf *out, struct err *e);
