/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage/layout.h"
#include "test.h"

static void knows_its_own_files(void **state)
{
	(void)state;
	for (const struct cli_layout_entry *l = cli_layout_storage; l->name; l++)
		CHECK(cli_layout_has(l->name));
	CHECK(cli_layout_has("notes"));
	CHECK(cli_layout_has("MANIFEST.x1"));
	CHECK(!cli_layout_has("MANIFESTO"));
	CHECK(!cli_layout_has("thesis.txt"));
	CHECK(!cli_layout_has(""));
}

TEST_MAIN(cmocka_unit_test(knows_its_own_files))
