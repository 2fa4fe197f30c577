/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include "scrape/discover/kubernetes.h"

/* What a server may send that no real one does: nothing of it is taken for something else. */
static void survives_strange_objects(void **state)
{
	(void)state;
	static const char *const objects[] = { "{}", "[]", "\"x\"", "null",
		"{\"metadata\":[],\"status\":\"x\",\"spec\":[1]}",
		"{\"metadata\":{\"labels\":[1,2],\"annotations\":\"x\"}}",
		"{\"metadata\":{\"ownerReferences\":{\"a\":1}}}",
		"{\"spec\":{\"containers\":{\"a\":[]}},\"status\":{\"conditions\":[[],{}]}}" };
	for (size_t i = 0; i < ARRAY_COUNT(objects); i++) {
		CLEANUP(discover_found_deinit) struct discover_found f;
		CLEANUP(arena_deinit) struct arena a;
		const struct conf_node *n = NULL;
		struct discover_draft d;
		struct err e = { 0 };
		arena_init(&a, 1 << 20);
		discover_found_init(&f);
		discover_draft_begin(&d, &f);
		CHECK_OK(conf_json_parse(str_of(objects[i]), NULL, &a, &n, &e), &e);
		kubernetes_put_pod(&d, n);
		CHECK(d.count == 1); /* pod_ready is always said */
		CHECK_STR(str_of(d.v[0].value), "unknown");
		kubernetes_put_container(&d, n, n, true, n);
		CHECK(d.count == 2);
	}
}

TEST_MAIN(cmocka_unit_test(survives_strange_objects))
