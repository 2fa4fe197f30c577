/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * jfr: recordings of the JDK's Flight Recorder and of async-profiler, made into samples.
 *
 * Layer 2 (may use base, profile). No I/O; a gzip around it is the caller's. Format 1.0 to 2.x with
 * compressed integers, one or several chunks. Source: the JDK's jdk.jfr.internal.consumer (parsers
 * of metadata, constants and events), async-profiler's flightRecorder.cpp; which event gives which
 * type, grafana/jfr-parser.
 *
 *	jdk.ExecutionSample (not sleeping)  process_cpu:cpu:nanoseconds:cpu:nanoseconds
 *	profiler.WallClockSample (runnable), of a recording of wall: the same
 *	   both, of a recording of wall; profiler.WallClockSample
 *	                                    wall:wall:nanoseconds:wall:nanoseconds
 *	jdk.ObjectAllocationInNewTLAB       memory:alloc_in_new_tlab_{objects:count,bytes:bytes}:space:bytes
 *	jdk.ObjectAllocationOutsideTLAB     memory:alloc_outside_tlab_{objects:count,bytes:bytes}:space:bytes
 *	jdk.ObjectAllocationSample          memory:alloc_sample_{objects:count,bytes:bytes}:space:bytes
 *	profiler.Malloc                     memory:malloc_{objects:count,bytes:bytes}::
 *	profiler.LiveObject                 memory:live:count:objects:count, a gauge
 *	jdk.JavaMonitorEnter                mutex:{contentions:count,delay:nanoseconds}:mutex:count
 *	jdk.ThreadPark                      block:{contentions:count,delay:nanoseconds}:block:count
 *
 * Frames are "package/Class.method" with their line; what a JVM numbers anew in each process is cut
 * off ("App$$Lambda_.run"). Labels of a sample: thread_name, jfr_event (what async-profiler sampled
 * by), trace_id, and what the caller knows of its context.
 */
/* clang-format on */
#pragma once

#include "profile/profile.h"

#define JFR_CLASSES_MAX 65536u
#define JFR_FIELDS_MAX 256u        /* of a class */
#define JFR_STRINGS_MAX 1000000u   /* of the metadata of a chunk */
#define JFR_CONSTANTS_MAX 2000000u /* of a chunk; some 100 bytes each */
#define JFR_EVENTS_MAX 16000000u   /* settings and samples of a chunk; each takes 4 bytes */
/* Events read the constants that they name: all together at most this many times the length of a
 * chunk. */
#define JFR_REREAD_FACTOR 8
#define JFR_DEPTH_MAX 16 /* objects in objects */
#define JFR_TEXT_MAX ((size_t)1 << 20)
#define JFR_CHUNKS_MAX 4096
/* A stack with more frames is refused; profile.h's limit, which is lower, cuts stacks. */
#define JFR_FRAMES_MAX 65536u
/* Labels that a context may have. */
#define JFR_CONTEXT_LABELS_MAX 32

/* Makes the labels of an event from its fields contextId, spanId and spanName, of which at least
 * one is not 0. Writes them to out[0 .. room), and their number to *out_count. */
typedef enum status jfr_context_fn(void *ctx, uint64_t context_id, uint64_t span_id,
	uint64_t span_name, struct profile *p, struct profile_label *out, uint32_t room,
	uint32_t *out_count);

struct jfr_options {
	int64_t period_ns; /* of a sample of cpu and wall */
	int64_t time_ns;   /* of all samples; 0: each chunk has its own time and duration */
	int64_t duration_ns;
	uint32_t resource;       /* label_sets[] of every sample */
	jfr_context_fn *context; /* NULL: none */
	void *ctx;
};

bool jfr_is(struct str bytes);

/* Adds to `out` one sample for each distinct type, stack and labels; no samples on failure.
 * E_INVALID names chunk and byte, E_LIMIT the limit, E_UNSUPPORTED the unknown format. */
NODISCARD enum status jfr_decode(
	struct str bytes, const struct jfr_options *options, struct profile *out, struct err *e);
