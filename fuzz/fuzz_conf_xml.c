/* SPDX-License-Identifier: Apache-2.0 */
/* Property: XML is read or refused with a sentence; what was read is a tree within the limits. */
#include "fuzz/fuzz.h"

#include "conf/conf.h"

static void walk(const struct conf_node *n, uint32_t depth)
{
	FUZZ_CHECK(depth <= CONF_XML_DEPTH_MAX && n->column);
	FUZZ_CHECK(n->kind != CONF_TEXT || (n->count == 0 && n->text.p[n->text.len] == 0));
	FUZZ_CHECK(n->kind != CONF_TEXT || str_is_utf8(n->text));
	for (uint32_t i = 0; i < n->count; i++) {
		walk(n->v[i].value, depth + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	arena_init(&a, CONF_ARENA_BYTES);
	if (conf_xml_parse(str_make(data, size), &a, &root, &e) != OK)
		FUZZ_CHECK(e.text[0] && !root);
	else
		walk(root, 0);
	return 0;
}
