/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/state/age_clock: by which clock samples grow old (docs/storage.md): the wall clock, once it
 * was seen to run steadily beside the time since boot.
 *
 * Layer 3, private to store/. Pure functions of two readings; the caller locks.
 */
#pragma once

#include "base/clock.h"

/* If the wall clock has moved by this much between two looks, it was set, not slewed. */
#define AGE_CLOCK_STEP_NS (60 * NS_PER_SEC)
#define AGE_CLOCK_WAIT_NS (600 * NS_PER_SEC)
#define AGE_CLOCK_FAR_WAIT_NS (3600 * NS_PER_SEC)
/* Stands for an unknown time: then nothing is old. */
#define AGE_UNKNOWN INT64_MIN

struct age_clock {
	int64_t trusted_ns;      /* the wall clock when it was last trusted; 0: never */
	int64_t trusted_boot_ns; /* time since boot then, or at the start */
	int64_t offset_ns;       /* of the wall clock from that since boot */
	int64_t steady_boot_ns;  /* it was set, or first looked at */
	int64_t ahead_ns;        /* of what was known, and what has passed since */
	int64_t left_ns;         /* of the wait; 0: it is trusted */
	bool looked;
	bool far; /* ahead by more than half of the shortest age, and not trusted */
};

/* `trusted_ns`: of the life before; 0: nothing is known. */
void age_clock_init(struct age_clock *c, int64_t trusted_ns, int64_t boot_ns);
/* The time that ages are counted from, or AGE_UNKNOWN. `age_ns`: the shortest after which anything
 * goes; 0: nothing does. */
int64_t age_clock_look(struct age_clock *c, int64_t wall_ns, int64_t boot_ns, int64_t age_ns);

/* For people. */
struct time_text {
	char text[40];
};
struct time_text time_text(int64_t ns);
