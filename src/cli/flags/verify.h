/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify: checks whether firn could start with a changed configuration file.
 *
 * Private to cli/.
 */
#pragma once

#include "base/err.h"

/* Checks every key and value of a configuration file of server, agent and up; keeps none. Any
 * thread. Errors name the file, line and column. */
NODISCARD enum status cli_config_verify(const char *path, struct err *e);
