/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, then watches from the list's resourceVersion on: the API server sends each change of a pod
 * of this node as one JSON object of an answer that does not end. `version` is the last one
 * received; "" requests a list. An ended watch is begun again at `version`. After 410 Gone, a
 * damaged event or ERRORS_MAX errors of any kind in a row a new list is requested, and that the
 * newest one, since a list from a server that is behind would lead to the same error. Bookmarks
 * update the version while nothing changes.
 *
 * After a failure, or a watch that ended at once, the next attempt waits 1 s, 2 s, … 30 s, up to a
 * fifth more or less, so that the agents of all nodes do not return at the same time. If watching
 * is not allowed: 30 s, 1 min, … 5 min. After a refused token the next attempt follows as soon as
 * its file has another.
 *
 * Records of deleted pods are not removed: their uids and ids are never used again, and their last
 * processes may still run.
 */
#include "container/watch.h"
#include "container/decode.h"
#include "container/kubernetes.h"
#include "container/labels.h"
#include "container/peer.h"

#include "base/lock.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_NS (10 * NS_PER_SEC)
/* The server ends a watch after this to twice this time; WATCH_PATIENCE_NS later a silent
 * connection is given up. */
#define WATCH_SECONDS_MIN 240
#define WATCH_PATIENCE_NS (30 * NS_PER_SEC)
#define BACKOFF_MIN_NS NS_PER_SEC
#define BACKOFF_MAX_NS (30 * NS_PER_SEC)
/* A watch that was shorter than this and had no event is a failure. */
#define WATCH_SHORT_NS NS_PER_SEC
/* The API allows listing and refuses watching: a mistake in its roles, which may be mended soon. */
#define REFUSED_MIN_NS (30 * NS_PER_SEC)
#define REFUSED_MAX_NS (300 * NS_PER_SEC)
/* How often the file is checked for another token after a refusal. */
#define TOKEN_LOOK_NS NS_PER_SEC
#define ANSWER_BYTES_MAX ((size_t)64 << 10) /* of a refusal's text */
#define AGAIN_PAUSE_NS (60 * NS_PER_SEC)
#define DEPTH_MAX 200
/* Errors in a row, of any kind, after which a new list is asked for. */
#define ERRORS_MAX 3

struct container_watch {
	struct container_watch_config c;
	struct container_kubernetes k;
	pthread_t thread;
	int wake_fd;
	_Atomic bool stopping, again, node_is_unknown;
	_Atomic int state;
	char version[CONTAINER_VERSION_MAX];
	bool newest;
	uint64_t told;        /* events, without those of errors */
	uint32_t told_errors; /* events of errors since the last other one */
	int64_t listed_ns, backoff_ns, refused_ns;
	struct container_labels *node, *node_now;
	struct arena node_arena, node_now_arena;
	struct buf bytes; /* of the stream, after the last complete event */
	struct container_frames frames;
	struct lock lock; /* protects `problem` */
	char problem[ERR_TEXT_MAX];
};

/* ---- the stream ---- */

enum status container_frame_next(
	struct container_frames *f, struct str bytes, size_t *out_len, struct err *e)
{
	*out_len = 0;
	for (; f->scanned < bytes.len; f->scanned++) {
		char c = bytes.p[f->scanned];
		if (f->in_string) {
			f->in_string = f->escaped || c != '"';
			f->escaped = !f->escaped && c == '\\';
			continue;
		}
		bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
		if (f->depth == 0 && !blank && c != '{')
			return err_set(e, E_INVALID, "watch: byte 0x%02x where an event begins",
				(unsigned char)c);
		f->in_string = c == '"';
		if (c == '{' && ++f->depth > DEPTH_MAX)
			return err_set(e, E_INVALID, "watch: an event deeper than %d", DEPTH_MAX);
		if (c != '}' || --f->depth)
			continue;
		*out_len = f->scanned + 1;
		*f = (struct container_frames){ 0 };
		return OK;
	}
	return OK;
}

/* ---- what others see ---- */

static void set_state(struct container_watch *w, enum container_watch_state state, const char *why)
{
	lock_take(&w->lock);
	bool same = (int)state == atomic_load(&w->state) && strcmp(w->problem, why) == 0;
	snprintf(w->problem, sizeof(w->problem), "%s", why);
	atomic_store(&w->state, (int)state);
	lock_release(&w->lock);
	metric_set(&w->c.metrics->watching, state == CONTAINER_WATCH_GOES_ON);
	if (!same)
		w->c.changed(w->c.sink.ctx);
}

enum container_watch_state container_watch_state(struct container_watch *w)
{
	return (enum container_watch_state)atomic_load(&w->state);
}

bool container_watch_node_is_unknown(struct container_watch *w)
{
	return atomic_load(&w->node_is_unknown);
}

void container_watch_problem(struct container_watch *w, char out[ERR_TEXT_MAX])
{
	lock_take(&w->lock);
	memcpy(out, w->problem, ERR_TEXT_MAX);
	lock_release(&w->lock);
}

static void wake(struct container_watch *w)
{
	uint64_t one = 1;
	(void)!write(w->wake_fd, &one, sizeof(one));
}

void container_watch_again(struct container_watch *w)
{
	atomic_store(&w->again, true);
	wake(w);
}

static void rest(struct container_watch *w, int64_t ns)
{
	int64_t until = clock_monotonic_ns() + ns;
	for (int64_t left = ns; left > 0 && !atomic_load(&w->stopping);
		left = until - clock_monotonic_ns()) {
		struct pollfd p = { .fd = w->wake_fd, .events = POLLIN };
		uint64_t count;
		if (poll(&p, 1, (int)(left / NS_PER_MS) + 1) > 0)
			(void)!read(w->wake_fd, &count, sizeof(count));
	}
}

static uint32_t random_below(uint32_t n)
{
	uint32_t r = 0;
	(void)!getrandom(&r, sizeof(r), 0);
	return r % n;
}

/* Waits for `ns`, up to a fifth more or less; ends earlier if there is another token than the
 * refused one. */
static void rest_about(struct container_watch *w, int64_t ns)
{
	int64_t until = clock_monotonic_ns() + ns / 10 * 8 + ns / 1000 * random_below(400);
	while (!atomic_load(&w->stopping) && !container_kubernetes_has_new_token(&w->k)) {
		int64_t left = until - clock_monotonic_ns();
		if (left <= 0)
			return;
		rest(w, w->k.peer.code == 401 ? MIN(left, TOKEN_LOOK_NS) : left);
	}
}

static void back_off(struct container_watch *w)
{
	w->backoff_ns =
		w->backoff_ns ? MIN(2 * w->backoff_ns, BACKOFF_MAX_NS) : w->c.backoff_min_ns;
	rest_about(w, w->backoff_ns);
}

/* ---- list and watch ---- */

static bool same_labels(const struct container_labels *a, const struct container_labels *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!str_eq(a->v[i].name, b->v[i].name) || !str_eq(a->v[i].value, b->v[i].value))
			return false;
	return true;
}

/* Gets the node's labels; true: they have changed. */
static bool look_at_node(struct container_watch *w)
{
	arena_clear(&w->node_now_arena);
	container_labels_init(w->node_now, &w->node_now_arena);
	enum status s = container_kubernetes_node(&w->k, w->node_now);
	if (atomic_exchange(&w->node_is_unknown, w->k.node_is_unknown) != w->k.node_is_unknown)
		w->c.changed(w->c.sink.ctx);
	/* The old labels are used until the API gives others. */
	bool unsaid = s != OK && s != E_DENIED && s != E_NOTFOUND && w->node->count;
	if (unsaid || same_labels(w->node, w->node_now))
		return false;
	struct container_labels *old = w->node;
	struct arena old_arena = w->node_arena;
	w->node = w->node_now;
	w->node_now = old;
	w->node_arena = w->node_now_arena;
	w->node_now_arena = old_arena;
	w->node->arena = &w->node_arena;
	w->node_now->arena = &w->node_now_arena;
	return true;
}

static enum status list(struct container_watch *w, struct err *e)
{
	atomic_store(&w->again, false);
	metric_add(&w->c.metrics->asked, 1);
	metric_add(&w->c.metrics->lists, 1);
	enum status s =
		container_kubernetes_pods(&w->k, w->newest, w->node, &w->c.sink, w->version, e);
	w->listed_ns = clock_monotonic_ns();
	metric_add(s == OK ? &w->c.metrics->answered : &w->c.metrics->failed, 1);
	if (s == OK && !w->version[0])
		return err_set(e, E_UNSUPPORTED, "list of pods: no resourceVersion");
	w->newest = false;
	return s == E_NOTFOUND ? err_set(e, E_IO, "list of pods: HTTP status 404") : s;
}

/* Makes an error of the answer that the server sent instead of a watch. */
static enum status refusal(struct container_watch *w, int code, struct err *e)
{
	char sentence[CONTAINER_SENTENCE_MAX];
	CLEANUP(buf_deinit) struct buf answer;
	bool end = false;
	buf_init(&answer, ANSWER_BYTES_MAX);
	int64_t until = clock_monotonic_ns() + ANSWER_TIMEOUT_NS;
	enum status s = OK;
	while (s == OK && !end)
		s = fetch_more(w->k.peer.http, w->wake_fd, until - clock_monotonic_ns(), &answer,
			&end, NULL);
	container_sentence(buf_view(&answer), sentence);
	if (code == 410)
		return err_set(e, E_NOTFOUND, "watch: the version is gone");
	/* E_DENIED: a proxy that cannot watch, or an API that does not allow it. */
	s = code == 401 ? E_IO : code >= 400 && code < 500 && code != 429 ? E_DENIED : E_IO;
	return err_set(e, s, "watch: HTTP status %d%s%s", code, sentence[0] ? ": " : "", sentence);
}

static enum status begin(struct container_watch *w, int64_t *out_end_ns, struct err *e)
{
	char path[640];
	uint32_t seconds = WATCH_SECONDS_MIN + random_below(WATCH_SECONDS_MIN);
	snprintf(path, sizeof(path),
		"/api/v1/pods?watch=true&allowWatchBookmarks=true&fieldSelector=spec.nodeName%%3D%s"
		"&resourceVersion=%s&timeoutSeconds=%u",
		w->k.node, w->version, seconds);
	*out_end_ns = clock_monotonic_ns() + seconds * NS_PER_SEC + WATCH_PATIENCE_NS;
	int *code = &w->k.peer.code;
	*code = 0;
	enum status s = fetch_begin(w->k.peer.http, path, ANSWER_TIMEOUT_NS, code, e);
	return s != OK || *code == 200 ? s : refusal(w, *code, e);
}

static enum status take_event(struct container_watch *w, struct str json, struct err *e)
{
	struct container_event event;
	metric_add(&w->c.metrics->events, 1);
	enum status s = container_event_decode(json, w->node, &w->c.sink, &event, e);
	if (s != OK)
		return s;
	if (event.kind == CONTAINER_EVENT_ERROR) {
		bool gone = event.code == 410 || ++w->told_errors % ERRORS_MAX == 0;
		return err_set(
			e, gone ? E_NOTFOUND : E_IO, "watch: %d %s", event.code, event.message);
	}
	w->told++;
	w->told_errors = 0;
	if (event.version[0])
		memcpy(w->version, event.version, sizeof(w->version));
	return OK;
}

/* Takes all complete events; the rest stays in the buffer. */
static enum status take_events(struct container_watch *w, struct err *e)
{
	size_t used = 0;
	while (w->bytes.len) {
		size_t len = 0;
		struct str left = str_make(w->bytes.data + used, w->bytes.len - used);
		enum status s = container_frame_next(&w->frames, left, &len, e);
		if (s == OK && len)
			s = take_event(w, str_sub(left, 0, len), e);
		used += len;
		if (s == OK && len)
			continue;
		if (used)
			memmove(w->bytes.data, w->bytes.data + used, w->bytes.len - used);
		w->bytes.len -= used;
		return s;
	}
	return OK;
}

/* How long to wait for the stream: until its end, or the time at which everything is listed
 * again. */
static int64_t wait_until(const struct container_watch *w, int64_t end_ns)
{
	return atomic_load(&w->again) ? MIN(end_ns, w->listed_ns + AGAIN_PAUSE_NS) : end_ns;
}

/* Follows the stream to its end. OK: the server ended it in order, or there is something else to
 * do. */
static enum status follow(struct container_watch *w, int64_t end_ns, struct err *e)
{
	bool end = false;
	buf_clear(&w->bytes);
	w->frames = (struct container_frames){ 0 };
	while (!end && !atomic_load(&w->stopping)) {
		int64_t left = wait_until(w, end_ns) - clock_monotonic_ns();
		uint64_t count;
		enum status s = left <= 0 ? E_TIMEOUT
					  : fetch_more(w->k.peer.http, w->wake_fd, left, &w->bytes,
						    &end, e);
		if (s == E_CANCELED) {
			(void)!read(w->wake_fd, &count, sizeof(count));
			continue;
		}
		if (s == E_TIMEOUT && atomic_load(&w->again))
			w->version[0] = 0;
		if (s == E_TIMEOUT)
			return OK;
		if (s == OK)
			s = take_events(w, e);
		if (s != OK)
			return s;
	}
	return OK;
}

/* One round: a list if one is needed, and the watch after it. *out_long: the watch was long enough
 * or had events. */
static enum status go_round(struct container_watch *w, bool *out_long, struct err *e)
{
	int64_t end_ns;
	struct err why = { 0 };
	*out_long = false;
	if (!container_peer_ready(&w->k.peer, INT64_MAX))
		return err_set(e, E_UNAVAILABLE, "%s", w->k.peer.problem);
	enum status s = container_kubernetes_ready(&w->k, e);
	if (s != OK)
		return s;
	if (look_at_node(w) || atomic_load(&w->again))
		w->version[0] = 0;
	if (!w->version[0]) {
		s = list(w, e);
		if (s == OK) /* everything is known: no caller need wait for the watch */
			set_state(w, CONTAINER_WATCH_GOES_ON, "");
	}
	if (s == OK)
		s = begin(w, &end_ns, e);
	if (s != OK)
		return s;
	set_state(w, CONTAINER_WATCH_GOES_ON, "");
	w->refused_ns = 0;
	metric_add(&w->c.metrics->watches, 1);
	int64_t begun_ns = clock_monotonic_ns();
	uint64_t told = w->told;
	s = follow(w, end_ns, &why);
	*out_long = clock_monotonic_ns() - begun_ns >= WATCH_SHORT_NS || w->told != told;
	return s == OK ? OK : err_set(e, s, "%s", err_text(&why, s));
}

/* Notes how a round ended, and sets the pause after it. */
static void judge(struct container_watch *w, enum status s, bool was_long, const struct err *e)
{
	if (was_long)
		w->backoff_ns = 0;
	if (s == OK && was_long)
		return;
	if (s == E_NOTFOUND || s == E_INVALID || s == E_LIMIT || s == E_CORRUPT) {
		w->version[0] = 0;
		w->newest = true;
	}
	if (s != OK && s != E_NOTFOUND)
		container_peer_close(&w->k.peer);
	if ((s == E_DENIED && w->version[0]) || s == E_UNSUPPORTED) {
		set_state(w, CONTAINER_WATCH_REFUSED, err_text(e, s));
		w->refused_ns = w->refused_ns ? MIN(2 * w->refused_ns, REFUSED_MAX_NS)
					      : w->c.refused_min_ns;
		rest_about(w, w->refused_ns);
		return;
	}
	if (s != OK && !was_long && (s != E_NOTFOUND || w->told_errors))
		set_state(w, CONTAINER_WATCH_AWAY, err_text(e, s));
	back_off(w);
}

static void *run(void *ctx)
{
	struct container_watch *w = ctx;
	while (!atomic_load(&w->stopping)) {
		struct err e = { 0 };
		bool was_long;
		enum status s = go_round(w, &was_long, &e);
		if (!atomic_load(&w->stopping))
			judge(w, s, was_long, &e);
	}
	return NULL;
}

/* ---- life ---- */

static void watch_free(struct container_watch *w)
{
	container_peer_close(&w->k.peer);
	arena_deinit(&w->node_arena);
	arena_deinit(&w->node_now_arena);
	buf_deinit(&w->bytes);
	free(w->node);
	free(w->node_now);
	fd_cleanup(&w->wake_fd);
	lock_destroy(&w->lock);
	free(w);
}

enum status container_watch_start(
	const struct container_watch_config *c, struct container_watch **out, struct err *e)
{
	struct container_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, E_NOMEM, "watch");
	w->c = *c;
	if (w->c.backoff_min_ns <= 0)
		w->c.backoff_min_ns = BACKOFF_MIN_NS;
	if (w->c.refused_min_ns <= 0)
		w->c.refused_min_ns = REFUSED_MIN_NS;
	lock_init(&w->lock, LOCK_WATCH);
	container_kubernetes_init(&w->k, c->containers);
	arena_init(&w->node_arena, CONTAINER_ANSWER_BYTES_MAX);
	arena_init(&w->node_now_arena, CONTAINER_ANSWER_BYTES_MAX);
	/* Room for an event and the part of the next one that came in the same read. */
	buf_init(&w->bytes, CONTAINER_ANSWER_BYTES_MAX + 2 * FETCH_PIECE_MAX);
	w->node = calloc(1, sizeof(*w->node));
	w->node_now = calloc(1, sizeof(*w->node_now));
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	enum status s = OK;
	if (!w->node || !w->node_now)
		s = err_set(e, E_NOMEM, "watch");
	else if (w->wake_fd < 0)
		s = err_os(e, "eventfd");
	*out = w; /* before the thread starts, as its callbacks use it */
	if (s == OK)
		s = os_thread_start(&w->thread, "pods", run, w, e);
	if (s != OK) {
		*out = NULL;
		watch_free(w);
	}
	return s;
}

void container_watch_stop(struct container_watch *w)
{
	if (!w)
		return;
	atomic_store(&w->stopping, true);
	wake(w);
	pthread_join(w->thread, NULL);
	watch_free(w);
}
