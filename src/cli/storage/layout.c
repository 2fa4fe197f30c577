/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: two tables of constants. Each folder that a server makes in its storage directory needs a
 * row in the first; else a server started by root refuses a storage directory of another user.
 */
#include "cli/storage/layout.h"

#include <string.h>

#include "base/str.h"

const struct cli_layout_entry cli_layout_storage[] = {
	{ "LOCK", "Held by the server that has the directory open. Has its process id.",
		"manifest" },
	{ "MANIFEST",
		"Which parts there are. Without it a server knows nothing of the samples in parts.",
		"manifest" },
	{ "log",
		"ID.log: batches that were acknowledged and are in no part yet. ID.free: files "
		"that are "
		"used again.",
		"log" },
	{ "parts", "ID.part: samples, in files that never change.", "part" },
	{ "quarantine",
		"Files that were found damaged, and why, in NAME.reason. No server reads them; "
		"they may "
		"be removed.",
		"manifest" },
	{ "export", "Parts on their way out. What a crash leaves here goes after an hour.",
		"export" },
	{ "symbols",
		"XX/REST.sym: the symbol table of the build id XXREST. It is made again where the "
		"program "
		"or its debug file is still at hand.",
		"symtab" },
	{ "debuginfo", "Debug files, executables and sources that were uploaded.", "debuginfo" },
	{ "debuginfod", "Debug files that came from other debuginfod servers. They may be removed.",
		"" },
	{ "shared",
		"ID.pb.gz: profiles that a user shared or keeps for some time, in pprof's "
		"format.",
		"" },
	{ "notes", "Saved views and annotations of the page.", "notes" },
	{ "agent-spool",
		"Batches of the agent of `firn up` that the server could not take yet. Another "
		"agent has "
		"them in --spool-path.",
		"spool" },
	{ 0 },
};

const struct cli_layout_entry cli_layout_others[] = {
	{ "/etc/firn", "firn.yaml, server.yaml and agent.yaml of the Debian package's units.", "" },
	{ "/var/lib/firn", "The storage directory of firn.service.", "" },
	{ "/var/lib/firn-server", "The storage directory of firn-server.service.", "" },
	{ "/var/lib/firn-agent", "What the agent of firn-agent.service could not send yet.",
		"spool" },
	{ "/var/cache/firn, /var/cache/firn-agent",
		"Unwind tables, in --cache-path. They may be removed; the agent makes them again.",
		"unwind" },
	{ 0 },
};

bool cli_layout_has(const char *name)
{
	for (const struct cli_layout_entry *l = cli_layout_storage; l->name; l++)
		if (strcmp(name, l->name) == 0)
			return true;
	return str_starts(str_of(name), STR("MANIFEST.")); /* as os_replace_file() makes them */
}
