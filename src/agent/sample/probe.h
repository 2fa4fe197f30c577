/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe: says in a sentence for people why the kernel does not let us sample. Private to agent/.
 */
#pragma once

#include "base/err.h"

/* Can this process sample? OK, or in `e` one sentence: which capability, kernel option or sysctl is
 * missing, and how to get it. Leaves nothing behind. */
NODISCARD enum status probe_sampling(struct err *e);

/* Samples have pids of the host. E_UNSUPPORTED: this process sees other pids in /proc, and `e` says
 * what to do. OK also if /proc does not show it. */
NODISCARD enum status probe_pid_namespace(struct err *e);

/* `what` (a gerund: "loading an eBPF program") failed with errno `error`: the sentence and its
 * status. */
enum status probe_explain(const char *what, int error, struct err *e);
bool probe_has_capability(int capability); /* CAP_…, in the effective set */
