/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flag_file: a file that a flag names (rules, a token, a certificate), read by the broker. One on a
 * file system that hangs makes no caller wait longer than BROKER_PATIENCE_NS, and then fails at
 * once. Private to agent/.
 */
#pragma once

#include "os/os.h"

/* Of the form of os_own_read_fn. */
NODISCARD enum status flag_file_read(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e);
