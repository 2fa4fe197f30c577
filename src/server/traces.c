/* SPDX-License-Identifier: Apache-2.0 */
/* How: net reports each request that was handled, and trace makes a span of it. */
#include "base/clock.h"
#include "base/log.h"
#include "server/request/request.h"
#include "server/start.h"
#include "trace/trace.h"

static void told(enum status s, const struct err *e)
{
	char quoted[ERR_TEXT_MAX + 2];
	if (s == OK)
		log_info("the collector takes traces again", "status=OK");
	else
		log_warn("the collector takes no traces", "err=%s",
			log_quote(str_of(err_text(e, s)), quoted, sizeof(quoted)));
}

/* Whether a failure is the server's fault, and not its client's. */
static bool is_fault(const struct net_handled *h)
{
	switch (h->status) {
	case OK:
		return h->http_status >= 500;
	case E_INVALID:
	case E_NOTFOUND:
	case E_DENIED:
	case E_UNAUTHENTICATED:
	case E_CANCELED:
	case E_QUOTA:
	case E_LIMIT:
	case E_EXISTS:
	case E_PRECONDITION:
		return false;
	default:
		return true;
	}
}

static void handled(void *ctx, const struct net_handled *h)
{
	struct server *s = ctx;
	int64_t now_ns = clock_realtime_ns();
	const struct trace_span span = { .method = h->request->method,
		.route = str_of(h->route),
		.parent = net_header_find(h->request, "traceparent"),
		.http_status = h->http_status ? h->http_status : 200,
		.failed = is_fault(h),
		.begun_ns = now_ns - (clock_monotonic_ns() - h->begun_ns),
		.ended_ns = now_ns };
	trace_add(s->trace, &span);
}

enum status server_traces_open(struct server *s, struct net_server_config *c, struct err *e)
{
	const struct trace_config config = { .address = s->config->otlp_address,
		.http = s->config->otlp_http,
		.secure = s->config->otlp_secure };
	if (!config.address || !config.address[0])
		return OK;
	enum status st = trace_open(&config, told, &s->trace, e);
	if (st != OK)
		return err_prefix(e, st, "--otlp-address");
	c->handled = handled;
	c->handled_ctx = s;
	return OK;
}
