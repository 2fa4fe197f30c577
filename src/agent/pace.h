/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: how often the agent samples, within what it may cost. Private to agent/; of the poll
 * thread.
 */
#pragma once

#include "agent/parts.h"

/* As sampling begins. */
void pace_start(struct agent *a);
/* Once an interval: looks at what was used, and changes the rate where that is too much or little.
 */
void pace_step(struct agent *a);
