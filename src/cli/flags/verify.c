/* SPDX-License-Identifier: Apache-2.0 */
/* The file is parsed into a second tree, because the verb's values point into the first. */
#include "cli/flags/verify.h"

#include <stdlib.h>

#include "cli/flags/sending.h"
#include "cli/options/options.h"

enum status cli_config_verify(const char *path, struct err *e)
{
	uint32_t keys = 0;
	CLEANUP(free_cleanup) struct cli_config *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, E_NOMEM, "configuration");
	enum status s = cli_config_load(c, path, cli_file_groups, e);
	if (s == OK)
		s = cli_config_check(c, cli_file_groups, &keys, e);
	cli_config_deinit(c);
	return s;
}
