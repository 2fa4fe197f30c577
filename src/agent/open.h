/* SPDX-License-Identifier: Apache-2.0 */
/* open: makes the parts of an agent from its configuration, and ends them. Private to agent/. */
#pragma once

#include "agent/parts.h"

/* `a` has its config, and no descriptor. On failure too agent_close() is to be called. */
NODISCARD enum status agent_open(struct agent *a, struct err *e);
/* Only what agent_upload() needs: the spool and the sender. */
NODISCARD enum status agent_open_upload(struct agent *a, struct err *e);
void agent_close(struct agent *a);
