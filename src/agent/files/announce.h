/* SPDX-License-Identifier: Apache-2.0 */
/*
 * announce: shows opened executables to the part that names their addresses: each one once when it
 * is first seen, and on request again all that are mapped now. Private to agent/ (files.c).
 *
 * Not thread safe but for announce_show(), which may be called from any thread.
 */
#pragma once

#include "agent/files/elf_load.h"

struct announce {
	files_seen_fn *seen; /* NULL: nothing is done */
	void *seen_ctx;
	const char *cache_dir; /* as elf_load_share() */
	bool no_copies;        /* as files_config */
	int only_pid;          /* as files_config */
	struct files_metrics *metrics;
};

/* `o` must be an ELF file (o->obj). A file that cannot be shown is counted. */
void announce_show(const struct announce *f, const struct opened *o);
void announce_show_vdso(const struct announce *f, const struct objfile *vdso, struct str image);
/* The vDSO, and each file that a process has mapped for execution now. Before each of them
 * `go_on` is asked; false: that is all. */
void announce_show_all(
	const struct announce *f, const struct elf_load *load, bool (*go_on)(void *ctx), void *ctx);
