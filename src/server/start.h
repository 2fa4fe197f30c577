/* SPDX-License-Identifier: Apache-2.0 */
/* start: what is made before the port is opened, and what a reload does. */
#pragma once

#include "net/net.h"
#include "scrape/scrape.h"
#include "server/state.h"

/* server.c: reads the configuration again after SIGHUP. */
void server_reload_if_wanted(struct server *s);

/* What flags say of the port: address, hosts, TLS, and the guard. All else has its default. */
void server_port_config(struct server *s, struct net_server_config *c);

/* traces.c: before the port is opened, and what it is to be told of. */
NODISCARD enum status server_traces_open(
	struct server *s, struct net_server_config *c, struct err *e);

/* routes.c: every URL and RPC; s->routes, s->paths and s->services. */
NODISCARD enum status server_make_routes(struct server *s, size_t *out_count, struct err *e);

/* targets.c */
void server_reloaded(enum status s, const struct err *e);
void server_scrape_told(enum scrape_news of, enum status s, const struct err *e);
