/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: for each request that the server takes as JSON, what pb_json_decode() accepts gives,
 * written and read again, the same JSON; and the decoder of that message, where there is one, takes
 * the bytes or says why not. The first byte chooses the method, the second what is ignored.
 */
#include "fuzz/fuzz.h"

#include "otlp/otlp.h"
#include "parca/parca.h"
#include "schema/schema.h"

#define BYTES_MAX ((size_t)1 << 20)
#define LIMIT ((size_t)16 << 20)

static const struct pb_service *const services[] = {
	&schema_otlp_profiles_service,
	&schema_parca_query,
	&schema_parca_profilestore,
	&schema_parca_agents,
	&schema_parca_debuginfo,
	&schema_parca_scrape,
	&schema_parca_telemetry,
	&schema_otlp_trace_service,
	&schema_otlp_logs_service,
	&schema_otlp_metrics_service,
	&schema_health,
	&schema_reflection,
};

static const struct pb_method *method_of(uint8_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_COUNT(services); i++)
		count += services[i]->count;
	size_t at = n % count;
	for (size_t i = 0;; i++) {
		if (at < services[i]->count)
			return &services[i]->methods[at];
		at -= services[i]->count;
	}
}

static void decode_otlp(struct str message, struct err *e)
{
	struct profile p;
	struct otlp_rejects rejects;
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = otlp_decode(message, &p, &rejects, e);
	FUZZ_CHECK(s == OK || e->text[0]);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	profile_deinit(&p);
}

static void decode_raw(struct str message, struct err *e)
{
	struct profile p;
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = parca_raw_decode(message, 1234567, &p, e);
	FUZZ_CHECK(s == OK || e->text[0]);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	profile_deinit(&p);
}

static void decode_query(const char *name, struct str message, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct parca_query_request query;
	struct parca_range_request range;
	struct parca_share_request share;
	struct parca_index_request index;
	enum status s = OK;
	arena_init(&a, 1 << 20);
	if (strcmp(name, "Query") == 0)
		s = parca_query_decode(message, &a, &query, e);
	else if (strcmp(name, "QueryRange") == 0)
		s = parca_range_decode(message, &a, &range, e);
	else if (strcmp(name, "ShareProfile") == 0)
		s = parca_share_decode(message, &a, &share, e);
	else
		s = parca_index_decode(message, PARCA_VALUES, &a, &index, e);
	FUZZ_CHECK(s == OK || e->text[0]);
}

static void decode(const struct pb_method *m, struct str message)
{
	struct err e = { 0 };
	if (m == &schema_otlp_profiles_service.methods[0])
		decode_otlp(message, &e);
	else if (strcmp(m->name, "WriteRaw") == 0)
		decode_raw(message, &e);
	else
		decode_query(m->name, message, &e);
}

/* JSON to bytes and back; false when it was refused, or is too much. */
static bool around(const struct pb_method *m, struct str json, unsigned flags, struct buf *bytes,
	struct buf *out)
{
	struct err e = { 0 };
	if (pb_json_decode(m->input, json, flags, bytes, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
		return false;
	}
	if (pb_json_encode(m->input, buf_view(bytes), 0, out, NULL) != OK)
		FUZZ_CHECK(out->failed);
	return !out->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 20000)
		return 0;
	const struct pb_method *m = method_of(data[0]);
	unsigned flags = data[1] & 1 ? PB_IGNORE_UNKNOWN : 0;
	struct buf bytes, again, once, twice;
	buf_init(&bytes, BYTES_MAX);
	buf_init(&again, BYTES_MAX);
	buf_init(&once, BYTES_MAX);
	buf_init(&twice, BYTES_MAX);
	if (around(m, str_make(data + 2, size - 2), flags, &bytes, &once)) {
		FUZZ_CHECK(around(m, buf_view(&once), 0, &again, &twice));
		FUZZ_CHECK(str_eq(buf_view(&once), buf_view(&twice)));
		decode(m, buf_view(&bytes));
	}
	buf_deinit(&bytes);
	buf_deinit(&again);
	buf_deinit(&once);
	buf_deinit(&twice);
	return 0;
}
