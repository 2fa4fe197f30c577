/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fakes: what the verbs call, made of a few variables: a server that answers a GET with what the
 * test says, and agent and server functions that follow a script.
 */
#pragma once

#include "agent/agent.h"
#include "base/status.h"
#include "server/server.h"

/* ---- fetch_get(), fetch_post() ---- */

extern char fake_url[8192];     /* path and query of the last GET or POST */
extern int fake_posts;          /* how many POSTs */
extern char fake_posted[256];   /* the beginning of the last one's body */
extern char fake_server[256];   /* address of the last client */
extern enum status fake_status; /* of the GET */
extern int fake_http_status;
extern int fake_answers; /* above 0: this one is not given, and the server has gone */
extern const char *fake_body;

/* ---- net_client_rpc(), net_client_send() ---- */

/* Answers a call; of a stream it gets each message, the last time with `path` and "" for its end.
 */
extern enum status (*fake_rpc)(
	const char *path, struct str message, struct buf *out, struct err *e);
extern char fake_headers[512]; /* "name: value\n", of the last client */
extern bool fake_trusts_anybody;

/* ---- agent and server ---- */

extern enum status fake_probe; /* what agent_probe() says */
extern struct agent_config fake_agent;
extern int fake_uploads;
extern struct server_forward fake_forward; /* server_run_scraper()'s */
extern struct server_config fake_server_config;
/* Called by agent_run() and server_run(); NULL: wait for the stop, then OK. */
extern enum status (*fake_agent_run)(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e);
extern enum status (*fake_server_run)(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e);
/* Sleeps until *stop. */
void fake_wait(const volatile sig_atomic_t *stop);

/* ---- store_verify(), store_inspect() ---- */

extern char fake_store_call[512]; /* "verify PATH" */
extern enum status fake_store_status;
