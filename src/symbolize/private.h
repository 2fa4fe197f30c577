/* SPDX-License-Identifier: Apache-2.0 */
/* private: what the files of symbolize/ share. */
#pragma once

#include "base/lock.h"
#include "base/map.h"
#include "base/vec.h"
#include "objfile/objfile.h"
#include "symbolize/symbolize.h"

#include <pthread.h>

/* Hex digits of a build id. */
#define SYMBOLIZE_ID_MAX 128
#define SYMBOLIZE_PATH_MAX 4096

/* ---- find.c: files for a build id ---- */

/* Hex digits (an 'x' first for content ids), long enough to name a file, nothing else. */
bool symbolize_id_is_valid(struct str build_id);

struct symbolize_request {
	const char *build_id;
	const char *path;                  /* of the mapping, as its process saw it; may be "" */
	int fd;                            /* offered, or -1; stays the caller's */
	const char *debug_dirs;            /* colon separated */
	bool local_files;                  /* may `path` be opened on this host? */
	struct debuginfo_uploads *uploads; /* NULL: none */
};

/* The files of a build id; each was checked to carry it. The descriptors are the caller's. */
struct symbolize_files {
	struct debuginfo_files files;
	bool has_dwarf; /* one of them has .debug_info */
	bool uploaded;  /* one of them was */
	/* Of files.fd and files.debug_fd: it is a program's own file on this host, or lies beside
	 * it. */
	bool fd_of_host, debug_of_host;
	/* Build id of the file that the debug file shares with others, where it is not here. */
	char alt_wanted[SYMBOLIZE_ID_MAX + 1];
};
void symbolize_files_deinit(struct symbolize_files *f);
/* E_NOTFOUND when there is nothing at all; E_INVALID when the offered file is not what it is said
 * to be. */
NODISCARD enum status symbolize_files_find(
	const struct symbolize_request *r, struct symbolize_files *out, struct err *e);

/* The file at `path` if it carries the id, else -1. */
int symbolize_file_open(const char *path, const char *build_id);

/* ---- disk.c: the folder with the tables, and how much may lie there ---- */

struct symbolize_disk {
	char *dir;
	uint64_t bytes_max;
	struct symbolize_metrics *metrics;
	bool is_starting;
	struct lock lock; /* of what follows */
	uint64_t bytes;
};
/* Makes the folder, removes what a run that was killed has left, and what is beyond the limit. */
NODISCARD enum status symbolize_disk_init(struct symbolize_disk *d, const char *dir,
	uint64_t bytes_max, struct symbolize_metrics *metrics, struct err *e);
void symbolize_disk_deinit(struct symbolize_disk *d);
/* The path of a build id's table, or of the table's folder; false: too long. */
bool symbolize_disk_path(
	const struct symbolize_disk *d, const char *id, bool folder, char out[SYMBOLIZE_PATH_MAX]);
/* Marks a table as used now: the least recently used are removed first. */
void symbolize_disk_used(const char *path);
uint64_t symbolize_disk_bytes(struct symbolize_disk *d);
/* A table was removed or became smaller, by so many bytes. */
void symbolize_disk_freed(struct symbolize_disk *d, uint64_t bytes);
/* What is on disk now; `out` is empty at first. */
struct symbolize_on_disk {
	char name[SYMBOLIZE_ID_MAX + 8]; /* "xx/rest.sym" */
	uint64_t bytes;
	int64_t used_ns;
};
struct symbolize_listing {
	const struct symbolize_disk *d;
	VEC(struct symbolize_on_disk) files;
	uint64_t bytes;
};
NODISCARD enum status symbolize_disk_list(
	struct symbolize_disk *d, struct symbolize_listing *out, struct err *e);
/* A table was built. Others are removed if all of them together are over the limit. */
void symbolize_disk_added(struct symbolize_disk *d, const char *path);

/* ---- tables.c: the tables of a symbolizer, open, on disk or being built ---- */

struct symbolize_tables;

NODISCARD enum status symbolize_tables_new(const struct symbolizer_config *c,
	struct symbolize_metrics *metrics, struct symbolize_tables **out, struct err *e);
void symbolize_tables_free(struct symbolize_tables *t);

/* Takes the descriptor over. */
NODISCARD enum status symbolize_tables_offer(
	struct symbolize_tables *t, const char *build_id, const char *path, int fd, struct err *e);

/* As symbolizer_look_again(). */
NODISCARD enum status symbolize_tables_look_again(
	struct symbolize_tables *t, const char *build_id, bool replace, struct err *e);

/* The files of a build id, as its table would be made of. */
NODISCARD enum status symbolize_tables_files(struct symbolize_tables *t, struct str build_id,
	struct symbolize_files *out, struct err *e);
struct symbolize_tables *symbolizer_tables(struct symbolizer *s);
/* Whether files of this host are looked at. */
bool symbolize_tables_are_local(const struct symbolize_tables *t);

/* A table in use: stays open until it is released. */
struct symbolize_ref;
const struct debuginfo_table *symbolize_ref_table(const struct symbolize_ref *r);
void symbolize_ref_release(struct symbolize_tables *t, struct symbolize_ref *r); /* NULL is fine */

/* The table of a build id. *out NULL: there is none; *out_pending: it is being built (and gets
 * queued by this call). Does not wait. `whole`: a trimmed one does, and another is built where that
 * may be had. */
void symbolize_tables_get(struct symbolize_tables *t, struct str build_id, struct str path,
	bool whole, struct symbolize_ref **out, bool *out_pending);
/* As symbolizer_set_samples(). */
void symbolize_tables_set_samples(
	struct symbolize_tables *t, const struct symbolizer_samples *samples);
/* As symbolizer_want(). */
void symbolize_tables_want(struct symbolize_tables *t, struct str build_id, struct str path);
/* It was asked for, and is waiting or being built. */
bool symbolize_tables_is_pending(struct symbolize_tables *t, struct str build_id);
/* Until a build ends or the deadline passes (monotonic); false at the deadline. `*seen` counts the
 * builds that ended, from 0: the caller's memory of what it saw. */
bool symbolize_tables_wait(struct symbolize_tables *t, uint64_t *seen, int64_t deadline_ns);

/* ---- name.c: the lines of locations ---- */

/* A mapping of the profile that is being resolved. */
struct symbolize_mapping {
	struct symbolize_ref *ref; /* NULL: no table */
	struct str file;           /* the last part of its path; lives in the profile */
	bool wanted;
	bool pending;
	bool is_trimmed;
	bool lacks; /* the table is trimmed, and lacks an address of these */
};
/* Whether a trimmed table lacks this address of the mapping. */
bool symbolize_lacks(
	const struct profile_mapping *m, const struct debuginfo_table *t, uint64_t address);
/* The virtual address in the ELF file; false: it is not known. */
bool symbolize_file_address(const struct profile_mapping *m, const struct debuginfo_table *t,
	uint64_t address, uint64_t *out);
struct str symbolize_base_name(struct str file);

/* A text of a table that is in the profile already. */
struct symbolize_text {
	const char *from;
	uint32_t plain;
	uint32_t demangled;
	bool has_plain;
	bool has_demangled;
	/* If the text is a function's name: the last function with it. */
	bool has_function;
	const char *file;
	uint32_t start_line;
	uint32_t function;
};

/* One thread's. */
struct symbolize_namer {
	struct profile *p;  /* whose locations get lines */
	struct profile *to; /* where strings, functions and lines go: `p`, or `own` if apart */
	struct profile own;
	bool apart;
	const struct symbolize_mapping *mappings;
	enum status status;
	VEC(uint32_t) named; /* locations, when it is apart */
	uint64_t lookups, unknown;
	uint32_t pending;
	struct arena scratch;
	VEC(struct symbolize_text) texts;
	struct map text_index;
	/* Of the place that was looked at last. */
	const struct debuginfo_table *last_table;
	uint32_t last_node;
	uint32_t last_count;
	bool last_nameless;
	struct profile_line last_lines[DEBUGINFO_FRAMES_MAX];
};
void symbolize_namer_init(
	struct symbolize_namer *n, struct profile *p, const struct symbolize_mapping *mappings);
void symbolize_namer_deinit(struct symbolize_namer *n);
/* Before the first location: what is named does not come into `p` before symbolize_namer_join(). */
NODISCARD enum status symbolize_namer_apart(struct symbolize_namer *n);
NODISCARD enum status symbolize_namer_join(struct symbolize_namer *n);
/* A location of `p` that has no lines gets some. */
NODISCARD enum status symbolize_name(struct symbolize_namer *n, struct profile_location *loc);

/* ---- demangle_others.c ---- */

/* Of D, and of Haskell's GHC; `name` itself where it is none, or is left as it is. */
struct str symbolize_demangle_d(struct str name, struct arena *a);
struct str symbolize_demangle_ghc(struct str name, struct arena *a);
