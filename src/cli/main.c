/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the table of verbs; everything else is cli_main() and the verbs' own files.
 */
#include "cli/cli.h"
#include "debuginfo/debuginfo.h"
#include "os/os.h"

#include <sys/prctl.h>

/* clang-format off */
static const struct cli_verb verbs[] = {
	{ "up",      cli_up,      "profile this host and show it in a browser: the main job" },
	{ "server",  cli_server,  "keep profiles and answer queries about them" },
	{ "agent",   cli_agent,   "profile this host and send it to a server" },
	{ "record",  cli_record,  "record a command, a process or the host to a file" },
	{ "open",    cli_open,    "look at a pprof, folded or perf script file in the browser" },
	{ "query",   cli_query,   "ask a server for a flame graph, a series or a pprof file" },
	{ "top",     cli_top,     "ask a server for the functions that cost most" },
	{ "diff",    cli_diff,    "compare two selectors or time ranges by function" },
	{ "types",   cli_types,   "list the profile types that a server holds" },
	{ "labels",  cli_labels,  "list label names, or the values of one label" },
	{ "push",    cli_push,    "store pprof files in a server" },
	{ "ready",   cli_ready,   "say whether a server or an agent is ready" },
	{ "store",   cli_store,   "verify or inspect the files of a store" },
	{ "debuginfo", cli_debuginfo, "send programs' debug information to a server" },
	{ "convert", cli_convert, "make a pprof file of what an agent kept on disk" },
	{ "config",  cli_config,  "check a configuration file, or show what is in force" },
	{ "manual",  cli_manual,  "write man pages and shell completions into a directory" },
	{ "version", cli_version, "print the version" },
	{ NULL,      NULL,        NULL },
};
/* clang-format on */

/* Corrects the process's name, if the dynamic loader was started with this program as its
 * argument. */
static void take_name(void)
{
	char path[PATH_MAX], folder[PATH_MAX];
	if (os_self_loaded(path, folder))
		prctl(PR_SET_NAME, "firn", 0, 0, 0);
}

int main(int argc, char **argv)
{
	take_name();
	/* This program is also the child process that reads untrusted ELF files. */
	int rc = debuginfo_child_main(argc, argv);
	return rc >= 0 ? rc : cli_main(argc, argv, verbs);
}
