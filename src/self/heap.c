/* SPDX-License-Identifier: Apache-2.0 */
/* How: mallinfo2() sums malloc's arenas; each sum is a stack of one frame with the sum's name. */
#include "self/self.h"

#include <malloc.h>

#include "base/clock.h"

static enum status add(
	struct profile *p, uint32_t head, int64_t now_ns, const char *what, uint64_t bytes)
{
	struct profile_function f = { 0 };
	struct profile_line line = { 0 };
	struct profile_location l = { .kind = FRAME_NATIVE };
	struct profile_sample sample = { .value = (int64_t)bytes, .time_ns = now_ns, .head = head };
	uint32_t location = 0;
	enum status s = profile_add_string(p, str_of(what), &f.name);
	f.system_name = f.name;
	if (s == OK)
		s = profile_add_function(p, &f, &line.function);
	if (s == OK)
		s = profile_add_location(p, &l, &line, 1, &location);
	if (s == OK)
		s = profile_add_stack(p, &location, 1, &sample.stack);
	return s == OK ? profile_add_sample(p, &sample) : s;
}

enum status self_heap(struct profile *p, struct err *e)
{
	struct mallinfo2 m = mallinfo2();
	struct profile_type t = { 0 };
	struct profile_head h = { .period = 1, .time_ns = clock_realtime_ns() };
	uint32_t head = 0;
	enum status s = profile_add_name(p, STR("memory"), &t.name);
	if (s == OK)
		s = profile_add_type_part(p, STR("inuse_space"), &t.sample_type);
	if (s == OK)
		s = profile_add_type_part(p, STR("bytes"), &t.sample_unit);
	if (s == OK)
		s = profile_add_type_part(p, STR("space"), &t.period_type);
	t.period_unit = t.sample_unit;
	if (s == OK)
		s = profile_add_type(p, &t, &h.type);
	if (s == OK)
		s = profile_add_head(p, &h, &head);
	if (s == OK)
		s = add(p, head, h.time_ns, "malloc: in use", m.uordblks);
	if (s == OK)
		s = add(p, head, h.time_ns, "malloc: kept free", m.fordblks);
	if (s == OK)
		s = add(p, head, h.time_ns, "malloc: mapped", m.hblkhd);
	return s == OK ? OK : err_set(e, s, "memory profile");
}
