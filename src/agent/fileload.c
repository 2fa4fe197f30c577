/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fileload.h"

#include "base/hash.h"
#include "base/log.h"
#include "os/os.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Build ids are what senders say; the first and last bytes and the size (the content id) keep a
 * file that borrowed the build id of another apart from it. */
static enum status identify(struct opened *o, struct err *e)
{
	char content[40];
	enum status s = objfile_content_id(o->obj, content, e);
	if (s != OK)
		return s;
	const char *id = objfile_build_id(o->obj);
	snprintf(o->build_id, sizeof(o->build_id), "%s", id[0] ? id : content);
	snprintf(o->identity, sizeof(o->identity), "%s-%s", id, content);
	return OK;
}

enum status fileload_examine(const struct fileload *l, int fd, struct opened *o, struct err *e)
{
	o->fd = fd;
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

enum status fileload_build(
	struct fileload *l, const struct objfile *obj, struct unwind_table **out, struct err *e)
{
	int64_t begin = clock_thread_cpu_ns();
	enum status s = unwind_table_build_within(&l->limits, obj, out, e);
	metric_add(&l->metrics->build_ns, (uint64_t)(clock_thread_cpu_ns() - begin));
	if (s == OK)
		metric_add(&l->metrics->built, 1);
	if (s == E_NOTFOUND || s == E_UNSUPPORTED || s == E_INVALID || s == E_LIMIT) {
		metric_add(s == E_LIMIT ? &l->metrics->gave_up : &l->metrics->no_info, 1);
		log_debug("no unwind table", "reason=\"%s\"", err_text(e, s));
		problems_add(l->problems, PROBLEM_TABLE, objfile_name(obj), err_text(e, s));
		return OK;
	}
	return s;
}

enum status fileload_table(
	struct fileload *l, const struct opened *o, struct unwind_table **out, struct err *e)
{
	bool cacheable = l->cache && o->obj && objfile_build_id(o->obj)[0];
	/* Of another machine: an emulator has it mapped. */
	if (!o->obj || objfile_machine(o->obj) != EM_X86_64)
		return OK;
	if (cacheable && tablecache_load(l->cache, o->identity, out, e) == OK) {
		metric_add(&l->metrics->cached, 1);
		return OK;
	}
	enum status s = fileload_build(l, o->obj, out, e);
	if (s != OK || !*out || !cacheable || (*out)->blob_bytes < CACHE_TABLE_BYTES_MIN)
		return s;
	if (tablecache_store(l->cache, o->identity, *out, e) != OK)
		log_warn("unwind table not cached", "reason=\"%s\"", e->text);
	return OK;
}
