/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An opened file gets its id and its table, and is published to the sampler. Each owner pays for
 * the time of its tables (buildqueue.h). `work` is held meanwhile.
 */
#include "agent/files/internal.h"

#include "runtimes/runtimes.h"

/* While a large table is built, files with so many bytes to build from are built in between. */
#define SMALL_BYTES_MAX ((uint64_t)1 << 20)

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

static void table_cleanup(struct unwind_table **t)
{
	unwind_table_free(*t);
}

/* The id of what was opened, new or known. */
static enum status know(
	struct files *f, const struct opened *o, uint32_t *out_id, bool *out_is_new, struct err *e)
{
	LOCKED(&f->lock);
	const struct known_file_content content = { o->identity, o->build_id, o->path, o->obj,
		o->owner };
	return known_files_know(&f->book, &content, clock_monotonic_ns(), out_id, out_is_new, e);
}

static void set_table(struct files *f, uint32_t id, const struct unwind_table *t)
{
	LOCKED(&f->lock);
	known_files_set_table(&f->book, id, t != NULL, t ? t->row_count : 0);
}

/* RUNTIME_NONE: the file contains no runtime that can be walked. */
static void set_runtime(struct files *f, uint32_t id, uint16_t kind)
{
	LOCKED(&f->lock);
	struct known_file *k = known_files_get(&f->book, id);
	if (!k)
		return;
	k->runtime = kind;
	k->has_no_runtime = kind == RUNTIME_NONE;
}

static bool may_have_runtime(struct files *f, uint32_t id)
{
	LOCKED(&f->lock);
	const struct known_file *k = known_files_get(&f->book, id);
	return f->config.runtimes && (!k || !k->has_no_runtime);
}

/* Of a file that is published: does it hold a language runtime? */
static void publish_runtime(struct files *f, const struct file_request *r, uint32_t id)
{
	struct err e;
	struct runtime_record record;
	if (!r->opened.obj || !may_have_runtime(f, id))
		return;
	enum status s = runtimes_find(r->opened.obj, &record, &e);
	if (s == E_NOTFOUND || s == E_UNSUPPORTED)
		set_runtime(f, id, RUNTIME_NONE);
	if (s == OK && !(f->config.runtimes >> record.kind & 1))
		return;
	if (s == OK)
		s = sampler_set_runtime(f->sampler, &r->notice.key, &record, &e);
	if (s == E_NOTFOUND)
		return;
	if (s == OK)
		set_runtime(f, id, record.kind);
	metric_add(s == OK ? &f->metrics.runtimes : &f->metrics.runtimes_refused, 1);
	if (s != OK)
		problems_add(f->config.problems, PROBLEM_RUNTIME, r->opened.path, err_text(&e, s));
}

static enum status publish(struct files *f, struct file_request *r, uint32_t *out_id, struct err *e)
{
	struct opened *o = &r->opened;
	CLEANUP(table_cleanup) struct unwind_table *t = NULL;
	enum status s = elf_load_table(&f->load, o, &t, e);
	if (s != OK)
		return s;
	uint32_t id = 0;
	bool is_new = false;
	s = know(f, o, &id, &is_new, e);
	if (s != OK)
		return s;
	if (f->config.known && o->obj)
		f->config.known(f->config.known_ctx, &r->notice.key, o->obj, o->build_id, o->path);
	is_new &= o->obj != NULL;
	if (is_new && !o->file.is_pinned)
		announce_show(&f->offer, o);
	s = sampler_publish(f->sampler, &r->notice.key, id, t, e);
	r->is_published = s == OK || s == E_LIMIT;
	if (r->is_published)
		publish_runtime(f, r, id);
	if (s == E_LIMIT) { /* then the file is known, without a table */
		metric_add(&f->metrics.over_budget, t != NULL);
		s = OK;
		set_table(f, id, NULL);
	} else if (s == OK) {
		set_table(f, id, t);
	}
	if (is_new && o->file.is_pinned) /* sharing copies it, while others wait */
		announce_show(&f->offer, o);
	*out_id = id;
	return s;
}

enum status file_builder_load_vdso(struct files *f, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	struct str image;
	enum status s = open_file_vdso(&obj, &image, e);
	if (s == OK && !obj)
		return OK;
	CLEANUP(table_cleanup) struct unwind_table *t = NULL;
	if (s == OK)
		s = elf_load_build(&f->load, obj, &t, e);
	struct file_key none = { 0 };
	if (s == OK)
		s = sampler_publish(f->sampler, &none, FRAME_FILE_VDSO, t, e);
	if (s != OK)
		return s;
	const char *build_id = objfile_build_id(obj);
	{
		LOCKED(&f->lock);
		const struct known_file_content vdso = { "[vdso]", build_id, "[vdso]", obj, 0 };
		if (!known_files_know_vdso(&f->book, &vdso))
			return err_set(e, E_NOMEM, "vDSO");
	}
	set_table(f, FRAME_FILE_VDSO, t);
	announce_show_vdso(&f->offer, obj, image);
	return OK;
}

/* ---- the thread ---- */

/* Builds and publishes one, and has its owner pay; under `work`. */
static void build_one(struct files *f, struct file_request *r, const struct build_ticket *ticket)
{
	int64_t begin = clock_thread_cpu_ns();
	struct err e = { 0 };
	uint32_t id = 0;
	f->between_ns = 0;
	enum status s = publish(f, r, &id, &e);
	file_request_finish(f, r, id, s, &e);
	int64_t spent = clock_thread_cpu_ns() - begin;
	buildqueue_charge(f->opened, ticket->owner, spent - f->between_ns);
	metric_add(&f->metrics.work_ns, (uint64_t)(spent - f->between_ns));
	f->between_ns = spent;
}

bool file_builder_between(void *ctx)
{
	struct files *f = ctx;
	int64_t between = f->between_ns;
	struct file_request *r;
	struct build_ticket ticket;
	bool is_between = f->load.is_between;
	f->load.is_between = true;
	while (!is_between && !atomic_load(&f->stop) &&
		(r = buildqueue_try_pop_small(f->opened, SMALL_BYTES_MAX, &ticket))) {
		build_one(f, r, &ticket);
		between += f->between_ns;
	}
	f->load.is_between = is_between;
	f->between_ns = between;
	return !atomic_load(&f->stop);
}

void *file_builder_run(void *ctx)
{
	struct files *f = ctx;
	struct build_ticket ticket;
	for (;;) {
		struct file_request *r = buildqueue_pop(f->opened, &ticket);
		if (!r)
			return NULL;
		if (atomic_load(&f->stop)) {
			file_request_free(r);
			continue;
		}
		lock_take(&f->work);
		build_one(f, r, &ticket);
		lock_release(&f->work);
		if (buildqueue_len(f->opened) == 0)
			sampler_rest(f->sampler);
	}
}
