/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events: connects the parts of the agent. Each function is a callback of one part, with the agent
 * as its context, and passes the event on to the other parts. Private to agent/.
 */
#pragma once

#include "agent/parts.h"

/* From the ring of the sampler, in the poll thread. */
void events_sample(void *ctx, const struct event_sample *s);
void events_process(void *ctx, const struct event_process *p);
void events_stack(void *ctx, const struct event_stack *s);
void events_resume(void *ctx, const struct event_resume *r);
void events_code(void *ctx, const struct event_code *c);
/* For deferred: takes a sample that is as complete as it can become; finds the unwind rule at an
 * offset of a file. */
void events_finished(void *ctx, const struct event_sample *s);
enum deferred_file events_find_rule(void *ctx, const struct file_key *key, uint64_t offset,
	uint32_t *out_file_id, struct unwind_rule *out_rule);
/* A stay off the CPU, from offcpu. */
void events_away(void *ctx, const struct event_sample *s, int64_t away_ns);
/* A message of the batch or of oom, for the sender. */
void events_message(void *ctx, struct buf *message, uint32_t sample_count);
/* A new executable, called by a thread of the files: for the server's symbol tables, and for the
 * heaps of Go. */
void events_new_file(void *ctx, const char *build_id, const char *path, int fd);
void events_known_file(void *ctx, const struct file_key *key, const struct objfile *obj,
	const char *build_id, const char *path);
/* An executable that has samples, from the batch; and its key, for the uploader. */
void events_met(void *ctx, uint32_t file_id, const struct file_info *file, int pid);
bool events_find_key(void *ctx, uint32_t file_id, struct file_key *out);
/* A new connection to the server, by the sender's thread. */
void events_connected(void *ctx);
