/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/redact.h"
#include "test.h"

/* '|' stands for the NUL between arguments. */
static const struct line_case {
	const char *name;
	const char *in;
	const char *out;
} cases[] = {
	{ "nothing", "", "" },
	{ "plain", "ls|-l|/tmp|", "ls -l /tmp" },
	{ "with =", "x|--db-password=hunter2|-v|", "x --db-password=[redacted] -v" },
	{ "apart", "x|--api-key|hunter2|-v|", "x --api-key [redacted] -v" },
	{ "flag without a value", "x|--use-token|--verbose|", "x --use-token --verbose" },
	{ "any case", "x|-DSecretValue=1|", "x -DSecretValue=[redacted]" },
	{ "variable", "env|GITHUB_TOKEN=abc|make|", "env GITHUB_TOKEN=[redacted] make" },
	{ "header", "curl|-H|Authorization: Bearer abc|", "curl -H Authorization:[redacted]" },
	{ "URL", "psql|postgres://joe:hunter2@db/x|", "psql postgres://joe:[redacted]@db/x" },
	{ "URL with @ in the password", "x|http://a:b@c@d/e@f|", "x http://a:[redacted]@d/e@f" },
	{ "URL without a password", "x|http://joe@db:80/|", "x http://joe@db:80/" },
	{ "URL in a flag", "x|--url=amqp://u:p@h|", "x --url=amqp://u:[redacted]@h" },
	{ "no NUL at the end", "a|--secret", "a --secret" },
	{ "empty arguments", "a||b|", "a  b" },
};

static void takes_secrets_out(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		char text[256];
		size_t len = strlen(c->in);
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 16);
		for (size_t i = 0; i < len; i++)
			text[i] = c->in[i] == '|' ? 0 : c->in[i];
		redact_command_line(str_make(text, len), &out);
		CHECK_CASE(c, str_eq(buf_view(&out), str_of(c->out)));
	}
}

TEST_MAIN(cmocka_unit_test(takes_secrets_out))
