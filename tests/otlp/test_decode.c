/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as other senders write them, built field by field, and each way to be refused. */
#include "test.h"

#include "otlp/otlp.h"
#include "pb/pb.h"
#include "profile_dump.h"

#define TIME 1700000000000000000ULL

/* What a test changes in the request; all 0 gives a plain one. */
struct request {
	bool no_dictionary, two_dictionaries, no_resource, no_scope, no_type, no_time;
	bool dictionary_first, unknown_fields, unpacked;
	uint64_t stack, link, attribute, location, function, mapping, filename; /* added */
	uint64_t duration;
	int values;     /* 1 + how many; 0: one */
	int timestamps; /* how many */
	bool zero_value;
};

static void put_any_string(struct buf *b, uint32_t field, const char *s)
{
	size_t any = pb_begin(b, field);
	pb_put_str(b, 1, str_of(s));
	pb_end(b, any);
}

static void put_attribute(struct buf *b, uint64_t key, const char *value)
{
	size_t a = pb_begin(b, 6);
	pb_put_u64(b, 1, key);
	put_any_string(b, 2, value);
	pb_end(b, a);
}

static const char *const strings[] = { "", "samples", "count", "cpu", "nanoseconds", "/bin/x",
	"process.executable.build_id.gnu", "profile.frame.type", "thread.id", "f", "f.c", "ratio",
	"from dictionary", "process.executable.build_id.htlhash" };

static void put_attributes(struct buf *b)
{
	pb_put_str_always(b, 6, STR(""));
	put_attribute(b, 6, "ABCDEF01"); /* 1 */
	put_attribute(b, 7, "kernel");   /* 2 */
	size_t a = pb_begin(b, 6);       /* 3: thread.id = 42 */
	pb_put_u64(b, 1, 8);
	size_t any = pb_begin(b, 2);
	pb_put_u64(b, 3, 42);
	pb_end(b, any);
	pb_end(b, a);
	a = pb_begin(b, 6); /* 4: ratio = 0.5 */
	pb_put_u64(b, 1, 11);
	any = pb_begin(b, 2);
	pb_put_double(b, 4, 0.5);
	pb_end(b, any);
	pb_end(b, a);
	put_attribute(b, 13, "ffffffffffffffffffffffffffffffff"); /* 5 */
}

static void put_dictionary(struct buf *b, const struct request *q)
{
	size_t d = pb_begin(b, 2), at, line;
	pb_put_str_always(b, 1, STR(""));
	at = pb_begin(b, 1);
	pb_put_u64(b, 1, 0x400000);
	pb_put_u64(b, 2, 0x500000);
	pb_put_u64(b, 4, 5 + q->filename);
	pb_put_packed_u64(b, 5, (uint64_t[]){ 5, 1 }, 2);
	pb_end(b, at);
	pb_put_str_always(b, 2, STR(""));
	at = pb_begin(b, 2);
	pb_put_u64(b, 1, 1 + q->mapping);
	pb_put_u64(b, 2, 0x401000);
	line = pb_begin(b, 3);
	pb_put_u64(b, 1, 1 + q->function);
	pb_put_u64(b, 2, 7);
	pb_end(b, line);
	pb_put_packed_u64(b, 4, (uint64_t[]){ 2 }, 1);
	pb_end(b, at);
	pb_put_str_always(b, 3, STR(""));
	at = pb_begin(b, 3);
	pb_put_u64(b, 1, 9);
	pb_put_u64(b, 3, 10);
	pb_end(b, at);
	pb_put_str_always(b, 4, STR(""));
	at = pb_begin(b, 4);
	pb_put_str(b, 1, STR("0123456789abcdef"));
	pb_put_str(b, 2, STR("01234567"));
	pb_end(b, at);
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		pb_put_str_always(b, 5, str_of(strings[i]));
	put_attributes(b);
	pb_put_str_always(b, 7, STR(""));
	at = pb_begin(b, 7);
	pb_put_packed_u64(b, 1, (uint64_t[]){ 1 + q->location, 1 + q->location }, 2);
	pb_end(b, at);
	if (q->unknown_fields)
		pb_put_u64(b, 100, 5);
	pb_end(b, d);
}

static void put_sample(struct buf *b, const struct request *q)
{
	size_t s = pb_begin(b, 2);
	uint64_t attributes[] = { 3 + q->attribute, 4 };
	int values = q->values ? q->values - 1 : 1;
	pb_put_u64(b, 1, 1 + q->stack);
	if (q->unpacked) {
		pb_put_u64(b, 2, attributes[0]);
		pb_put_u64(b, 2, attributes[1]);
	} else {
		pb_put_packed_u64(b, 2, attributes, 2);
	}
	pb_put_u64(b, 3, 1 + q->link);
	for (int i = 0; i < values; i++)
		pb_put_u64_always(b, 4, q->zero_value ? 0 : (uint64_t)i + 5);
	for (int i = 0; i < q->timestamps; i++)
		pb_put_fixed64(b, 5, TIME + (uint64_t)i + 1);
	if (q->unknown_fields)
		pb_put_str(b, 77, STR("what?"));
	pb_end(b, s);
}

static void put_profile(struct buf *b, const struct request *q)
{
	size_t p = pb_begin(b, 2), type;
	if (!q->no_type) {
		type = pb_begin(b, 1);
		pb_put_u64(b, 1, 1);
		pb_put_u64(b, 2, 2);
		pb_end(b, type);
	}
	put_sample(b, q);
	pb_put_fixed64(b, 3, q->no_time ? 0 : TIME);
	pb_put_u64(b, 4, q->duration);
	type = pb_begin(b, 5);
	pb_put_u64(b, 1, 3);
	pb_put_u64(b, 2, 4);
	pb_end(b, type);
	pb_put_u64(b, 6, 1000);
	pb_end(b, p);
}

static void put_resource(struct buf *b)
{
	size_t r = pb_begin(b, 1), kv, any;
	kv = pb_begin(b, 1);
	pb_put_str(b, 1, STR("host.name"));
	put_any_string(b, 2, " here ");
	pb_end(b, kv);
	kv = pb_begin(b, 1); /* key_strindex and string_value_strindex */
	any = pb_begin(b, 2);
	pb_put_u64(b, 8, 12);
	pb_end(b, any);
	pb_put_u64(b, 3, 11);
	pb_end(b, kv);
	kv = pb_begin(b, 1);
	pb_put_str(b, 1, STR("k8s.ready"));
	any = pb_begin(b, 2);
	pb_put_bool(b, 2, true);
	pb_end(b, any);
	pb_end(b, kv);
	kv = pb_begin(b, 1); /* an array is no text: left out */
	pb_put_str(b, 1, STR("list"));
	any = pb_begin(b, 2);
	pb_put_str_always(b, 5, STR(""));
	pb_end(b, any);
	pb_end(b, kv);
	pb_end(b, r);
}

static void put_request(struct buf *b, const struct request *q)
{
	if (q->dictionary_first)
		put_dictionary(b, q);
	size_t rp = pb_begin(b, 1);
	size_t sp = pb_begin(b, 2);
	put_profile(b, q);
	if (!q->no_scope) { /* after what it is about: any order is allowed */
		size_t scope = pb_begin(b, 1);
		pb_put_str(b, 1, STR("my.profiler"));
		pb_end(b, scope);
	}
	pb_end(b, sp);
	if (!q->no_resource)
		put_resource(b);
	if (q->unknown_fields)
		pb_put_str(b, 3, STR("https://schema"));
	pb_end(b, rp);
	if (!q->dictionary_first && !q->no_dictionary)
		put_dictionary(b, q);
	if (q->two_dictionaries)
		put_dictionary(b, q);
}

#define HEAD "my_profiler:samples:count:cpu:nanoseconds period=1000 duration=0 time="
#define RESOURCE " {k8s_ready=true,node=here,ratio=from dictionary,}"
#define TAIL " {ratio=0.5,thread_id=42,} link=30313233343536373839616263646566" FRAMES
#define FRAMES "3031323334353637" FRAME FRAME "\n"
#define FRAME " 401000@400000-500000+0,/bin/x,ABCDEF01/kernel(f||f.c|0:7:0;)"

/* clang-format off */
static const struct {
	const char *name; struct request q; const char *want;
} taken[] = {
	{ "plain", { 0 }, "5 " HEAD "1700000000000000000" RESOURCE TAIL },
	{ "dictionary first", { .dictionary_first = true },
		"5 " HEAD "1700000000000000000" RESOURCE TAIL },
	{ "unknown fields", { .unknown_fields = true },
		"5 " HEAD "1700000000000000000" RESOURCE TAIL },
	{ "unpacked", { .unpacked = true }, "5 " HEAD "1700000000000000000" RESOURCE TAIL },
	{ "no resource", { .no_resource = true }, "5 " HEAD "1700000000000000000 {}" TAIL },
	{ "no scope", { .no_scope = true },
		"5 unknown:samples:count:cpu:nanoseconds period=1000 duration=0 "
		"time=1700000000000000000" RESOURCE TAIL },
	{ "duration makes a delta", { .duration = 9 },
		"5 my_profiler:samples:count:cpu:nanoseconds:delta period=1000 duration=9 "
		"time=1700000000000000000" RESOURCE TAIL },
	{ "several values", { .values = 3 }, "11 " HEAD "1700000000000000000" RESOURCE TAIL },
	{ "timestamps alone", { .values = 1, .timestamps = 2 },
		"1 " HEAD "1700000000000000001" RESOURCE TAIL
		"1 " HEAD "1700000000000000002" RESOURCE TAIL },
	{ "timestamps and values", { .values = 3, .timestamps = 2 },
		"5 " HEAD "1700000000000000001" RESOURCE TAIL
		"6 " HEAD "1700000000000000002" RESOURCE TAIL },
	{ "timestamps, no profile time", { .timestamps = 1, .no_time = true },
		"5 " HEAD "1700000000000000001" RESOURCE TAIL },
	{ "zero values say nothing", { .zero_value = true }, "" },
};

static const struct {
	const char *name; struct request q; enum otlp_reject why; const char *reason;
} rejected[] = {
	{ "stack",      { .stack = 9 }, OTLP_REJECT_INDEX,
		"resource_profiles[0].scope_profiles[0].profiles[0]: samples[0].stack_index: 10 is out of "
		"range (2 elements)" },
	{ "link",       { .link = 9 },      OTLP_REJECT_INDEX, "samples[0].link_index: 10 is out of range" },
	{ "attribute",  { .attribute = 90 },OTLP_REJECT_INDEX, "samples[0].attribute_indices: 93 is out of range" },
	{ "location",   { .location = 9 },  OTLP_REJECT_INDEX, "cannot be used (stack_table[1]: a location index" },
	{ "function",   { .function = 9 },  OTLP_REJECT_INDEX, "(location_table[1]: a line's function_index" },
	{ "mapping",    { .mapping = 9 },   OTLP_REJECT_INDEX, "(location_table[1]: mapping_index is out of range)" },
	{ "filename",   { .filename = 99 }, OTLP_REJECT_INDEX, "(mapping_table[1]: an index is out of range)" },
	{ "type",       { .no_type = true },OTLP_REJECT_TYPE, "sample_type.type_strindex: no type" },
	{ "time",       { .no_time = true },OTLP_REJECT_TIME, "samples[0]: neither timestamps_unix_nano nor the profile's" },
	{ "lengths",    { .values = 3, .timestamps = 1 }, OTLP_REJECT_VALUES,
		"samples[0].values: 2 of 1 timestamps_unix_nano" },
	{ "duration",   { .duration = 1ULL << 63 }, OTLP_REJECT_TIME, "beyond the year 2262" },
	{ "huge index", { .stack = UINT64_MAX - 5 }, OTLP_REJECT_INDEX, "out of range" },
};
/* clang-format on */

static enum status decode(
	struct str message, struct profile *p, struct otlp_rejects *rejects, struct err *e)
{
	CHECK(profile_init(p, 16 << 20) == OK);
	enum status s = otlp_decode(message, p, rejects, e);
	CHECK_OK(profile_validate(p, NULL), NULL);
	return s;
}

static void takes_what_senders_write(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, taken) {
		CLEANUP(buf_deinit) struct buf b, got;
		CLEANUP(profile_deinit) struct profile p;
		buf_init(&b, 1 << 20);
		buf_init(&got, 1 << 20);
		put_request(&b, &c->q);
		struct otlp_rejects rejects;
		struct err e;
		CHECK_OK(decode(buf_view(&b), &p, &rejects, &e), &e);
		CHECK_CASE(c, rejects.profiles == 0);
		CHECK_CASE(c, (p.zero_samples > 0) == c->q.zero_value);
		CHECK(profile_dump(&p, &got));
		if (!str_eq(buf_view(&got), str_of(c->want))) {
			print_error("[%s] got:\n%.*swant:\n%s", c->name, STR_ARG(buf_view(&got)),
				c->want);
			fail();
		}
	}
}

static void rejects_one_profile_and_says_why(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, rejected) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(profile_deinit) struct profile p;
		buf_init(&b, 1 << 20);
		put_request(&b, &c->q);
		struct otlp_rejects rejects;
		struct err e;
		CHECK_OK(decode(buf_view(&b), &p, &rejects, &e), &e);
		CHECK_CASE(c, rejects.profiles == 1 && rejects.by_reason[c->why] == 1);
		CHECK_CASE(c, p.samples.len == 0);
		if (!strstr(rejects.reason, c->reason)) {
			print_error("[%s] \"%s\"\n", c->name, rejects.reason);
			fail();
		}
	}
}

/* The other profiles of the request stay. */
static void a_rejected_profile_takes_only_itself(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(profile_deinit) struct profile p;
	buf_init(&b, 1 << 20);
	const struct request good = { 0 }, bad = { .attribute = 90 };
	put_dictionary(&b, &good);
	size_t rp = pb_begin(&b, 1), sp = pb_begin(&b, 2);
	put_profile(&b, &good);
	put_profile(&b, &bad);
	put_profile(&b, &good);
	pb_end(&b, sp);
	pb_end(&b, rp);
	struct otlp_rejects rejects;
	struct err e;
	CHECK_OK(decode(buf_view(&b), &p, &rejects, &e), &e);
	CHECK(rejects.profiles == 1 && p.samples.len == 2);
}

static void put_bad_attribute(struct buf *b)
{
	size_t kv = pb_begin(b, 1);
	pb_put_u64(b, 3, 999);
	pb_end(b, kv);
}

/* Two scopes of a resource that cannot be used: how many profiles they have between them, and in
 * which order, does not change what is said. */
static void what_is_wrong_above_takes_all_below(void **state)
{
	(void)state;
	static const int counts[][2] = { { 0, 0 }, { 0, 2 }, { 2, 0 }, { 1, 3 } };
	for (size_t k = 0; k < ARRAY_COUNT(counts); k++) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(profile_deinit) struct profile p;
		buf_init(&b, 1 << 20);
		const struct request good = { 0 };
		put_dictionary(&b, &good);
		size_t rp = pb_begin(&b, 1), resource = pb_begin(&b, 1);
		put_bad_attribute(&b);
		pb_end(&b, resource);
		for (int i = 0; i < 2; i++) {
			size_t sp = pb_begin(&b, 2);
			for (int j = 0; j < counts[k][i]; j++)
				put_profile(&b, &good);
			pb_end(&b, sp);
		}
		pb_end(&b, rp);
		struct otlp_rejects rejects;
		struct err e;
		int all = counts[k][0] + counts[k][1];
		CHECK_OK(decode(buf_view(&b), &p, &rejects, &e), &e);
		CHECK(p.samples.len == 0 && rejects.profiles == all);
		CHECK(rejects.by_reason[OTLP_REJECT_INDEX] == (uint64_t)all);
		CHECK_STR(str_of(rejects.reason), all ? "resource_profiles[0].resource: "
							"attributes.key_strindex: 999 is out of "
							"range"
						      : "");
	}
}

static void dictionaries_are_counted(void **state)
{
	(void)state;
	static const struct request none = { .no_dictionary = true };
	static const struct request two = { .two_dictionaries = true };
	const struct request *const q[] = { &none, &two };
	for (int i = 0; i < 2; i++) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(profile_deinit) struct profile p;
		buf_init(&b, 1 << 20);
		put_request(&b, q[i]);
		struct otlp_rejects rejects;
		struct err e;
		CHECK(decode(buf_view(&b), &p, &rejects, &e) == E_INVALID);
		CHECK(strstr(e.text, "dictionary"));
	}
	CLEANUP(profile_deinit) struct profile p;
	struct otlp_rejects rejects;
	CHECK(decode(STR(""), &p, &rejects, NULL) == OK); /* no profiles at all */
}

/* Cut anywhere, a request is malformed, says where, and leaves no sample. */
static void torn_requests_are_refused(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	put_request(&b, &(struct request){ .timestamps = 1 });
	for (size_t len = 1; len < b.len; len++) {
		CLEANUP(profile_deinit) struct profile p;
		struct otlp_rejects rejects;
		struct err e;
		enum status s = decode(str_make(b.data, len), &p, &rejects, &e);
		CHECK(s == E_INVALID && p.samples.len == 0);
		CHECK(strstr(e.text, "malformed at byte") || strstr(e.text, "no dictionary"));
	}
}

/* Damage in the middle of an inner message: the sentence leads there. */
static void torn_fields_have_a_path(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	put_request(&b, &(struct request){ 0 });
	/* period_type's first byte, 08 03: make it wire type 3. */
	uint8_t *at = memmem(b.data, b.len, "\x2a\x04\x08\x03\x10\x04", 6);
	CHECK(at);
	at[2] = 0x0b;
	CLEANUP(profile_deinit) struct profile p;
	struct otlp_rejects rejects;
	struct err e;
	CHECK(decode(buf_view(&b), &p, &rejects, &e) == E_INVALID);
	CHECK(strstr(e.text, "resource_profiles[0]: scope_profiles[0]: profiles[0]: "));
	CHECK(strstr(e.text, "malformed at byte"));
}

/* All the bytes of memory that one small message may ask for are the profile's limit. */
static void memory_is_limited(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	struct request q = { .values = 30000 };
	put_request(&b, &q);
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 100 << 10) == OK);
	struct otlp_rejects rejects;
	struct err e;
	CHECK(otlp_decode(buf_view(&b), &p, &rejects, &e) == E_LIMIT);
	CHECK(p.samples.len == 0 && e.text[0]);
}

TEST_MAIN(cmocka_unit_test(takes_what_senders_write),
	cmocka_unit_test(rejects_one_profile_and_says_why),
	cmocka_unit_test(a_rejected_profile_takes_only_itself),
	cmocka_unit_test(what_is_wrong_above_takes_all_below),
	cmocka_unit_test(dictionaries_are_counted), cmocka_unit_test(torn_requests_are_refused),
	cmocka_unit_test(torn_fields_have_a_path), cmocka_unit_test(memory_is_limited))
