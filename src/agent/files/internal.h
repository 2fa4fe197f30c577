/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal: shared by the files that handle a notice as a request: file_opener.c opens the
 * executable, file_builder.c builds and publishes its table, file_request.c keeps its binding.
 */
#pragma once

#include "agent/files/announce.h"
#include "agent/files/buildqueue.h"
#include "agent/files/elf_load.h"
#include "agent/files/files.h"
#include "agent/files/inode_search.h"
#include "agent/files/known_files.h"
#include "base/lock.h"
#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>

/* A notice on its way: opened by one thread, its table built and published by another. */
struct file_request {
	struct file_notice notice;
	uint32_t binding;
	int pid;
	bool is_replaced;   /* the inode belongs to another file than the bound one by now */
	bool is_unsure;     /* it may be replaced: the generation of the bound file is not known */
	bool is_published;  /* by this request */
	bool is_first_pass; /* of files_preload() */
	bool is_start;      /* the beginning of it, and no file */
	bool is_offer;      /* files_offer(), and no file */
	struct opened opened;
};

struct files {
	struct files_config config;
	struct sampler *sampler;
	struct os_queue *requests; /* to the opener */
	struct buildqueue *opened; /* from it to the builder */
	pthread_t opener;
	pthread_t builder;
	bool opener_runs;
	bool builder_runs;
	bool is_offer_due;                 /* the opener's own */
	struct inode_search_beside recent; /* folders of files that it opened lately */
	atomic_bool stop;
	struct lock work;
	struct elf_load load; /* under `work` */
	struct announce offer;
	int64_t between_ns; /* the builder's own: CPU time of what was built in between */
	pthread_cond_t first_pass_done; /* with `lock` */
	uint32_t first_pass_left;       /* requests, and one for what is not listed yet */
	enum status first_pass_status;
	struct lock lock;
	struct known_files book; /* under `lock` */
	struct files_metrics metrics;
};

static inline void unlock_cleanup(struct lock **m)
{
	lock_release(*m);
}

static inline struct lock *locked(struct lock *m)
{
	lock_take(m);
	return m;
}

#define LOCKED(m) CLEANUP(unlock_cleanup) UNUSED struct lock *locked_ = locked(m)

/* ---- file_request.c ---- */

/* NULL: no memory. */
struct file_request *file_request_new(const struct file_notice *n, int pid);
void file_request_free(struct file_request *r);
void file_request_cleanup(struct file_request **r);
/* Makes its binding WAITING. False: it waits already, its time to be tried again has not come, or
 * there is no room (counted). */
bool file_request_begin(struct files *f, struct file_request *r);
/* The file of this request, published before and not evicted since; 0: it is to be loaded. */
uint32_t file_request_published(struct files *f, struct file_request *r);
/* The end of a request; frees it. `id`: the file's, with `s` OK. */
void file_request_finish(
	struct files *f, struct file_request *r, uint32_t id, enum status s, struct err *e);
/* Gives the request up; the next notice makes it anew. A bound file is still published and stays
 * bound, unless `is_replaced`. */
void file_request_cancel(struct files *f, uint32_t binding, bool is_replaced);
/* Counts one request of the first pass as done. With `lock` held. */
void file_request_count_first_pass(struct files *f);

/* ---- file_builder.c ---- */

/* A thread: builds and publishes what the opener has opened. */
void *file_builder_run(void *files);
/* Called every few milliseconds while a table is built. It builds small tables in between, so that
 * they do not wait for a large one of another owner. */
bool file_builder_between(void *files);
/* Under `work`. */
NODISCARD enum status file_builder_load_vdso(struct files *f, struct err *e);

/* ---- file_opener.c ---- */

/* A thread. */
void *file_opener_run(void *files);
