/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope: what Pyroscope's SDKs, Alloy and profilecli send, made into a struct profile with the
 * names that Pyroscope would have given: push.v1.PushRequest, and the bodies of POST /ingest
 * (pprof, folded stacks, lines, trie, tree, JFR; raw or
 * multipart).
 *
 * Layer 3 (may use base, codec, pb, profile, pprof, jfr). No I/O. Not thread safe. Source: what the
 * SDKs were recorded to send (docs/clients.md), grafana/pyroscope pkg/og and
 * pkg/ingester/pyroscope.
 *
 * Labels: dots become '_' as everywhere in firn; names that begin with "__" (__session_id__,
 * __delta__) are dropped, but for __name__. A series without service_name gets one: of /ingest the
 * application's name, else "unspecified". Types whose sums say nothing (inuse_*, goroutines, live)
 * are gauges, the others deltas.
 */
#pragma once

#include "profile/profile.h"

/* All profiles of a message, decompressed. */
#define PYROSCOPE_BYTES_MAX ((size_t)256 << 20)
/* Parts of a multipart body, and bytes of the head of one. */
#define PYROSCOPE_PARTS_MAX 16
#define PYROSCOPE_PART_HEAD_MAX 4096
/* Bytes of stacks that a trie or a tree may spell out: their nodes share what is above them. */
#define PYROSCOPE_SPELLED_MAX ((uint64_t)256 << 20)
/* Frames of one stack; those that profile.h allows are kept. */
#define PYROSCOPE_FRAMES_MAX 65536u

/* push.v1.PushRequest. Adds to `out`, no samples on failure; now_ns is for profiles without a time.
 * E_INVALID and E_LIMIT name series, sample and field. */
NODISCARD enum status pyroscope_push_decode(
	struct str message, int64_t now_ns, struct profile *out, struct err *e);

/* "now", "now-3h", "20260131", seconds, milliseconds, microseconds or nanoseconds since 1970 by
 * their size. Anything else is now, as in Pyroscope. */
int64_t pyroscope_time(struct str text, int64_t now_ns);

/* The query of POST /ingest as it came, percent-decoded; "" for what is not there. */
struct pyroscope_ingest {
	struct str name; /* "app{key=value,…}" */
	struct str format;
	struct str content_type; /* the header */
	struct str from;
	struct str until;
	struct str sample_rate;
	struct str spy;
	struct str aggregation;
};
/* E_INVALID: the name says nothing. To be asked first: a wrong query and a wrong body have statuses
 * of their own. */
NODISCARD enum status pyroscope_ingest_check(const struct pyroscope_ingest *q, struct err *e);
/* Adds to `out`, no samples on failure. E_INVALID names part and place, E_LIMIT the limit;
 * E_UNSUPPORTED: a format that is not known, or an SDK from before 2023. */
NODISCARD enum status pyroscope_ingest_decode(const struct pyroscope_ingest *q, struct str body,
	int64_t now_ns, struct profile *out, struct err *e);
