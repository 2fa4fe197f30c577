/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each thread takes a file from the book, asks, sends, and says what became of it. One more is made
 * when files wait and those there are have been busy for a while: a slow server is what makes
 * several worth it. The last one stays as long as anything is to be tried again.
 *
 * A server that does not even answer the first request is away, for all files: nothing is asked
 * until `not_before_ns`, longer each time. One that does not know the request (an OTLP collector)
 * is left alone for long.
 *
 * A server that was restarted may have lost what it had. It is not asked for all of it: one file
 * that it had is asked for (the probe), and only if it wants that the others are.
 */
#include "agent/uploader/uploader.h"

#include "base/lock.h"
#include "base/log.h"
#include "os/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* One more thread at most so often. */
#define THREAD_INTERVAL_NS (5 * NS_PER_SEC)
#define NICE 19
/* A pause in the middle of a file, for the sake of others, is cut to this. */
#define PAUSE_NS_MAX (2 * NS_PER_SEC)
/* One between files to this. */
#define REST_NS_MAX (60 * NS_PER_SEC)
/* A slow file system is read for this fraction of the time only: 1/20. */
#define SLOW_PARTS 20
/* How often, at most, a server is asked whether it is a new one. */
#define PROBE_INTERVAL_NS (5 * NS_PER_SEC)

enum slot_state { SLOT_FREE, SLOT_RUNS, SLOT_ENDED };

struct slot {
	pthread_t thread;
	enum slot_state state;
	struct uploader *u;
};

struct uploader {
	struct uploader_config c;
	int wake[2]; /* readable: the end */
	struct lock lock;
	pthread_cond_t news; /* something waits, or the end */
	struct upload_queue book;
	struct slot slots[UPLOADER_THREADS_MAX];
	uint32_t threads, idle; /* that work, or wait for work */
	uint32_t alive;         /* these, and those that are about to end */
	int64_t thread_at_ns;   /* no other thread before */
	int64_t not_before_ns, backoff_ns;
	bool is_probe_due;
	int64_t probe_at_ns; /* not before */
	bool was_connected;
	bool has_answered;      /* the first request, once */
	bool is_unsupported;    /* by the server */
	char why[ERR_TEXT_MAX]; /* "": the server answers */
	bool stops;
	struct uploader_metrics m;
};

static const struct metric_def metric_defs[] = { UPLOADER_METRICS(METRIC_DEF) };

void uploader_config_default(struct uploader_config *c)
{
	*c = (struct uploader_config){
		.source = { .strip = true },
		.parallel_max = 25,
		.queue_max = 4096,
		.bytes_per_second = UPLOADER_BYTES_PER_SECOND,
		.call_ns = 300 * NS_PER_SEC,
		.patience_ns = UPLOADER_PATIENCE_NS,
		.backoff_min_ns = NS_PER_SEC,
		.backoff_max_ns = 300 * NS_PER_SEC,
		.unsupported_ns = 3600 * NS_PER_SEC,
		.idle_ns = 10 * NS_PER_SEC,
	};
	upload_queue_times_default(&c->times);
}

/* ---- a thread's own ---- */

struct worker {
	struct uploader *u;
	struct net_client *client;
	struct upload_limits limits;
	struct upload_source source;
	struct upload_job job;
	enum status read_status;           /* of the file, not of the server */
	int64_t cpu_mark_ns, wall_mark_ns; /* what was before is paid for */
	uint64_t burst_bytes;              /* of this file that were sent */
};

static void unlock_cleanup(struct lock **m)
{
	lock_release(*m);
}

static struct lock *locked(struct lock *m)
{
	lock_take(m);
	return m;
}

#define LOCKED(m) CLEANUP(unlock_cleanup) UNUSED struct lock *locked_ = locked(m)

/* With the lock: until `until_ns` (monotonic), or news. */
static void wait_for_news(struct uploader *u, int64_t until_ns)
{
	const struct timespec t = { until_ns / NS_PER_SEC, until_ns % NS_PER_SEC };
	if (until_ns == INT64_MAX)
		lock_wait(&u->news, &u->lock);
	else
		lock_wait_until(&u->news, &u->lock, &t);
}

/* With the lock: until that long after the mark. */
static void pause_from_mark(struct worker *w, int64_t wanted_ns)
{
	struct uploader *u = w->u;
	while (!u->stops && clock_monotonic_ns() < w->wall_mark_ns + wanted_ns)
		wait_for_news(u, w->wall_mark_ns + wanted_ns);
	w->source.slow_ns = 0;
	w->cpu_mark_ns = clock_thread_cpu_ns();
	w->wall_mark_ns = clock_monotonic_ns();
}

static int64_t byte_time_ns(const struct uploader *u, uint64_t bytes)
{
	return (int64_t)((double)bytes / (double)u->c.bytes_per_second * (double)NS_PER_SEC);
}

/* Between files, so that all threads together stay below their share: for what was done since the
 * mark, and for `bytes` that are to be sent. */
static void rest(struct worker *w, uint64_t bytes)
{
	struct uploader *u = w->u;
	int64_t cpu = clock_thread_cpu_ns() - w->cpu_mark_ns;
	LOCKED(&u->lock);
	int64_t active = MAX((int64_t)u->threads - u->idle, (int64_t)1);
	int64_t by_cpu = cpu * 100 / UPLOADER_CPU_PERCENT;
	int64_t by_bytes = byte_time_ns(u, MIN(bytes, UPLOADER_BURST_BYTES_MAX));
	pause_from_mark(w, MIN(MAX(by_cpu, by_bytes) * active, REST_NS_MAX));
}

/* In the middle of a file: for a device that lets us wait, and for what is too much for once. */
static void pause_for_others(struct worker *w, uint64_t bytes)
{
	struct uploader *u = w->u;
	w->burst_bytes += bytes;
	bool is_paid = w->burst_bytes <= UPLOADER_BURST_BYTES_MAX;
	if (is_paid && !w->source.slow_ns)
		return;
	LOCKED(&u->lock);
	int64_t active = MAX((int64_t)u->threads - u->idle, (int64_t)1);
	int64_t by_bytes = is_paid ? 0 : byte_time_ns(u, bytes) * active;
	int64_t by_device = w->source.slow_ns * SLOW_PARTS;
	int64_t wanted = MIN(MAX(by_bytes, by_device), PAUSE_NS_MAX);
	pause_from_mark(w, wanted);
}

/* An upload_key_fn; `ctx` is the uploader. A thread that uploader_stop() has left behind gets no
 * key: the files that know the keys are freed by then. */
static bool find_key(void *ctx, uint32_t file_id, struct file_key *out)
{
	struct uploader *u = ctx;
	LOCKED(&u->lock);
	return !u->stops && u->c.find_key(u->c.ctx, file_id, out);
}

/* Of the form of upload_read_fn. */
static enum status read_piece(void *ctx, uint64_t at, void *out, size_t len, struct err *e)
{
	struct worker *w = ctx;
	w->read_status = upload_source_read(&w->source, at, out, len, e);
	if (w->read_status == OK) {
		metric_add(&w->u->m.bytes, len);
		pause_for_others(w, len);
	}
	return w->read_status;
}

/* ---- one file ---- */

/* The server, and not the file; with the lock taken in here. */
static void note_server(struct uploader *u, enum status s, const struct err *e)
{
	LOCKED(&u->lock);
	if (s == OK) {
		if (u->why[0])
			log_info("server takes debug files", "address=%s", u->c.remote.address);
		u->backoff_ns = u->not_before_ns = 0;
		u->is_unsupported = false;
		u->has_answered = true;
		u->why[0] = 0;
		return;
	}
	u->is_unsupported = s == E_UNSUPPORTED;
	metric_add(s == E_UNSUPPORTED ? &u->m.unsupported
		   : s == E_DENIED    ? &u->m.denied
				      : &u->m.away,
		1);
	u->backoff_ns =
		u->backoff_ns ? MIN(u->backoff_ns * 2, u->c.backoff_max_ns) : u->c.backoff_min_ns;
	u->not_before_ns =
		clock_monotonic_ns() + (s == E_UNSUPPORTED ? u->c.unsupported_ns : u->backoff_ns);
	char text[2 * ERR_TEXT_MAX];
	if (!u->why[0])
		log_warn("server does not take debug files; names are missing there until it does",
			"address=%s error=%s", u->c.remote.address,
			log_quote(str_of(err_text(e, s)), text, sizeof(text)));
	snprintf(u->why, sizeof(u->why), "%s", err_text(e, s));
}

static struct upload_file file_of(struct worker *w)
{
	return (struct upload_file){
		.build_id = w->job.build_id,
		.id_type = w->job.build_id[0] == 'x' ? UPLOAD_ID_HASH : UPLOAD_ID_GNU,
		.type = DEBUGINFO_DEBUG,
		.read = read_piece,
		.ctx = w,
	};
}

/* The server may also answer that the call was canceled. */
static bool is_our_end(struct uploader *u, enum status s)
{
	LOCKED(&u->lock);
	return s == E_CANCELED && u->stops;
}

/* The server refuses this build id. This counts only if it has answered a request before: a server
 * of another kind never has. */
static bool is_about_file(struct uploader *u, enum status s)
{
	LOCKED(&u->lock);
	return s == E_INVALID && u->has_answered;
}

/* True: it wants the file. Otherwise *out is what became of it. What was left over of an upload of
 * ours is begun anew by force. */
static bool ask(struct worker *w, struct upload_file *f, enum upload_outcome *out, struct err *e)
{
	struct uploader *u = w->u;
	struct upload_answer answer = { 0 };
	bool retry;
	enum status s = remote_refresh(&u->c.remote, w->client, e);
	bool has_token = s == OK;
	for (int i = 0; s == OK && i < 2; i++) {
		f->force = i > 0;
		metric_add(&u->m.asked, 1);
		s = upload_ask(w->client, &w->limits, f, &answer, &retry, e);
		if (!answer.in_progress || !w->job.is_begun)
			break;
	}
	*out = s == OK && answer.in_progress      ? UPLOAD_IN_PROGRESS
	       : s == OK                          ? UPLOAD_NOT_WANTED
	       : has_token && is_about_file(u, s) ? UPLOAD_REFUSED
						  : UPLOAD_AWAY;
	if (!is_our_end(u, s))
		note_server(u, *out == UPLOAD_REFUSED ? OK : s, e);
	if (s == OK && !answer.wanted)
		(void)err_set(e, E_EXISTS, "%.200s", answer.reason);
	return s == OK && answer.wanted;
}

static enum upload_outcome outcome_of(const struct worker *w, enum status s, bool retry)
{
	if (w->read_status != OK)
		return w->read_status == E_INVALID ? UPLOAD_CHANGED : UPLOAD_NO_FILE;
	if (s == E_EXISTS)
		return UPLOAD_NOT_WANTED;
	return retry || s == E_DENIED || s == E_NOMEM ? UPLOAD_BROKEN : UPLOAD_REFUSED;
}

static enum upload_outcome send_file(struct worker *w, struct upload_file *f, struct err *e)
{
	struct uploader *u = w->u;
	CLEANUP(free_cleanup) struct upload_ticket *t = calloc(1, sizeof(*t));
	bool retry = true;
	f->bytes = w->source.bytes;
	f->hash = w->source.hash;
	f->id_type = w->source.id_type;
	enum status s = t ? upload_begin(w->client, &w->limits, f, t, &retry, e)
			  : err_set(e, E_NOMEM, "upload");
	/* Most often another agent has begun since the server was asked. */
	bool is_first = s == E_INVALID && !w->job.is_refused;
	w->job.is_refused |= is_first;
	if (s != OK)
		return is_first ? UPLOAD_IN_PROGRESS : outcome_of(w, s, retry);
	w->job.is_begun = true;
	s = upload_send(w->client, &w->limits, f, t, &retry, e);
	if (s != OK)
		return outcome_of(w, s, retry);
	if (!upload_source_is_same(&w->source, &w->job, find_key, u)) {
		(void)err_set(e, E_INVALID, "it was written to while it was sent");
		return UPLOAD_CHANGED;
	}
	s = upload_finish(w->client, &w->limits, f, t, &retry, e);
	return s == OK ? UPLOAD_SENT : outcome_of(w, s, retry);
}

static enum upload_outcome work(struct worker *w, struct err *e)
{
	struct uploader *u = w->u;
	struct upload_file f = file_of(w);
	enum upload_outcome o = UPLOAD_AWAY;
	w->read_status = OK;
	if (!ask(w, &f, &o, e))
		return o;
	if (w->job.is_probe) {
		LOCKED(&u->lock);
		log_info("the server has lost debug files, and is asked for each again",
			"address=%s", u->c.remote.address);
		upload_queue_doubt(&u->book);
	}
	enum status s = upload_source_open(&w->job, &u->c.source, find_key, u, &w->source, e);
	if (s != OK)
		return s == E_UNSUPPORTED ? UPLOAD_NO_NAMES : UPLOAD_NO_FILE;
	rest(w, w->source.bytes);
	o = send_file(w, &f, e);
	upload_source_close(&w->source);
	return o;
}

/* With the lock. */
static void note_outcome(struct uploader *u, const struct upload_job *job, enum upload_outcome o,
	const struct err *e)
{
	metric_value *const counters[] = {
		[UPLOAD_SENT] = &u->m.sent,
		[UPLOAD_NOT_WANTED] = &u->m.there,
		[UPLOAD_IN_PROGRESS] = &u->m.in_progress,
		[UPLOAD_NO_NAMES] = &u->m.nothing,
		[UPLOAD_NO_FILE] = &u->m.no_file,
		[UPLOAD_CHANGED] = &u->m.changed,
		[UPLOAD_REFUSED] = &u->m.refused,
		[UPLOAD_BROKEN] = &u->m.broken,
		[UPLOAD_AWAY] = NULL, /* note_server() counts */
	};
	char what[UPLOAD_QUEUE_PATH_MAX + DEBUGINFO_ID_MAX + 32], path[2 * UPLOAD_QUEUE_PATH_MAX];
	if (counters[o])
		metric_add(counters[o], 1);
	log_quote(str_of(job->path), path, sizeof(path));
	if (o == UPLOAD_SENT)
		log_debug("debug file sent", "build_id=%s path=%s", job->build_id, path);
	if (o == UPLOAD_SENT || o == UPLOAD_NOT_WANTED || o == UPLOAD_IN_PROGRESS ||
		o == UPLOAD_AWAY)
		return;
	char why[2 * ERR_TEXT_MAX];
	log_quote(str_of(e->text), why, sizeof(why));
	if (o == UPLOAD_BROKEN && job->attempts + 1 == UPLOAD_QUEUE_BROKEN_MAX)
		log_warn("debug file not sent, and left for hours: its names are missing",
			"build_id=%s path=%s times=%u reason=%s", job->build_id, path,
			UPLOAD_QUEUE_BROKEN_MAX, why);
	log_debug("debug file not sent", "build_id=%s path=%s reason=%s", job->build_id, path, why);
	snprintf(what, sizeof(what), "%s (build id %s)", job->path, job->build_id);
	problems_add(u->c.problems, PROBLEM_NAMES, what, e->text);
}

/* ---- threads ---- */

/* With the lock: chooses a file to see by whether the server is a new one. */
static void probe(struct uploader *u, int64_t now_ns)
{
	if (!u->is_probe_due || now_ns < u->probe_at_ns)
		return;
	u->is_probe_due = false;
	u->probe_at_ns = now_ns + PROBE_INTERVAL_NS;
	/* It is there, and may know debug files by now. */
	if (!u->is_unsupported)
		u->not_before_ns = 0;
	upload_queue_probe(&u->book);
}

/* With the lock: waits for a file whose turn it is. False: the thread is to end. */
static bool next_job(struct uploader *u, struct upload_job *out)
{
	int64_t until = clock_monotonic_ns() + u->c.idle_ns;
	for (;;) {
		int64_t now = clock_monotonic_ns();
		if (u->stops)
			return false;
		probe(u, now);
		if (now >= u->not_before_ns && upload_queue_take(&u->book, now, out))
			return true;
		int64_t next = upload_queue_next_ns(&u->book);
		if (u->is_probe_due)
			next = MIN(next, u->probe_at_ns);
		bool is_last = u->threads == 1;
		if (now >= until && (!is_last || next == INT64_MAX))
			return false;
		if (next != INT64_MAX)
			next = MAX(next, MAX(u->not_before_ns, now + NS_PER_MS));
		u->idle++;
		wait_for_news(u, is_last && now >= until ? next : MIN(next, until));
		u->idle--;
	}
}

/* Without the lock: it takes its time. */
static void close_dropped(struct uploader *u)
{
	int fds[UPLOAD_QUEUE_DROPPED_MAX];
	lock_take(&u->lock);
	uint32_t count = upload_queue_dropped(&u->book, fds);
	lock_release(&u->lock);
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
}

/* With the lock: it works no more, so that another may see that it is the last. */
static void leave(struct uploader *u)
{
	u->threads--;
	metric_set(&u->m.threads, u->threads);
	pthread_cond_broadcast(&u->news);
}

static void run(struct worker *w)
{
	struct uploader *u = w->u;
	LOCKED(&u->lock);
	while (next_job(u, &w->job)) {
		lock_release(&u->lock);
		close_dropped(u);
		struct err e = { 0 };
		w->cpu_mark_ns = clock_thread_cpu_ns();
		w->wall_mark_ns = clock_monotonic_ns();
		w->burst_bytes = 0;
		enum upload_outcome o = work(w, &e);
		rest(w, 0);
		lock_take(&u->lock);
		if (!u->stops)
			note_outcome(u, &w->job, o, &e);
		upload_queue_finish(&u->book, &w->job, o, clock_monotonic_ns());
	}
	leave(u);
}

static enum status open_client(struct worker *w, struct err *e)
{
	const struct uploader_config *c = &w->u->c;
	enum status s = remote_open(&c->remote, &w->client, e);
	if (s != OK)
		return s;
	w->limits = (struct upload_limits){
		.call_ns = c->call_ns,
		.bytes_ns = UPLOADER_BYTES_NS,
		.clear_text = !str_starts(str_of(c->remote.address), STR("https://")),
		.wake_fd = w->u->wake[0],
		.patience_ns = c->patience_ns,
	};
	net_client_limit(w->client, UPLOAD_ANSWER_BYTES_MAX);
	net_client_interrupt(w->client, w->u->wake[0], c->patience_ns);
	return OK;
}

static void *thread_main(void *ctx)
{
	struct slot *slot = ctx;
	struct uploader *u = slot->u;
	struct err e = { 0 };
	struct worker *w = calloc(1, sizeof(*w));
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	if (w) {
		w->u = u;
		w->source.file.fd = -1;
	}
	if (w && open_client(w, &e) == OK) {
		run(w);
	} else {
		LOCKED(&u->lock);
		leave(u);
	}
	if (w)
		net_client_free(w->client);
	free(w);
	LOCKED(&u->lock);
	if (slot->state == SLOT_RUNS) /* not at the end of all */
		slot->state = SLOT_ENDED;
	u->alive--;
	pthread_cond_broadcast(&u->news);
	return NULL;
}

/* With the lock: a thread for what waits, where there is none for it. */
static void call_thread(struct uploader *u)
{
	int64_t now = clock_monotonic_ns();
	struct err e = { 0 };
	if (u->idle)
		pthread_cond_broadcast(&u->news);
	if (u->stops || u->idle || u->threads >= u->c.parallel_max ||
		(u->threads && now < u->thread_at_ns))
		return;
	for (size_t i = 0; i < ARRAY_COUNT(u->slots); i++) {
		struct slot *slot = &u->slots[i];
		if (slot->state == SLOT_RUNS)
			continue;
		if (slot->state == SLOT_ENDED)
			pthread_join(slot->thread, NULL);
		*slot = (struct slot){ .u = u };
		if (os_thread_start(&slot->thread, "firn-names", thread_main, slot, &e) != OK)
			return; /* with what is met next */
		slot->state = SLOT_RUNS;
		u->threads++;
		u->alive++;
		u->thread_at_ns = now + THREAD_INTERVAL_NS;
		metric_set(&u->m.threads, u->threads);
		return;
	}
}

/* ---- outside ---- */

static void uploader_cleanup(struct uploader **u)
{
	uploader_free(*u);
}

enum status uploader_new(const struct uploader_config *c, struct uploader **out, struct err *e)
{
	CLEANUP(uploader_cleanup) struct uploader *u = calloc(1, sizeof(*u));
	struct net_client *probe = NULL;
	if (!u)
		return err_set(e, E_NOMEM, "uploader");
	u->c = *c;
	u->c.parallel_max = MIN(MAX(c->parallel_max, 1u), (uint32_t)UPLOADER_THREADS_MAX);
	u->wake[0] = u->wake[1] = -1;
	lock_init(&u->lock, LOCK_UPLOADER);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&u->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	enum status s = upload_queue_init(&u->book, c->queue_max, &c->times);
	if (s == OK && pipe2(u->wake, O_CLOEXEC | O_NONBLOCK) < 0)
		s = err_os(e, "uploader");
	if (s == OK)
		s = remote_open(&c->remote, &probe, e); /* so that mistakes are told at once */
	net_client_free(probe);
	if (s == OK)
		*out = STEAL_PTR(u);
	return s;
}

void uploader_stop(struct uploader *u)
{
	pthread_t threads[UPLOADER_THREADS_MAX];
	size_t count = 0;
	if (!u)
		return;
	lock_take(&u->lock);
	u->stops = true;
	(void)!write(u->wake[1], "x", 1);
	pthread_cond_broadcast(&u->news);
	for (size_t i = 0; i < ARRAY_COUNT(u->slots); i++) {
		if (u->slots[i].state != SLOT_FREE)
			threads[count++] = u->slots[i].thread;
		u->slots[i].state = SLOT_FREE;
	}
	int64_t end = clock_monotonic_ns() + UPLOADER_STOP_NS;
	while (u->alive && clock_monotonic_ns() < end)
		wait_for_news(u, end);
	bool have_ended = u->alive == 0;
	lock_release(&u->lock);
	for (size_t i = 0; i < count; i++) {
		if (have_ended)
			pthread_join(threads[i], NULL);
		else
			pthread_detach(threads[i]);
	}
}

void uploader_free(struct uploader *u)
{
	if (!u)
		return;
	uploader_stop(u);
	lock_take(&u->lock);
	bool is_left = u->alive > 0;
	lock_release(&u->lock);
	if (is_left) /* a thread still looks at it, until the process ends */
		return;
	upload_queue_deinit(&u->book);
	fd_cleanup(&u->wake[0]);
	fd_cleanup(&u->wake[1]);
	pthread_cond_destroy(&u->news);
	lock_destroy(&u->lock);
	free(u);
}

void uploader_seen(void *ctx, const char *build_id, const char *path, int fd)
{
	struct uploader *u = ctx;
	LOCKED(&u->lock);
	if (!u->stops)
		upload_queue_seen(&u->book, build_id, path, fd, clock_monotonic_ns());
}

void uploader_met(
	struct uploader *u, uint32_t file_id, const char *build_id, const char *path, int pid)
{
	if (!u)
		return;
	LOCKED(&u->lock);
	int64_t now = clock_monotonic_ns();
	if (u->stops)
		return;
	(void)upload_queue_met(&u->book, file_id, build_id, path, pid, now);
	if (u->book.waiting || u->is_probe_due)
		call_thread(u);
}

void uploader_tick(struct uploader *u)
{
	if (!u)
		return;
	lock_take(&u->lock);
	upload_queue_tick(&u->book, clock_monotonic_ns());
	lock_release(&u->lock);
	close_dropped(u);
}

void uploader_reconnected(struct uploader *u)
{
	if (!u)
		return;
	LOCKED(&u->lock);
	u->is_probe_due = u->was_connected;
	u->was_connected = true;
	if (!u->stops && u->is_probe_due)
		call_thread(u);
}

const struct uploader_metrics *uploader_metrics(const struct uploader *u)
{
	return &u->m;
}

uint64_t uploader_waiting(struct uploader *u, char *why, size_t size)
{
	LOCKED(&u->lock);
	snprintf(why, size, "%s", u->why);
	return upload_queue_waiting(&u->book);
}

void uploader_write_metrics(struct uploader *u, struct buf *out)
{
	if (!u)
		return;
	metrics_write(out, metric_defs, (const metric_value *)&u->m, ARRAY_COUNT(metric_defs));
	LOCKED(&u->lock);
	upload_queue_write_metrics(&u->book, out);
}
