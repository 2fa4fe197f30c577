/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroupid: paths of version 2 control groups by their ids. Private to agent/ (process.c and the
 * broker). Needs CAP_DAC_READ_SEARCH.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct cgroupid {
	int root; /* -1 when there is no such hierarchy */
	char root_path[64];
};

void cgroupid_open(struct cgroupid *c);
void cgroupid_close(struct cgroupid *c);
/* False: it is gone, or this process may not. */
bool cgroupid_path(const struct cgroupid *c, uint64_t id, char out[PATH_MAX]);
