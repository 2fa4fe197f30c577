/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/announce.h"

#include "agent/files/mapped_file.h"
#include "agent/files/preload.h"
#include "base/log.h"
#include "os/os.h"

#include <stdlib.h>
#include <sys/mman.h>

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

void announce_show(const struct announce *f, const struct opened *o)
{
	struct err e = { 0 };
	CLEANUP(fd_cleanup) int fd = -1;
	if (!f->seen || (f->no_copies && o->file.is_pinned))
		return;
	enum status s = elf_load_share(o, f->cache_dir, &fd, &e);
	if (s == OK) {
		f->seen(f->seen_ctx, o->build_id, o->path, fd);
		return;
	}
	metric_add(&f->metrics->not_shared, 1);
	log_debug("file not handed over", "path=%s reason=%s", LOG_QUOTED(o->path),
		LOG_QUOTED(err_text(&e, s)));
}

void announce_show_vdso(const struct announce *f, const struct objfile *vdso, struct str image)
{
	const char *build_id = objfile_build_id(vdso);
	if (!f->seen || !build_id[0])
		return;
	CLEANUP(fd_cleanup) int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && os_write_full(fd, image.p, image.len, "vdso", NULL) == OK)
		f->seen(f->seen_ctx, build_id, "[vdso]", fd);
}

static void show_file(
	const struct announce *f, const struct elf_load *load, const struct preload_file *file)
{
	struct err e;
	struct opened o = { .file.fd = -1 };
	/* Files that are gone by now are not shown. */
	if (mapped_file_open(file->pid, &file->notice, &o.file, o.path, &e) == OK &&
		elf_load_examine(load, &o, &e) == OK && o.obj)
		announce_show(f, &o);
	opened_close(&o);
}

void announce_show_all(
	const struct announce *f, const struct elf_load *load, bool (*go_on)(void *ctx), void *ctx)
{
	CLEANUP(objfile_cleanup) struct objfile *vdso = NULL;
	CLEANUP(free_cleanup) struct preload_file *found = NULL;
	struct err e = { 0 };
	struct str image;
	size_t count = 0;
	if (!f->seen)
		return;
	if (open_file_vdso(&vdso, &image, &e) == OK && vdso)
		announce_show_vdso(f, vdso, image);
	if (preload_collect(f->only_pid, go_on, ctx, &found, &count, &e) != OK)
		log_warn("no list of processes", "reason=%s", LOG_QUOTED(e.text));
	for (size_t i = 0; i < count && go_on(ctx); i++)
		show_file(f, load, &found[i]);
}
