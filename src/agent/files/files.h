/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: knows every executable file that has samples: its build id, segments and unwind table,
 * found by the kernel's own key. Private to agent/.
 *
 * Notices go into a bounded queue; one thread opens the file (/proc/PID/map_files, then the path in
 * the process' root), another builds its table or takes it from the cache on disk, and publishes it
 * to the sampler. Thread safety: all functions may be called from any thread.
 */
#pragma once

#include "agent/files/contexts.h"
#include "agent/files/jit_descriptors.h"
#include "agent/files/mapped_file.h"
#include "agent/files/open_file.h"
#include "agent/files/remapped.h"
#include "agent/sample/sample.h"
#include "agent/status/status.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metrics.h"
#include "objfile/objfile.h"

/* Notices waiting; more are dropped and counted, and come again with the next sample. */
#define FILES_QUEUE_MAX 1024
/* Files known at a time; the longest unused ones go first. */
#define FILES_KNOWN_MAX 16384
/* Kernel keys remembered: several may name one file, some name none that can be read. */
#define FILES_KEYS_MAX 65536
/* The id of a forgotten file is not used again for so long, since samples under way still name it.
 */
#define FILES_ID_REST_NS (60 * NS_PER_SEC)
/* Ids that files of one owner (a user, on one file system) may have in use or at rest. Beyond it
 * new files of this owner are refused, so that ids are left for other owners. */
#define FILES_OWNER_IDS_MAX 40000
#define FILES_SEGMENTS_MAX 16

struct file_info {
	char build_id[129]; /* hex; content id ("x…") when the file has none; "" if it is no ELF */
	char path[256];     /* as the process sees it, end cut */
	uint32_t file_id;
	uint16_t runtime; /* enum runtime_kind: it holds one, whose frames are walked */
	bool has_table;
	uint32_t segment_count; /* executable ones */
	struct objfile_segment segments[FILES_SEGMENTS_MAX];
};

/* Called once for each new file (build id and content), and for each that is offered again
 * (files_offer), by a thread of files', with a descriptor of the file that the callee must dup() to
 * keep: `firn up` hands it to the server's symbol tables. */
typedef void files_seen_fn(void *ctx, const char *build_id, const char *path, int fd);

struct files_config {
	const char *cache_dir; /* "" or NULL: no cache */
	/* Share of one CPU that building tables may use for each owner after the first pass
	 * (buildqueue.h); 0: no limit. */
	uint32_t cpu_percent;
	uint64_t build_bytes_max;  /* of memory while a table is built; 0: UNWIND_BUILD_BYTES_MAX */
	uint64_t table_bytes_max;  /* a larger table is given up; 0: no limit */
	struct problems *problems; /* may be NULL */
	uint32_t runtimes;         /* that are walked: 1 << enum runtime_kind each */
	int only_pid; /* the first pass is over it and its descendants; 0: over all processes */
	files_seen_fn *seen; /* may be NULL */
	void *seen_ctx;
	bool no_copies; /* `seen` is not called for files that would have to be copied first */
	/* Called for each ELF file that is made known, with the key it was met with, by a thread of
	 * files'; may be NULL. */
	void (*known)(void *ctx, const struct file_key *key, const struct objfile *obj,
		const char *build_id, const char *path);
	void *known_ctx;
};

#define FILES_METRICS(X)                                                                           \
	X(known, GAUGE, "firn_agent_files", "Executable files known.")                             \
	X(tables, GAUGE, "firn_agent_files_with_table", "Files with an unwind table.")             \
	X(rows, GAUGE, "firn_agent_unwind_rows", "Rows of all unwind tables.")                     \
	X(built, COUNTER, "firn_agent_unwind_tables_built_total", "Tables built from .eh_frame.")  \
	X(cached, COUNTER, "firn_agent_unwind_tables_cached_total", "Tables read from the cache.") \
	X(build_ns, SECONDS, "firn_agent_unwind_build_seconds_total", "CPU time of building.")     \
	X(work_ns, SECONDS, "firn_agent_unwind_tables_seconds_total",                              \
		"CPU time of making tables: built or read, and published. Has a budget of its "    \
		"own, and is not counted by --agent-cpu-limit.")                                   \
	X(open_failed, COUNTER, "firn_agent_files_open_failed_total",                              \
		"Files that were gone or not readable.")                                           \
	X(bad_elf, COUNTER, "firn_agent_files_not_elf_total",                                      \
		"Mapped files that are no ELF files.")                                             \
	X(no_info, COUNTER, "firn_agent_files_without_unwind_total",                               \
		"ELF files without .eh_frame.")                                                    \
	X(gave_up, COUNTER, "firn_agent_unwind_gave_up_total",                                     \
		"ELF files whose unwind tables take more work or memory than they may.")           \
	X(runtimes, COUNTER, "firn_agent_runtime_files_total",                                     \
		"Files with a language runtime that is walked.")                                   \
	X(runtimes_refused, COUNTER, "firn_agent_runtime_files_refused_total",                     \
		"Files with a language runtime that cannot be walked.")                            \
	X(over_budget, COUNTER, "firn_agent_unwind_over_budget_total",                             \
		"Tables that had no room when they were made.")                                    \
	X(notices_dropped, COUNTER, "firn_agent_file_notices_dropped_total",                       \
		"Notices lost: too many wait, or too many of the same owner.")                     \
	X(not_shared, COUNTER, "firn_agent_files_not_copied_total",                                \
		"Executables not handed to the server: their file systems may hang, and they "     \
		"could not be copied, or are too large for it.")                                   \
	X(forgotten, COUNTER, "firn_agent_files_forgotten_total",                                  \
		"Files forgotten, since too many were known.")
struct files_metrics {
	FILES_METRICS(METRIC_FIELD)
};

struct files;

NODISCARD enum status files_new(
	const struct files_config *c, struct sampler *sampler, struct files **out, struct err *e);
void files_free(struct files *f);
/* Binds and loads the vDSO and every file that any process has mapped for execution, before
 * sampling starts. Files that most processes use come first. Waits for the threads that do it;
 * E_TIMEOUT: they go on, e.g. behind a file system that hangs. */
NODISCARD enum status files_preload(struct files *f, int64_t timeout_ns, struct err *e);
/* Makes files' own thread call `seen` again later, for each file that is mapped for execution then.
 * False: the queue is full; ask again. */
NODISCARD bool files_offer(struct files *f);
/* A stack ended in an unknown file, or a program was executed. Never blocks. */
void files_notice(struct files *f, const struct file_notice *n, int pid);
/* Looks a file id up. False: there is no such file. */
bool files_get(struct files *f, uint32_t file_id, struct file_info *out);
enum files_state {
	FILES_UNKNOWN, /* no notice came, or it waits for the worker */
	FILES_KNOWN,
	FILES_FAILED, /* it could not be read; it is tried again some time */
};
enum files_state files_look_up(struct files *f, const struct file_key *key, uint32_t *out_id);
/* The file id that a kernel key is bound to; 0: none (yet). */
uint32_t files_find(struct files *f, const struct file_key *key);
/* A kernel key that is bound to this file; false: none is. */
bool files_key(struct files *f, uint32_t file_id, struct file_key *out);
/* A user frame's ELF virtual address; false when the offset lies in no segment. */
bool file_info_vaddr(const struct file_info *i, uint64_t file_offset, uint64_t *out_vaddr);
const struct files_metrics *files_metrics(const struct files *f);
/* CPU time of the thread that makes tables: also for the table that is being made now. */
int64_t files_work_ns(const struct files *f);
void files_write_metrics(const struct files *f, struct buf *out);
