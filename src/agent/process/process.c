/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of slots with a hash index by (pid, start time). Most programs live for milliseconds and
 * are never sampled, so what begins is only noted (`fresh`), and read with its first sample, or
 * when the ring is empty and it is alive still. `used` holds the tick of the last event;
 * processes_tick() drops what ended a tick ago or was not seen for UNUSED_TICKS_MAX.
 *
 * Trust: pid, start time, comm and cgroup id come from the kernel's event. /proc/PID is read
 * afterwards, when the pid may be another process' already: field 22 of /proc/PID/stat (start time
 * in clock ticks, rounded down) is read last, and if it does not agree everything read is dropped.
 */
#include "agent/process/process.h"

#include "agent/broker/broker.h"
#include "agent/process/procread.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "otlp/otlp.h"
#include "procfs/procfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define UNUSED_TICKS_MAX 120 /* ten minutes at five seconds */
#define CGROUPS_MAX 8192
#define READ_ARENA_BYTES ((size_t)2 << 20)
/* How long until a process that did not answer is asked again. */
#define LATE_RETRY_NS (1 * NS_PER_SEC)

struct slot {
	struct process process;
	uint64_t used;       /* tick */
	int64_t labelled_ns; /* monotonic */
	uint64_t generation; /* of containers, when looked at last */
	uint64_t version;    /* of its container's labels */
	bool program_asked;  /* its program's labels are still to come */
	uint64_t program_generation;
	bool free;
	bool ended;
	bool fresh;                    /* it began another program, and /proc was not read since */
	bool doubted;                  /* it may have, unseen */
	bool late;                     /* /proc did not answer: asked again after LATE_RETRY_NS */
	uint8_t looks;                 /* of processes_look() */
	uint64_t look;                 /* tick of the next one */
	struct relabel_label *context; /* what it publishes of itself */
	uint32_t context_count;
	bool context_changed; /* since its labels were made */
};

struct cgroup {
	uint64_t id;
	struct str path;
};

struct processes {
	struct metadata *metadata;
	struct containers *containers;
	struct executables *executables;
	struct procread *procread;
	int64_t label_ttl_ns;
	struct relabel_set *set; /* of the process that is being described */
	VEC(struct slot) slots;
	VEC(uint32_t) unused;
	VEC(struct event_header) fresh; /* what began another program lately; some have ended */
	struct map index;
	VEC(struct cgroup) cgroups;
	struct map cgroup_index;
	struct strtab texts;
	struct cgroupid cgroup_root;
	uint64_t ticks_per_second;
	uint64_t tick;
	struct process_metrics metrics;
};

struct key {
	uint32_t pid;
	uint64_t start_ns;
};

static uint64_t hash_of(const struct key *k)
{
	return hash_u64(k->start_ns ^ (uint64_t)k->pid << 40);
}

static bool slot_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct processes *p = ctx;
	const struct key *k = key;
	const struct process *x = &p->slots.v[value].process;
	return x->pid == k->pid && x->start_ns == k->start_ns;
}

static bool cgroup_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct processes *p = ctx;
	return p->cgroups.v[value].id == *(const uint64_t *)key;
}

void processes_doubt(struct processes *p)
{
	for (size_t i = 0; i < p->slots.len; i++)
		p->slots.v[i].doubted = true;
}

static void forget_context(struct slot *s)
{
	free(s->context);
	s->context = NULL;
	s->context_count = 0;
}

static void slot_release(struct slot *s)
{
	free(s->process.labels);
	s->process.labels = NULL;
	forget_context(s);
}

void processes_forget(struct processes *p)
{
	metric_add(&p->metrics.evicted, p->slots.len - p->unused.len);
	for (size_t i = 0; i < p->slots.len; i++)
		slot_release(&p->slots.v[i]);
	VEC_CLEAR(&p->slots);
	VEC_CLEAR(&p->unused);
	VEC_CLEAR(&p->cgroups);
	map_clear(&p->index);
	map_clear(&p->cgroup_index);
	if (strtab_clear(&p->texts) != OK)
		UNREACHABLE(); /* an empty text always fits */
}

/* The text with the lifetime of the table; "" where there is no room. */
static struct str keep(struct processes *p, struct str s)
{
	uint32_t id;
	if (strtab_intern(&p->texts, s, &id) != OK)
		return STR("");
	return strtab_get(&p->texts, id);
}

static struct str event_comm(const struct event_header *h)
{
	return str_make(h->comm, strnlen(h->comm, sizeof(h->comm)));
}

/* ---- control groups ---- */

static void cgroup_remember(struct processes *p, uint64_t id, struct str path)
{
	if (p->cgroups.len >= CGROUPS_MAX) {
		VEC_CLEAR(&p->cgroups);
		map_clear(&p->cgroup_index);
	}
	uint32_t at = (uint32_t)p->cgroups.len;
	struct cgroup c = { id, keep(p, path) };
	if (VEC_PUSH(&p->cgroups, c) && !map_insert(&p->cgroup_index, hash_u64(id), at))
		p->cgroups.len--;
}

/* The path of the event's control group, from the cache or by its id; "" when not known. */
static struct str cgroup_find(struct processes *p, uint64_t id)
{
	if (id == 0)
		return STR("");
	uint32_t at = map_find(&p->cgroup_index, hash_u64(id), cgroup_equal, p, &id);
	if (at != MAP_NONE)
		return p->cgroups.v[at].path;
	char path[PATH_MAX];
	if (!cgroupid_path(&p->cgroup_root, id, path) && !broker_cgroup_path(id, path)) {
		metric_add(&p->metrics.cgroup_unknown, 1);
		return STR("");
	}
	cgroup_remember(p, id, str_of(path));
	return keep(p, str_of(path));
}

/* ---- /proc ---- */

/* As the kernel's nsec_to_clock_t(). */
static uint64_t start_ticks_of(const struct processes *p, const struct event_header *h)
{
	return h->process_start_ns / (1000000000ULL / p->ticks_per_second);
}

static void answer_cleanup(struct procread_answer **a)
{
	procread_answer_free(*a);
}

/* Asks /proc about exactly this process; NULL: there is no answer now. */
static struct procread_answer *read_proc(struct processes *p, const struct event_header *h)
{
	const struct procread_wish wish = {
		.pid = (int)h->pid,
		.start_ticks = start_ticks_of(p, h),
		.command_line = metadata_wants_command_line(p->metadata),
		.environment = metadata_wants_environment(p->metadata),
	};
	return procread_ask(p->procread, &wish);
}

/* Without memory it has no labels, and the sample's own are all there is. */
static void keep_labels(struct processes *p, struct process *x)
{
	uint32_t count = p->set->count;
	free(x->labels);
	x->labels = malloc(MAX(count, 1u) * sizeof(*x->labels));
	x->label_count = x->labels ? count : 0;
	for (uint32_t i = 0; i < x->label_count; i++)
		x->labels[i] = (struct relabel_label){ keep(p, p->set->v[i].name),
			keep(p, p->set->v[i].value) };
}

static void set_labels(struct processes *p, struct slot *s, const struct event_header *h,
	const struct procread_answer *seen, const struct executable *program, struct arena *a)
{
	struct process *x = &s->process;
	struct container_label *container;
	uint32_t container_count;
	/* Without memory for them it goes without, until something changes. */
	(void)!containers_find(p->containers, x->cgroup, a, &container, &container_count);
	const struct metadata_process facts = {
		.h = h,
		.ppid = x->ppid,
		.comm = x->comm,
		.executable = x->executable,
		.cgroup = x->cgroup,
		.container_id = x->container_id,
		.command_line = seen ? seen->command_line : STR(""),
		.environment = seen ? seen->environment : STR(""),
		.container = container,
		.container_count = container_count,
		.program = program,
		.context = s->context,
		.context_count = s->context_count,
	};
	relabel_set_init(p->set, a);
	x->dropped = !metadata_label(p->metadata, &facts, p->set);
	keep_labels(p, x);
}

static void describe_by_event(struct processes *p, struct process *x, const struct event_header *h)
{
	/* exec() names the main thread after the file, so comm is the next best name. Of a
	 * thread that is not the main one it is the thread's, and better than nothing. */
	if (!x->comm.len || h->tid == h->pid)
		x->comm = keep(p, event_comm(h));
	if (!x->executable.len)
		x->executable = x->comm;
	x->cgroup = cgroup_find(p, h->cgroup_id);
}

/* To be called before the containers are asked, so that no change is missed. */
static void note_version(struct processes *p, struct slot *s)
{
	s->labelled_ns = clock_monotonic_ns();
	s->doubted = false;
	s->context_changed = false;
	s->generation = containers_generation(p->containers);
	s->version = containers_version(p->containers, s->process.cgroup);
}

static void describe_by_proc(
	struct processes *p, struct process *x, const struct procread_answer *seen)
{
	x->comm = keep(p, str_of(seen->comm));
	x->executable = keep(p, seen->executable);
	x->cgroup = keep(p, seen->cgroup);
	x->ppid = seen->ppid;
}

static enum executables_answer find_program(
	struct processes *p, const struct event_header *h, struct executable *out)
{
	if (!metadata_wants_program(p->metadata))
		return EXECUTABLES_NONE;
	return executables_find(p->executables, (int)h->pid, start_ticks_of(p, h), out);
}

/* New labels could be poorer than those it has. */
static bool is_poorer(const struct processes *p)
{
	return metadata_wants_command_line(p->metadata) ||
	       metadata_wants_environment(p->metadata) || metadata_wants_program(p->metadata);
}

/* `again`: it was described before. When it has died since, or does not answer, only what was kept
 * is known, without its command line and environment. */
static void describe(struct processes *p, struct slot *s, const struct event_header *h, bool again)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, READ_ARENA_BYTES);
	struct process *x = &s->process;
	struct executable program;
	enum executables_answer program_is = EXECUTABLES_NONE;
	/* Before it is asked for, so that no answer is missed. */
	s->program_generation = executables_generation(p->executables);
	metric_add(again ? &p->metrics.relabelled : &p->metrics.read, 1);
	CLEANUP(answer_cleanup) struct procread_answer *seen = read_proc(p, h);
	s->late = !seen;
	metric_add(&p->metrics.late, s->late);
	if (seen && !seen->is_it) { /* the answer may contain data of another process */
		procread_answer_free(STEAL_PTR(seen));
		metric_add(&p->metrics.gone, !again);
	}
	if (seen)
		describe_by_proc(p, x, seen);
	else if (!again)
		describe_by_event(p, x, h);
	if (seen)
		program_is = find_program(p, h, &program);
	x->container_id = keep(p, procfs_container_id(x->cgroup));
	s->program_asked = program_is == EXECUTABLES_ASKED;
	note_version(p, s);
	if (seen || !again || !is_poorer(p))
		set_labels(p, s, h, seen, program_is == EXECUTABLES_KNOWN ? &program : NULL, &a);
}

/* Is it time to label a process anew? Cheap: it is asked at each sample. */
static bool is_outdated(struct processes *p, struct slot *s)
{
	uint64_t now = containers_generation(p->containers);
	if (s->generation != now) {
		s->generation = now;
		uint64_t version = containers_version(p->containers, s->process.cgroup);
		if (version && version != s->version)
			return true;
	}
	if (s->program_asked && s->program_generation != executables_generation(p->executables))
		return true;
	int64_t age_ns = clock_monotonic_ns() - s->labelled_ns;
	return s->doubted || s->context_changed || (s->late && age_ns > LATE_RETRY_NS) ||
	       (p->label_ttl_ns > 0 && age_ns > p->label_ttl_ns);
}

/* ---- the table ---- */

static void slot_drop(struct processes *p, uint32_t at)
{
	struct slot *s = &p->slots.v[at];
	struct key k = { s->process.pid, s->process.start_ns };
	bool was = map_remove(&p->index, hash_of(&k), at);
	assert(was && !s->free);
	slot_release(s);
	s->free = true;
	/* Cannot fail: room for every slot is reserved when the slot is made. */
	bool pushed = VEC_PUSH(&p->unused, at);
	assert(pushed);
}

static void evict_longest_unused(struct processes *p)
{
	uint64_t oldest = UINT64_MAX;
	for (size_t i = 0; i < p->slots.len; i++)
		if (!p->slots.v[i].free)
			oldest = MIN(oldest, p->slots.v[i].used);
	for (uint32_t i = 0; i < p->slots.len; i++) {
		if (p->slots.v[i].free || p->slots.v[i].used != oldest)
			continue;
		slot_drop(p, i);
		metric_add(&p->metrics.evicted, 1);
	}
}

static struct slot *slot_new(struct processes *p, const struct key *k)
{
	if (p->unused.len == 0 && p->slots.len >= PROCESSES_MAX)
		evict_longest_unused(p);
	uint32_t at;
	if (p->unused.len) {
		at = p->unused.v[--p->unused.len];
	} else {
		at = (uint32_t)p->slots.len;
		if (!VEC_RESERVE(&p->unused, p->slots.len + 1) ||
			!VEC_PUSH(&p->slots, (struct slot){ .free = true }))
			return NULL;
	}
	struct slot *s = &p->slots.v[at];
	*s = (struct slot){ .process = { .pid = k->pid, .start_ns = k->start_ns },
		.used = p->tick };
	if (map_insert(&p->index, hash_of(k), at))
		return s;
	s->free = true;
	p->unused.v[p->unused.len++] = at;
	return NULL;
}

static struct slot *slot_of(struct processes *p, const struct key *k)
{
	uint32_t at = map_find(&p->index, hash_of(k), slot_equal, p, k);
	return at == MAP_NONE ? NULL : &p->slots.v[at];
}

static struct slot *slot_find(struct processes *p, const struct event_header *h)
{
	return slot_of(p, &(struct key){ h->pid, h->process_start_ns });
}

const struct process *processes_find(struct processes *p, const struct event_header *h)
{
	struct slot *s = slot_find(p, h);
	if (!s)
		s = slot_new(p, &(struct key){ h->pid, h->process_start_ns });
	if (!s)
		return NULL;
	if (s->doubted)
		executables_forget(p->executables, (int)h->pid, start_ticks_of(p, h));
	if (s->fresh || !s->labelled_ns)
		describe(p, s, h, false);
	else if (is_outdated(p, s))
		describe(p, s, h, true);
	s->fresh = false;
	s->used = p->tick;
	return &s->process;
}

void processes_exec(struct processes *p, const struct event_header *h)
{
	struct key k = { h->pid, h->process_start_ns };
	struct slot *s = slot_of(p, &k);
	if (s)
		executables_forget(p->executables, (int)h->pid, start_ticks_of(p, h));
	else
		s = slot_new(p, &k);
	if (!s)
		return;
	/* If /proc is gone already, the name of the earlier program would be wrong. */
	s->process.comm = keep(p, event_comm(h));
	s->process.executable = STR("");
	s->used = p->tick;
	s->looks = 0;
	s->look = p->tick;
	forget_context(s);
	/* Without memory for the list it is read with its first sample. */
	if (!s->fresh)
		(void)!VEC_PUSH(&p->fresh, *h);
	s->fresh = true;
}

void processes_exit(struct processes *p, const struct event_header *h)
{
	struct slot *s = slot_find(p, h);
	if (!s)
		return;
	s->ended = true;
	/* It was not asked for, and what it was before may be asked for still. */
	if (s->fresh && !s->labelled_ns)
		slot_drop(p, (uint32_t)(s - p->slots.v));
}

void processes_settle(struct processes *p)
{
	for (size_t i = 0; i < p->fresh.len; i++) {
		struct slot *s = slot_find(p, &p->fresh.v[i]);
		if (!s || !s->fresh || s->ended)
			continue;
		describe(p, s, &p->fresh.v[i], false);
		s->fresh = false;
	}
	VEC_CLEAR(&p->fresh);
}

void processes_look(struct processes *p, uint32_t most, processes_look_fn *fn, void *ctx)
{
	for (size_t i = 0; i < p->slots.len && most; i++) {
		struct slot *s = &p->slots.v[i];
		if (s->free || s->ended || s->fresh || s->look > p->tick || p->tick - s->used > 1)
			continue;
		s->look = p->tick + MIN(1u << s->looks, (unsigned)PROCESSES_LOOK_TICKS_MAX);
		s->looks = (uint8_t)MIN(s->looks + 1, 31);
		fn(ctx, s->process.pid, s->process.start_ns);
		most--;
	}
}

bool processes_look_holds(struct processes *p, uint32_t pid, uint64_t start_ns)
{
	const struct slot *s = slot_of(p, &(struct key){ pid, start_ns });
	return s && !s->ended && s->looks > 0;
}

struct context {
	struct processes *p;
	struct relabel_label v[OTLP_CONTEXT_ATTRIBUTES_MAX];
	uint32_t count;
};

static void take_attribute(void *ctx, struct str key, struct str value)
{
	struct context *c = ctx;
	c->v[c->count++] = (struct relabel_label){ keep(c->p, key), keep(c->p, value) };
}

/* Texts that are equal are kept once. */
static bool is_context(const struct slot *s, const struct context *c)
{
	return s->context_count == c->count &&
	       (!c->count || !memcmp(s->context, c->v, c->count * sizeof(*c->v)));
}

void processes_set_context(struct processes *p, uint32_t pid, uint64_t start_ns, struct str context)
{
	struct context c = { .p = p };
	struct slot *s = slot_of(p, &(struct key){ pid, start_ns });
	if (!s)
		return;
	if (otlp_decode_process_context(context, take_attribute, &c, NULL) != OK)
		metric_add(&p->metrics.contexts_bad, 1);
	if (is_context(s, &c))
		return;
	forget_context(s);
	s->context_changed = true;
	size_t bytes = c.count * sizeof(*c.v);
	s->context = bytes ? malloc(bytes) : NULL;
	if (!s->context) /* without memory it goes without */
		return;
	memcpy(s->context, c.v, bytes);
	s->context_count = c.count;
}

void processes_tick(struct processes *p)
{
	for (uint32_t i = 0; i < p->slots.len; i++) {
		const struct slot *s = &p->slots.v[i];
		if (s->free)
			continue;
		uint64_t age = p->tick - s->used;
		if ((s->ended && age > 1) || age > UNUSED_TICKS_MAX)
			slot_drop(p, i);
	}
	p->tick++;
	if (p->texts.arena.used > p->texts.arena.limit / 4 * 3)
		processes_forget(p);
	metric_set(&p->metrics.known, p->slots.len - p->unused.len);
}

/* ---- life ---- */

static enum status start_reading(struct processes *p, int64_t patience_ns, struct err *e)
{
	CLEANUP(buf_deinit) struct buf names;
	buf_init(&names, PROCESS_TEXT_BYTES_MAX);
	metadata_write_variables(p->metadata, &names);
	enum status s = buf_status(&names);
	return s == OK ? procread_new(patience_ns, buf_view(&names), &p->procread, e) : s;
}

enum status processes_new(const struct processes_config *c, struct processes **out, struct err *e)
{
	struct processes *p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, E_NOMEM, "processes");
	p->metadata = c->metadata;
	p->containers = c->containers;
	p->label_ttl_ns = c->label_ttl_ns;
	cgroupid_open(&p->cgroup_root);
	p->set = malloc(sizeof(*p->set));
	if (!p->set) {
		processes_free(p);
		return err_set(e, E_NOMEM, "processes");
	}
	enum status s = strtab_init(&p->texts, PROCESS_TEXT_BYTES_MAX);
	if (s == OK)
		s = executables_new(&p->executables, e);
	if (s == OK)
		s = start_reading(p, c->patience_ns, e);
	if (s != OK) {
		processes_free(p);
		return err_set(e, s, "processes");
	}
	long ticks = sysconf(_SC_CLK_TCK);
	p->ticks_per_second = ticks > 0 ? (uint64_t)ticks : 100;
	*out = p;
	return OK;
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->slots.len; i++)
		slot_release(&p->slots.v[i]);
	free(p->set);
	executables_free(p->executables);
	procread_free(p->procread);
	VEC_FREE(&p->slots);
	VEC_FREE(&p->unused);
	VEC_FREE(&p->fresh);
	VEC_FREE(&p->cgroups);
	map_deinit(&p->index);
	map_deinit(&p->cgroup_index);
	strtab_deinit(&p->texts);
	cgroupid_close(&p->cgroup_root);
	free(p);
}

const struct process_metrics *processes_metrics(const struct processes *p)
{
	return &p->metrics;
}

void processes_write_metrics(const struct processes *p, struct buf *out)
{
	static const struct metric_def defs[] = { PROCESS_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &p->metrics.known, ARRAY_COUNT(defs));
}
