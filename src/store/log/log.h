/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/log/log: the write-ahead log (docs/formats/log.md): segments, group commit, replay.
 *
 * Layer 3, private to store/. log_append() may be called from any thread.
 */
#pragma once

#include "base/hash.h"
#include "store/disk/disk.h"
#include "store/log/batch.h"

#define LOG_SEGMENT_BYTES ((uint64_t)16 << 20) /* by default */
#define LOG_SEGMENT_BYTES_MIN ((uint64_t)64 << 10)
#define LOG_SEGMENT_BYTES_MAX ((uint64_t)512 << 20)
#define LOG_HEADER_BYTES 64
#define LOG_RECORD_HEADER_BYTES 64
#define LOG_FREE_MAX 4 /* segments kept to be used again: about what a memtable takes */
#define LOG_GROUP_BYTES_MAX ((size_t)4 << 20)

enum log_kind { LOG_KIND_BATCH = 1 };
enum log_coding { LOG_CODING_NONE = 0, LOG_CODING_ZSTD = 1 };

struct log_record {
	uint64_t sequence;
	int64_t arrived_ns;
	struct hash128 batch_id;
	uint8_t kind;
	uint8_t coding;
	uint32_t raw_len;
	struct str payload; /* as stored */
};

/* ---- one segment's bytes ---- */

enum log_event {
	LOG_EVENT_RECORD,
	LOG_EVENT_DAMAGE, /* bytes from offset to offset + length are not records */
	LOG_EVENT_TORN,   /* a write that did not end, at offset; nothing follows */
	LOG_EVENT_END,
};

struct log_cursor {
	struct str bytes;
	uint64_t id;
	uint64_t salt;
	struct hash128 store_id;
	uint64_t size;     /* that the file was made with */
	uint64_t sequence; /* of the last record */
	size_t at;
	size_t offset; /* of the last event */
	size_t length;
};

/* E_CORRUPT: the header is damaged. E_UNSUPPORTED: a higher major version. */
NODISCARD enum status log_cursor_open(
	struct str bytes, const char *name, struct log_cursor *out, struct err *e);
/* A segment whose header is damaged still has its salt in its first record. */
void log_cursor_salvage(struct str bytes, struct log_cursor *out);
/* `out` is set for records only, and points into the bytes. */
enum log_event log_cursor_next(struct log_cursor *c, struct log_record *out);
/* The payload of a record, unpacked into `out` (cleared first). */
NODISCARD enum status log_payload(
	const struct log_record *r, struct buf *out, struct str *payload, struct err *e);

/* ---- the log ---- */

struct log;

struct log_stats {
	uint64_t bytes; /* written */
	uint64_t syncs;
};

/* `dir` exists. Segments that exist are taken over, sealed. New segments are preallocated with
 * `segment_bytes`, at least LOG_SEGMENT_BYTES_MIN, or with what their first record needs. */
NODISCARD enum status log_open(const char *dir, struct hash128 store_id, uint64_t next_segment,
	uint64_t segment_bytes, struct log **out, struct err *e);
void log_close(struct log *l);
/* The next record gets at least this number. All numbers in use are below it. */
void log_skip_to(struct log *l, uint64_t next_sequence);
uint64_t log_next_sequence(struct log *l);
uint64_t log_next_segment(struct log *l);
struct log_stats log_stats_get(struct log *l);

/* Durable when OK. The payload is already coded, as `coding` says. E_NOSPACE. E_LIMIT: the record
 * is longer than the log takes. */
NODISCARD enum status log_append(
	struct log *l, struct log_record *record, uint64_t *out_sequence, struct err *e);
/* Ends the current segment: the next record starts a new one. Returns the highest sequence number
 * given so far. */
uint64_t log_seal(struct log *l);
/* Sealed segments without a record above `sequence` may be used again. */
NODISCARD enum status log_release(struct log *l, uint64_t sequence, struct err *e);
/* E_UNAVAILABLE: a segment that log_open() found cannot be released before the next start. */
NODISCARD enum status log_check_kept(struct log *l, struct err *e);
/* Switches the reuse of released segments, which is on at first. While any caller has it off,
 * released segments are removed. A caller that switches it off must switch it on again. */
void log_reuse(struct log *l, bool on);
/* Removes the segments that wait to be used again. */
NODISCARD enum status log_forget_free(struct log *l, struct err *e);

/* The segments that log_open() found, oldest first; the last sequence number of each is unknown
 * (so that nothing is released) until log_found_set(). */
size_t log_found_count(const struct log *l);
const char *log_found_path(const struct log *l, size_t i);
void log_found_set(struct log *l, size_t i, uint64_t last_sequence);
