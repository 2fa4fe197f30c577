/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fileload.h"

#include "base/hash.h"
#include "base/log.h"
#include "os/os.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Tables of less are built faster than read. */
#define CACHE_TABLE_BYTES_MIN ((uint64_t)256 << 10)

void opened_close(struct opened *o)
{
	objfile_close(o->obj);
	if (o->fd >= 0)
		close(o->fd);
	o->obj = NULL;
	o->fd = -1;
}

/* The file itself, as its file system sees it: whoever changes it or makes a copy has another time
 * of change, which nobody can choose. */
static bool stamp_file(int fd, struct hash128 *out)
{
	struct stat st;
	struct statfs fs;
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return false;
	const uint64_t stamp[] = {
		st.st_dev,
		st.st_ino,
		(uint64_t)st.st_size,
		(uint64_t)st.st_mtim.tv_sec,
		(uint64_t)st.st_mtim.tv_nsec,
		(uint64_t)st.st_ctim.tv_sec,
		(uint64_t)st.st_ctim.tv_nsec,
		(uint64_t)fs.f_type,
	};
	*out = hash128(stamp, sizeof(stamp));
	return true;
}

/* Build ids are what senders say, and the first and last bytes and the size (the content id) are
 * soon copied: for names they must do, for tables they do not. */
static enum status identify(struct opened *o, struct err *e)
{
	char content[40];
	enum status s = objfile_content_id(o->obj, content, e);
	if (s != OK)
		return s;
	const char *id = objfile_build_id(o->obj);
	snprintf(o->build_id, sizeof(o->build_id), "%s", id[0] ? id : content);
	snprintf(o->identity, sizeof(o->identity), "%s-%s", id, content);
	struct hash128 h;
	if (id[0] && stamp_file(o->fd, &h))
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

enum status fileload_examine(const struct fileload *l, int fd, struct opened *o, struct err *e)
{
	o->fd = fd;
	struct stat st;
	if (fstat(fd, &st) == 0)
		o->owner = hash_u64(st.st_dev) + st.st_uid;
	CLEANUP(fd_cleanup) int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return err_os(e, "%s", o->path);
	enum status s = objfile_open_fd(own, o->path, &o->obj, e);
	if (s == OK) {
		(void)STEAL_FD(own);
		s = identify(o, e);
	}
	if (s == OK || s == E_NOMEM || s == E_IO)
		return s;
	metric_add(&l->metrics->bad_elf, 1);
	objfile_close(STEAL_PTR(o->obj));
	o->build_id[0] = 0;
	struct hash128 h = hash128(o->path, strlen(o->path));
	snprintf(o->identity, sizeof(o->identity), "path-%016llx%016llx", (unsigned long long)h.hi,
		(unsigned long long)h.lo);
	return OK;
}

static void note_without_table(const struct fileload *l, const struct objfile *obj, const char *why)
{
	char what[PATH_MAX];
	const char *id = objfile_build_id(obj);
	snprintf(what, sizeof(what), "%s%s%s%s", objfile_name(obj), id[0] ? " (build id " : "", id,
		id[0] ? ")" : "");
	problems_add(l->problems, PROBLEM_TABLE, what, why);
}

uint64_t fileload_bytes(const struct opened *o)
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

enum status fileload_build(const struct fileload *l, const struct objfile *obj,
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
		log_debug("no unwind table", "reason=\"%s\"", err_text(e, s));
		note_without_table(l, obj, err_text(e, s));
		return OK;
	}
	return s;
}

static enum status load_table(
	const struct fileload *l, const struct opened *o, struct unwind_table **out, struct err *e)
{
	bool cacheable = l->cache && o->cache_name[0];
	if (cacheable && tablecache_load(l->cache, o->cache_name, out, e) == OK) {
		metric_add(&l->metrics->cached, 1);
		return OK;
	}
	enum status s = fileload_build(l, o->obj, out, e);
	if (s != OK || !*out || !cacheable || (*out)->blob_bytes < CACHE_TABLE_BYTES_MIN)
		return s;
	if (tablecache_store(l->cache, o->cache_name, *out, e) != OK)
		log_warn("unwind table not cached", "reason=\"%s\"", e->text);
	return OK;
}

enum status fileload_table(
	const struct fileload *l, struct opened *o, struct unwind_table **out, struct err *e)
{
	/* Of another machine: an emulator has it mapped. */
	if (!o->obj || objfile_machine(o->obj) != EM_X86_64)
		return OK;
	enum status s = load_table(l, o, out, e);
	if (s == OK && *out)
		identify_table(o, *out);
	return s;
}
