/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever is pushed, by whichever call, is stored or refused with a sentence; each
 * sample that a sender is told of is counted; the memory that it was let in with is given back. The
 * first byte chooses the call. Now and then the store is made anew.
 */
#include "fuzz/mutate_pb.h"
#include "fuzz/server.h"
#include "server/receive/receive.h"

#define LONGEST 16384
#define RUNS_OF_A_STORE 4096

static const struct {
	net_handler_fn *fn;
	const char *content_type;               /* NULL: an RPC */
	const struct server_protocol *protocol; /* NULL: the server is its ctx */
} calls[] = {
	{ server_handle_otlp, NULL, &server_protocol_otlp },
	{ server_handle_otlp, "application/json", &server_protocol_otlp },
	{ server_write_raw, NULL, &server_protocol_raw },
	{ server_write_arrow, NULL, &server_protocol_arrow_v2 },
	{ server_otlp_traces, NULL, NULL },
	{ server_otlp_logs, NULL, NULL },
	{ server_otlp_metrics, NULL, NULL },
	{ server_pyroscope_push, NULL, &server_protocol_pyroscope_push },
};

static uint64_t refused(const struct ingest_metrics *m)
{
	const metric_value *const v[] = { &m->refused_labels, &m->refused_label_name,
		&m->refused_label_value, &m->refused_old, &m->refused_future, &m->refused_period,
		&m->refused_series };
	uint64_t sum = 0;
	for (size_t i = 0; i < ARRAY_COUNT(v); i++)
		sum += *v[i];
	return sum;
}

FUZZ_MUTATES_PB(1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct net_response out;
	static uint32_t runs;
	if (size < 1 || size > LONGEST)
		return 0;
	if (!fuzz_server.store || runs++ % RUNS_OF_A_STORE == 0)
		fuzz_server_open();
	uint8_t call = data[0] % ARRAY_COUNT(calls);
	struct net_request r = fuzz_request(STR("/"), STR(""), str_make(data + 1, size - 1));
	const char *type = calls[call].content_type;
	struct http_header header = { STR("content-type"), str_of(type ? type : "") };
	struct err e;
	r.is_rpc = !type;
	r.headers = &header;
	r.header_count = 1;
	out = (struct net_response){ 0 };
	buf_init(&out.body, NET_ANSWER_MAX);
	uint64_t before = refused(&fuzz_server.ingest.metrics);
	struct server_inlet *inlet = NULL;
	if (calls[call].protocol)
		FUZZ_CHECK(server_inlet_of(&fuzz_server, calls[call].protocol, &inlet, &e) == OK);
	calls[call].fn(inlet ? (void *)inlet : &fuzz_server, &r, &out);
	uint64_t samples = refused(&fuzz_server.ingest.metrics) - before;
	FUZZ_CHECK(out.status == OK || out.message[0]);
	/* A sender whose samples were refused is told so. */
	FUZZ_CHECK(samples == 0 || out.status != OK || out.body.len > 0);
	/* Who is alone may have all: nothing is held any more. */
	struct store_entry *entry = NULL;
	FUZZ_CHECK(store_admit(fuzz_server.store, UINT64_MAX / 2, &entry, &e) == OK);
	store_admit_end(fuzz_server.store, entry);
	buf_deinit(&out.body);
	return 0;
}
