/* SPDX-License-Identifier: Apache-2.0 */
#include "relabel/relabel.h"
#include "test.h"

static const struct bad_case {
	const char *name;
	const char *yaml;
	const char *says;
} bad[] = {
	{ "not YAML", "relabel_configs: [", "did not find expected" },
	{ "a list", "- a\n", "line 1, column 1: expected \"relabel_configs:\"" },
	{ "no list", "relabel_configs: {a: b}\n",
		"line 1, column 18: relabel_configs must be a list" },
	{ "no mapping", "relabel_configs:\n- x\n", "line 2, column 3: a rule must be a mapping" },
	{ "unknown field", "relabel_configs:\n- target_label: a\n  replace: b\n",
		"line 3, column 3: there is no key \"replace\" here; did you mean "
		"\"replacement\"?" },
	{ "unknown action", "relabel_configs:\n- action: rename\n",
		"line 2, column 11: there is no action \"rename\"" },
	{ "no target", "relabel_configs:\n- source_labels: [a]\n",
		"line 2, column 3: action replace needs target_label" },
	{ "bad target", "relabel_configs:\n- target_label: a-b\n", "\"a-b\" is no label name" },
	{ "bad target of a hash",
		"relabel_configs:\n- {target_label: $1, action: hashmod, modulus: 2}\n",
		"\"$1\" is no label name" },
	{ "no modulus", "relabel_configs:\n- {target_label: a, action: hashmod}\n",
		"needs a modulus" },
	{ "bad modulus", "relabel_configs:\n- {target_label: a, modulus: -1}\n",
		"modulus must be a whole number" },
	{ "bad source", "relabel_configs:\n- {source_labels: [a b], target_label: a}\n",
		"\"a b\" is no label name" },
	{ "source no list", "relabel_configs:\n- {source_labels: a, target_label: a}\n",
		"source_labels must be a list" },
	{ "bad regex", "relabel_configs:\n- {regex: 'a**', action: labeldrop}\n",
		"line 2, column 11: regex: bad repetition operator: **" },
	{ "regex no text", "relabel_configs:\n- {regex: [a], action: labeldrop}\n",
		"line 2, column 11: regex must be a text" },
	{ "key no text", "relabel_configs:\n- {[a]: b}\n",
		"line 2, column 4: a key must be a text" },
};

static void says_what_is_wrong(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, bad) {
		struct relabel *r = NULL;
		struct err e = { 0 };
		CHECK_CASE(c, relabel_parse(str_of(c->yaml), &r, &e) == E_INVALID);
		CHECK_CASE(c, strstr(e.text, c->says) && !r);
	}
}

static void takes_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "# only this\n", "relabel_configs:\n",
		"relabel_configs: []\n", "{}" };
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		struct relabel *r = NULL;
		struct err e = { 0 };
		CHECK_OK(relabel_parse(str_of(texts[i]), &r, &e), &e);
		assert_int_equal(relabel_count(r), 0);
		relabel_free(r);
	}
	assert_int_equal(relabel_count(NULL), 0);
}

/* References are not expanded: a thousand of them are a thousand rules, which is one too many. */
static void has_limits(void **state)
{
	(void)state;
	static char yaml[64 << 10];
	struct relabel *r = NULL;
	struct err e = { 0 };
	int n = snprintf(yaml, sizeof(yaml), "relabel_configs:\n- &x {target_label: a}\n");
	for (int i = 0; i < 1000; i++)
		n += snprintf(yaml + n, sizeof(yaml) - (size_t)n, "- *x\n");
	CHECK(relabel_parse(str_of(yaml), &r, &e) == E_LIMIT);
	CHECK_STR(str_of(e.text), "line 2, column 3: more than 256 rules");
	static char big[RELABEL_CONFIG_BYTES_MAX + 1];
	memset(big, '#', sizeof(big));
	CHECK(relabel_parse(str_make(big, sizeof(big)), &r, &e) == E_LIMIT);
	memset(big, '[', 100000);
	CHECK(relabel_parse(str_make(big, 100000), &r, &e) == E_LIMIT);
	CHECK_STR(str_of(e.text), "line 1, column 17: nested deeper than 16");
}

TEST_MAIN(cmocka_unit_test(says_what_is_wrong), cmocka_unit_test(takes_nothing),
	cmocka_unit_test(has_limits))
