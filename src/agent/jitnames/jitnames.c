/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock over the table of processes and their tables of code. The thread takes a process (busy),
 * opens and reads without the lock, and puts what it read into the table under it, a window at a
 * time. A process that is busy is not freed: it is marked, and the thread frees it. Closing a file
 * may wait for its file system: the files of a process that is dropped go on a list, and the thread
 * closes them, without the lock and before it opens others, so that the list is short.
 */
#include "agent/jitnames/jitnames.h"

#include "agent/jitnames/jitfile.h"
#include "base/lock.h"
#include "os/os.h"

#include <errno.h>
#include <stdlib.h>

/* Intervals without a sample. */
#define UNUSED_TICKS_MAX 120
#define ENDED_TICKS_MAX 2
#define ALL_SHARES 4

struct share { /* of reading */
	uint64_t left;
	int64_t since_ns;
};

struct entry {
	struct jitfiles files;
	struct entry *next; /* of those to be closed */
	uint64_t used;      /* tick */
	bool wanted, busy, dropped, ended, missed;
	int64_t looked_ns, opened_ns, open_wait_ns; /* opened_ns 0: never */
	struct share share;
	size_t bytes;
	uint64_t bad, refused; /* counted so far */
};

struct jitnames {
	struct lock lock;
	pthread_cond_t wake, idle;
	pthread_t thread;
	bool stopping;
	struct entry *entries[JITNAMES_PROCESSES_MAX];
	uint32_t count, last; /* last: found last time */
	uint32_t turn;        /* of the thread */
	struct entry *gone;   /* their files are to be closed */
	uint64_t tick;
	size_t bytes;
	struct share share;
	struct jitfiles_known known; /* the thread's */
	struct jitnames_metrics metrics;
};

/* ---- entries; under the lock ---- */

static void entry_release(struct jitnames *j, struct entry *x)
{
	j->bytes -= x->bytes;
	jit_map_free(STEAL_PTR(x->files.map));
	x->next = j->gone;
	j->gone = x;
	pthread_cond_signal(&j->wake);
}

/* Without the lock. */
static void close_all(struct entry *gone)
{
	while (gone) {
		struct entry *x = gone;
		gone = x->next;
		jitfiles_deinit(&x->files);
		free(x);
	}
}

/* It has no file. */
static void entry_free(struct jitnames *j, struct entry *x)
{
	j->bytes -= x->bytes;
	jitfiles_deinit(&x->files);
	free(x);
}

static void entry_drop(struct jitnames *j, uint32_t at)
{
	struct entry *x = j->entries[at];
	j->entries[at] = j->entries[--j->count];
	if (x->busy)
		x->dropped = true;
	else if (jitfiles_has_any(&x->files))
		entry_release(j, x);
	else
		entry_free(j, x);
}

static struct entry *entry_find(struct jitnames *j, int pid, uint64_t start_ns, uint32_t *out_at)
{
	for (uint32_t n = 0; n < j->count; n++) {
		uint32_t at = (j->last + n) % j->count;
		const struct jitfiles *f = &j->entries[at]->files;
		if (f->pid != pid || f->start_ns != start_ns)
			continue;
		j->last = *out_at = at;
		return j->entries[at];
	}
	return NULL;
}

/* Removes the least recently used process of so many bytes at least, and `last` only if it is the
 * only one; false: there is none. */
static bool evict(struct jitnames *j, size_t bytes_least, const struct entry *last)
{
	uint32_t oldest = UINT32_MAX;
	for (uint32_t i = 0; i < j->count; i++) {
		const struct entry *x = j->entries[i];
		if (x->busy || x->bytes < bytes_least)
			continue;
		if (oldest == UINT32_MAX || j->entries[oldest] == last ||
			(x != last && x->used < j->entries[oldest]->used))
			oldest = i;
	}
	if (oldest == UINT32_MAX)
		return false;
	entry_drop(j, oldest);
	metric_add(&j->metrics.evicted, 1);
	return true;
}

static struct entry *entry_new(struct jitnames *j, const struct jitnames_place *p)
{
	if (j->count == JITNAMES_PROCESSES_MAX && !evict(j, 0, NULL))
		return NULL;
	struct entry *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	if (jitfiles_init(&x->files, p->pid, p->start_ns) != OK) {
		free(x);
		return NULL;
	}
	x->share = (struct share){ JITNAMES_BURST_BYTES, clock_monotonic_ns() };
	x->open_wait_ns = JITNAMES_OPEN_NS;
	j->entries[j->count++] = x;
	return x;
}

/* ---- when to look ---- */

static bool is_open_due(const struct entry *x, int64_t now_ns)
{
	return !x->opened_ns || (!x->ended && now_ns - x->opened_ns >= x->open_wait_ns);
}

static void want(struct jitnames *j, struct entry *x, int64_t now_ns, int64_t pause_ns)
{
	if (x->wanted || x->busy)
		return;
	bool is_new = jitfiles_has_any(&x->files) && now_ns - x->looked_ns >= pause_ns;
	if (!is_new && !is_open_due(x, now_ns))
		return;
	x->wanted = true;
	pthread_cond_signal(&j->wake);
}

static uint64_t share_of(struct share *s, uint64_t factor, int64_t now_ns)
{
	uint64_t ms = (uint64_t)MAX(now_ns - s->since_ns, (int64_t)0) / NS_PER_MS;
	uint64_t more = MIN(ms, (uint64_t)1 << 20) * (JITNAMES_BYTES_PER_SECOND * factor / 1000);
	s->left = MIN(s->left + more, JITNAMES_BURST_BYTES * factor);
	s->since_ns = now_ns;
	return s->left;
}

static void count_codes(struct jitnames *j, struct entry *x)
{
	const struct jit_map *m = x->files.map;
	size_t bytes = sizeof(*x) + jit_map_bytes(m) +
		       x->files.mapping_count * sizeof(*x->files.mappings) +
		       x->files.objects.seen_count * sizeof(*x->files.objects.seen);
	j->bytes += bytes - x->bytes;
	x->bytes = bytes;
	metric_add(&j->metrics.bad, jit_map_bad(m) - x->bad);
	metric_add(&j->metrics.refused, jit_map_refused(m) - x->refused);
	x->bad = jit_map_bad(m);
	x->refused = jit_map_refused(m);
}

/* A process that has no more than an equal share keeps its table. */
static void make_room(struct jitnames *j, const struct entry *last)
{
	while (j->bytes > JITNAMES_BYTES_MAX && evict(j, JITNAMES_BYTES_MAX / j->count, last))
		;
}

/* The least recently used process with a pinned file, if too many files are pinned. */
static struct entry *find_pinned(struct jitnames *j)
{
	struct entry *oldest = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; i < j->count; i++) {
		struct entry *x = j->entries[i];
		if (!jitfiles_has_pinned(&x->files))
			continue;
		count += x->files.perfmap.is_pinned + x->files.dump.is_pinned;
		if (!oldest || x->used < oldest->used)
			oldest = x;
	}
	return count > JITNAMES_PINNED_MAX ? oldest : NULL;
}

/* Called with the lock while no process is busy; gives it back in between. */
static void close_pinned(struct jitnames *j)
{
	struct entry *x;
	struct jitfile file;
	while ((x = find_pinned(j)) && jitfiles_take_pinned(&x->files, &file)) {
		lock_release(&j->lock);
		jitfile_close(&file);
		lock_take(&j->lock);
	}
}

/* Called with the lock, gives it back in between. */
static void look(struct jitnames *j, struct entry *x)
{
	int64_t now = clock_monotonic_ns();
	bool open = is_open_due(x, now);
	uint64_t most = MIN(share_of(&x->share, 1, now), share_of(&j->share, ALL_SHARES, now));
	x->busy = true;
	x->wanted = x->missed = false;
	lock_release(&j->lock);
	if (open)
		jitfiles_open(&x->files, &j->known, &j->lock);
	uint64_t done = most ? jitfiles_read(&x->files, &j->lock, most) : 0;
	lock_take(&j->lock);
	x->looked_ns = clock_monotonic_ns();
	if (open) {
		x->opened_ns = x->looked_ns;
		x->open_wait_ns = MIN(x->open_wait_ns * 2, JITNAMES_OPEN_MAX_NS);
	}
	x->share.left -= MIN(done, x->share.left);
	j->share.left -= MIN(done, j->share.left);
	metric_add(&j->metrics.read, done);
	x->busy = false;
	count_codes(j, x);
	if (x->dropped)
		entry_release(j, x);
	else
		make_room(j, x);
	close_pinned(j);
}

static struct entry *next_wanted(struct jitnames *j)
{
	for (uint32_t n = 0; n < j->count; n++) {
		struct entry *x = j->entries[(j->turn + n) % j->count];
		if (!x->wanted)
			continue;
		j->turn = (j->turn + n + 1) % j->count;
		return x;
	}
	return NULL;
}

/* Called with the lock, gives it back in between. */
static void close_gone(struct jitnames *j)
{
	while (j->gone) {
		struct entry *gone = STEAL_PTR(j->gone);
		lock_release(&j->lock);
		close_all(gone);
		lock_take(&j->lock);
	}
}

static void *run(void *ctx)
{
	struct jitnames *j = ctx;
	lock_take(&j->lock);
	while (!j->stopping) {
		close_gone(j);
		struct entry *x = next_wanted(j);
		if (x) {
			look(j, x);
			continue;
		}
		pthread_cond_broadcast(&j->idle);
		lock_wait(&j->wake, &j->lock);
	}
	lock_release(&j->lock);
	return NULL;
}

/* ---- asking ---- */

static void copy(char out[JIT_NAME_BYTES_MAX + 1], struct str s)
{
	size_t len = MIN(s.len, (size_t)JIT_NAME_BYTES_MAX);
	memcpy(out, len ? s.p : "", len);
	out[len] = 0;
}

/* Erlang's "'Elixir.Acme.Work':loop/2" is Elixir's "Acme.Work.loop/2". */
static void tell_elixir(char *name)
{
	static const char prefix[] = "'Elixir.";
	const char *module = name + sizeof(prefix) - 1, *end = strstr(name, "':");
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || !end)
		return;
	size_t len = (size_t)(end - module);
	memmove(name, module, len);
	name[len] = '.';
	memmove(name + len + 1, end + 2, strlen(end + 2) + 1);
}

static void tell(const struct jit_found *f, struct jitnames_name *out)
{
	struct jit_name n = jit_name_parse(f->name);
	/* Lines of code that was inlined from another file are none of this function. */
	bool is_own_line = !n.file.len || !f->file.len || str_eq(n.file, f->file);
	out->kind = n.kind;
	copy(out->function, n.function);
	if (n.kind == FRAME_BEAM)
		tell_elixir(out->function);
	copy(out->file, n.file.len ? n.file : f->file);
	out->function_line = n.line;
	out->line = is_own_line ? f->line : 0;
}

/* Under the lock. */
static enum jitnames_answer find(
	struct entry *x, const struct jitnames_place *p, bool last, struct jitnames_name *out)
{
	uint64_t address = p->at;
	struct jit_found found;
	/* While its files are read, they are about to say more. */
	if (!last && (x->busy ? x->looked_ns != 0
			      : jitfiles_have_grown(&x->files, p->time_ns, JITNAMES_LOOK_NS)))
		return JITNAMES_LATER;
	if (p->key.inode && !jitfiles_address(&x->files, &p->key, p->at, &address)) {
		if (x->files.dotnet.table) /* it maps more of its code as it goes */
			x->open_wait_ns = JITNAMES_LOOK_NS;
		return JITNAMES_NONE;
	}
	if (!jit_map_find(x->files.map, address, p->time_ns, &found)) {
		jitdotnet_want(&x->files.dotnet, address);
		return JITNAMES_NONE;
	}
	tell(&found, out);
	return JITNAMES_FOUND;
}

enum jitnames_answer jitnames_find(
	struct jitnames *j, const struct jitnames_place *p, bool last, struct jitnames_name *out)
{
	int64_t now = clock_monotonic_ns();
	uint32_t at;
	enum jitnames_answer answer = JITNAMES_NONE;
	lock_take(&j->lock);
	struct entry *x = entry_find(j, p->pid, p->start_ns, &at);
	if (!x)
		x = entry_new(j, p);
	if (x) {
		x->used = j->tick;
		answer = find(x, p, last, out);
		x->missed |= answer != JITNAMES_FOUND;
		want(j, x, now, JITNAMES_LOOK_NS);
	}
	lock_release(&j->lock);
	metric_add(answer == JITNAMES_FOUND ? &j->metrics.found : &j->metrics.missed, 1);
	return answer;
}

static bool is_idle(const struct jitnames *j)
{
	for (uint32_t i = 0; i < j->count; i++)
		if (j->entries[i]->wanted || j->entries[i]->busy)
			return false;
	return true;
}

void jitnames_settle(struct jitnames *j, int64_t patience_ns)
{
	int64_t now = clock_monotonic_ns();
	struct timespec until = { (now + patience_ns) / NS_PER_SEC,
		(now + patience_ns) % NS_PER_SEC };
	lock_take(&j->lock);
	for (uint32_t i = 0; i < j->count; i++)
		if (j->entries[i]->missed)
			want(j, j->entries[i], now, 0);
	while (!is_idle(j) && lock_wait_until(&j->idle, &j->lock, &until) != ETIMEDOUT)
		;
	lock_release(&j->lock);
}

void jitnames_ended(struct jitnames *j, int pid, uint64_t start_ns)
{
	uint32_t at;
	lock_take(&j->lock);
	struct entry *x = entry_find(j, pid, start_ns, &at);
	if (x)
		x->ended = true;
	lock_release(&j->lock);
}

void jitnames_forget(struct jitnames *j, int pid, uint64_t start_ns)
{
	uint32_t at;
	lock_take(&j->lock);
	if (entry_find(j, pid, start_ns, &at))
		entry_drop(j, at);
	lock_release(&j->lock);
}

void jitnames_tick(struct jitnames *j)
{
	uint64_t codes = 0, with_names = 0;
	lock_take(&j->lock);
	j->tick++;
	for (uint32_t i = j->count; i-- > 0;) {
		const struct entry *x = j->entries[i];
		uint64_t most = x->ended ? ENDED_TICKS_MAX : UNUSED_TICKS_MAX;
		if (j->tick - x->used > most) {
			entry_drop(j, i);
			continue;
		}
		codes += jit_map_len(x->files.map);
		with_names += !x->busy && jitfiles_has_any(&x->files);
	}
	metric_set(&j->metrics.processes, j->count);
	metric_set(&j->metrics.with_names, with_names);
	metric_set(&j->metrics.codes, codes);
	metric_set(&j->metrics.bytes, j->bytes);
	lock_release(&j->lock);
}

void jitnames_write_metrics(struct jitnames *j, struct buf *out)
{
	static const struct metric_def defs[] = { JITNAMES_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &j->metrics.processes, ARRAY_COUNT(defs));
}

/* ---- life ---- */

enum status jitnames_new(struct jitnames **out, struct err *e)
{
	struct jitnames *j = calloc(1, sizeof(*j));
	pthread_condattr_t attr;
	if (!j)
		return err_set(e, E_NOMEM, "names of JIT code");
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	lock_init(&j->lock, LOCK_JITNAMES);
	pthread_cond_init(&j->wake, NULL);
	pthread_cond_init(&j->idle, &attr);
	pthread_condattr_destroy(&attr);
	j->share = (struct share){ JITNAMES_BURST_BYTES * ALL_SHARES, clock_monotonic_ns() };
	enum status s = os_thread_start(&j->thread, "firn-jit", run, j, e);
	if (s != OK) {
		free(j);
		return s;
	}
	*out = j;
	return OK;
}

void jitnames_free(struct jitnames *j)
{
	if (!j)
		return;
	lock_take(&j->lock);
	j->stopping = true;
	pthread_cond_signal(&j->wake);
	lock_release(&j->lock);
	pthread_join(j->thread, NULL);
	while (j->count)
		entry_drop(j, j->count - 1);
	close_all(j->gone);
	pthread_cond_destroy(&j->wake);
	pthread_cond_destroy(&j->idle);
	lock_destroy(&j->lock);
	free(j);
}
