/* SPDX-License-Identifier: Apache-2.0 */
/* `show` runs the verb itself, which then prints its values instead of starting. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "auth/auth.h"
#include "cli/flags/flags.h"
#include "cli/options/options.h"
#include "os/os.h"

/* Whether the file's keys are those of a web-config file (users and TLS) and not of a
 * configuration. */
static bool is_web_config(const char *path)
{
	CLEANUP(buf_deinit) struct buf yaml;
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	buf_init(&yaml, CONF_BYTES_MAX);
	arena_init(&a, CONF_ARENA_BYTES);
	if (os_read_own(path, &yaml, NULL, NULL) != OK ||
		conf_parse(buf_view(&yaml), &a, &root, NULL) != OK)
		return false;
	return root && root->kind == CONF_MAP && root->count && auth_is_key(root->v[0].key);
}

static int check_web_config(const char *path)
{
	char cert_file[AUTH_PATH_BYTES];
	struct err e = { 0 };
	enum status s = auth_check_file(path, cert_file, &e);
	if (s != OK) {
		cli_complain("%s", err_text(&e, s));
		return CLI_FAILED;
	}
	printf("%s: a web-config file (--web-config-file), %s\n", path,
		cert_file[0] ? "with TLS" : "without TLS");
	return CLI_OK;
}

static int check(const char *path)
{
	if (is_web_config(path))
		return check_web_config(path);
	struct err e = { 0 };
	uint32_t keys = 0;
	static struct cli_config c;
	enum status s = cli_config_load(&c, path, cli_file_groups, &e);
	if (s == OK)
		s = cli_config_check(&c, cli_file_groups, &keys, &e);
	cli_config_deinit(&c);
	if (s != OK) {
		cli_complain("%s", err_text(&e, s));
		return CLI_FAILED;
	}
	printf("%s: %u key%s, none unknown\n", path, keys, keys == 1 ? "" : "s");
	return CLI_OK;
}

static int show(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = { { "server", cli_server }, { "agent", cli_agent }, { "up", cli_up } };
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; argc > 0 && i < ARRAY_COUNT(verbs); i++) {
		if (strcmp(argv[0], verbs[i].name) != 0)
			continue;
		cli_shown = &out;
		int code = verbs[i].run(argc, argv);
		cli_shown = NULL;
		if (out.len)
			printf("%.*s", STR_ARG(buf_view(&out)));
		return code;
	}
	cli_complain("usage: firn config show server|agent|up [that verb's flags]");
	return CLI_USAGE;
}

int cli_config(int argc, char **argv)
{
	static const struct cli_command command = {
		.name = "config",
		.summary = "firn config: the configuration file of server, agent and up.",
		.args = "check FILE | show server|agent|up",
		.text = "check reads a file and says what is wrong with it: exit code 1. A "
			"web-config "
			"file (users and TLS) is known by its first key. show "
			"prints what is in force for that verb, with where each value comes from; "
			"it takes the verb's flags. Secrets are not shown.\n"
			"\n"
			"  firn config check firn.yaml\n"
			"  firn config show server --config-path firn.yaml",
		.args_least = 2,
		.args_most = 2,
	};
	if (argc >= 3 && strcmp(argv[1], "show") == 0)
		return show(argc - 2, argv + 2);
	int none, at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, &none, &at, &code))
		return code;
	if (strcmp(argv[at], "check") == 0)
		return check(argv[at + 1]);
	cli_complain("usage: firn config %s", command.args);
	return CLI_USAGE;
}
