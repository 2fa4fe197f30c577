/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca: the messages of Parca's API (github.com/parca-dev/parca, proto/parca), decoded into plain
 * structures and encoded from them.
 *
 * Layer 3 (may use base, codec, pb, profile, pprof, selector, arrow). No I/O. Texts of decoded
 * messages point into the message, or lie in the arena; both must outlive them. Unknown fields are
 * skipped. Times are nanoseconds since 1970; a time that does not fit becomes the nearest that
 * does.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "selector/selector.h"

/* ---- parca.query.v1alpha1 ---- */

#define PARCA_QUERY_LIST_MAX 256 /* elements of a repeated field of a request */

struct parca_strings {
	struct str *v;
	uint32_t count;
};

/* An instant that may be absent. */
struct parca_time {
	bool set;
	int64_t ns;
};

/* ProfileTypesRequest, LabelsRequest, ValuesRequest, SeriesRequest: what they have in common. */
struct parca_index_request {
	struct str label_name; /* Values */
	struct parca_strings match;
	struct parca_time start, end;
	struct str profile_type;
};
enum parca_index_kind { PARCA_PROFILE_TYPES, PARCA_LABELS, PARCA_VALUES, PARCA_SERIES };
NODISCARD enum status parca_index_decode(struct str message, enum parca_index_kind kind,
	struct arena *a, struct parca_index_request *out, struct err *e);

struct parca_range_request {
	struct str query;
	int64_t start_ns, end_ns; /* both belong to the range */
	uint32_t limit;
	int64_t step_ns; /* 0: not given */
	struct parca_strings sum_by;
};
/* Checked as Parca checks it: E_INVALID names each field that is missing. */
NODISCARD enum status parca_range_decode(
	struct str message, struct arena *a, struct parca_range_request *out, struct err *e);

enum parca_mode { PARCA_SINGLE, PARCA_DIFF, PARCA_MERGE };
enum parca_report {
	PARCA_FLAMEGRAPH_FLAT,
	PARCA_PPROF,
	PARCA_TOP,
	PARCA_CALLGRAPH,
	PARCA_FLAMEGRAPH_TABLE,
	PARCA_FLAMEGRAPH_ARROW,
	PARCA_SOURCE,
	PARCA_TABLE_ARROW,
	PARCA_PROFILE_METADATA,
	PARCA_FLAMECHART,
	PARCA_REPORT_COUNT
};

/* MergeProfile, SingleProfile (start_ns is its time). */
struct parca_selection {
	bool single;
	struct str query;
	struct parca_time start, end;
};
struct parca_query_request {
	enum parca_mode mode;
	struct parca_selection side; /* what is shown; of a diff, b */
	struct parca_selection base; /* of a diff, a */
	bool absolute;
	enum parca_report report;
	double trim_percent; /* of the parent's value */
	struct parca_strings group_by;
	bool has_source;
	struct str source_build_id, source_filename;
	bool source_only;
	bool invert;
	struct frame_filter *filters; /* the old forms put into the new one */
	uint32_t filter_count;
	struct str sandwich;
};
/* Checked as Parca checks it. */
NODISCARD enum status parca_query_decode(
	struct str message, struct arena *a, struct parca_query_request *out, struct err *e);

struct parca_share_request {
	struct parca_query_request query; /* report: PARCA_PPROF */
	struct str description;
};
NODISCARD enum status parca_share_decode(
	struct str message, struct arena *a, struct parca_share_request *out, struct err *e);

struct parca_profile_type {
	struct str name, sample_type, sample_unit, period_type, period_unit;
	bool delta;
};
void parca_types_encode(const struct parca_profile_type *types, size_t count, struct buf *out);
/* LabelsResponse, ValuesResponse. */
void parca_names_encode(const struct str *names, size_t count, struct buf *out);

struct parca_sample {
	int64_t time_ns, value, duration_ns;
	double per_second;
	int32_t count;
};
struct parca_label {
	struct str name, value;
};
/* QueryRangeResponse.series: call for each; the value types may be empty. */
struct parca_series {
	const struct parca_label *labels;
	size_t label_count;
	const struct parca_sample *samples;
	size_t sample_count;
	struct str period_type, period_unit, sample_type, sample_unit;
};
void parca_series_encode(const struct parca_series *s, struct buf *out);

/* QueryResponse with `report` under the field of its kind: bytes of the report's own message, or of
 * the pprof file. */
void parca_report_encode(enum parca_report kind, struct str report, int64_t total, int64_t filtered,
	struct buf *out);
/* The messages that hold an Arrow stream. */
void parca_flamegraph_arrow_encode(
	struct str record, struct str unit, int32_t height, int64_t trimmed, struct buf *out);
void parca_table_arrow_encode(struct str record, struct str unit, struct buf *out);
void parca_source_encode(struct str record, struct str source, struct str unit, struct buf *out);
void parca_metadata_encode(const struct str *mappings, size_t mapping_count,
	const struct str *labels, size_t label_count, struct buf *out);

/* ---- parca.profilestore.v1alpha1: what agents write ---- */

/* Bytes of all pprof files of a WriteRawRequest, decompressed. */
#define PARCA_RAW_BYTES_MAX ((size_t)256 << 20)

/* A WriteRawRequest: pprof files, gzip or plain. The label __name__ of a series is the profile's
 * name, the others are `resource`; labels of pprof samples are kept as `own`. Profiles without a
 * time get now_ns. Adds to `out`; no samples on failure. The error names series, sample and field.
 */
NODISCARD enum status parca_raw_decode(
	struct str message, int64_t now_ns, struct profile *out, struct err *e);

/* Frames of all stacks of one message together; each stack counts once. */
#define PARCA_FRAMES_MAX ((uint64_t)1 << 28)
/* Bytes of a stack's id; Parca's have 16. */
#define PARCA_STACK_ID_MAX 64

/* Counters of samples that a decoder changed or left out; they only grow. */
#define PARCA_ARROW_STATS(X)                                        \
	X(zero_values) /* samples of value 0, which are left out */ \
	X(no_stack)    /* samples whose stack the sender did not have any more */
struct parca_arrow_stats {
#define PARCA_STAT(name) uint64_t name;
	PARCA_ARROW_STATS(PARCA_STAT)
#undef PARCA_STAT
};

/* The ipc_buffer of a WriteArrowRequest: samples of schema v2 (stacks inside), in any number of
 * batches. Adds to `out`; no samples on failure. Labels that change from thread to thread (see
 * parca_label_is_own()) become `own`, the others `resource`. A function without a name has its
 * system name. E_INVALID names the column and row. memory_bytes: for the decoding itself. */
NODISCARD enum status parca_arrow_decode(struct str ipc, size_t memory_bytes, struct profile *out,
	struct parca_arrow_stats *stats, struct err *e);

/* A Write call: first samples come, with the ids of their stacks; then the stacks that were asked
 * for. */
struct parca_session;
NODISCARD enum status parca_session_new(size_t memory_bytes, struct profile *out,
	struct parca_arrow_stats *stats, struct parca_session **session);
void parca_session_free(struct parca_session *s);
/* The first message. */
NODISCARD enum status parca_session_samples(struct parca_session *s, struct str ipc, struct err *e);
/* Stacks of the samples; the ids' bytes live as long as the session. */
uint32_t parca_session_stack_count(const struct parca_session *s);
struct str parca_session_stack_id(const struct parca_session *s, uint32_t i);
/* Says which stack of the profile stack i is. */
void parca_session_set_stack(struct parca_session *s, uint32_t i, uint32_t stack);
/* Which stack of the profile stack i is; false: not known. */
bool parca_session_stack(const struct parca_session *s, uint32_t i, uint32_t *out);
/* Bytes of memory of the session, without its profile. */
uint64_t parca_session_bytes(const struct parca_session *s);
/* Writes a request for the stacks that are not known. *out_any false: there are none, and nothing
 * is written. */
NODISCARD enum status parca_session_ask(
	const struct parca_session *s, struct buf *out, bool *out_any, struct err *e);
/* The second message. Ids that were not asked for are passed over. */
NODISCARD enum status parca_session_stacks(struct parca_session *s, struct str ipc, struct err *e);
/* Adds the samples to the profile; a stack that is still not known is "[unknown stack]". */
NODISCARD enum status parca_session_finish(struct parca_session *s, struct err *e);

/* A file of parca-agent's offline mode (*.padata; *.padata.zst once decompressed), in
 * docs/formats/padata.md. */
struct parca_offline_sum {
	uint32_t batches;  /* taken */
	uint32_t told;     /* batches according to the file's head */
	size_t rest_bytes; /* bytes behind the last batch: one that the agent did not finish */
};
bool parca_is_offline(struct str file);
/* Adds its samples, of either schema, to `out`. On failure the samples of batches before the bad
 * one stay; the error names the bad one. memory_bytes: for the decoding of one batch. */
NODISCARD enum status parca_offline_decode(struct str file, size_t memory_bytes,
	struct profile *out, struct parca_arrow_stats *stats, struct parca_offline_sum *sum,
	struct err *e);

/* Labels of a thread or a span rather than of a process. */
bool parca_label_is_own(struct str name);
/* A frame_type of parca-agent. */
enum frame_kind parca_frame_kind(struct str name);

/* Stacks that an agent has sent and need not send again, by a hash of the agent and the stack's id.
 * At memory_bytes the least recently used half is removed. Thread safe. */
struct parca_stacks;
NODISCARD enum status parca_stacks_new(size_t memory_bytes, struct parca_stacks **out);
void parca_stacks_free(struct parca_stacks *s);
/* Adds stack `stack` of `from`. If there is no memory it is not remembered. */
void parca_stacks_add(
	struct parca_stacks *c, struct hash128 key, const struct profile *from, uint32_t stack);
/* Copies a known stack into `to`. False: not known, or no room in `to`. */
NODISCARD bool parca_stacks_find(
	struct parca_stacks *c, struct hash128 key, struct profile *to, uint32_t *out);
uint64_t parca_stacks_count(struct parca_stacks *c);
