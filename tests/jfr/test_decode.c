/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of each event, of settings, contexts and several chunks; what a real JDK and
 * async-profiler write was compared with `jfr print` (docs/clients.md). */
#include "test.h"

#include "../pyroscope/say.h"
#include "maker.h"

#define MEMORY ((size_t)64 << 20)

static enum status context(void *ctx, uint64_t context_id, uint64_t span_id, uint64_t span_name,
	struct profile *p, struct profile_label *out, uint32_t room, uint32_t *out_count)
{
	char text[64];
	*out_count = 1;
	CHECK(room > 0);
	snprintf(text, sizeof(text), "%llu-%llx-%llu", (unsigned long long)context_id,
		(unsigned long long)span_id, (unsigned long long)span_name);
	enum status s = profile_add_string(p, str_of(ctx), &out->name);
	return s == OK ? profile_add_string(p, str_of(text), &out->value) : s;
}

static void decode(struct str bytes, struct jfr_options o, const char *want)
{
	struct profile p;
	struct err e;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 20);
	char name[] = "context";
	o.period_ns = 10000000;
	o.context = context;
	o.ctx = name;
	CHECK_OK(profile_init(&p, MEMORY), &e);
	CHECK_OK(jfr_decode(bytes, &o, &p, &e), &e);
	CHECK_STR(say(&text, &p), want);
	CHECK_OK(profile_validate(&p, &e), &e);
	profile_deinit(&p);
}

#define TIMES "5000000000 1700000000000000000 {}"
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta " TIMES
#define WALL "wall:wall:nanoseconds:wall:nanoseconds:delta " TIMES

static void sums_samples(void **state)
{
	(void)state;
	struct maker m;
	maker_begin(&m);
	maker_execution(&m, 1, 1, 1, 0);
	maker_strange(&m);
	maker_execution(&m, 1, 1, 1, 0); /* the same again */
	maker_execution(&m, 2, 1, 1, 0); /* another thread, by what the system calls it */
	maker_execution(&m, 1, 1, 2, 0); /* asleep */
	maker_execution(&m, 1, 2, 1, 9);
	maker_execution(&m, 9, 9, 9, 0); /* nothing of it is known */
	maker_constants(&m);             /* behind those who name them */
	maker_setting(&m, "event", "itimer");
	decode(maker_end(&m), (struct jfr_options){ 0 },
		"20000000 " CPU "{jfr_event=itimer,thread_name=worker,} App.main;sin\n"
		"10000000 " CPU "{jfr_event=itimer,thread_name=os,} App.main;sin\n"
		"10000000 " CPU
		"{context=9-abcdef-5,jfr_event=itimer,thread_name=worker,} App.main\n"
		"10000000 " CPU "{jfr_event=itimer,} \n");
	maker_deinit(&m);
}

static void tells_wall(void **state)
{
	(void)state;
	struct maker m;
	maker_begin(&m);
	maker_setting(&m, "period", "x");
	maker_setting(&m, "event", "wall");
	maker_constants(&m);
	maker_execution(&m, 1, 2, 1, 0);
	maker_execution(&m, 1, 2, 2, 0);
	struct buf *b = maker_event(&m, ID_WALL);
	buf_put(b, "\x01\x01\x02\x02\x05\x00\x00", 7); /* asleep */
	maker_event_end(&m);
	b = maker_event(&m, ID_WALL);
	buf_put(b, "\x01\x01\x02\x01\x03\x10\x7f", 7); /* runnable, in a trace */
	maker_event_end(&m);
#define TRACED                                                                            \
	"{jfr_event=wall,thread_name=worker,trace_id=0000000000000010000000000000007f,} " \
	"App.main\n"
#define LABELS "{jfr_event=wall,thread_name=worker,} App.main\n"
	decode(maker_end(&m), (struct jfr_options){ 0 },
		"10000000 " CPU LABELS "70000000 " WALL LABELS "30000000 " CPU TRACED
		"30000000 " WALL TRACED);
	maker_deinit(&m);
}

static void tells_events(void **state)
{
	(void)state;
	struct maker m;
	maker_begin(&m);
	maker_constants(&m);
	maker_other(&m, ID_TLAB, 4096, 0);
	maker_other(&m, ID_OUTSIDE, 8192, 0);
	maker_other(&m, ID_ALLOCATION, 100, 0);
	maker_other(&m, ID_ALLOCATION, 200, 0);
	maker_other(&m, ID_MALLOC, 50, 0);
	maker_other(&m, ID_LIVE, 50, 0);
	maker_other(&m, ID_MONITOR, 1, 3000); /* ticks of a microsecond */
	maker_other(&m, ID_PARK, 1, UINT64_MAX);
#define AT " 7 8 {}{thread_name=os,} App.main\n"
	decode(maker_end(&m), (struct jfr_options){ .time_ns = 8, .duration_ns = 7 },
		"1 memory:alloc_in_new_tlab_objects:count:space:bytes:delta" AT
		"4096 memory:alloc_in_new_tlab_bytes:bytes:space:bytes:delta" AT
		"1 memory:alloc_outside_tlab_objects:count:space:bytes:delta" AT
		"8192 memory:alloc_outside_tlab_bytes:bytes:space:bytes:delta" AT
		"2 memory:alloc_sample_objects:count:space:bytes:delta" AT
		"300 memory:alloc_sample_bytes:bytes:space:bytes:delta" AT
		"1 memory:malloc_objects:count:::delta" AT "50 memory:malloc_bytes:bytes:::delta" AT
		"1 memory:live:count:objects:count" AT
		"1 mutex:contentions:count:mutex:count:delta" AT
		"3000000 mutex:delay:nanoseconds:mutex:count:delta" AT
		"1 block:contentions:count:block:count:delta" AT
		"9223372036854775807 block:delay:nanoseconds:block:count:delta" AT);
	maker_deinit(&m);
}

/* Keys mean something in their own chunk only. */
static void reads_chunks(void **state)
{
	(void)state;
	struct maker m, n;
	maker_begin(&m);
	maker_constants(&m);
	maker_execution(&m, 1, 2, 1, 0);
	maker_end(&m);
	maker_begin(&n);
	maker_execution(&n, 1, 2, 1, 0);
	buf_str(&m.out, maker_end(&n));
	decode(buf_view(&m.out), (struct jfr_options){ 0 },
		"10000000 " CPU "{thread_name=worker,} App.main\n"
		"10000000 " CPU "{} \n");
	maker_deinit(&m);
	maker_deinit(&n);
}

static void refuse(struct str bytes, const char *sentence, enum status want)
{
	struct profile p;
	struct err e;
	CHECK_OK(profile_init(&p, MEMORY), &e);
	enum status s = jfr_decode(bytes, &(struct jfr_options){ .period_ns = 1 }, &p, &e);
	if (s != want || !strstr(e.text, sentence))
		print_error("%s: %s\n", sentence, e.text);
	CHECK(s == want && strstr(e.text, sentence) && p.samples.len == 0);
	profile_deinit(&p);
}

/* Small events that name a large constant. */
static void limits_what_is_read_again(void **state)
{
	(void)state;
	struct maker m;
	maker_begin(&m);
	struct buf *b = maker_event(&m, 1);
	buf_zero(b, 4);
	maker_packed(b, 2);
	maker_pool(b, ID_STRING, 1);
	maker_packed(b, 1);
	buf_u8(b, 3);
	maker_packed(b, 1 << 20);
	buf_zero(b, 1 << 20);
	maker_pool(b, ID_STATE, 1);
	buf_put(b, "\x01\x02\x01", 3); /* names that text */
	maker_event_end(&m);
	for (int i = 0; i < 1000; i++)
		maker_execution(&m, 1, 1, 1, 0); /* the state is read once */
	decode(maker_end(&m), (struct jfr_options){ 0 }, "10000000000 " CPU "{} \n");
	maker_deinit(&m);
	/* A setting reads its texts each time. */
	maker_begin(&m);
	b = maker_event(&m, 1);
	buf_zero(b, 4);
	maker_packed(b, 1);
	maker_pool(b, ID_STRING, 1);
	maker_packed(b, 1);
	buf_u8(b, 3);
	maker_packed(b, 1 << 20);
	buf_zero(b, 1 << 20);
	maker_event_end(&m);
	for (int i = 0; i < 9; i++) {
		b = maker_event(&m, ID_SETTING);
		buf_put(b, "\x02\x01\x00", 3);
		maker_event_end(&m);
	}
	refuse(maker_end(&m), "constants are read more than 8 times over", E_LIMIT);
	maker_deinit(&m);
}

/* Whatever is cut off, it says so; and no byte makes it fall over. */
static void refuses_torn_files(void **state)
{
	(void)state;
	struct maker m;
	maker_begin(&m);
	maker_constants(&m);
	maker_execution(&m, 1, 1, 1, 3);
	maker_strange(&m);
	maker_end(&m);
	for (size_t i = 0; i < m.out.len; i++)
		refuse(str_make(m.out.data, i), "jfr: chunk 0: ", E_INVALID);
	for (size_t i = 0; i < m.out.len; i++) {
		struct profile p;
		struct err e;
		uint8_t was = m.out.data[i];
		CHECK_OK(profile_init(&p, MEMORY), &e);
		for (int k = 0; k < 3; k++) {
			static const uint8_t with[] = { 0xFF, 0x01, 0x80 };
			m.out.data[i] = was ^ with[k];
			enum status s = jfr_decode(
				buf_view(&m.out), &(struct jfr_options){ .period_ns = 1 }, &p, &e);
			CHECK(profile_validate(&p, NULL) == OK);
			CHECK(s == OK || e.text[0]);
			CHECK_OK(profile_clear(&p), &e);
		}
		m.out.data[i] = was;
		profile_deinit(&p);
	}
	maker_deinit(&m);
}

TEST_MAIN(cmocka_unit_test(sums_samples), cmocka_unit_test(tells_wall),
	cmocka_unit_test(tells_events), cmocka_unit_test(reads_chunks),
	cmocka_unit_test(limits_what_is_read_again), cmocka_unit_test(refuses_torn_files))
