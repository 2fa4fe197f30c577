/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cli/options/option.h"

static void reads_values(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct cli_option o;
		const char *bad;
		const char *good;
		uint64_t want; /* the field's first bytes */
	} cases[] = {
		{ "number", { .kind = CLI_NUMBER, .least = 1, .most = 9 }, "10", "9", 9 },
		{ "bool", { .kind = CLI_BOOL }, "yes", "true", 1 },
		{ "duration", { .kind = CLI_DURATION }, "1", "2us", 2000 },
		{ "size", { .kind = CLI_SIZE }, "x", "2kB", 2000 },
		{ "share", { .kind = CLI_SHARE }, "1.5", "0", 0 },
	};
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		uint64_t field = 0;
		CHECK_CASE(c, cli_set_value(&c->o, c->bad, &field, &e) == E_INVALID && e.text[0]);
		CHECK_CASE(c, cli_set_value(&c->o, c->good, &field, &e) == OK);
		CHECK_CASE(c, field == c->want);
	}
}

static void looks_at_ports(void **state)
{
	(void)state;
	static const struct {
		const char *name, *value;
		enum status status;
	} cases[] = {
		{ "good", "127.0.0.1:65535", OK },
		{ "too large", "127.0.0.1:99999", E_INVALID },
		{ "any host", ":70000", E_INVALID },
		{ "socket", "unix:/run/a:99999", OK },
		{ "nothing", "", OK },
	};
	const struct cli_option o = { .kind = CLI_TEXT, .value = "HOST:PORT" };
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		const char *field = NULL;
		CHECK_CASE(c, cli_set_value(&o, c->value, &field, &e) == c->status);
		CHECK_CASE(c, c->status != OK || field == c->value);
	}
}

TEST_MAIN(cmocka_unit_test(reads_values), cmocka_unit_test(looks_at_ports))
