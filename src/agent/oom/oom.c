/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a victim: OOM_BEGIN takes a place among the heaps and reads the labels of its process,
 * which is still there; each OOM_BUCKET is added; OOM_END, or silence, sends what is left.
 *
 * Contents (different executables) are numbered, and known to the kernel by each key they were met
 * with. One whose number is in a victim's OOM_BEGIN is held until the victim is done.
 */
#include "agent/oom/oom.h"

#include "agent/sample/sample.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/vec.h"
#include "os/os.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* Generated. It casts a const away. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "oom.skel.h"
#pragma GCC diagnostic pop

struct content {
	uint32_t id; /* 0: this place is free */
	char *build_id;
	char *path;
	struct oomprogram program;
	uint32_t victims; /* that hold it */
	uint64_t met;     /* a number that grows: the last time it was met */
};

struct key_of {
	struct file_key key;
	uint32_t content; /* its id */
};

struct victim {
	uint32_t pid; /* 0: this place is free */
	uint64_t start_ns;
	struct content *content;
	struct oomheap *heap; /* NULL: it is not wanted, or lost */
	int64_t last_ns;
	uint32_t buckets;
	bool is_partial;
};

struct oom {
	struct oom_config config;
	struct oom_bpf *skeleton;
	struct bpf_link *link;
	struct oom_counters *counters; /* shared with the kernel */
	uint64_t kernel_bytes;
	struct victim victims[OOM_HEAPS_MAX];
	struct lock lock; /* of what follows */
	struct content contents[OOM_CONTENTS_MAX];
	uint64_t contents_bytes;
	uint32_t last_id;
	uint64_t meetings;
	VEC(struct key_of) keys;
	struct oom_metrics metrics;
};

/* ---- programs ---- */

static void count_contents(struct oom *o)
{
	uint64_t known = 0, stripped = 0;
	for (size_t i = 0; i < OOM_CONTENTS_MAX; i++) {
		known += o->contents[i].id && o->contents[i].program.buckets;
		stripped += o->contents[i].id && !o->contents[i].program.buckets;
	}
	metric_set(&o->metrics.programs, known);
	metric_set(&o->metrics.stripped, stripped);
}

static void forget_key(struct oom *o, size_t at)
{
	(void)bpf_map_delete_elem(bpf_map__fd(o->skeleton->maps.oom_programs), &o->keys.v[at].key);
	o->keys.v[at] = o->keys.v[--o->keys.len];
}

static uint64_t bytes_of(const struct content *c)
{
	return c->program.function_count * sizeof(uint32_t);
}

static void forget_content(struct oom *o, struct content *c)
{
	for (size_t i = o->keys.len; i-- > 0;)
		if (o->keys.v[i].content == c->id)
			forget_key(o, i);
	o->contents_bytes -= bytes_of(c);
	oomprogram_deinit(&c->program);
	free(c->build_id);
	free(c->path);
	*c = (struct content){ 0 };
}

static struct content *content_find(struct oom *o, const char *build_id, const char *path)
{
	for (size_t i = 0; i < OOM_CONTENTS_MAX; i++) {
		struct content *c = &o->contents[i];
		if (c->id && strcmp(c->build_id, build_id) == 0 && strcmp(c->path, path) == 0)
			return c;
	}
	return NULL;
}

/* A free place, or that of the least recently met content that no victim uses. */
static struct content *content_place(struct oom *o)
{
	struct content *oldest = NULL;
	for (size_t i = 0; i < OOM_CONTENTS_MAX; i++) {
		struct content *c = &o->contents[i];
		if (!c->id)
			return c;
		if (!c->victims && (!oldest || c->met < oldest->met))
			oldest = c;
	}
	if (oldest)
		forget_content(o, oldest);
	return oldest;
}

/* Takes the program over, also when it fails. */
static struct content *content_add(
	struct oom *o, struct oomprogram *program, const char *build_id, const char *path)
{
	struct content *c = content_place(o);
	char *id = strdup(build_id), *name = strdup(path);
	bool fits = o->contents_bytes + program->function_count * sizeof(uint32_t) <=
		    OOM_CONTENTS_BYTES_MAX;
	if (!c || !id || !name || !fits) {
		free(id);
		free(name);
		oomprogram_deinit(program);
		return NULL;
	}
	*c = (struct content){ ++o->last_id, id, name, *program, 0, 0 };
	o->contents_bytes += bytes_of(c);
	return c;
}

static bool key_equal(const struct file_key *a, const struct file_key *b)
{
	return a->inode == b->inode && a->dev == b->dev;
}

static bool tell_kernel(struct oom *o, const struct file_key *key, const struct content *c)
{
	const struct oomprogram *p = &c->program;
	const struct oom_program value = { p->first_offset, p->first_vaddr, p->code_offset,
		p->code_vaddr, p->buckets, p->rate, key->generation, c->id };
	const struct file_key plain = { key->inode, key->dev, 0 };
	for (size_t i = 0; i < o->keys.len; i++)
		if (key_equal(&o->keys.v[i].key, key)) {
			o->keys.v[i] = o->keys.v[--o->keys.len];
			break;
		}
	if (o->keys.len >= OOM_PROGRAMS_MAX)
		forget_key(o, 0);
	if (!VEC_PUSH(&o->keys, (struct key_of){ plain, c->id }))
		return false;
	int fd = bpf_map__fd(o->skeleton->maps.oom_programs);
	if (bpf_map_update_elem(fd, &plain, &value, BPF_ANY) == 0)
		return true;
	o->keys.len--;
	return false;
}

/* The inode may have been another program's. */
static void forget_old(struct oom *o, const struct file_key *key)
{
	for (size_t i = 0; i < o->keys.len; i++)
		if (key_equal(&o->keys.v[i].key, key)) {
			forget_key(o, i);
			return;
		}
}

void oom_know(struct oom *o, const struct file_key *key, const struct objfile *obj,
	const char *build_id, const char *path)
{
	struct err e = { 0 };
	struct oomprogram program;
	lock_take(&o->lock);
	struct content *c = content_find(o, build_id, path);
	lock_release(&o->lock);
	/* One thread tells of files, so no other adds it meanwhile. */
	enum status s = c ? OK : oomprogram_read(obj, &program, &e);
	lock_take(&o->lock);
	if (s == OK && !c)
		c = content_add(o, &program, build_id, path);
	if (s == E_NOTFOUND)
		forget_old(o, key);
	else if (!c || !tell_kernel(o, key, c))
		metric_add(&o->metrics.refused, 1);
	if (c)
		c->met = ++o->meetings;
	count_contents(o);
	lock_release(&o->lock);
	char text[2 * ERR_TEXT_MAX], name[2 * PATH_MAX];
	log_quote(str_of(path), name, sizeof(name));
	if (s == OK)
		log_debug("a Go program is known", "path=%s", name);
	else if (s != E_NOTFOUND)
		log_debug("heaps of a Go program are not read", "path=%s reason=%s", name,
			log_quote(str_of(err_text(&e, s)), text, sizeof(text)));
}

static struct content *content_hold(struct oom *o, uint32_t id)
{
	struct content *found = NULL;
	lock_take(&o->lock);
	for (size_t i = 0; i < OOM_CONTENTS_MAX && id; i++)
		if (o->contents[i].id == id)
			found = &o->contents[i];
	if (found)
		found->victims++;
	lock_release(&o->lock);
	return found;
}

static void content_release(struct oom *o, struct content *c)
{
	lock_take(&o->lock);
	c->victims--;
	lock_release(&o->lock);
}

/* ---- victims ---- */

static void on_message(void *ctx, struct buf *message, uint32_t sample_count)
{
	struct oom *o = ctx;
	metric_add(&o->metrics.samples, sample_count);
	o->config.emit(o->config.ctx, message, sample_count);
}

static struct victim *victim_find(struct oom *o, const struct oom_header *h)
{
	for (size_t i = 0; i < OOM_HEAPS_MAX; i++)
		if (o->victims[i].pid == h->pid && o->victims[i].start_ns == h->process_start_ns)
			return &o->victims[i];
	return NULL;
}

static void victim_finish(struct oom *o, struct victim *v)
{
	uint32_t lost = 0;
	if (v->heap) {
		if (oomheap_finish(v->heap, &lost) != OK)
			v->is_partial = true;
		metric_add(&o->metrics.profiles, 1);
		metric_add(&o->metrics.partial, v->is_partial);
		char path[2 * PATH_MAX];
		log_info("the heap of a process that ended for want of memory",
			"pid=%u path=%s buckets=%u whole=%s", v->pid,
			log_quote(str_of(v->content->path), path, sizeof(path)), v->buckets,
			v->is_partial ? "no" : "yes");
	}
	oomheap_free(v->heap);
	if (v->content)
		content_release(o, v->content);
	*v = (struct victim){ 0 };
}

/* Its labels are read now, while the process is there. */
static enum status open_heap(
	struct oom *o, const struct oom_begin *b, struct victim *v, struct err *e)
{
	const struct process *x = processes_find(o->config.processes, &b->h);
	if (!x)
		return err_set(e, E_NOMEM, "labels");
	if (x->dropped) {
		metric_add(&o->metrics.dropped, 1);
		return OK;
	}
	v->content = content_hold(o, b->program);
	if (!v->content)
		return err_set(e, E_NOTFOUND, "its program was forgotten");
	int64_t ago_ns = clock_monotonic_ns() - (int64_t)b->h.time_ns;
	const struct oomheap_config c = { o->config.allocs, &v->content->program,
		v->content->build_id, v->content->path, b, x->labels, x->label_count,
		clock_realtime_ns() - ago_ns, on_message, o };
	return oomheap_new(&c, &v->heap, e);
}

static void on_begin(struct oom *o, const struct oom_begin *b)
{
	struct err e = { 0 };
	struct victim *v = victim_find(o, &(struct oom_header){ .pid = 0 });
	if (!v) {
		metric_add(&o->metrics.heaps_lost, 1);
		return;
	}
	v->pid = b->o.pid;
	v->start_ns = b->o.process_start_ns;
	v->last_ns = clock_monotonic_ns();
	enum status s = open_heap(o, b, v, &e);
	if (s == OK)
		return;
	metric_add(&o->metrics.heaps_lost, 1);
	log_warn("the heap of a process that ended is lost", "pid=%u reason=%s", b->o.pid,
		LOG_QUOTED(err_text(&e, s)));
}

static void on_bucket(struct oom *o, const struct oom_bucket *b)
{
	struct victim *v = victim_find(o, &b->o);
	if (v && v->heap) {
		v->last_ns = clock_monotonic_ns();
		v->buckets++;
		if (oomheap_add(v->heap, b) == OK)
			return;
		v->is_partial = true;
	}
	metric_add(&o->metrics.buckets_lost, 1);
}

static void on_end(struct oom *o, const struct oom_end *end)
{
	struct victim *v = victim_find(o, &end->o);
	if (!v)
		return;
	v->is_partial |= end->reason != OOM_WHOLE || end->lost;
	victim_finish(o, v);
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct oom *o = ctx;
	const struct oom_header *h = data;
	assert(size >= sizeof(*h));
	switch (h->type) {
	case OOM_BEGIN:
		assert(size >= sizeof(struct oom_begin));
		on_begin(o, data);
		break;
	case OOM_BUCKET:
		assert(h->stack_count <= OOM_STACK_MAX &&
			size >= offsetof(struct oom_bucket, stack) +
					h->stack_count * sizeof(uint64_t));
		on_bucket(o, data);
		break;
	case OOM_END:
		assert(size >= sizeof(struct oom_end));
		on_end(o, data);
		break;
	default:
		UNREACHABLE();
	}
	return 0;
}

void oom_tick(struct oom *o, int64_t now_ns)
{
	for (size_t i = 0; i < OOM_HEAPS_MAX; i++) {
		struct victim *v = &o->victims[i];
		if (!v->pid || now_ns - v->last_ns < OOM_PATIENCE_NS)
			continue;
		v->is_partial = true;
		victim_finish(o, v);
	}
}

void oom_finish(struct oom *o)
{
	oom_tick(o, INT64_MAX);
}

/* ---- life ---- */

void oom_protect(void)
{
	CLEANUP(fd_cleanup) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, OOM_SCORE_ADJ, sizeof(OOM_SCORE_ADJ) - 1) < 0)
		log_info("the kernel may end the agent as soon as others for want of memory",
			"reason=%s", LOG_QUOTED(strerror(errno)));
}

static void oom_cleanup(struct oom **o)
{
	oom_close(*o);
}

static enum status load(struct oom *o, struct err *e)
{
	CLEANUP(free_cleanup) char *log = calloc(1, SAMPLER_LOG_BYTES);
	if (!log)
		return err_set(e, E_NOMEM, "reading heaps");
	LIBBPF_OPTS(bpf_object_open_opts, options, .kernel_log_buf = log,
		.kernel_log_size = SAMPLER_LOG_BYTES);
	o->skeleton = oom_bpf__open_opts(&options);
	if (!o->skeleton)
		return err_os(e, "open the eBPF program that reads heaps");
	o->skeleton->rodata->config_allocs = o->config.allocs;
	return sampler_load(o->skeleton->skeleton, log, e);
}

enum status oom_open(struct sampler *sampler, bool allocs, struct oom **out, struct err *e)
{
	CLEANUP(oom_cleanup) struct oom *o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(e, E_NOMEM, "reading heaps");
	lock_init(&o->lock, LOCK_OOM);
	o->config.allocs = allocs;
	enum status s = load(o, e);
	if (s != OK)
		return s;
	o->counters = &o->skeleton->bss->counters;
	o->kernel_bytes =
		mapsizes_measure(o->skeleton->obj, (uint32_t)MAX(libbpf_num_possible_cpus(), 1));
	o->link = bpf_program__attach(o->skeleton->progs.oom_signal);
	if (!o->link)
		return probe_explain("watching signal_deliver", errno, e);
	s = sampler_read_too(sampler, bpf_map__fd(o->skeleton->maps.oom_events), on_event, o, e);
	if (s != OK)
		return s;
	*out = STEAL_PTR(o);
	return OK;
}

void oom_configure(struct oom *o, const struct oom_config *c)
{
	o->config = *c;
}

void oom_close(struct oom *o)
{
	if (!o)
		return;
	(void)bpf_link__destroy(o->link);
	for (size_t i = 0; i < OOM_HEAPS_MAX; i++)
		oomheap_free(o->victims[i].heap);
	for (size_t i = 0; i < OOM_CONTENTS_MAX; i++) {
		oomprogram_deinit(&o->contents[i].program);
		free(o->contents[i].build_id);
		free(o->contents[i].path);
	}
	VEC_FREE(&o->keys);
	oom_bpf__destroy(o->skeleton);
	lock_destroy(&o->lock);
	free(o);
}

/* ---- counters ---- */

const struct oom_metrics *oom_metrics(const struct oom *o)
{
	return &o->metrics;
}

void oom_read_counters(const struct oom *o, struct oom_counters *out)
{
#define READ(name, help) out->name = __atomic_load_n(&o->counters->name, __ATOMIC_RELAXED);
	OOM_COUNTER_LIST(READ)
#undef READ
}

uint32_t oom_verified_insns(const struct oom *o)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_program__fd(o->skeleton->progs.oom_signal);
	return bpf_obj_get_info_by_fd(fd, &info, &len) == 0 ? info.verified_insns : 0;
}

uint64_t oom_kernel_bytes(const struct oom *o)
{
	return o ? o->kernel_bytes : 0;
}

void oom_write_metrics(const struct oom *o, struct buf *out)
{
	static const struct metric_def defs[] = { OOM_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &o->metrics.programs, ARRAY_COUNT(defs));
	struct oom_counters c;
	oom_read_counters(o, &c);
#define WRITE(name, help)                                                                      \
	buf_printf(out,                                                                        \
		"# HELP firn_agent_oom_" #name "_total " help "\n# TYPE firn_agent_oom_" #name \
		"_total counter\nfirn_agent_oom_" #name "_total %llu\n",                       \
		(unsigned long long)c.name);
	OOM_COUNTER_LIST(WRITE)
#undef WRITE
}
