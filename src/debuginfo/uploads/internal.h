/* SPDX-License-Identifier: Apache-2.0 */
/* uploads: what uploads.c, room.c and places.c share. Private to debuginfo/. */
#pragma once

#include "base/lock.h"
#include "debuginfo/uploads/record.h"

#include <limits.h>

/* Bytes of a folder's or a file's name: the texts, of which a byte may become three, and the rest.
 */
#define DEBUGINFO_NAME_MAX 255
#define DEBUGINFO_PATH_BYTES (PATH_MAX + 2 * DEBUGINFO_NAME_MAX)

struct debuginfo_upload {
	struct debuginfo_uploads *u;
	struct debuginfo_upload *next; /* of the uploads under way */
	struct debuginfo_record record;
	int fd;
	uint64_t bytes;
	uint64_t reserved; /* its part of debuginfo_uploads.bytes: what came and a little more */
	bool whole;
};

struct debuginfo_uploads {
	struct debuginfo_uploads_config config; /* dir is a copy */
	struct debuginfo_metrics metrics;
	struct lock lock;    /* guards all that follows, and records and whole files on disk */
	pthread_cond_t left; /* an upload under way has ended */
	struct debuginfo_upload *arriving;
	uint32_t arriving_count;
	uint32_t waiting_count;
	uint64_t bytes; /* of kept files and of uploads under way */
	uint32_t ids;
	int64_t swept_ns; /* monotonic */
};

/* Where an upload lies: its folder, and what its files' names begin with. */
struct debuginfo_place {
	char dir[PATH_MAX];
	char base[DEBUGINFO_NAME_MAX + 1];
};
NODISCARD enum status debuginfo_place_of(const struct debuginfo_uploads *u,
	const struct debuginfo_key *key, struct debuginfo_place *out, struct err *e);
struct debuginfo_key debuginfo_key_of(const struct debuginfo_record *r);
/* DIR/BASE.SUFFIX; `part`: with ".part" behind it, for an upload's file that is not whole. */
void debuginfo_path(const struct debuginfo_place *p, const char *suffix, bool part,
	char out[DEBUGINFO_PATH_BYTES]);

/* Copies a text and ends it with NUL; a text that does not fit is cut. */
void debuginfo_copy_text(char *out, size_t size, struct str s);
/* A record of which nothing is known yet. */
void debuginfo_record_begin(const struct debuginfo_key *key, struct debuginfo_record *out);

/* ---- records; with the lock held ---- */

/* NOT_SEEN: there is none, or a damaged one (which is counted and set aside with its files). */
NODISCARD enum status debuginfo_record_read(struct debuginfo_uploads *u,
	const struct debuginfo_key *key, struct debuginfo_record *out, struct err *e);
NODISCARD enum status debuginfo_record_write(
	struct debuginfo_uploads *u, const struct debuginfo_record *r, struct err *e);

/* ---- room.c; with the lock held ---- */

/* Moves an unreadable record of a place, and the place's whole files, out of the way. */
NODISCARD enum status debuginfo_room_set_aside(
	struct debuginfo_uploads *u, const struct debuginfo_place *place, struct err *e);
/* Removes files that no record names, sets aside records that cannot be read, and counts the rest.
 */
NODISCARD enum status debuginfo_room_begin(struct debuginfo_uploads *u, struct err *e);
/* Makes room for `bytes` more: the least recently used files are removed. E_LIMIT. */
NODISCARD enum status debuginfo_room_make(
	struct debuginfo_uploads *u, uint64_t bytes, struct err *e);
/* Makes room for one more build id. */
NODISCARD enum status debuginfo_room_for_id(struct debuginfo_uploads *u, struct err *e);
