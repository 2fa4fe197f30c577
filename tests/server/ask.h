/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a handler as net would, without a socket. */
#pragma once

#include "net/net.h"

struct ask {
	struct net_request r;
	struct net_response out;
	struct http_header headers[4];
};

static bool ask_gone_value;

static inline bool ask_gone(const struct net_request *r)
{
	(void)r;
	return ask_gone_value;
}

static inline void ask_init(struct ask *a, const char *path, const char *query)
{
	memset(a, 0, sizeof(*a));
	buf_init(&a->out.body, NET_ANSWER_MAX);
	a->r = (struct net_request){ .method = STR("GET"),
		.path = str_of(path),
		.query = str_of(query),
		.headers = a->headers,
		.deadline_ns = INT64_MAX,
		.peer = "test",
		.gone = ask_gone };
}

static inline void ask_header(struct ask *a, const char *name, const char *value)
{
	a->headers[a->r.header_count++] = (struct http_header){ str_of(name), str_of(value) };
}

static inline void ask_deinit(struct ask *a)
{
	buf_deinit(&a->out.body);
}
