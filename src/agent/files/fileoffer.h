/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fileoffer: shows executables, opened, to whoever names their addresses: each once when it is met,
 * and all that are mapped now once more when somebody asks. Private to agent/ (files.c).
 *
 * Not thread safe but for fileoffer_show(), which may be called from any thread.
 */
#pragma once

#include "agent/files/fileload.h"

struct fileoffer {
	files_seen_fn *seen; /* NULL: nobody is there, and nothing is done */
	void *seen_ctx;
	const char *cache_dir; /* as fileload_share() */
	bool no_copies;        /* as files_config */
	int only_pid;          /* as files_config */
	struct files_metrics *metrics;
};

/* It is an ELF file (o->obj). What cannot be shown is counted. */
void fileoffer_show(const struct fileoffer *f, const struct opened *o);
/* The vDSO of this process, which is that of all. *out stays NULL on a kernel without one; *image
 * lives as long as the process. */
NODISCARD enum status fileoffer_vdso(struct objfile **out, struct str *out_image, struct err *e);
void fileoffer_show_vdso(const struct fileoffer *f, const struct objfile *vdso, struct str image);
/* The vDSO, and each file that a process has mapped for execution now. Before each of them
 * `go_on` is asked; false: that is all. */
void fileoffer_show_all(const struct fileoffer *f, const struct fileload *load,
	bool (*go_on)(void *ctx), void *ctx);
