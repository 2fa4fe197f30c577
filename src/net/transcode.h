/* SPDX-License-Identifier: Apache-2.0 */
/* transcode: requests in JSON become messages, and messages JSON. */
#pragma once

#include "net/net.h"
#include "net/state.h"
#include "pb/pb.h"

#define NET_REST_FIELDS_MAX 8 /* in a path */
/* Does "/a/{name}/b" fit the path; its fields, which point into both. */
bool net_rest_fits(const char *pattern, struct str path, struct pb_param *out, size_t *out_count);
/* The message of a request in JSON (or of its URL), by x->route->rpc. */
NODISCARD enum status net_json_message(
	const struct net_exchange *x, struct str text, struct buf *out, struct err *e);
/* Objects one behind the other, as gRPC's frames; `text` is used up. */
NODISCARD enum status net_json_frames(
	struct net_exchange *x, struct str text, struct buf *out, struct err *e);
/* The messages of a whole request to a stream, as gRPC's frames. */
NODISCARD enum status net_body_frames(struct net_exchange *x, struct buf *out, struct err *e);
/* One message of a stream: alone, or {"result":…} on a line where there may be more. */
NODISCARD enum status net_json_piece(
	const struct net_exchange *x, struct str message, struct buf *out, struct err *e);
/* x->response.body from protobuf to JSON. */
void net_json_answer(struct net_exchange *x);
