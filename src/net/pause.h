/* SPDX-License-Identifier: Apache-2.0 */
/* pause: holds requests back while bodies and answers take too much memory. The loop's thread calls
 * it. */
#pragma once

#include "net/state.h"

/* To be called before the handler has the request. It goes on when others have given memory back;
 * one request at a time goes on regardless. */
void net_pause(struct net_exchange *x);
/* Bodies and answers take more than twice the memory that they may. */
bool net_pause_is_pressed(const struct net_server *s);
/* The guard is asked, so no more of the body is read; and the guard has answered. */
void net_pause_judge(struct net_exchange *x);
void net_pause_judged(struct net_exchange *x);
/* A worker has it; any thread. */
void net_pause_begun(struct net_exchange *x);
/* The exchange is over, or refused. */
void net_pause_forget(struct net_exchange *x);
/* The next exchange that may go on, for net_incoming_resume(); NULL: none may now. */
struct net_exchange *net_pause_next(struct net_server *s);
