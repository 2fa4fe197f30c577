/* SPDX-License-Identifier: Apache-2.0 */
/* lane: requests that wait for a worker. */
#pragma once

#include "net/state.h"

void net_lane_init(struct net_lane *l);
/* The workers end when nothing waits any more. */
void net_lane_close(struct net_lane *l);
void net_lane_deinit(struct net_lane *l);
/* False: too many wait. Else the lane has the caller's reference. */
NODISCARD bool net_lane_push(struct net_lane *l, struct net_exchange *x);
/* Waits; NULL: the lane is stopped and empty. */
struct net_exchange *net_lane_pop(struct net_lane_worker *w);
/* True: it was waiting, and is the caller's now. */
NODISCARD bool net_lane_remove(struct net_lane *l, struct net_exchange *x);
