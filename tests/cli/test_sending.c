/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "cli/flags/sending.h"
#include "os/os.h"

/* docs/configuration.md has a row "| `key` | …" for each key, with its default. */
static void all_keys_are_documented(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf page;
	struct err e = { 0 };
	buf_init(&page, 1 << 20);
	CHECK_OK(os_read_file(TESTS_DIR "/../docs/configuration.md", &page, &e), &e);
	buf_u8(&page, 0);
	int count = 0;
	for (size_t g = 0; cli_file_groups[g]; g++)
		for (size_t i = 0; i < cli_file_groups[g]->count; i++) {
			const struct cli_option *o = &cli_file_groups[g]->options[i];
			char row[160];
			if (o->hidden || o->gone || strcmp(o->name, "version") == 0 ||
				strcmp(o->name, "config-path") == 0)
				continue;
			int len = snprintf(row, sizeof(row), "\n| `%s` | %s |", o->name,
				o->otherwise ? o->otherwise : "");
			for (int k = 4; k < len && row[k] != '`'; k++)
				row[k] = row[k] == '-' ? '_' : row[k];
			if (!strstr((const char *)page.data, row))
				fail_msg("docs/configuration.md lacks: %s", row + 1);
			count++;
		}
	CHECK(count > 60);
}

TEST_MAIN(cmocka_unit_test(all_keys_are_documented))
