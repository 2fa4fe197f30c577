/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /debug/pprof/profile and /debug/pprof/heap: this server's own, as Go programs serve them, so that
 * any scraper and `go tool pprof` can ask for them. The handler has a thread of its own while it
 * samples, and ends when the client goes.
 *
 * Frames are addresses. pprof names them by the files on its own host, and asks
 * /debug/pprof/symbol for those of files without symbols, such as a stripped libc; another answer
 * than 200 ends it. The answer is that there are no names here either.
 */
#include "self/self.h"
#include "codec/codec.h"
#include "pprof/pprof.h"
#include "server/admin/admin.h"

#include "base/clock.h"
#include "base/log.h"

#define SECONDS_DEFAULT 30
#define GZIP_LEVEL 1

static enum status write_profile(const struct profile *p, struct net_response *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, SELF_BYTES_MAX);
	enum status s = pprof_encode(p, &plain, e);
	if (s == OK)
		s = codec_gzip(plain.data, plain.len, GZIP_LEVEL, &out->body);
	out->content_type = "application/octet-stream";
	out->no_compress = true;
	return s;
}

static enum status seconds_of(const struct net_request *r, uint64_t *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct str text;
	arena_init(&a, 4096);
	*out = SECONDS_DEFAULT;
	if (!net_query_param(r, "seconds", 0, &a, &text))
		return OK;
	if (!str_parse_u64(text, 10, out) || *out < 1 || *out > SELF_SECONDS_MAX)
		return err_set(e, E_INVALID, "seconds must be a whole number from 1 to %d",
			SELF_SECONDS_MAX);
	return OK;
}

static enum status take_cpu(
	const struct net_request *r, struct net_stream *stream, struct profile *out, struct err *e)
{
	uint64_t seconds = 0, lost = 0;
	struct self_cpu *c = NULL;
	enum status s = seconds_of(r, &seconds, e);
	if (s == OK)
		s = self_cpu_start(&c, e);
	int64_t now = clock_monotonic_ns(), end = now + (int64_t)seconds * NS_PER_SEC;
	for (; s == OK && now < end; now = clock_monotonic_ns()) {
		s = net_stream_wait(stream, MIN(now + SELF_LOOK_NS, end), e);
		if (s == OK)
			s = self_cpu_look(c, e);
	}
	if (s == OK)
		s = self_cpu_stop(c, out, &lost, e);
	if (lost)
		log_warn("samples of the own CPU profile were lost", "count=%llu",
			(unsigned long long)lost);
	self_cpu_free(c);
	return s;
}

void server_self_cpu(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	CLEANUP(profile_deinit) struct profile p;
	struct err e = { 0 };
	(void)ctx;
	enum status s = profile_init(&p, SELF_BYTES_MAX);
	if (s == OK)
		s = take_cpu(r, stream, &p, &e);
	if (s == OK)
		s = write_profile(&p, out, &e);
	if (s != OK)
		net_fail(out, s, &e);
}

void server_handle_self_symbol(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "text/plain; charset=utf-8";
	buf_cstr(&out->body, "num_symbols: 0\n");
}

void server_handle_self_list(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "text/html; charset=utf-8";
	buf_cstr(&out->body,
		"<!doctype html><title>/debug/pprof/</title><p>Profiles of this server:</p><ul>"
		"<li><a href=\"heap\">heap</a>: what malloc has in use, keeps free and mapped</li>"
		"<li><a href=\"profile?seconds=30\">profile</a>: CPU time, of 30 "
		"seconds</li></ul>");
}

void server_handle_self_heap(void *ctx, const struct net_request *r, struct net_response *out)
{
	CLEANUP(profile_deinit) struct profile p;
	struct err e = { 0 };
	(void)ctx;
	(void)r;
	enum status s = profile_init(&p, SELF_BYTES_MAX);
	if (s == OK)
		s = self_heap(&p, &e);
	if (s == OK)
		s = write_profile(&p, out, &e);
	if (s != OK)
		net_fail(out, s, &e);
}
