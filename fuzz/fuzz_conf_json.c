/* SPDX-License-Identifier: Apache-2.0 */
/* Property: JSON is read or refused with a sentence; what was read is a tree within the limits. */
#include "fuzz/fuzz.h"

#include "conf/conf.h"

static void walk(const struct conf_node *n, uint32_t depth)
{
	FUZZ_CHECK(depth <= CONF_JSON_DEPTH_MAX && n->column);
	FUZZ_CHECK(n->kind != CONF_TEXT || (n->count == 0 && n->text.p[n->text.len] == 0));
	FUZZ_CHECK(n->kind != CONF_TEXT || str_is_utf8(n->text));
	for (uint32_t i = 0; i < n->count; i++) {
		FUZZ_CHECK(n->kind != CONF_MAP || !str_eq(n->v[i].key, STR("left out")));
		walk(n->v[i].value, depth + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const without[] = { "left out", NULL };
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	arena_init(&a, CONF_ARENA_BYTES);
	if (conf_json_parse(str_make(data, size), without, &a, &root, &e) != OK)
		FUZZ_CHECK(e.text[0] && !root);
	else
		walk(root, 0);
	return 0;
}
