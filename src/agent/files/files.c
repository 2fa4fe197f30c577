/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notice names a file by the kernel's key. What is remembered of keys and files is in
 * known_files.h; this is the way of a notice through two threads:
 *
 *	notice -> WAITING -> opener: open -> builder: know, table, publish -> BOUND or FAILED
 *
 * The opener is a thread of its own, because the process of a notice may end any moment while the
 * builder is at a large table, and because opening a file may hang with its file system. While it
 * opens the files of all processes there are (the first pass), notices come before these.
 *
 * A notice of a bound file says that its program was executed again, or that the sampler has
 * evicted it. As long as the sampler knows it nothing is to be done.
 *
 * `lock` guards what is remembered, and is held for moments. `work` is held while a table is built;
 * taken before `lock`.
 */
#include "agent/files/files.h"

#include "agent/files/announce.h"
#include "agent/files/buildqueue.h"
#include "agent/files/elf_load.h"
#include "agent/files/inode_search.h"
#include "agent/files/known_files.h"
#include "agent/files/mapped_file.h"
#include "agent/files/preload.h"
#include "base/log.h"
#include "os/os.h"
#include "runtimes/runtimes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Whether a bound file was evicted is asked at most so often. */
#define RETRY_BOUND_NS (1 * NS_PER_SEC)
/* Doubled each time that it could not be opened again. */
#define RETRY_BOUND_SHIFT_MAX 6u
/* A file that could not be opened is tried again after so long, doubled each time. */
#define RETRY_FAILED_NS (100 * NS_PER_MS)
#define RETRY_SHIFT_MAX 4u
/* While a large table is built, files with so many bytes to build from are built in between. */
#define SMALL_BYTES_MAX ((uint64_t)1 << 20)
/* Where too many wait to be built an opened file waits so long. */
#define PUSH_WAIT_NS (1 * NS_PER_SEC)
/* In the first pass the opener is ahead of the builder by no more, so that a notice waits for few
 * tables. */
#define FIRST_PASS_AHEAD 4
#define FIRST_PASS_NAP_NS (5 * NS_PER_MS)
/* How often it is looked whether a file system that hung answers again. */
#define DROP_LATE_NS (5 * NS_PER_SEC)

/* A notice on its way: opened by one thread, its table built and published by another. */
struct request {
	struct file_notice notice;
	uint32_t binding;
	int pid;
	bool is_replaced;   /* the inode is another file than the one that is bound */
	bool is_unsure;     /* it may be replaced: the bound one's generation is not known */
	bool is_published;  /* by this request */
	bool is_first_pass; /* of files_preload() */
	bool is_start;      /* the beginning of it, and no file */
	bool is_offer;      /* files_offer(), and no file */
	struct opened opened;
};

struct files {
	struct files_config config;
	struct sampler *sampler;
	struct os_queue *requests; /* to the opener */
	struct buildqueue *opened; /* from it to the builder */
	pthread_t opener;
	pthread_t builder;
	bool opener_runs;
	bool builder_runs;
	bool is_offer_due;                 /* the opener's own */
	struct inode_search_beside recent; /* folders of files that it opened lately */
	atomic_bool stop;
	pthread_mutex_t work;
	struct elf_load load; /* under `work` */
	struct announce offer;
	int64_t between_ns; /* the builder's own: CPU time of what was built in between */
	pthread_cond_t first_pass_done; /* with `lock` */
	uint32_t first_pass_left;       /* requests, and one for what is not listed yet */
	enum status first_pass_status;
	pthread_mutex_t lock;
	struct known_files book; /* under `lock` */
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

/* ---- one file: open, know, table, publish; under `work` ---- */

static void request_free(struct request *r)
{
	if (!r)
		return;
	opened_close(&r->opened);
	free(r);
}

static void request_cleanup(struct request **r)
{
	request_free(*r);
}

/* The id of what was opened, new or known. */
static enum status know(
	struct files *f, const struct opened *o, uint32_t *out_id, bool *out_is_new, struct err *e)
{
	LOCKED(&f->lock);
	const struct known_file_content content = { o->identity, o->build_id, o->path, o->obj };
	return known_files_know(&f->book, &content, clock_monotonic_ns(), out_id, out_is_new, e);
}

static void set_table(struct files *f, uint32_t id, const struct unwind_table *t)
{
	LOCKED(&f->lock);
	known_files_set_table(&f->book, id, t != NULL, t ? t->row_count : 0);
}

/* RUNTIME_NONE: it holds none that can be walked. */
static void set_runtime(struct files *f, uint32_t id, uint16_t kind)
{
	LOCKED(&f->lock);
	struct known_file *k = known_files_get(&f->book, id);
	if (!k)
		return;
	k->runtime = kind;
	k->has_no_runtime = kind == RUNTIME_NONE;
}

static bool may_have_runtime(struct files *f, uint32_t id)
{
	LOCKED(&f->lock);
	const struct known_file *k = known_files_get(&f->book, id);
	return f->config.runtimes && (!k || !k->has_no_runtime);
}

/* Of a file that is published: does it hold a language runtime? */
static void publish_runtime(struct files *f, const struct request *r, uint32_t id)
{
	struct err e;
	struct runtime_record record;
	if (!r->opened.obj || !may_have_runtime(f, id))
		return;
	enum status s = runtimes_find(r->opened.obj, &record, &e);
	if (s == E_NOTFOUND || s == E_UNSUPPORTED)
		set_runtime(f, id, RUNTIME_NONE);
	if (s == OK && !(f->config.runtimes >> record.kind & 1))
		return;
	if (s == OK)
		s = sampler_set_runtime(f->sampler, &r->notice.key, &record, &e);
	if (s == E_NOTFOUND)
		return;
	if (s == OK)
		set_runtime(f, id, record.kind);
	metric_add(s == OK ? &f->metrics.runtimes : &f->metrics.runtimes_refused, 1);
	if (s != OK)
		problems_add(f->config.problems, PROBLEM_RUNTIME, r->opened.path, err_text(&e, s));
}

static enum status publish(struct files *f, struct request *r, uint32_t *out_id, struct err *e)
{
	struct opened *o = &r->opened;
	CLEANUP(table_cleanup) struct unwind_table *t = NULL;
	enum status s = elf_load_table(&f->load, o, &t, e);
	if (s != OK)
		return s;
	uint32_t id = 0;
	bool is_new = false;
	s = know(f, o, &id, &is_new, e);
	if (s != OK)
		return s;
	if (f->config.known && o->obj)
		f->config.known(f->config.known_ctx, &r->notice.key, o->obj, o->build_id, o->path);
	is_new &= o->obj != NULL;
	if (is_new && !o->file.is_pinned)
		announce_show(&f->offer, o);
	s = sampler_publish(f->sampler, &r->notice.key, id, t, e);
	r->is_published = s == OK || s == E_LIMIT;
	if (r->is_published)
		publish_runtime(f, r, id);
	if (s == E_LIMIT) { /* it is known then, without a table */
		metric_add(&f->metrics.over_budget, t != NULL);
		s = OK;
		set_table(f, id, NULL);
	} else if (s == OK) {
		set_table(f, id, t);
	}
	if (is_new && o->file.is_pinned) /* it is copied, and others wait */
		announce_show(&f->offer, o);
	*out_id = id;
	return s;
}

/* The file that the key was bound to is still published: a failure to read it again does not remove
 * it. */
static bool is_kept(struct files *f, const struct request *r, const struct binding *b)
{
	return b->file_id && !r->is_replaced && sampler_knows(f->sampler, &r->notice.key);
}

/* The file of this request, published before and not evicted since; 0: it is to be loaded. */
static uint32_t still_published(struct files *f, struct request *r)
{
	LOCKED(&f->lock);
	const struct binding *b = &f->book.bindings.v[r->binding];
	return !r->is_unsure && is_kept(f, r, b) ? b->file_id : 0;
}

static void count_first_pass(struct files *f)
{
	if (--f->first_pass_left == 0)
		pthread_cond_broadcast(&f->first_pass_done);
}

static void note_failure(struct files *f, const struct request *r, const char *why)
{
	char what[OPEN_FILE_PATH_MAX + 64];
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
		log_debug("file not loaded", "pid=%d inode=%llu reason=%s", r->pid,
			(unsigned long long)r->notice.key.inode, LOG_QUOTED(err_text(e, s)));
	{
		LOCKED(&f->lock);
		struct binding *b = &f->book.bindings.v[r->binding];
		int64_t now = clock_monotonic_ns();
		bool kept = s != OK && is_kept(f, r, b);
		if (kept) {
			id = b->file_id;
			s = OK;
		}
		b->finished_ns = now;
		if (r->is_published)
			b->generation = r->notice.key.generation;
		if (s == OK) {
			b->state = BINDING_BOUND;
			b->file_id = id;
			b->attempts = kept ? b->attempts + 1 : 0;
			b->retry_ns =
				now + (RETRY_BOUND_NS << MIN(b->attempts, RETRY_BOUND_SHIFT_MAX));
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

/* Builds and publishes one, and has its owner pay; under `work`. */
static void build_one(struct files *f, struct request *r, const struct build_ticket *ticket)
{
	int64_t begin = clock_thread_cpu_ns();
	struct err e = { 0 };
	uint32_t id = 0;
	f->between_ns = 0;
	enum status s = publish(f, r, &id, &e);
	finish(f, r, id, s, &e);
	int64_t spent = clock_thread_cpu_ns() - begin;
	buildqueue_charge(f->opened, ticket->owner, spent - f->between_ns);
	metric_add(&f->metrics.work_ns, (uint64_t)(spent - f->between_ns));
	f->between_ns = spent;
}

/* Every few milliseconds of building a table: nobody's small file waits for the large one of
 * another. */
static bool build_between(void *ctx)
{
	struct files *f = ctx;
	int64_t between = f->between_ns;
	struct request *r;
	struct build_ticket ticket;
	bool is_between = f->load.is_between;
	f->load.is_between = true;
	while (!is_between && !atomic_load(&f->stop) &&
		(r = buildqueue_try_pop_small(f->opened, SMALL_BYTES_MAX, &ticket))) {
		build_one(f, r, &ticket);
		between += f->between_ns;
	}
	f->load.is_between = is_between;
	f->between_ns = between;
	return !atomic_load(&f->stop);
}

/* Builds and publishes what the opener has opened. */
static void *build_all(void *ctx)
{
	struct files *f = ctx;
	struct build_ticket ticket;
	for (;;) {
		struct request *r = buildqueue_pop(f->opened, &ticket);
		if (!r)
			return NULL;
		if (atomic_load(&f->stop)) {
			request_free(r);
			continue;
		}
		pthread_mutex_lock(&f->work);
		build_one(f, r, &ticket);
		pthread_mutex_unlock(&f->work);
		if (buildqueue_len(f->opened) == 0)
			sampler_rest(f->sampler);
	}
}

/* It comes again with the next notice. What was bound is published still, and stays bound, unless
 * it is another file by now. */
static void cancel_request(struct files *f, uint32_t binding, bool is_replaced)
{
	LOCKED(&f->lock);
	struct binding *b = &f->book.bindings.v[binding];
	if (b->file_id && !is_replaced) {
		b->state = BINDING_BOUND;
		b->key.generation = b->generation;
	} else {
		if (b->file_id)
			sampler_retract(f->sampler, &b->key);
		known_files_unbind(&f->book, binding);
	}
	metric_add(&f->metrics.notices_dropped, 1);
}

static uint32_t wanted_so_far(struct files *f, uint32_t binding)
{
	LOCKED(&f->lock);
	return f->book.bindings.v[binding].wanted;
}

static void pass_on(struct files *f, struct request *r)
{
	const struct build_ticket ticket = { r->opened.owner, elf_load_bytes(&r->opened),
		r->binding, wanted_so_far(f, r->binding) };
	if (buildqueue_push(f->opened, r, &ticket, clock_monotonic_ns() + PUSH_WAIT_NS))
		return;
	cancel_request(f, r->binding, r->is_replaced);
	if (r->is_first_pass) {
		LOCKED(&f->lock);
		count_first_pass(f);
	}
	request_free(r);
}

/* A program that has ended before it could be opened often lies beside others that are run now, as
 * those of a build or of a test do. */
static enum status open_file_of(struct files *f, struct request *r, struct err *e)
{
	struct opened *o = &r->opened;
	enum status s = mapped_file_open(r->pid, &r->notice, &o->file, o->path, e);
	if (mapped_file_is_gone(s) &&
		inode_search_beside(&f->recent, &r->notice.key, &o->file, o->path))
		s = OK;
	if (s == OK)
		inode_search_beside_note(&f->recent, str_of(o->path));
	return s;
}

/* Open a file and pass it on; takes the request over. A process may end any moment, and a mount may
 * hang: so this waits for no table, and nobody but the builder waits for this. */
static void open_one(struct files *f, struct request *r)
{
	struct err e = { 0 };
	uint32_t id = still_published(f, r);
	if (id) {
		finish(f, r, id, OK, &e);
		return;
	}
	enum status s = open_file_of(f, r, &e);
	if (s == OK)
		s = elf_load_examine(&f->load, &r->opened, &e);
	else if (s == E_INVALID && r->opened.path[0]) { /* known, without a table */
		elf_load_examine_other(&f->load, &r->opened);
		s = OK;
	}
	if (s != OK) {
		metric_add(&f->metrics.open_failed, 1);
		finish(f, r, 0, s, &e);
		return;
	}
	pass_on(f, r);
}

/* Notices that came, and one that comes within `wait_ns`. */
static void open_notices(struct files *f, int64_t wait_ns)
{
	int64_t deadline = wait_ns ? clock_monotonic_ns() + wait_ns : 0;
	struct request *r;
	while ((r = os_queue_pop(f->requests, deadline))) {
		deadline = 0;
		f->is_offer_due |= r->is_offer;
		if (atomic_load(&f->stop) || r->is_offer)
			request_free(r);
		else
			open_one(f, r);
	}
}

/* Notices go first. */
static bool goes_on(void *ctx)
{
	struct files *f = ctx;
	open_notices(f, 0);
	return !atomic_load(&f->stop);
}

static void open_first_pass(struct files *f);
static void offer_all(struct files *f);

static void *open_all(void *ctx)
{
	struct files *f = ctx;
	while (!atomic_load(&f->stop)) {
		struct request *r = os_queue_pop(f->requests, clock_monotonic_ns() + DROP_LATE_NS);
		broker_drop_late();
		if (!r)
			continue;
		f->is_offer_due |= r->is_offer;
		if (atomic_load(&f->stop) || r->is_offer) {
			request_free(r);
		} else if (r->is_start) {
			request_free(r);
			open_first_pass(f);
		} else {
			open_one(f, r);
		}
		while (f->is_offer_due && !atomic_load(&f->stop))
			offer_all(f);
	}
	return NULL;
}

static struct request *request_new(const struct file_notice *n, int pid)
{
	struct request *r = calloc(1, sizeof(*r));
	if (r) {
		r->notice = *n;
		r->opened.key = n->key;
		r->pid = pid;
		r->opened.file.fd = -1;
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
	uint32_t i = known_files_find(&f->book, key);
	if (i == MAP_NONE) {
		i = known_files_bind(&f->book, key, now);
		if (i == MAP_NONE) {
			metric_add(&f->metrics.notices_dropped, 1);
			return false;
		}
	}
	struct binding *b = &f->book.bindings.v[i];
	r->binding = i;
	bool is_bound = key->generation && b->file_id;
	r->is_replaced = is_bound && b->generation && key->generation != b->generation;
	r->is_unsure = is_bound && !b->generation;
	/* A mapped file may be written to all the time: it is not read again each time. */
	bool is_news = key->generation && key->generation != b->key.generation;
	int64_t due_ns = is_news ? b->finished_ns + RETRY_FAILED_NS : b->retry_ns;
	if (b->state == BINDING_WAITING) {
		b->wanted++;
		buildqueue_want(f->opened, i);
		return false;
	}
	if (now < due_ns)
		return false;
	b->wanted = !r->is_first_pass;
	if (key->generation)
		b->key.generation = key->generation;
	b->state = BINDING_WAITING;
	f->first_pass_left += r->is_first_pass;
	return true;
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
	bool is_replaced = r->is_replaced;
	if (os_queue_try_push(f->requests, r))
		(void)STEAL_PTR(r);
	else
		cancel_request(f, binding, is_replaced);
}

/* ---- the first pass ---- */

static enum status load_vdso(struct files *f, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	struct str image;
	enum status s = open_file_vdso(&obj, &image, e);
	if (s == OK && !obj)
		return OK;
	CLEANUP(table_cleanup) struct unwind_table *t = NULL;
	if (s == OK)
		s = elf_load_build(&f->load, obj, &t, e);
	struct file_key none = { 0 };
	if (s == OK)
		s = sampler_publish(f->sampler, &none, FRAME_FILE_VDSO, t, e);
	if (s != OK)
		return s;
	const char *build_id = objfile_build_id(obj);
	{
		LOCKED(&f->lock);
		const struct known_file_content vdso = { "[vdso]", build_id, "[vdso]", obj };
		if (!known_files_know_vdso(&f->book, &vdso))
			return err_set(e, E_NOMEM, "vDSO");
	}
	set_table(f, FRAME_FILE_VDSO, t);
	announce_show_vdso(&f->offer, obj, image);
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
		log_warn("no unwind table of the vDSO", "reason=%s", LOG_QUOTED(err_text(&e, s)));
	CLEANUP(free_cleanup) struct preload_file *found = NULL;
	size_t count = 0;
	s = preload_collect(f->config.only_pid, goes_on, f, &found, &count, &e);
	if (s != OK)
		log_warn("no list of processes", "reason=%s", LOG_QUOTED(err_text(&e, s)));
	for (size_t i = 0; i < count && !atomic_load(&f->stop); i++) {
		CLEANUP(request_cleanup)
		struct request *r = request_new(&found[i].notice, found[i].pid);
		if (!r)
			break;
		r->is_first_pass = true;
		open_notices(f, 0);
		while (buildqueue_len(f->opened) >= FIRST_PASS_AHEAD && !atomic_load(&f->stop))
			open_notices(f, FIRST_PASS_NAP_NS);
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
	buildqueue_keep_shares(f->opened, false);
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
	buildqueue_keep_shares(f->opened, true);
	if (waited != 0)
		return err_set(
			e, E_TIMEOUT, "%u executables are still to be read", f->first_pass_left);
	return f->first_pass_status == OK
		       ? OK
		       : err_set(e, f->first_pass_status, "the list of processes");
}

/* ---- once more for another server ---- */

/* By the opener. No table is touched: what is bound stays bound. */
static void offer_all(struct files *f)
{
	f->is_offer_due = false;
	announce_show_all(&f->offer, &f->load, goes_on, f);
}

bool files_offer(struct files *f)
{
	struct file_notice none = { 0 };
	CLEANUP(request_cleanup) struct request *r = request_new(&none, 0);
	if (!r)
		return false;
	r->is_offer = true;
	if (!os_queue_try_push(f->requests, r))
		return false;
	(void)STEAL_PTR(r);
	return true;
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
	if (known_files_init(&f->book, sampler, &f->metrics) != OK)
		return err_set(e, E_NOMEM, "files");
	f->load = (struct elf_load){
		.cache_cpu_ns = ELF_LOAD_CACHE_CPU_NS,
		.metrics = &f->metrics,
		.problems = c->problems,
	};
	f->offer = (struct announce){
		.seen = c->seen,
		.seen_ctx = c->seen_ctx,
		.cache_dir = c->cache_dir,
		.no_copies = c->no_copies,
		.only_pid = c->only_pid,
		.metrics = &f->metrics,
	};
	f->load.limits.memory_bytes_max = c->build_bytes_max;
	f->load.limits.table_bytes_max = c->table_bytes_max;
	f->load.limits.pause = build_between;
	f->load.limits.pause_ctx = f;
	if (c->cache_dir && c->cache_dir[0] &&
		tablecache_open(c->cache_dir, TABLECACHE_BYTES_MAX, &f->load.cache, e) != OK)
		log_warn("unwind tables are not cached", "reason=%s", LOG_QUOTED(e ? e->text : ""));
	enum status s = os_queue_new(FILES_QUEUE_MAX, &f->requests);
	if (s == OK)
		s = buildqueue_new(c->cpu_percent, &f->opened);
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

static void drain(struct files *f)
{
	struct build_ticket ticket;
	struct request *r;
	while (f->requests && (r = os_queue_pop(f->requests, 0)))
		request_free(r);
	while (f->opened && (r = buildqueue_pop(f->opened, &ticket)))
		request_free(r);
	os_queue_free(f->requests);
	buildqueue_free(f->opened);
}

void files_free(struct files *f)
{
	if (!f)
		return;
	atomic_store(&f->stop, true);
	if (f->requests)
		os_queue_close(f->requests);
	if (f->opened)
		buildqueue_close(f->opened);
	if (f->opener_runs)
		pthread_join(f->opener, NULL);
	if (f->builder_runs)
		pthread_join(f->builder, NULL);
	drain(f);
	tablecache_close(f->load.cache);
	known_files_deinit(&f->book);
	pthread_cond_destroy(&f->first_pass_done);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->work);
	free(f);
}

bool files_get(struct files *f, uint32_t file_id, struct file_info *out)
{
	LOCKED(&f->lock);
	struct known_file *k = known_files_get(&f->book, file_id);
	if (!k)
		return false;
	k->used_ns = clock_monotonic_ns();
	*out = (struct file_info){
		.file_id = file_id,
		.runtime = k->runtime,
		.has_table = k->has_table,
		.segment_count = k->segment_count,
	};
	snprintf(out->build_id, sizeof(out->build_id), "%s", k->build_id);
	snprintf(out->path, sizeof(out->path), "%s", k->path);
	memcpy(out->segments, k->segments, k->segment_count * sizeof(k->segments[0]));
	return true;
}

static bool is_same_file(const struct binding *b, const struct file_key *key)
{
	return !key->generation || !b->generation || key->generation == b->generation;
}

uint32_t files_find(struct files *f, const struct file_key *key)
{
	LOCKED(&f->lock);
	uint32_t i = known_files_find(&f->book, key);
	const struct binding *b = i == MAP_NONE ? NULL : &f->book.bindings.v[i];
	/* While it waits again it is known still. */
	return b && b->state != BINDING_FAILED && is_same_file(b, key) ? b->file_id : 0;
}

enum files_state files_look_up(struct files *f, const struct file_key *key, uint32_t *out_id)
{
	LOCKED(&f->lock);
	uint32_t i = known_files_find(&f->book, key);
	if (i == MAP_NONE)
		return FILES_UNKNOWN;
	const struct binding *b = &f->book.bindings.v[i];
	*out_id = b->file_id;
	if (b->state == BINDING_FAILED)
		return FILES_FAILED;
	return b->file_id && is_same_file(b, key) ? FILES_KNOWN : FILES_UNKNOWN;
}

bool files_key(struct files *f, uint32_t file_id, struct file_key *out)
{
	LOCKED(&f->lock);
	for (uint32_t i = 0; i < f->book.bindings.len; i++) {
		const struct binding *b = &f->book.bindings.v[i];
		if (b->state == BINDING_FAILED || b->file_id != file_id)
			continue;
		*out = b->key;
		return true;
	}
	return false;
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

int64_t files_work_ns(const struct files *f)
{
	clockid_t clock;
	struct timespec t;
	if (pthread_getcpuclockid(f->builder, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return (int64_t)metric_get(&f->metrics.work_ns);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

void files_write_metrics(const struct files *f, struct buf *out)
{
	metrics_write(
		out, metric_defs, (const metric_value *)&f->metrics, ARRAY_COUNT(metric_defs));
}
