/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: each question to a small store, in Parca's or Pyroscope's messages or as a URL, gets an
 * answer, or a sentence that says why not; an answer in JSON is UTF-8; the same question has the
 * same answer. The first byte chooses the call.
 */
#include "fuzz/mutate_pb.h"
#include "fuzz/server.h"
#include "server/api/api.h"
#include "server/parca/parca.h"
#include "server/pyroscope/pyroscope.h"

static const struct {
	net_handler_fn *fn;
	const char *path; /* with a query; NULL: an RPC */
} calls[] = {
	{ server_parca_query, NULL },
	{ server_parca_query_range, NULL },
	{ server_parca_profile_types, NULL },
	{ server_parca_labels, NULL },
	{ server_parca_values, NULL },
	{ server_parca_series, NULL },
	{ server_parca_has_profile_data, NULL },
	{ server_handle_types, "/api/types" },
	{ server_handle_labels, "/api/labels" },
	{ server_handle_label_values, "/api/labels/comm/values" },
	{ server_handle_series, "/api/series" },
	{ server_handle_flamegraph, "/api/flamegraph" },
	{ server_handle_top, "/api/top" },
	{ server_handle_functions, "/api/functions" },
	{ server_handle_diff, "/api/diff" },
	{ server_handle_pprof, "/api/pprof" },
	{ server_querier_profile_types, NULL },
	{ server_querier_label_names, NULL },
	{ server_querier_label_values, NULL },
	{ server_querier_series, NULL },
	{ server_querier_select_series, NULL },
	{ server_querier_merge_stacktraces, NULL },
	{ server_querier_merge_span_profile, NULL },
	{ server_querier_merge_profile, NULL },
	{ server_querier_diff, NULL },
	{ server_querier_profile_stats, NULL },
	{ server_pyroscope_render, "/pyroscope/render" },
	{ server_pyroscope_render_diff, "/pyroscope/render-diff" },
	{ server_pyroscope_label_values, "/pyroscope/label-values" },
};

#define LONGEST 2048

static void ask(uint8_t call, struct str input, struct net_response *out)
{
	const char *path = calls[call].path;
	struct net_request r = path ? fuzz_request(str_of(path), input, STR(""))
				    : fuzz_request(STR("/"), STR(""), input);
	*out = (struct net_response){ 0 };
	buf_init(&out->body, NET_ANSWER_MAX);
	calls[call].fn(&fuzz_server, &r, out);
}

FUZZ_MUTATES_PB(1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct net_response first, again;
	if (size < 1 || size > LONGEST)
		return 0;
	if (!fuzz_server.store)
		fuzz_server_open();
	uint8_t call = data[0] % ARRAY_COUNT(calls);
	struct str input = str_make(data + 1, size - 1);
	bool plain = calls[call].path != NULL;
	ask(call, input, &first);
	FUZZ_CHECK((first.status == OK) == (first.message[0] == 0));
	if (first.content_type && strstr(first.content_type, "json"))
		FUZZ_CHECK(str_is_utf8(buf_view(&first.body)));
	/* A URL may say "now", and does where it says nothing. */
	if (!plain) {
		ask(call, input, &again);
		FUZZ_CHECK(first.status == again.status);
		FUZZ_CHECK(str_eq(buf_view(&first.body), buf_view(&again.body)));
		buf_deinit(&again.body);
	}
	buf_deinit(&first.body);
	return 0;
}
