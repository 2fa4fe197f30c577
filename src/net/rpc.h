/* SPDX-License-Identifier: Apache-2.0 */
/* rpc: how messages are framed in the bodies of requests and answers, and how each protocol shows a
 * status. */
#pragma once

#include "net/net.h"

#define NET_ANSWER_HEADERS_MAX 32
#define NET_COMPRESS_LEVEL 2

enum net_framing {
	NET_PLAIN,
	NET_GRPC,
	NET_GRPC_WEB,
	NET_GRPC_WEB_TEXT,
	NET_CONNECT_STREAM,
	NET_CONNECT_STREAM_JSON,
	NET_CONNECT, /* of one message each way, as are the rest */
	NET_CONNECT_JSON,
	NET_REST,
};

/* Frames both ways, in protobuf or JSON. */
static inline bool net_is_connect_stream(enum net_framing f)
{
	return f == NET_CONNECT_STREAM || f == NET_CONNECT_STREAM_JSON;
}

struct net_answer {
	int http_status;
	struct http_header headers[NET_ANSWER_HEADERS_MAX];
	size_t header_count;
	struct http_header trailers[2];
	size_t trailer_count;
	struct buf body;
	bool no_body; /* trailers only, 204, 304 */
	enum net_framing framing;
	char date[40];
	char grpc_status[8];
	char grpc_message[3 * ERR_TEXT_MAX + 1];
};

/* How a body of this content type is framed; NET_PLAIN for what is no RPC. */
enum net_framing net_framing_of(struct str content_type);
/* The message in a request's body, of at most `message_max` bytes where it is framed; `scratch`
 * holds what had to be decoded. */
NODISCARD enum status net_rpc_decode(enum net_framing f, const struct http_request *r,
	struct str body, size_t message_max, struct buf *scratch, struct str *out, struct err *e);
void net_answer_add(struct net_answer *a, struct str name, struct str value);
/* Makes `a` from a handler's response; `response->body` is left empty. */
void net_answer_make(struct net_answer *a, enum net_framing f, const struct http_request *r,
	struct net_response *response);
void net_response_init(struct net_response *out);
/* The same in pieces for a stream: its head, and its end (trailers, or a last frame in `body`). */
void net_answer_begin(struct net_answer *a, enum net_framing f, bool compressed);
/* Of a stream over plain HTTP, as its handler left it before the first piece. */
struct net_plain_head {
	const char *content_type;
	uint64_t bytes; /* of all pieces; 0: not known */
	char lines[sizeof(((struct net_response *)0)->headers)];
};
void net_answer_begin_plain(struct net_answer *a, struct net_plain_head *head);
void net_answer_end(struct net_answer *a, const struct net_response *response);
