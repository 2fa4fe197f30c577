/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fetch/fetch.h"
#include "net/net.h"
#include "store/store.h"

int fake_posts;
char fake_posted[256], fake_url[8192], fake_server[256], fake_store_call[512];
enum status fake_status, fake_probe, fake_store_status;
int fake_http_status = 200, fake_answers = -1;
const char *fake_body = "{}";
struct agent_config fake_agent;
int fake_uploads;
struct server_config fake_server_config;
enum status (*fake_agent_run)(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e);
volatile sig_atomic_t server_reload_wanted;
struct server_forward fake_forward;
enum status (*fake_server_run)(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e);

void fake_wait(const volatile sig_atomic_t *stop)
{
	while (!*stop)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

struct net_client {
	int unused;
};

enum status net_client_new(const char *address, struct net_client **out, struct err *e)
{
	if (strcmp(address, "https://here") == 0)
		return err_set(e, E_INVALID, "%s: TLS is not spoken", address);
	fake_headers[0] = 0;
	fake_trusts_anybody = false;
	snprintf(fake_server, sizeof(fake_server), "%s", address);
	*out = calloc(1, sizeof(**out));
	return OK;
}

void net_client_free(struct net_client *c)
{
	free(c);
}

struct fetch {
	int unused;
};

enum status fetch_new(const struct fetch_config *c, struct fetch **out, struct err *e)
{
	if (strcmp(c->address, "https://here") == 0)
		return err_set(e, E_INVALID, "%s: TLS is not spoken", c->address);
	fake_headers[0] = 0;
	snprintf(fake_server, sizeof(fake_server), "%s", c->address);
	*out = calloc(1, sizeof(**out));
	return OK;
}

void fetch_free(struct fetch *f)
{
	free(f);
}

enum status fetch_get(struct fetch *f, const char *target, int64_t timeout_ns, int *out_http_status,
	struct buf *out, struct err *e)
{
	(void)f;
	(void)timeout_ns;
	snprintf(fake_url, sizeof(fake_url), "%s", target);
	if (fake_answers > 0 && --fake_answers == 0)
		fake_status = E_UNAVAILABLE;
	if (fake_status != OK)
		return err_set(e, fake_status, "connect: Connection refused");
	*out_http_status = fake_http_status;
	buf_cstr(out, fake_body);
	return OK;
}

enum status fetch_post(struct fetch *f, const char *target, const char *content_type,
	struct str body, int64_t timeout_ns, int *out_http_status, struct buf *out, struct err *e)
{
	(void)content_type;
	fake_posts++;
	snprintf(fake_posted, sizeof(fake_posted), "%.*s", STR_ARG(body));
	return fetch_get(f, target, timeout_ns, out_http_status, out, e);
}

enum status (*fake_rpc)(const char *path, struct str message, struct buf *out, struct err *e);
char fake_headers[512];
bool fake_trusts_anybody;

enum status net_client_rpc(struct net_client *c, const char *path, struct str message,
	int64_t timeout_ns, struct buf *out, bool *out_retry, struct err *e)
{
	(void)c;
	(void)timeout_ns;
	*out_retry = false;
	return fake_rpc(path, message, out, e);
}

enum status net_client_send(struct net_client *c, const char *path, net_message_fn *next, void *ctx,
	int64_t timeout_ns, struct buf *out, bool *out_retry, struct err *e)
{
	(void)c;
	(void)timeout_ns;
	*out_retry = false;
	for (;;) {
		struct str message = STR("");
		bool end = false;
		enum status s = next(ctx, &message, &end, e);
		if (s == OK)
			s = fake_rpc(path, end ? STR("") : message, out, e);
		if (s != OK || end)
			return s;
	}
}

enum status net_client_header(
	struct net_client *c, const char *name, const char *value, struct err *e)
{
	(void)c;
	if (!name[0])
		return err_set(e, E_INVALID, "\"\" is no header");
	size_t len = strlen(fake_headers);
	snprintf(fake_headers + len, sizeof(fake_headers) - len, "%s: %s\n", name, value);
	return OK;
}

enum status fetch_header(struct fetch *f, const char *name, const char *value, struct err *e)
{
	(void)f;
	return net_client_header(NULL, name, value, e);
}

void fetch_sign(struct fetch *f, const struct fetch_signature *signature)
{
	(void)f;
	(void)signature;
}

void fetch_limit(struct fetch *f, size_t answer_bytes_max)
{
	(void)f;
	(void)answer_bytes_max;
}

void fetch_interrupt(struct fetch *f, int wake_fd, int64_t patience_ns)
{
	(void)f;
	(void)wake_fd;
	(void)patience_ns;
}

void net_client_limit(struct net_client *c, size_t answer_bytes_max)
{
	(void)c;
	(void)answer_bytes_max;
}

void net_client_interrupt(struct net_client *c, int wake_fd, int64_t patience_ns)
{
	(void)c;
	(void)wake_fd;
	(void)patience_ns;
}

/* As one message to the path. */
enum status fetch_put(struct fetch *f, const char *target, uint64_t bytes, fetch_piece_fn *next,
	void *ctx, int64_t timeout_ns, int *out_http_status, struct buf *out, struct err *e)
{
	uint64_t sum = 0;
	bool end = false;
	(void)f;
	(void)timeout_ns;
	snprintf(fake_url, sizeof(fake_url), "%s", target);
	for (;;) {
		struct str piece = STR("");
		enum status s = next(ctx, &piece, &end, e);
		if (s != OK)
			return s;
		if (end)
			break;
		sum += piece.len;
	}
	buf_printf(out, "%s", sum == bytes ? "" : "not as many as were said");
	*out_http_status = out->len ? 400 : fake_http_status;
	return fake_status;
}

void net_client_trust_anybody(struct net_client *c)
{
	(void)c;
	fake_trusts_anybody = true;
}

void agent_config_default(struct agent_config *c)
{
	*c = (struct agent_config){ .handover_fd = 77, .ready_fd = 77, .frequency_hz = 1 };
}

enum status agent_upload(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)stop;
	(void)e;
	fake_agent = *c;
	fake_uploads++;
	return OK;
}

enum status agent_probe_pids(struct err *e)
{
	(void)e;
	return OK;
}

enum status agent_probe(struct err *e)
{
	return fake_probe == OK ? OK : err_set(e, fake_probe, "CAP_BPF is missing: use sudo");
}

enum status agent_run(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	fake_agent = *c;
	if (fake_agent_run)
		return fake_agent_run(c, stop, e);
	fake_wait(stop);
	return OK;
}

void server_config_default(struct server_config *c)
{
	*c = (struct server_config){ .handover_fd = 77, .ready_fd = 77 };
}

enum status server_run(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	fake_server_config = *c;
	if (fake_server_run)
		return fake_server_run(c, stop, e);
	fake_wait(stop);
	return OK;
}

enum status server_run_scraper(const struct server_config *c, const struct server_forward *to,
	const volatile sig_atomic_t *stop, struct err *e)
{
	fake_forward = *to;
	return server_run(c, stop, e);
}

enum status store_verify(const char *path, struct buf *out, struct err *e)
{
	snprintf(fake_store_call, sizeof(fake_store_call), "verify %s", path);
	buf_cstr(out, "finding\n");
	return fake_store_status == OK ? OK : err_set(e, fake_store_status, "1 of 2 is damaged");
}

enum status store_inspect(const char *path, struct buf *out, struct err *e)
{
	(void)e;
	snprintf(fake_store_call, sizeof(fake_store_call), "inspect %s", path);
	buf_cstr(out, "content\n");
	return OK;
}
