/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry for each build id that was ever asked for or offered. An entry is idle, queued or being
 * built; beside that its table may be open, or known to be missing until some time.
 *
 * 	get:    open table -> use it; else table on disk -> open it; else idle -> queue it
 * 	offer:  idle -> queue it with the descriptor; being built -> queued again afterwards;
 * 		on demand: idle -> keep the descriptor until it is asked for
 * 	want: often enough -> queue it
 * 	look again: the same without a descriptor, whatever is known
 * 	worker: takes the first of the queue that was asked for, else the first; opens or builds;
 * 		done. Now and then it looks at the files that wait (held.c)
 *
 * One lock for everything; it is not held while files are opened or built. Open tables are counted
 * by their bytes; beyond the budget the least recently used one is closed, unless it is in use.
 */
#include "symbolize/tables.h"
#include "symbolize/disk.h"
#include "symbolize/entries.h"
#include "symbolize/find.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* How long files are not searched again for a build id without a file, or with a bad one. */
#define MISSING_RETRY_NS (300 * NS_PER_SEC)
#define FAILED_RETRY_NS (3600 * NS_PER_SEC)
#define TELL_USE_NS (3600 * NS_PER_SEC)

/* ---- entries; the lock is held ---- */

/* Takes the first one that a query wants, or else the first; the others stay in order. */
static struct symbolize_entry *dequeue(struct symbolize_tables *t)
{
	uint32_t at = 0;
	while (at < t->queue_len && !t->queue[(t->queue_first + at) % SYMBOLIZE_QUEUE_MAX]->wanted)
		at++;
	at = at < t->queue_len ? at : 0;
	struct symbolize_entry *en = t->queue[(t->queue_first + at) % SYMBOLIZE_QUEUE_MAX];
	for (; at > 0; at--)
		t->queue[(t->queue_first + at) % SYMBOLIZE_QUEUE_MAX] =
			t->queue[(t->queue_first + at - 1) % SYMBOLIZE_QUEUE_MAX];
	t->queue_first = (t->queue_first + 1) % SYMBOLIZE_QUEUE_MAX;
	t->queue_len--;
	return en;
}

static void evict(struct symbolize_tables *t)
{
	while (t->open_bytes > t->config.memory_bytes) {
		struct symbolize_entry *oldest = NULL;
		for (size_t i = 0; i < t->entries.len; i++) {
			struct symbolize_entry *en = t->entries.v[i];
			if (en->open && en->open->refs == 1 &&
				(!oldest || en->last_used < oldest->last_used))
				oldest = en;
		}
		if (!oldest)
			return; /* all in use */
		symbolize_entry_close(t, oldest);
	}
}

static struct symbolize_ref *ref_new(struct debuginfo_table *table)
{
	struct symbolize_ref *r = calloc(1, sizeof(*r));
	if (!r) {
		debuginfo_table_close(table);
		return NULL;
	}
	struct debuginfo_table_info info;
	debuginfo_table_describe(table, &info);
	*r = (struct symbolize_ref){ table, info.bytes, 1, info.has_dwarf, info.trimmed, "" };
	snprintf(r->carried, sizeof(r->carried), "%s", info.build_id);
	return r;
}

/* Takes `r` over. */
static void attach(struct symbolize_tables *t, struct symbolize_entry *en, struct symbolize_ref *r)
{
	symbolize_entry_close(t, en);
	en->open = r;
	en->opened_ns = clock_monotonic_ns();
	t->open_bytes += r->bytes;
	atomic_fetch_add(&t->metrics->open_tables, 1);
	r->refs++; /* in use: not the one to close */
	evict(t);
	r->refs--;
}

/* ---- files; the lock is not held ---- */

/* NULL: none on disk. A damaged one is deleted: it is made again. */
static struct symbolize_ref *open_from_disk(const struct symbolize_tables *t, const char *id)
{
	char path[SYMBOLIZE_PATH_MAX];
	struct debuginfo_table *table;
	if (!symbolize_disk_path(&t->disk, id, false, path))
		return NULL;
	enum status s = debuginfo_table_open(path, &table, NULL);
	if (s == OK)
		symbolize_disk_used(path);
	if (s == E_CORRUPT)
		unlink(path);
	return s == OK ? ref_new(table) : NULL;
}

static enum status build(struct symbolize_tables *t, const char *id,
	const struct symbolize_files *files, struct err *e)
{
	char folder[SYMBOLIZE_PATH_MAX], path[SYMBOLIZE_PATH_MAX];
	if (!symbolize_disk_path(&t->disk, id, true, folder) ||
		!symbolize_disk_path(&t->disk, id, false, path))
		return err_set(e, E_LIMIT, "path of table %s", id);
	enum status s = os_make_dirs(folder, e);
	if (s == OK)
		s = debuginfo_build_files(&files->files, path, &t->config.limits, e);
	if (s == OK)
		symbolize_disk_added(&t->disk, path);
	return s;
}

bool symbolize_tables_are_local(const struct symbolize_tables *t)
{
	return t->config.local_files;
}

enum status symbolize_tables_files(
	struct symbolize_tables *t, struct str build_id, struct symbolize_files *out, struct err *e)
{
	char id[SYMBOLIZE_ID_MAX + 1];
	char path[SYMBOLIZE_PATH_MAX] = "";
	CLEANUP(fd_cleanup) int fd = -1;
	if (!symbolize_id_is_valid(build_id))
		return err_set(e, E_INVALID, "no build id");
	snprintf(id, sizeof(id), "%.*s", STR_ARG(build_id));
	lock_take(&t->lock);
	uint32_t at = symbolize_entry_find(t, build_id);
	if (at != MAP_NONE) {
		const struct symbolize_entry *en = t->entries.v[at];
		const char *known = en->path ? en->path : en->home;
		if (known && strlen(known) < sizeof(path))
			snprintf(path, sizeof(path), "%s", known);
		if (en->fd >= 0)
			fd = fcntl(en->fd, F_DUPFD_CLOEXEC, 0);
	}
	lock_release(&t->lock);
	const struct symbolize_request request = {
		.build_id = id,
		.path = path,
		.fd = fd,
		.debug_dirs = t->config.debug_dirs,
		.local_files = t->config.local_files,
		.uploads = t->config.uploads,
	};
	return symbolize_files_find(&request, out, e);
}

struct job {
	char id[SYMBOLIZE_ID_MAX + 1];
	char *path;
	int fd;
	bool look, replace, whole;
	struct symbolize_ref *result;
	int64_t retry_ns; /* 0: at once */
	bool is_kept;     /* the descriptor */
};

static void tell_of_missing(const struct symbolize_tables *t, const char *id, enum status s,
	const struct symbolize_files *files)
{
	if (!t->config.missing || (s != OK && s != E_NOTFOUND))
		return;
	if (!files->has_dwarf)
		t->config.missing(t->config.missing_ctx, id, id);
	else if (files->alt_wanted[0])
		t->config.missing(t->config.missing_ctx, id, files->alt_wanted);
}

static void run_job(struct symbolize_tables *t, struct job *j)
{
	struct symbolize_ref *old = open_from_disk(t, j->id);
	bool trimmed = old && old->is_trimmed;
	bool wanted = j->replace ||
		      ((j->fd >= 0 || j->look) && !(old && old->has_dwarf && !trimmed)) ||
		      (j->whole && trimmed);
	if (old && !wanted) {
		j->result = old;
		return;
	}
	struct symbolize_request request = {
		.build_id = j->id,
		.path = j->path ? j->path : "",
		.fd = j->fd,
		.debug_dirs = t->config.debug_dirs,
		.local_files = t->config.local_files,
		.uploads = t->config.uploads,
	};
	CLEANUP(symbolize_files_deinit)
	struct symbolize_files files = { .files = { -1, -1, -1 } };
	enum status s = symbolize_files_find(&request, &files, NULL);
	tell_of_missing(t, j->id, s, &files);
	if (s == E_NOTFOUND) {
		metric_add(&t->metrics->missing, 1);
		j->retry_ns = MISSING_RETRY_NS;
	} else if (s == OK && (!old || files.has_dwarf || (j->look && files.uploaded) ||
				      (trimmed && !old->has_dwarf))) {
		s = build(t, j->id, &files, NULL);
		if (s == OK)
			metric_add(&t->metrics->built, 1);
	}
	if (s != OK && s != E_NOTFOUND && s != E_CANCELED) {
		metric_add(&t->metrics->failed, 1);
		j->retry_ns = FAILED_RETRY_NS;
	}
	j->result = s == OK ? open_from_disk(t, j->id) : NULL;
	if (j->result) {
		if (old)
			symbolize_unref(old);
	} else {
		j->result = old;
	}
	if (j->result && j->result->is_trimmed && !j->retry_ns)
		j->retry_ns = MISSING_RETRY_NS;
}

/* For a container's file, or a running program that was removed: after its table was trimmed, the
 * descriptor is the only way to the file. */
static bool is_worth_keeping(const struct symbolize_tables *t, const struct job *j)
{
	struct stat st;
	return t->config.on_demand && j->result && j->fd >= 0 && fstat(j->fd, &st) == 0 &&
	       st.st_nlink > 0 && !symbolize_held_lies_at(j->path ? j->path : "", &st);
}

static void finish_job(struct symbolize_tables *t, struct symbolize_entry *en, struct job *j)
{
	if (j->result)
		attach(t, en, j->result);
	int64_t retry = j->retry_ns ? clock_monotonic_ns() + j->retry_ns : 0;
	en->not_before_ns = en->open ? 0 : retry;
	en->whole_after_ns = en->open ? retry : 0;
	en->state = ENTRY_IDLE;
	en->is_done = true;
	if (j->is_kept && t->held < SYMBOLIZER_HELD_MAX && en->kept_fd < 0) {
		en->kept_fd = STEAL_FD(j->fd);
		t->held++;
	}
	if (t->config.local_files && j->path && j->path[0]) {
		free(en->home);
		en->home = strdup(j->path);
	}
	if (en->again)
		symbolize_entry_again(t, en);
	t->ended++;
	pthread_cond_broadcast(&t->done);
}

/* Closes tables that no query has used for long. */
static void close_unused(struct symbolize_tables *t)
{
	int64_t since = clock_monotonic_ns() - t->config.close_ns;
	for (size_t i = 0; i < t->entries.len; i++) {
		struct symbolize_entry *en = t->entries.v[i];
		if (en->open && en->open->refs == 1 && MAX(en->asked_ns, en->opened_ns) < since)
			symbolize_entry_close(t, en);
	}
}

/* Waits until there is work; false: it is time to check waiting files and open tables. */
static bool wait_for_work(struct symbolize_tables *t)
{
	int64_t now = clock_monotonic_ns();
	if (now >= t->look_at_ns) {
		t->look_at_ns = now + t->config.look_ns;
		return false;
	}
	struct timespec ts = { t->look_at_ns / NS_PER_SEC, t->look_at_ns % NS_PER_SEC };
	(void)lock_wait_until(&t->work, &t->lock, &ts);
	return true;
}

static void look_at_all(struct symbolize_tables *t)
{
	close_unused(t);
	if (t->config.on_demand)
		symbolize_held_look(t);
	symbolize_trim(t);
}

static void *work(void *ctx)
{
	struct symbolize_tables *t = ctx;
	setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
	lock_take(&t->lock);
	while (!t->stop) {
		if (t->queue_len == 0) {
			if (!wait_for_work(t))
				look_at_all(t);
			continue;
		}
		struct symbolize_entry *en = dequeue(t);
		en->state = ENTRY_BUILDING;
		struct job j = { .path = STEAL_PTR(en->path),
			.fd = STEAL_FD(en->fd),
			.look = en->look,
			.replace = en->replace,
			.whole = en->whole };
		en->look = en->replace = en->whole = false;
		memcpy(j.id, en->id, sizeof(j.id));
		lock_release(&t->lock);
		run_job(t, &j);
		j.is_kept = is_worth_keeping(t, &j);
		lock_take(&t->lock);
		finish_job(t, en, &j);
		fd_cleanup(&j.fd);
		free(j.path);
	}
	lock_release(&t->lock);
	return NULL;
}

/* ---- what the others call ---- */

static void config_deinit(struct symbolizer_config *c)
{
	free((char *)(uintptr_t)c->debug_dirs);
}

static void tables_cleanup(struct symbolize_tables **t)
{
	symbolize_tables_free(*t);
}

enum status symbolize_tables_new(const struct symbolizer_config *c,
	struct symbolize_metrics *metrics, struct symbolize_tables **out, struct err *e)
{
	CLEANUP(tables_cleanup) struct symbolize_tables *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "symbol tables");
	lock_init(&t->lock, LOCK_SYMBOL_TABLES);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->work, &attr);
	pthread_cond_init(&t->done, &attr);
	pthread_condattr_destroy(&attr);
	t->metrics = metrics;
	t->config = *c;
	t->config.dir = NULL; /* t->disk has it */
	t->config.debug_dirs = strdup(c->debug_dirs ? c->debug_dirs : "");
	t->config.limits.stop = &t->stop;
	t->trim_at_ns = t->sweep_at_ns = clock_monotonic_ns() + c->trim_idle_ns;
	if (!t->config.debug_dirs)
		return err_set(e, E_NOMEM, "symbol tables");
	enum status s = symbolize_disk_init(&t->disk, c->dir, c->disk_bytes, metrics, e);
	uint32_t workers = MIN(MAX(c->workers, 1u), (uint32_t)SYMBOLIZE_WORKERS_MAX);
	for (; s == OK && t->worker_count < workers; t->worker_count++) {
		s = os_thread_start(&t->workers[t->worker_count], "symbols", work, t, e);
		if (s != OK)
			break;
	}
	if (s == OK)
		*out = STEAL_PTR(t);
	return s;
}

void symbolize_tables_set_samples(
	struct symbolize_tables *t, const struct symbolizer_samples *samples)
{
	lock_take(&t->lock);
	t->samples = *samples;
	lock_release(&t->lock);
}

void symbolize_tables_free(struct symbolize_tables *t)
{
	if (!t)
		return;
	lock_take(&t->lock);
	t->stop = true;
	pthread_cond_broadcast(&t->work);
	lock_release(&t->lock);
	for (uint32_t i = 0; i < t->worker_count; i++)
		pthread_join(t->workers[i], NULL);
	for (size_t i = 0; i < t->entries.len; i++) {
		symbolize_entry_close(t, t->entries.v[i]);
		symbolize_entry_forget(t, t->entries.v[i]);
		free(t->entries.v[i]);
	}
	VEC_FREE(&t->entries);
	map_deinit(&t->index);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->work);
	lock_destroy(&t->lock);
	config_deinit(&t->config);
	symbolize_disk_deinit(&t->disk);
	free(t);
}

enum status symbolize_tables_offer(
	struct symbolize_tables *t, const char *build_id, const char *path, int fd, struct err *e)
{
	CLEANUP(fd_cleanup) int own = fd;
	if (!symbolize_id_is_valid(str_of(build_id)))
		return err_set(e, E_INVALID, "not a build id: %.100s", build_id);
	enum status s = OK;
	lock_take(&t->lock);
	struct symbolize_entry *en = symbolize_entry_make(t, str_of(build_id));
	if (!en) {
		s = err_set(e, E_NOMEM, "build id %s", build_id);
	} else if (en->fd < 0 && !(en->open && en->open->has_dwarf && !en->open->is_trimmed)) {
		bool hold = t->config.on_demand && !en->wanted && t->held < SYMBOLIZER_HELD_MAX;
		if (en->state == ENTRY_IDLE && !hold && !symbolize_entry_queue(t, en))
			s = err_set(
				e, E_LIMIT, "%d symbol tables wait already", SYMBOLIZE_QUEUE_MAX);
		if (s == OK) {
			en->again = en->state == ENTRY_BUILDING;
			en->is_done = en->is_found = false;
			en->fd = STEAL_FD(own);
			t->held += en->state == ENTRY_IDLE;
			free(en->path);
			en->path = strdup(path);
		}
	}
	lock_release(&t->lock);
	return s;
}

/* Open tables of other names for the same file. */
static void look_at_others(struct symbolize_tables *t, const char *build_id)
{
	for (size_t i = 0; i < t->entries.len; i++) {
		struct symbolize_entry *en = t->entries.v[i];
		if (!en->open || en->open->has_dwarf || strcmp(en->open->carried, build_id) != 0)
			continue;
		en->not_before_ns = 0;
		en->look = true;
		en->again |= en->state == ENTRY_BUILDING;
		if (en->state == ENTRY_IDLE && !symbolize_entry_queue(t, en))
			return;
	}
}

enum status symbolize_tables_look_again(
	struct symbolize_tables *t, const char *build_id, bool replace, struct err *e)
{
	if (!symbolize_id_is_valid(str_of(build_id)))
		return err_set(e, E_INVALID, "not a build id: %.100s", build_id);
	enum status s = OK;
	lock_take(&t->lock);
	struct symbolize_entry *en = symbolize_entry_make(t, str_of(build_id));
	if (!en) {
		s = err_set(e, E_NOMEM, "build id %s", build_id);
	} else {
		en->not_before_ns = 0;
		en->look = true;
		en->replace |= replace;
		en->again |= en->state == ENTRY_BUILDING;
		if (en->state == ENTRY_IDLE && !symbolize_entry_queue(t, en))
			s = err_set(
				e, E_LIMIT, "%d symbol tables wait already", SYMBOLIZE_QUEUE_MAX);
		look_at_others(t, build_id);
	}
	lock_release(&t->lock);
	return s;
}

/* With the lock held: a reference to the open table; NULL: none is open. */
static struct symbolize_ref *take(struct symbolize_entry *en)
{
	if (en->open)
		en->open->refs++;
	return en->open;
}

/* With the lock held: should the open table's file be marked as used? */
static bool is_to_be_told(struct symbolize_entry *en)
{
	int64_t now = clock_monotonic_ns();
	if (en->told_ns && now - en->told_ns < TELL_USE_NS)
		return false;
	en->told_ns = now;
	return true;
}

static void queue_for(
	struct symbolize_tables *t, struct symbolize_entry *en, struct str path, bool *pending)
{
	en->wanted = true;
	if (en->state == ENTRY_IDLE && clock_monotonic_ns() >= en->not_before_ns) {
		if (path.len || !en->path) {
			free(en->path);
			en->path = strndup(path.p ? path.p : "", path.len);
		}
		if (!symbolize_entry_queue(t, en))
			return;
	}
	*pending = en->state != ENTRY_IDLE;
}

/* With the lock held: queues the whole table, of which a trimmed one is open. */
static void queue_whole(
	struct symbolize_tables *t, struct symbolize_entry *en, struct str path, bool *pending)
{
	if (!en->open->is_trimmed || clock_monotonic_ns() < en->whole_after_ns)
		return;
	en->whole = true;
	queue_for(t, en, path, pending);
}

void symbolize_tables_get(struct symbolize_tables *t, struct str sent_id, struct str path,
	bool whole, struct symbolize_ref **out, bool *out_pending)
{
	char room[SYMBOLIZE_ID_MAX];
	struct str build_id = symbolize_table_id(sent_id, room);
	*out = NULL;
	*out_pending = false;
	if (!symbolize_id_is_valid(build_id))
		return;
	lock_take(&t->lock);
	struct symbolize_entry *en = symbolize_entry_make(t, build_id);
	*out = en ? take(en) : NULL;
	if (en)
		en->asked_ns = clock_monotonic_ns();
	if (*out && whole)
		queue_whole(t, en, path, out_pending);
	bool tell = *out && is_to_be_told(en);
	bool look =
		en && !*out && en->state == ENTRY_IDLE && clock_monotonic_ns() >= en->not_before_ns;
	lock_release(&t->lock);
	char id[SYMBOLIZE_ID_MAX + 1], file[SYMBOLIZE_PATH_MAX];
	memcpy(id, build_id.p, build_id.len);
	id[build_id.len] = '\0';
	if (tell && symbolize_disk_path(&t->disk, id, false, file))
		symbolize_disk_used(file);
	if (!en || *out)
		return;

	struct symbolize_ref *found = look ? open_from_disk(t, id) : NULL;
	lock_take(&t->lock);
	en = symbolize_entry_make(t, build_id); /* it may have been recycled meanwhile */
	if (en && found && !en->open)
		attach(t, en, STEAL_PTR(found));
	*out = en ? take(en) : NULL;
	if (en && !*out)
		queue_for(t, en, path, out_pending);
	symbolize_unref(found);
	lock_release(&t->lock);
}

void symbolize_tables_want(struct symbolize_tables *t, struct str sent_id, struct str path)
{
	char room[SYMBOLIZE_ID_MAX];
	struct str build_id = symbolize_table_id(sent_id, room);
	if (!symbolize_id_is_valid(build_id))
		return;
	lock_take(&t->lock);
	struct symbolize_entry *en = symbolize_entry_make(t, build_id);
	bool pending = false;
	if (en) {
		en->wants += en->wants < UINT32_MAX;
		en->wanted_ns = clock_monotonic_ns();
		en->is_left = false;
	}
	bool enough = en && en->wants >= t->config.wants_min;
	if (enough && !(en->open && !en->open->is_trimmed) && !en->is_done)
		queue_for(t, en, path, &pending);
	lock_release(&t->lock);
}

bool symbolize_tables_is_pending(struct symbolize_tables *t, struct str sent_id)
{
	char room[SYMBOLIZE_ID_MAX];
	struct str build_id = symbolize_table_id(sent_id, room);
	if (!symbolize_id_is_valid(build_id))
		return false;
	lock_take(&t->lock);
	uint32_t at = symbolize_entry_find(t, build_id);
	const struct symbolize_entry *en = at == MAP_NONE ? NULL : t->entries.v[at];
	bool pending = en && en->wanted && en->state != ENTRY_IDLE;
	lock_release(&t->lock);
	return pending;
}

void symbolize_ref_release(struct symbolize_tables *t, struct symbolize_ref *r)
{
	if (!r)
		return;
	lock_take(&t->lock);
	symbolize_unref(r);
	evict(t);
	lock_release(&t->lock);
}

bool symbolize_tables_wait(struct symbolize_tables *t, uint64_t *seen, int64_t deadline_ns)
{
	struct timespec ts = { deadline_ns / NS_PER_SEC, deadline_ns % NS_PER_SEC };
	lock_take(&t->lock);
	int rc = 0;
	while (rc != ETIMEDOUT && t->ended == *seen && !t->stop)
		rc = lock_wait_until(&t->done, &t->lock, &ts);
	bool more = t->ended != *seen;
	*seen = t->ended;
	lock_release(&t->lock);
	return more;
}
