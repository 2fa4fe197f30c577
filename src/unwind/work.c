/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/work.h"

/* About five milliseconds. */
#define PAUSE_UNITS (1u << 20)

void work_init(struct work *w, unwind_pause_fn *pause, void *pause_ctx)
{
	*w = (struct work){
		.max = UNWIND_WORK_MIN,
		.pause_at = pause ? PAUSE_UNITS : UINT64_MAX,
		.pause = pause,
		.pause_ctx = pause_ctx,
	};
}

void work_allow(struct work *w, uint64_t section_bytes)
{
	w->max += section_bytes * UNWIND_WORK_PER_BYTE;
}

void work_pause(struct work *w)
{
	w->pause_at = w->done + PAUSE_UNITS;
	w->is_stopped = w->is_stopped || !w->pause(w->pause_ctx);
}
