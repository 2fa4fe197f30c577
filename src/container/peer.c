/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that does not answer, or not in time, is left alone for a second, then two, up to a
 * minute: whoever hangs costs one timeout in a while. "There is no such container" is an answer.
 */
#include "container/internal.h"

#include <stdio.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_NS (3 * NS_PER_SEC)
#define REST_MIN_NS NS_PER_SEC
#define REST_MAX_NS (60 * NS_PER_SEC)

bool container_peer_ready(struct container_peer *p, int64_t now_ns)
{
	if (!p->address[0] || now_ns < p->rest_until_ns)
		return false;
	struct str path = str_of(p->address);
	if (str_starts(path, STR("unix:")) && access(p->address + 5, F_OK) < 0) {
		container_peer_close(p); /* such an engine does not run here */
		p->problem[0] = 0;
		return false;
	}
	if (p->client)
		return true;
	struct err e;
	enum status s = net_client_new(p->address, &p->client, &e);
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
	net_client_free(p->client);
	p->client = NULL;
}

enum status container_peer_get(struct container_peer *p, const char *path, size_t answer_max,
	struct buf *out, struct err *e)
{
	int code = 0;
	net_client_limit(p->client, answer_max);
	enum status s = net_client_get(p->client, path, ANSWER_TIMEOUT_NS, &code, out, e);
	if (s != OK)
		return s;
	if (code == 200)
		return OK;
	s = code == 404 ? E_NOTFOUND : code == 401 || code == 403 ? E_DENIED : E_IO;
	return err_set(e, s, "HTTP status %d for %.*s", code,
		STR_ARG(str_sub(str_of(path), 0, strcspn(path, "?"))));
}

enum status container_peer_rpc(struct container_peer *p, const char *path, struct str message,
	struct buf *out, struct err *e)
{
	bool retry;
	return net_client_rpc(p->client, path, message, ANSWER_TIMEOUT_NS, out, &retry, e);
}
