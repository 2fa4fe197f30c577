/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most of these run in the poll thread, from the sampler's ring; each of the others names its
 * thread. Only events_new_file() may wait, in the first pass.
 */
#include "agent/events.h"

#include "base/clock.h"

#include <unistd.h>

/* As whole as it gets. */
void events_finished(void *ctx, const struct event_sample *s)
{
	struct agent *a = ctx;
	if (event_state(&s->h) == THREAD_ON_CPU)
		batch_add(a->batch, s);
	else
		offcpu_left(a->offcpu, s);
}

void events_sample(void *ctx, const struct event_sample *s)
{
	struct agent *a = ctx;
	if (s->notice.key.inode)
		files_notice(a->files, &s->notice, (int)s->h.pid);
	if (!deferred_add(a->deferred, s, clock_monotonic_ns()))
		events_finished(a, s);
}

void events_resume(void *ctx, const struct event_resume *r)
{
	struct agent *a = ctx;
	offcpu_resume(a->offcpu, r);
}

void events_code(void *ctx, const struct event_code *c)
{
	struct agent *a = ctx;
	codes_add(a->codes, c);
}

void events_away(void *ctx, const struct event_sample *s, int64_t away_ns)
{
	struct agent *a = ctx;
	batch_add_off_cpu(a->batch, s, away_ns);
}

static bool is_loaded(struct agent *a, const struct file_key *key)
{
	return files_find(a->files, key) != 0 && sampler_knows(a->sampler, key);
}

/* Also loads the files that the rest of the walk may lead through. */
void events_stack(void *ctx, const struct event_stack *s)
{
	struct agent *a = ctx;
	for (uint32_t i = 0; i < s->mapping_count && i < STACK_MAPPINGS_MAX; i++) {
		const struct stack_mapping *m = &s->mappings[i];
		const struct file_notice n = { m->key, m->start, m->end, m->offset };
		if (m->key.inode && !is_loaded(a, &m->key))
			files_notice(a->files, &n, (int)s->h.pid);
	}
	deferred_stack(a->deferred, s);
}

enum deferred_file events_find_rule(void *ctx, const struct file_key *key, uint64_t offset,
	uint32_t *out_file_id, struct unwind_rule *out_rule)
{
	struct agent *a = ctx;
	enum files_state state = FILES_KNOWN;
	*out_file_id = FRAME_FILE_VDSO;
	if (key->inode)
		state = files_look_up(a->files, key, out_file_id);
	enum tables_found found = TABLES_NOT_FOUND;
	if (state == FILES_KNOWN)
		found = sampler_find_rule(a->sampler, key, offset, out_rule);
	if (found != TABLES_NOT_FOUND)
		return found == TABLES_FOUND ? DEFERRED_KNOWN : DEFERRED_NO_ROOM;
	return state == FILES_FAILED || !key->inode ? DEFERRED_NEVER : DEFERRED_NOT_YET;
}

void events_process(void *ctx, const struct event_process *p)
{
	struct agent *a = ctx;
	(void)!sampler_set_thread_context(a->sampler, p->h.pid, NULL);
	if (p->h.type == EVENT_EXIT) {
		processes_exit(a->processes, &p->h);
		if (a->codes)
			codes_process_ended(a->codes, &p->h);
		if (a->jitnames)
			jitnames_ended(a->jitnames, (int)p->h.pid, p->h.process_start_ns);
		return;
	}
	processes_exec(a->processes, &p->h);
	if (a->jitnames)
		jitnames_forget(a->jitnames, (int)p->h.pid, p->h.process_start_ns);
	if (p->notice.key.inode)
		files_notice(a->files, &p->notice, (int)p->h.pid);
}

void events_message(void *ctx, struct buf *message, uint32_t sample_count)
{
	struct agent *a = ctx;
	sender_push(a->sender, message, sample_count);
}

/* From the files' worker; and in the first pass, when hundreds come at once, from the poll thread,
 * which then has time to wait for room in the socket. */
void events_new_file(void *ctx, const char *build_id, const char *path, int fd)
{
	struct agent *a = ctx;
	while (a->patience_ns > 0 && handover_retry(a->handover)) {
		usleep(1000);
		a->patience_ns -= NS_PER_MS;
	}
	handover_send(a->handover, build_id, path, fd);
	if (a->uploader)
		uploader_seen(a->uploader, build_id, path, fd);
}

/* By the batch. */
void events_met(void *ctx, uint32_t file_id, const struct file_info *file, int pid)
{
	struct agent *a = ctx;
	uploader_met(a->uploader, file_id, file->build_id, file->path, pid);
}

/* By the sender's thread. */
void events_connected(void *ctx)
{
	struct agent *a = ctx;
	uploader_reconnected(a->uploader);
}

bool events_find_key(void *ctx, uint32_t file_id, struct file_key *out)
{
	const struct agent *a = ctx;
	return files_key(a->files, file_id, out);
}

/* From the files' worker. */
void events_known_file(void *ctx, const struct file_key *key, const struct objfile *obj,
	const char *build_id, const char *path)
{
	struct agent *a = ctx;
	oom_know(a->oom, key, obj, build_id, path);
}
