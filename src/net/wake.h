/* SPDX-License-Identifier: Apache-2.0 */
/* wake: what others ask of the loop. */
#pragma once

#include "net/state.h"

/* From any thread: an exchange is ready to be delivered. */
void net_loop_done(struct net_server *s, struct net_exchange *x);
void net_loop_wake(struct net_server *s);
/* Loop's thread: a deadline that may be nearer than the next look. */
void net_loop_look_at(struct net_server *s, int64_t at_ns);
/* Loop's thread: net_conn_pump() before it sleeps again. */
void net_loop_again(struct net_server *s, struct net_conn *c);
