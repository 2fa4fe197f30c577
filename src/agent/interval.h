/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interval: what the agent does at the end of each interval, and at times of its own between two.
 * Private to agent/; of the poll thread.
 */
#pragma once

#include "agent/parts.h"

/* The batch is finished, and what changes slowly is looked at: rules, containers, CPUs, the rate.
 */
void interval_end(struct agent *a);
/* Labels are doubted once notices of programs that began may have been lost. */
void interval_look_for_lost_execs(struct agent *a, int64_t now_ns);
/* A server that died may have taken files without reading them: the next one is offered all files.
 */
void interval_offer_files(struct agent *a, int64_t now_ns);
/* Takes what the thread `contexts` has found that processes publish of themselves. */
void interval_take_contexts(struct agent *a);
