/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever body comes in whichever framing, the message is within the limit, and a
 * message that was framed as an answer, whole or as a stream, is read back as it was; a failure has
 * its status and sentence in each framing. */
#include "fuzz/fuzz.h"

#include <stdio.h>

#include "net/state.h"
#include "net/transcode.h"
#include "tests/pb/sample.h"

#define MESSAGE_MAX 10000

static void decode(enum net_framing f, struct str encoding, struct str body)
{
	struct http_header headers[] = { { STR("grpc-encoding"), encoding },
		{ STR("content-encoding"), encoding } };
	struct http_request r = { .headers = headers, .header_count = 2 };
	struct buf scratch;
	struct str message;
	buf_init(&scratch, MESSAGE_MAX);
	if (net_rpc_decode(f, &r, body, MESSAGE_MAX, &scratch, &message, NULL) == OK) {
		bool in_place = f == NET_PLAIN || f >= NET_CONNECT;
		FUZZ_CHECK(in_place || message.len <= MESSAGE_MAX);
	}
	buf_deinit(&scratch);
}

static void check_back(enum net_framing f, const struct net_answer *a, struct str message)
{
	struct http_header encoding = { STR("grpc-encoding"), STR("") };
	struct http_request r = { .headers = &encoding, .header_count = 1 };
	struct str body = buf_view(&a->body), back;
	struct buf scratch, plain;
	for (size_t i = 0; i < a->header_count; i++)
		if (str_ends(a->headers[i].name, STR("-encoding")))
			encoding = a->headers[i];
	buf_init(&scratch, 2 * MESSAGE_MAX);
	buf_init(&plain, 2 * MESSAGE_MAX + 100);
	if (f == NET_GRPC_WEB_TEXT) {
		FUZZ_CHECK(http_base64_decode(&plain, body));
		body = buf_view(&plain);
		f = NET_GRPC_WEB;
	}
	/* A client's view: gRPC-Web has a frame of trailers behind the message. */
	if (f == NET_GRPC_WEB)
		body.len -= 21;
	FUZZ_CHECK(net_rpc_decode(f, &r, body, 2 * MESSAGE_MAX, &scratch, &back, NULL) == OK);
	FUZZ_CHECK(str_eq(back, message));
	buf_deinit(&scratch);
	buf_deinit(&plain);
}

/* `gzip`: the client takes it. */
static void around(enum net_framing f, struct str message, bool gzip)
{
	static struct net_answer a;
	static struct net_response response;
	struct http_header accepts[] = { { STR("grpc-accept-encoding"), STR("gzip") },
		{ STR("accept-encoding"), STR("gzip") } };
	struct http_request r = { .headers = accepts, .header_count = gzip ? 2 : 0 };
	net_response_init(&response);
	buf_str(&response.body, message);
	net_answer_make(&a, f, &r, &response);
	FUZZ_CHECK(a.http_status == 200 && !a.no_body);
	check_back(f, &a, message);
	buf_deinit(&a.body);
}

/* The sentence may be any bytes. */
static void failure(enum net_framing f, struct str sentence, uint8_t how)
{
	static struct net_answer a;
	static struct net_response response;
	static const enum status statuses[] = { E_INVALID, E_NOTFOUND, E_LIMIT, E_UNAVAILABLE,
		E_TIMEOUT, E_CANCELED, E_DENIED, E_UNSUPPORTED, E_IO };
	struct http_request r = { 0 };
	struct err e;
	enum status st = statuses[how % ARRAY_COUNT(statuses)];
	net_response_init(&response);
	snprintf(response.headers, sizeof(response.headers), "X-A: %.*s\r\nX-B: 1\r\n",
		(int)MIN(sentence.len, (size_t)40), sentence.p);
	err_set(&e, st, "%.*s", (int)MIN(sentence.len, (size_t)400), sentence.p);
	net_fail(&response, st, &e);
	net_answer_make(&a, f, &r, &response);
	if (f == NET_GRPC)
		FUZZ_CHECK(a.no_body && a.grpc_status[0] != '0');
	else
		FUZZ_CHECK(a.body.len > 0);
	buf_deinit(&a.body);
	/* A stream that has begun. */
	net_response_init(&response);
	net_fail(&response, st, &e);
	net_answer_begin(&a, f, how & 1);
	net_answer_end(&a, &response);
	FUZZ_CHECK(f == NET_GRPC ? a.trailer_count == 2 : a.body.len > 0);
	buf_deinit(&a.body);
	buf_deinit(&response.body);
}

/* Objects one behind the other: what is accepted is whole frames. */
static void objects(struct str text)
{
	static const struct pb_method method = { "M", &sample_desc, &sample_desc, true, true };
	static const struct net_route route = { .rpc = &method };
	static struct net_exchange x;
	struct buf frames;
	struct http_grpc_frame f;
	x.route = &route;
	buf_init(&x.message, MESSAGE_MAX);
	buf_init(&frames, 100 * MESSAGE_MAX);
	if (net_json_frames(&x, text, &frames, NULL) == OK) {
		struct str rest = buf_view(&frames);
		while (rest.len)
			FUZZ_CHECK(http_grpc_next(&rest, MESSAGE_MAX, &f, NULL) == OK);
	}
	buf_deinit(&x.message);
	buf_deinit(&frames);
}

/* The whole body of a stream in the framings that come so. */
static void frames_of(enum net_framing f, struct str body, bool gzip)
{
	static struct net_exchange x;
	struct buf out;
	if (f == NET_REST || gzip)
		return;
	x.framing = f;
	buf_init(&x.body, MESSAGE_MAX);
	buf_str(&x.body, body);
	buf_init(&out, MESSAGE_MAX);
	if (net_body_frames(&x, &out, NULL) == OK && f != NET_GRPC_WEB_TEXT)
		FUZZ_CHECK(str_eq(buf_view(&out), body));
	buf_deinit(&out);
	buf_deinit(&x.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > MESSAGE_MAX)
		return 0;
	struct str rest = str_make(data + 1, size - 1);
	enum net_framing f = (enum net_framing)(data[0] % (NET_REST + 1));
	decode(f, data[0] & 0x80 ? STR("gzip") : STR(""), rest);
	objects(rest);
	/* gzip costs far more than all else; in bulk one framing for each input. */
	bool thorough = fuzz_thorough(data, size);
	bool gzip = data[0] & 0x40 && thorough;
	static const enum net_framing framings[] = { NET_GRPC, NET_GRPC_WEB, NET_GRPC_WEB_TEXT,
		NET_CONNECT };
	for (size_t i = 0; i < ARRAY_COUNT(framings); i++)
		if (thorough || framings[i] == f)
			around(framings[i], rest, gzip && (i == 0 || i == 3));
	if (f != NET_PLAIN)
		failure(f, thorough ? rest : str_sub(rest, 0, 32), data[0] / 8);
	frames_of(f, rest, data[0] & 0x80);
	return 0;
}
