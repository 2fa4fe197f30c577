/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool: batches on disk that wait for the server, oldest first, within a limit of bytes
 * (docs/formats/spool.md). Private to agent/. Not thread safe: the sender thread's.
 */
#pragma once

#include "agent/agent.h"
#include "base/buf.h"
#include "base/err.h"

#define SPOOL_FILES_MAX 65536
#define SPOOL_MESSAGE_BYTES_MAX AGENT_BATCH_BYTES_MAX

/* Counts of batches that are in the spool, or that were lost from it. */
struct spool_sum {
	uint64_t batches;
	uint64_t samples;
	uint64_t bytes; /* of files */
};

struct spool;

/* Makes the directory if it is not there, and counts what an earlier agent left in it. E_EXISTS:
 * another agent uses it. */
NODISCARD enum status spool_open(
	const char *dir, uint64_t bytes_max, struct spool **out, struct err *e);
void spool_close(struct spool *s); /* NULL is fine */

/* After OK the batch is durable. Older batches that were removed for it are added to *lost.
 * E_LIMIT: it is larger than the spool. If the folder was removed, it is made again, if that is
 * allowed. */
NODISCARD enum status spool_add(struct spool *s, struct str message, uint32_t samples,
	struct spool_sum *lost, struct err *e);
/* The oldest batch, appended to `out`. Damaged ones on the way are removed and added to *damaged.
 * E_NOTFOUND: the spool is empty. Other errors: the batch is there and cannot be read now. */
NODISCARD enum status spool_oldest(struct spool *s, struct buf *out, uint32_t *out_samples,
	struct spool_sum *damaged, struct err *e);
/* Removes what spool_oldest() gave. */
void spool_remove_oldest(struct spool *s);
struct spool_sum spool_content(const struct spool *s);

/* A file's bytes to the message, appended to `out`. E_CORRUPT: not of the form, or damaged. */
NODISCARD enum status spool_decode(
	struct str file, struct buf *out, uint32_t *out_samples, struct err *e);
