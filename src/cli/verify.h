/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify: whether a configuration file that has changed could be started with.
 *
 * Private to cli/.
 */
#pragma once

#include "base/err.h"

/* Every key and value of a file of server, agent and up, none of which is kept. Any thread. Errors
 * name the file, line and column. */
NODISCARD enum status cli_config_verify(const char *path, struct err *e);
