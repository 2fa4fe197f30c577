/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a message is decoded or refused with a sentence; what was decoded holds its limits and
 * what Parca's checks promise. The first byte chooses the message. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "parca/parca.h"

static void check_filters(const struct parca_query_request *q)
{
	uint32_t conditions = 0;
	for (uint32_t i = 0; i < q->filter_count; i++) {
		conditions += q->filters[i].condition_count;
		FUZZ_CHECK(q->filters[i].condition_count > 0);
	}
	FUZZ_CHECK(conditions <= FILTER_CONDITIONS_MAX);
	FUZZ_CHECK(q->report < PARCA_REPORT_COUNT && q->side.query.len > 0 && q->side.start.set);
	FUZZ_CHECK(q->side.single || q->side.start.ns <= q->side.end.ns);
	FUZZ_CHECK(q->trim_percent >= 0 && q->trim_percent <= 100);
}

FUZZ_MUTATES_PB(1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	CLEANUP(arena_deinit) struct arena a;
	struct str message = str_make(data + 1, size - 1);
	struct err e = { 0 };
	struct parca_query_request query;
	struct parca_share_request share;
	struct parca_range_request range;
	struct parca_index_request index;
	enum status s;
	arena_init(&a, 1 << 20);
	switch (data[0] % 7) {
	case 0:
		s = parca_query_decode(message, &a, &query, &e);
		if (s == OK)
			check_filters(&query);
		break;
	case 1:
		s = parca_share_decode(message, &a, &share, &e);
		if (s == OK)
			check_filters(&share.query);
		break;
	case 2:
		s = parca_range_decode(message, &a, &range, &e);
		FUZZ_CHECK(s != OK || (range.start_ns <= range.end_ns && range.step_ns >= 0));
		break;
	default:
		s = parca_index_decode(
			message, (enum parca_index_kind)(data[0] % 7 - 3), &a, &index, &e);
		FUZZ_CHECK(s != OK || index.match.count <= PARCA_QUERY_LIST_MAX);
	}
	FUZZ_CHECK(s == OK || e.text[0]);
	return 0;
}
