/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread takes requests from a queue of build ids, and before these from a shorter queue of
 * sources. The body of an answer is written to a file with another name, which is renamed when it
 * is complete; such files of a killed process are removed at the start. Misses are remembered in a
 * table by the hash of their name, in which a later miss replaces an earlier one: a forgotten miss
 * costs one more request.
 *
 * The name of a source in the cache has a hash of its path. The file begins with the path itself
 * and a NUL, so that another path of this hash is not taken for it.
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

struct source {
	char build_id[ID_MAX + 1];
	char path[DEBUGINFOD_SOURCE_PATH_MAX + 1]; /* absolute, without ".." */
};

/* A file to get. */
struct file {
	const char *id;
	const char *source; /* its path; NULL: the debug file */
	char suffix[40];    /* in the cache */
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
	struct wanted
		queue[DEBUGINFOD_WAITING_MAX]; /* protected by `lock`, like the fields below */
	uint32_t queue_len;
	struct source sources[DEBUGINFOD_SOURCES_MAX]; /* the first one may be being fetched */
	uint32_t source_count, waiters;
	pthread_cond_t source_done;
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
	if (other || text.len > sizeof(r->url) - 200) {
		size_t at = str_rindex(text, '@'); /* a password may be before it */
		text = at < text.len ? str_sub(text, at + 1, text.len) : text;
		return err_set(e, E_INVALID, "%.*s is not an http:// or https:// address",
			STR_ARG(str_sub(text, 0, 80)));
	}
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

/* Whether the file has all its sections, and one of them has names. */
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

/* Checks a file before it is kept and used for its build id. E_UNAVAILABLE: it is not an ELF file
 * (perhaps a proxy's page). E_CORRUPT: it has another build id, or is incomplete. */
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

/* Checks that the body, which take_body() has written after the head, is text. */
static enum status check_source(
	struct debuginfod *d, const struct remote *r, int fd, size_t head, struct err *e)
{
	CLEANUP(buf_deinit) struct buf whole;
	buf_init(&whole, head + (size_t)DEBUGINFOD_SOURCE_BYTES_MAX);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_os(e, "read a source again");
	enum status s = os_read_fd(fd, "a source", &whole, e);
	if (s != OK || whole.len <= head || !memchr(whole.data + head, 0, whole.len - head))
		return s;
	metric_add(&d->metrics.unusable, 1);
	return err_set(e, E_CORRUPT, "%s sent what is no text", r->url);
}

static enum status take_body(struct debuginfod *d, struct remote *r, int fd, uint64_t most,
	const char *path, struct err *e)
{
	CLEANUP(buf_deinit) struct buf piece;
	int64_t until = clock_monotonic_ns() + d->config.timeout_ns;
	uint64_t bytes = 0;
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

/* Writes URLs like elfutils' clients: all other bytes are escaped with '%', but slashes are not. */
static void put_url(const struct remote *r, const struct file *f, struct buf *b)
{
	buf_printf(b, "%s/buildid/%s/%s", r->url, f->id, f->source ? "source" : "debuginfo");
	for (const char *c = f->source; c && *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= '0' && *c <= '9') || strchr("-._~/", *c);
		buf_printf(b, plain ? "%c" : "%%%02X", (unsigned char)*c);
	}
	buf_u8(b, 0);
}

/* OK: this server has it, and its body comes next. */
static enum status ask(struct debuginfod *d, struct remote *r, const struct file *f, struct err *e)
{
	CLEANUP(buf_deinit) struct buf url;
	int http_status = 0;
	buf_init(&url, FETCH_URL_MAX);
	put_url(r, f, &url);
	enum status s = buf_status(&url);
	if (s == OK)
		s = fetch_begin(
			r->fetch, (const char *)url.data, d->config.timeout_ns, &http_status, e);
	if (s != OK)
		return s;
	if (http_status == 404 || (http_status == 400 && f->source))
		return err_set(e, E_NOTFOUND, "%s has no such file", r->url);
	if (http_status != 200)
		return err_set(e, E_UNAVAILABLE, "%s: HTTP status %d", r->url, http_status);
	if (f->source && str_starts(str_of(fetch_content_type(r->fetch)), STR("text/html")))
		return err_set(e, E_UNAVAILABLE, "%s sent a page, not a source", r->url);
	return OK;
}

static enum status take_file(struct debuginfod *d, struct remote *r, const struct file *f, int fd,
	const char *path, struct err *e)
{
	uint64_t most = MIN(f->source ? DEBUGINFOD_SOURCE_BYTES_MAX : DEBUGINFOD_FILE_BYTES_MAX,
		d->config.bytes_max);
	size_t head = f->source ? strlen(f->source) + 1 : 0;
	enum status s = head ? os_write_full(fd, f->source, head, path, e) : OK;
	if (s == OK)
		s = take_body(d, r, fd, most, path, e);
	if (s == OK)
		s = head ? check_source(d, r, fd, head, e) : check_file(d, r, fd, f->id, e);
	return s;
}

/* OK: the file is in the cache. E_NOTFOUND: this server does not have it. E_CORRUPT: it is not
 * usable. */
static enum status fetch_from(
	struct debuginfod *d, struct remote *r, const struct file *f, struct err *e)
{
	char path[PATH_MAX];
	enum status s = ask(d, r, f, e);
	if (s == OK)
		s = debuginfod_cache_temporary(d->dir, path, e);
	if (s != OK)
		return s;
	CLEANUP(fd_cleanup)
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_os(e, "%s", path);
	s = take_file(d, r, f, fd, path, e);
	if (s == OK)
		s = debuginfod_cache_keep(d->dir, path, f->id, f->suffix, e);
	if (s != OK)
		(void)unlink(path);
	return s;
}

/* Asks the servers in order, without those that failed recently. */
static enum status fetch_file(struct debuginfod *d, const struct file *f, struct err *e)
{
	enum status worst = E_NOTFOUND;
	for (uint32_t i = 0; i < d->remote_count; i++) {
		struct remote *r = &d->remotes[i];
		if (clock_monotonic_ns() < r->not_before_ns) {
			worst = E_UNAVAILABLE;
			continue;
		}
		enum status s = fetch_from(d, r, f, e);
		if (s == OK || s == E_CANCELED || s == E_NOSPACE) /* this host's disk */
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

static struct file debug_file(const char *id)
{
	return (struct file){ .id = id, .suffix = DEBUGINFOD_CACHE_DEBUG };
}

static struct file source_file(const struct source *w)
{
	struct file f = { .id = w->build_id, .source = w->path };
	snprintf(f.suffix, sizeof(f.suffix), ".%016llx.source",
		(unsigned long long)hash64(w->path, strlen(w->path)));
	return f;
}

static struct miss *miss_of(struct debuginfod *d, const struct file *f, uint64_t *out_hash)
{
	char name[ID_MAX + sizeof(f->suffix)];
	int n = snprintf(name, sizeof(name), "%s%s", f->id, f->suffix);
	*out_hash = hash64(name, (size_t)n);
	return &d->misses[*out_hash % DEBUGINFOD_MISSES_MAX];
}

/* With the lock held: whether recently no server had the file or could be asked. */
static bool is_missing(struct debuginfod *d, const struct file *f)
{
	uint64_t hash;
	const struct miss *m = miss_of(d, f, &hash);
	return m->hash == hash && clock_monotonic_ns() < m->until_ns;
}

static void count_result(struct debuginfod *d, enum status s)
{
	metric_add(s == OK           ? &d->metrics.found
		   : s == E_NOTFOUND ? &d->metrics.missing
				     : &d->metrics.failed,
		1);
}

/* Gets the file. OK: it is in the cache. */
static enum status get(struct debuginfod *d, const struct file *f)
{
	struct err e = { 0 };
	uint64_t hash, evicted = 0;
	char path[PATH_MAX];
	enum status s = debuginfod_cache_has(d->dir, f->id, f->suffix) ? OK : fetch_file(d, f, &e);
	if (s == E_CANCELED)
		return s;
	lock_take(&d->lock);
	struct miss *m = miss_of(d, f, &hash);
	int64_t wait = s == E_NOTFOUND ? DEBUGINFOD_MISS_NS : DEBUGINFOD_FAILED_NS;
	*m = (struct miss){ hash, clock_monotonic_ns() + wait };
	lock_release(&d->lock);
	count_result(d, s);
	if (s == OK)
		s = debuginfod_cache_path(d->dir, f->id, f->suffix, path, &e);
	if (s != OK)
		return s;
	metric_set(&d->metrics.bytes,
		debuginfod_cache_trim(d->dir, d->config.bytes_max, path, &evicted));
	metric_add(&d->metrics.evicted, evicted);
	return OK;
}

/* Fetches the first source. Called with the lock held, which is released meanwhile. */
static void next_source(struct debuginfod *d)
{
	struct source w = d->sources[0];
	lock_release(&d->lock);
	struct file f = source_file(&w);
	(void)get(d, &f);
	lock_take(&d->lock);
	memmove(d->sources, d->sources + 1, --d->source_count * sizeof(w));
	pthread_cond_broadcast(&d->source_done);
}

/* The same. */
static void next_debug_file(struct debuginfod *d)
{
	struct wanted w = d->queue[0];
	memmove(d->queue, d->queue + 1, --d->queue_len * sizeof(w));
	metric_set(&d->metrics.waiting, d->queue_len);
	lock_release(&d->lock);
	struct file f = debug_file(w.file);
	if (get(d, &f) == OK)
		d->config.found(d->config.ctx, w.build_id, w.file);
	lock_take(&d->lock);
}

static void *run(void *ctx)
{
	struct debuginfod *d = ctx;
	lock_take(&d->lock);
	while (!d->stop) {
		if (d->source_count)
			next_source(d);
		else if (d->queue_len)
			next_debug_file(d);
		else
			lock_wait(&d->changed, &d->lock);
	}
	lock_release(&d->lock);
	return NULL;
}

static bool is_id(const char *id)
{
	size_t len = strlen(id);
	return len >= ID_MIN && len <= ID_MAX && strspn(id, "0123456789abcdef") == len;
}

void debuginfod_want(struct debuginfod *d, const char *build_id, const char *wanted)
{
	if (!is_id(build_id) || !is_id(wanted))
		return;
	const struct file f = debug_file(wanted);
	lock_take(&d->lock);
	bool known = is_missing(d, &f);
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
	lock_release(&d->lock);
}

/* ---- sources ---- */

/* Resolves "." and "..", which servers and proxies refuse or resolve, so that the address stays
 * below "source". elfutils' server accepts both forms. */
static bool resolve(struct str path, char out[DEBUGINFOD_SOURCE_PATH_MAX + 1])
{
	struct str part;
	size_t len = 0;
	while (str_split(&path, '/', &part)) {
		if (part.len == 0 || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR(".."))) {
			if (len == 0)
				return false;
			while (out[--len] != '/')
				;
			continue;
		}
		out[len++] = '/';
		memcpy(out + len, part.p, part.len);
		len += part.len;
	}
	out[len] = 0;
	return len > 0;
}

static bool take_source(struct str build_id, struct str path, struct source *out)
{
	if (build_id.len > ID_MAX || path.len > DEBUGINFOD_SOURCE_PATH_MAX ||
		!str_starts(path, STR("/")) || memchr(path.p, 0, path.len) ||
		!resolve(path, out->path))
		return false;
	snprintf(out->build_id, sizeof(out->build_id), "%.*s", STR_ARG(build_id));
	return strlen(out->build_id) == build_id.len && is_id(out->build_id);
}

static enum status read_source(
	struct debuginfod *d, const struct file *f, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf whole;
	char path[PATH_MAX];
	size_t head = strlen(f->source) + 1;
	buf_init(&whole, head + (size_t)DEBUGINFOD_SOURCE_BYTES_MAX);
	enum status s = debuginfod_cache_path(d->dir, f->id, f->suffix, path, e);
	if (s == OK)
		s = os_read_file(path, &whole, e);
	if (s == OK && (whole.len < head || memcmp(whole.data, f->source, head) != 0))
		return err_set(e, E_NOTFOUND, "no source");
	if (s != OK)
		return s;
	buf_str(out, str_sub(buf_view(&whole), head, whole.len));
	return buf_status(out) == OK ? OK : err_set(e, buf_status(out), "a source is too long");
}

/* With the lock held. */
static bool is_wanted(const struct debuginfod *d, const struct source *w)
{
	for (uint32_t i = 0; i < d->source_count; i++)
		if (strcmp(d->sources[i].path, w->path) == 0 &&
			strcmp(d->sources[i].build_id, w->build_id) == 0)
			return true;
	return false;
}

static void want_source(struct debuginfod *d, const struct source *w)
{
	if (d->source_count < DEBUGINFOD_SOURCES_MAX) {
		d->sources[d->source_count++] = *w;
		pthread_cond_signal(&d->changed);
	} else {
		metric_add(&d->metrics.dropped, 1);
	}
}

/* Waits for a source. False: it is still unknown whether there is one. */
static bool await_source(
	struct debuginfod *d, const struct source *w, const struct file *f, int64_t until_ns)
{
	const struct timespec at = { until_ns / NS_PER_SEC, until_ns % NS_PER_SEC };
	lock_take(&d->lock);
	if (!is_missing(d, f) && !is_wanted(d, w))
		want_source(d, w);
	if (d->waiters < DEBUGINFOD_WAITERS_MAX) {
		d->waiters++;
		while (!d->stop && is_wanted(d, w) &&
			lock_wait_until(&d->source_done, &d->lock, &at) == 0)
			;
		d->waiters--;
	}
	bool known = is_missing(d, f);
	lock_release(&d->lock);
	return known;
}

enum status debuginfod_source(struct debuginfod *d, struct str build_id, struct str path,
	int64_t until_ns, struct buf *out, struct err *e)
{
	struct source w;
	if (!take_source(build_id, path, &w))
		return err_set(e, E_NOTFOUND, "no source that a debuginfod server could have");
	const struct file f = source_file(&w);
	enum status s = read_source(d, &f, out, e);
	if (s != E_NOTFOUND)
		return s;
	if (!await_source(d, &w, &f, until_ns))
		return err_set(e, E_UNAVAILABLE,
			"the debuginfod servers have not answered yet: ask again");
	return read_source(d, &f, out, e);
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
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->source_done, &attr);
	pthread_condattr_destroy(&attr);
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
	lock_take(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->changed);
	pthread_cond_broadcast(&d->source_done);
	lock_release(&d->lock);
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
	lock_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	pthread_cond_destroy(&d->source_done);
	free(d);
}

void debuginfod_write_metrics(struct debuginfod *d, struct buf *out)
{
	static const struct metric_def defs[] = { DEBUGINFOD_METRICS(METRIC_DEF) };
	metrics_write(out, defs, (const metric_value *)&d->metrics, ARRAY_COUNT(defs));
}
