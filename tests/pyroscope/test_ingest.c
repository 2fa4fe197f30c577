/* SPDX-License-Identifier: Apache-2.0 */
/* POST /ingest: what a body is taken for, names of types, times, and each way to be refused. */
#include "test.h"

#include "../jfr/maker.h"
#include "codec/codec.h"
#include "pyroscope/multipart.h"
#include "pyroscope/pyroscope.h"
#include "say.h"

#define MEMORY ((size_t)64 << 20)
#define NOW INT64_C(1700000001000000000)
#define MULTIPART "multipart/form-data; boundary=b0"

struct body {
	const char *a, *b; /* sample types of a pprof file; NULL: `text` */
	const char *text;
	const char *config; /* sample_type_config */
	bool parts, gzip, before, no_profile;
	int64_t time_ns;
};
struct ingest_case {
	const char *name, *query_name, *format, *type, *from, *until, *aggregation;
	struct body body;
	const char *want; /* lines, or a part of the sentence */
	enum status status;
};

static void put_part(struct buf *b, const char *name, struct str body)
{
	buf_printf(b, "--b0\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", name);
	buf_str(b, body);
	buf_cstr(b, "\r\n");
}

static void put_body(struct buf *b, const struct body *x)
{
	CLEANUP(buf_deinit) struct buf file;
	CLEANUP(buf_deinit) struct buf packed;
	buf_init(&file, 4096);
	buf_init(&packed, 4096);
	if (x->a)
		say_pprof(&file, &(struct pprof_example){ x->a, x->b, x->time_ns, 0 });
	else
		buf_cstr(&file, x->text ? x->text : "");
	CHECK(codec_gzip(file.data, file.len, 6, &packed) == OK);
	struct str bytes = x->gzip ? buf_view(&packed) : buf_view(&file);
	if (!x->parts) {
		buf_str(b, bytes);
		return;
	}
	if (!x->no_profile)
		put_part(b, "profile", bytes);
	if (x->before)
		put_part(b, "prev_profile", bytes);
	if (x->config)
		put_part(b, "sample_type_config", str_of(x->config));
	buf_cstr(b, "--b0--\r\n");
}

#define L "{k=v,pyroscope_spy=gospy,service_name=app,}{} "
#define S "{k=v,pyroscope_spy=gospy,service_name=app,}{span_id=abc,} main\n"
#define FROM "1700000000"
#define UNTIL "1700000015000000000"
#define TIMES "15000000000 1700000000000000000 "

static const struct ingest_case cases[] = {
	{ "folded", "app.cpu{k=v}", "", "", FROM, UNTIL, "", { .text = "a;b 2" },
		"20000000 process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta " TIMES L "a;b\n" },
	{ "folded gzip", "app{k=v}", "folded", "", FROM, UNTIL, "",
		{ .text = "a;b 2", .gzip = true },
		"20000000 process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta " TIMES L "a;b\n" },
	{ "lines", "app.inuse_objects{k=v}", "lines", "", FROM, UNTIL, "", { .text = "a;b" },
		"1 memory:inuse_objects:count:: " TIMES L "a;b\n" },
	{ "no until", "app.alloc_space{k=v}", "", "", FROM, "now-9d", "", { .text = "a 3" },
		"3 memory:alloc_space:bytes:::delta 0 1700000000000000000 " L "a\n" },
	{ "type not known", "my.app{k=v}", "", "", FROM, UNTIL, "", { .text = "a 1" },
		"unknown profile type: app", E_INVALID },
	/* Go's: multipart; the first that says something is the second sample type. */
	{ "go cpu", "app{k=v}", "", MULTIPART, FROM, UNTIL, "sum",
		{ .a = "samples", .b = "cpu", .parts = true, .gzip = true },
		"5 process_cpu:samples:count:::delta " TIMES S
		"7 process_cpu:cpu:nanoseconds:::delta " TIMES S },
	{ "go mutex", "app{k=v}", "", MULTIPART, FROM, UNTIL, "",
		{ .a = "contentions",
			.b = "delay",
			.parts = true,
			.config = "{\"contentions\":{\"units\":\"lock_samples\",\"display-name\":"
				  "\"mutex_count\"}}" },
		"5 mutex:contentions:count:::delta " TIMES S
		"7 mutex:delay:nanoseconds:::delta " TIMES S },
	{ "go heap", "app{k=v}", "", MULTIPART, FROM, UNTIL, "",
		{ .a = "alloc_objects", .b = "inuse_space", .parts = true, .config = "{}" },
		"5 memory:alloc_objects:count:::delta " TIMES S
		"7 memory:inuse_space:nanoseconds:: " TIMES S },
	{ "go goroutines", "app{k=v}", "", MULTIPART, FROM, UNTIL, "average",
		{ .a = "goroutine",
			.parts = true,
			.config = "{\"goroutine\":{\"aggregation\":\"average\",\"display-name\":"
				  "\"goroutines\"}}" },
		"5 goroutines:goroutine:count:: " TIMES S },
	/* Node's: the body is the file. */
	{ "node wall", "app{k=v}", "pprof", "application/octet-stream", FROM, UNTIL, "",
		{ .a = "samples", .b = "wall", .gzip = true, .time_ns = 1700000003000000000 },
		"5 wall:samples:count:::delta 15000000000 1700000003000000000 " S
		"7 wall:wall:nanoseconds:::delta 15000000000 1700000003000000000 " S },
	/* A clock in microseconds. */
	{ "old time", "app{k=v}", "pprof", "", FROM, UNTIL, "",
		{ .a = "other", .time_ns = 1700000003000000 },
		"5 other:other:count:::delta " TIMES S },
	{ "service_name given", "app{service_name=s}", "pprof", "", FROM, UNTIL, "", { .a = "cpu" },
		"5 process_cpu:cpu:count:::delta " TIMES
		"{app_name=app,pyroscope_spy=gospy,service_name=s,}{span_id=abc,} main\n" },
	{ "old SDK", "app", "", MULTIPART, FROM, UNTIL, "",
		{ .a = "cpu", .parts = true, .before = true }, "please update", E_UNSUPPORTED },
	{ "no profile", "app", "", MULTIPART, FROM, UNTIL, "",
		{ .a = "cpu", .parts = true, .no_profile = true }, "no part \"profile\"",
		E_INVALID },
	{ "bad config", "app", "", MULTIPART, FROM, UNTIL, "",
		{ .a = "cpu", .parts = true, .config = "[" }, "sample_type_config", E_INVALID },
	{ "bad pprof", "app", "pprof", "", FROM, UNTIL, "", { .text = "hello" },
		"profile: ", E_INVALID },
	{ "empty pprof", "app", "pprof", "", FROM, UNTIL, "", { .text = "" },
		"profile: it is empty", E_INVALID },
	{ "speedscope", "app", "speedscope", "", FROM, UNTIL, "", { .text = "{}" },
		"speedscope: $schema is another", E_INVALID },
};

static void reads_bodies(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&b, 65536);
	buf_init(&text, 65536);
	FOR_EACH_CASE (c, cases) {
		struct profile p;
		struct err e;
		struct pyroscope_ingest q = { .name = str_of(c->query_name),
			.format = str_of(c->format),
			.content_type = str_of(c->type),
			.from = str_of(c->from),
			.until = str_of(c->until),
			.spy = STR("gospy"),
			.aggregation = str_of(c->aggregation) };
		buf_clear(&b);
		put_body(&b, &c->body);
		CHECK_OK(profile_init(&p, MEMORY), &e);
		CHECK_OK(pyroscope_ingest_check(&q, &e), &e);
		enum status s = pyroscope_ingest_decode(&q, buf_view(&b), NOW, &p, &e);
		if (s != c->status)
			print_error("[%s] %s\n", c->name, e.text);
		CHECK_CASE(c, s == c->status);
		if (s == OK)
			CHECK_STR(say(&text, &p), c->want);
		else
			CHECK_CASE(c, strstr(e.text, c->want) && p.samples.len == 0);
		CHECK_OK(profile_validate(&p, &e), &e);
		profile_deinit(&p);
	}
}

/* Go names any instance of a generic function. */
static void leaves_out_shapes_of_go(void **state)
{
	(void)state;
	static const struct {
		const char *name, *want;
	} names[] = {
		{ "a.f[go.shape.int].func1", " a.f.func1\n" },
		{ "a.(*T[go.shape.struct { x []int },go.shape.[4]uint8]).m[go.shape.int]",
			" a.(*T).m\n" },
		{ "[go.shape.int]", " \n" },
		{ "a.f[int]", " a.f[int]\n" },
		{ "std::f[abi:cxx11]", " std::f[abi:cxx11]\n" },
		{ "a.f[go.shape.int", " a.f[go.shape.int\n" },
		{ "a[go.shape.x].b[go.shape.[", " a.b[go.shape.[\n" },
	};
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&b, 65536);
	buf_init(&text, 65536);
	FOR_EACH_CASE (c, names) {
		CLEANUP(profile_deinit) struct profile p = { 0 };
		struct err e = { 0 };
		struct pyroscope_ingest q = {
			.name = STR("app"), .format = STR("pprof"), .from = STR("1700000000")
		};
		buf_clear(&b);
		say_pprof(&b, &(struct pprof_example){ .a = "cpu", .function = c->name });
		CHECK_OK(profile_init(&p, MEMORY), &e);
		CHECK_OK(pyroscope_ingest_decode(&q, buf_view(&b), NOW, &p, &e), &e);
		CHECK_OK(profile_validate(&p, &e), &e);
		CHECK_CASE(c, str_ends(say(&text, &p), str_of(c->want)));
	}
}

/* .NET's old SDK: functions have no ids, and dashes are in sample types. */
static void mends_what_dotnet_sends(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf text;
	static const char *const spies[] = { "gospy", "dotnetspy" };
	buf_init(&b, 65536);
	buf_init(&text, 65536);
	say_pprof(&b,
		&(struct pprof_example){ .a = "inuse-space", .b = "alloc-x", .lost_ids = true });
	FOR_EACH_CASE (spy, spies) {
		CLEANUP(profile_deinit) struct profile p = { 0 };
		struct err e = { 0 };
		struct pyroscope_ingest q = { .name = STR("app"),
			.format = STR("pprof"),
			.from = STR("1700000000"),
			.spy = str_of(*spy) };
		bool mended = spy == &spies[1];
		CHECK_OK(profile_init(&p, MEMORY), &e);
		enum status s = pyroscope_ingest_decode(&q, buf_view(&b), NOW, &p, &e);
		CHECK(s == (mended ? OK : E_INVALID));
		if (!mended)
			continue;
		struct str said = say(&text, &p);
		CHECK(memmem(said.p, said.len, ":inuse_space:count::", 20));
		CHECK(memmem(said.p, said.len, ":alloc_x:nanoseconds:::delta", 28));
		CHECK(str_ends(said, STR("main\n")));
	}
}

/* Java's agent: parts "jfr" and "labels", both gzip; others send the file as it is. */
static void reads_jfr(void **state)
{
	(void)state;
	struct maker m;
	CLEANUP(buf_deinit) struct buf packed;
	CLEANUP(buf_deinit) struct buf labels;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&packed, 65536);
	buf_init(&labels, 4096);
	buf_init(&b, 65536);
	buf_init(&text, 65536);
	size_t at = pb_begin(&labels, 1);
	pb_put_u64(&labels, 1, 9);
	size_t context = pb_begin(&labels, 2);
	say_pair(&labels, 1, 1, 2);
	pb_end(&labels, context);
	pb_end(&labels, at);
	for (uint64_t i = 1; i <= 2; i++) {
		at = pb_begin(&labels, 2);
		pb_put_u64(&labels, 1, i);
		pb_put_str(&labels, 2, i == 1 ? STR("controller") : STR("slow"));
		pb_end(&labels, at);
	}
	maker_begin(&m);
	maker_constants(&m);
	maker_execution(&m, 1, 2, 1, 9);
	struct str file = maker_end(&m);
	CHECK(codec_gzip(file.p, file.len, 6, &packed) == OK);
	put_part(&b, "jfr", buf_view(&packed));
	buf_clear(&packed);
	CHECK(codec_gzip(labels.data, labels.len, 6, &packed) == OK);
	put_part(&b, "labels", buf_view(&packed));
	buf_cstr(&b, "--b0--\r\n");
	for (int parts = 0; parts < 3; parts++) {
		struct profile p;
		struct err e;
		struct pyroscope_ingest q = { .name = STR("app"),
			.format = STR("jfr"),
			.content_type = parts ? STR(MULTIPART) : STR("application/octet-stream"),
			.sample_rate = STR("50"),
			.from = parts ? STR(FROM) : STR(""),
			.until = STR(UNTIL),
			.spy = STR("javaspy") };
		if (parts == 2) {
			buf_clear(&b);
			put_part(&b, "labels", buf_view(&packed));
			buf_cstr(&b, "--b0--\r\n");
		}
		CHECK_OK(profile_init(&p, MEMORY), &e);
		enum status s =
			pyroscope_ingest_decode(&q, parts ? buf_view(&b) : file, NOW, &p, &e);
		CHECK(s == (parts == 2 ? E_INVALID : OK));
		if (parts == 2)
			CHECK(strstr(e.text, "no part \"jfr\""));
		else
			CHECK_STR(say(&text, &p),
				parts ? "20000000 "
					"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta " TIMES
					"{pyroscope_spy=javaspy,service_name=app,}{controller=slow,"
					"span_id=0000000000abcdef,thread_name=worker,} App.main\n"
				      : "20000000 "
					"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta "
					"5000000000 1700000000000000000 "
					"{pyroscope_spy=javaspy,service_name=app,}{"
					"span_id=0000000000abcdef,thread_name=worker,} App.main\n");
		profile_deinit(&p);
	}
	maker_deinit(&m);
}

/* The file and the labels may be 16 MiB together, however small they were. */
static void limits_what_is_unpacked(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t file, labels;
		bool fits;
	} sizes[] = {
		{ "a file", (size_t)17 << 20, 0, false },
		{ "labels", 0, (size_t)17 << 20, false },
		{ "both", (size_t)9 << 20, (size_t)9 << 20, false },
		{ "less", (size_t)7 << 20, (size_t)7 << 20, true },
	};
	char *zero = calloc(1, (size_t)17 << 20);
	CHECK(zero);
	FOR_EACH_CASE (c, sizes) {
		CLEANUP(buf_deinit) struct buf packed;
		CLEANUP(buf_deinit) struct buf b;
		struct profile p;
		struct err e;
		struct pyroscope_ingest q = {
			.name = STR("app"), .format = STR("jfr"), .content_type = STR(MULTIPART)
		};
		buf_init(&packed, 32 << 20);
		buf_init(&b, 1 << 20);
		CHECK(codec_gzip(zero, c->file, 6, &packed) == OK);
		put_part(&b, "jfr", buf_view(&packed));
		buf_clear(&packed);
		CHECK(codec_gzip(zero, c->labels, 6, &packed) == OK);
		put_part(&b, "labels", buf_view(&packed));
		buf_cstr(&b, "--b0--\r\n");
		CHECK_OK(profile_init(&p, MEMORY), &e);
		enum status s = pyroscope_ingest_decode(&q, buf_view(&b), NOW, &p, &e);
		CHECK_CASE(c, s == (c->fits ? E_INVALID : E_LIMIT));
		CHECK_CASE(c, !strstr(e.text, "gzip") == c->fits);
		profile_deinit(&p);
	}
	free(zero);
}

static void needs_a_name(void **state)
{
	(void)state;
	struct err e;
	struct pyroscope_ingest q = { .name = STR("{a=b}") };
	CHECK(pyroscope_ingest_check(&q, &e) == E_INVALID);
	CHECK(strstr(e.text, "name: "));
}

TEST_MAIN(cmocka_unit_test(reads_bodies), cmocka_unit_test(leaves_out_shapes_of_go),
	cmocka_unit_test(mends_what_dotnet_sends), cmocka_unit_test(reads_jfr),
	cmocka_unit_test(limits_what_is_unpacked), cmocka_unit_test(needs_a_name))
