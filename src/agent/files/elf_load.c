/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache on disk finds a table by the file's content and by its file system's data. A table
 * that is not there is built; it is kept in the cache when it is large, or took long.
 */
#include "agent/files/elf_load.h"

#include "base/hash.h"
#include "base/log.h"
#include "os/os.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Smaller ones are built faster than read, unless they took long: a large file may have a small
 * table. */
#define CACHE_TABLE_BYTES_MIN ((uint64_t)256 << 10)

void opened_close(struct opened *o)
{
	objfile_close(o->obj);
	o->obj = NULL;
	open_file_close(&o->file);
}

/* Identifies the file by its file system's data. A changed file or a copy has another time of
 * change, which no user can set. */
static struct hash128 stamp_file(const struct broker_stat *st)
{
	const uint64_t stamp[] = {
		st->device,
		st->inode,
		st->bytes,
		(uint64_t)st->modified_s,
		(uint64_t)st->modified_ns,
		(uint64_t)st->changed_s,
		(uint64_t)st->changed_ns,
		st->type,
	};
	return hash128(stamp, sizeof(stamp));
}

/* A file can claim any build id, and the bytes that a content id covers are easily copied. For
 * names that is good enough; for tables it is not. */
static enum status identify(struct opened *o, struct err *e)
{
	char content[40];
	enum status s = objfile_content_id(o->obj, content, e);
	if (s != OK)
		return s;
	const char *id = objfile_build_id(o->obj);
	snprintf(o->build_id, sizeof(o->build_id), "%s", id[0] ? id : content);
	snprintf(o->identity, sizeof(o->identity), "%s-%s", id, content);
	struct hash128 h = stamp_file(&o->file.pinned.stat);
	if (id[0])
		snprintf(o->cache_name, sizeof(o->cache_name), "%s-f%016llx%016llx", o->identity,
			(unsigned long long)h.hi, (unsigned long long)h.lo);
	return OK;
}

static void identify_table(struct opened *o, const struct unwind_table *t)
{
	struct hash128 h = unwind_table_hash(t);
	size_t len = strlen(o->identity);
	snprintf(o->identity + len, sizeof(o->identity) - len, "-t%016llx%016llx",
		(unsigned long long)h.hi, (unsigned long long)h.lo);
}

static uint64_t owner_of(const struct opened *o)
{
	return hash_u64(o->file.pinned.stat.device) + o->file.pinned.stat.user;
}

/* Names memory without a file: its path is no path of a file. */
static void name_memory(struct opened *o)
{
	struct str path = str_of(o->path), memfd = STR("/memfd:");
	char name[OPEN_FILE_PATH_MAX];
	if (str_starts(path, memfd)) {
		path = str_sub(path, 1, path.len);
		snprintf(name, sizeof(name), "[%.*s]", STR_ARG(str_sub(path, 0, sizeof(name) - 3)));
	} else if (str_eq(path, STR("/dev/zero")) || str_starts(path, STR("/SYSV"))) {
		snprintf(name, sizeof(name), "[shared memory]");
	} else {
		return;
	}
	memcpy(o->path, name, sizeof(name));
}

void elf_load_examine_other(const struct elf_load *l, struct opened *o)
{
	o->owner = owner_of(o);
	metric_add(&l->metrics->bad_elf, 1);
	objfile_close(STEAL_PTR(o->obj));
	o->build_id[0] = 0;
	name_memory(o);
	struct hash128 h = hash128(o->path, strlen(o->path));
	snprintf(o->identity, sizeof(o->identity), "path-%016llx%016llx-%x-%llx",
		(unsigned long long)h.hi, (unsigned long long)h.lo, o->key.dev,
		(unsigned long long)o->key.inode);
}

enum status elf_load_examine(const struct elf_load *l, struct opened *o, struct err *e)
{
	o->owner = owner_of(o);
	enum status s = open_file_objfile(&o->file, o->path, &o->obj, e);
	if (s == OK)
		s = identify(o, e);
	if (s == OK || s == E_NOMEM || s == E_IO || s == E_TIMEOUT)
		return s;
	elf_load_examine_other(l, o);
	return OK;
}

static void note_without_table(const struct elf_load *l, const struct objfile *obj, const char *why)
{
	char what[PATH_MAX];
	const char *id = objfile_build_id(obj);
	snprintf(what, sizeof(what), "%s%s%s%s", objfile_name(obj), id[0] ? " (build id " : "", id,
		id[0] ? ")" : "");
	problems_add(l->problems, PROBLEM_TABLE, what, why);
}

uint64_t elf_load_bytes(const struct opened *o)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame", ".gopclntab",
		".data.rel.ro.gopclntab" };
	uint64_t bytes = 0;
	for (size_t i = 0; o->obj && i < ARRAY_COUNT(names); i++) {
		const struct objfile_section *s = objfile_section(o->obj, names[i]);
		bytes += s ? MIN(s->size, objfile_size(o->obj)) : 0;
	}
	return bytes || !o->obj ? bytes : objfile_size(o->obj);
}

enum status elf_load_build(const struct elf_load *l, const struct objfile *obj,
	struct unwind_table **out, struct err *e)
{
	int64_t begin = clock_thread_cpu_ns();
	struct unwind_build limits = l->limits;
	enum status s = unwind_table_build_within(&limits, obj, out, e);
	if (!l->is_between)
		metric_add(&l->metrics->build_ns, (uint64_t)(clock_thread_cpu_ns() - begin));
	if (s == OK)
		metric_add(&l->metrics->built, 1);
	if (s == E_NOTFOUND || s == E_UNSUPPORTED || s == E_INVALID || s == E_LIMIT) {
		metric_add(s == E_LIMIT ? &l->metrics->gave_up : &l->metrics->no_info, 1);
		log_debug("no unwind table", "reason=%s", LOG_QUOTED(err_text(e, s)));
		note_without_table(l, obj, err_text(e, s));
		return OK;
	}
	return s;
}

static enum status load_table(
	const struct elf_load *l, const struct opened *o, struct unwind_table **out, struct err *e)
{
	bool cacheable = l->cache && o->cache_name[0];
	if (cacheable && tablecache_load(l->cache, o->cache_name, out, e) == OK) {
		metric_add(&l->metrics->cached, 1);
		return OK;
	}
	int64_t begin = clock_thread_cpu_ns();
	enum status s = elf_load_build(l, o->obj, out, e);
	int64_t cpu_ns = clock_thread_cpu_ns() - begin;
	if (s != OK || !*out || !cacheable)
		return s;
	if ((*out)->blob_bytes < CACHE_TABLE_BYTES_MIN && cpu_ns < l->cache_cpu_ns)
		return OK;
	if (tablecache_store(l->cache, o->cache_name, *out, e) != OK)
		log_warn("unwind table not cached", "reason=%s", LOG_QUOTED(e->text));
	return OK;
}

enum status elf_load_table(
	const struct elf_load *l, struct opened *o, struct unwind_table **out, struct err *e)
{
	/* Of another machine: an emulator has it mapped. */
	if (!o->obj || objfile_machine(o->obj) != EM_X86_64)
		return OK;
	enum status s = load_table(l, o, out, e);
	if (s == OK && *out)
		identify_table(o, *out);
	return s;
}

/* ---- for others ---- */

static enum status copy_bytes(const struct opened *o, int fd, struct err *e)
{
	uint64_t bytes = objfile_size(o->obj);
	CLEANUP(free_cleanup) uint8_t *piece = malloc(BROKER_READ_BYTES_MAX);
	if (!piece)
		return err_set(e, E_NOMEM, "%s", o->path);
	enum status s = OK;
	for (uint64_t at = 0; s == OK && at < bytes; at += BROKER_READ_BYTES_MAX) {
		size_t len = (size_t)MIN(bytes - at, (uint64_t)BROKER_READ_BYTES_MAX);
		s = objfile_read(o->obj, at, piece, len, e);
		if (s == OK)
			s = os_write_full(fd, piece, len, "a copy", e);
	}
	return s;
}

enum status elf_load_share(const struct opened *o, const char *dir, int *out_fd, struct err *e)
{
	assert(o->obj);
	if (objfile_size(o->obj) > ELF_LOAD_COPY_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: %llu bytes are not copied", o->path,
			(unsigned long long)objfile_size(o->obj));
	CLEANUP(fd_cleanup) int fd = -1;
	if (!o->file.is_pinned)
		fd = fcntl(o->file.fd, F_DUPFD_CLOEXEC, 0);
	else if (dir && dir[0])
		fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && o->file.is_pinned)
		fd = memfd_create("executable", MFD_CLOEXEC);
	if (fd < 0)
		return err_os(e, "a descriptor for %s", o->path);
	enum status s = o->file.is_pinned ? copy_bytes(o, fd, e) : OK;
	if (s == OK)
		*out_fd = STEAL_FD(fd);
	return s;
}
