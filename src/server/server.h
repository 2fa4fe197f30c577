/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: store, symbols, queries and the page behind one port.
 *
 * Top layer.
 */
#pragma once

#include "base/err.h"
#include "ingest/ingest.h"

#include <signal.h>

struct store_retention_rule;
struct store_thin_rule;

struct server_config {
	const char *http_address; /* 127.0.0.1:7070 */
	int listen_fd; /* from net_listen(), taken over; http_address is then its text; -1: none */
	const char *path_prefix;         /* "/firn"; "": none */
	const char *const *cors_origins; /* NULL at the end, or NULL */
	const char *const
		*http_hosts; /* further names of this server, if it is on a loopback address */
	const char *tls_cert_file; /* NULL: no TLS */
	const char *tls_key_file;
	const char *tls_client_ca_file;
	const char *web_config_file; /* who may do what (auth/auth.h); NULL: no authentication */
	const char *own_token;       /* with it the agent of the same program may read and write */
	bool allow_unauthenticated;  /* even on an address that other hosts can reach */
	const char *storage_path;
	uint64_t storage_memory_bytes;
	int64_t retention_ns;
	uint64_t retention_bytes;
	int64_t resolution_ns; /* of merged samples */
	/* These must outlive server_run(). */
	const struct store_retention_rule *retention_rules;
	size_t retention_rule_count;
	const struct store_thin_rule *thin_rules;
	size_t thin_rule_count;
	const char *debug_dirs; /* /usr/lib/debug */
	/* Debuginfod servers that are asked, in this order, for files that are not here; NULL at
	 * the end, or NULL. Files that came from them are kept, within so many bytes. */
	const char *const *debuginfod_servers;
	uint64_t debuginfod_bytes;
	int64_t debuginfod_timeout_ns;
	/* Where traces of its own requests go (trace/trace.h); NULL or "": nowhere. */
	const char *otlp_address;
	bool otlp_http, otlp_secure;
	bool admin_api; /* /api/admin/… is allowed */
	/* Header, in lower case, that names the tenant whose samples a request brings or asks for;
	 * NULL: all are of the tenant without a name. */
	const char *tenant_header;
	struct ingest_limits limits; /* of each tenant */
	uint32_t connections;        /* at most */
	const char *config_path;     /* its scrape_configs are scraped; NULL: nothing is */
	/* Checks all else in that file after it has changed; NULL: nothing else is checked. */
	enum status (*check_config)(const char *path, struct err *e);
	const char *tenant_limits_file;  /* NULL: none; read when it starts */
	uint64_t debuginfo_bytes;        /* of all uploads */
	uint64_t debuginfo_upload_bytes; /* of one */
	uint64_t symbols_bytes;          /* of symbol tables on disk */
	int64_t debuginfo_upload_ns;     /* an upload that takes longer may be tried again */
	bool local_files;                /* symbolize from this host's files */
	/* When the symbol table of an executable that was handed over is built: once
	 * symbols_wants_min messages (0 counts as 1) had samples of it; earlier if a query asks, or
	 * the file is removed. */
	bool symbols_on_demand;
	uint32_t symbols_wants_min;
	/* The other end of agent_config.handover_fd (docs/formats/handover.md); -1: none. Taken
	 * over when server_run() is called, whatever it returns. */
	int handover_fd;
	int64_t shutdown_delay_ns; /* after *stop it serves for this long, but is not ready any more
				    */
	/* "HOST:PORT\n" is written here once it listens; -1: none. */
	int ready_fd;
};

/* For a server without --storage-memory: 5 % of the host's memory (0: not known), from 512 MiB to 4
 * GiB, and at most half of what its cgroup allows (UINT64_MAX: no limit), but at least 128 MiB.
 */
#define SERVER_MEMORY_LEAST ((uint64_t)128 << 20)
uint64_t server_memory_default(uint64_t host_bytes, uint64_t cgroup_bytes);
void server_config_default(struct server_config *c);
/* Set by a handler of SIGHUP: the configuration file is read again. */
extern volatile sig_atomic_t server_reload_wanted;
/* Runs until *stop becomes non-zero, then drains, flushes and returns. */
NODISCARD enum status server_run(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e);

/* Where a server that only scrapes sends profiles: WriteRaw over gRPC, to firn or Parca. Texts are
 * kept. */
#define SERVER_FORWARD_LABELS_MAX 32
#define SERVER_FORWARD_HEADERS_MAX 12
struct server_forward {
	const char *address; /* "HOST:PORT", "http://…", "https://…" */
	const char *token, *token_file;
	bool insecure, trust_anybody;
	struct {
		const char *name, *value;
	} labels[SERVER_FORWARD_LABELS_MAX], headers[SERVER_FORWARD_HEADERS_MAX];
	size_t label_count, header_count;
};
/* Runs a server without a store: it scrapes what c->config_path says, and serves targets, metrics,
 * health and its own profiles. A profile that the other server refuses is lost, and the target's
 * error says why. */
NODISCARD enum status server_run_scraper(const struct server_config *c,
	const struct server_forward *to, const volatile sig_atomic_t *stop, struct err *e);
