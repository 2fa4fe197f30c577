/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbolize: names for addresses. It finds the symbol table of a build id, has it built in the
 * background if there is none, demangles (C++, Rust, D), and fills in the lines of locations.
 *
 * Layer 4 (may use base, os, objfile, debuginfo, profile). No network: remote debug files come in
 * through symbolizer_offer() and as uploads. Thread safety: every function from any thread.
 */
#pragma once

#include "base/metrics.h"
#include "debuginfo/debuginfo.h"
#include "profile/profile.h"

struct symbolizer;

/* Descriptors of offered files that wait. */
#define SYMBOLIZER_HELD_MAX 1024

struct os_pool;
struct symbolizer_config {
	const char *dir;        /* where the tables lie: DIR/xx/yyyy….sym by build id */
	const char *debug_dirs; /* colon separated, "/usr/lib/debug" */
	bool local_files; /* look at a mapping's own path on this host (its build id must agree) */
	struct debuginfo_uploads *uploads; /* outlives the symbolizer; NULL: none */
	uint64_t memory_bytes;             /* for open tables and caches */
	/* On disk; beyond it the least recently used tables are removed. */
	uint64_t disk_bytes;
	struct debuginfo_limits limits;
	uint32_t workers; /* builds at a time */
	struct os_pool
		*pool; /* threads that help a query; outlives the symbolizer; NULL: none help */
	/* An offered file waits, with its descriptor, until a query needs its names. Beyond
	 * SYMBOLIZER_HELD_MAX files the table is built at once. */
	bool on_demand;
	/* After this many calls of symbolizer_want() the table is made. It is made earlier if a
	 * query asks, or if the waiting file may be lost: it is removed, or not the one at its
	 * path, or changed so lately that it may be overwritten. */
	uint32_t wants_min;
	/* Whole tables may take as much disk as the samples do (symbolizer_set_samples()), and
	 * whole_bytes in any case. Beyond that, tables are trimmed to what the stored samples need:
	 * tables of programs that had no samples for trim_idle_ns, the longest idle first. */
	uint64_t whole_bytes;
	int64_t trim_idle_ns;
	int64_t sweep_ns; /* how often trimmed tables without any sample left are removed */
	/* An open table is closed if no query used it for this long, since its pages count as
	 * memory of the process. The next query opens it again. */
	int64_t close_ns;
	int64_t look_ns; /* how often waiting files and open tables are checked */
	/* Called if there is no debug information of `build_id` here: a file with the build id
	 * `wanted` (the same, or that of a file that it refers to) would give names. It must not
	 * wait; NULL: not called. Once the file is in a debug directory, call
	 * symbolizer_look_again(). */
	void (*missing)(void *ctx, const char *build_id, const char *wanted);
	void *missing_ctx;
};
void symbolizer_config_default(struct symbolizer_config *c);

NODISCARD enum status symbolizer_new(
	const struct symbolizer_config *c, struct symbolizer **out, struct err *e);
void symbolizer_free(struct symbolizer *s);

/* The stored samples, for which the tables are kept. Until they are given, tables stay whole. They
 * must outlive the symbolizer, which calls these from a thread of its own. */
struct symbolizer_samples {
	uint64_t (*bytes)(void *ctx); /* on disk */
	/* Every location that needs a table. */
	enum status (*locations)(
		void *ctx, const struct profile_locations *to, void *of, struct err *e);
	void *ctx;
};
void symbolizer_set_samples(struct symbolizer *s, const struct symbolizer_samples *samples);

/* A file with this build id is at hand: build its table unless there is one. Takes the
 * descriptor over. Never blocks: queued; E_LIMIT when the queue is full. */
NODISCARD enum status symbolizer_offer(
	struct symbolizer *s, const char *build_id, const char *path, int fd, struct err *e);

/* To be called when files of this build id were uploaded: files are searched again, whatever was
 * found before. `replace`: even if there is a table with DWARF. E_INVALID: no mapping may have this
 * build id. E_LIMIT: the queue is full; then the next query searches. */
NODISCARD enum status symbolizer_look_again(
	struct symbolizer *s, const char *build_id, bool replace, struct err *e);

/* Opens the executable (with its code) or the debug information (with .debug_info) of a build id,
 * as it was uploaded or lies on this host: *out_fd is the caller's. E_NOTFOUND: there is none.
 * `for_all`: any user may ask, so a program's own file is given only if every user of this host may
 * read it where it lies. */
NODISCARD enum status symbolizer_file(struct symbolizer *s, struct str build_id,
	enum debuginfo_type type, bool for_all, int *out_fd, struct err *e);
/* Opens the program at `path` of this host, if it has that build id and code, and every user of the
 * host may read it; else E_NOTFOUND. */
NODISCARD enum status symbolizer_program(
	struct symbolizer *s, struct str build_id, struct str path, int *out_fd, struct err *e);
/* Reads the code at `out->address`, out->bytes.len bytes, into `bytes`, which become out->bytes,
 * and sets its machine. E_NOTFOUND: the file does not have all these bytes. */
NODISCARD enum status symbolizer_code(
	int fd, uint8_t *bytes, struct debuginfo_code *out, struct err *e);
/* Appends the bytes of a section, as they are in the file. E_NOTFOUND: there is no such section, or
 * its bytes are not in the file; E_LIMIT: more than out->max. */
NODISCARD enum status symbolizer_section(int fd, struct str name, struct buf *out, struct err *e);

/* The range around this address that belongs to the same function, from the table of its build id.
 * E_NOTFOUND: there is no table, or it has nothing about the address. */
NODISCARD enum status symbolizer_function(struct symbolizer *s, struct str build_id, uint64_t vaddr,
	uint64_t *out_begin, uint64_t *out_end, struct err *e);

/* Whether the table of this build id names the source file `path`. E_NOTFOUND: it does not, or
 * there is no table; E_UNAVAILABLE: the table is still being built at `until_ns`
 * (clock_monotonic_ns()). A trimmed table names the files that the stored samples need. */
NODISCARD enum status symbolizer_names_source(struct symbolizer *s, struct str build_id,
	struct str path, int64_t until_ns, struct err *e);

/* To be called when a message with samples of this build id came (on_demand). */
void symbolizer_want(struct symbolizer *s, struct str build_id, struct str path);
/* Lists the files of the mappings of `p` whose tables are being built: base names, which lie in
 * `p`; at most `max`. */
size_t symbolizer_list_pending(
	struct symbolizer *s, const struct profile *p, struct str *out, size_t max);

/* Gives lines to every location of `p` that has none. A location without a table (yet) gets one
 * line with the function "binary+0xoffset"; `out_pending` counts the locations whose table is being
 * built, so that the caller may try again. wait_ms: how long to wait for such tables. */
NODISCARD enum status symbolizer_resolve(struct symbolizer *s, struct profile *p, uint32_t wait_ms,
	uint32_t *out_pending, struct err *e);

/* The name demangled for people, in `a`; `name` itself if it is not mangled. */
struct str symbolize_demangle(struct str name, struct arena *a);

#define SYMBOLIZE_METRICS(X)                                                                  \
	X(lookups, COUNTER, "firn_symbolizer_lookups_total", "Addresses looked up.")          \
	X(unknown, COUNTER, "firn_symbolizer_unknown_total", "Addresses without a name.")     \
	X(built, COUNTER, "firn_symbolizer_tables_built_total", "Symbol tables built.")       \
	X(failed, COUNTER, "firn_symbolizer_tables_failed_total",                             \
		"Files of which no table could be built.")                                    \
	X(missing, COUNTER, "firn_symbolizer_files_missing_total",                            \
		"Build ids of which no file was found.")                                      \
	X(disk_bytes, GAUGE, "firn_symbolizer_disk_bytes", "Bytes of symbol tables on disk.") \
	X(dropped, COUNTER, "firn_symbolizer_tables_dropped_total",                           \
		"Symbol tables removed for want of room (--symbols-storage-size).")           \
	X(trimmed, COUNTER, "firn_symbolizer_tables_trimmed_total",                           \
		"Symbol tables cut to what the stored samples need.")                         \
	X(needless, COUNTER, "firn_symbolizer_tables_needless_total",                         \
		"Symbol tables removed because no stored sample needs them.")                 \
	X(trim_failed, COUNTER, "firn_symbolizer_trims_failed_total",                         \
		"Times that tables stayed whole because samples or files could not be read.") \
	X(open_tables, GAUGE, "firn_symbolizer_open_tables", "Symbol tables mapped.")
struct symbolize_metrics {
	SYMBOLIZE_METRICS(METRIC_FIELD)
};
void symbolizer_write_metrics(struct symbolizer *s, struct buf *out);
