/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo/uploads: keeps the debug files, executables and sources that clients upload
 * (docs/formats/debuginfo.md), extracts the useful part of an ELF file, and packs sources.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "os/os.h"

/* ---- uploads ---- */

/* Letters of a build id by which a client names a file: hexadecimal digits, Go's own, UUIDs. */
#define DEBUGINFO_ID_MIN 3
#define DEBUGINFO_ID_MAX 128
#define DEBUGINFO_TENANT_MAX 64
#define DEBUGINFO_HASH_MAX 128
#define DEBUGINFO_UPLOAD_ID_LEN 36
/* Build ids with uploads. If there are more, ids without a file are removed first. */
#define DEBUGINFO_IDS_MAX 65536
/* Files that arrive at the same time; the next one waits. */
#define DEBUGINFO_ARRIVING_MAX 8
/* Uploads that wait. Beyond that a client is told to try again, since each keeps a thread. */
#define DEBUGINFO_WAITING_MAX 64

/* Numbers are those of parca.debuginfo.v1alpha1.DebuginfoType. */
enum debuginfo_type {
	DEBUGINFO_DEBUG = 0,
	DEBUGINFO_EXECUTABLE = 1,
	DEBUGINFO_SOURCES = 2,
	DEBUGINFO_SOURCE_MAP = 3,
	DEBUGINFO_TYPES
};

struct debuginfo_key {
	struct str build_id;
	struct str tenant;
	enum debuginfo_type type;
};

enum debuginfo_state {
	DEBUGINFO_NOT_SEEN,
	DEBUGINFO_UPLOADING,
	DEBUGINFO_BROKEN, /* the stream ended too early */
	DEBUGINFO_UPLOADED,
	DEBUGINFO_PURGED,
};

/* Texts end with NUL. */
struct debuginfo_record {
	char build_id[DEBUGINFO_ID_MAX + 1];
	char tenant[DEBUGINFO_TENANT_MAX + 1];
	enum debuginfo_type type;
	enum debuginfo_state state;
	char upload[DEBUGINFO_UPLOAD_ID_LEN + 1]; /* begun last */
	char hash[DEBUGINFO_HASH_MAX + 1];
	uint64_t size_bytes;
	int64_t started_ns, finished_ns;
	bool invalid;
	char ready[DEBUGINFO_UPLOAD_ID_LEN + 1]; /* the file that is used; "": none */
	uint64_t ready_bytes;
};
void debuginfo_record_encode(const struct debuginfo_record *r, struct buf *out);
/* E_CORRUPT names the line. */
NODISCARD enum status debuginfo_record_decode(
	struct str bytes, struct debuginfo_record *out, struct err *e);

struct debuginfo_uploads_config {
	const char *dir;           /* is made; copied */
	uint64_t bytes_max;        /* of all files; beyond it the least recently used is removed */
	uint64_t upload_bytes_max; /* of one */
	int64_t stale_ns;          /* an upload that began longer ago may be tried again */
};
void debuginfo_uploads_config_default(struct debuginfo_uploads_config *c);

/* Thread safety: every function from any thread. */
struct debuginfo_uploads;
NODISCARD enum status debuginfo_uploads_open(
	const struct debuginfo_uploads_config *c, struct debuginfo_uploads **out, struct err *e);
void debuginfo_uploads_close(struct debuginfo_uploads *u); /* NULL is fine */

/* The record of a key; state NOT_SEEN: nothing is known. E_INVALID: it is no build id. */
NODISCARD enum status debuginfo_uploads_find(struct debuginfo_uploads *u,
	const struct debuginfo_key *key, struct debuginfo_record *out, struct err *e);
/* Decides by the record whether an upload may begin. */
typedef enum status debuginfo_may_begin_fn(
	void *ctx, const struct debuginfo_record *known, struct err *e);
/* Begins an upload when `may` returns OK, else returns its status. No other upload begins in
 * between. *out->upload is its id. E_LIMIT: there is no room for it. */
NODISCARD enum status debuginfo_uploads_begin(struct debuginfo_uploads *u,
	const struct debuginfo_key *key, struct str hash, uint64_t size_bytes,
	debuginfo_may_begin_fn *may, void *ctx, struct debuginfo_record *out, struct err *e);
/* True if an upload is under way and has taken too long. */
bool debuginfo_upload_is_stale(
	const struct debuginfo_uploads *u, const struct debuginfo_record *r, int64_t now_ns);

/* Opens an upload for its bytes, which come in one stream. It waits (until `deadline_ns`,
 * monotonic) while DEBUGINFO_ARRIVING_MAX others arrive. E_NOTFOUND: no upload was begun for this
 * build id. E_INVALID: another one was. E_PRECONDITION: it is arriving already, or has ended.
 * E_UNAVAILABLE: the deadline passed, or DEBUGINFO_WAITING_MAX uploads wait already; the upload may
 * be begun anew at once. */
struct debuginfo_upload;
NODISCARD enum status debuginfo_upload_open(struct debuginfo_uploads *u,
	const struct debuginfo_key *key, struct str upload_id, int64_t deadline_ns,
	struct debuginfo_upload **out, struct err *e);
/* E_INVALID: more than was announced. E_LIMIT: all the room is taken by files that are arriving. */
NODISCARD enum status debuginfo_upload_write(
	struct debuginfo_upload *up, struct str bytes, struct err *e);
/* The stream has ended well: OK when the file is whole, and on disk. E_INVALID: it is shorter than
 * announced. */
NODISCARD enum status debuginfo_upload_end(
	struct debuginfo_upload *up, uint64_t *out_bytes, struct err *e);
/* Always to be called last; an upload that did not end well becomes BROKEN. */
void debuginfo_upload_close(struct debuginfo_upload *up);

/* From now on the file is used, and the one before it is removed. An invalid file is not kept;
 * `out` says so. A second call is harmless. E_NOTFOUND, E_INVALID: as above. E_PRECONDITION: the
 * file is not whole. */
NODISCARD enum status debuginfo_uploads_finish(struct debuginfo_uploads *u,
	const struct debuginfo_key *key, struct str upload_id, struct debuginfo_record *out,
	struct err *e);

/* A descriptor of the file, the caller's. E_NOTFOUND: there is none. */
NODISCARD enum status debuginfo_uploads_file(struct debuginfo_uploads *u,
	const struct debuginfo_key *key, int *out_fd, uint64_t *out_bytes, struct err *e);
/* The same, from any tenant: names of a build id are the same for all. */
NODISCARD enum status debuginfo_uploads_any(struct debuginfo_uploads *u, struct str build_id,
	enum debuginfo_type type, int *out_fd, struct err *e);

#define DEBUGINFO_METRICS(X)                                                                 \
	X(uploads, COUNTER, "firn_debuginfo_uploads_total", "Uploads that were finished.")   \
	X(upload_bytes, COUNTER, "firn_debuginfo_upload_bytes_total", "Bytes that arrived.") \
	X(broken, COUNTER, "firn_debuginfo_broken_uploads_total",                            \
		"Uploads whose stream did not end well.")                                    \
	X(invalid, COUNTER, "firn_debuginfo_invalid_uploads_total",                          \
		"Uploads that were not what they were said to be.")                          \
	X(purged, COUNTER, "firn_debuginfo_purged_total", "Files that gave way to others.")  \
	X(damaged, COUNTER, "firn_debuginfo_damaged_records_total",                          \
		"Records that could not be read, or were not true, set aside.")              \
	X(arriving, GAUGE, "firn_debuginfo_arriving_uploads", "Uploads under way.")          \
	X(bytes, GAUGE, "firn_debuginfo_bytes", "Bytes of uploaded files.")                  \
	X(ids, GAUGE, "firn_debuginfo_build_ids", "Build ids with uploads.")
struct debuginfo_metrics {
	DEBUGINFO_METRICS(METRIC_FIELD)
};
void debuginfo_uploads_write_metrics(struct debuginfo_uploads *u, struct buf *out);

/* ---- what is uploaded of an ELF file ---- */

/* The parts of an ELF file that give names to its addresses, as a file of its own that is read
 * piece by piece: all sections that are not loaded (DWARF, symbols), symbols of the dynamic linker,
 * notes, and the headers of the other sections. It gives the same symbol table as the whole file.
 * Only the headers are kept in memory. `obj` stays the caller's, and must outlive the extract.
 * E_INVALID: sections lie at impossible places. E_NOTFOUND: there are no sections. */
struct objfile;
struct debuginfo_extract;
NODISCARD enum status debuginfo_extract_new(
	const struct objfile *obj, struct debuginfo_extract **out, struct err *e);
void debuginfo_extract_free(struct debuginfo_extract *x); /* NULL is fine */
uint64_t debuginfo_extract_bytes(const struct debuginfo_extract *x);
/* False: nothing in there names a function. */
bool debuginfo_extract_has_names(const struct debuginfo_extract *x);
/* Reads exactly `len` bytes, which must be within the extract. E_INVALID: the ELF file has become
 * shorter. */
NODISCARD enum status debuginfo_extract_read(
	const struct debuginfo_extract *x, uint64_t at, void *out, size_t len, struct err *e);
/* Writes the whole extract to `fd`. */
NODISCARD enum status debuginfo_extract(const struct objfile *obj, int fd, struct err *e);

/* ---- archives of sources: tar, compressed by gzip or zstd ---- */

/* Bytes of one text. */
#define DEBUGINFO_SOURCE_BYTES_MAX ((size_t)32 << 20)
/* Bytes unpacked until the wanted file is found; entries of an archive, and bytes of their paths.
 */
#define DEBUGINFO_ARCHIVE_BYTES_MAX ((uint64_t)8 << 30)
#define DEBUGINFO_ARCHIVE_ENTRIES_MAX 1000000
#define DEBUGINFO_ARCHIVE_PATH_MAX 4096

typedef bool debuginfo_cancel_fn(void *ctx);
/* Appends the bytes of the file `path` to `out`. A "/" or "./" at the front is ignored in both
 * names. E_NOTFOUND: the archive does not have it. E_CORRUPT says what is wrong with the archive,
 * and where. E_LIMIT: see above, and out->max. `cancel` may be NULL. */
NODISCARD enum status debuginfo_archive_find(int fd, struct str path, debuginfo_cancel_fn *cancel,
	void *cancel_ctx, struct buf *out, struct err *e);

/* Writes an archive, compressed by zstd, to `fd`. Times and owners are left out: equal files give
 * equal bytes. */
struct debuginfo_pack;
NODISCARD enum status debuginfo_pack_new(int fd, struct debuginfo_pack **out, struct err *e);
/* E_LIMIT: the path or the text is longer than may be read back. */
NODISCARD enum status debuginfo_pack_add(
	struct debuginfo_pack *p, struct str path, struct str text, struct err *e);
NODISCARD enum status debuginfo_pack_end(struct debuginfo_pack *p, struct err *e);
void debuginfo_pack_free(struct debuginfo_pack *p); /* NULL is fine */
