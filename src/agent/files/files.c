/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notice names a file by the kernel's key. What is remembered of keys and files is in
 * known_files.h; this is the way of a notice through two threads:
 *
 *	notice -> WAITING -> opener: open -> builder: know, table, publish -> BOUND or FAILED
 *
 * `lock` guards what is remembered, and is held for moments. `work` is held while a table is built;
 * taken before `lock`.
 */
#include "agent/files/internal.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct metric_def metric_defs[] = { FILES_METRICS(METRIC_DEF) };

void files_notice(struct files *f, const struct file_notice *n, int pid)
{
	if (n->key.inode == 0)
		return;
	CLEANUP(file_request_cleanup) struct file_request *r = file_request_new(n, pid);
	if (!r) {
		metric_add(&f->metrics.notices_dropped, 1);
		return;
	}
	if (!file_request_begin(f, r))
		return;
	uint32_t binding = r->binding;
	bool is_replaced = r->is_replaced;
	if (os_queue_try_push(f->requests, r))
		(void)STEAL_PTR(r);
	else
		file_request_cancel(f, binding, is_replaced);
}

enum status files_preload(struct files *f, int64_t timeout_ns, struct err *e)
{
	struct file_notice none = { 0 };
	struct file_request *start = file_request_new(&none, 0);
	if (!start)
		return err_set(e, E_NOMEM, "files");
	start->is_start = true;
	buildqueue_keep_shares(f->opened, false);
	LOCKED(&f->lock);
	f->first_pass_left++;
	if (!os_queue_try_push(f->requests, start)) {
		f->first_pass_left--;
		file_request_free(start);
		return err_set(e, E_LIMIT, "files: too many notices wait");
	}
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ns / NS_PER_SEC;
	int waited = 0;
	while (f->first_pass_left && waited == 0)
		waited = lock_wait_until(&f->first_pass_done, &f->lock, &until);
	buildqueue_keep_shares(f->opened, true);
	if (waited != 0)
		return err_set(
			e, E_TIMEOUT, "%u executables are still to be read", f->first_pass_left);
	return f->first_pass_status == OK
		       ? OK
		       : err_set(e, f->first_pass_status, "the list of processes");
}

bool files_offer(struct files *f)
{
	struct file_notice none = { 0 };
	CLEANUP(file_request_cleanup) struct file_request *r = file_request_new(&none, 0);
	if (!r)
		return false;
	r->is_offer = true;
	if (!os_queue_try_push(f->requests, r))
		return false;
	(void)STEAL_PTR(r);
	return true;
}

/* ---- life, requests ---- */

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
	lock_init(&f->work, LOCK_FILES_WORK);
	lock_init(&f->lock, LOCK_FILES);
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
	f->load.limits.pause = file_builder_between;
	f->load.limits.pause_ctx = f;
	if (c->cache_dir && c->cache_dir[0] &&
		tablecache_open(c->cache_dir, TABLECACHE_BYTES_MAX, &f->load.cache, e) != OK)
		log_warn("unwind tables are not cached", "reason=%s", LOG_QUOTED(e ? e->text : ""));
	enum status s = os_queue_new(FILES_QUEUE_MAX, &f->requests);
	if (s == OK)
		s = buildqueue_new(c->cpu_percent, &f->opened);
	if (s == OK)
		s = os_thread_start(&f->builder, "files", file_builder_run, f, e);
	f->builder_runs = s == OK;
	if (s == OK)
		s = os_thread_start(&f->opener, "files-open", file_opener_run, f, e);
	f->opener_runs = s == OK;
	if (s != OK)
		return err_prefix(e, s, "files");
	*out = STEAL_PTR(f);
	return OK;
}

static void drain(struct files *f)
{
	struct build_ticket ticket;
	struct file_request *r;
	while (f->requests && (r = os_queue_pop(f->requests, 0)))
		file_request_free(r);
	while (f->opened && (r = buildqueue_pop(f->opened, &ticket)))
		file_request_free(r);
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
	lock_destroy(&f->lock);
	lock_destroy(&f->work);
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
	/* A file that waits to be read again is still known. */
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
