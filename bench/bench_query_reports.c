/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of each report, compared with the store's own sum: a store with 10,000,000 samples of
 * 60,000 different stacks (30 frames deep on average, from a random call graph of 4,000 functions,
 * a fifth of the locations with an inlined call) in parts, all names known. The best of seven runs,
 * with the server's pool of threads.
 *
 *     bench_query_reports TEXT     only reports whose name contains TEXT
 */
#include "base/clock.h"
#include "os/os.h"
#include "query/query.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CPU "parca_agent:samples:count:cpu:nanoseconds:delta"
#define FUNCTIONS 4000
#define CALLEES 6
#define STACKS 60000
#define BATCHES 500
#define BATCH_SAMPLES 20000
#define CHART_BATCHES 2
#define DEPTH_MIN 10
#define DEPTH_MAX 50
#define RUNS 7
#define MEMORY_BYTES ((uint64_t)1 << 30)
#define BATCH_NS (10 * NS_PER_SEC)
#define BEGIN_NS (1767323040 * NS_PER_SEC)

static const char *only; /* NULL: all */
static uint32_t seed = 1;
static uint32_t callees[FUNCTIONS][CALLEES];
static uint32_t stacks[STACKS][DEPTH_MAX];
static uint32_t depths[STACKS];

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 4) * n >> 28);
}

static void fail(const char *what, enum status s, const struct err *e)
{
	fprintf(stderr, "bench_query_reports: %s: %s\n", what, err_text(e, s));
	exit(1);
}

static void must(const char *what, enum status s, const struct err *e)
{
	if (s != OK)
		fail(what, s, e);
}

static void make_stacks(void)
{
	for (uint32_t f = 0; f < FUNCTIONS; f++)
		for (uint32_t i = 0; i < CALLEES; i++)
			callees[f][i] = 1 + random_below(FUNCTIONS - 1);
	for (uint32_t s = 0; s < STACKS; s++) {
		depths[s] = DEPTH_MIN + random_below(DEPTH_MAX - DEPTH_MIN);
		for (uint32_t d = 0, f = 0; d < depths[s]; d++) {
			/* Most calls of a function go to the same callee, so that stacks share
			 * their beginning. */
			stacks[s][d] = f;
			uint32_t way = random_below(100);
			f = callees[f][way < 70 ? 0 : way < 85 ? 1 : way % CALLEES];
		}
	}
}

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id = 0;
	struct err e = { 0 };
	must("text", profile_add_string(p, str_of(s), &id), &e);
	return id;
}

static struct profile_line line_of(struct profile *p, uint32_t f)
{
	char name[64];
	struct err e = { 0 };
	struct profile_line line = { .line = f + 7 };
	snprintf(name, sizeof(name), "ns::module_%u::function_%u", f % 50, f);
	struct profile_function fn = { .name = text(p, name), .start_line = f };
	snprintf(name, sizeof(name), "/src/module_%u.cc", f % 50);
	fn.filename = text(p, name);
	must("function", profile_add_function(p, &fn, &line.function), &e);
	return line;
}

static void make_locations(struct profile *p, uint32_t *out)
{
	struct err e = { 0 };
	for (uint32_t f = 0; f < FUNCTIONS; f++) {
		char name[64];
		snprintf(name, sizeof(name), "/usr/lib/libmodule_%u.so", f % 20);
		struct profile_mapping m = { .filename = text(p, name) };
		struct profile_location l = { .address = 0x1000 + 64 * f, .kind = FRAME_NATIVE };
		struct profile_line lines[2] = { line_of(p, f), { 0 } };
		uint32_t count = 1;
		must("mapping", profile_add_mapping(p, &m, &l.mapping), &e);
		if (f % 5 == 0) {
			lines[1] = lines[0];
			lines[0] = line_of(p, f + FUNCTIONS);
			count = 2;
		}
		must("location", profile_add_location(p, &l, lines, count, &out[f]), &e);
	}
}

static void append(struct store *store, uint32_t batch)
{
	static uint32_t locations[FUNCTIONS];
	struct profile p;
	struct err e = { 0 };
	must("profile", profile_init(&p, 256 << 20), &e);
	make_locations(&p, locations);
	struct profile_type t = { text(&p, "parca_agent"), text(&p, "samples"), text(&p, "count"),
		text(&p, "cpu"), text(&p, "nanoseconds"), true };
	struct profile_head h = { .period = 52631578, .duration_ns = BATCH_NS };
	h.time_ns = BEGIN_NS + batch * h.duration_ns;
	struct profile_sample s = { .value = 1 };
	must("type", profile_add_type(&p, &t, &h.type), &e);
	must("head", profile_add_head(&p, &h, &s.head), &e);
	for (uint32_t i = 0; i < BATCH_SAMPLES; i++) {
		uint32_t frames[DEPTH_MAX], k = random_below(STACKS);
		char comm[16];
		snprintf(comm, sizeof(comm), "comm%u", k % 40);
		struct profile_label label = { text(&p, "comm"), text(&p, comm) };
		for (uint32_t d = 0; d < depths[k]; d++)
			frames[d] = locations[stacks[k][depths[k] - 1 - d]];
		must("stack", profile_add_stack(&p, frames, depths[k], &s.stack), &e);
		must("labels", profile_add_labels(&p, &label, 1, &s.resource), &e);
		s.time_ns = h.time_ns + i * (h.duration_ns / BATCH_SAMPLES);
		must("sample", profile_add_sample(&p, &s), &e);
	}
	must("append", store_append(store, STR(""), &p, hash128(&batch, sizeof(batch)), &e), &e);
	profile_deinit(&p);
}

typedef enum status report_fn(const struct query_engine *q, const struct query_request *r,
	struct buf *out, struct err *e);

static enum status flame_json(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_flame(q, r, QUERY_JSON, out, e);
}

static enum status top_json(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_top(q, r, QUERY_JSON, out, e);
}

static enum status series_json(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	return query_write_series(q, r, QUERY_JSON, out, e);
}

/* ---- the reports of Parca's API: the second half of the time compared with the first ---- */

static struct query_report_request parca_request(const struct query_request *r, bool diff)
{
	int64_t middle_ns = BEGIN_NS + BATCHES / 2 * BATCH_NS;
	return (struct query_report_request){
		.side = { r->selector, diff ? middle_ns : r->from_ns, r->to_ns, false },
		.base = { r->selector, r->from_ns, middle_ns, false },
		.diff = diff,
		.trim = r->trim,
	};
}

#define PARCA_REPORT(name, call, diff)                                                       \
	static enum status name(const struct query_engine *q, const struct query_request *r, \
		struct buf *out, struct err *e)                                              \
	{                                                                                    \
		struct query_report_request request = parca_request(r, diff);                \
		struct query_report info;                                                    \
		return call(q, &request, out, &info, e);                                     \
	}
PARCA_REPORT(flamegraph_arrow, query_flame_arrow, false)
PARCA_REPORT(table_arrow, query_table_arrow, false)
PARCA_REPORT(parca_pprof, query_report_pprof, false)
PARCA_REPORT(diff_arrow, query_flame_arrow, true)
PARCA_REPORT(top_message, query_top_message, false)
PARCA_REPORT(callgraph_message, query_callgraph_message, false)
PARCA_REPORT(flame_message, query_flame_message, false)

/* PROFILE_METADATA: the mapped files and the names of labels. */
static enum status metadata(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct query_report_request request = parca_request(r, false);
	struct str *files = NULL, *labels = NULL;
	size_t file_count = 0, label_count = 0;
	arena_init(&a, 16 << 20);
	enum status s = query_mapping_files(q, &request, &a, &files, &file_count, e);
	if (s == OK)
		s = query_list_labels(q, r, &a, &labels, &label_count, e);
	for (size_t i = 0; s == OK && i < file_count; i++)
		buf_str(out, files[i]);
	for (size_t i = 0; s == OK && i < label_count; i++)
		buf_str(out, labels[i]);
	return s;
}

static enum status source_arrow(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	struct query_report_request request = parca_request(r, false);
	struct query_report info;
	return query_source_arrow(q, &request, STR(""), STR("/src/module_7.cc"), out, &info, e);
}

/* A flame chart, by a label. */
static enum status flamechart_arrow(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	struct query_report_request request = parca_request(r, false);
	struct query_report info;
	request.chart = true;
	return query_flame_arrow(q, &request, out, &info, e);
}

static enum status labels_arrow(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	struct query_report_request request = parca_request(r, false);
	struct query_report info;
	request.labels[request.label_count++] = STR("comm");
	return query_flame_arrow(q, &request, out, &info, e);
}

/* The store's part of a flame graph. */
static enum status sum_only(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct selector selector;
	struct samples_view *view;
	struct samples_tree tree;
	arena_init(&a, 1 << 20);
	must("selector", selector_parse(r->selector, &a, &selector, e), e);
	must("view", q->samples->ops->view_open(q->samples, r->tenant, &view, e), e);
	struct samples_query query = {
		.selector = &selector, .from_ns = r->from_ns, .to_ns = r->to_ns
	};
	enum status s = view->ops->sum_stacks(view, &query, &tree, e);
	if (s == OK) {
		out->len = 0;
		buf_u64(out, tree.nodes.len);
		samples_tree_deinit(&tree);
	}
	view->ops->view_close(view);
	selector_deinit(&selector);
	return s;
}

static int compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;
	return d < 0 ? -1 : d > 0;
}

/* A query whose answer is longer than the limit: the time until it is refused, and the error. */
static void measure_refusal(const char *name, report_fn *fn, const struct query_engine *q,
	const struct query_request *r, double sum_ms)
{
	if (only && !strstr(name, only))
		return;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, (size_t)1 << 30);
	int64_t begin = clock_monotonic_ns();
	enum status s = fn(q, r, &out, &e);
	double ms = (double)(clock_monotonic_ns() - begin) / NS_PER_MS;
	printf("{\"name\":\"%s\",\"value\":%.2f,\"unit\":\"ms\",\"against\":\"the store's sum by "
	       "stack alone, %.2f ms\",\"ratio\":%.2f,\"note\":\"%u samples, once: %s, %zu "
	       "bytes\"}\n",
		name, ms, sum_ms, ms / sum_ms,
		(unsigned)((r->to_ns - r->from_ns) / BATCH_NS) * BATCH_SAMPLES,
		s == OK ? "answered" : err_text(&e, s), s == OK ? out.len : 0);
	fflush(stdout);
}

static double measure(const char *name, report_fn *fn, const struct query_engine *q,
	const struct query_request *r, double sum_ms)
{
	double ms[RUNS];
	size_t bytes = 0;
	if (only && sum_ms > 0 && !strstr(name, only))
		return 0;
	for (int i = 0; i < RUNS; i++) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, (size_t)1 << 30);
		int64_t begin = clock_monotonic_ns();
		must(name, fn(q, r, &out, &e), &e);
		ms[i] = (double)(clock_monotonic_ns() - begin) / NS_PER_MS;
		bytes = out.len;
	}
	qsort(ms, RUNS, sizeof(*ms), compare);
	double best = ms[0];
	if (sum_ms > 0)
		printf("{\"name\":\"%s\",\"value\":%.2f,\"unit\":\"ms\",\"against\":\"the store's "
		       "sum "
		       "by stack alone, %.2f ms\",\"ratio\":%.2f,\"note\":\"%u samples, %u stacks, "
		       "answer of %zu bytes\"}\n",
			name, best, sum_ms, best / sum_ms,
			(unsigned)((r->to_ns - r->from_ns) / BATCH_NS) * BATCH_SAMPLES, STACKS,
			bytes);
	fflush(stdout);
	return best;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/firn-bench-query-XXXXXX", command[128], symbols[64];
	struct query_engine q = { 0 };
	struct store *store;
	struct store_config c;
	struct symbolizer_config sc;
	struct err e = { 0 };
	os_malloc_for_server(MEMORY_BYTES); /* as the server does */
	only = argc > 1 ? argv[1] : NULL;
	if (!mkdtemp(dir))
		return 1;
	store_config_default(&c);
	c.path = dir;
	c.memory_bytes = MEMORY_BYTES;
	c.retention_ns = 0;
	must("threads", os_pool_new(os_cpus() - 1, "query", &q.pool, &e), &e);
	c.pool = q.pool;
	must("store", store_open(&c, NULL, NULL, &store, &e), &e);
	q.samples = store_samples(store);
	symbolizer_config_default(&sc);
	snprintf(symbols, sizeof(symbols), "%s/symbols", dir);
	mkdir(symbols, 0700);
	sc.dir = symbols;
	sc.debug_dirs = "";
	sc.local_files = false;
	sc.pool = q.pool;
	must("symbolizer", symbolizer_new(&sc, &q.symbolizer, &e), &e);
	make_stacks();
	for (uint32_t i = 0; i < BATCHES; i++)
		append(store, i);
	must("flush", store_flush(store, &e), &e);

	struct query_request r = {
		.selector = STR(CPU), .from_ns = BEGIN_NS, .to_ns = BEGIN_NS + BATCHES * BATCH_NS
	};
	double sum_ms = measure("query.sum_ms", sum_only, &q, &r, 0);
	r.trim = 0.0001;
	measure("query.flamegraph_ms", flame_json, &q, &r, sum_ms);
	r.invert = true;
	measure("query.flamegraph_inverted_ms", flame_json, &q, &r, sum_ms);
	r.invert = false;
	r.trim = 0;
	measure("query.flamegraph_whole_ms", flame_json, &q, &r, sum_ms);
	measure("query.top_ms", top_json, &q, &r, sum_ms);
	measure("query.pprof_ms", parca_pprof, &q, &r, sum_ms);
	measure("query.table_arrow_ms", table_arrow, &q, &r, sum_ms);
	measure("query.top_message_ms", top_message, &q, &r, sum_ms);
	measure("query.callgraph_ms", callgraph_message, &q, &r, sum_ms);
	measure("query.source_ms", source_arrow, &q, &r, sum_ms);
	measure("query.metadata_ms", metadata, &q, &r, sum_ms);
	/* The request of Parca's page: calls wider than a pixel of their parent's. */
	r.trim = 0.001;
	measure("query.flamegraph_arrow_ms", flamegraph_arrow, &q, &r, sum_ms);
	measure("query.flamegraph_message_ms", flame_message, &q, &r, sum_ms);
	measure("query.diff_ms", diff_arrow, &q, &r, sum_ms);
	measure("query.flamegraph_labels_ms", labels_arrow, &q, &r, sum_ms);
	/* A chart has each sample: first all of them, then 20 s. */
	measure_refusal("query.flamechart_whole_ms", flamechart_arrow, &q, &r, sum_ms);
	r.to_ns = BEGIN_NS + CHART_BATCHES * BATCH_NS;
	measure("query.flamechart_ms", flamechart_arrow, &q, &r, sum_ms);
	r.to_ns = BEGIN_NS + BATCHES * BATCH_NS;
	r.trim = 0;
	r.by[r.by_count++] = STR("comm");
	measure("query.series_ms", series_json, &q, &r, sum_ms);
	r.by_count = 0;
	measure("query.pprof_labels_ms", query_pprof, &q, &r, sum_ms);

	store_close(store);
	symbolizer_free(q.symbolizer);
	os_pool_free(q.pool);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}
