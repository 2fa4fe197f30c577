/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interval: what the agent does at the end of each interval, and at other times. Private to agent/;
 * of the poll thread.
 */
#pragma once

#include "agent/parts.h"

/* Finishes the batch, and looks at things that change slowly: rules, containers, CPUs, the rate.
 * */
void interval_end(struct agent *a);
/* If notices of started programs may have been lost, makes /proc be read again for the labels of
 * each process. */
void interval_look_for_lost_execs(struct agent *a, int64_t now_ns);
/* Offers all files again to a server that was started anew: the one before may have died with files
 * that it had taken and not read.
 * */
void interval_offer_files(struct agent *a, int64_t now_ns);
/* Takes the process contexts that the thread of `contexts` has found. */
void interval_take_contexts(struct agent *a);
