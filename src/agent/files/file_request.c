/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notice of a bound file says that its program was executed again, or that the sampler has
 * evicted it. As long as the sampler knows it nothing is to be done.
 */
#include "agent/files/internal.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether a bound file was evicted is asked at most so often. */
#define RETRY_BOUND_NS (1 * NS_PER_SEC)
/* Doubled each time that it could not be opened again. */
#define RETRY_BOUND_SHIFT_MAX 6u
/* A file that could not be opened is tried again after so long, doubled each time. */
#define RETRY_FAILED_NS (100 * NS_PER_MS)
#define RETRY_SHIFT_MAX 4u

void file_request_free(struct file_request *r)
{
	if (!r)
		return;
	opened_close(&r->opened);
	free(r);
}

void file_request_cleanup(struct file_request **r)
{
	file_request_free(*r);
}

struct file_request *file_request_new(const struct file_notice *n, int pid)
{
	struct file_request *r = calloc(1, sizeof(*r));
	if (r) {
		r->notice = *n;
		r->opened.key = n->key;
		r->pid = pid;
		r->opened.file.fd = -1;
	}
	return r;
}

bool file_request_begin(struct files *f, struct file_request *r)
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
	/* A mapped file may be written to all the time, so it is not read again for each change. */
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

/* The file that the key was bound to is still published: a failure to read it again does not remove
 * it. */
static bool is_kept(struct files *f, const struct file_request *r, const struct binding *b)
{
	return b->file_id && !r->is_replaced && sampler_knows(f->sampler, &r->notice.key);
}

uint32_t file_request_published(struct files *f, struct file_request *r)
{
	LOCKED(&f->lock);
	const struct binding *b = &f->book.bindings.v[r->binding];
	return !r->is_unsure && is_kept(f, r, b) ? b->file_id : 0;
}

void file_request_count_first_pass(struct files *f)
{
	if (--f->first_pass_left == 0)
		pthread_cond_broadcast(&f->first_pass_done);
}

static void note_failure(struct files *f, const struct file_request *r, const char *why)
{
	char what[OPEN_FILE_PATH_MAX + 64];
	if (r->opened.path[0])
		snprintf(what, sizeof(what), "%s", r->opened.path);
	else
		snprintf(what, sizeof(what), "a file of process %d (inode %llu)", r->pid,
			(unsigned long long)r->notice.key.inode);
	problems_add(f->config.problems, PROBLEM_FILE, what, why);
}

void file_request_finish(
	struct files *f, struct file_request *r, uint32_t id, enum status s, struct err *e)
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
			file_request_count_first_pass(f);
	}
	file_request_free(r);
}

void file_request_cancel(struct files *f, uint32_t binding, bool is_replaced)
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
