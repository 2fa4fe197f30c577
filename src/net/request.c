/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for handlers: to read a request and to refuse it. */
#include "net/net.h"
#include "net/rpc.h"

#include <stdio.h>

struct str net_header_find(const struct net_request *r, const char *name)
{
	struct str want = str_of(name);
	for (size_t i = 0; i < r->header_count; i++)
		if (str_eq(r->headers[i].name, want))
			return r->headers[i].value;
	return STR("");
}

bool net_query_param(
	const struct net_request *r, const char *key, size_t n, struct arena *a, struct str *out)
{
	return http_query_find(r->query, key, n, a, out);
}

void net_response_init(struct net_response *out)
{
	memset(out, 0, sizeof(*out));
	buf_init(&out->body, NET_ANSWER_MAX);
}

void net_fail(struct net_response *out, enum status s, const struct err *e)
{
	const char *text = err_text(e, s);
	out->status = s;
	out->http_status = status_http(s);
	snprintf(out->message, sizeof(out->message), "%s", text);
	out->content_type = "application/json";
	out->no_compress = false;
	buf_clear(&out->body);
	buf_cstr(&out->body, "{\"error\":");
	buf_json_str(&out->body, str_of(text));
	buf_printf(&out->body, ",\"code\":\"%s\"}\n", status_name(s));
}
