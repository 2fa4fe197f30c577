/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe: why the kernel does not let us sample, in a sentence for people. Private to agent/.
 * sampler_probe() is in sampler.h.
 */
#pragma once

#include "agent/sample/sampler.h"

/* `what` (a gerund: "loading an eBPF program") failed with errno `error`: the sentence and its
 * status. */
enum status probe_explain(const char *what, int error, struct err *e);
bool probe_has_capability(int capability); /* CAP_…, in the effective set */
