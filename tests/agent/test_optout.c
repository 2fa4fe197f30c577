/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/optout.h"
#include "test.h"

static const char *const names[] = { "FIRN_PROFILE", "DD_PROFILING_ENABLED", NULL };
static const char *const labels[] = { "comm=secret", "__meta_kubernetes_pod_label_profile=off",
	NULL };
static const char *const absent[] = { "namespace=", NULL };

#define ENV(text)                  \
	{                          \
		text, sizeof(text) \
	}

static void judges(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct optout_config config;
		struct str environment;
		struct relabel_label label;
		bool want;
	} cases[] = {
		{ "nothing asked", { 0 }, ENV("FIRN_PROFILE=off"), { { "", 0 }, { "", 0 } }, true },
		{ "out", { .out_env = names }, ENV("A=1\0FIRN_PROFILE=off\0B=2"), { 0 }, false },
		{ "out, the second name", { .out_env = names }, ENV("DD_PROFILING_ENABLED=False "),
			{ 0 }, false },
		{ "out, another word", { .out_env = names }, ENV("FIRN_PROFILE=official"), { 0 },
			true },
		{ "out, nothing said", { .out_env = names }, ENV("FIRN_PROFILE="), { 0 }, true },
		{ "out, on", { .out_env = names }, ENV("FIRN_PROFILE=1"), { 0 }, true },
		{ "out, a name that ends so", { .out_env = names }, ENV("XFIRN_PROFILE=off"), { 0 },
			true },
		{ "out, no environment", { .out_env = names }, { "", 0 }, { 0 }, true },
		{ "in", { .in_env = names }, ENV("FIRN_PROFILE=YES"), { 0 }, true },
		{ "in, nothing said", { .in_env = names }, ENV("A=1"), { 0 }, false },
		{ "in and out", { .in_env = names, .out_env = names },
			ENV("FIRN_PROFILE=yes\0DD_PROFILING_ENABLED=no"), { 0 }, false },
		{ "out by label", { .out_labels = labels }, { "", 0 },
			{ { "comm", 4 }, { "secret", 6 } }, false },
		{ "out by another value", { .out_labels = labels }, { "", 0 },
			{ { "comm", 4 }, { "secrets", 7 } }, true },
		{ "out by meta label", { .out_labels = labels }, { "", 0 },
			{ { "__meta_kubernetes_pod_label_profile", 35 }, { "off", 3 } }, false },
		{ "in by label", { .in_labels = labels }, { "", 0 },
			{ { "comm", 4 }, { "secret", 6 } }, true },
		{ "in by label or variable", { .in_labels = labels, .in_env = names },
			ENV("FIRN_PROFILE=on"), { { "comm", 4 }, { "other", 5 } }, true },
		{ "not in", { .in_labels = labels, .in_env = names }, ENV("A=1"),
			{ { "comm", 4 }, { "other", 5 } }, false },
		{ "absent", { .out_labels = absent }, { "", 0 }, { { "comm", 4 }, { "x", 1 } },
			false },
		{ "not absent", { .out_labels = absent }, { "", 0 },
			{ { "namespace", 9 }, { "shop", 4 } }, true },
	};
	FOR_EACH_CASE (c, cases) {
		static struct relabel_set set;
		CLEANUP(arena_deinit) struct arena a;
		arena_init(&a, 65536);
		relabel_set_init(&set, &a);
		if (c->label.name.len)
			relabel_set_put(&set, c->label.name, c->label.value);
		CHECK_CASE(c, optout_allows(&c->config, c->environment, &set) == c->want);
	}
}

static void refuses(void **state)
{
	(void)state;
	static const char *const bad_names[] = { "A", "B=C", NULL };
	static const char *const bad_labels[] = { "comm", NULL };
	static const char *const no_name[] = { "=x", NULL };
	struct err e;
	CHECK_OK(optout_check(&(struct optout_config){ 0 }, &e), &e);
	CHECK_OK(optout_check(&(struct optout_config){ names, names, labels, absent }, &e), &e);
	CHECK(optout_check(&(struct optout_config){ .out_env = bad_names }, &e) == E_INVALID);
	CHECK(strstr(e.text, "\"B=C\""));
	CHECK(optout_check(&(struct optout_config){ .in_env = bad_names }, &e) == E_INVALID);
	CHECK(optout_check(&(struct optout_config){ .out_labels = bad_labels }, &e) == E_INVALID);
	CHECK(strstr(e.text, "\"comm\""));
	CHECK(optout_check(&(struct optout_config){ .in_labels = no_name }, &e) == E_INVALID);
}

static void knows_what_is_asked_for(void **state)
{
	(void)state;
	const struct optout_config none = { 0 }, env = { .in_env = names },
				   label = { .out_labels = labels };
	CHECK(optout_is_empty(&none) && !optout_wants_environment(&none));
	CHECK(!optout_is_empty(&env) && optout_wants_environment(&env));
	CHECK(!optout_is_empty(&label) && !optout_wants_environment(&label));
}

TEST_MAIN(cmocka_unit_test(judges), cmocka_unit_test(refuses),
	cmocka_unit_test(knows_what_is_asked_for))
