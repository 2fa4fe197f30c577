/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.health.v1: each service is as ready as the store is, until the server is about to stop. A
 * watcher gets a message when that changes: it is checked often while the store opens, and once a
 * second after that.
 */
#include "base/clock.h"
#include "pb/pb.h"
#include "server/admin/admin.h"
#include "server/request/request.h"

#define LOOK_NS (100 * NS_PER_MS)
#define LOOK_SERVING_NS NS_PER_SEC

enum serving { UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN };

/* HealthCheckRequest.service; false: malformed. */
static bool service_of(struct str message, struct str *out)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	*out = STR("");
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			*out = f.bytes;
	return !r.failed;
}

static bool is_served(const struct server *s, struct str service)
{
	if (service.len == 0)
		return true;
	for (size_t i = 0; i < s->service_count; i++)
		if (str_eq(service, str_of(s->services[i])))
			return true;
	return false;
}

static enum serving look(struct server *s, struct str service)
{
	if (!is_served(s, service))
		return SERVICE_UNKNOWN;
	bool serving =
		atomic_load_explicit(&s->ready, memory_order_acquire) && !atomic_load(&s->leaving);
	return serving ? SERVING : NOT_SERVING;
}

void server_health_check(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct err e;
	struct str service;
	if (!service_of(r->body, &service)) {
		net_fail(out, E_INVALID, (err_set(&e, E_INVALID, "malformed request"), &e));
		return;
	}
	enum serving now = look((struct server *)ctx, service);
	if (now == SERVICE_UNKNOWN) {
		err_set(&e, E_NOTFOUND, "unknown service");
		net_fail(out, E_NOTFOUND, &e);
		return;
	}
	pb_put_u64(&out->body, 1, now);
}

static enum status watch(
	struct server *s, struct net_stream *stream, struct str service, struct err *e)
{
	enum serving told = UNKNOWN;
	for (;;) {
		enum serving now = look(s, service);
		if (now != told) {
			CLEANUP(buf_deinit) struct buf message;
			buf_init(&message, 16);
			pb_put_u64(&message, 1, now);
			enum status st = net_stream_send(stream, buf_view(&message), e);
			if (st != OK)
				return st;
			told = now;
		}
		int64_t wait_ns = now == NOT_SERVING ? LOOK_NS : LOOK_SERVING_NS;
		enum status st = net_stream_wait(stream, clock_monotonic_ns() + wait_ns, e);
		if (st != OK)
			return st;
	}
}

void server_health_watch(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	struct str message, service;
	bool end;
	(void)r;
	enum status st = net_stream_receive(stream, &message, &end, &e);
	if (st == OK && (end || !service_of(message, &service)))
		st = err_set(&e, E_INVALID, "malformed request");
	if (st == OK && atomic_fetch_add(&s->watchers, 1) >= SERVER_WATCHERS_MAX) {
		atomic_fetch_sub(&s->watchers, 1);
		st = err_set(&e, E_QUOTA, "more than %d watchers", SERVER_WATCHERS_MAX);
	} else if (st == OK) {
		st = watch(s, stream, service, &e);
		atomic_fetch_sub(&s->watchers, 1);
	}
	net_fail(out, st, &e);
}
