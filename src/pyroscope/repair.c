/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go cuts deep stacks at the root: those of heap profiles at 32 frames (before Go 1.23), those of
 * CPU profiles at 64. A flame graph of such stacks has as many roots as there are places to cut at.
 *
 * The missing frames are restored from other stacks of the same file. Stacks with the same TAIL
 * outermost frames are a group. If the SHARED outermost frames of a group also occur in the tail of
 * another group, up to STEPS_MAX frames further in, then the first group lacks the frames that the
 * other has outside of them. The other may lack frames too, so groups form chains. The rule and the
 * numbers are Pyroscope's, as its users expect.
 */
#include "pyroscope/repair.h"
#include "pyroscope/types.h"

#include <string.h>

#define TAIL 24
#define SHARED 16
#define STEPS_MAX (TAIL - SHARED)
/* Longer chains come from recursion, whose stacks share frames with themselves. */
#define CHAIN_MAX 56

#define HEAP_DEPTH 32
#define CPU_DEPTH 64
/* Go removes frames of its runtime after truncating. */
#define DEPTH_LESS 4

#define NONE UINT32_MAX

struct link {
	uint32_t group; /* NONE: nothing is missing */
	uint32_t steps; /* the outermost frames of that group's tail that are missing here */
};
struct repair {
	struct profile *p;
	uint32_t *group_of;   /* by stack: its group; NONE: it is short, or in no sample */
	uint32_t *whole;      /* by stack: the stack with the missing frames */
	VEC(uint32_t) groups; /* by group: one of its stacks */
	VEC(uint32_t) places; /* group * STEPS_MAX + steps - 1, for SHARED frames in a tail */
	VEC(uint32_t) longer; /* the stack that is being made */
	struct link *links;   /* by group */
	struct map tails, shared;
	struct arena arena;
};

/* The outermost `count` frames of a stack. */
static const uint32_t *outermost(const struct profile *p, uint32_t stack, uint32_t count)
{
	const struct profile_stack *s = &p->stacks.v[stack];
	return p->stack_locations.v + s->first + s->count - count;
}

static bool frames_equal(const uint32_t *a, const uint32_t *b, size_t count)
{
	return memcmp(a, b, count * sizeof(*a)) == 0;
}

/* ---- which profiles ---- */

static bool is_go(const struct profile *p, uint32_t stack)
{
	const struct profile_stack *s = &p->stacks.v[stack];
	for (uint32_t i = 0; i < s->count; i++) {
		const struct profile_location *l =
			&p->locations.v[p->stack_locations.v[s->first + i]];
		if (l->line_count == 0)
			continue;
		uint32_t function = p->lines.v[l->line_first].function;
		if (str_ends(profile_str(p, p->functions.v[function].filename), STR(".go")))
			return true;
	}
	return false;
}

/* The depth to which Go truncates stacks of the profile's types; 0: such profiles are not
 * repaired. */
static uint32_t depth_of(const struct profile *p, uint32_t head)
{
	uint32_t depth = 0;
	for (uint32_t h = head; h < p->heads.len; h++) {
		struct str type = profile_str(p, p->types.v[p->heads.v[h].type].sample_type);
		if (str_starts(type, STR("alloc_")) || str_starts(type, STR("inuse_")))
			return HEAP_DEPTH;
		if (str_eq(type, STR("cpu")))
			depth = CPU_DEPTH;
	}
	return depth;
}

static bool may_be_cut(const struct profile *p, struct added a)
{
	uint32_t depth = depth_of(p, a.head), deepest = 0, stack = 0;
	for (size_t i = a.sample; depth && i < p->samples.len; i++) {
		uint32_t count = p->stacks.v[p->samples.v[i].stack].count;
		if (count > deepest) {
			deepest = count;
			stack = p->samples.v[i].stack;
		}
	}
	/* Heap profiles of newer versions of Go are deeper. */
	return depth && deepest >= depth - DEPTH_LESS &&
	       (depth == CPU_DEPTH || deepest <= HEAP_DEPTH) && is_go(p, stack);
}

/* ---- groups and their links ---- */

static bool tail_equal(const void *ctx, uint32_t group, const void *key)
{
	const struct repair *r = ctx;
	return frames_equal(outermost(r->p, r->groups.v[group], TAIL), key, TAIL);
}

static enum status find_group(struct repair *r, uint32_t stack, uint32_t *out)
{
	const uint32_t *tail = outermost(r->p, stack, TAIL);
	uint64_t hash = hash64(tail, TAIL * sizeof(*tail));
	*out = map_find(&r->tails, hash, tail_equal, r, tail);
	if (*out != MAP_NONE)
		return OK;
	*out = (uint32_t)r->groups.len;
	return VEC_PUSH(&r->groups, stack) && map_insert(&r->tails, hash, *out) ? OK : E_NOMEM;
}

static enum status find_groups(struct repair *r, size_t first_sample)
{
	struct profile *p = r->p;
	uint32_t count = (uint32_t)p->stacks.len;
	r->group_of = ARENA_ARRAY(&r->arena, uint32_t, count);
	r->whole = ARENA_ARRAY(&r->arena, uint32_t, count);
	if (!r->group_of || !r->whole)
		return arena_status(&r->arena);
	memset(r->group_of, 0xff, count * sizeof(*r->group_of));
	enum status s = OK;
	for (size_t i = first_sample; s == OK && i < p->samples.len; i++) {
		uint32_t stack = p->samples.v[i].stack;
		if (p->stacks.v[stack].count >= TAIL && r->group_of[stack] == NONE)
			s = find_group(r, stack, &r->group_of[stack]);
	}
	return s;
}

/* The SHARED frames outside of which the tail has `steps` frames. */
static const uint32_t *shared_at(const struct repair *r, uint32_t place)
{
	uint32_t steps = place % STEPS_MAX + 1;
	return outermost(r->p, r->groups.v[place / STEPS_MAX], SHARED + steps);
}

static bool shared_equal(const void *ctx, uint32_t index, const void *key)
{
	const struct repair *r = ctx;
	return frames_equal(shared_at(r, r->places.v[index]), key, SHARED);
}

static uint64_t shared_hash(const uint32_t *frames)
{
	return hash64(frames, SHARED * sizeof(*frames));
}

/* Notes a place; of two groups with the same frames the one with more frames outside of them
 * wins. */
static enum status note_place(struct repair *r, uint32_t place)
{
	const uint32_t *frames = shared_at(r, place);
	uint64_t hash = shared_hash(frames);
	uint32_t at = map_find(&r->shared, hash, shared_equal, r, frames);
	if (at == MAP_NONE) {
		at = (uint32_t)r->places.len;
		return VEC_PUSH(&r->places, place) && map_insert(&r->shared, hash, at) ? OK
										       : E_NOMEM;
	}
	if (place % STEPS_MAX > r->places.v[at] % STEPS_MAX)
		r->places.v[at] = place;
	return OK;
}

static enum status find_links(struct repair *r)
{
	enum status s = OK;
	r->links = ARENA_ARRAY(&r->arena, struct link, r->groups.len);
	if (!r->links)
		return arena_status(&r->arena);
	for (uint32_t place = 0; s == OK && place < r->groups.len * STEPS_MAX; place++)
		s = note_place(r, place);
	for (uint32_t g = 0; s == OK && g < r->groups.len; g++) {
		const uint32_t *frames = outermost(r->p, r->groups.v[g], SHARED);
		uint32_t at = map_find(&r->shared, shared_hash(frames), shared_equal, r, frames);
		uint32_t place = at == MAP_NONE ? g * STEPS_MAX : r->places.v[at];
		r->links[g] = (struct link){ place / STEPS_MAX, place % STEPS_MAX + 1 };
		if (r->links[g].group == g)
			r->links[g].group = NONE;
	}
	return s;
}

/* ---- stacks ---- */

static bool chain_is_short(const struct repair *r, uint32_t group)
{
	uint32_t length = 0;
	while (r->links[group].group != NONE && length <= CHAIN_MAX) {
		group = r->links[group].group;
		length++;
	}
	return length <= CHAIN_MAX;
}

static bool append(struct repair *r, const uint32_t *frames, uint32_t count)
{
	if (!VEC_RESERVE(&r->longer, r->longer.len + count))
		return false;
	memcpy(r->longer.v + r->longer.len, frames, count * sizeof(*frames));
	r->longer.len += count;
	return true;
}

static enum status make_whole(struct repair *r, uint32_t stack, uint32_t *out)
{
	struct profile *p = r->p;
	uint32_t group = r->group_of[stack], count = p->stacks.v[stack].count;
	*out = stack;
	if (r->links[group].group == NONE || !chain_is_short(r, group))
		return OK;
	VEC_CLEAR(&r->longer);
	if (!append(r, outermost(p, stack, count), count))
		return E_NOMEM;
	for (struct link l = r->links[group]; l.group != NONE; l = r->links[l.group])
		if (!append(r, outermost(p, r->groups.v[l.group], l.steps), l.steps))
			return E_NOMEM;
	return profile_add_stack(p, r->longer.v, (uint32_t)r->longer.len, out);
}

static enum status make_all_whole(struct repair *r, size_t first_sample)
{
	enum status s = OK;
	for (size_t i = first_sample; s == OK && i < r->p->samples.len; i++) {
		uint32_t stack = r->p->samples.v[i].stack;
		if (r->group_of[stack] == NONE)
			continue;
		if (r->whole[stack] == 0)
			s = make_whole(r, stack, &r->whole[stack]);
		if (s == OK)
			r->p->samples.v[i].stack = r->whole[stack];
	}
	return s;
}

enum status repair_go_stacks(struct profile *p, struct added a)
{
	struct repair r = { .p = p };
	if (!may_be_cut(p, a))
		return OK;
	arena_init(&r.arena, SIZE_MAX);
	enum status s = find_groups(&r, a.sample);
	if (s == OK)
		s = find_links(&r);
	if (s == OK)
		s = make_all_whole(&r, a.sample);
	VEC_FREE(&r.groups);
	VEC_FREE(&r.places);
	VEC_FREE(&r.longer);
	map_deinit(&r.tails);
	map_deinit(&r.shared);
	arena_deinit(&r.arena);
	return s;
}
