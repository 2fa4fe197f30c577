/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_serve: the broker's own side. Private to agent/.
 */
#pragma once

#include "agent/broker/broker.h"

#define BROKER_CHANNELS (1 + BROKER_SLOW_MAX) /* the first is for requests that cannot hang */

/* Runs in the forked process. It gives up the privileges that it does not need, and answers until a
 * channel is closed. */
_Noreturn void broker_serve(const struct broker_config *c, const int channels[BROKER_CHANNELS]);
/* The capabilities that a broker keeps if it has them. */
uint64_t broker_capabilities(void);
