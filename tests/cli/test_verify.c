/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cli/flags/verify.h"
#include "os/os.h"

#include <unistd.h>

static void looks_at_every_key(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text, *says; /* NULL: good */
	} cases[] = {
		{ "good", "http_address: 127.0.0.1:1\nscrape_configs: []\nnode: a\n", NULL },
		{ "empty", "", NULL },
		{ "value", "node: a\nstorage_retention_time: soon\n", ": line 2, column 25: " },
		{ "key", "noode: a\n", "did you mean \"node\"?" },
		{ "scraping", "scrape_configs: [{}]\n", "job_name is missing" },
	};
	char path[64];
	struct err e = { 0 };
	snprintf(path, sizeof(path), "/tmp/firn-test-verify-%d.yml", (int)getpid());
	FOR_EACH_CASE (c, cases) {
		CHECK_OK(os_replace_file(path, c->text, strlen(c->text), 0600, &e), &e);
		enum status s = cli_config_verify(path, &e);
		CHECK_CASE(c, (s == OK) == !c->says);
		CHECK_CASE(c, s == OK || (strstr(e.text, c->says) && strstr(e.text, path)));
	}
	unlink(path);
	CHECK(cli_config_verify(path, &e) != OK);
}

TEST_MAIN(cmocka_unit_test(looks_at_every_key))
