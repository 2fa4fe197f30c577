/* SPDX-License-Identifier: Apache-2.0 */
/* Parca's names for things that have other names in firn. */
#include "parca/parca.h"

/* Names of kinds besides OTLP's. Source: go.opentelemetry.io/ebpf-profiler, libpf/frametype.go,
 * older names, and parca-agent's own. */
static const struct {
	struct str name;
	enum frame_kind kind;
} kinds[] = {
	{ { "python", 6 }, FRAME_CPYTHON },
	{ { "abort-marker", 12 }, FRAME_MARKER },
	{ { "cuda-pc", 7 }, FRAME_NATIVE },
	{ { "v8", 2 }, FRAME_V8JS },
};

enum frame_kind parca_frame_kind(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_eq(kinds[i].name, name))
			return kinds[i].kind;
	return frame_kind_parse(name);
}

bool parca_label_is_own(struct str name)
{
	static const char *const own[] = { "cpu", "pid", "span_id", "thread_id", "thread_name",
		"tid", "trace_id" };
	for (size_t i = 0; i < ARRAY_COUNT(own); i++)
		if (str_eq(str_of(own[i]), name))
			return true;
	return false;
}
