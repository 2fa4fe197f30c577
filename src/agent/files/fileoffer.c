/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/fileoffer.h"

#include "agent/files/preload.h"
#include "base/log.h"
#include "os/os.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define VDSO_BYTES_MAX 65536

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

void fileoffer_show(const struct fileoffer *f, const struct opened *o)
{
	struct err e = { 0 };
	CLEANUP(fd_cleanup) int fd = -1;
	if (!f->seen || (f->no_copies && o->file.is_held))
		return;
	enum status s = fileload_share(o, f->cache_dir, &fd, &e);
	if (s == OK) {
		f->seen(f->seen_ctx, o->build_id, o->path, fd);
		return;
	}
	metric_add(&f->metrics->not_shared, 1);
	log_debug("file not handed over", "path=%s reason=%s", LOG_QUOTED(o->path),
		LOG_QUOTED(err_text(&e, s)));
}

enum status fileoffer_vdso(struct objfile **out, struct str *out_image, struct err *e)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return OK; /* a kernel without one */
	Elf64_Ehdr header;
	memcpy(&header, image, sizeof(header));
	uint64_t len = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	if (len > VDSO_BYTES_MAX)
		return err_set(e, E_LIMIT, "vDSO: %llu bytes", (unsigned long long)len);
	*out_image = str_make((const char *)image, len);
	return objfile_open_bytes(image, len, "[vdso]", out, e);
}

void fileoffer_show_vdso(const struct fileoffer *f, const struct objfile *vdso, struct str image)
{
	const char *build_id = objfile_build_id(vdso);
	if (!f->seen || !build_id[0])
		return;
	CLEANUP(fd_cleanup) int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && os_write_full(fd, image.p, image.len, "vdso", NULL) == OK)
		f->seen(f->seen_ctx, build_id, "[vdso]", fd);
}

static void show_file(
	const struct fileoffer *f, const struct fileload *load, const struct preload_file *file)
{
	struct err e;
	struct opened o = { .file.fd = -1 };
	/* What is gone by now is shown by nobody. */
	if (fileopen(file->pid, &file->notice, &o.file, o.path, &e) == OK &&
		fileload_examine(load, &o, &e) == OK && o.obj)
		fileoffer_show(f, &o);
	opened_close(&o);
}

void fileoffer_show_all(
	const struct fileoffer *f, const struct fileload *load, bool (*go_on)(void *ctx), void *ctx)
{
	CLEANUP(objfile_cleanup) struct objfile *vdso = NULL;
	CLEANUP(free_cleanup) struct preload_file *found = NULL;
	struct err e = { 0 };
	struct str image;
	size_t count = 0;
	if (!f->seen)
		return;
	if (fileoffer_vdso(&vdso, &image, &e) == OK && vdso)
		fileoffer_show_vdso(f, vdso, image);
	if (preload_collect(f->only_pid, go_on, ctx, &found, &count, &e) != OK)
		log_warn("no list of processes", "reason=%s", LOG_QUOTED(e.text));
	for (size_t i = 0; i < count && go_on(ctx); i++)
		show_file(f, load, &found[i]);
}
