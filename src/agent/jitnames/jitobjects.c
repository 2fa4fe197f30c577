/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each look reads the whole list, and of it the objects that were not there before, the oldest
 * first. One that could not be read whole, since the list was just being changed or the broker did
 * not answer, is asked for again. One that was replaced between two looks by another with the same
 * place and size is taken for the same. Reading an object may wait for the process' memory: the
 * broker has a channel for that.
 */
#include "agent/jitnames/jitobjects.h"

#include "base/hash.h"

#include <stdlib.h>
#include <unistd.h>

/* Bytes that reading a list counts as, and reading an object, even in vain. */
#define LISTED_BYTES sizeof(struct jit_memory_object)
#define ASKED_BYTES 1024
#define GIVE_WAY_US 50
static_assert(JIT_MEMORY_BYTES_MAX == JIT_OBJECT_BYTES_MAX, "what is given can be read");

void jitobjects_find(struct jitobjects *o, struct code_files_memory *known, int pid)
{
	if (o->descriptor_count == 0)
		o->descriptor_count = jit_descriptors_find(known, pid, o->descriptors);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t hash_of(const struct jit_memory_object *x)
{
	return hash_u64(x->entry ^ hash_u64(x->address ^ hash_u64(x->bytes)));
}

static bool is_seen(const struct jitobjects *o, uint64_t hash)
{
	return o->seen_count &&
	       bsearch(&hash, o->seen, o->seen_count, sizeof(*o->seen), by_value) != NULL;
}

struct whose {
	int pid;
	uint64_t descriptor;
};

/* How many bytes there were before the end, or an error. */
static size_t fetch(struct whose of, const struct jit_memory_object *x, uint8_t *out)
{
	size_t at = 0;
	ssize_t n = 1;
	while (n > 0 && at < x->bytes) {
		n = broker_jit_read(
			of.pid, of.descriptor, x->entry, at, out + at, (size_t)x->bytes - at);
		at += n > 0 ? (size_t)n : 0;
	}
	return at;
}

static void add(struct jit_map *map, struct lock *lock, struct str bytes, uint64_t since_ns)
{
	uint32_t next = 0;
	do {
		lock_take(lock);
		/* What is none is counted there. */
		(void)!jit_object_read(map, bytes, since_ns, &next, NULL);
		lock_release(lock);
		usleep(next ? GIVE_WAY_US : 0);
	} while (next);
}

/* Whole; *cost grows whatever comes of it. */
static bool read_object(struct whose of, const struct jit_memory_object *x, struct jit_map *map,
	struct lock *lock, uint64_t since_ns, uint64_t *cost)
{
	uint8_t *bytes = x->bytes <= JIT_OBJECT_BYTES_MAX ? malloc((size_t)x->bytes) : NULL;
	size_t len = bytes ? fetch(of, x, bytes) : 0;
	bool is_whole = len && len == x->bytes;
	if (is_whole)
		add(map, lock, str_make(bytes, len), since_ns);
	free(bytes);
	*cost += len + ASKED_BYTES;
	return is_whole;
}

struct reading {
	struct jit_memory_object objects[JIT_MEMORY_OBJECTS_MAX];
	uint64_t now[JIT_DESCRIPTORS_MAX * JIT_MEMORY_OBJECTS_MAX]; /* seen */
	uint32_t count;
};

static bool keep(struct jitobjects *o, struct reading *r)
{
	size_t bytes = r->count * sizeof(*r->now);
	uint64_t *seen = malloc(MAX(bytes, (size_t)1));
	if (!seen)
		return false;
	qsort(r->now, r->count, sizeof(*r->now), by_value);
	memcpy(seen, r->now, bytes);
	free(o->seen);
	o->seen = seen;
	o->seen_count = r->count;
	return true;
}

uint64_t jitobjects_read(struct jitobjects *o, int pid, struct jit_map *map, struct lock *lock,
	uint64_t since_ns, uint64_t budget)
{
	struct reading *r = o->descriptor_count ? malloc(sizeof(*r)) : NULL;
	uint64_t done = 0;
	if (!r)
		return 0;
	r->count = 0;
	for (uint32_t i = 0; i < o->descriptor_count; i++) {
		const struct whose of = { pid, o->descriptors[i] };
		ssize_t n = broker_jit_list(pid, of.descriptor, r->objects);
		done += n > 0 ? (uint64_t)n * LISTED_BYTES : 0;
		while (n-- > 0) { /* the last one was registered first */
			const struct jit_memory_object *x = &r->objects[n];
			uint64_t hash = hash_of(x);
			if (is_seen(o, hash) ||
				(done < budget && read_object(of, x, map, lock, since_ns, &done)))
				r->now[r->count++] = hash;
		}
	}
	(void)!keep(o, r);
	free(r);
	return done;
}

void jitobjects_deinit(struct jitobjects *o)
{
	free(o->seen);
	*o = (struct jitobjects){ 0 };
}
