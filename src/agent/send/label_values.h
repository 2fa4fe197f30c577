/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_values: finds labels of programs that have too many values to be labels of series.
 *
 * A label such as request_id has a new value for each request. Each would make a series, until the
 * server takes no new series from any host. So the values of each label of a process are counted,
 * roughly. A label with more than about LABEL_VALUES_MAX is left out from then on, and logged once.
 *
 * Values are counted by linear counting (Whang, Vander-Zanden, Taylor 1990): one bit for each hash.
 * Labels share LABEL_VALUES_SLOTS slots by hash. A label that takes another's slot starts at zero.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define LABEL_VALUES_BITS 512
#define LABEL_VALUES_MAX 355 /* set half of the bits: 512 ln 2 */
#define LABEL_VALUES_SLOTS 256

struct label_values {
	struct label_values_slot {
		uint64_t key; /* of process and name */
		uint64_t bits[LABEL_VALUES_BITS / 64];
		bool is_full;
	} v[LABEL_VALUES_SLOTS];
};

/* May the label be put on a sample? `out_first`: no, and this is the first time. */
bool label_values_admit(struct label_values *l, int pid, uint64_t start_ns, struct str name,
	struct str value, bool *out_first);
