/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that asks engines and Kubernetes, and fills the records (records.h).
 *
 * The thread sleeps until a record is due. It asks without holding the lock. A list from Kubernetes
 * goes into the cache as a whole, so one list answers for all containers. While watch.c (another
 * thread) receives every change from the Kubernetes API, this thread does not ask the API.
 *
 * For containers in a container (kind, docker in docker) the outermost that an engine knows is
 * used: groups inside of it were made by its own processes, and may have any name.
 */
#include "base/hash.h"
#include "base/lock.h"
#include "container/decode.h"
#include "container/kubernetes.h"
#include "container/labels.h"
#include "container/owner.h"
#include "container/peer.h"
#include "container/places.h"
#include "container/records.h"
#include "container/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY_MAX (2 * CONTAINER_ID_MAX)
#define TTL_NS (600 * NS_PER_SEC)
/* Engines are not asked before the watch has its first list, or this time has passed. */
#define WATCH_PATIENCE_NS (4 * NS_PER_SEC)
/* A pod whose retries have become this rare (after about 8 s) is unknown to Kubernetes. */
#define STRANGE_RETRY_NS (8 * NS_PER_SEC)
#define NODE_PROBLEM_MAX 270
#define OWNERS_MAX 1024
#define OWNER_TTL_NS (10 * NS_PER_SEC)
#define ASK_ARENA_BYTES ((size_t)8 << 20)

struct owner {
	uint64_t hash; /* hash of a group's path */
	int64_t until_ns;
	uint32_t user;
};

struct containers {
	struct containers_config config;
	struct container_kubernetes kubernetes;
	struct container_watch *watch; /* NULL: none */
	struct container_places places;
	pthread_t thread;
	bool started;
	struct containers_metrics metrics;
	/* under the lock */
	struct lock lock;
	pthread_cond_t changed;
	bool stopping, settled;
	struct container_records records;
	struct owner owners[OWNERS_MAX];
	char problems[CONTAINER_PLACES_MAX + 3][ERR_TEXT_MAX + 300];
	uint32_t problem_count;
};

static bool is_watched(const struct containers *c)
{
	return c->watch && container_watch_state(c->watch) != CONTAINER_WATCH_REFUSED;
}

/* Makes room for records. If that removes some, the watch lists all again. Under the lock. */
static void make_room(struct containers *c)
{
	uint64_t before = c->records.forgotten;
	container_records_make_room(&c->records);
	if (c->watch && c->records.forgotten != before)
		container_watch_again(c->watch);
}

/* ---- what is wanted ---- */

/* The record's key: the id, or "~1000/ID" for a group of user 1000: the name of a user's group does
 * not prove that it is the container that root's engines know. */
static struct str key_of(const struct procfs_container *x, uint32_t user, char out[KEY_MAX])
{
	bool maybe = x->kind == PROCFS_CONTAINER_MAYBE;
	char whose[16] = "";
	if (user)
		snprintf(whose, sizeof(whose), "~%u/", user);
	int n = snprintf(out, KEY_MAX, "%s%.*s%s%.*s", whose, STR_ARG(x->space), maybe ? "/" : "",
		STR_ARG(x->id));
	return n > 0 && n < KEY_MAX ? str_make(out, (size_t)n) : STR("");
}

static void look_for(struct containers *c, struct str key, const struct container_query *q)
{
	make_room(c);
	struct container_record *r = container_record_find(&c->records, key);
	if (!r)
		r = container_record_new(&c->records, key);
	if (!r)
		return;
	int64_t now = clock_monotonic_ns();
	/* A record that came with a list has no query yet. */
	r->query = *q;
	r->used_ns = r->touched_ns = now;
	if (r->due_ns <= now)
		pthread_cond_broadcast(&c->changed);
}

/* The queries for a path: containers from the outermost on, then the pod. */
struct wanted {
	struct procfs_container containers[PROCFS_CONTAINERS_MAX];
	uint32_t users[PROCFS_CONTAINERS_MAX]; /* users who may have named them; 0: only root */
	size_t count;
	char uid_text[PROCFS_POD_UID_MAX];
	struct str uid;
	uint32_t user; /* the user who may have named the outermost and the pod */
};

static bool is_asked_for(const struct procfs_container *x)
{
	return (x->kind == PROCFS_CONTAINER || x->kind == PROCFS_CONTAINER_MAYBE) &&
	       x->id.len < CONTAINER_ID_MAX && x->space.len < CONTAINER_ID_MAX;
}

/* The owner of the group above, remembered for a while, as many processes are in few groups. Reads
 * files, so it is called without the lock. */
static uint32_t owner_of(struct containers *c, struct str group)
{
	struct str above = str_sub(group, 0, str_rindex(group, '/'));
	uint64_t hash = hash64(above.p, above.len);
	struct owner *place = &c->owners[hash % ARRAY_COUNT(c->owners)];
	int64_t now = clock_monotonic_ns();
	lock_take(&c->lock);
	struct owner o = *place;
	lock_release(&c->lock);
	if (o.hash == hash && now < o.until_ns)
		return o.user;
	o = (struct owner){ hash, now + OWNER_TTL_NS, container_owner(c->places.root, group) };
	lock_take(&c->lock);
	*place = o;
	lock_release(&c->lock);
	return o.user;
}

/* `c` may be NULL. Without the lock. */
static void read_path(struct containers *c, struct str path, struct wanted *w)
{
	w->user = container_owner_by_name(path);
	w->count = procfs_containers(path, w->containers);
	w->uid = procfs_pod_uid(path, w->uid_text);
	/* If no engine is asked about a container, none is asked about the containers inside it. */
	if (w->count && !is_asked_for(&w->containers[0]))
		w->count = 1;
	for (size_t i = 0; i < w->count; i++) {
		const struct str *id = &w->containers[i].id;
		struct str group = str_sub(path, 0, (size_t)(id->p - path.p) + id->len);
		w->users[i] = !w->user && c ? owner_of(c, group) : w->user;
	}
	if (w->count)
		w->user = w->users[0];
	else if (w->uid.len && !w->user && c)
		w->user = owner_of(c, path);
}

static struct str pod_key(struct str uid, char out[KEY_MAX])
{
	int n = snprintf(out, KEY_MAX, "pod/%.*s", STR_ARG(uid));
	return str_make(out, (size_t)n);
}

/* The pod's record; NULL: none. */
static struct container_record *pod_record(struct containers *c, const struct wanted *w)
{
	char key[KEY_MAX];
	return w->uid.len && !w->user ? container_record_find(&c->records, pod_key(w->uid, key))
				      : NULL;
}

static void look_for_all(struct containers *c, const struct wanted *w)
{
	char key[KEY_MAX];
	struct container_query q = { 0 };
	snprintf(q.pod_uid, sizeof(q.pod_uid), "%.*s", STR_ARG(w->uid));
	for (size_t i = 0; i < w->count; i++) {
		const struct procfs_container *x = &w->containers[i];
		if (!is_asked_for(x))
			continue;
		q.kind = x->kind;
		q.user = w->users[i];
		snprintf(q.id, sizeof(q.id), "%.*s", STR_ARG(x->id));
		snprintf(q.space, sizeof(q.space), "%.*s", STR_ARG(x->space));
		look_for(c, key_of(x, w->users[i], key), &q);
	}
	if (!w->uid.len || w->user || !c->kubernetes.peer.address[0])
		return;
	q.is_pod = true;
	q.id[0] = 0;
	look_for(c, pod_key(w->uid, key), &q);
}

/* ---- answers to the agent ---- */

/* Takes the labels that the path gives, without an engine. */
static void put_path(struct container_labels *l, const struct wanted *w)
{
	if (w->uid.len)
		container_put(l, "__meta_kubernetes_pod_uid", w->uid);
	for (size_t i = 0; i < w->count; i++) {
		const struct procfs_container *x = &w->containers[i];
		if (x->kind == PROCFS_LXC)
			container_put(l, "__meta_lxc_container_id", x->id);
		else if (x->kind == PROCFS_BUILDKIT)
			container_put(l, "__meta_docker_build_kit_container_id", x->id);
		else if (x->kind == PROCFS_CONTAINER && w->uid.len)
			container_put(l, "__meta_kubernetes_pod_container_id", x->id);
		else if (str_eq(x->engine, STR("docker")))
			container_put(l, "__meta_docker_container_id", x->id);
		else if (str_eq(x->engine, STR("libpod")))
			container_put(l, "__meta_podman_container_id", x->id);
		else
			continue;
		return; /* the outermost */
	}
}

/* The record of the outermost known container; NULL: none, or one further out is still being asked
 * for. */
static const struct container_record *known_record(struct containers *c, const struct wanted *w)
{
	char key[KEY_MAX];
	for (size_t i = 0; i < w->count; i++) {
		const struct container_record *r = container_record_find(
			&c->records, key_of(&w->containers[i], w->users[i], key));
		if (r && r->state == CONTAINER_KNOWN)
			return r;
		if (r && r->state == CONTAINER_WANTED)
			break;
	}
	const struct container_record *pod = pod_record(c, w);
	return pod && pod->state == CONTAINER_KNOWN ? pod : NULL;
}

enum status containers_find(struct containers *c, struct str cgroup_path, struct arena *a,
	struct container_label **out, uint32_t *out_count)
{
	struct wanted w;
	read_path(c, cgroup_path, &w);
	*out = NULL;
	*out_count = 0;
	if (!w.count && !w.uid.len)
		return OK;
	struct container_labels *l = ARENA_NEW(a, struct container_labels);
	if (!l)
		return arena_status(a);
	container_labels_init(l, a);
	if (c) {
		lock_take(&c->lock);
		look_for_all(c, &w);
		const struct container_record *r = known_record(c, &w);
		if (r)
			container_record_put(&c->records, l, r);
		lock_release(&c->lock);
	}
	/* An engine's labels of a container win over those of its path: outside of the container it
	 * has another id. */
	struct container_labels *own = ARENA_NEW(a, struct container_labels);
	if (!own)
		return arena_status(a);
	container_labels_init(own, a);
	put_path(own, &w);
	for (uint32_t i = 0; i < own->count; i++)
		if (!container_get(l, own->v[i].name.p).len)
			container_put(l, own->v[i].name.p, own->v[i].value);
	*out = l->v;
	*out_count = l->count;
	return OK;
}

uint64_t containers_generation(struct containers *c)
{
	return c ? atomic_load(&c->records.generation) : 0;
}

uint64_t containers_version(struct containers *c, struct str cgroup_path)
{
	struct wanted w;
	char key[KEY_MAX];
	uint64_t version = 0;
	if (!c)
		return 0;
	read_path(c, cgroup_path, &w);
	lock_take(&c->lock);
	look_for_all(c, &w);
	for (size_t i = 0; i < w.count; i++) {
		const struct container_record *r = container_record_find(
			&c->records, key_of(&w.containers[i], w.users[i], key));
		version += r ? r->version : 0;
	}
	const struct container_record *pod = pod_record(c, &w);
	version += pod ? pod->version : 0;
	lock_release(&c->lock);
	return version;
}

/* ---- the thread ---- */

/* Whether the pod is ready or has ended. A pod that has just come to the node changes within
 * seconds: it is looked up again soon, then less and less often. */
static bool is_settled(const struct container_labels *l)
{
	struct str ready = container_get(l, "__meta_kubernetes_pod_ready");
	struct str phase = container_get(l, "__meta_kubernetes_pod_phase");
	return str_eq(ready, STR("true")) || str_eq(phase, STR("Succeeded")) ||
	       str_eq(phase, STR("Failed"));
}

static void take_listed(void *ctx, struct str key, const struct container_labels *l)
{
	struct containers *c = ctx;
	lock_take(&c->lock);
	make_room(c);
	struct container_record *r = container_record_find(&c->records, key);
	/* A sample waited for this record: the next list may be requested soon. */
	if (r && !r->listed)
		c->kubernetes.pause_ns = 0;
	if (!r)
		r = container_record_new(&c->records, key);
	int64_t retry_ns = r ? r->retry_ns : 0;
	if (r && container_record_fill(&c->records, r, l)) {
		r->listed = true;
		if (!is_settled(l))
			container_record_look_again_soon(r, retry_ns);
	} else {
		metric_add(&c->metrics.cut, 1);
	}
	lock_release(&c->lock);
}

/* Takes labels from the watch. */
static void take_watched(void *ctx, struct str key, const struct container_labels *l)
{
	struct containers *c = ctx;
	lock_take(&c->lock);
	make_room(c);
	struct container_record *r = container_record_find(&c->records, key);
	if (!r)
		r = container_record_new(&c->records, key);
	if (r && container_record_fill(&c->records, r, l))
		r->listed = true;
	else
		metric_add(&c->metrics.cut, 1);
	lock_release(&c->lock);
}

static void on_watch_changed(void *ctx)
{
	struct containers *c = ctx;
	lock_take(&c->lock);
	pthread_cond_broadcast(&c->changed);
	lock_release(&c->lock);
}

static void ask_kubernetes(struct containers *c)
{
	const struct container_sink sink = { take_listed, c };
	struct err e = { 0 };
	int64_t before = c->kubernetes.listed_ns;
	enum status s = container_kubernetes_list(&c->kubernetes, &sink, &e);
	if (c->kubernetes.listed_ns == before)
		return; /* not now */
	metric_add(&c->metrics.asked, 1);
	metric_add(s == OK ? &c->metrics.answered : &c->metrics.failed, 1);
}

/* Whether Kubernetes knows the record: by a new list, or by an earlier one if there is no new
 * one. */
static bool is_listed(struct containers *c, struct str key)
{
	lock_take(&c->lock);
	struct container_record *r = container_record_find(&c->records, key);
	bool listed = !r || r->listed;
	if (r && r->listed && is_watched(c)) /* the watch would have told of a change */
		r->due_ns = clock_monotonic_ns() + c->config.ttl_ns;
	else if (r && r->listed && r->due_ns <= clock_monotonic_ns())
		container_record_nobody(&c->records, r);
	lock_release(&c->lock);
	return listed;
}

/* Takes an engine's answer, under the lock. */
static void take_answer(struct containers *c, struct container_record *r,
	const struct container_query *q, const struct container_labels *l)
{
	int64_t retry_ns = r->retry_ns;
	if (!container_record_fill(&c->records, r, l) || !q->pod_uid[0] ||
		!c->kubernetes.peer.address[0] || is_watched(c))
		return;
	container_record_look_again_soon(r, retry_ns); /* Kubernetes will have more labels later */
}

static void ask(struct containers *c, struct str key, const struct container_query *q)
{
	if (c->kubernetes.peer.address[0] && !is_watched(c) && !q->user &&
		q->kind != PROCFS_CONTAINER_MAYBE)
		ask_kubernetes(c);
	if (is_listed(c, key))
		return;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, ASK_ARENA_BYTES);
	struct container_labels *l = ARENA_NEW(&a, struct container_labels);
	if (!l)
		return;
	container_labels_init(l, &a);
	enum status s =
		q->is_pod ? E_NOTFOUND : container_places_ask(&c->places, q, l, &c->metrics);
	lock_take(&c->lock);
	make_room(c);
	struct container_record *r = container_record_find(&c->records, key);
	/* Kubernetes may have given more labels meanwhile: these stay. */
	if (r && s == OK && !r->listed)
		take_answer(c, r, q, l);
	else if (r && s != OK)
		container_record_nobody(&c->records, r);
	lock_release(&c->lock);
}

static void note_problem_text(struct containers *c, const char *address, const char *problem)
{
	char line[sizeof(c->problems[0])];
	if (!problem[0] || c->problem_count == ARRAY_COUNT(c->problems))
		return;
	/* Errors of the network begin with the address already. */
	bool is_named = str_starts(str_of(problem), str_of(address));
	snprintf(line, sizeof(line), "%s%s%s", is_named ? "" : address, is_named ? "" : ": ",
		problem);
	memcpy(c->problems[c->problem_count++], line, sizeof(line));
}

static void note_problem(struct containers *c, const struct container_peer *p)
{
	note_problem_text(c, p->address, p->problem);
}

/* The uid of a pod that has control groups on this host, if Kubernetes has listed neither it for a
 * while nor any other pod of this host; NULL: none. */
static const char *strange_pod(const struct containers *c)
{
	const char *uid = NULL;
	bool is_told = c->watch && container_watch_state(c->watch) == CONTAINER_WATCH_GOES_ON;
	if (!is_watched(c))
		is_told = c->kubernetes.listed_ns && !c->kubernetes.peer.problem[0];
	for (size_t i = 0; is_told && i < c->records.all.len; i++) {
		const struct container_record *r = &c->records.all.v[i];
		if (r->listed && r->used_ns)
			return NULL;
		if (r->query.is_pod && r->state == CONTAINER_NOBODY &&
			r->retry_ns >= STRANGE_RETRY_NS)
			uid = r->query.pod_uid;
	}
	return uid;
}

/* Notes that --node or the kubelet's address may be wrong: a server that is asked for another
 * node's pods returns no error. */
static void note_node(struct containers *c)
{
	char text[NODE_PROBLEM_MAX] = "";
	const struct container_kubernetes *k = &c->kubernetes;
	bool is_unknown =
		is_watched(c) ? container_watch_node_is_unknown(c->watch) : k->node_is_unknown;
	const char *uid = strange_pod(c);
	if (k->kubelet && uid)
		snprintf(text, sizeof(text),
			"it tells of none of the pods here (as that of uid %.36s): is this the "
			"kubelet of this host?",
			uid);
	else if (is_unknown)
		snprintf(text, sizeof(text),
			"it knows no node \"%.64s\", so that pods have no labels: --node must be "
			"the "
			"name that Kubernetes has for this host",
			k->node);
	else if (uid)
		snprintf(text, sizeof(text),
			"it tells of none of the pods here (as that of uid %.36s): --node is "
			"\"%.64s\", and must be the name that Kubernetes has for this host",
			uid, k->node);
	note_problem_text(c, k->peer.address, text);
}

/* Under the lock. */
static void note_state(struct containers *c)
{
	metric_set(&c->metrics.unknown, container_records_unknown(&c->records));
	metric_set(&c->metrics.known, c->records.all.len);
	c->problem_count = 0;
	char watch_problem[ERR_TEXT_MAX] = "";
	if (c->watch)
		container_watch_problem(c->watch, watch_problem);
	note_problem_text(c, c->kubernetes.peer.address, watch_problem);
	note_problem(c, &c->kubernetes.peer);
	if (c->kubernetes.peer.address[0])
		note_node(c);
	for (uint32_t i = 0; i < c->places.count; i++)
		note_problem(c, &c->places.v[i].peer);
}

static void wait_until(struct containers *c, int64_t wake_ns)
{
	const struct timespec at = { .tv_sec = wake_ns / NS_PER_SEC,
		.tv_nsec = wake_ns % NS_PER_SEC };
	(void)lock_wait_until(&c->changed, &c->lock, &at);
}

/* Called for every process that runs at the start. */
static bool look_at_process(void *ctx, int pid)
{
	struct containers *c = ctx;
	CLEANUP(arena_deinit) struct arena a;
	struct str path;
	arena_init(&a, 65536);
	if (procfs_cgroup(pid, &a, &path, NULL) != OK)
		return true;
	struct wanted w;
	read_path(c, path, &w);
	lock_take(&c->lock);
	look_for_all(c, &w);
	bool go_on = !c->stopping;
	lock_release(&c->lock);
	return go_on;
}

static void *run(void *ctx)
{
	struct containers *c = ctx;
	(void)!procfs_pids(look_at_process, c, NULL);
	lock_take(&c->lock);
	int64_t until = clock_monotonic_ns() + WATCH_PATIENCE_NS;
	while (c->watch && !c->stopping && clock_monotonic_ns() < until &&
		container_watch_state(c->watch) == CONTAINER_WATCH_BEGINS)
		wait_until(c, until);
	lock_release(&c->lock);
	if (c->kubernetes.peer.address[0] && !is_watched(c))
		ask_kubernetes(c);
	lock_take(&c->lock);
	while (!c->stopping) {
		int64_t wake_ns;
		const struct container_record *r =
			container_records_next_due(&c->records, &wake_ns);
		if (!r) {
			c->settled = true;
			pthread_cond_broadcast(&c->changed);
			note_state(c);
			wait_until(c, wake_ns);
			continue;
		}
		const struct container_query q = r->query;
		char key[KEY_MAX];
		struct str text = strtab_get(&c->records.texts, r->key);
		text = str_sub(text, 0, sizeof(key));
		memcpy(key, text.p, text.len);
		lock_release(&c->lock);
		ask(c, str_make(key, text.len), &q);
		lock_take(&c->lock);
	}
	lock_release(&c->lock);
	return NULL;
}

/* ---- life ---- */

/* The kubelet cannot be watched. */
static enum status start_watch(struct containers *c, struct err *e)
{
	const struct container_watch_config watch = {
		.containers = &c->config,
		.sink = { take_watched, c },
		.changed = on_watch_changed,
		.metrics = &c->metrics,
	};
	if (!c->kubernetes.peer.address[0] || c->kubernetes.kubelet)
		return OK;
	return container_watch_start(&watch, &c->watch, e);
}

enum status containers_new(
	const struct containers_config *config, struct containers **out, struct err *e)
{
	struct containers *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	if (!c)
		return err_set(e, E_NOMEM, "containers");
	c->config = *config;
	if (c->config.ttl_ns <= 0)
		c->config.ttl_ns = TTL_NS;
	lock_init(&c->lock, LOCK_CONTAINERS);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	enum status s = container_records_init(&c->records, c->config.ttl_ns, &c->metrics);
	container_kubernetes_init(&c->kubernetes, config);
	container_places_init(&c->places, config);
	if (s == OK)
		s = start_watch(c, e);
	if (s == OK)
		s = os_thread_start(&c->thread, "containers", run, c, e);
	if (s != OK) {
		containers_free(c);
		return s;
	}
	c->started = true;
	*out = c;
	return OK;
}

void containers_free(struct containers *c)
{
	if (!c)
		return;
	if (c->started) {
		lock_take(&c->lock);
		c->stopping = true;
		pthread_cond_broadcast(&c->changed);
		lock_release(&c->lock);
		pthread_join(c->thread, NULL);
	}
	container_watch_stop(c->watch);
	container_places_deinit(&c->places);
	container_peer_close(&c->kubernetes.peer);
	container_records_deinit(&c->records);
	pthread_cond_destroy(&c->changed);
	lock_destroy(&c->lock);
	free(c);
}

void containers_settle(struct containers *c, int64_t timeout_ns)
{
	int64_t until = clock_monotonic_ns() + timeout_ns;
	lock_take(&c->lock);
	while (!c->settled && clock_monotonic_ns() < until)
		wait_until(c, until);
	lock_release(&c->lock);
}

void containers_write_problems(struct containers *c, struct buf *out)
{
	lock_take(&c->lock);
	for (uint32_t i = 0; i < c->problem_count; i++)
		buf_printf(out, "%s\n", c->problems[i]);
	lock_release(&c->lock);
}

void containers_write_metrics(struct containers *c, struct buf *out)
{
	static const struct metric_def defs[] = { CONTAINERS_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &c->metrics.known, ARRAY_COUNT(defs));
}
