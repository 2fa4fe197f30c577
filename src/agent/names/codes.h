/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes: the functions of language runtimes that the BPF program has reported: their names, files
 * and lines, by process and number. They are kept for CODES_REST_EPOCHS intervals after the end of
 * their process. Private to agent/. Not thread safe: the poll thread's.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/err.h"
#include "base/metrics.h"

/* Memory of all functions. Beyond it the processes with the most functions lose some, the least
 * recently used first. */
#define CODES_BYTES_MAX ((size_t)32 << 20)
#define CODES_MAX (1u << 17)
/* Intervals after the end of its process: samples that were put aside still name it. */
#define CODES_REST_EPOCHS 6

#define CODES_METRICS(X)                                                                         \
	X(known, GAUGE, "firn_agent_runtime_functions", "Functions of language runtimes known.") \
	X(bytes, GAUGE, "firn_agent_runtime_function_bytes", "Memory that they take.")           \
	X(told, COUNTER, "firn_agent_runtime_functions_told_total",                              \
		"Functions of language runtimes that were told by the kernel.")                  \
	X(refused, COUNTER, "firn_agent_runtime_functions_refused_total",                        \
		"Of these, lost for want of memory.")                                            \
	X(forgotten, COUNTER, "firn_agent_runtime_functions_forgotten_total",                    \
		"Functions forgotten to make room, while their processes ran.")                  \
	X(unknown, COUNTER, "firn_agent_runtime_frames_unnamed_total",                           \
		"Frames of functions that are not known.")
struct codes_metrics {
	CODES_METRICS(METRIC_FIELD)
};

struct code {
	uint64_t number; /* as in frames */
	uint32_t pid;
	uint16_t kind;    /* enum runtime_kind */
	uint16_t version; /* as in runtime_record */
	uint8_t form;     /* enum runtime_form: FORM_SOURCE and FORM_CODE are no functions */
	uint8_t unit;     /* of a piece of source: bytes a character */
	uint32_t first_line;
	struct str name; /* UTF-8; "": the runtime has none */
	struct str file;
	struct str lines; /* the runtime's own table */
	uint64_t process_start_ns;
	uint32_t used_epoch;
	uint32_t ended_epoch; /* its process ended then; 0: it has not */
};

struct codes;

NODISCARD enum status codes_new(size_t bytes_max, struct codes **out, struct err *e);
void codes_free(struct codes *c);
void codes_add(struct codes *c, const struct event_code *event);
/* NULL: it is not known, which is remembered (codes_missed()). Valid until the next codes_add() and
 * codes_next_epoch(). */
const struct code *codes_find(struct codes *c, uint32_t pid, uint64_t number);
/* The line of a frame in it; 0: it is not known. */
uint32_t codes_line(const struct code *x, uint64_t position);
/* The same, and the line where the function begins. Works for V8 too, whose functions need the
 * source that the BPF program reports apart from them. */
struct code_lines {
	uint32_t first, line;
};
struct code_lines codes_lines(struct codes *c, const struct code *x, uint64_t position);
/* The functions of a frame in this code: one, or in code of V8 the inlined function first and then
 * its callers. A function is NULL if it is not known. Returns their number, at least one. */
#define CODE_FRAMES_MAX 16
struct code_frame {
	const struct code *function;
	struct code_lines lines;
};
size_t codes_frames(struct codes *c, const struct code *x, uint64_t position,
	struct code_frame out[CODE_FRAMES_MAX]);
void codes_process_ended(struct codes *c, const struct event_header *exit);
void codes_next_epoch(struct codes *c);
/* Has a function been lost or not found since the last call? */
bool codes_missed(struct codes *c);
const struct codes_metrics *codes_metrics(const struct codes *c);
void codes_write_metrics(const struct codes *c, struct buf *out);
