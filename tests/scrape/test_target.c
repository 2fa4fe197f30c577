/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "scrape/internal.h"

static const char *label(const struct scrape_label *v, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(v[i].name, name) == 0)
			return v[i].value;
	return "";
}

/* The first target of the first job's profile of this name, or why there is none. */
static struct scrape_target *make(const char *job, const char *profile, struct err *e)
{
	const struct conf_node *root = NULL;
	struct scrape_target *t = NULL;
	char yaml[1000];
	struct scrape_config *c = calloc(1, sizeof(*c));
	CHECK(c);
	atomic_store(&c->refs, 1);
	arena_init(&c->arena, CONF_ARENA_BYTES);
	snprintf(yaml, sizeof(yaml), "- job_name: j\n%s", job);
	CHECK_OK(conf_parse(str_of(yaml), &c->arena, &root, e), e);
	CHECK_OK(scrape_config_read(root, c, e), e);
	const struct scrape_job *j = c->jobs.v[0];
	const struct scrape_group *g = &j->sources[0].groups.v[0];
	for (uint32_t i = 0; i < j->profile_count; i++)
		if (strcmp(j->profiles[i].name, profile) == 0 &&
			scrape_target_make(c, j, &j->profiles[i], g, g->targets->v[0].value->text,
				&t, e) != OK)
			CHECK(!t && e->text[0]);
	scrape_config_unref(c); /* the target holds it */
	return t;
}

static void makes_urls(void **state)
{
	(void)state;
	static const struct {
		const char *name, *job, *profile, *url;
	} cases[] = {
		{ "plain", "  static_configs: [{targets: ['h:1']}]\n", "memory",
			"http://h:1/debug/pprof/allocs" },
		{ "delta", "  static_configs: [{targets: ['h:1']}]\n", "process_cpu",
			"http://h:1/debug/pprof/profile?seconds=10" },
		{ "no port", "  scheme: https\n  static_configs: [{targets: [h]}]\n", "block",
			"https://h:443/debug/pprof/block" },
		{ "IPv6", "  static_configs: [{targets: ['[::1]']}]\n", "block",
			"http://[::1]:80/debug/pprof/block" },
		{ "prefix and parameters",
			"  params: {a b: [x&y, z]}\n  profiling_config: {path_prefix: /in/}\n"
			"  static_configs: [{targets: ['h:1']}]\n",
			"mutex", "http://h:1/in/debug/pprof/mutex?a%20b=x%26y&a%20b=z" },
		{ "by labels",
			"  static_configs: [{targets: ['h:1'], labels: {__param_seconds: '3', "
			"__profile_path__: /other, __scheme__: https}}]\n",
			"process_cpu", "https://h:1/other?seconds=3" },
		{ "by rules",
			"  static_configs: [{targets: ['h:1']}]\n  relabel_configs:\n"
			"  - {target_label: __address__, replacement: 'proxy:9'}\n",
			"memory", "http://proxy:9/debug/pprof/allocs" },
	};
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		struct scrape_target *t = make(c->job, c->profile, &e);
		if (!t || strcmp(t->url, c->url) != 0)
			print_error("%s %s\n", t ? t->url : "", e.text);
		CHECK_CASE(c, t && strcmp(t->url, c->url) == 0);
		scrape_target_free(t);
	}
}

static void labels_targets(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct scrape_target *t =
		make("  static_configs: [{targets: ['h:1'], labels: {env: prod, __meta_x: y}}]\n"
		     "  relabel_configs:\n"
		     "  - {source_labels: [__meta_x], target_label: x}\n"
		     "  - {source_labels: [__name__], target_label: profile}\n",
			"memory", &e);
	CHECK(t && !t->dropped && t->label_count == 5);
	CHECK_STR(str_of(label(t->labels, t->label_count, "job")), "j");
	CHECK_STR(str_of(label(t->labels, t->label_count, "instance")), "h:1");
	CHECK_STR(str_of(label(t->labels, t->label_count, "env")), "prod");
	CHECK_STR(str_of(label(t->labels, t->label_count, "x")), "y");
	CHECK_STR(str_of(label(t->labels, t->label_count, "profile")), "memory");
	CHECK_STR(str_of(t->name), "memory");
	CHECK_STR(str_of(label(t->discovered, t->discovered_count, "__address__")), "h:1");
	CHECK_STR(str_of(label(t->discovered, t->discovered_count, "__profile_path__")),
		"/debug/pprof/allocs");
	struct scrape_target *same = make("  static_configs: [{targets: ['h:1']}]\n", "memory", &e);
	CHECK(same && same->key != t->key);
	struct scrape_target *again =
		make("  static_configs: [{targets: ['h:1']}]\n", "memory", &e);
	CHECK(again && same->key == again->key);
	struct scrape_target *named = make(
		"  static_configs: [{targets: ['h:1'], labels: {__name__: n}}]\n", "memory", &e);
	CHECK(named && named->key != same->key && strcmp(named->name, "n") == 0);
	CHECK(strcmp(named->url, same->url) == 0 && named->label_count == same->label_count);
	scrape_target_free(t);
	scrape_target_free(same);
	scrape_target_free(again);
	scrape_target_free(named);
}

static void drops_and_refuses(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct scrape_target *t =
		make("  static_configs: [{targets: ['h:1']}]\n"
		     "  relabel_configs:\n"
		     "  - {source_labels: [__name__], regex: memory, action: drop}\n",
			"memory", &e);
	CHECK(t && t->dropped && t->label_count == 0 && t->discovered_count);
	scrape_target_free(t);
	CHECK(!make("  static_configs: [{targets: ['h:1/x']}]\n", "memory", &e));
	CHECK(strstr(e.text, "\"h:1/x\" is not a valid address"));
	CHECK(!make("  static_configs: [{targets: ['u:hidden@h:1']}]\n", "memory", &e));
	CHECK(strstr(e.text, "\"@h:1\" is not a valid address") && !strstr(e.text, "hidden"));
	CHECK(!make("  static_configs: [{targets: [''], labels: {}}]\n", "memory", &e));
	CHECK(strstr(e.text, "has no __address__"));
}

TEST_MAIN(cmocka_unit_test(makes_urls), cmocka_unit_test(labels_targets),
	cmocka_unit_test(drops_and_refuses))
