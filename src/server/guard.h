/* SPDX-License-Identifier: Apache-2.0 */
/* guard: what stands in front of the routes. */
#pragma once

#include "net/net.h"
#include "server/state.h"

/* guard.c: in front of the routes. */

/* A route that needs no scope: the page, and those that tell whether a server is alive. */
#define SERVER_SCOPE_OPEN (1u << 31)
/* E_DENIED: other hosts reach the address, and there is no authentication. */
NODISCARD enum status server_guard_open(struct server *s, struct err *e);
void server_guard_config(struct server *s, struct net_server_config *c);

/* About once a second: the file may have changed. */
void server_guard_look(struct server *s);
