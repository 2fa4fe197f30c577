/* SPDX-License-Identifier: Apache-2.0 */
/* pause: where bodies and answers take too much memory. The loop's thread calls it. */
#pragma once

#include "net/state.h"

/* Before the handler has it: it goes on when others have given memory back. One at a time goes on
 * nevertheless. */
void net_pause(struct net_exchange *x);
/* Bodies and answers take more than twice what they may. */
bool net_pause_is_pressed(const struct net_server *s);
/* The guard is being asked: nothing of the body is read meanwhile. And: it has answered. */
void net_pause_judge(struct net_exchange *x);
void net_pause_judged(struct net_exchange *x);
/* A worker has it; any thread. */
void net_pause_begun(struct net_exchange *x);
/* The exchange is over, or refused. */
void net_pause_forget(struct net_exchange *x);
/* The next that may go on, for net_incoming_resume(); NULL: none now. */
struct net_exchange *net_pause_next(struct net_server *s);
