/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map has a known name: it is in the process' own /tmp, under its pid in its own namespace.
 * An earlier process with that pid may have left a file there, so a file that was last written
 * before this process began is ignored. A jitdump may be anywhere. The process maps a page of it as
 * executable, only so that it can be found.
 *
 * An open file is read even after the process has ended or the file was removed. If the process
 * ended before its perf map was opened, the map is searched for in the agent's own root, and taken
 * only if it belongs to the agent's own user.
 */
#include "agent/jitnames/jitfile.h"

#include "agent/files/files.h"
#include "os/os.h"
#include "procfs/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */
/* The time of a file and the start time of a process are both coarse. */
#define STALE_NS (2 * NS_PER_SEC)
/* Read under the lock at once, some hundred records; a longer record is read as a whole. */
#define SLICE_BYTES ((size_t)2 * JIT_PERFMAP_LINE_MAX)
#define GIVE_WAY_US 50

/* ---- one file ---- */

void jitfile_close(struct jitfile *f)
{
	if (f->is_open && f->is_pinned)
		broker_drop(&f->pinned);
	else if (f->is_open)
		close(f->fd);
	*f = (struct jitfile){ .fd = -1 };
}

static ssize_t jitfile_pread(const struct jitfile *f, void *out, size_t len, uint64_t at)
{
	if (f->is_pinned)
		return broker_read(&f->pinned, out, len, at);
	return pread(f->fd, out, len, (off_t)at);
}

/* Takes the file as the broker has answered it. *out_ns: its last change, by the real time clock.
 */
static bool jitfile_take(
	struct jitfile *f, int fd, const struct broker_file *pinned, int64_t *out_ns)
{
	struct stat st;
	*f = (struct jitfile){ .fd = -1 };
	if (fd == BROKER_IS_PINNED) {
		f->pinned = *pinned;
		f->is_pinned = true;
		f->device = pinned->stat.device;
		f->inode = pinned->stat.inode;
		*out_ns = pinned->stat.modified_s * NS_PER_SEC + pinned->stat.modified_ns;
	} else if (fd < 0) {
		return false;
	} else if (fstat(fd, &st) < 0) {
		close(fd);
		return false;
	} else {
		f->fd = fd;
		f->device = st.st_dev;
		f->inode = st.st_ino;
		*out_ns = st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec;
	}
	f->is_open = true;
	return true;
}

/* Have the bytes before our place changed? Then it is another file with the same name. */
static bool is_written_anew(const struct jitfile *f)
{
	uint8_t now[JITFILE_MARK_BYTES];
	if (f->mark_len == 0)
		return false;
	ssize_t n = jitfile_pread(f, now, f->mark_len, f->at - f->mark_len);
	return n >= 0 && (n != (ssize_t)f->mark_len || memcmp(now, f->mark, f->mark_len) != 0);
}

static void remember(struct jitfile *f, const uint8_t *read, size_t len)
{
	f->mark_len = (uint32_t)MIN(len, sizeof(f->mark));
	memcpy(f->mark, read + len - f->mark_len, f->mark_len);
}

/* ---- finding ---- */

/* When the process began, by the real time clock. */
static int64_t started_at_ns(const struct jitfiles *f)
{
	struct timespec boot;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	int64_t now = boot.tv_sec * NS_PER_SEC + boot.tv_nsec;
	return clock_realtime_ns() - (now - (int64_t)f->start_ns);
}

/* The pid is still that of the process that was sampled. */
static bool is_same_process(const struct jitfiles *f)
{
	struct procfs_stat stat;
	long ticks = sysconf(_SC_CLK_TCK);
	uint64_t ticks_per_second = ticks > 0 ? (uint64_t)ticks : 100;
	return procfs_stat(f->pid, &stat, NULL) == OK &&
	       stat.start_ticks == f->start_ns / ((uint64_t)NS_PER_SEC / ticks_per_second);
}

/* The file that was closed to make room is read on from its place. */
static void go_on(struct jitfile *f, const struct jitfile *kept)
{
	if (f->device != kept->device || f->inode != kept->inode)
		return;
	f->at = kept->at;
	f->mark_len = kept->mark_len;
	memcpy(f->mark, kept->mark, sizeof(f->mark));
}

static void open_perfmap(struct jitfiles *f)
{
	struct broker_file pinned;
	struct jitfile found;
	int inner;
	int64_t written_ns;
	bool is_there = procfs_inner_pid(f->pid, &inner, NULL) == OK;
	int fd = is_there ? broker_open_perfmap(f->pid, inner, &pinned)
			  : broker_open_perfmap((int)getpid(), f->pid, &pinned);
	if (!jitfile_take(&found, fd, &pinned, &written_ns))
		return;
	bool is_known = f->perfmap.is_open && f->perfmap.device == found.device &&
			f->perfmap.inode == found.inode;
	if (is_known || written_ns < started_at_ns(f) - STALE_NS ||
		(is_there && !is_same_process(f))) {
		jitfile_close(&found);
		return;
	}
	jitfile_close(&f->perfmap);
	go_on(&found, &f->kept);
	f->perfmap = found;
}

struct seen_maps {
	struct jitfile_mapping v[JITFILE_MAPPINGS_MAX];
	uint32_t count;
	struct jitfile_mapping dump; /* end 0: none */
};

/* ".../jit-PID.dump", as the format's description has it. */
static bool is_dump(struct str path)
{
	size_t slash = str_rindex(path, '/');
	return slash < path.len && str_starts(str_sub(path, slash + 1, path.len), STR("jit-")) &&
	       (str_ends(path, STR(".dump")) || str_ends(path, STR(".dump (deleted)")));
}

/* By its name, as nothing is opened for this; shared memory is none. */
static bool is_library(const struct procfs_map *m)
{
	struct str name = str_sub(m->path, str_rindex(m->path, '/'), m->path.len);
	return !m->shared && (str_ends(name, STR(".so")) || memmem(name.p, name.len, ".so.", 4));
}

static bool on_mapping(void *ctx, const struct procfs_map *m)
{
	struct seen_maps *seen = ctx;
	if (!m->exec || m->inode == 0)
		return true;
	const struct jitfile_mapping mapping = {
		{ .inode = m->inode, .dev = m->dev_major << KERNEL_MINOR_BITS | m->dev_minor },
		m->start, m->end, m->offset
	};
	if (is_dump(m->path))
		seen->dump = mapping;
	else if (seen->count < JITFILE_MAPPINGS_MAX && !is_library(m))
		seen->v[seen->count++] = mapping;
	return true;
}

static void open_dump(struct jitfiles *f, const struct jitfile_mapping *m)
{
	char link[96];
	struct broker_file pinned;
	struct jitfile found;
	int64_t written_ns;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", f->pid,
		(unsigned long long)m->start, (unsigned long long)m->end);
	int fd = broker_open_executable(link, m->key.dev, &pinned);
	if (fd == -1 && errno == ENOSYS && os_open_regular(AT_FDCWD, link, &fd, NULL) != OK)
		fd = -1;
	if (!jitfile_take(&found, fd, &pinned, &written_ns))
		return;
	if (!is_same_process(f)) {
		jitfile_close(&found);
		return;
	}
	f->dump = found;
	f->dump_state = (struct jit_dump){ 0 };
}

/* If there is no memory, the earlier mappings stay. */
static void keep_mappings(struct jitfiles *f, const struct seen_maps *seen, struct lock *lock)
{
	size_t bytes = seen->count * sizeof(*seen->v);
	struct jitfile_mapping *fresh = malloc(MAX(bytes, (size_t)1));
	if (!fresh)
		return;
	memcpy(fresh, seen->v, bytes);
	lock_take(lock);
	struct jitfile_mapping *old = f->mappings;
	f->mappings = fresh;
	f->mapping_count = seen->count;
	lock_release(lock);
	free(old);
}

void jitfiles_open(struct jitfiles *f, struct jitfiles_known *known, struct lock *lock)
{
	struct seen_maps *seen = calloc(1, sizeof(*seen));
	if (!seen)
		return;
	bool is_read = mapped_file_each(f->pid, on_mapping, seen, NULL) == OK && is_same_process(f);
	if (is_read)
		keep_mappings(f, seen, lock);
	if (is_read && seen->dump.end && !f->dump.is_open)
		open_dump(f, &seen->dump);
	if (is_read) {
		jitobjects_find(&f->objects, &known->objects, f->pid);
		jitdotnet_find(&f->dotnet, &known->dotnet, f->pid);
	}
	free(seen);
	open_perfmap(f);
}

bool jitfiles_address(const struct jitfiles *f, const struct file_key *key, uint64_t offset,
	uint64_t *out_address)
{
	for (uint32_t i = 0; i < f->mapping_count; i++) {
		const struct jitfile_mapping *m = &f->mappings[i];
		if (m->key.inode != key->inode || m->key.dev != key->dev || offset < m->offset ||
			offset - m->offset >= m->end - m->start)
			continue;
		*out_address = m->start + (offset - m->offset);
		return true;
	}
	return false;
}

/* ---- reading ---- */

/* Long enough for a thread that waits for the lock to get it. */
static void give_way(void)
{
	usleep(GIVE_WAY_US);
}

/* One window; how many bytes were read, 0: there is nothing new, or nothing whole. */
static uint64_t read_perfmap(
	struct jitfiles *f, struct lock *lock, uint8_t *window, size_t len, int64_t since_ns)
{
	struct jitfile *p = &f->perfmap;
	ssize_t n = p->at < JITFILE_BYTES_MAX ? jitfile_pread(p, window, len, p->at) : 0;
	size_t taken = 0, more = n > 0;
	while (more) {
		size_t slice = MIN((size_t)n - taken, SLICE_BYTES);
		lock_take(lock);
		more = jit_perfmap_read(
			f->map, str_make(window + taken, slice), (uint64_t)since_ns);
		lock_release(lock);
		taken += more;
		give_way();
	}
	p->at += taken;
	if (taken)
		remember(p, window, taken);
	return taken;
}

static uint64_t read_dump(
	struct jitfiles *f, struct lock *lock, uint8_t *window, size_t len, int64_t now_ns)
{
	struct jitfile *d = &f->dump;
	uint64_t taken = 0;
	ssize_t n = d->is_broken ? 0 : jitfile_pread(d, window, len, d->at);
	size_t slice = SLICE_BYTES;
	enum status s = OK;
	while (s == OK && n > 0 && taken < (uint64_t)n) {
		uint64_t more = 0, left = (uint64_t)n - taken;
		lock_take(lock);
		s = jit_dump_read(&f->dump_state, f->map,
			str_make(window + taken, MIN(left, slice)), (uint64_t)now_ns, &more, NULL);
		lock_release(lock);
		give_way();
		if (s == OK && !more && slice >= left)
			break; /* the rest of a record comes later */
		slice = more ? SLICE_BYTES : 2 * slice;
		taken += more;
	}
	d->is_broken = s != OK;
	d->at += taken;
	return taken ? (uint64_t)n : 0;
}

static bool has_grown(const struct jitfile *f)
{
	struct stat st;
	return f->is_open && !f->is_pinned && !f->is_broken && fstat(f->fd, &st) == 0 &&
	       (uint64_t)st.st_size != f->bytes;
}

bool jitfiles_have_grown(const struct jitfiles *f, uint64_t time_ns, int64_t look_ns)
{
	/* For a file that may hang only the time at which it was read is known. */
	bool is_unseen = jitfiles_has_pinned(f) || f->objects.descriptor_count;
	bool is_old = is_unseen && (int64_t)time_ns - f->read_ns > look_ns;
	return is_old || has_grown(&f->perfmap) || has_grown(&f->dump);
}

bool jitfiles_take_pinned(struct jitfiles *f, struct jitfile *out)
{
	struct jitfile *from = f->perfmap.is_pinned ? &f->perfmap : &f->dump;
	if (!from->is_pinned)
		return false;
	*out = *from;
	if (from == &f->perfmap)
		f->kept = *from;
	*from = (struct jitfile){ .fd = -1 };
	return true;
}

/* Before it is read: what is added meanwhile is new. */
static void note_size(struct jitfile *f)
{
	struct stat st;
	if (f->is_open && !f->is_pinned && fstat(f->fd, &st) == 0)
		f->bytes = (uint64_t)st.st_size;
}

uint64_t jitfiles_read(struct jitfiles *f, struct lock *lock, uint64_t budget)
{
	uint8_t *window = malloc(JIT_DUMP_WINDOW_BYTES);
	int64_t now = clock_monotonic_ns();
	uint64_t done = 0, n = 1;
	if (!window)
		return 0;
	note_size(&f->perfmap);
	note_size(&f->dump);
	if (f->perfmap.is_open && is_written_anew(&f->perfmap))
		f->perfmap.at = f->perfmap.mark_len = 0;
	if (f->objects.descriptor_count && is_same_process(f))
		done += jitobjects_read(
			&f->objects, f->pid, f->map, lock, (uint64_t)f->read_ns, budget);
	if (f->dotnet.table && is_same_process(f))
		done += jitdotnet_read(&f->dotnet, f->pid, f->map, lock, budget);
	while (f->perfmap.is_open && n && done < budget) {
		n = read_perfmap(f, lock, window, JIT_DUMP_WINDOW_BYTES, f->read_ns);
		done += n;
	}
	f->read_ns = now;
	n = 1;
	while (f->dump.is_open && n && done < budget) {
		n = read_dump(f, lock, window, JIT_DUMP_WINDOW_BYTES, now);
		done += n;
	}
	free(window);
	return done;
}

/* ---- life ---- */

enum status jitfiles_init(struct jitfiles *f, int pid, uint64_t start_ns)
{
	*f = (struct jitfiles){ .pid = pid, .start_ns = start_ns, .perfmap.fd = -1, .dump.fd = -1 };
	return jit_map_new(&f->map);
}

void jitfiles_deinit(struct jitfiles *f)
{
	jitfile_close(&f->perfmap);
	jitfile_close(&f->dump);
	jitobjects_deinit(&f->objects);
	jit_map_free(f->map);
	free(f->mappings);
}
