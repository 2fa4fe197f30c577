/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: chooses how often the agent samples, so that it stays within its limit of CPU time. Private
 * to agent/; of the poll thread.
 */
#pragma once

#include "agent/parts.h"

/* As sampling begins. */
void pace_start(struct agent *a);
/* To be called once an interval. Looks at the CPU time used, and changes the rate if that is too
 * much or too little.
 * */
void pace_step(struct agent *a);
