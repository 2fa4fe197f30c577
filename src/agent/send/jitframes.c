/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name is all that a frame says of code that is made anew each time a program runs: its location
 * has no address, so that equal functions are equal wherever they lie. Those without a name yet are
 * told apart by process, by a mapping of a name that no other has; and by sample while its runtime
 * writes of other code, which may lie where this one was.
 */
#include "agent/send/jitframes.h"

#include <inttypes.h>
#include <stdio.h>

#define MAPPING_NAME STR("[jit]")
/* How long the thread that reads the files is waited for. It mostly has nothing to do. */
#define PATIENCE_NS (500 * NS_PER_MS)

static enum status add_mapping(struct profile *p, struct str name, uint32_t *out)
{
	struct profile_mapping m = { 0 };
	enum status s = profile_add_string(p, name, &m.filename);
	return s == OK ? profile_add_mapping(p, &m, out) : s;
}

static enum status named(struct profile *p, const struct jitnames_name *n, uint32_t *out)
{
	struct profile_location loc = { .kind = (uint8_t)n->kind };
	struct profile_function f = { .start_line = n->function_line };
	struct profile_line line = { .line = n->line };
	enum status s = add_mapping(p, MAPPING_NAME, &loc.mapping);
	if (s == OK)
		s = profile_add_string(p, str_of(n->function), &f.name);
	if (s == OK)
		s = profile_add_string(p, str_of(n->file), &f.filename);
	f.system_name = f.name;
	if (s == OK)
		s = profile_add_function(p, &f, &line.function);
	return s == OK ? profile_add_location(p, &loc, &line, 1, out) : s;
}

static enum status nameless(struct jitframes *f, struct profile *p,
	const struct jitnames_place *place, const struct profile_location *plain, bool is_changing,
	uint32_t *out)
{
	char name[160];
	snprintf(name, sizeof(name),
		"[code of %d:%" PRIu64 " in %u:%" PRIu64 " at %" PRIu64 ", not named yet]",
		place->pid, place->start_ns, place->key.dev, (uint64_t)place->key.inode,
		is_changing ? place->time_ns : 0);
	struct profile_location loc = { .address = place->at, .kind = plain->kind };
	enum status s = add_mapping(p, str_of(name), &loc.mapping);
	size_t before = p->locations.len;
	if (s == OK)
		s = profile_add_location(p, &loc, NULL, 0, out);
	if (s == OK && p->locations.len > before &&
		!VEC_PUSH(&f->late, (struct jitframes_late){ *out, *place, *plain }))
		s = E_NOMEM;
	return s;
}

enum status jitframes_location(struct jitframes *f, struct profile *p,
	const struct jitnames_place *place, const struct profile_location *plain, uint32_t *out)
{
	struct jitnames_name name;
	enum jitnames_answer answer = jitnames_find(f->names, place, false, &name);
	if (answer == JITNAMES_FOUND)
		return named(p, &name, out);
	return nameless(f, p, place, plain, answer == JITNAMES_LATER, out);
}

void jitframes_resolve(struct jitframes *f, struct profile *p)
{
	if (f->late.len == 0)
		return;
	jitnames_settle(f->names, PATIENCE_NS);
	for (size_t i = 0; i < f->late.len; i++) {
		const struct jitframes_late *l = &f->late.v[i];
		struct profile_location loc = l->plain;
		struct jitnames_name name;
		uint32_t id;
		if (jitnames_find(f->names, &l->place, true, &name) == JITNAMES_FOUND &&
			named(p, &name, &id) == OK)
			loc = p->locations.v[id];
		p->locations.v[l->location] = loc;
	}
	VEC_CLEAR(&f->late);
}

void jitframes_clear(struct jitframes *f)
{
	VEC_CLEAR(&f->late);
}

void jitframes_deinit(struct jitframes *f)
{
	VEC_FREE(&f->late);
}
