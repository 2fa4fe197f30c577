/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_query, "query");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/flamegraph?from=now-15m&to=now&format=text&required=1");
	capture_run(&c, cli_query, "query {} --invert --trim 0.01 --format folded --match m");
	CHECK_STR(str_of(fake_url), "/api/flamegraph?trim=0.01&invert=1&query=%7B%7D&from=now-15m"
				    "&to=now&match=m&format=folded&required=1");
	capture_run(
		&c, cli_query, "query --report series --by comm,pid --by x --step 1s --limit 4");
	CHECK_STR(str_of(fake_url), "/api/series?by=comm&by=pid&by=x&step=1s&limit=4&from=now-15m"
				    "&to=now&format=text&required=1");
	capture_run(&c, cli_query, "query --report pprof");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/pprof?from=now-15m&to=now&required=1");
}

/* The name of the file says what it shall be. */
static void goes_by_the_suffix(void **state)
{
	(void)state;
	static const struct {
		const char *name, *asks;
	} cases[] = {
		{ "query -o /dev/null", "format=text" },
		{ "query -o /nonexistent/a.html", "format=html" },
		{ "query -o /nonexistent/a.speedscope.json", "format=speedscope" },
		{ "query -o /nonexistent/a.json", "format=json" },
		{ "query -o /nonexistent/a.svg --format folded", "format=folded" },
		{ "query -o /nonexistent/a.prof --report pprof", "/api/pprof?" },
		{ "query -o /nonexistent/a.pb.gz", "/api/pprof?" },
		{ "query -o /nonexistent/a.html --format pprof", "/api/pprof?" },
	};
	FOR_EACH_CASE (k, cases) {
		struct capture c;
		capture_run(&c, cli_query, k->name);
		CHECK_HAS(fake_url, k->asks);
	}
	struct capture c;
	capture_run(&c, cli_query, "query -o /nonexistent/a.b/graph.svg");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "its ending names none of the formats");
}

static void refuses_what_does_nothing(void **state)
{
	(void)state;
	static const struct {
		const char *name, *says; /* NULL: it is asked for */
	} cases[] = {
		{ "query --limit 5", "--limit does nothing for --report flamegraph; a flame graph "
				     "has --trim SHARE" },
		{ "query --by comm", NULL },
		{ "query --step 1s -o a.pb.gz", "--step does nothing for --report pprof\n" },
		{ "query --report series --invert", "--invert does nothing for --report series" },
		{ "query --report series --trim 0.1", "--trim does nothing for --report series" },
		{ "query --by comm -o /nonexistent/a.pb.gz", NULL },
	};
	FOR_EACH_CASE (k, cases) {
		struct capture c;
		fake_url[0] = 0;
		capture_run(&c, cli_query, k->name);
		CHECK_CASE(k, (c.code == CLI_USAGE) == (k->says != NULL));
		CHECK_CASE(k, (fake_url[0] == 0) == (k->says != NULL));
		if (k->says)
			CHECK_HAS(c.err, k->says);
	}
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_query, "query -h");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "go tool pprof");
	check_width(c.out);
	capture_run(&c, cli_query, "query --report nothing");
	assert_int_equal(c.code, CLI_USAGE);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(goes_by_the_suffix),
	cmocka_unit_test(refuses_what_does_nothing), cmocka_unit_test(helps))
