/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a document is read or refused with a sentence; what was read can be walked through
 * within the limits, and stands where it says. */
#include "fuzz/fuzz.h"

#include "conf/conf.h"

static uint32_t walk(const struct conf_node *n, uint32_t depth)
{
	uint32_t nodes = 1;
	FUZZ_CHECK(depth <= CONF_DEPTH_MAX && n->line && n->column);
	FUZZ_CHECK(n->kind != CONF_TEXT || (n->count == 0 && n->text.p[n->text.len] == 0));
	for (uint32_t i = 0; i < n->count; i++)
		nodes += walk(n->v[i].value, depth + 1);
	FUZZ_CHECK(nodes == n->weight);
	return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	arena_init(&a, CONF_ARENA_BYTES);
	if (conf_parse(str_make(data, size), &a, &root, &e) != OK)
		FUZZ_CHECK(e.text[0] && !root);
	else if (root)
		FUZZ_CHECK(walk(root, 0) <= CONF_NODES_MAX);
	return 0;
}
