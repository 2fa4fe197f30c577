/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: profile.proto to and from a struct profile. The gzip around it is the caller's (codec).
 *
 * Layer 2 (may use base, pb, profile). Source: github.com/google/pprof, proto/profile.proto; the
 * rules of its CheckValid hold for what is written.
 */
#pragma once

#include "profile/profile.h"

/* Decodes an uncompressed profile.proto. `name` is the first part of the profile types
 * ("process_cpu", "memory"); each sample type gives a head; sample labels become `own` labels,
 * numeric ones as text: those of profile_label_is_of_sample() are labels of their own, the others
 * are together in PROFILE_LABEL_NUMBERS. Comments become PROFILE_LABEL_COMMENTS of each sample. The
 * types are deltas when duration_nanos is not 0. A time_nanos of 0 stays 0: the caller knows when
 * the profile was taken. A sample type may be without a name. Empty locations are left out. Adds to
 * `out`; no samples on failure. E_INVALID names the table, element and field. */
NODISCARD enum status pprof_decode(
	struct str message, struct str name, struct profile *out, struct err *e);

/* How the executable of a mapping was loaded: its ELF type and the segment that holds the mapping.
 */
struct pprof_segment {
	uint32_t elf_type; /* 2: ET_EXEC, 3: ET_DYN */
	uint64_t offset;   /* in the file */
	uint64_t vaddr;
};
struct pprof_options {
	struct str name;
	/* label_sets[] of every sample. A sample's own label with the name of one of these becomes
	 * "exported_NAME", as in Prometheus. */
	uint32_t resource;
	int64_t time_ns; /* when the message has none */
	/* The label profile_id means span_id: Pyroscope's older SDKs named it so. */
	bool profile_id_is_span;
	/* Pyroscope's SDK for .NET before 2023 left out the ids of all functions: each has the id
	 * of the location in the same place. */
	bool lost_function_ids;
	/* "f[go.shape.int].func1" becomes "f.func1": Go names some instance of f, not the one that
	 * was called (golang/go issue 64528). */
	bool without_go_shapes;
	bool is_vaddr; /* addresses are those of the ELF files already */
	/* None, or one for each mapping: addresses become those of the ELF files. */
	const struct pprof_segment *segments;
	size_t segment_count;
};
/* The same with options. A function without a name gets its system name. */
NODISCARD enum status pprof_decode_with(struct str message, const struct pprof_options *options,
	struct profile *out, struct err *e);

/* All samples of `p`, which must have one period type. Samples of several heads with different
 * sample types give one value column each; equal stacks and labels are merged. Labels (both sets)
 * are written as string labels, except for PROFILE_LABEL_BYTES and PROFILE_LABEL_NUMBERS, which
 * become numbers, and PROFILE_LABEL_COMMENTS of all samples, which become comments (up to
 * PROFILE_COMMENTS_MAX). */
NODISCARD enum status pprof_encode(const struct profile *p, struct buf *out, struct err *e);

/* The same piece by piece, for samples that are never in memory all at once. Each call appends to
 * `out`, which may be emptied between any two. */
struct pprof_stream;
/* Samples refer to elements of `p`, which must not change until pprof_stream_free(); all its
 * strings are written. The value columns are types[] of `p`, with one period type. */
NODISCARD enum status pprof_stream_new(const struct profile *p, const uint32_t *types,
	uint32_t type_count, struct pprof_stream **out);
void pprof_stream_free(struct pprof_stream *s); /* NULL is fine */
/* First. */
void pprof_stream_types(struct pprof_stream *s, struct buf *out);
/* locations[] leaf first, PROFILE_STACK_MAX at the most; a value for each type; label_sets[]. */
void pprof_stream_sample(struct pprof_stream *s, const uint32_t *locations, uint32_t count,
	const int64_t *values, uint32_t labels, struct buf *out);
/* Adds a comment, a string of the profile. To be called at any time after the types. */
void pprof_stream_comment(struct pprof_stream *s, uint32_t string, struct buf *out);
/* Last. */
void pprof_stream_tables(struct pprof_stream *s, int64_t time_ns, int64_t duration_ns,
	int64_t period, struct buf *out);
/* E_NOMEM: the output is not whole. */
NODISCARD enum status pprof_stream_status(const struct pprof_stream *s);
