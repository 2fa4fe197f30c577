/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: OpenTelemetry profiles (v1development, 1.11; read from 1.7 on) to and from a struct
 * profile.
 *
 * Layer 2 (may use base, pb, profile). Source: opentelemetry-proto,
 * collector/profiles/v1development/profiles_service.proto and
 * profiles/v1development/profiles.proto.
 *
 * Attributes become labels by the table in otlp.c (host.name = node, process.pid = pid, thread.id =
 * thread_id, thread.name = thread_name, cpu.logical_number = cpu, process.executable.name =
 * executable, container.id = container_id, …) and by replacing every byte outside [a-zA-Z0-9_] with
 * '_' for all others; the encoder uses the same table backwards. The scope's name is the profile's
 * name.
 */
#pragma once

#include "profile/profile.h"

/* Frames of all stacks of one message together (1.7, where each sample has a range of locations,
 * and ranges may overlap). */
#define OTLP_FRAMES_MAX ((uint64_t)1 << 28)
/* location_indices of one profile (1.7); values, timestamps of one sample: a byte of the message
 * makes one. */
#define OTLP_PLACES_MAX (1 << 22)
#define OTLP_OBSERVATIONS_MAX (1 << 20)

/* Why a profile is left out. */
enum otlp_reject {
	OTLP_REJECT_INDEX,  /* out of range, or of an element that cannot be used */
	OTLP_REJECT_TIME,   /* none, or beyond the year 2262 */
	OTLP_REJECT_PERIOD, /* negative */
	OTLP_REJECT_TYPE,   /* none */
	OTLP_REJECT_VALUES, /* not as many as timestamps or types */
	OTLP_REJECT_LIMIT,  /* attributes, types, values, locations */
	OTLP_REJECTS_COUNT
};

/* What a decoder left out, and why; the answer's partial success is made of it. */
struct otlp_rejects {
	int64_t profiles;
	uint64_t by_reason[OTLP_REJECTS_COUNT];
	char reason[240]; /* of the first one, with the field's path; "" when none */
};

/* Decodes an ExportProfilesServiceRequest. Adds to `out`. A profile that cannot be kept is counted
 * in `rejects`; a message that is not one is E_INVALID with the field's path and offset, and adds
 * no samples.
 *
 * Element 0 of each table is its null element. Labels of the resource, the scope and the profile
 * become `resource` (the first of a name wins), those of a sample `own`; bool, int and double
 * values become text, arrays, maps and bytes are left out. A type is a delta when duration_nano is
 * not 0. A sample with timestamps gives one sample for each (value 1 where there are no values),
 * else one for each non-zero value at the profile's time. A mapping's build id is
 * process.executable. build_id.gnu, or process.executable.build_id.firn (a content id, for files
 * without one); go and htlhash ids are not kept, since no debuginfo is found by them. A location's
 * kind is profile.frame.type. */
NODISCARD enum status otlp_decode(
	struct str message, struct profile *out, struct otlp_rejects *rejects, struct err *e);
/* An ExportProfilesServiceRequest with all samples of `p`, dictionary first-come ordered. Equal
 * (stack, labels, link) of one head are one Sample. Holds the rules of strict receivers (Parca's):
 * no empty table, profile_id, timestamps inside the profile's window, labels as text; labels of the
 * resource have their own name beside that of the conventions. Equal input gives equal bytes. */
NODISCARD enum status otlp_encode(const struct profile *p, struct buf *out);

/* An ExportProfilesServiceResponse: what the server answers and the client reads. */
void otlp_encode_response(const struct otlp_rejects *rejects, struct buf *out);
NODISCARD enum status otlp_decode_response(
	struct str message, struct otlp_rejects *out, struct err *e);

/* ---- the context of a process (OTEP 4719, processcontext/v1development) ---- */

/* Attributes of its resource. More of them, and longer keys or values, are left out. */
#define OTLP_CONTEXT_ATTRIBUTES_MAX 64
#define OTLP_CONTEXT_KEY_BYTES_MAX 128
#define OTLP_CONTEXT_VALUE_BYTES_MAX 256

/* The texts are valid UTF-8 without NUL, and live as long as the call. */
typedef void otlp_context_fn(void *ctx, struct str key, struct str value);
/* A ProcessContext: `fn` gets the attributes of its resource that are texts, bools or whole
 * numbers, in their order. E_INVALID: malformed; then it was not called. */
NODISCARD enum status otlp_decode_process_context(
	struct str message, otlp_context_fn *fn, void *ctx, struct err *e);
