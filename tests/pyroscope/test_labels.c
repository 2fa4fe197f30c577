/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "pyroscope/labels.h"
#include "say.h"

#include <stdio.h>

#define MEMORY ((size_t)1 << 20)

struct label_case {
	const char *name; /* the text */
	const char *app, *want;
};
static const struct label_case cases[] = {
	{ "app", "app", "service_name=app," },
	{ " my.app {}", "my.app", "service_name=my.app," },
	{ "a{process.runtime.version=17+6 x,region=eu/1,__session_id__=7,=v,k=,b}", "a",
		"process_runtime_version=17+6 x,region=eu/1,service_name=a," },
	{ "a{service.name=other, k = v=w }", "a", "k=v=w,service_name=other," },
	{ "a{k=1,k=2", "a", "k=1,service_name=a," },
	{ "{k=v}", NULL, NULL },
};

static void reads_names(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	FOR_EACH_CASE (c, cases) {
		struct profile p;
		struct err e = { 0 };
		struct series_labels labels = { .count = 0 };
		struct str app, text;
		uint32_t set;
		bool ok = name_split(str_of(c->name), &app, &text);
		CHECK_CASE(c, ok == (c->app != NULL));
		if (!ok)
			continue;
		CHECK_STR(app, c->app);
		CHECK_OK(profile_init(&p, MEMORY), &e);
		CHECK_OK(labels_add_text(&labels, &p, text, &e), &e);
		CHECK_OK(labels_intern(&labels, &p, app, &set, &e), &e);
		buf_clear(&b);
		say_labels(&b, &p, set);
		CHECK_STR(buf_view(&b), c->want);
		profile_deinit(&p);
	}
}

static void limits_labels(void **state)
{
	(void)state;
	struct profile p;
	struct err e = { 0 };
	struct series_labels labels = { .count = 0 };
	enum status s = OK;
	CHECK_OK(profile_init(&p, MEMORY), &e);
	for (int i = 0; s == OK && i < PROFILE_LABELS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "l%d", i);
		s = labels_add(&labels, &p, str_of(name), STR("v"), &e);
	}
	CHECK(s == E_LIMIT && labels.count == PROFILE_LABELS_MAX - 2);
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(reads_names), cmocka_unit_test(limits_labels))
