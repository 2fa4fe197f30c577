/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that does not answer in time is not asked again for a second, then two, up to a minute, so
 * that a hanging peer costs few timeouts. "There is no such container" is an answer.
 */
#include "container/peer.h"
#include "base/clock.h"
#include "base/reader.h"
#include "container/owner.h"
#include "pb/pb.h"

#include <stdio.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_NS (3 * NS_PER_SEC)
#define REST_MIN_NS NS_PER_SEC
#define REST_MAX_NS (60 * NS_PER_SEC)
#define UNIX "unix:"
#define SENTENCE_BYTES_MAX ((size_t)64 << 10) /* of JSON with an error message */

static bool is_open(const struct container_peer *p)
{
	return p->http || p->grpc;
}

/* Whether the socket exists. A user's socket is not checked again while connected, since that takes
 * several system calls. */
static bool is_there(struct container_peer *p)
{
	char trusted[sizeof(p->address)];
	if (!str_starts(str_of(p->address), STR(UNIX)))
		return true;
	if (!p->trusted_len)
		return access(p->address + strlen(UNIX), F_OK) == 0;
	if (is_open(p))
		return true;
	snprintf(trusted, sizeof(trusted), "%.*s", (int)(p->trusted_len - strlen(UNIX)),
		p->address + strlen(UNIX));
	container_peer_close(p);
	p->socket = container_user_socket(trusted, p->address + p->trusted_len + 1);
	p->has_socket = p->socket >= 0;
	return p->has_socket;
}

bool container_peer_ready(struct container_peer *p, int64_t now_ns)
{
	if (!p->address[0] || now_ns < p->rest_until_ns)
		return false;
	if (!is_there(p)) {
		container_peer_close(p); /* the engine does not run here */
		p->problem[0] = 0;
		return false;
	}
	if (is_open(p))
		return true;
	char by_descriptor[64];
	snprintf(by_descriptor, sizeof(by_descriptor), "unix:/proc/self/fd/%d", p->socket);
	struct err e;
	const char *address = p->has_socket ? by_descriptor : p->address;
	const struct fetch_config config = { .address = address };
	enum status s = p->speaks_grpc ? net_client_new(address, &p->grpc, &e)
				       : fetch_new(&config, &p->http, &e);
	if (s != OK)
		container_peer_note(p, s, &e);
	return s == OK;
}

void container_peer_note(struct container_peer *p, enum status s, const struct err *e)
{
	if (s == OK || s == E_NOTFOUND) {
		p->rest_ns = 0;
		p->problem[0] = 0;
		return;
	}
	snprintf(p->problem, sizeof(p->problem), "%s", err_text(e, s));
	p->rest_ns = MIN(MAX(2 * p->rest_ns, REST_MIN_NS), REST_MAX_NS);
	p->rest_until_ns = clock_monotonic_ns() + p->rest_ns;
	container_peer_close(p);
}

void container_peer_close(struct container_peer *p)
{
	fetch_free(p->http);
	net_client_free(p->grpc);
	p->http = NULL;
	p->grpc = NULL;
	if (p->has_socket)
		close(p->socket);
	p->has_socket = false;
}

void container_sentence(struct str json, char out[CONTAINER_SENTENCE_MAX])
{
	enum { MESSAGE = 1 };
	static const struct pb_member members[] = { PB_FIELD("message", MESSAGE, STRING) };
	static const struct pb_desc desc = PB_DESC("Status", members);
	CLEANUP(buf_deinit) struct buf bytes;
	struct pb_field f = { 0 };
	out[0] = 0;
	buf_init(&bytes, SENTENCE_BYTES_MAX);
	if (pb_json_decode(&desc, str_sub(json, 0, SENTENCE_BYTES_MAX), PB_IGNORE_UNKNOWN, &bytes,
		    NULL) != OK)
		return;
	struct reader r = reader_over(bytes.data, bytes.len);
	if (!pb_next(&r, &f) || f.number != MESSAGE)
		return;
	snprintf(out, CONTAINER_SENTENCE_MAX, "%.*s", STR_ARG(str_trim(f.bytes)));
	for (char *c = out; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
}

enum status container_peer_get(struct container_peer *p, const char *path, size_t answer_max,
	struct buf *out, struct err *e)
{
	char sentence[CONTAINER_SENTENCE_MAX];
	size_t before = out->len;
	p->code = 0;
	fetch_limit(p->http, answer_max);
	enum status s = fetch_get(p->http, path, ANSWER_TIMEOUT_NS, &p->code, out, e);
	if (s != OK)
		return s;
	if (p->code == 200)
		return OK;
	s = p->code == 404 ? E_NOTFOUND : p->code == 401 || p->code == 403 ? E_DENIED : E_IO;
	container_sentence(str_sub(buf_view(out), before, out->len), sentence);
	return err_set(e, s, "HTTP status %d for %.*s%s%s", p->code,
		STR_ARG(str_sub(str_of(path), 0, MIN(strcspn(path, "?"), (size_t)60))),
		sentence[0] ? ": " : "", sentence);
}

enum status container_peer_rpc(struct container_peer *p, const char *path, struct str message,
	struct buf *out, struct err *e)
{
	bool retry;
	return net_client_rpc(p->grpc, path, message, ANSWER_TIMEOUT_NS, out, &retry, e);
}
