/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol has one inlet, with its own state; its messages are a tenant's. */
#include "test.h"

#include "ask.h"
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "sink.h"

static int opened, closed;

static enum status open_state(void **out)
{
	*out = &opened;
	return opened++ == 0 ? OK : E_NOMEM;
}

static void close_state(void *state)
{
	CHECK(state == &opened);
	closed++;
}

static const struct server_protocol plain = { .ingest = { .name = "plain" } };
static const struct server_protocol keeps = {
	.ingest = { .name = "keeps" }, .open = open_state, .close = close_state
};
static const struct server_protocol fails = {
	.ingest = { .name = "fails" }, .open = open_state, .close = close_state
};

static void one_for_each_protocol(void **state)
{
	(void)state;
	struct server_config config = { .tenant_header = "x-scope-orgid" };
	struct server s = { .config = &config };
	struct fake_sink sink;
	struct server_inlet *a, *b, *again;
	struct ingest_batch batch;
	struct ask ask;
	struct err e = { 0 };
	fake_sink_ingest(&sink, &s.ingest);
	CHECK_OK(server_inlet_of(&s, &keeps, &a, &e), &e);
	CHECK_OK(server_inlet_of(&s, &plain, &b, &e), &e);
	CHECK_OK(server_inlet_of(&s, &keeps, &again, &e), &e);
	CHECK(a == again && a != b && a->state == &opened && !b->state && opened == 1);
	CHECK(server_inlet_of(&s, &fails, &again, &e) == E_NOMEM);
	ask_init(&ask, "/", "");
	ask_header(&ask, "x-scope-orgid", "me");
	ingest_batch_init(&batch, a->in, "peer", 10);
	CHECK_OK(server_batch_begin(&batch, a, &ask.r, 10, &e), &e);
	CHECK_STR(batch.tenant, "me");
	ingest_batch_end(&batch, OK, "");
	ask_deinit(&ask);
	ask_init(&ask, "/", "");
	ask_header(&ask, "x-scope-orgid", "a/b");
	ingest_batch_init(&batch, a->in, "peer", 10);
	CHECK(server_batch_begin(&batch, a, &ask.r, 10, &e) == E_INVALID);
	ingest_batch_end(&batch, E_INVALID, "");
	ask_deinit(&ask);
	server_inlets_close(&s);
	CHECK(closed == 1);
	ingest_deinit(&s.ingest);
}

TEST_MAIN(cmocka_unit_test(one_for_each_protocol))
