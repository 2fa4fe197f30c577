/* SPDX-License-Identifier: Apache-2.0 */
/* loop: the thread that owns the connections. */
#pragma once

#include "net/state.h"

NODISCARD enum status net_loop_start(struct net_server *s, struct err *e);
