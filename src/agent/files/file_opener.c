/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of its own, because the process of a notice may end any moment while the builder is at a
 * large table, and because opening a file may hang with its file system. While it opens the files
 * of all processes there are (the first pass), notices come before these.
 */
#include "agent/files/internal.h"

#include "agent/files/mapped_file.h"
#include "agent/files/preload.h"
#include "base/log.h"

#include <stdlib.h>

/* If too many files wait to be built, an opened file waits so long for room. */
#define PUSH_WAIT_NS (1 * NS_PER_SEC)
/* In the first pass the opener is ahead of the builder by no more, so that a notice waits for few
 * tables. */
#define FIRST_PASS_AHEAD 4
#define FIRST_PASS_NAP_NS (5 * NS_PER_MS)
/* How often it is looked whether a file system that hung answers again. */
#define DROP_LATE_NS (5 * NS_PER_SEC)

static uint32_t wanted_so_far(struct files *f, uint32_t binding)
{
	LOCKED(&f->lock);
	return f->book.bindings.v[binding].wanted;
}

static void pass_on(struct files *f, struct file_request *r)
{
	const struct build_ticket ticket = { r->opened.owner, elf_load_bytes(&r->opened),
		r->binding, wanted_so_far(f, r->binding) };
	if (buildqueue_push(f->opened, r, &ticket, clock_monotonic_ns() + PUSH_WAIT_NS))
		return;
	file_request_cancel(f, r->binding, r->is_replaced);
	if (r->is_first_pass) {
		LOCKED(&f->lock);
		file_request_count_first_pass(f);
	}
	file_request_free(r);
}

/* A program that ended before it could be opened is often in the same folder as others that are run
 * now, as in a build or a test. */
static enum status open_file_of(struct files *f, struct file_request *r, struct err *e)
{
	struct opened *o = &r->opened;
	enum status s = mapped_file_open(r->pid, &r->notice, &o->file, o->path, e);
	if (mapped_file_is_gone(s) &&
		inode_search_beside(&f->recent, &r->notice.key, &o->file, o->path))
		s = OK;
	if (s == OK)
		inode_search_beside_note(&f->recent, str_of(o->path));
	return s;
}

/* Open a file and pass it on; takes the request over. A process may end any moment, and a mount may
 * hang: so this waits for no table, and only the builder waits for this. */
static void open_one(struct files *f, struct file_request *r)
{
	struct err e = { 0 };
	uint32_t id = file_request_published(f, r);
	if (id) {
		file_request_finish(f, r, id, OK, &e);
		return;
	}
	enum status s = open_file_of(f, r, &e);
	if (s == OK)
		s = elf_load_examine(&f->load, &r->opened, &e);
	else if (s == E_INVALID && r->opened.path[0]) { /* known, without a table */
		elf_load_examine_other(&f->load, &r->opened);
		s = OK;
	}
	if (s != OK) {
		metric_add(&f->metrics.open_failed, 1);
		file_request_finish(f, r, 0, s, &e);
		return;
	}
	pass_on(f, r);
}

/* Opens the files of all notices that are there. Without any it waits `wait_ns` for the first. */
static void open_notices(struct files *f, int64_t wait_ns)
{
	int64_t deadline = wait_ns ? clock_monotonic_ns() + wait_ns : 0;
	struct file_request *r;
	while ((r = os_queue_pop(f->requests, deadline))) {
		deadline = 0;
		f->is_offer_due |= r->is_offer;
		if (atomic_load(&f->stop) || r->is_offer)
			file_request_free(r);
		else
			open_one(f, r);
	}
}

/* Notices go first. */
static bool goes_on(void *ctx)
{
	struct files *f = ctx;
	open_notices(f, 0);
	return !atomic_load(&f->stop);
}

/* By the opener. */
static void open_first_pass(struct files *f)
{
	struct err e = { 0 };
	lock_take(&f->work);
	enum status s = file_builder_load_vdso(f, &e);
	lock_release(&f->work);
	if (s != OK) /* its frames go by the frame pointer */
		log_warn("no unwind table of the vDSO", "reason=%s", LOG_QUOTED(err_text(&e, s)));
	CLEANUP(free_cleanup) struct preload_file *found = NULL;
	size_t count = 0;
	s = preload_collect(f->config.only_pid, goes_on, f, &found, &count, &e);
	if (s != OK)
		log_warn("no list of processes", "reason=%s", LOG_QUOTED(err_text(&e, s)));
	for (size_t i = 0; i < count && !atomic_load(&f->stop); i++) {
		CLEANUP(file_request_cleanup)
		struct file_request *r = file_request_new(&found[i].notice, found[i].pid);
		if (!r)
			break;
		r->is_first_pass = true;
		open_notices(f, 0);
		while (buildqueue_len(f->opened) >= FIRST_PASS_AHEAD && !atomic_load(&f->stop))
			open_notices(f, FIRST_PASS_NAP_NS);
		if (file_request_begin(f, r))
			open_one(f, STEAL_PTR(r));
	}
	LOCKED(&f->lock);
	f->first_pass_status = s;
	file_request_count_first_pass(f);
}

/* The opener calls this. It changes no table: bindings stay. */
static void offer_all(struct files *f)
{
	f->is_offer_due = false;
	announce_show_all(&f->offer, &f->load, goes_on, f);
}

void *file_opener_run(void *ctx)
{
	struct files *f = ctx;
	while (!atomic_load(&f->stop)) {
		struct file_request *r =
			os_queue_pop(f->requests, clock_monotonic_ns() + DROP_LATE_NS);
		broker_drop_late();
		if (!r)
			continue;
		f->is_offer_due |= r->is_offer;
		if (atomic_load(&f->stop) || r->is_offer) {
			file_request_free(r);
		} else if (r->is_start) {
			file_request_free(r);
			open_first_pass(f);
		} else {
			open_one(f, r);
		}
		while (f->is_offer_due && !atomic_load(&f->stop))
			offer_all(f);
	}
	return NULL;
}
