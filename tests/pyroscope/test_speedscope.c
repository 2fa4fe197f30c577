/* SPDX-License-Identifier: Apache-2.0 */
/* Files of speedscope: both kinds of profile, units, and each way to be refused. */
#include "test.h"

#include "pyroscope/labels.h"
#include "pyroscope/speedscope.h"
#include "say.h"

#define MEMORY ((size_t)64 << 20)
#define HEAD                                                                   \
	"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"," \
	"\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b;c\"},{\"file\":\"x\"}]},"
#define ONE(profile) HEAD "\"profiles\":[{" profile "}]}"
#define SAMPLED(unit, samples, weights)                                                  \
	"\"type\":\"sampled\",\"name\":\"p\",\"unit\":\"" unit "\",\"samples\":" samples \
	",\"weights\":" weights
#define EVENTED(events) \
	ONE("\"type\":\"evented\",\"name\":\"p\",\"unit\":\"milliseconds\",\"events\":[" events "]")
#define EVENT(kind, at, frame) "{\"type\":\"" kind "\",\"at\":" at ",\"frame\":" frame "}"
#define LABELS "{profile_name=p,service_name=app,}{} "
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta 10 1 " LABELS
#define WALL "wall:wall:nanoseconds:cpu:nanoseconds:delta 10 1 " LABELS

static const struct file_case {
	const char *name;
	const char *json;
	const char *app;  /* NULL: "app" */
	const char *want; /* NULL: E_INVALID, where `name` is what the error says */
} files[] = {
	{ "sampled", ONE(SAMPLED("seconds", "[[0,1],[0],[0,2],[]]", "[1,0.25,1e-9,9]")), NULL,
		"1000000000 " CPU "a;b:c\n250000000 " CPU "a\n1 " CPU "a;[unknown]\n" },
	{ "no unit: samples of 100 Hz", ONE(SAMPLED("none", "[[0]]", "[3]")), NULL,
		"30000000 " CPU "a\n" },
	{ "bytes", ONE(SAMPLED("bytes", "[[0]]", "[3]")), NULL,
		"3 memory:samples:bytes:::delta 10 1 " LABELS "a\n" },
	{ "named bytes", ONE(SAMPLED("bytes", "[[0]]", "[3]")), "app.alloc_space",
		"3 memory:alloc_space:bytes:::delta 10 1 " LABELS "a\n" },
	{ "two",
		HEAD "\"profiles\":[{" SAMPLED("microseconds", "[[0]]", "[3]") "},{" SAMPLED(
			"none", "[[1]]", "[1]") "}]}",
		NULL, "3000 " WALL "a\n10000000 " CPU "b:c\n" },
	{ "the same twice",
		HEAD "\"profiles\":[{" SAMPLED("seconds", "[[0]]", "[3]") "},{" SAMPLED(
			"seconds", "[[1]]", "[1]") "}]}",
		NULL, "3000000000 " CPU "a\n1000000000 " CPU "b:c\n" },
	{ "evented",
		EVENTED(EVENT("O", "5", "0") "," EVENT("O", "7.5", "1") "," EVENT(
			"C", "8", "1") "," EVENT("C", "8", "0")),
		NULL, "2500000 " CPU "a\n500000 " CPU "a;b:c\n" },
	{ "$schema", "{}", NULL, NULL },
	{ "no frames",
		"{\"$schema\":\"https://www.speedscope.app/"
		"file-format-schema.json\",\"profiles\":[]}",
		NULL, NULL },
	{ "speedscope: profiles[0]: type", ONE("\"unit\":\"none\",\"type\":\"x\""), NULL, NULL },
	{ "unit", ONE(SAMPLED("miles", "[]", "[]")), NULL, NULL },
	{ "as many weights", ONE(SAMPLED("none", "[[0]]", "[]")), NULL, NULL },
	{ "no list", ONE(SAMPLED("none", "[0]", "[1]")), NULL, NULL },
	{ "not there", ONE(SAMPLED("none", "[[3]]", "[1]")), NULL, NULL },
	{ "no number from 0 on", ONE(SAMPLED("none", "[[0]]", "[-1]")), NULL, NULL },
	{ "no number from 0 on", ONE(SAMPLED("seconds", "[[0]]", "[1e18]")), NULL, NULL },
	{ "no number from 0 on", ONE(SAMPLED("none", "[[0]]", "[[]]")), NULL, NULL },
	{ "no time", EVENTED(EVENT("O", "5", "0") "," EVENT("C", "4", "0")), NULL, NULL },
	{ "closes another", EVENTED(EVENT("O", "5", "0") "," EVENT("C", "6", "1")), NULL, NULL },
	{ "closes another", EVENTED(EVENT("C", "6", "1")), NULL, NULL },
	{ "events[0]", EVENTED("7"), NULL, NULL },
	{ "unknown profile type", ONE(SAMPLED("none", "[]", "[]")), "app.what", NULL },
	{ "JSON", "{", NULL, NULL },
};

static void reads_files(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 16);
	FOR_EACH_CASE (c, files) {
		struct profile p;
		struct err e = { 0 };
		const struct series_labels labels = { 0 };
		struct speedscope in = { .bytes = str_of(c->json),
			.app = str_of(c->app ? c->app : "app"),
			.labels = &labels,
			.rate = 100,
			.time_ns = 1,
			.duration_ns = 10 };
		CHECK_OK(profile_init(&p, MEMORY), &e);
		enum status s = speedscope_decode(&in, &p, &e);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		if (c->want)
			CHECK_STR(say(&text, &p), c->want);
		else
			CHECK_CASE(c, strstr(e.text, c->name));
		CHECK_OK(profile_validate(&p, &e), &e);
		profile_deinit(&p);
	}
}

/* One function more than may be open. */
static void limits_depth(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct profile p;
	struct err e = { 0 };
	const struct series_labels labels = { 0 };
	buf_init(&b, 1 << 20);
	buf_cstr(&b, HEAD "\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\",\"events\":[");
	for (int i = 0; i <= 4096; i++)
		buf_printf(&b, "%s" EVENT("O", "1", "0"), i ? "," : "");
	buf_cstr(&b, "]}]}");
	struct speedscope in = { .bytes = buf_view(&b),
		.app = STR("app"),
		.labels = &labels,
		.rate = 100,
		.time_ns = 1 };
	CHECK_OK(profile_init(&p, MEMORY), &e);
	CHECK(speedscope_decode(&in, &p, &e) == E_INVALID);
	CHECK(strstr(e.text, "events[4096]: opens too many"));
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(reads_files), cmocka_unit_test(limits_depth))
