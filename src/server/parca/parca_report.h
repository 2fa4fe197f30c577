/* SPDX-License-Identifier: Apache-2.0 */
/* parca_report: the report of a request in Parca's terms. */
#pragma once

#include "net/net.h"
#include "query/query.h"
#include "server/request/request.h"

/* parca_query.c */
struct parca_query_request;
struct query_report;
/* The report of a decoded request, as QueryResponse's member of its kind. */
NODISCARD enum status server_parca_report(const struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct parca_query_request *q, struct arena *a,
	struct buf *out, struct query_report *info, struct err *e);
