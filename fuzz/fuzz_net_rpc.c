/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever body comes in whichever framing, the message is within the limit, and a
 * message that was framed as an answer is read back as it was. */
#include "fuzz/fuzz.h"

#include "net/internal.h"
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

static void around(enum net_framing f, struct str message)
{
	static struct net_answer a;
	static struct net_response response;
	struct http_request r = { 0 };
	struct buf scratch;
	struct str back, body;
	net_response_init(&response);
	buf_str(&response.body, message);
	net_answer_make(&a, f, &r, &response);
	body = buf_view(&a.body);
	/* A client's view: gRPC-Web has a frame of trailers behind the message. */
	if (f == NET_GRPC_WEB)
		body.len -= 21;
	buf_init(&scratch, 2 * MESSAGE_MAX);
	FUZZ_CHECK(net_rpc_decode(f, &r, body, 2 * MESSAGE_MAX, &scratch, &back, NULL) == OK);
	FUZZ_CHECK(str_eq(back, message));
	buf_deinit(&scratch);
	buf_deinit(&a.body);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > MESSAGE_MAX)
		return 0;
	struct str rest = str_make(data + 1, size - 1);
	enum net_framing f = (enum net_framing)(data[0] % (NET_REST + 1));
	decode(f, data[0] & 0x80 ? STR("gzip") : STR(""), rest);
	objects(rest);
	around(NET_GRPC, rest);
	around(NET_GRPC_WEB, rest);
	return 0;
}
