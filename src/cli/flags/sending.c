/* SPDX-License-Identifier: Apache-2.0 */
/* Tables only: the values are used in the files of the verbs. */
#include "cli/flags/sending.h"

#include "cli/flags/flags.h"

/* clang-format off */
static const struct cli_option sending_options[] = {
	{ .name = "remote-store-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, remote), .value = "HOST:PORT",
	  .help = "The server that gets the samples: a firn server, or anything else that takes "
		  "OTLP profiles over gRPC. Required. https://HOST:PORT is spoken to with TLS, and "
		  "so is HOST:PORT where one of the flags below asks for it." },
	{ .name = "remote-store-insecure", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_sending_flags, insecure),
	  .help = "Send without TLS, whatever the other flags say. A bearer token is then sent in "
		  "clear text." },
	{ .name = "remote-store-insecure-skip-verify", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_sending_flags, skip_verify),
	  .help = "Use TLS, but do not check the server's certificate." },
	{ .name = "remote-store-ca-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, ca_file), .value = "FILE",
	  .help = "Use TLS, and accept a server's certificate only if one of these authorities "
		  "(PEM) signed it. Default: the authorities that this host trusts." },
	{ .name = "remote-store-client-cert", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, client_cert), .value = "FILE",
	  .help = "Use TLS, with this certificate (PEM) for servers that ask for one. Read for "
		  "each connection." },
	{ .name = "remote-store-client-key", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, client_key), .value = "FILE",
	  .help = "Its private key." },
	{ .name = "remote-store-bearer-token", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, token), .value = "TOKEN",
	  .env = "PARCA_BEARER_TOKEN", .secret = true,
	  .help = "Use TLS, and send this as \"authorization: Bearer TOKEN\". The command line "
		  "is for all to see: better a file." },
	{ .name = "remote-store-bearer-token-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, token_file), .value = "FILE",
	  .help = "A file that holds the token. It is read again for each batch." },
	{ .name = "remote-store-basic-auth", .kind = CLI_TEXT, .secret = true,
	  .at = offsetof(struct cli_sending_flags, basic), .value = "NAME:PASSWORD",
	  .help = "Use TLS, and send this name and password in place of a token. The command line "
		  "is for all to see: better a file." },
	{ .name = "remote-store-basic-auth-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, basic_file), .value = "FILE",
	  .help = "A file that holds NAME:PASSWORD. It is read at the start." },
	{ .name = "remote-store-grpc-headers", .kind = CLI_LIST, .separator = ';', .secret = true,
	  .at = offsetof(struct cli_sending_flags, headers), .value = "NAME=VALUE;...",
	  .help = "Headers that are sent with each batch; may be repeated." },
	{ .name = "remote-store-rpc-unary-timeout", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_sending_flags, call_ns), .value = "DURATION", .otherwise = "5m",
	  .help = "Time limit of each request about debug files. (Batches of samples are sent "
		  "again after 10s.)" },
	{ .name = "debuginfo-upload-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_sending_flags, no_names),
	  .help = "Do not upload debug information of executables for which the server has none. "
		  "Their functions then have no names." },
	{ .name = "debuginfo-strip", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_sending_flags, strips), .otherwise = "true",
	  .help = "Send of an executable only what gives names (the default). "
		  "--debuginfo-strip=false sends it whole, with its code and data." },
	{ .name = "debuginfo-directories", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_sending_flags, debug_folders), .value = "DIR,...",
	  .otherwise = "/usr/lib/debug",
	  .help = "Directories that are searched, in this order, for the debug file of a stripped "
		  "executable: DIR/.build-id/ab/cdef….debug. The debug file is uploaded in place "
		  "of the executable." },
	{ .name = "debuginfo-upload-max-parallel", .kind = CLI_NUMBER, .least = 1, .most = 64,
	  .at = offsetof(struct cli_sending_flags, names_parallel), .value = "N", .otherwise = "25",
	  .help = "Uploads at a time, where the server is slow. All together take at most 3% of a "
		  "CPU and 16MiB a second." },
	{ .name = "debuginfo-upload-queue-size", .kind = CLI_NUMBER, .least = 1, .most = 4096,
	  .at = offsetof(struct cli_sending_flags, names_queue), .value = "N", .otherwise = "4096",
	  .help = "Executables that may wait for their upload." },
	{ .name = "offline-mode-storage-path", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, offline_path), .value = "DIR",
	  .help = "Send nothing: keep the samples in this directory, up to --spool-size, for a "
		  "later --offline-mode-upload." },
	{ .name = "offline-mode-upload", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_sending_flags, upload),
	  .help = "Sample nothing: send what is in --offline-mode-storage-path to the server, "
		  "remove what it took, and end." },
	{ .name = "http-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, http_address), .value = "HOST:PORT",
	  .otherwise = "127.0.0.1:7071",
	  .help = "The address that serves the agent's status page, /metrics, /healthy and "
		  "/ready; empty: none." },
	{ .name = "spool-path", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_sending_flags, spool_path), .value = "DIR",
	  .help = "Where samples wait that could not be sent. Default: /var/lib/firn/spool for "
		  "root, else spool below the user's state directory." },
	{ .name = "spool-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_sending_flags, spool_bytes), .value = "SIZE",
	  .otherwise = "256MiB", .help = "When more than this waits, the oldest is dropped." },
	{ .name = "version", .kind = CLI_BOOL, .at = offsetof(struct cli_sending_flags, version),
	  .help = "Print the version and end." },
};
/* clang-format on */

const struct cli_group cli_sending_group = { "Sending", sending_options,
	ARRAY_COUNT(sending_options), 0 };

/* clang-format off */
static const struct cli_option up_options[] = {
	{ .name = "agent-http-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_up_flags, agent_http_address), .value = "HOST:PORT",
	  .help = "Where the agent serves its status page and a /metrics of its own; the server's "
		  "/agent and /metrics show the same. Default: nowhere." },
	{ .name = "remote-store-client-cert", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_up_flags, client_cert), .value = "FILE",
	  .help = "The certificate (PEM) that the agent shows to the server, where "
		  "--tls-client-ca-file asks for one." },
	{ .name = "remote-store-client-key", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_up_flags, client_key), .value = "FILE",
	  .help = "Its private key." },
};
/* clang-format on */

const struct cli_group cli_up_group = { "Agent", up_options, ARRAY_COUNT(up_options), 0 };

/* clang-format off */
static const struct cli_option forward_options[] = {
	{ .name = "mode", .kind = CLI_TEXT, .at = offsetof(struct cli_forward_flags, mode),
	  .value = "all|scraper-only", .otherwise = "all",
	  .help = "scraper-only keeps nothing: what --config-path says is scraped here and sent to "
		  "--store-address, and so is what agents send." },
	{ .name = "store-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_forward_flags, store), .value = "HOST:PORT",
	  .help = "With --mode scraper-only: the firn or Parca server that gets the profiles, over "
		  "TLS unless --insecure or http:// says otherwise." },
	{ .name = "bearer-token", .kind = CLI_TEXT, .secret = true,
	  .at = offsetof(struct cli_forward_flags, token), .value = "TOKEN",
	  .help = "The token for that server. The command line is for all to see: better a file." },
	{ .name = "bearer-token-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_forward_flags, token_file), .value = "FILE",
	  .help = "A file with the token, which is read again for each profile." },
	{ .name = "insecure", .kind = CLI_BOOL, .at = offsetof(struct cli_forward_flags, insecure),
	  .help = "Send without TLS." },
	{ .name = "insecure-skip-verify", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_forward_flags, skip_verify),
	  .help = "Use TLS, but do not check that server's certificate." },
	{ .name = "external-label", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct cli_forward_flags, labels), .value = "NAME=VALUE;...",
	  .help = "Labels that all profiles get that are sent on; may be repeated." },
	{ .name = "grpc-headers", .kind = CLI_LIST, .separator = ';', .secret = true,
	  .at = offsetof(struct cli_forward_flags, headers), .value = "NAME=VALUE;...",
	  .help = "Headers that are sent with each profile; may be repeated." },
};
/* clang-format on */

const struct cli_group cli_forward_group = { "Sending on", forward_options,
	ARRAY_COUNT(forward_options), 0 };

const struct cli_group *const cli_file_groups[] = { &cli_server_group, &cli_profiling_group,
	&cli_sending_group, &cli_up_group, &cli_forward_group, &cli_log_group, NULL };
