/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitfile: the files in which one process names its code: found, opened, and read as they grow; and
 * what it has registered for debuggers (jitobjects.h).
 * Private to agent/jitnames. Not thread safe, but for the table of code, which is changed under the
 * caller's lock.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/broker/broker.h"
#include "agent/jitnames/jitdotnet.h"
#include "agent/jitnames/jitobjects.h"
#include "base/lock.h"
#include "jit/jit.h"

#include <pthread.h>

/* Executable mappings of files that are no libraries: code of .NET, BEAM, PHP lies in such. */
#define JITFILE_MAPPINGS_MAX 4096
/* Bytes of a perf map that are read at most. */
#define JITFILE_BYTES_MAX ((uint64_t)256 << 20)
/* The last bytes that were read are kept. If the file has other bytes there, it was written anew.
 */
#define JITFILE_MARK_BYTES 64

struct jitfile {
	bool is_open, is_pinned, is_broken;
	int fd;
	struct broker_file pinned;
	uint64_t device, inode;
	uint64_t at;    /* read so far */
	uint64_t bytes; /* its length when it was read last */
	uint8_t mark[JITFILE_MARK_BYTES];
	uint32_t mark_len;
};

struct jitfile_mapping {
	struct file_key key; /* no generation */
	uint64_t start, end, offset;
};

/* Files without a descriptor for debuggers, and files without the runtime of .NET. All 0 at first.
 */
struct jitfiles_known {
	struct code_files_memory objects, dotnet;
};

struct jitfiles { /* of a process */
	int pid;
	uint64_t start_ns; /* boot time clock */
	struct jit_map *map;
	struct jitfile perfmap, dump;
	struct jitfile kept; /* the perf map that jitfiles_take_pinned() took: its place only */
	struct jit_dump dump_state;
	struct jitobjects objects;
	struct jitdotnet dotnet;
	struct jitfile_mapping *mappings;
	uint32_t mapping_count;
	int64_t read_ns; /* when the perf map was read last; monotonic */
};

NODISCARD enum status jitfiles_init(struct jitfiles *f, int pid, uint64_t start_ns);
void jitfiles_deinit(struct jitfiles *f);
/* Looks for files that are not open yet. What is mapped is changed under `lock`. `known`: files
 * without a descriptor for debuggers, and without the runtime of .NET. */
void jitfiles_open(struct jitfiles *f, struct jitfiles_known *known, struct lock *lock);
/* Reads what was added, at most `budget` bytes. Returns how many bytes were read. */
uint64_t jitfiles_read(struct jitfiles *f, struct lock *lock, uint64_t budget);
static inline bool jitfiles_has_any(const struct jitfiles *f)
{
	return f->perfmap.is_open || f->dump.is_open || f->objects.descriptor_count ||
	       f->dotnet.table;
}
static inline bool jitfiles_has_pinned(const struct jitfiles *f)
{
	return f->perfmap.is_pinned || f->dump.is_pinned;
}
/* Something was added that was not read yet. A file that may hang, or the process' memory, is not
 * asked: that was so if it was read more than `look_ns` before `time_ns` (monotonic). */
bool jitfiles_have_grown(const struct jitfiles *f, uint64_t time_ns, int64_t look_ns);
/* Takes out a file that is pinned in the broker, to be closed by jitfile_close(). False: there is
 * none. The names read from it stay. A perf map that is opened again is read on from there. */
bool jitfiles_take_pinned(struct jitfiles *f, struct jitfile *out);
/* May wait for a file system. */
void jitfile_close(struct jitfile *f);
/* Where an offset in a mapped file is in memory; false: it is not known to be mapped. */
bool jitfiles_address(const struct jitfiles *f, const struct file_key *key, uint64_t offset,
	uint64_t *out_address);
