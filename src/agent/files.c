/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of records. A `binding` is a kernel key (device, inode) that was met: waiting, bound to
 * a file, or failed (and not to be tried again before some time has passed). A `known` file is a
 * content: what has the same build id, size, first and last bytes is the same file, whichever key
 * it has, and has one id.
 *
 *	notice -> binding WAITING -> opener: open -> builder: know, table, publish -> BOUND or
 *FAILED
 *
 * The opener is a thread of its own, because the process of a notice may end any moment while the
 * builder is at a large table, and because opening a file may hang with its file system.
 *
 * A notice of a bound file says that its program was executed again, or that the sampler has
 * evicted it. The sampler's count of evictions tells: as long as it stands, nothing is to be done.
 *
 * `lock` guards both, and is held for moments. `work` is held while a table is
 * built; taken before `lock`.
 *
 * When too many files are known the one that was longest not asked for is forgotten: retracted from
 * the sampler, its keys dropped, its id left to rest, since samples under way name it still.
 */
#include "agent/files.h"

#include "agent/fileopen.h"
#include "agent/preload.h"
#include "agent/tablecache.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "os/os.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Whether a bound file was evicted is asked at most so often. */
#define RETRY_BOUND_NS (1 * NS_PER_SEC)
/* A file that could not be opened is tried again after so long, doubled each time. */
#define RETRY_FAILED_NS (100 * NS_PER_MS)
#define RETRY_SHIFT_MAX 4u
/* Tables of less are built faster than read. */
#define CACHE_TABLE_BYTES_MIN ((uint64_t)256 << 10)
/* The worker may run ahead of its share of the CPU by so much. */
#define BUDGET_BURST_NS (1 * NS_PER_SEC)
#define BUDGET_NAP_NS (20 * NS_PER_MS)
#define VDSO_BYTES_MAX 65536
/* What is left of a path by file_info. */
#define PATH_BYTES_MAX 255

enum binding_state { BINDING_FREE, BINDING_WAITING, BINDING_BOUND, BINDING_FAILED };

struct binding {
	struct file_key key;
	enum binding_state state;
	uint32_t file_id;   /* once BOUND; 0: never was */
	uint64_t evictions; /* the sampler's, just before this was published */
	uint32_t attempts;
	int64_t retry_ns; /* not before */
};

struct known {
	char *identity;
	char *build_id;
	char *path;
	struct objfile_segment *segments;
	uint32_t segment_count;
	bool has_table;
	bool live; /* false: the id rests, or was never used */
	uint64_t rows;
	int64_t used_ns; /* live: last asked for; not live: since when it rests */
};

struct opened {
	int fd;              /* ours beside the objfile's */
	struct objfile *obj; /* NULL: no ELF file for us */
	char path[FILEOPEN_PATH_MAX];
	char build_id[2 * OBJFILE_BUILD_ID_MAX + 1];
	char identity[2 * OBJFILE_BUILD_ID_MAX + 64];
};

/* A notice on its way: opened by one thread, its table built and published by another. */
struct request {
	struct file_notice notice;
	uint32_t binding;
	int pid;
	bool is_replaced;   /* the inode is another file than the one that is bound */
	bool is_first_pass; /* of files_preload() */
	bool is_start;      /* the beginning of it, and no file */
	uint64_t evictions; /* the sampler's when it was taken up */
	struct opened opened;
};

struct files {
	struct files_config config;
	struct sampler *sampler;
	struct os_queue *requests; /* to the opener */
	struct os_queue *opened;   /* from it to the builder */
	pthread_t opener;
	pthread_t builder;
	bool opener_runs;
	bool builder_runs;
	atomic_bool stop;
	pthread_mutex_t work;
	struct tablecache *cache;       /* NULL: none; under `work` */
	pthread_cond_t first_pass_done; /* with `lock` */
	uint32_t first_pass_left;       /* requests, and one for what is not listed yet */
	_Atomic bool is_first_pass;
	enum status first_pass_status;
	pthread_mutex_t lock;
	VEC(struct binding) bindings;
	uint32_t binding_count;
	uint32_t binding_hint; /* where the search for a free one goes on */
	struct map by_key;
	VEC(struct known) known; /* by id */
	uint32_t live_count;
	struct map by_identity;
	struct files_metrics metrics;
};

static const struct metric_def metric_defs[] = { FILES_METRICS(METRIC_DEF) };

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

static void table_cleanup(struct unwind_table **t)
{
	unwind_table_free(*t);
}

static void unlock_cleanup(pthread_mutex_t **m)
{
	pthread_mutex_unlock(*m);
}

static pthread_mutex_t *locked(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}

#define LOCKED(m) CLEANUP(unlock_cleanup) UNUSED pthread_mutex_t *locked_ = locked(m)

/* ---- bindings; under `lock` ---- */

static uint64_t key_hash(const struct file_key *key)
{
	return hash_u64(key->inode ^ hash_u64(key->dev));
}

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct files *f = ctx;
	const struct file_key *a = &f->bindings.v[value].key;
	const struct file_key *b = key;
	return a->inode == b->inode && a->dev == b->dev;
}

static uint32_t binding_find(struct files *f, const struct file_key *key)
{
	return map_find(&f->by_key, key_hash(key), key_equal, f, key);
}

static void binding_drop(struct files *f, uint32_t i)
{
	struct binding *b = &f->bindings.v[i];
	map_remove(&f->by_key, key_hash(&b->key), i);
	b->state = BINDING_FREE;
	f->binding_count--;
}

/* Failed ones whose time has come are worth nothing. */
static void bindings_sweep(struct files *f, int64_t now)
{
	for (uint32_t i = 0; i < f->bindings.len; i++) {
		const struct binding *b = &f->bindings.v[i];
		if (b->state == BINDING_FAILED && b->retry_ns <= now)
			binding_drop(f, i);
	}
}

/* MAP_NONE: too many, or no memory. */
static uint32_t binding_add(struct files *f, const struct file_key *key, int64_t now)
{
	if (f->binding_count >= FILES_KEYS_MAX)
		bindings_sweep(f, now);
	if (f->binding_count >= FILES_KEYS_MAX)
		return MAP_NONE;
	uint32_t i = (uint32_t)f->bindings.len;
	if (f->binding_count < f->bindings.len) {
		i = f->binding_hint % (uint32_t)f->bindings.len;
		while (f->bindings.v[i].state != BINDING_FREE)
			i = (i + 1) % (uint32_t)f->bindings.len;
		f->binding_hint = i + 1;
	} else if (!VEC_PUSH(&f->bindings, (struct binding){ 0 })) {
		return MAP_NONE;
	}
	f->bindings.v[i] = (struct binding){ .key = *key };
	if (!map_insert(&f->by_key, key_hash(key), i))
		return MAP_NONE;
	f->binding_count++;
	return i;
}

/* ---- known files; under `lock` ---- */

static bool identity_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct files *f = ctx;
	return strcmp(f->known.v[value].identity, key) == 0;
}

static uint32_t known_find(struct files *f, const char *identity)
{
	return map_find(
		&f->by_identity, hash64(identity, strlen(identity)), identity_equal, f, identity);
}

static void known_clear(struct known *k)
{
	free(k->identity);
	free(k->build_id);
	free(k->path);
	free(k->segments);
	*k = (struct known){ .used_ns = k->used_ns };
}

static void known_forget(struct files *f, uint32_t id, int64_t now)
{
	struct known *k = &f->known.v[id];
	for (uint32_t i = 0; i < f->bindings.len; i++) {
		struct binding *b = &f->bindings.v[i];
		if (b->state != BINDING_BOUND || b->file_id != id)
			continue;
		sampler_retract(f->sampler, &b->key);
		binding_drop(f, i);
	}
	map_remove(&f->by_identity, hash64(k->identity, strlen(k->identity)), id);
	f->live_count--;
	metric_add(&f->metrics.forgotten, 1);
	metric_set(&f->metrics.known, f->live_count);
	metric_set(&f->metrics.tables, metric_get(&f->metrics.tables) - k->has_table);
	metric_set(&f->metrics.rows, metric_get(&f->metrics.rows) - k->rows);
	known_clear(k);
	k->used_ns = now;
}

static void known_forget_longest_unused(struct files *f, int64_t now)
{
	uint32_t oldest = MAP_NONE;
	for (uint32_t i = FRAME_FILE_FIRST; i < f->known.len; i++) {
		const struct known *k = &f->known.v[i];
		if (k->live && (oldest == MAP_NONE || k->used_ns < f->known.v[oldest].used_ns))
			oldest = i;
	}
	if (oldest != MAP_NONE)
		known_forget(f, oldest, now);
}

/* An id that nothing names; MAP_NONE: all are in use or rest. */
static uint32_t known_new_id(struct files *f, int64_t now)
{
	if (f->live_count >= FILES_KNOWN_MAX)
		known_forget_longest_unused(f, now);
	bool some_rest = f->live_count + FRAME_FILE_FIRST < f->known.len;
	for (uint32_t i = FRAME_FILE_FIRST; some_rest && i < f->known.len; i++) {
		const struct known *k = &f->known.v[i];
		if (!k->live && now - k->used_ns >= FILES_ID_REST_NS)
			return i;
	}
	if (f->known.len > FRAME_FILE_MAX || !VEC_PUSH(&f->known, (struct known){ 0 }))
		return MAP_NONE;
	return (uint32_t)f->known.len - 1;
}

static uint32_t exec_segments(const struct objfile *obj, struct objfile_segment *out)
{
	uint32_t count, kept = 0;
	const struct objfile_segment *segments = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count && kept < FILES_SEGMENTS_MAX; i++) {
		if ((segments[i].flags & PF_X) && segments[i].file_size)
			out[kept++] = segments[i];
	}
	return kept;
}

/* Fill a new record; obj NULL: no ELF file. */
static bool known_fill(struct files *f, uint32_t id, const char *identity, const char *build_id,
	const char *path, const struct objfile *obj, int64_t now)
{
	struct known *k = &f->known.v[id];
	struct objfile_segment segments[FILES_SEGMENTS_MAX];
	*k = (struct known){ .used_ns = now };
	k->segment_count = obj ? exec_segments(obj, segments) : 0;
	k->identity = strdup(identity);
	k->build_id = strdup(build_id);
	k->path = strndup(path, PATH_BYTES_MAX);
	k->segments = calloc(k->segment_count + 1, sizeof(*k->segments));
	if (!k->identity || !k->build_id || !k->path || !k->segments ||
		!map_insert(&f->by_identity, hash64(identity, strlen(identity)), id)) {
		known_clear(k);
		return false;
	}
	memcpy(k->segments, segments, k->segment_count * sizeof(segments[0]));
	k->live = true;
	f->live_count += id >= FRAME_FILE_FIRST;
	metric_set(&f->metrics.known, f->live_count);
	return true;
}

/* ---- one file: open, know, table, publish; under `work` ---- */

static void request_free(struct request *r)
{
	if (!r)
		return;
	objfile_close(r->opened.obj);
	if (r->opened.fd >= 0)
		close(r->opened.fd);
	free(r);
}

static void request_cleanup(struct request **r)
{
	request_free(*r);
}

/* Build ids are what senders say; the first and last bytes and the size (the content id) keep a
 * file that borrowed the build id of another apart from it. */
static enum status identify(struct opened *o, struct err *e)
{
	char content[40];
	enum status s = objfile_content_id(o->obj, content, e);
	if (s != OK)
		return s;
	const char *id = objfile_build_id(o->obj);
	snprintf(o->build_id, sizeof(o->build_id), "%s", id[0] ? id : content);
	snprintf(o->identity, sizeof(o->identity), "%s-%s", id, content);
	return OK;
}

/* Take the descriptor over, and see what it is. What is no ELF file is known by its path. */
static enum status examine(struct files *f, int fd, struct opened *o, struct err *e)
{
	o->fd = fd;
	CLEANUP(fd_cleanup) int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return err_os(e, "%s", o->path);
	enum status s = objfile_open_fd(own, o->path, &o->obj, e);
	if (s == OK) {
		(void)STEAL_FD(own);
		s = identify(o, e);
	}
	if (s == OK || s == E_NOMEM || s == E_IO)
		return s;
	metric_add(&f->metrics.bad_elf, 1);
	objfile_close(STEAL_PTR(o->obj));
	o->build_id[0] = 0;
	struct hash128 h = hash128(o->path, strlen(o->path));
	snprintf(o->identity, sizeof(o->identity), "path-%016llx%016llx", (unsigned long long)h.hi,
		(unsigned long long)h.lo);
	return OK;
}

/* *out stays NULL where there is no information. */
static enum status table_build(
	struct files *f, const struct objfile *obj, struct unwind_table **out, struct err *e)
{
	int64_t begin = clock_thread_cpu_ns();
	enum status s = unwind_table_build(obj, out, e);
	metric_add(&f->metrics.build_ns, (uint64_t)(clock_thread_cpu_ns() - begin));
	if (s == OK)
		metric_add(&f->metrics.built, 1);
	if (s == E_NOTFOUND || s == E_UNSUPPORTED || s == E_INVALID || s == E_LIMIT) {
		metric_add(&f->metrics.no_info, 1);
		log_debug("no unwind table", "reason=\"%s\"", err_text(e, s));
		problems_add(f->config.problems, PROBLEM_TABLE, objfile_name(obj), err_text(e, s));
		return OK;
	}
	return s;
}

static enum status table_get(
	struct files *f, const struct opened *o, struct unwind_table **out, struct err *e)
{
	bool cacheable = f->cache && o->obj && objfile_build_id(o->obj)[0];
	/* Of another machine: an emulator has it mapped. */
	if (!o->obj || objfile_machine(o->obj) != EM_X86_64)
		return OK;
	if (cacheable && tablecache_load(f->cache, o->identity, out, e) == OK) {
		metric_add(&f->metrics.cached, 1);
		return OK;
	}
	enum status s = table_build(f, o->obj, out, e);
	if (s != OK || !*out || !cacheable || (*out)->blob_bytes < CACHE_TABLE_BYTES_MIN)
		return s;
	if (tablecache_store(f->cache, o->identity, *out, e) != OK)
		log_warn("unwind table not cached", "reason=\"%s\"", e->text);
	return OK;
}

/* The id of a content, new or known. */
static enum status know(
	struct files *f, const struct opened *o, uint32_t *out_id, bool *out_is_new, struct err *e)
{
	LOCKED(&f->lock);
	int64_t now = clock_monotonic_ns();
	uint32_t id = known_find(f, o->identity);
	*out_is_new = id == MAP_NONE;
	if (id == MAP_NONE) {
		id = known_new_id(f, now);
		if (id == MAP_NONE ||
			!known_fill(f, id, o->identity, o->build_id, o->path, o->obj, now))
			return err_set(e, E_LIMIT, "%s: no file id is free", o->path);
	}
	f->known.v[id].used_ns = now;
	*out_id = id;
	return OK;
}

static void set_table(struct files *f, uint32_t id, const struct unwind_table *t)
{
	LOCKED(&f->lock);
	struct known *k = &f->known.v[id];
	uint64_t rows = t ? t->row_count : 0;
	metric_set(&f->metrics.tables, metric_get(&f->metrics.tables) + (t != NULL) - k->has_table);
	metric_set(&f->metrics.rows, metric_get(&f->metrics.rows) + rows - k->rows);
	k->has_table = t != NULL;
	k->rows = rows;
}

static enum status publish(
	struct files *f, const struct request *r, uint32_t *out_id, struct err *e)
{
	const struct opened *o = &r->opened;
	CLEANUP(table_cleanup) struct unwind_table *t = NULL;
	enum status s = table_get(f, o, &t, e);
	if (s != OK)
		return s;
	uint32_t id = 0;
	bool is_new = false;
	s = know(f, o, &id, &is_new, e);
	if (s != OK)
		return s;
	if (is_new && o->obj && f->config.seen)
		f->config.seen(f->config.seen_ctx, o->build_id, o->path, o->fd);
	s = sampler_publish(f->sampler, &r->notice.key, id, t, e);
	if (s == E_LIMIT) { /* it is known then, without a table */
		metric_add(&f->metrics.over_budget, t != NULL);
		s = OK;
		set_table(f, id, NULL);
	} else if (s == OK) {
		set_table(f, id, t);
	}
	*out_id = id;
	return s;
}

static uint64_t evictions_now(struct files *f)
{
	struct sampler_stats stats = { 0 };
	sampler_read_stats(f->sampler, &stats);
	return stats.evicted_tables;
}

/* The file of this request, published before and not evicted since; 0: it is to be loaded. */
static uint32_t still_published(struct files *f, const struct request *r)
{
	LOCKED(&f->lock);
	const struct binding *b = &f->bindings.v[r->binding];
	return !r->is_replaced && b->evictions == r->evictions ? b->file_id : 0;
}

/* What it was bound to is published still: that it could not be read again takes nothing away. */
static bool is_kept(struct files *f, const struct request *r, const struct binding *b)
{
	struct unwind_rule rule;
	return b->file_id && !r->is_replaced &&
	       sampler_find_rule(f->sampler, &r->notice.key, 0, &rule);
}

static void count_first_pass(struct files *f)
{
	if (--f->first_pass_left == 0)
		pthread_cond_broadcast(&f->first_pass_done);
}

static void note_failure(struct files *f, const struct request *r, const char *why)
{
	char what[PATH_BYTES_MAX + 64];
	if (r->opened.path[0])
		snprintf(what, sizeof(what), "%s", r->opened.path);
	else
		snprintf(what, sizeof(what), "a file of process %d (inode %llu)", r->pid,
			(unsigned long long)r->notice.key.inode);
	problems_add(f->config.problems, PROBLEM_FILE, what, why);
}

/* The end of a request; frees it. */
static void finish(struct files *f, struct request *r, uint32_t id, enum status s, struct err *e)
{
	if (s != OK)
		note_failure(f, r, err_text(e, s));
	if (s != OK)
		log_debug("file not loaded", "pid=%d inode=%llu reason=\"%s\"", r->pid,
			(unsigned long long)r->notice.key.inode, err_text(e, s));
	{
		LOCKED(&f->lock);
		struct binding *b = &f->bindings.v[r->binding];
		int64_t now = clock_monotonic_ns();
		if (s != OK && is_kept(f, r, b)) {
			id = b->file_id;
			s = OK;
		}
		if (s == OK) {
			b->state = BINDING_BOUND;
			b->file_id = id;
			b->evictions = r->evictions;
			b->attempts = 0;
			b->retry_ns = now + RETRY_BOUND_NS;
		} else {
			if (b->file_id)
				sampler_retract(f->sampler, &r->notice.key);
			b->state = BINDING_FAILED;
			b->file_id = 0;
			b->retry_ns = now + (RETRY_FAILED_NS << MIN(b->attempts, RETRY_SHIFT_MAX));
			b->attempts++;
		}
		if (r->is_first_pass)
			count_first_pass(f);
	}
	request_free(r);
}

/* ---- the worker ---- */

/* Sleep until the CPU time spent is within the share again. */
static void keep_budget(struct files *f, int64_t *credit_ns, int64_t *since_ns, int64_t spent_ns)
{
	if (f->config.cpu_percent == 0)
		return;
	*credit_ns -= spent_ns;
	for (;;) {
		int64_t now = clock_monotonic_ns();
		*credit_ns += (now - *since_ns) * f->config.cpu_percent / 100;
		*credit_ns = MIN(*credit_ns, (int64_t)BUDGET_BURST_NS);
		*since_ns = now;
		if (*credit_ns >= 0 || atomic_load(&f->stop))
			return;
		struct timespec nap = { .tv_nsec = BUDGET_NAP_NS };
		nanosleep(&nap, NULL);
	}
}

/* Builds and publishes what the opener has opened. */
static void *build_all(void *ctx)
{
	struct files *f = ctx;
	int64_t credit_ns = BUDGET_BURST_NS;
	int64_t since_ns = clock_monotonic_ns();
	for (;;) {
		struct request *r = os_queue_pop(f->opened, INT64_MAX);
		if (!r)
			return NULL;
		if (atomic_load(&f->stop)) {
			request_free(r);
			continue;
		}
		int64_t begin = clock_thread_cpu_ns();
		struct err e = { 0 };
		uint32_t id = 0;
		pthread_mutex_lock(&f->work);
		enum status s = publish(f, r, &id, &e);
		pthread_mutex_unlock(&f->work);
		finish(f, r, id, s, &e);
		if (!f->is_first_pass)
			keep_budget(f, &credit_ns, &since_ns, clock_thread_cpu_ns() - begin);
	}
}

/* Open a file and pass it on; takes the request over. A process may end any moment, and a mount may
 * hang: so this waits for no table, and nobody but the builder waits for this. */
static void open_one(struct files *f, struct request *r)
{
	struct err e = { 0 };
	int fd = -1;
	r->evictions = evictions_now(f);
	uint32_t id = still_published(f, r);
	if (id) {
		finish(f, r, id, OK, &e);
		return;
	}
	enum status s = fileopen(r->pid, &r->notice, &fd, r->opened.path, &e);
	if (s == OK)
		s = examine(f, fd, &r->opened, &e);
	if (s != OK) {
		metric_add(&f->metrics.open_failed, 1);
		finish(f, r, 0, s, &e);
		return;
	}
	if (!os_queue_push(f->opened, r, INT64_MAX))
		request_free(r); /* the end */
}

static void open_first_pass(struct files *f);

static void *open_all(void *ctx)
{
	struct files *f = ctx;
	struct request *r;
	while ((r = os_queue_pop(f->requests, INT64_MAX))) {
		if (atomic_load(&f->stop)) {
			request_free(r);
		} else if (r->is_start) {
			request_free(r);
			open_first_pass(f);
		} else {
			open_one(f, r);
		}
	}
	return NULL;
}

static struct request *request_new(const struct file_notice *n, int pid)
{
	struct request *r = calloc(1, sizeof(*r));
	if (r) {
		r->notice = *n;
		r->pid = pid;
		r->opened.fd = -1;
	}
	return r;
}

/* Its binding becomes WAITING. False: it waits already, it is not its time yet, or there is no room
 * (counted). */
static bool begin_request(struct files *f, struct request *r)
{
	LOCKED(&f->lock);
	int64_t now = clock_monotonic_ns();
	const struct file_key *key = &r->notice.key;
	uint32_t i = binding_find(f, key);
	if (i == MAP_NONE) {
		i = binding_add(f, key, now);
		if (i == MAP_NONE) {
			metric_add(&f->metrics.notices_dropped, 1);
			return false;
		}
	}
	struct binding *b = &f->bindings.v[i];
	r->binding = i;
	r->is_replaced = key->generation && key->generation != b->key.generation;
	if (b->state == BINDING_WAITING || (now < b->retry_ns && !r->is_replaced))
		return false;
	b->key.generation = key->generation;
	b->state = BINDING_WAITING;
	f->first_pass_left += r->is_first_pass;
	return true;
}

static void cancel_request(struct files *f, uint32_t binding)
{
	LOCKED(&f->lock);
	binding_drop(f, binding);
	metric_add(&f->metrics.notices_dropped, 1);
}

void files_notice(struct files *f, const struct file_notice *n, int pid)
{
	if (n->key.inode == 0)
		return;
	CLEANUP(request_cleanup) struct request *r = request_new(n, pid);
	if (!r) {
		metric_add(&f->metrics.notices_dropped, 1);
		return;
	}
	if (!begin_request(f, r))
		return;
	uint32_t binding = r->binding;
	if (os_queue_try_push(f->requests, r))
		(void)STEAL_PTR(r);
	else
		cancel_request(f, binding);
}

/* ---- the first pass ---- */

static enum status load_vdso(struct files *f, struct err *e)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return OK; /* a kernel without one */
	Elf64_Ehdr header;
	memcpy(&header, image, sizeof(header));
	uint64_t len = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	if (len > VDSO_BYTES_MAX)
		return err_set(e, E_LIMIT, "vDSO: %llu bytes", (unsigned long long)len);
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	enum status s = objfile_open_bytes(image, len, "[vdso]", &obj, e);
	CLEANUP(table_cleanup) struct unwind_table *t = NULL;
	if (s == OK)
		s = table_build(f, obj, &t, e);
	struct file_key none = { 0 };
	if (s == OK)
		s = sampler_publish(f->sampler, &none, FRAME_FILE_VDSO, t, e);
	if (s != OK)
		return s;
	const char *build_id = objfile_build_id(obj);
	{
		LOCKED(&f->lock);
		if (!f->known.v[FRAME_FILE_VDSO].live &&
			!known_fill(f, FRAME_FILE_VDSO, "[vdso]", build_id, "[vdso]", obj, 0))
			return err_set(e, E_NOMEM, "vDSO");
	}
	set_table(f, FRAME_FILE_VDSO, t);
	if (!f->config.seen || !build_id[0])
		return OK;
	CLEANUP(fd_cleanup) int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && os_write_full(fd, image, len, "vdso", NULL) == OK)
		f->config.seen(f->config.seen_ctx, build_id, "[vdso]", fd);
	return OK;
}

/* By the opener. */
static void open_first_pass(struct files *f)
{
	struct err e = { 0 };
	pthread_mutex_lock(&f->work);
	enum status s = load_vdso(f, &e);
	pthread_mutex_unlock(&f->work);
	if (s != OK) /* its frames go by the frame pointer */
		log_warn("no unwind table of the vDSO", "reason=\"%s\"", err_text(&e, s));
	CLEANUP(free_cleanup) struct preload_file *found = NULL;
	size_t count = 0;
	s = preload_collect(&found, &count, &e);
	if (s != OK)
		log_warn("no list of processes", "reason=\"%s\"", err_text(&e, s));
	for (size_t i = 0; i < count && !atomic_load(&f->stop); i++) {
		CLEANUP(request_cleanup)
		struct request *r = request_new(&found[i].notice, found[i].pid);
		if (!r)
			break;
		r->is_first_pass = true;
		if (begin_request(f, r))
			open_one(f, STEAL_PTR(r));
	}
	LOCKED(&f->lock);
	f->first_pass_status = s;
	count_first_pass(f);
}

enum status files_preload(struct files *f, int64_t timeout_ns, struct err *e)
{
	struct file_notice none = { 0 };
	struct request *start = request_new(&none, 0);
	if (!start)
		return err_set(e, E_NOMEM, "files");
	start->is_start = true;
	f->is_first_pass = true;
	LOCKED(&f->lock);
	f->first_pass_left++;
	if (!os_queue_try_push(f->requests, start)) {
		f->first_pass_left--;
		request_free(start);
		return err_set(e, E_LIMIT, "files: too many notices wait");
	}
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ns / NS_PER_SEC;
	int waited = 0;
	while (f->first_pass_left && waited == 0)
		waited = pthread_cond_timedwait(&f->first_pass_done, &f->lock, &until);
	f->is_first_pass = false;
	if (waited != 0)
		return err_set(
			e, E_TIMEOUT, "%u executables are still to be read", f->first_pass_left);
	return f->first_pass_status == OK
		       ? OK
		       : err_set(e, f->first_pass_status, "the list of processes");
}

/* ---- life, questions ---- */

static void files_cleanup(struct files **f)
{
	files_free(*f);
}

enum status files_new(
	const struct files_config *c, struct sampler *sampler, struct files **out, struct err *e)
{
	CLEANUP(files_cleanup) struct files *f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(e, E_NOMEM, "files");
	f->config = *c;
	f->sampler = sampler;
	pthread_mutex_init(&f->work, NULL);
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&f->first_pass_done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (uint32_t i = 0; i < FRAME_FILE_FIRST; i++) {
		if (!VEC_PUSH(&f->known, (struct known){ 0 }))
			return err_set(e, E_NOMEM, "files");
	}
	if (c->cache_dir && c->cache_dir[0] &&
		tablecache_open(c->cache_dir, TABLECACHE_BYTES_MAX, &f->cache, e) != OK)
		log_warn("unwind tables are not cached", "reason=\"%s\"", e ? e->text : "");
	enum status s = os_queue_new(FILES_QUEUE_MAX, &f->requests);
	if (s == OK)
		s = os_queue_new(FILES_OPEN_MAX, &f->opened);
	if (s == OK)
		s = os_thread_start(&f->builder, "files", build_all, f, e);
	f->builder_runs = s == OK;
	if (s == OK)
		s = os_thread_start(&f->opener, "files-open", open_all, f, e);
	f->opener_runs = s == OK;
	if (s != OK)
		return err_prefix(e, s, "files");
	*out = STEAL_PTR(f);
	return OK;
}

static void drain(struct os_queue *q)
{
	for (struct request *r; q && (r = os_queue_pop(q, 0));)
		request_free(r);
	os_queue_free(q);
}

void files_free(struct files *f)
{
	if (!f)
		return;
	atomic_store(&f->stop, true);
	if (f->requests)
		os_queue_close(f->requests);
	if (f->opened)
		os_queue_close(f->opened);
	if (f->opener_runs)
		pthread_join(f->opener, NULL);
	if (f->builder_runs)
		pthread_join(f->builder, NULL);
	drain(f->requests);
	drain(f->opened);
	tablecache_close(f->cache);
	for (size_t i = 0; i < f->known.len; i++)
		known_clear(&f->known.v[i]);
	VEC_FREE(&f->known);
	VEC_FREE(&f->bindings);
	map_deinit(&f->by_key);
	map_deinit(&f->by_identity);
	pthread_cond_destroy(&f->first_pass_done);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->work);
	free(f);
}

bool files_get(struct files *f, uint32_t file_id, struct file_info *out)
{
	LOCKED(&f->lock);
	if (file_id >= f->known.len || !f->known.v[file_id].live)
		return false;
	struct known *k = &f->known.v[file_id];
	k->used_ns = clock_monotonic_ns();
	*out = (struct file_info){
		.file_id = file_id,
		.has_table = k->has_table,
		.segment_count = k->segment_count,
	};
	snprintf(out->build_id, sizeof(out->build_id), "%s", k->build_id);
	snprintf(out->path, sizeof(out->path), "%s", k->path);
	memcpy(out->segments, k->segments, k->segment_count * sizeof(k->segments[0]));
	return true;
}

uint32_t files_find(struct files *f, const struct file_key *key)
{
	LOCKED(&f->lock);
	uint32_t i = binding_find(f, key);
	return i != MAP_NONE && f->bindings.v[i].state == BINDING_BOUND ? f->bindings.v[i].file_id
									: 0;
}

enum files_state files_look_up(struct files *f, const struct file_key *key, uint32_t *out_id)
{
	LOCKED(&f->lock);
	uint32_t i = binding_find(f, key);
	if (i == MAP_NONE)
		return FILES_UNKNOWN;
	const struct binding *b = &f->bindings.v[i];
	*out_id = b->file_id;
	if (b->state == BINDING_FAILED)
		return FILES_FAILED;
	/* While it waits again it is known still. */
	return b->file_id ? FILES_KNOWN : FILES_UNKNOWN;
}

bool file_info_vaddr(const struct file_info *i, uint64_t file_offset, uint64_t *out_vaddr)
{
	for (uint32_t n = 0; n < i->segment_count; n++) {
		const struct objfile_segment *g = &i->segments[n];
		if (file_offset < g->offset || file_offset - g->offset >= g->file_size)
			continue;
		*out_vaddr = file_offset - g->offset + g->vaddr;
		return true;
	}
	return false;
}

const struct files_metrics *files_metrics(const struct files *f)
{
	return &f->metrics;
}

void files_write_metrics(const struct files *f, struct buf *out)
{
	metrics_write(
		out, metric_defs, (const metric_value *)&f->metrics, ARRAY_COUNT(metric_defs));
}
