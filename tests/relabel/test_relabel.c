/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on labels; what comes out was worked out by hand from Prometheus' documentation. */
#include "base/buf.h"
#include "relabel/relabel.h"
#include "test.h"

static const struct rule_case {
	const char *name;
	const char *rule; /* one line of flow YAML */
	const char *in;
	const char *out; /* NULL: dropped */
} cases[] = {
	{ "replace the whole",
		"{source_labels: [a], regex: f(.*), target_label: d, replacement: ch$1-ch$1}",
		"a=foo b=bar", "a=foo b=bar d=choo-choo" },
	{ "no match, nothing done",
		"{source_labels: [a], regex: o(.*), target_label: d, replacement: x}", "a=foo",
		"a=foo" },
	{ "anchored at both ends",
		"{source_labels: [a], regex: fo, target_label: d, replacement: x}", "a=foo",
		"a=foo" },
	{ "joined by the separator",
		"{source_labels: [a, b, c], regex: (.*);(.*);(.*), target_label: d, replacement: "
		"$3$2$1}",
		"a=1 b=2", "a=1 b=2 d=21" },
	{ "another separator", "{source_labels: [a, b], separator: '', target_label: d}", "a=1 b=2",
		"a=1 b=2 d=12" },
	{ "defaults copy", "{source_labels: [a], target_label: d}", "a=x", "a=x d=x" },
	{ "empty takes out", "{source_labels: [a], regex: f.*, target_label: a, replacement: ''}",
		"a=foo b=bar", "b=bar" },
	{ "no source", "{target_label: d, replacement: fixed}", "a=1", "a=1 d=fixed" },
	{ "named group",
		"{source_labels: [a], regex: (?P<x>.)(.*), target_label: d, replacement: "
		"'${x}_${2}'}",
		"a=foo", "a=foo d=f_oo" },
	{ "names are long", "{source_labels: [a], regex: (.*), target_label: d, replacement: $1x}",
		"a=foo", "a=foo" },
	{ "dollars", "{source_labels: [a], target_label: d, replacement: $$1$}", "a=foo",
		"a=foo d=$1$" },
	{ "no such group", "{source_labels: [a], target_label: d, replacement: a$9b}", "a=foo",
		"a=foo d=a" },
	{ "no such group in braces", "{source_labels: [a], target_label: d, replacement: 'a${9}b'}",
		"a=foo", "a=foo d=ab" },
	{ "group that took no part",
		"{source_labels: [a], regex: (x)?foo, target_label: d, replacement: '<${1}>'}",
		"a=foo", "a=foo d=<>" },
	{ "target from the value",
		"{source_labels: [a], regex: (.*)-(.*), target_label: '${1}', replacement: $2}",
		"a=some-thing", "a=some-thing some=thing" },
	{ "target that is no name", "{source_labels: [a], target_label: $1, replacement: x}",
		"a=0-1", "a=0-1" },
	{ "keep", "{source_labels: [a], regex: foo, action: keep}", "a=foo", "a=foo" },
	{ "keep not", "{source_labels: [a], regex: bar, action: keep}", "a=foo", NULL },
	{ "keep what is absent", "{source_labels: [z], regex: '.+', action: keep}", "a=foo", NULL },
	{ "drop", "{source_labels: [a], regex: .*o.*, action: drop}", "a=foo", NULL },
	{ "drop not", "{source_labels: [a], regex: f, action: DROP}", "a=foo", "a=foo" },
	{ "keepequal", "{source_labels: [a], target_label: b, action: keepequal}", "a=1 b=1",
		"a=1 b=1" },
	{ "keepequal not", "{source_labels: [a], target_label: b, action: keepequal}", "a=1 b=2",
		NULL },
	{ "dropequal", "{source_labels: [a], target_label: b, action: dropequal}", "a=1 b=1",
		NULL },
	{ "labelmap", "{regex: __meta_(.*), action: labelmap, replacement: m_$1}", "__meta_x=1 b=2",
		"__meta_x=1 b=2 m_x=1" },
	{ "labeldrop", "{regex: (b.*), action: labeldrop}", "a=1 b1=2 b2=3", "a=1" },
	{ "labelkeep", "{regex: (b.*), action: labelkeep}", "a=1 b1=2 b2=3", "b1=2 b2=3" },
	{ "lowercase", "{source_labels: [a], target_label: d, action: lowercase}", "a=FoO",
		"a=FoO d=foo" },
	{ "uppercase", "{source_labels: [a], target_label: d, action: uppercase}", "a=FoO",
		"a=FoO d=FOO" },
	/* md5("foo") ends in 5d7f 8e58 dcd9 22f0... : see the check below */
	{ "hashmod", "{source_labels: [a], target_label: d, modulus: 1000, action: hashmod}",
		"a=foo", "a=foo d=696" },
};

static void parse_labels(struct relabel_set *s, struct str text)
{
	struct str word, name;
	while (str_split(&text, ' ', &word)) {
		CHECK(str_split(&word, '=', &name));
		relabel_set_put(s, name, word);
	}
}

static void write_labels(const struct relabel_set *s, struct buf *out)
{
	for (uint32_t i = 0; i < s->count; i++)
		buf_printf(out, "%s%.*s=%.*s", i ? " " : "", STR_ARG(s->v[i].name),
			STR_ARG(s->v[i].value));
	buf_u8(out, 0);
}

static struct relabel *parse(const char *rule)
{
	char yaml[4096];
	struct relabel *r = NULL;
	struct err e = { 0 };
	snprintf(yaml, sizeof(yaml), "relabel_configs:\n- %s\n", rule);
	CHECK_OK(relabel_parse(str_of(yaml), &r, &e), &e);
	return r;
}

static void does_what_the_rule_says(void **state)
{
	(void)state;
	static struct relabel_set s;
	FOR_EACH_CASE (c, cases) {
		struct relabel *r = parse(c->rule);
		struct err e = { 0 };
		CLEANUP(arena_deinit) struct arena a;
		CLEANUP(buf_deinit) struct buf text;
		arena_init(&a, 1 << 20);
		buf_init(&text, 1 << 16);
		relabel_set_init(&s, &a);
		parse_labels(&s, str_of(c->in));
		bool keep = false;
		CHECK_CASE(c, relabel_apply(r, &s, &keep, &e) == OK);
		write_labels(&s, &text);
		CHECK_CASE(c, keep == (c->out != NULL));
		CHECK_CASE(c, !keep || strcmp((const char *)text.data, c->out) == 0);
		relabel_free(r);
	}
}

static void goes_through_rules_in_order(void **state)
{
	(void)state;
	static struct relabel_set s;
	struct relabel *r = NULL;
	struct err e = { 0 };
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	CHECK_OK(relabel_parse(STR("relabel_configs:\n"
				   "- source_labels: [__meta_process_cmdline]\n"
				   "  regex: .*--shard=(\\d+).*\n"
				   "  target_label: shard\n"
				   "- source_labels: [shard]\n"
				   "  regex: '1'\n"
				   "  action: keep\n"
				   "- regex: shard\n"
				   "  action: labeldrop\n"),
			 &r, &e),
		&e);
	assert_int_equal(relabel_count(r), 3);
	CHECK(relabel_reads(r, STR("__meta_process_cmdline")));
	CHECK(relabel_reads(r, STR("shard")) && !relabel_reads(r, STR("other")));
	for (int shard = 1; shard <= 2; shard++) {
		bool keep;
		relabel_set_init(&s, &a);
		relabel_set_put(&s, STR("__meta_process_cmdline"),
			shard == 1 ? STR("x --shard=1 y") : STR("x --shard=2 y"));
		CHECK_OK(relabel_apply(r, &s, &keep, &e), &e);
		assert_int_equal(keep, shard == 1);
		CHECK(!keep || s.count == 1);
	}
	relabel_free(r);
}

static void has_limits(void **state)
{
	(void)state;
	static struct relabel_set s;
	static char value[RELABEL_VALUE_BYTES_MAX];
	struct err e = { 0 };
	bool keep;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4 << 20);
	memset(value, 'x', sizeof(value));
	relabel_set_init(&s, &a);
	relabel_set_put(&s, STR("a"), str_make(value, sizeof(value)));
	struct relabel *r = parse("{source_labels: [a], target_label: b, replacement: $1$1}");
	CHECK(relabel_apply(r, &s, &keep, &e) == E_LIMIT);
	relabel_free(r);

	relabel_set_init(&s, &a);
	char names[RELABEL_LABELS_MAX + 1][8];
	for (int i = 0; i <= RELABEL_LABELS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "l%d", i);
		relabel_set_put(&s, str_of(names[i]), STR("v"));
	}
	r = parse("{regex: l1, action: labeldrop}");
	CHECK(relabel_apply(r, &s, &keep, &e) == E_LIMIT);
	relabel_free(r);
	relabel_free(NULL);
}

static void knows_names(void **state)
{
	(void)state;
	CHECK(relabel_name_ok(STR("a")) && relabel_name_ok(STR("_A9")));
	CHECK(!relabel_name_ok(STR("")) && !relabel_name_ok(STR("9a")) &&
		!relabel_name_ok(STR("a-b")));
}

TEST_MAIN(cmocka_unit_test(does_what_the_rule_says), cmocka_unit_test(goes_through_rules_in_order),
	cmocka_unit_test(has_limits), cmocka_unit_test(knows_names))
