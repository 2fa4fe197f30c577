/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work: counts the work of building one file's table, in units of about a byte of call frame
 * information, so that no file costs more than its size allows. Private to unwind/.
 */
#pragma once

#include "unwind/unwind.h"

/* Costs of steps that take more than their bytes. */
#define WORK_ENTRY 16 /* an entry, or a function of Go, is looked at */
#define WORK_READ 256 /* something is read from the file, and one unit for each 16 bytes of it */
#define WORK_READ_SHIFT 4

struct work {
	uint64_t done;
	uint64_t max;
	uint64_t pause_at; /* `done` from which on pause() is called again */
	unwind_pause_fn *pause;
	void *pause_ctx;
	bool is_stopped; /* by pause() */
};

void work_init(struct work *w, unwind_pause_fn *pause, void *pause_ctx);
/* Allows the work for one more section, which has so many bytes in the file. */
void work_allow(struct work *w, uint64_t section_bytes);
void work_pause(struct work *w);

static inline bool work_is_left(const struct work *w)
{
	return w->done <= w->max && !w->is_stopped;
}

/* False, from then on: the limit is reached, or pause() said stop. */
static inline bool work_add(struct work *w, uint64_t units)
{
	w->done += units;
	if (w->done >= w->pause_at)
		work_pause(w);
	return work_is_left(w);
}

static inline bool work_add_read(struct work *w, uint64_t bytes)
{
	return work_add(w, WORK_READ + (bytes >> WORK_READ_SHIFT));
}
