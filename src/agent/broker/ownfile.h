/* SPDX-License-Identifier: Apache-2.0 */
/* ownfile: files that flags name (rules, tokens, certificates), read by the broker, so that one on
 * a file system that hangs makes nobody wait for longer than BROKER_PATIENCE_NS, and then fails at
 * once. Private to agent/ (broker.c). */
#pragma once

#include "os/os.h"

/* Of the form of os_own_read_fn. */
NODISCARD enum status ownfile_read(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e);
