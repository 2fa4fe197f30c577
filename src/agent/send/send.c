/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch is in one of three places: the queue (given, not yet seen by the thread), `held` (the
 * thread's, in memory), the spool. The thread moves what comes from the queue to `held`, and from
 * there to the server while it answers; while it does not, to the spool. Each loop makes at most
 * one attempt of each kind, so that new batches are never behind many old ones.
 *
 * `retry_at_ns` is 0 while the server answers.
 */
#include "agent/send/send.h"

#include "agent/send/spool.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "net/net.h"
#include "os/os.h"
#include "otlp/otlp.h"

#include <stdlib.h>
#include <sys/random.h>

#define EXPORT_PATH "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define ANSWER_BYTES_MAX ((size_t)64 << 10)

struct parcel {
	uint8_t *bytes;
	size_t len;
	uint32_t samples;
};

struct sender {
	struct sender_config c;
	struct net_client *client;
	struct spool *spool; /* NULL: none */
	struct os_queue *queue;
	_Atomic size_t queue_bytes;
	pthread_t thread;
	bool running;
	_Atomic int64_t stop_deadline_ns; /* 0: not stopping */
	VEC(struct parcel *) held;
	size_t held_bytes;
	int64_t backoff_ns;
	int64_t retry_at_ns;
	uint32_t limit_answers; /* "too much" in a row */
	uint64_t connects;      /* of the client, when it was answered last */
	bool warned, spool_warned;
	struct send_metrics m;
};

static const struct metric_def metric_defs[] = { SEND_METRICS(METRIC_DEF) };

void sender_config_default(struct sender_config *c)
{
	*c = (struct sender_config){
		.spool_bytes_max = (uint64_t)256 << 20,
		.timeout_ns = 10 * NS_PER_SEC,
		.backoff_min_ns = NS_PER_SEC,
		.backoff_max_ns = 60 * NS_PER_SEC,
	};
}

static void metric_sub(metric_value *m, uint64_t n)
{
	atomic_fetch_sub_explicit(m, n, memory_order_relaxed);
}

static void parcel_free(struct parcel *p)
{
	if (p)
		free(p->bytes);
	free(p);
}

/* ---- held ---- */

static bool hold(struct sender *s, struct parcel *p)
{
	if (!VEC_PUSH(&s->held, p))
		return false;
	s->held_bytes += p->len;
	return true;
}

/* Takes the oldest out of `held`; it waits no more. The caller frees it. */
static struct parcel *release(struct sender *s)
{
	struct parcel *p = s->held.v[0];
	s->held.len--;
	memmove(s->held.v, s->held.v + 1, s->held.len * sizeof(*s->held.v));
	s->held_bytes -= p->len;
	metric_sub(&s->m.waiting, p->samples);
	metric_sub(&s->m.waiting_bytes, p->len);
	return p;
}

static void drop_held(struct sender *s, metric_value *reason)
{
	struct parcel *p = release(s);
	metric_add(reason, p->samples);
	parcel_free(p);
}

/* ---- the spool ---- */

static void note_spool(struct sender *s, const struct spool_sum *lost, metric_value *reason)
{
	struct spool_sum now = spool_content(s->spool);
	metric_add(reason, lost->samples);
	metric_set(&s->m.spooled, now.samples);
	metric_set(&s->m.spool_batches, now.batches);
	metric_set(&s->m.spool_bytes, now.bytes);
}

/* Writes all of `held` to disk; batches that cannot be written stay in it. */
static void put_away(struct sender *s)
{
	while (s->spool && s->held.len) {
		struct parcel *p = s->held.v[0];
		struct spool_sum lost = { 0 };
		struct err e;
		enum status st =
			spool_add(s->spool, str_make(p->bytes, p->len), p->samples, &lost, &e);
		note_spool(s, &lost, &s->m.lost_spool);
		if (st != OK) {
			metric_add(&s->m.spool_failures, 1);
			char why[300];
			log_quote(str_of(err_text(&e, st)), why, sizeof(why));
			if (!s->spool_warned)
				log_warn("batches cannot be spooled and stay in memory", "error=%s",
					why);
			s->spool_warned = true;
			return;
		}
		s->spool_warned = false;
		parcel_free(release(s));
	}
}

/* ---- one attempt ---- */

enum outcome { TAKEN, REFUSED, LATER };

/* A fifth more or less. */
static int64_t jittered(int64_t ns)
{
	uint32_t r = 0;
	(void)!getrandom(&r, sizeof(r), 0);
	return ns - ns / 5 + (int64_t)((double)r / UINT32_MAX * (double)(ns / 5 * 2));
}

/* `why` is quoted. */
static void note_failure(struct sender *s, const char *why)
{
	metric_add(&s->m.failures, 1);
	metric_set(&s->m.reachable, 0);
	s->backoff_ns =
		s->backoff_ns ? MIN(s->backoff_ns * 2, s->c.backoff_max_ns) : s->c.backoff_min_ns;
	s->retry_at_ns = clock_monotonic_ns() + jittered(s->backoff_ns);
	if (!s->warned)
		log_warn("server does not take batches; they are kept and sent later",
			"address=%s error=%s%s", s->c.remote.address, why,
			strstr(why, "does not speak it")
				? " hint=\"--remote-store-insecure sends without TLS\""
				: "");
	s->warned = true;
}

static void note_answer(struct sender *s)
{
	metric_set(&s->m.reachable, 1);
	s->backoff_ns = s->retry_at_ns = 0;
	if (s->warned)
		log_info("server takes batches again", "address=%s spooled_batches=%llu",
			s->c.remote.address,
			(unsigned long long)(s->spool ? spool_content(s->spool).batches : 0));
	s->warned = false;
}

static void note_connection(struct sender *s)
{
	uint64_t connects = net_client_connects(s->client);
	if (connects != s->connects && s->c.connected)
		s->c.connected(s->c.ctx);
	s->connects = connects;
}

static int64_t attempt_timeout(const struct sender *s)
{
	int64_t deadline = atomic_load(&s->stop_deadline_ns);
	if (!deadline)
		return s->c.timeout_ns;
	int64_t left = deadline - clock_monotonic_ns();
	return MIN(MAX(left, NS_PER_MS), s->c.timeout_ns);
}

/* Not this batch's fault but the server's, the way there, or a setting that the user may mend. */
static bool is_for_later(struct sender *s, enum status st, bool retry)
{
	if (st == E_QUOTA && ++s->limit_answers >= SEND_LIMIT_ANSWERS_MAX)
		return false;
	return retry || st == E_DENIED || st == E_UNSUPPORTED || st == E_NOMEM;
}

static void note_rejects(struct sender *s, struct str answer)
{
	struct otlp_rejects rejects;
	if (otlp_decode_response(answer, &rejects, NULL) != OK || rejects.profiles <= 0)
		return;
	char reason[256];
	metric_add(&s->m.rejected_profiles, (uint64_t)rejects.profiles);
	log_warn("server left out profiles", "profiles=%lld reason=%s", (long long)rejects.profiles,
		log_quote(str_of(rejects.reason), reason, sizeof(reason)));
}

static enum outcome attempt(struct sender *s, struct str message, uint32_t samples)
{
	CLEANUP(buf_deinit) struct buf answer;
	buf_init(&answer, ANSWER_BYTES_MAX);
	struct err e = { 0 };
	bool retry = true; /* a token that cannot be read may be there the next time */
	enum status st = remote_refresh(&s->c.remote, s->client, &e);
	if (st == OK)
		st = net_client_rpc(
			s->client, EXPORT_PATH, message, attempt_timeout(s), &answer, &retry, &e);
	char why[300];
	log_quote(str_of(err_text(&e, st)), why, sizeof(why));
	if (st != OK && is_for_later(s, st, retry)) {
		note_failure(s, why);
		return LATER;
	}
	s->limit_answers = 0;
	note_answer(s);
	note_connection(s);
	if (st == OK) {
		note_rejects(s, buf_view(&answer));
		metric_add(&s->m.sent, samples);
		metric_add(&s->m.sent_bytes, message.len);
		return TAKEN;
	}
	metric_add(&s->m.failures, 1);
	metric_add(&s->m.lost_refused, samples);
	log_warn("server refused a batch", "samples=%u error=%s", samples, why);
	return REFUSED;
}

/* False: the server is away. */
static bool send_held(struct sender *s)
{
	if (s->held.len == 0)
		return true;
	const struct parcel *p = s->held.v[0];
	if (attempt(s, str_make(p->bytes, p->len), p->samples) == LATER)
		return false;
	parcel_free(release(s));
	return true;
}

static bool send_spooled(struct sender *s)
{
	if (!s->spool || spool_content(s->spool).batches == 0)
		return true;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, SPOOL_MESSAGE_BYTES_MAX + 1);
	struct spool_sum damaged = { 0 };
	uint32_t samples = 0;
	char why[300];
	struct err e = { 0 };
	enum status st = spool_oldest(s->spool, &message, &samples, &damaged, &e);
	enum outcome o = st == OK ? attempt(s, buf_view(&message), samples) : LATER;
	if (o != LATER)
		spool_remove_oldest(s->spool);
	else if (st != OK && st != E_NOTFOUND)
		note_failure(s, log_quote(str_of(err_text(&e, st)), why, sizeof(why)));
	note_spool(s, &damaged, &s->m.lost_damaged);
	return o != LATER || st == E_NOTFOUND;
}

/* ---- the thread ---- */

static bool anything_to_send(const struct sender *s)
{
	return s->held.len || (s->spool && spool_content(s->spool).batches);
}

/* When the thread wakes up by itself. */
static int64_t next_wake_ns(const struct sender *s)
{
	if (s->c.offline || !anything_to_send(s))
		return INT64_MAX;
	return s->retry_at_ns; /* 0: at once */
}

static void take(struct sender *s, struct parcel *p)
{
	atomic_fetch_sub(&s->queue_bytes, p->len);
	if (!hold(s, p)) {
		metric_sub(&s->m.waiting, p->samples);
		metric_sub(&s->m.waiting_bytes, p->len);
		metric_add(&s->m.lost_queue, p->samples);
		parcel_free(p);
	}
	while (s->held_bytes > SEND_HELD_BYTES_MAX && s->held.len > 1)
		drop_held(s, &s->m.lost_queue);
}

/* The queue is closed. */
static void finish(struct sender *s)
{
	for (struct parcel *p; (p = os_queue_pop(s->queue, 0));)
		take(s, p);
	while (!s->c.offline && s->held.len &&
		clock_monotonic_ns() < atomic_load(&s->stop_deadline_ns))
		if (!send_held(s))
			break;
	put_away(s);
	while (s->held.len)
		drop_held(s, &s->m.lost_queue);
}

static void *run(void *ctx)
{
	struct sender *s = ctx;
	for (;;) {
		struct parcel *p = os_queue_pop(s->queue, next_wake_ns(s));
		if (p)
			take(s, p);
		if (atomic_load(&s->stop_deadline_ns))
			break;
		if (s->c.offline || clock_monotonic_ns() < s->retry_at_ns || !send_held(s) ||
			!send_spooled(s))
			put_away(s);
	}
	finish(s);
	return NULL;
}

/* ---- outside ---- */

static void sender_cleanup(struct sender **s)
{
	sender_free(*s);
}

static enum status open_spool(struct sender *s, struct err *e)
{
	if (!s->c.spool_dir || !s->c.spool_dir[0] || !s->c.spool_bytes_max)
		return OK;
	enum status st = spool_open(s->c.spool_dir, s->c.spool_bytes_max, &s->spool, e);
	if (st != OK)
		return st;
	metric_add(&s->m.recovered, spool_content(s->spool).samples);
	note_spool(s, &(struct spool_sum){ 0 }, &s->m.lost_spool);
	return OK;
}

enum status sender_new(const struct sender_config *c, struct sender **out, struct err *e)
{
	CLEANUP(sender_cleanup) struct sender *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, E_NOMEM, "sender");
	s->c = *c;
	enum status st = s->c.offline ? OK : remote_open(&s->c.remote, &s->client, e);
	if (st == OK)
		st = open_spool(s, e);
	if (st != OK)
		return st;
	st = os_queue_new(SEND_QUEUE_BATCHES_MAX, &s->queue);
	if (st != OK)
		return err_set(e, st, "sender");
	st = os_thread_start(&s->thread, "firn-send", run, s, e);
	if (st != OK)
		return st;
	s->running = true;
	*out = STEAL_PTR(s);
	return OK;
}

void sender_push(struct sender *s, struct buf *message, uint32_t samples)
{
	metric_add(&s->m.batches, 1);
	metric_add(&s->m.samples, samples);
	struct parcel *p = calloc(1, sizeof(*p));
	if (p) {
		p->samples = samples;
		p->bytes = buf_steal(message, &p->len);
		size_t len = p->len;
		metric_add(&s->m.waiting, samples);
		metric_add(&s->m.waiting_bytes, len);
		size_t before = atomic_fetch_add(&s->queue_bytes, len);
		if (before + len <= SEND_QUEUE_BYTES_MAX && os_queue_try_push(s->queue, p))
			return;
		atomic_fetch_sub(&s->queue_bytes, len);
		metric_sub(&s->m.waiting, samples);
		metric_sub(&s->m.waiting_bytes, len);
	}
	metric_add(&s->m.lost_queue, samples);
	parcel_free(p);
	buf_clear(message);
}

void sender_stop(struct sender *s, int64_t timeout_ns)
{
	if (!s->running)
		return;
	s->running = false;
	atomic_store(&s->stop_deadline_ns, clock_monotonic_ns() + timeout_ns);
	os_queue_close(s->queue);
	pthread_join(s->thread, NULL);
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	sender_stop(s, 0);
	assert(s->held.len == 0);
	VEC_FREE(&s->held);
	os_queue_free(s->queue);
	spool_close(s->spool);
	net_client_free(s->client);
	free(s);
}

const struct send_metrics *sender_metrics(const struct sender *s)
{
	return &s->m;
}

bool sender_is_done(const struct sender *s)
{
	return metric_get(&s->m.waiting) == 0 && metric_get(&s->m.spool_batches) == 0;
}

void sender_write_metrics(const struct sender *s, struct buf *out)
{
	metrics_write(out, metric_defs, (const metric_value *)&s->m, ARRAY_COUNT(metric_defs));
}
