/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_labels: the labels of samples (docs/labels.md). Private to agent/send: batch.c.
 *
 * Those of a process are the same for all its samples. A sample's own are its thread, its CPU, the
 * state of a thread that waits, and what the goroutine that ran says of itself (docs/runtimes.md).
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/names/names.h"
#include "agent/process/process.h"
#include "agent/send/label_values.h"
#include "base/metrics.h"
#include "profile/profile.h"

struct sample_labels {
	bool no_thread_id, no_thread_name, no_cpu; /* labels that are left out */
	struct codes *codes;                       /* labels of goroutines; NULL: there are none */
	metric_value *left_out;                    /* counts labels with too many values */
	struct label_values values;
};

/* Sets *out to the set of labels in `p`. Errors: those of profile_add_labels(). */
NODISCARD enum status sample_labels_of_process(
	struct profile *p, const struct process *x, uint32_t *out);

/* The same of one sample of the process. `state`: "" for none. */
NODISCARD enum status sample_labels_own(struct sample_labels *l, struct profile *p,
	const struct process *x, const struct event_sample *s, struct str state, uint32_t *out);
