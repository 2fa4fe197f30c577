/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: reads and answers OTLP requests of all signals. */
#pragma once

#include "net/net.h"
#include "pb/pb.h"

/* otlp.c */

/* The message of a request of any signal, in protobuf or made of JSON. */
struct server_otlp_body {
	struct str message;
	struct buf made; /* of JSON */
	bool json;
	bool bad_type; /* the content type is none of OTLP's */
};
NODISCARD enum status server_otlp_body_read(const struct net_request *r, const struct pb_desc *d,
	struct server_otlp_body *out, struct err *e);
void server_otlp_body_deinit(struct server_otlp_body *b);
/* Answers with out->body, a message of `d`, in the encoding of the request; or with the failure. */
void server_otlp_answer(const struct net_request *r, const struct server_otlp_body *b,
	const struct pb_desc *d, enum status st, const struct err *e, struct net_response *out);
#define SERVER_OTLP_GRPC \
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define SERVER_OTLP_HTTP "/v1development/profiles"
