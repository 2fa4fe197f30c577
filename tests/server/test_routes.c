/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "schema/schema.h"
#include "serve.h"
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "server/start.h"

/* No two answer the same request, and every RPC has what JSON and streams need. */
static void are_sound(void **state)
{
	(void)state;
	struct server_config config;
	struct server s = { .config = &config };
	struct err e;
	size_t count;
	server_config_default(&config);
	CHECK_OK(
		ingest_init(&s.ingest, &(struct ingest_config){ .limits = config.limits }, &e), &e);
	CHECK_OK(server_make_routes(&s, &count, &e), &e);
	for (size_t i = 0; i < count; i++) {
		const struct net_route *r = &s.routes[i];
		CHECK(r->path[0] == '/' && (r->fn != NULL) != (r->stream_fn != NULL));
		CHECK(!r->is_rpc || (r->rpc && strcmp(r->method, "POST") == 0));
		CHECK(!r->rest || (r->rpc && str_starts(str_of(r->path), STR("/api/"))));
		CHECK(!r->stream_fn || !r->rpc || r->rpc->client_streams || r->rpc->server_streams);
		CHECK(!r->fn || !r->rpc || (!r->rpc->client_streams && !r->rpc->server_streams));
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(r->path, s.routes[k].path) != 0 ||
				strcmp(r->method, s.routes[k].method) != 0);
	}
	CHECK(s.service_count >= 4);
	for (size_t i = 0; i < s.service_count; i++) {
		CHECK(schema_find_symbol(str_of(s.services[i])));
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(s.services[i], s.services[k]) != 0);
	}
	server_inlets_close(&s);
	ingest_deinit(&s.ingest);
	free(s.routes);
	free(s.paths);
}

TEST_MAIN(cmocka_unit_test(are_sound))
