/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: which system calls remain to the agent and to its broker. Private to agent/.
 *
 * Under a sanitizer, which needs others to make its report, there is no filter.
 */
#pragma once

#include "base/err.h"

/* Applies to all present and future threads of the process. Calls that only an intruder would use
 * (exec, ptrace, mount, modules, …) end the process. Any other call that is not on the list fails
 * as "not implemented", so that libraries fall back to one that is. */
NODISCARD enum status sandbox_enter_agent(struct err *e);
/* A folder that may be written to. */
struct sandbox_dir {
	int fd;       /* O_PATH will do; -1: none */
	bool sockets; /* nothing but sockets are made there */
};
/* From now on this thread, and whatever it starts, can make, change and remove files only in these
 * folders and below: root's files are root's own, also without a capability. Open descriptors stay
 * as they are. E_UNSUPPORTED: the kernel has no Landlock (Linux 5.13), or it is switched off. */
NODISCARD enum status sandbox_limit_writing(
	const struct sandbox_dir *dirs, size_t count, struct err *e);
/* A short list; everything else ends the broker. */
NODISCARD enum status sandbox_enter_broker(struct err *e);
