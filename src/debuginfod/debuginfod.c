/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of build ids and a thread. The body of an answer goes to a file of another name, which is
 * renamed when it is whole; what a run that was killed has left is removed at the start. Misses are
 * remembered in a table by the hash of their build id, in which a later one takes the place of an
 * earlier one: forgetting costs one more question.
 */
#include "debuginfod/debuginfod.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "debuginfod/cache.h"
#include "fetch/fetch.h"
#include "objfile/objfile.h"
#include "os/os.h"

#define ID_MAX 128
#define ID_MIN 8

struct remote {
	char url[DEBUGINFOD_URL_MAX];
	struct fetch *fetch;
	int64_t not_before_ns; /* it failed */
	int64_t backoff_ns;
};

struct wanted {
	char build_id[ID_MAX + 1];
	char file[ID_MAX + 1];
};

struct miss {
	uint64_t hash;
	int64_t until_ns;
};

struct debuginfod {
	struct debuginfod_config config;
	char dir[PATH_MAX / 2];
	struct remote remotes[DEBUGINFOD_SERVERS_MAX];
	uint32_t remote_count;
	struct lock lock;
	pthread_cond_t changed;
	struct wanted queue[DEBUGINFOD_WAITING_MAX]; /* the lock's, as what follows */
	uint32_t queue_len;
	bool stop;
	struct miss misses[DEBUGINFOD_MISSES_MAX];
	pthread_t thread;
	bool runs;
	int stop_fd;
	struct debuginfod_metrics metrics;
};

/* ---- servers ---- */

static enum status add_server(struct debuginfod *d, struct str text, struct err *e)
{
	struct remote *r = &d->remotes[d->remote_count];
	if (text.len == 0 || str_starts(text, STR("ima:")))
		return OK;
	if (d->remote_count == DEBUGINFOD_SERVERS_MAX)
		return err_set(
			e, E_LIMIT, "more than %d debuginfod servers", DEBUGINFOD_SERVERS_MAX);
	while (str_ends(text, STR("/")))
		text.len--;
	if (str_ends(text, STR("/buildid")))
		text.len -= strlen("/buildid");
	bool http = str_starts(text, STR("http://")) || str_starts(text, STR("https://"));
	bool other = !http && str_index(text, ':') < text.len &&
		     str_starts(str_sub(text, str_index(text, ':'), 3), STR("://"));
	if (other || text.len > sizeof(r->url) - 200)
		return err_set(e, E_INVALID, "%.*s is not an http:// or https:// address",
			STR_ARG(str_sub(text, 0, 80)));
	snprintf(r->url, sizeof(r->url), "%s%.*s", http ? "" : "https://", STR_ARG(text));
	d->remote_count++;
	const struct fetch_config c = { .follow_redirects = true };
	enum status s = fetch_new(&c, &r->fetch, e);
	if (s != OK)
		return s;
	fetch_interrupt(r->fetch, d->stop_fd, 0);
	return fetch_header(r->fetch, "user-agent", "firn/" FIRN_VERSION, e);
}

static enum status add_servers(struct debuginfod *d, struct err *e)
{
	enum status s = OK;
	for (const char *const *v = d->config.servers; s == OK && *v; v++) {
		struct str rest = str_of(*v), one;
		while (s == OK && str_split(&rest, ' ', &one))
			s = add_server(d, one, e);
	}
	if (s == OK && d->remote_count == 0)
		s = err_set(e, E_INVALID, "no debuginfod server is named");
	return s;
}

/* ---- one file ---- */

static bool is_elf(int fd)
{
	char magic[4];
	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, "\177ELF", 4) == 0;
}

/* All its sections are there, and one of them has names. */
static bool has_names(const struct objfile *obj)
{
	uint32_t count;
	bool found = false;
	const struct objfile_section *v = objfile_sections(obj, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (v[i].type == SHT_NOBITS || v[i].type == SHT_NULL)
			continue;
		if (v[i].offset > objfile_size(obj) || v[i].size > objfile_size(obj) - v[i].offset)
			return false;
		found |= v[i].size &&
			 (v[i].type == SHT_SYMTAB || str_starts(v[i].name, STR(".debug_")) ||
				 str_starts(v[i].name, STR(".zdebug_")));
	}
	return found;
}

/* A file that is kept answers for its build id from then on, so it has to be of use. E_UNAVAILABLE:
 * no ELF file at all, as the page of a proxy; E_CORRUPT: another one, or one that is not whole. */
static enum status check_file(
	struct debuginfod *d, const struct remote *r, int fd, const char *id, struct err *e)
{
	struct objfile *obj;
	if (!is_elf(fd))
		return err_set(e, E_UNAVAILABLE, "%s sent what is no ELF file", r->url);
	CLEANUP(fd_cleanup) int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return err_os(e, "copy a descriptor");
	bool ok = objfile_open_fd(copy, id, &obj, e) == OK;
	if (ok) {
		(void)STEAL_FD(copy);
		ok = strcmp(objfile_build_id(obj), id) == 0 && has_names(obj);
		objfile_close(obj);
	}
	if (ok)
		return OK;
	metric_add(&d->metrics.unusable, 1);
	return err_set(e, E_CORRUPT, "%s sent another file, or a part of one", r->url);
}

static enum status take_body(
	struct debuginfod *d, struct remote *r, int fd, const char *path, struct err *e)
{
	CLEANUP(buf_deinit) struct buf piece;
	int64_t until = clock_monotonic_ns() + d->config.timeout_ns;
	uint64_t bytes = 0, most = MIN(DEBUGINFOD_FILE_BYTES_MAX, d->config.bytes_max);
	bool end = false;
	enum status s = OK;
	buf_init(&piece, 2 * FETCH_PIECE_MAX);
	while (s == OK && !end) {
		int64_t left = until - clock_monotonic_ns();
		if (left <= 0)
			return err_set(e, E_TIMEOUT, "%s takes too long", r->url);
		buf_clear(&piece);
		s = fetch_more(r->fetch, d->stop_fd, left, &piece, &end, e);
		bytes += piece.len;
		if (s == OK && bytes > most)
			s = err_set(e, E_LIMIT, "a file of more than %llu bytes",
				(unsigned long long)most);
		if (s == OK)
			s = os_write_full(fd, piece.data, piece.len, path, e);
	}
	metric_add(&d->metrics.fetched, bytes);
	return s;
}

/* OK: the file is in its place; E_NOTFOUND: this server has none; E_CORRUPT: none of use. */
static enum status fetch_from(struct debuginfod *d, struct remote *r, const char *id, struct err *e)
{
	char url[DEBUGINFOD_URL_MAX + 200], path[PATH_MAX];
	int http_status = 0;
	snprintf(url, sizeof(url), "%s/buildid/%s/debuginfo", r->url, id);
	enum status s = fetch_begin(r->fetch, url, d->config.timeout_ns, &http_status, e);
	if (s != OK)
		return s;
	if (http_status == 404)
		return err_set(e, E_NOTFOUND, "%s has no such file", r->url);
	if (http_status != 200)
		return err_set(e, E_UNAVAILABLE, "%s: HTTP status %d", r->url, http_status);
	s = debuginfod_cache_temporary(d->dir, path, e);
	if (s != OK)
		return s;
	CLEANUP(fd_cleanup)
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_os(e, "%s", path);
	s = take_body(d, r, fd, path, e);
	if (s == OK)
		s = check_file(d, r, fd, id, e);
	if (s == OK)
		s = debuginfod_cache_keep(d->dir, path, id, e);
	if (s != OK)
		(void)unlink(path);
	return s;
}

/* In their order; those that failed lately are not asked. */
static enum status fetch_file(struct debuginfod *d, const char *id, struct err *e)
{
	enum status worst = E_NOTFOUND;
	for (uint32_t i = 0; i < d->remote_count; i++) {
		struct remote *r = &d->remotes[i];
		if (clock_monotonic_ns() < r->not_before_ns) {
			worst = E_UNAVAILABLE;
			continue;
		}
		enum status s = fetch_from(d, r, id, e);
		if (s == OK || s == E_CANCELED || s == E_NOSPACE) /* our own disk */
			return s;
		if (s == E_NOTFOUND || s == E_LIMIT || s == E_CORRUPT) {
			r->backoff_ns = 0;
			continue;
		}
		worst = E_UNAVAILABLE;
		r->backoff_ns = r->backoff_ns ? MIN(2 * r->backoff_ns, DEBUGINFOD_BACKOFF_MAX_NS)
					      : DEBUGINFOD_BACKOFF_MIN_NS;
		r->not_before_ns = clock_monotonic_ns() + r->backoff_ns;
	}
	return worst;
}

/* ---- the thread ---- */

static struct miss *miss_of(struct debuginfod *d, const char *id, uint64_t *out_hash)
{
	*out_hash = hash64(id, strlen(id));
	return &d->misses[*out_hash % DEBUGINFOD_MISSES_MAX];
}

static void handle(struct debuginfod *d, const struct wanted *w)
{
	struct err e = { 0 };
	uint64_t hash;
	enum status s = debuginfod_cache_has(d->dir, w->file) ? OK : fetch_file(d, w->file, &e);
	if (s == E_CANCELED)
		return;
	pthread_mutex_lock(&d->lock);
	struct miss *m = miss_of(d, w->file, &hash);
	int64_t wait = s == E_NOTFOUND ? DEBUGINFOD_MISS_NS : DEBUGINFOD_FAILED_NS;
	*m = (struct miss){ hash, clock_monotonic_ns() + wait };
	pthread_mutex_unlock(&d->lock);
	metric_add(s == OK           ? &d->metrics.found
		   : s == E_NOTFOUND ? &d->metrics.missing
				     : &d->metrics.failed,
		1);
	if (s != OK)
		return;
	uint64_t evicted = 0;
	metric_set(&d->metrics.bytes,
		debuginfod_cache_trim(d->dir, d->config.bytes_max, w->file, &evicted));
	metric_add(&d->metrics.evicted, evicted);
	d->config.found(d->config.ctx, w->build_id, w->file);
}

static void *run(void *ctx)
{
	struct debuginfod *d = ctx;
	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		if (d->queue_len == 0) {
			pthread_cond_wait(&d->changed, &d->lock);
			continue;
		}
		struct wanted w = d->queue[0];
		memmove(d->queue, d->queue + 1, --d->queue_len * sizeof(w));
		metric_set(&d->metrics.waiting, d->queue_len);
		pthread_mutex_unlock(&d->lock);
		handle(d, &w);
		pthread_mutex_lock(&d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static bool is_id(const char *id)
{
	size_t len = strlen(id);
	return len >= ID_MIN && len <= ID_MAX && strspn(id, "0123456789abcdef") == len;
}

void debuginfod_want(struct debuginfod *d, const char *build_id, const char *wanted)
{
	uint64_t hash;
	if (!is_id(build_id) || !is_id(wanted))
		return;
	pthread_mutex_lock(&d->lock);
	const struct miss *m = miss_of(d, wanted, &hash);
	bool known = m->hash == hash && clock_monotonic_ns() < m->until_ns;
	for (uint32_t i = 0; i < d->queue_len && !known; i++)
		known = strcmp(d->queue[i].file, wanted) == 0 &&
			strcmp(d->queue[i].build_id, build_id) == 0;
	if (!known && d->queue_len < DEBUGINFOD_WAITING_MAX) {
		struct wanted *w = &d->queue[d->queue_len++];
		snprintf(w->build_id, sizeof(w->build_id), "%s", build_id);
		snprintf(w->file, sizeof(w->file), "%s", wanted);
		metric_set(&d->metrics.waiting, d->queue_len);
		pthread_cond_signal(&d->changed);
	} else if (!known) {
		metric_add(&d->metrics.dropped, 1);
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- up and down ---- */

static enum status start(struct debuginfod *d, struct err *e)
{
	uint64_t evicted = 0;
	if (strlen(d->config.dir) >= sizeof(d->dir))
		return err_set(e, E_INVALID, "the path of the cache is too long");
	snprintf(d->dir, sizeof(d->dir), "%s", d->config.dir);
	d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->stop_fd < 0)
		return err_os(e, "eventfd");
	enum status s = add_servers(d, e);
	if (s == OK)
		s = os_make_dirs(d->dir, e);
	if (s != OK)
		return s;
	metric_set(&d->metrics.bytes,
		debuginfod_cache_trim(d->dir, d->config.bytes_max, NULL, &evicted));
	s = os_thread_start(&d->thread, "debuginfod", run, d, e);
	d->runs = s == OK;
	return s;
}

enum status debuginfod_open(
	const struct debuginfod_config *c, struct debuginfod **out, struct err *e)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, E_NOMEM, "debuginfod");
	d->config = *c;
	d->stop_fd = -1;
	lock_init(&d->lock, LOCK_DEBUGINFOD);
	pthread_cond_init(&d->changed, NULL);
	enum status s = start(d, e);
	if (s != OK) {
		debuginfod_close(d);
		return s;
	}
	*out = d;
	return OK;
}

void debuginfod_stop(struct debuginfod *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	if (d->runs) {
		(void)eventfd_write(d->stop_fd, 1);
		pthread_join(d->thread, NULL);
		d->runs = false;
	}
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	debuginfod_stop(d);
	for (uint32_t i = 0; i < d->remote_count; i++)
		fetch_free(d->remotes[i].fetch);
	fd_cleanup(&d->stop_fd);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	free(d);
}

void debuginfod_write_metrics(struct debuginfod *d, struct buf *out)
{
	static const struct metric_def defs[] = { DEBUGINFOD_METRICS(METRIC_DEF) };
	metrics_write(out, defs, (const metric_value *)&d->metrics, ARRAY_COUNT(defs));
}
