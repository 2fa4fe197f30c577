/* SPDX-License-Identifier: Apache-2.0 */
/* Fields by number, as query.proto has them; tests/golden reads whole answers with protoc's code.
 */
#include "parca/parca.h"
#include "pb/pb.h"
#include "test.h"

static struct pb_field find(struct str message, uint32_t number)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == number)
			return f;
	return (struct pb_field){ 0 };
}

static void writes_reports_under_their_fields(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf arrow, out;
	buf_init(&arrow, 1 << 16);
	buf_init(&out, 1 << 16);
	parca_flamegraph_arrow_encode(STR("IPC"), STR("nanoseconds"), 7, 3, &arrow);
	parca_report_encode(PARCA_FLAMECHART, buf_view(&arrow), 100, 20, &out);
	struct pb_field report = find(buf_view(&out), 11);
	CHECK_STR(find(report.bytes, 1).bytes, "IPC");
	CHECK_STR(find(report.bytes, 2).bytes, "nanoseconds");
	CHECK(find(report.bytes, 3).u64 == 7 && find(report.bytes, 4).u64 == 3);
	CHECK(find(buf_view(&out), 9).u64 == 100 && find(buf_view(&out), 10).u64 == 20);
	buf_clear(&out);
	parca_report_encode(PARCA_SOURCE, STR(""), 0, 0, &out);
	CHECK(out.len == 2); /* empty, and there */
}

static void writes_series(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	const struct parca_label label = { STR("comm"), STR("a") };
	const struct parca_sample sample = {
		.time_ns = -1, .value = 5, .duration_ns = 10, .per_second = 0.5, .count = 2
	};
	const struct parca_series s = { .labels = &label,
		.label_count = 1,
		.samples = &sample,
		.sample_count = 1,
		.period_type = STR("cpu"),
		.period_unit = STR("nanoseconds") };
	buf_init(&out, 1 << 16);
	parca_series_encode(&s, &out);
	struct str series = find(buf_view(&out), 1).bytes;
	CHECK_STR(find(find(find(series, 1).bytes, 1).bytes, 2).bytes, "a");
	struct str point = find(series, 2).bytes;
	CHECK((int64_t)find(find(point, 1).bytes, 1).u64 == -1);
	CHECK(find(find(point, 1).bytes, 2).u64 == 999999999);
	CHECK(find(point, 2).u64 == 5 && find(point, 4).u64 == 10 && find(point, 5).u64 == 2);
	CHECK_STR(find(find(series, 3).bytes, 2).bytes, "nanoseconds");
	CHECK(find(series, 4).number == 0);
}

static void writes_lists(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	const struct str names[] = { STR("a"), STR("b") };
	const struct parca_profile_type type = { STR("n"), STR("st"), STR("su"), STR("pt"),
		STR("pu"), true };
	buf_init(&out, 1 << 16);
	parca_names_encode(names, 2, &out);
	CHECK(out.len == 6);
	buf_clear(&out);
	parca_types_encode(&type, 1, &out);
	struct str t = find(buf_view(&out), 1).bytes;
	CHECK_STR(find(t, 1).bytes, "n");
	CHECK_STR(find(t, 5).bytes, "pu");
	CHECK(find(t, 6).u64 == 1);
	buf_clear(&out);
	parca_metadata_encode(names, 2, names, 1, &out);
	CHECK(out.len == 9);
	buf_clear(&out);
	parca_source_encode(STR("r"), STR("s"), STR("u"), &out);
	CHECK_STR(find(buf_view(&out), 3).bytes, "u");
	buf_clear(&out);
	parca_table_arrow_encode(STR("r"), STR("u"), &out);
	CHECK_STR(find(buf_view(&out), 2).bytes, "u");
}

TEST_MAIN(cmocka_unit_test(writes_reports_under_their_fields), cmocka_unit_test(writes_series),
	cmocka_unit_test(writes_lists))
