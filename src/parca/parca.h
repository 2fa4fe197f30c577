/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca: the messages of Parca's API (github.com/parca-dev/parca, proto/parca), decoded into plain
 * structures and encoded from them.
 *
 * Layer 3 (may use base, pb, profile, pprof, selector, arrow). No I/O. Texts of decoded messages
 * point into the message, or lie in the arena; both must outlive them. Unknown fields are skipped.
 * Times are nanoseconds since 1970; those that do not fit are held at the nearest that does.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
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
