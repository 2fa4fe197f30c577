/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitframes: locations of code that a process made while it ran. Private to agent/send: batch.c.
 *
 * One whose name is not known when its sample comes gets it at the end of the interval, when the
 * runtime has written it. All belong to one batch.
 */
#pragma once

#include "agent/jitnames/jitnames.h"
#include "base/vec.h"
#include "profile/profile.h"

struct jitframes_late {
	uint32_t location;
	struct jitnames_place place;
	struct profile_location plain; /* what it is without a name */
};

struct jitframes {
	struct jitnames *names;
	VEC(struct jitframes_late) late;
};

/* `plain`: what it is if it gets no name. */
NODISCARD enum status jitframes_location(struct jitframes *f, struct profile *p,
	const struct jitnames_place *place, const struct profile_location *plain, uint32_t *out);
/* Names what has none yet. Locations are changed in place: nothing is added to the profile after
 * that. */
void jitframes_resolve(struct jitframes *f, struct profile *p);
void jitframes_clear(struct jitframes *f);
void jitframes_deinit(struct jitframes *f);
