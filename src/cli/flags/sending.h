/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sending: the flags that only `firn agent` or only `firn up` has, and the groups of all flags that
 * a configuration file may have.
 *
 * Private to cli/.
 */
#pragma once

#include "cli/options/options.h"

struct cli_sending_flags {
	const char *remote;
	bool insecure, skip_verify;
	const char *ca_file, *client_cert, *client_key;
	const char *token, *token_file;
	const char *basic, *basic_file;
	struct cli_list headers;
	int64_t call_ns;
	bool no_names, strips;
	struct cli_list debug_folders;
	uint32_t names_parallel, names_queue;
	const char *offline_path;
	bool upload;
	const char *http_address;
	const char *spool_path;
	uint64_t spool_bytes;
	bool version;
};

struct cli_up_flags {
	const char *agent_http_address;
	const char *client_cert, *client_key;
};

/* Of `firn server --mode scraper-only`. */
struct cli_forward_flags {
	const char *mode, *store;
	const char *token, *token_file;
	bool insecure, skip_verify;
	struct cli_list labels, headers;
};

extern const struct cli_group cli_sending_group, cli_up_group, cli_forward_group;
extern const struct cli_group *const cli_file_groups[];
