/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_values: which labels that a program sets have too many values to be labels of series.
 *
 * A label such as request_id, with a new value for each request, would make a series each, until
 * the server takes no new series from anybody. So the values of each label of a process are
 * counted, roughly; one with more than about LABEL_VALUES_MAX is left out from then on, and told of
 * once.
 *
 * Values are counted by linear counting (Whang, Vander-Zanden, Taylor 1990): one bit for each hash.
 * Labels share LABEL_VALUES_SLOTS slots by hash; one that takes another's slot begins anew.
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
