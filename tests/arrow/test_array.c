/* SPDX-License-Identifier: Apache-2.0 */
/* Streams with one thing wrong: the refusal says what it is. */
#include "dump.h"
#include "made.h"

#define LIMIT ((size_t)16 << 20)

static void is_refused(const char *name, struct str arrow, struct str text)
{
	struct buf out;
	struct err e = { 0 };
	char says[256];
	buf_init(&out, LIMIT);
	snprintf(says, sizeof(says), "%.*s", STR_ARG(text));
	enum status s = arrow_dump(arrow, LIMIT, &out, &e);
	if ((s != E_INVALID && s != E_LIMIT && s != E_UNSUPPORTED) || !strstr(e.text, says)) {
		print_error("[%s] %s: \"%s\" does not say \"%s\"\n", name, status_name(s), e.text,
			says);
		fail();
	}
	buf_deinit(&out);
}

static void refuses_what_is_wrong(void **state)
{
	(void)state;
	CHECK(made_each(true, is_refused) > 40);
}

TEST_MAIN(cmocka_unit_test(refuses_what_is_wrong))
