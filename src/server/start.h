/* SPDX-License-Identifier: Apache-2.0 */
/* start: steps before the port is opened, and the reload of the configuration. */
#pragma once

#include "net/net.h"
#include "scrape/scrape.h"
#include "server/request/request.h"

/* server.c: reads the configuration again after SIGHUP. */
void server_reload_if_wanted(struct server *s);

/* Fills in what flags say about the port: address, hosts, TLS, and the guard. All else has its
 * default. */
void server_port_config(struct server *s, struct net_server_config *c);

/* traces.c: to be called before the port is opened; sets in `c` what the port reports of each
 * request. */
NODISCARD enum status server_traces_open(
	struct server *s, struct net_server_config *c, struct err *e);

/* routes.c: makes s->routes (every URL and RPC), s->paths and s->services. */
NODISCARD enum status server_make_routes(struct server *s, size_t *out_count, struct err *e);

/* targets.c: POST /-/reload, and parca.scrape.v1alpha1.ScrapeService */
net_handler_fn server_targets;
net_handler_fn server_handle_reload;
void server_reloaded(enum status s, const struct err *e);
void server_scrape_told(enum scrape_news of, enum status s, const struct err *e);
