/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: samples this host and sends what it sees to a server.
 *
 * Top layer.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>

/* Limit of kernel memory for unwind tables. */
#define AGENT_TABLE_BYTES_MAX (2u << 30)

/* Bits of agent_config.runtimes: language runtimes whose stacks are walked. */
#define AGENT_RUNTIME_PYTHON 2u
#define AGENT_RUNTIME_HOTSPOT 4u
#define AGENT_RUNTIME_PHP 8u
#define AGENT_RUNTIME_PERL 16u
#define AGENT_RUNTIME_V8 32u
#define AGENT_RUNTIME_RUBY 64u
#define AGENT_RUNTIME_GO 128u
#define AGENT_RUNTIME_LUA 256u
#define AGENT_RUNTIME_LUAJIT 512u
#define AGENT_RUNTIME_BEAM 1024u
#define AGENT_RUNTIME_DOTNET 2048u
#define AGENT_RUNTIMES_ALL UINT32_MAX

struct agent_config {
	const char *node;                 /* "": the host's name */
	const char *remote_store_address; /* HOST:PORT, https://HOST:PORT or unix:/path */
	const char *remote_store_cert; /* https: the server's own certificate; NULL: trusted ones */
	const char *remote_store_ca_file;     /* https: authorities instead of this host's */
	bool remote_store_trust_anybody;      /* https: accept any certificate */
	const char *remote_store_client_cert; /* https: the agent's certificate, PEM */
	const char *remote_store_client_key;
	const char *remote_store_token;          /* sent with each batch */
	const char *remote_store_token_file;     /* its file, read again for each request */
	const char *const *remote_store_headers; /* "name=value", NULL at the end; or NULL */
	/* Sends names of functions to a server that lacks the executables of this host
	 * (agent/uploader/uploader.h). */
	bool debuginfo_upload;
	bool debuginfo_no_strip; /* sends whole files, not only the sections that give names */
	/* Where separate debug files are (agent/uploader/upload_source.h); NULL: where they usually
	 * are. */
	const char *const *debuginfo_folders;
	uint32_t debuginfo_parallel_max, debuginfo_queue_max;
	int64_t remote_store_call_ns; /* time limit of each request of an upload */
	const char *http_address;     /* the agent's own /metrics and /healthy; "": none */
	const char *cache_dir;        /* unwind tables; "": none */
	const char *spool_dir;        /* batches that could not be sent; "": kept in memory only */
	uint64_t spool_bytes_max;
	uint32_t frequency_hz;      /* 19 */
	double off_cpu_probability; /* of a thread that leaves its CPU to be sampled; 0: none are */
	int64_t off_cpu_min_ns;     /* shorter stays are left out */
	bool oom; /* sends the heaps of Go programs that the kernel ends for want of memory */
	bool oom_allocs;           /* adds what they had allocated and freed */
	bool wall_clock;           /* samples of the CPU in the type of the off-CPU time too */
	int64_t flush_interval_ns; /* 5 s */
	uint32_t table_bytes_max;  /* 0: by the memory of the host, docs/agent.md */
	uint32_t table_doublings;  /* times that it may double, 8 at most, up to
				      AGENT_TABLE_BYTES_MAX */
	const char *const *external_labels; /* "name=value", NULL at the end; or NULL */
	const char *const *env_vars;        /* for rules: names, NULL at the end; or NULL */
	/* Processes that opt out or in, by environment variables and by "label=value"
	 * (agent/process/optout.h). Each list ends with NULL, or is NULL. */
	const char *const *opt_out_env_vars;
	const char *const *opt_in_env_vars;
	const char *const *opt_out_labels;
	const char *const *opt_in_labels;
	const char *config_path; /* YAML with relabel_configs, looked at again; "": none */
	/* Where container engines and Kubernetes are; "" or NULL: the usual places. */
	const char *container_socket_path;
	const char *kubernetes_address;
	const char *kubelet_address;
	const char *kubernetes_token_file;
	const char *kubernetes_ca_file;
	bool kubernetes_insecure;
	bool no_containers;     /* no engine is asked */
	int64_t label_ttl_ns;   /* labels of a process are found anew after so long */
	uint32_t runtimes;      /* AGENT_RUNTIME_… */
	bool no_jit_names;      /* perf maps and jitdumps are not read */
	bool keep_interpreters; /* shows native frames that lead to frames of the language */
	bool no_thread_id, no_thread_name, no_cpu; /* labels that are left out */
	double cpu_share;        /* share of all CPUs that the agent may use; 0: no limit */
	uint64_t memory_bytes;   /* limit of resident memory; 0: no limit */
	int64_t chance_ns;       /* interval of probabilistic profiling */
	uint32_t chance_percent; /* of the intervals that are sampled; 100: all */
	bool offline;            /* nothing is sent: spool_dir keeps it for agent_upload() */
	bool keep_privileges; /* run in one process, with all privileges that it was started with */
	int only_pid;         /* sample only this process and its descendants; 0: all */
	/* A recording: tables are built without a budget, and samples wait for them for a minute,
	 * also in the end. */
	bool is_recording;
	/* A connected SOCK_SEQPACKET Unix socket on which each new executable is announced and its
	 * descriptor passed (docs/formats/handover.md); -1: none. `firn up` gives it to the server.
	 */
	int handover_fd;
	/* A descriptor on which one byte is written when sampling has begun; -1: none. */
	int ready_fd;
};

void agent_config_default(struct agent_config *c);
/* *stop, set by a signal handler: stop, or stop without waiting for tables of the last samples. */
#define AGENT_STOP 1
#define AGENT_STOP_NOW 2
/* Runs until *stop becomes non-zero, then sends what is left and returns. */
NODISCARD enum status agent_run(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e);
/* Sends what an agent with `offline` has left in spool_dir, needs no privileges, and returns when
 * all is sent, or *stop is set. What the server refuses is counted as lost: E_INVALID then. */
NODISCARD enum status agent_upload(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e);
/* Reads a file of spool_dir (docs/formats/spool.md) and appends its message, an
 * ExportProfilesServiceRequest, to `out`. E_CORRUPT: it is no such file, or damaged. */
#define AGENT_BATCH_BYTES_MAX ((size_t)64 << 20)
NODISCARD enum status agent_read_batch(const char *path, struct buf *out, struct err *e);
/* Can this process sample? OK, or in `e` the sentence that says what is missing and how to get it.
 */
NODISCARD enum status agent_probe(struct err *e);
/* Do pids mean here what they mean in samples? E_UNSUPPORTED, with a sentence: in a container that
 * has a PID namespace of its own. The agent runs there too, but finds few of the processes. */
NODISCARD enum status agent_probe_pids(struct err *e);
