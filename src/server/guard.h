/* SPDX-License-Identifier: Apache-2.0 */
/* guard: checks each request before its route is called. */
#pragma once

#include "net/net.h"
#include "server/request/request.h"

/* guard.c: POST /api/login answers with a cookie made from the request's credentials; POST
 * /api/logout deletes it. */
net_handler_fn server_handle_login;
net_handler_fn server_handle_logout;

/* For a route that needs no scope: the page, and the routes that tell whether the server is alive.
 */
#define SERVER_SCOPE_OPEN (1u << 31)
/* E_DENIED: other hosts can reach the address, and there is no authentication. */
NODISCARD enum status server_guard_open(struct server *s, struct err *e);
void server_guard_config(struct server *s, struct net_server_config *c);

/* To be called about once a second: the web-config file may have changed. */
void server_guard_look(struct server *s);
