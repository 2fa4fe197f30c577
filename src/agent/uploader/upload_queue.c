/* SPDX-License-Identifier: Apache-2.0 */
/* Few thousand entries, looked through only when something waits: no order is kept but the turns.
 */
#include "agent/uploader/upload_queue.h"

#include "base/hash.h"
#include "os/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct metric_def metric_defs[] = { UPLOAD_QUEUE_METRICS(METRIC_DEF) };

void upload_queue_times_default(struct upload_queue_times *t)
{
	*t = (struct upload_queue_times){
		.again_ns = 6 * 3600 * NS_PER_SEC,
		.in_progress_ns = 60 * NS_PER_SEC,
		.retry_ns = 10 * NS_PER_SEC,
		.refused_ns = 300 * NS_PER_SEC,
		.gone_ns = 30 * NS_PER_SEC,
	};
}

enum status upload_queue_init(
	struct upload_queue *b, uint32_t queue_max, const struct upload_queue_times *times)
{
	*b = (struct upload_queue){ .queue_max = queue_max, .times = *times, .probe = MAP_NONE };
	return OK;
}

static void close_later(struct upload_queue *b, int fd)
{
	if (b->dropped_count < UPLOAD_QUEUE_DROPPED_MAX)
		b->dropped[b->dropped_count++] = fd;
	else
		close(fd);
}

uint32_t upload_queue_dropped(struct upload_queue *b, int out[UPLOAD_QUEUE_DROPPED_MAX])
{
	uint32_t count = b->dropped_count;
	memcpy(out, b->dropped, count * sizeof(out[0]));
	b->dropped_count = 0;
	return count;
}

static void drop_fd(struct upload_queue *b, struct upload_entry *x)
{
	if (x->fd < 0)
		return;
	close_later(b, STEAL_FD(x->fd));
	b->fresh--;
}

void upload_queue_deinit(struct upload_queue *b)
{
	for (uint32_t i = 0; i < b->entries.len; i++)
		drop_fd(b, &b->entries.v[i]);
	for (uint32_t i = 0; i < b->dropped_count; i++)
		close(b->dropped[i]);
	VEC_FREE(&b->entries);
	map_deinit(&b->by_id);
}

/* ---- entries ---- */

static bool has_id(const void *ctx, uint32_t value, const void *key)
{
	const struct upload_queue *b = ctx;
	return strcmp(b->entries.v[value].build_id, key) == 0;
}

static uint64_t hash_id(const char *id)
{
	return hash64(id, strlen(id));
}

static struct upload_entry *find(struct upload_queue *b, const char *id)
{
	uint32_t i = map_find(&b->by_id, hash_id(id), has_id, b, id);
	return i == MAP_NONE ? NULL : &b->entries.v[i];
}

static bool may_go(const struct upload_entry *x)
{
	return x->state != UPLOAD_BUSY && x->state != UPLOAD_WAITING;
}

/* The place of the least recently met file; MAP_NONE: none may be removed. */
static uint32_t make_place(struct upload_queue *b)
{
	uint32_t oldest = MAP_NONE;
	for (uint32_t i = 0; i < b->entries.len; i++)
		if (may_go(&b->entries.v[i]) &&
			(oldest == MAP_NONE ||
				b->entries.v[i].met_ns < b->entries.v[oldest].met_ns))
			oldest = i;
	if (oldest == MAP_NONE)
		return MAP_NONE;
	struct upload_entry *x = &b->entries.v[oldest];
	drop_fd(b, x);
	map_remove(&b->by_id, hash_id(x->build_id), oldest);
	if (b->probe == oldest)
		b->probe = MAP_NONE;
	metric_add(&b->metrics.dropped, 1);
	return oldest;
}

static struct upload_entry *add(
	struct upload_queue *b, const char *id, const char *path, int64_t now_ns)
{
	struct upload_entry x = { .fd = -1, .state = UPLOAD_UNMET, .met_ns = now_ns };
	uint32_t at = (uint32_t)b->entries.len;
	if (!id[0] || strlen(id) > DEBUGINFO_ID_MAX)
		return NULL;
	snprintf(x.build_id, sizeof(x.build_id), "%s", id);
	snprintf(x.path, sizeof(x.path), "%s", path);
	if (at == UPLOAD_QUEUE_FILES_MAX)
		at = make_place(b);
	if (at == MAP_NONE || (at == b->entries.len && !VEC_PUSH(&b->entries, x))) {
		metric_add(&b->metrics.dropped, 1);
		return NULL;
	}
	b->entries.v[at] = x;
	if (!map_insert(&b->by_id, hash_id(id), at)) {
		/* It cannot be found; its place is the next one's. */
		b->entries.v[at].build_id[0] = 0;
		metric_add(&b->metrics.dropped, 1);
		return NULL;
	}
	return &b->entries.v[at];
}

static bool wait_from_now(struct upload_queue *b, struct upload_entry *x)
{
	if (b->waiting >= b->queue_max) {
		metric_add(&b->metrics.dropped, 1);
		return false;
	}
	x->state = UPLOAD_WAITING;
	x->turn = b->turns++;
	b->waiting++;
	return true;
}

void upload_queue_seen(
	struct upload_queue *b, const char *build_id, const char *path, int fd, int64_t now_ns)
{
	struct upload_entry *x = find(b, build_id);
	if (!x)
		x = add(b, build_id, path, now_ns);
	if (!x || x->fd >= 0 || x->state == UPLOAD_THERE || x->state == UPLOAD_NOTHING ||
		b->fresh >= UPLOAD_QUEUE_FRESH_MAX)
		return;
	x->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;
	bool nameless = x->fd >= 0 && fstat(x->fd, &st) == 0 && st.st_nlink == 0;
	x->fd_until_ns = now_ns + (nameless ? UPLOAD_QUEUE_NAMELESS_NS : UPLOAD_QUEUE_FRESH_NS);
	b->fresh += x->fd >= 0;
}

bool upload_queue_met(struct upload_queue *b, uint32_t file_id, const char *build_id,
	const char *path, int pid, int64_t now_ns)
{
	struct upload_entry *x = find(b, build_id);
	if (!x)
		x = add(b, build_id, path, now_ns);
	if (!x)
		return false;
	x->file_id = file_id;
	x->pid = pid;
	x->met_ns = now_ns;
	if (x->state == UPLOAD_UNMET)
		return wait_from_now(b, x);
	bool may_wait = x->state == UPLOAD_THERE || x->state == UPLOAD_GONE;
	return may_wait && now_ns >= x->due_ns && wait_from_now(b, x);
}

void upload_queue_tick(struct upload_queue *b, int64_t now_ns)
{
	for (uint32_t i = 0; b->fresh && i < b->entries.len; i++)
		if (b->entries.v[i].fd >= 0 && now_ns >= b->entries.v[i].fd_until_ns)
			drop_fd(b, &b->entries.v[i]);
}

/* ---- turns ---- */

int64_t upload_queue_next_ns(const struct upload_queue *b)
{
	if (b->waiting || b->probe != MAP_NONE)
		return 0;
	int64_t next = INT64_MAX;
	for (uint32_t i = 0; i < b->entries.len; i++)
		if (b->entries.v[i].state == UPLOAD_LATER)
			next = MIN(next, b->entries.v[i].due_ns);
	return next;
}

/* First the probe, then waiting uploads in their order, then an upload to try again. */
static uint32_t choose(struct upload_queue *b, int64_t now_ns)
{
	uint32_t best = b->probe, late = MAP_NONE;
	if (best != MAP_NONE && b->entries.v[best].state == UPLOAD_THERE)
		return best;
	best = MAP_NONE;
	for (uint32_t i = 0; i < b->entries.len; i++) {
		const struct upload_entry *x = &b->entries.v[i];
		if (x->state == UPLOAD_WAITING &&
			(best == MAP_NONE || x->turn < b->entries.v[best].turn))
			best = i;
		if (x->state == UPLOAD_LATER && now_ns >= x->due_ns &&
			(late == MAP_NONE || x->due_ns < b->entries.v[late].due_ns))
			late = i;
	}
	return best == MAP_NONE ? late : best;
}

bool upload_queue_take(struct upload_queue *b, int64_t now_ns, struct upload_job *out)
{
	uint32_t i = choose(b, now_ns);
	if (i == MAP_NONE) {
		b->probe = MAP_NONE;
		return false;
	}
	struct upload_entry *x = &b->entries.v[i];
	*out = (struct upload_job){
		.entry = i,
		.file_id = x->file_id,
		.pid = x->pid,
		.fd = x->fd,
		.is_begun = x->is_begun,
		.is_refused = x->is_refused,
		.is_probe = x->state == UPLOAD_THERE,
		.attempts = x->attempts,
	};
	memcpy(out->build_id, x->build_id, sizeof(out->build_id));
	memcpy(out->path, x->path, sizeof(out->path));
	b->waiting -= x->state == UPLOAD_WAITING;
	b->fresh -= x->fd >= 0;
	x->fd = -1;
	x->state = UPLOAD_BUSY;
	b->probe = MAP_NONE;
	return true;
}

static void put_off(struct upload_entry *x, enum upload_state state, int64_t ns, int64_t now_ns)
{
	x->state = state;
	x->due_ns = now_ns + (ns << MIN(x->attempts, UPLOAD_QUEUE_SHIFT_MAX));
	x->attempts++;
}

static void settle(struct upload_entry *x, enum upload_state state, int64_t due_ns)
{
	x->state = state;
	x->due_ns = due_ns;
	x->attempts = 0;
	x->is_begun = x->is_refused = false;
}

/* It may be needed again, for as long as it was to be kept. */
static void return_fd(struct upload_queue *b, struct upload_entry *x, struct upload_job *job)
{
	bool is_needed = x->state == UPLOAD_WAITING || x->state == UPLOAD_LATER;
	if (is_needed && job->fd >= 0 && x->fd < 0) {
		x->fd = STEAL_FD(job->fd);
		b->fresh++;
	}
	if (job->fd >= 0)
		close_later(b, STEAL_FD(job->fd));
}

static void conclude(struct upload_queue *b, struct upload_entry *x, const struct upload_job *job,
	enum upload_outcome o, int64_t now_ns)
{
	const struct upload_queue_times *t = &b->times;
	switch (o) {
	case UPLOAD_SENT:
	case UPLOAD_NOT_WANTED:
		settle(x, UPLOAD_THERE, now_ns + t->again_ns);
		break;
	case UPLOAD_NO_NAMES:
		settle(x, UPLOAD_NOTHING, 0);
		break;
	case UPLOAD_IN_PROGRESS:
		x->state = UPLOAD_LATER;
		x->due_ns = now_ns + t->in_progress_ns;
		break;
	case UPLOAD_NO_FILE:
		put_off(x, UPLOAD_GONE, t->gone_ns, now_ns);
		break;
	case UPLOAD_REFUSED:
		put_off(x, UPLOAD_LATER, t->refused_ns, now_ns);
		break;
	case UPLOAD_BROKEN:
		if (x->attempts + 1 >= UPLOAD_QUEUE_BROKEN_MAX)
			settle(x, UPLOAD_GONE, now_ns + t->again_ns);
		else
			put_off(x, UPLOAD_LATER, t->retry_ns, now_ns);
		break;
	case UPLOAD_CHANGED:
		put_off(x, UPLOAD_LATER, t->retry_ns, now_ns);
		break;
	case UPLOAD_AWAY: /* a probe is asked when the server is there */
		if (job->is_probe)
			settle(x, UPLOAD_THERE, 0);
		else if (!wait_from_now(b, x))
			settle(x, UPLOAD_GONE, now_ns);
		break;
	}
}

void upload_queue_finish(
	struct upload_queue *b, struct upload_job *job, enum upload_outcome o, int64_t now_ns)
{
	struct upload_entry *x = &b->entries.v[job->entry];
	assert(x->state == UPLOAD_BUSY);
	x->is_begun = job->is_begun;
	x->is_refused = job->is_refused;
	conclude(b, x, job, o, now_ns);
	return_fd(b, x, job);
}

void upload_queue_probe(struct upload_queue *b)
{
	uint32_t latest = MAP_NONE;
	for (uint32_t i = 0; i < b->entries.len; i++)
		if (b->entries.v[i].state == UPLOAD_THERE &&
			(latest == MAP_NONE ||
				b->entries.v[i].due_ns > b->entries.v[latest].due_ns))
			latest = i;
	b->probe = latest;
}

void upload_queue_doubt(struct upload_queue *b)
{
	for (uint32_t i = 0; i < b->entries.len; i++)
		if (b->entries.v[i].state == UPLOAD_THERE && !wait_from_now(b, &b->entries.v[i]))
			b->entries.v[i].due_ns = 0; /* when it is met next */
}

uint32_t upload_queue_waiting(const struct upload_queue *b)
{
	uint32_t waiting = b->waiting;
	for (uint32_t i = 0; i < b->entries.len; i++)
		waiting += b->entries.v[i].state == UPLOAD_LATER ||
			   b->entries.v[i].state == UPLOAD_BUSY;
	return waiting;
}

void upload_queue_write_metrics(const struct upload_queue *b, struct buf *out)
{
	struct upload_queue_metrics m = { .dropped = metric_get(&b->metrics.dropped) };
	metric_set(&m.known, b->entries.len);
	metric_set(&m.waiting, upload_queue_waiting(b));
	metrics_write(out, metric_defs, (const metric_value *)&m, ARRAY_COUNT(metric_defs));
}
