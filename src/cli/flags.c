/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "os/os.h"

#define TABLE_BYTES_LEAST ((uint64_t)4 << 20)
#define STORAGE_MEMORY_MOST ((uint64_t)16 << 40)
#define MESSAGE_LEAST ((uint64_t)64 << 10)
#define MESSAGE_MOST ((uint64_t)64 << 20)

/* clang-format off */
#define LOG_OPTIONS(level_otherwise)                                                               \
	{ .name = "log-level", .kind = CLI_CHOICE, .at = offsetof(struct cli_log_flags, level),    \
	  .value = "LEVEL", .otherwise = level_otherwise, .choices = "error warn info debug",      \
	  .help = "error, warn, info or debug; on standard error." },                              \
	{ .name = "log-format", .kind = CLI_CHOICE, .at = offsetof(struct cli_log_flags, format),  \
	  .value = "FORMAT", .otherwise = "logfmt", .choices = "logfmt json",                      \
	  .help = "logfmt or json." }
static const struct cli_option log_options[] = { LOG_OPTIONS("info") };
static const struct cli_option quiet_log_options[] = { LOG_OPTIONS("warn") };

static const struct cli_option server_options[] = {
	{ .name = "http-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, http_address), .value = "HOST:PORT",
	  .otherwise = "127.0.0.1:7070",
	  .help = "The address that serves the page and the API, and takes profiles. Port 0 takes "
		  "any free port. An address that other hosts reach needs --web-config-file, "
		  "--tls-client-ca-file or --http-allow-unauthenticated." },
	{ .name = "web-config-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, web_config_file), .value = "FILE",
	  .help = "Users, passwords, tokens, what each may do, and TLS, in the format of "
		  "Prometheus' web.config.file (docs/authentication.md). Users and tokens are "
		  "read again when the file changes. Default: none, everybody may do everything." },
	{ .name = "web.config.file", .kind = CLI_TEXT, .hidden = true,
	  .at = offsetof(struct cli_server_flags, web_config_file), .value = "FILE",
	  .help = "Prometheus' name of --web-config-file." },
	{ .name = "http-allow-unauthenticated", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_server_flags, allow_unauthenticated),
	  .help = "Serve an address that other hosts reach without asking who they are: whoever "
		  "reaches it can read and write profiles." },
	{ .name = "path-prefix", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, path_prefix), .value = "/PATH",
	  .help = "Serve everything below this path, for a proxy that passes the path on as it "
		  "is. gRPC is served at the root as well." },
	{ .name = "cors-allowed-origins", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_server_flags, cors_origins), .value = "ORIGIN,...",
	  .help = "Origins of other web pages that may use this server, such as "
		  "https://grafana.example.com; * allows all. May be repeated." },
	{ .name = "http-allowed-hosts", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_server_flags, http_hosts), .value = "NAME,...",
	  .help = "Host names that requests may carry, besides localhost and IP addresses. "
		  "Requests with other names are refused, which keeps foreign web pages out (DNS "
		  "rebinding). Without it a loopback address takes no names, and others take any." },
	{ .name = "tls-cert-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, tls_cert_file), .value = "FILE",
	  .help = "Certificate chain (PEM). The address then speaks TLS only. The file is read "
		  "again when it changes, by the user that the server runs as." },
	{ .name = "tls-key-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, tls_key_file), .value = "FILE",
	  .help = "The private key (PEM) of --tls-cert-file." },
	{ .name = "tls-client-ca-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, tls_client_ca_file), .value = "FILE",
	  .help = "Accept only clients with a certificate that one of these authorities (PEM) has "
		  "signed." },
	{ .name = "storage-path", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, storage_path), .value = "DIR",
	  .help = "The directory of profiles and symbols. Default: /var/lib/firn for root, else "
		  "$XDG_STATE_HOME/firn or ~/.local/state/firn." },
	{ .name = "storage-memory", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, storage_memory_bytes), .value = "SIZE",
	  .help = "The most memory that the whole server takes: recent samples, caches, queries, the "
		  "program. At least 128MiB. Default: 5 % of the host's memory, from 512MiB to 4GiB, "
		  "and at most half of its cgroup's limit." },
	{ .name = "storage-retention-time", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_server_flags, retention_ns), .value = "DURATION",
	  .otherwise = "14d", .help = "Samples older than this are dropped; 0s: never." },
	{ .name = "storage-retention-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, retention_bytes), .value = "SIZE",
	  .otherwise = "10GiB",
	  .help = "When the storage directory grows beyond this, the oldest samples are dropped; "
		  "0: no limit. Symbols, the log and damaged files count too, up to half of it." },
	{ .name = "storage-retention", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct cli_server_flags, retention_rules), .value = "RULE;...",
	  .help = "Other limits for some tenants or profile types: 'type=\"memory:*\"=30d', "
		  "'tenant=\"a\",type=\"process_cpu:*\"=7d/10GB'. A limit is a duration, a size, "
		  "or both; 0s keeps for ever; * stands for any characters. The first rule that "
		  "fits counts. Samples are removed up to a day later. May be repeated." },
	{ .name = "storage-resolution", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_server_flags, resolution_ns), .value = "DURATION",
	  .otherwise = "10s",
	  .help = "Times of samples are rounded down to this when they are merged, within the "
		  "hour. Gauges and samples of a trace keep their times. 0s keeps all times, and "
		  "takes several times the disk." },
	{ .name = "storage-thin", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct cli_server_flags, thin_rules), .value = "RULE;...",
	  .help = "Make old samples coarser; sums by series and stack stay exact. '7d=5m' rounds "
		  "times of samples older than 7 days down to 5 minutes, '7d=5m/thread_id+cpu' "
		  "also drops these labels, '30d=0s/*' drops all labels that are kept beside "
		  "samples (pid, thread_id, thread_name, cpu, span_id, trace_id). May be "
		  "repeated." },
	{ .name = "otlp-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, otlp_address), .value = "HOST:PORT",
	  .help = "A collector that gets traces of the requests to this server, by OTLP. A request's "
		  "traceparent is followed. Default: none." },
	{ .name = "otlp-exporter", .kind = CLI_CHOICE,
	  .at = offsetof(struct cli_server_flags, otlp_exporter), .value = "grpc|http",
	  .otherwise = "grpc", .choices = "grpc http",
	  .help = "How --otlp-address is spoken to." },
	{ .name = "otlp-insecure", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_server_flags, otlp_insecure), .otherwise = "true",
	  .help = "Speak to --otlp-address without TLS, as is the default; false: with TLS." },
	{ .name = "enable-admin-api", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_server_flags, admin_api),
	  .help = "Allow /api/admin/, by which `firn store` deletes, exports and imports samples. "
		  "Whoever reaches the address can use it." },
	{ .name = "tenant-header", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, tenant_header), .value = "NAME",
	  .help = "A header, such as X-Scope-OrgID, that names the tenant of a request. A tenant "
		  "sees its own samples only, and limits count for each. A request without the "
		  "header is of the tenant without a name. The proxy that knows the sender should "
		  "set it. Default: none, all are one tenant." },
	{ .name = "tenant-limits", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, tenant_limits), .value = "FILE",
	  .help = "A file with limits of single tenants, in place of the limits below: lines such "
		  "as 'ci-* max-series-per-tenant=10000 max-profile-size=8MiB' (docs/api.md). It "
		  "is read at start." },
	{ .name = "max-label-names-per-series", .kind = CLI_NUMBER, .least = 1, .most = 256,
	  .at = offsetof(struct cli_server_flags, limits.labels), .value = "COUNT",
	  .otherwise = "128", .help = "Samples with more labels are refused." },
	{ .name = "max-label-name-length", .kind = CLI_NUMBER, .least = 1, .most = 1024,
	  .at = offsetof(struct cli_server_flags, limits.label_name_bytes), .value = "BYTES",
	  .otherwise = "256",
	  .help = "Samples with a longer label name are refused." },
	{ .name = "max-label-value-length", .kind = CLI_NUMBER, .least = 1, .most = 65536,
	  .at = offsetof(struct cli_server_flags, limits.label_value_bytes), .value = "BYTES",
	  .otherwise = "4096",
	  .help = "Samples with a longer label value are refused." },
	{ .name = "max-series-per-tenant", .kind = CLI_NUMBER, .least = 0, .most = 100000000,
	  .at = offsetof(struct cli_server_flags, limits.series), .value = "COUNT",
	  .otherwise = "1000000",
	  .help = "How many series may get samples within an hour or two; samples of more series "
		  "are refused. 0: no limit." },
	{ .name = "max-profile-stacktrace-depth", .kind = CLI_NUMBER, .least = 2, .most = 2048,
	  .at = offsetof(struct cli_server_flags, limits.stack_frames), .value = "FRAMES",
	  .otherwise = "2048", .help = "Deeper stacks are cut at the root." },
	{ .name = "max-profile-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, limits.message_bytes), .value = "SIZE",
	  .otherwise = "64MiB",
	  .help = "Larger messages are refused, before and after decompression. A quarter of "
		  "--storage-memory is a limit too." },
	{ .name = "http-max-connections", .kind = CLI_NUMBER, .least = 1, .most = 1000000,
	  .at = offsetof(struct cli_server_flags, connections), .value = "COUNT",
	  .otherwise = "8192",
	  .help = "Connections at a time; more wait until one ends." },
	{ .name = "shutdown-delay", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_server_flags, shutdown_delay_ns), .value = "DURATION",
	  .otherwise = "0s",
	  .help = "After SIGTERM serve that long, with /ready failing, so that a load balancer "
		  "sends its requests elsewhere; then stop. A second SIGTERM ends it at once." },
	{ .name = "debuginfo-upload-max-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, debuginfo_upload_bytes), .value = "SIZE",
	  .otherwise = "1000000000",
	  .help = "The largest debug file or archive that may be uploaded, in bytes." },
	{ .name = "debuginfo-upload-max-duration", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_server_flags, debuginfo_upload_ns), .value = "DURATION",
	  .otherwise = "15m",
	  .help = "How long an upload may take. Two minutes later the file may be uploaded anew." },
	{ .name = "debuginfo-storage-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, debuginfo_bytes), .value = "SIZE",
	  .otherwise = "4GiB",
	  .help = "Disk space of uploaded debug files. Beyond it the least recently used are "
		  "removed; the names that were made of them stay." },
	{ .name = "symbols-storage-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, symbols_bytes), .value = "SIZE",
	  .otherwise = "8GiB",
	  .help = "Disk space of symbol tables, which are made of executables and debug files; at "
		  "most a quarter of --storage-retention-size. Beyond it the least recently used "
		  "are removed. They are made again where the file is still there." },
	{ .name = "debuginfod-upstream-servers", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_server_flags, debuginfod), .value = "URL,...",
	  .env = "DEBUGINFOD_URLS",
	  .help = "Debuginfod servers that are asked, in this order, for debug information that is "
		  "not here, such as https://debuginfod.debian.net. They learn the build ids of "
		  "programs that were profiled. Default: none is asked." },
	{ .name = "debuginfod-http-request-timeout", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_server_flags, debuginfod_timeout_ns), .value = "DURATION",
	  .otherwise = "5m", .help = "Time limit of each request to them." },
	{ .name = "debuginfod-cache-size", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_server_flags, debuginfod_bytes), .value = "SIZE",
	  .otherwise = "2GiB",
	  .help = "Disk space of the files that came from them. Beyond it the oldest are removed; "
		  "the names that were made of them stay." },
	{ .name = "debug-directories", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_server_flags, debug_dirs), .value = "DIR:...",
	  .otherwise = "/usr/lib/debug",
	  .help = "Directories that are searched for separate debug files, by build id and by "
		  "name." },
	{ .name = "local-files-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_server_flags, local_files_disable),
	  .help = "Look at no program and no source of this host by the path that a sample says: "
		  "names and sources come from uploads, debug directories and other servers." },
};

static const struct cli_option profiling_options[] = {
	{ .name = "node", .kind = CLI_TEXT, .at = offsetof(struct cli_profiling_flags, node),
	  .value = "NAME", .help = "The label `node` of all samples. Default: the host's name." },
	{ .name = "profiling-cpu-sampling-frequency", .kind = CLI_NUMBER,
	  .at = offsetof(struct cli_profiling_flags, frequency_hz), .value = "HERTZ",
	  .otherwise = "19", .least = 1, .most = 1000,
	  .help = "Samples a second on each CPU. A prime number falls in step with no other "
		  "timer." },
	{ .name = "off-cpu-threshold", .kind = CLI_SHARE,
	  .at = offsetof(struct cli_profiling_flags, off_cpu_probability), .value = "0..1",
	  .otherwise = "0",
	  .help = "Also profile the time that threads wait off the CPU: the probability, from 0 "
		  "to 1, with which a thread is sampled when it leaves its CPU. 0 costs nothing, "
		  "0.01 is cheap on any host, 1 samples every wait. Values are scaled up to stand "
		  "for all waits. The profile type is "
		  "parca_agent:wallclock:nanoseconds:samples:count:delta." },
	{ .name = "off-cpu-min-duration", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_profiling_flags, off_cpu_min_ns), .value = "DURATION",
	  .otherwise = "0s",
	  .help = "Leave out shorter waits." },
	{ .name = "wall-clock", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, wall_clock),
	  .help = "Add the time on the CPU to the off-CPU profile type, with the label "
		  "state=\"on-cpu\". Waits have the states runnable, sleeping, blocked and "
		  "off-cpu. Needs --off-cpu-threshold." },
	{ .name = "tracers", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_profiling_flags, tracers), .value = "NAME,...",
	  .help = "Show the functions of these language runtimes: python, hotspot, perl, php, ruby, v8, lua, luajit, "
		  "labels (of Go's goroutines), "
		  "all or none. Default: all. parca-agent's other names are accepted and select "
		  "nothing. none also leaves out the names of JIT code." },
	{ .name = "python-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_python),
	  .help = "Show Python programs by the native frames of the interpreter." },
	{ .name = "symbolizer-jit-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_jit_names),
	  .help = "Do not read perf maps, jitdump files and what is registered for GDB: code that a program makes while it runs "
		  "is shown by its addresses." },
	{ .name = "java-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_java),
	  .help = "Show Java programs by native frames only." },
	{ .name = "perl-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_perl),
	  .help = "Show Perl programs by the native frames of the interpreter." },
	{ .name = "php-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_php),
	  .help = "Show PHP programs by the native frames of the interpreter." },
	{ .name = "v8-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_v8),
	  .help = "Show Node.js programs by native frames only." },
	{ .name = "ruby-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_ruby),
	  .help = "Show Ruby programs by the native frames of the interpreter." },
	{ .name = "lua-unwinding-disable", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_lua),
	  .help = "Show programs of Lua and LuaJIT by native frames only." },
	{ .name = "interpreter-frames", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, keep_interpreters),
	  .help = "Also show the interpreter's own native frames that call functions of its "
		  "language. By default they are left out." },
	{ .name = "enable-oom-prof", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, oom),
	  .help = "When the kernel ends a Go program for want of memory, send the program's heap: "
		  "what was in use, by where it was allocated, as "
		  "memory:inuse_space:bytes:space:bytes and inuse_objects, with the label "
		  "job=\"oomprof\"." },
	{ .name = "enable-oom-prof-allocs", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, oom_allocs),
	  .help = "With --enable-oom-prof, also send alloc_space and alloc_objects." },
	{ .name = "profiling-duration", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_profiling_flags, duration_ns), .value = "DURATION",
	  .otherwise = "5s", .help = "How long samples are gathered before they are sent." },
	{ .name = "metadata-external-labels", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct cli_profiling_flags, labels), .value = "NAME=VALUE;...",
	  .help = "Labels that all samples get; may be repeated." },
	{ .name = "environment-type", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, environment_type), .value = "TEXT",
	  .help = "The label environment_type of all samples." },
	{ .name = "machine-id", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, machine_id), .value = "TEXT",
	  .help = "The label machine_id of all samples." },
	{ .name = "config-path", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, config_path), .value = "FILE",
	  .help = "YAML in which each flag is a key (`node` for --node), and Prometheus' "
		  "relabel_configs, which change the labels of each process "
		  "or drop its samples. Read again when it changes. They see node, comm, "
		  "executable, cgroup, container_id, namespace, pod, container, systemd_unit, the "
		  "external labels, and parca-agent's meta labels: __meta_process_*, "
		  "__meta_env_var_NAME, __meta_kubernetes_*, __meta_docker_container_*, "
		  "__meta_containerd_*, __meta_system_kernel_*; besides __meta_podman_container_*, "
		  "__meta_systemd_{unit,slice}." },
	{ .name = "include-env-var", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_profiling_flags, env_vars), .value = "NAME,...",
	  .help = "Environment variables that relabel_configs may see; may be repeated." },
	{ .name = "profiling-opt-out-env-var", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_profiling_flags, opt_out_env), .value = "NAME,...",
	  .help = "Leave out processes whose environment sets one of these variables to off, "
		  "false, 0, no, disable or disabled, such as FIRN_PROFILE=off. May be repeated. "
		  "An environment is read only where this flag, the next one or --include-env-var "
		  "is given." },
	{ .name = "profiling-opt-in-env-var", .kind = CLI_LIST, .separator = ',',
	  .at = offsetof(struct cli_profiling_flags, opt_in_env), .value = "NAME,...",
	  .help = "Profile only processes whose environment sets one of these variables to on, "
		  "true, 1, yes, enable or enabled." },
	{ .name = "profiling-opt-out-label", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct cli_profiling_flags, opt_out_labels), .value = "NAME=VALUE;...",
	  .help = "Leave out processes with this value of a label or meta label, such as "
		  "__meta_kubernetes_pod_label_profile=off. An empty value stands for no such "
		  "label. Looked at before relabel_configs. May be repeated." },
	{ .name = "profiling-opt-in-label", .kind = CLI_LIST, .separator = ';',
	  .at = offsetof(struct cli_profiling_flags, opt_in_labels), .value = "NAME=VALUE;...",
	  .help = "Profile only processes with one of these labels, and those opted in by their "
		  "environment." },
	{ .name = "profiling-label-ttl", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_profiling_flags, label_ttl_ns), .value = "DURATION",
	  .otherwise = "10m",
	  .help = "How long the labels of a process are used before they are looked up again." },
	{ .name = "metadata-container-runtime-socket-path", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, container_socket), .value = "PATH",
	  .help = "Socket of the container engine (Docker, podman, containerd, CRI). Default: all "
		  "sockets at their usual places, those of users too." },
	{ .name = "metadata-kubernetes-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, kubernetes_address),
	  .value = "https://HOST:PORT",
	  .help = "The Kubernetes API that is asked for the pods of --node. Default: in a pod, "
		  "the API that its environment names; else none." },
	{ .name = "metadata-kubelet-address", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, kubelet_address), .value = "https://HOST:PORT",
	  .help = "Ask the kubelet of this node for its pods, in place of the Kubernetes API." },
	{ .name = "metadata-kubernetes-token-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, kubernetes_token), .value = "FILE",
	  .help = "Token for the API or the kubelet. The file is read for each request. Default: "
		  "that of the pod's service account." },
	{ .name = "metadata-kubernetes-ca-file", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, kubernetes_ca), .value = "FILE",
	  .help = "Certificate authorities (PEM) for the API or the kubelet. Default: those of "
		  "the pod's service account; outside of a pod, the authorities that this host "
		  "trusts." },
	{ .name = "metadata-kubernetes-insecure-skip-verify", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, kubernetes_insecure),
	  .help = "Do not check the certificate of the API or the kubelet. A kubelet often has "
		  "one that it signed itself." },
	{ .name = "metadata-disable-containers", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_containers),
	  .help = "Ask no container engine and no Kubernetes. A container then has only the labels "
		  "that the path of its control group gives." },
	{ .name = "metadata-disable-cpu-label", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_cpu), .help = "Leave out the label cpu." },
	{ .name = "metadata-disable-thread-id-label", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_thread_id),
	  .help = "Leave out the label thread_id." },
	{ .name = "metadata-disable-thread-comm-label", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, no_thread_name),
	  .help = "Leave out the label thread_name." },
	{ .name = "bpf-table-memory", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_profiling_flags, table_bytes), .value = "SIZE",
	  .help = "The most kernel memory for unwind tables. It is taken in steps of 2MiB as "
		  "programs need it, the hottest programs first, and given back when it is not "
		  "used. Default: 1 percent of the host's memory, at least 64MiB." },
	{ .name = "profiling-probabilistic-threshold", .kind = CLI_NUMBER,
	  .at = offsetof(struct cli_profiling_flags, chance_percent), .value = "PERCENT",
	  .otherwise = "100", .least = 1, .most = 100,
	  .help = "How much of the time this host is sampled, in percent: in so many of 100 "
		  "intervals, chosen at random. In a fleet each host then costs less, and all "
		  "hosts together show the same." },
	{ .name = "profiling-probabilistic-interval", .kind = CLI_DURATION,
	  .at = offsetof(struct cli_profiling_flags, chance_ns), .value = "DURATION",
	  .otherwise = "1m",
	  .help = "The length of an interval of --profiling-probabilistic-threshold, 1m to 5m." },
	{ .name = "agent-cpu-limit", .kind = CLI_SHARE,
	  .at = offsetof(struct cli_profiling_flags, cpu_share), .value = "SHARE",
	  .otherwise = "0.05",
	  .help = "The most CPU time that the agent, its broker and its eBPF programs may use, as "
		  "a share of all CPUs: 0.05 is 5 percent. Above it samples are taken half as "
		  "often, until there is room again. 0: no limit." },
	{ .name = "agent-memory-limit", .kind = CLI_SIZE,
	  .at = offsetof(struct cli_profiling_flags, memory_bytes), .value = "SIZE",
	  .otherwise = "512MiB",
	  .help = "The most memory of the agent (resident). Above it samples are taken half as "
		  "often, and caches are emptied. 0: no limit." },
	{ .name = "keep-privileges", .kind = CLI_BOOL,
	  .at = offsetof(struct cli_profiling_flags, keep_privileges),
	  .help = "Do not give up privileges: the agent runs as one process, without the broker "
		  "that opens files for it and without seccomp. For debuggers." },
	{ .name = "bpf-map-scale-factor", .kind = CLI_NUMBER, .value = "N", .otherwise = "0",
	  .at = offsetof(struct cli_profiling_flags, table_scale), .least = 0, .most = 8,
	  .help = "Double --bpf-table-memory this many times." },
	{ .name = "cache-path", .kind = CLI_TEXT,
	  .at = offsetof(struct cli_profiling_flags, cache_path), .value = "DIR",
	  .help = "The directory that keeps unwind tables between starts. It may be deleted. "
		  "Default: /var/cache/firn for root, else $XDG_CACHE_HOME/firn or ~/.cache/firn." },
};
/* clang-format on */

const struct cli_group cli_log_group = { "Messages", log_options, ARRAY_COUNT(log_options), 0 };
const struct cli_group cli_quiet_log_group = { "Messages", quiet_log_options,
	ARRAY_COUNT(quiet_log_options), 0 };
const struct cli_group cli_server_group = { "Server", server_options, ARRAY_COUNT(server_options),
	0 };
const struct cli_group cli_profiling_group = { "Profiling", profiling_options,
	ARRAY_COUNT(profiling_options), 0 };

bool cli_log_apply(const struct cli_log_flags *f)
{
	enum log_level level;
	enum log_format format;
	bool good = log_parse_level(str_of(f->level), &level) &&
		    log_parse_format(str_of(f->format), &format);
	assert(good); /* the tables of choices agree with base/log */
	log_configure(level, format);
	return good;
}

/* ---- places ---- */

static bool join(char out[PATH_MAX], const char *dir, const char *middle, const char *below)
{
	int len = snprintf(out, PATH_MAX, "%s%s%s%s", dir, middle, below[0] ? "/" : "", below);
	if (len > 0 && len < PATH_MAX)
		return true;
	cli_complain("the path %s%s is too long", dir, middle);
	return false;
}

static bool user_path(char out[PATH_MAX], const char *root_dir, const char *xdg,
	const char *in_home, const char *below)
{
	const char *dir = getenv(xdg), *home = getenv("HOME");
	if (geteuid() == 0)
		return join(out, root_dir, "", below);
	if (dir && dir[0] == '/')
		return join(out, dir, "/firn", below);
	if (home && home[0] == '/')
		return join(out, home, in_home, below);
	cli_complain("neither %s nor HOME is set: name a directory with --storage-path and "
		     "--cache-path",
		xdg);
	return false;
}

bool cli_state_path(char out[PATH_MAX], const char *below)
{
	return user_path(out, "/var/lib/firn", "XDG_STATE_HOME", "/.local/state/firn", below);
}

bool cli_cache_path(char out[PATH_MAX], const char *below)
{
	return user_path(out, "/var/cache/firn", "XDG_CACHE_HOME", "/.cache/firn", below);
}

/* `given`, or what `otherwise` makes of nothing; absolute, made if it is not there. */
static bool settle_dir(const char *flag, const char *given, bool (*otherwise)(char *, const char *),
	char out[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	struct err e = { 0 };
	if (!given || !given[0]) {
		if (!otherwise(out, ""))
			return false;
	} else if (given[0] == '/') {
		if (!join(out, given, "", ""))
			return false;
	} else if (!getcwd(cwd, sizeof(cwd)) || !join(out, cwd, "/", given)) {
		cli_complain("--%s %s: the current directory is not known", flag, given);
		return false;
	}
	enum status s = os_make_dirs(out, &e);
	if (s == OK)
		return true;
	cli_complain("--%s: %s", flag, err_text(&e, s));
	return false;
}

/* ---- from flags to configurations ---- */

static bool check_http(const struct cli_server_flags *f)
{
	const char *prefix = f->path_prefix ? f->path_prefix : "";
	size_t len = strlen(prefix);
	if (len && (prefix[0] != '/' || prefix[len - 1] == '/' || strpbrk(prefix, " %?#"))) {
		cli_complain("--path-prefix: '%s' is not a path such as /firn", prefix);
		return false;
	}
	if (!f->tls_cert_file != !f->tls_key_file) {
		cli_complain("--tls-cert-file and --tls-key-file belong together");
		return false;
	}
	if (f->tls_client_ca_file && !f->tls_cert_file) {
		cli_complain("--tls-client-ca-file needs --tls-cert-file");
		return false;
	}
	return true;
}

/* A header's name, in lower case as requests have it. An empty one is an unset variable somewhere:
 * without a complaint no tenant would be apart from another. */
static bool settle_tenant(struct cli_server_flags *f)
{
	const char *name = f->tenant_header ? f->tenant_header : "";
	size_t len = strlen(name);
	bool good = len < sizeof(f->tenant) && (len > 0 || !f->tenant_header);
	for (size_t i = 0; good && i < len; i++) {
		char c = name[i];
		char lower = (c >= 'A' && c <= 'Z') ? (char)(c | 32) : c;
		good = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
		       c == '_';
		f->tenant[i] = lower;
	}
	if (!good) {
		cli_complain("--tenant-header: '%s' is not a header's name", name);
		return false;
	}
	f->tenant[len] = 0;
	return true;
}

static bool check_limits(const struct cli_server_flags *f)
{
	if (f->limits.message_bytes < MESSAGE_LEAST || f->limits.message_bytes > MESSAGE_MOST) {
		cli_complain("--max-profile-size: expected 64KiB to 64MiB");
		return false;
	}
	if (f->debuginfo_upload_ns < 1000 * NS_PER_MS) {
		cli_complain("--debuginfo-upload-max-duration: expected 1s or more");
		return false;
	}
	return true;
}

/* The rules of both lists. */
static bool settle_rules(struct cli_server_flags *f)
{
	struct err e = { 0 };
	enum status s = OK;
	if (f->retention_rules.count > STORE_RULES_MAX || f->thin_rules.count > STORE_RULES_MAX) {
		cli_complain("--storage-retention and --storage-thin: at most %d rules each",
			STORE_RULES_MAX);
		return false;
	}
	for (uint32_t i = 0; i < f->retention_rules.count && s == OK; i++) {
		s = store_retention_parse(str_of(f->retention_rules.v[i]), &f->retention[i], &e);
		if (s != OK)
			cli_complain("--storage-retention: %s", err_text(&e, s));
	}
	for (uint32_t i = 0; i < f->thin_rules.count && s == OK; i++) {
		s = store_thin_parse(str_of(f->thin_rules.v[i]), &f->thin[i], &e);
		if (s != OK)
			cli_complain("--storage-thin: %s", err_text(&e, s));
	}
	return s == OK;
}

/* TLS of the web-config file: the agent of `firn up` has to know of it. */
static bool settle_web(struct cli_server_flags *f)
{
	struct err e = { 0 };
	if (!f->web_config_file || !f->web_config_file[0])
		return true;
	enum status s = auth_check_file(f->web_config_file, f->web_cert, &e);
	if (s != OK)
		cli_complain("--web-config-file: %s", err_text(&e, s));
	else if (f->web_cert[0] && f->tls_cert_file)
		cli_complain("--tls-cert-file, and tls_server_config in --web-config-file: one of "
			     "them is enough");
	return s == OK && !(f->web_cert[0] && f->tls_cert_file);
}

bool cli_server_apply(struct cli_server_flags *f, struct server_config *out)
{
	if (!settle_dir("storage-path", f->storage_path, cli_state_path, f->path) ||
		!settle_rules(f))
		return false;
	if (f->storage_memory_bytes == 0) /* not given */
		f->storage_memory_bytes =
			server_memory_default(os_host_memory_bytes(), os_cgroup_memory_bytes(""));
	if (f->storage_memory_bytes < SERVER_MEMORY_LEAST ||
		f->storage_memory_bytes > STORAGE_MEMORY_MOST) {
		cli_complain("--storage-memory: expected 128MiB to 16TiB");
		return false;
	}
	if (!check_http(f) || !check_limits(f) || !settle_tenant(f) || !settle_web(f))
		return false;
	server_config_default(out);
	out->path_prefix = f->path_prefix;
	out->cors_origins = f->cors_origins.count ? f->cors_origins.v : NULL;
	out->http_hosts = f->http_hosts.count ? f->http_hosts.v : NULL;
	out->tls_cert_file = f->web_cert[0] ? f->web_cert : f->tls_cert_file;
	out->tls_key_file = f->tls_key_file;
	out->tls_client_ca_file = f->tls_client_ca_file;
	out->web_config_file = f->web_config_file;
	out->allow_unauthenticated = f->allow_unauthenticated;
	out->http_address = f->http_address;
	out->storage_path = f->path;
	out->storage_memory_bytes = f->storage_memory_bytes;
	out->retention_ns = f->retention_ns;
	out->retention_bytes = f->retention_bytes;
	out->resolution_ns = f->resolution_ns;
	out->retention_rules = f->retention;
	out->retention_rule_count = f->retention_rules.count;
	out->thin_rules = f->thin;
	out->thin_rule_count = f->thin_rules.count;
	out->debug_dirs = f->debug_dirs;
	out->debuginfod_servers = f->debuginfod.count ? f->debuginfod.v : NULL;
	out->debuginfod_timeout_ns = f->debuginfod_timeout_ns;
	out->debuginfod_bytes = f->debuginfod_bytes;
	out->otlp_address = f->otlp_address;
	out->otlp_http = strcmp(f->otlp_exporter, "http") == 0;
	out->otlp_secure = !f->otlp_insecure;
	out->admin_api = f->admin_api;
	out->tenant_header = f->tenant[0] ? f->tenant : NULL;
	out->tenant_limits_file = f->tenant_limits;
	out->limits = f->limits;
	out->connections = f->connections;
	out->shutdown_delay_ns = f->shutdown_delay_ns;
	out->debuginfo_bytes = f->debuginfo_bytes;
	out->symbols_bytes = f->symbols_bytes;
	out->debuginfo_upload_bytes = f->debuginfo_upload_bytes;
	out->debuginfo_upload_ns = f->debuginfo_upload_ns;
	out->local_files = !f->local_files_disable;
	out->handover_fd = -1;
	out->ready_fd = -1;
	return true;
}

/* "name=value" with a name as selectors take it. */
static bool is_label(const char *text)
{
	size_t len = strcspn(text, "=");
	if (len == 0 || text[len] != '=' || (text[0] >= '0' && text[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return true;
}

static bool check_labels(const char *flag, const struct cli_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (is_label(list->v[i]))
			continue;
		cli_complain("--%s: '%s' is not NAME=VALUE with a name of letters, digits and _",
			flag, list->v[i]);
		return false;
	}
	return true;
}

/* A label that has a flag of its own, behind those of --metadata-external-labels. */
static bool add_label(const char *flag, const char *name, const char *value, struct cli_list *list)
{
	char *at = list->text + list->used;
	size_t room = sizeof(list->text) - list->used;
	if (!value || !value[0])
		return true;
	size_t len = (size_t)snprintf(at, room, "%s=%s", name, value);
	if (len >= room || list->count == CLI_LIST_MAX) {
		cli_complain("--%s: there are too many external labels", flag);
		return false;
	}
	list->used += len + 1;
	list->v[list->count++] = at;
	return true;
}

static void apply_opting(struct cli_profiling_flags *f, struct agent_config *out)
{
	out->opt_out_env_vars = f->opt_out_env.count ? f->opt_out_env.v : NULL;
	out->opt_in_env_vars = f->opt_in_env.count ? f->opt_in_env.v : NULL;
	out->opt_out_labels = f->opt_out_labels.count ? f->opt_out_labels.v : NULL;
	out->opt_in_labels = f->opt_in_labels.count ? f->opt_in_labels.v : NULL;
}

/* parca-agent's names of tracers; most have no runtime here. */
static const struct {
	const char *name;
	uint32_t runtimes;
} tracers[] = { { "all", AGENT_RUNTIMES_ALL }, { "none", 0 }, { "native", 0 },
	{ "python", AGENT_RUNTIME_PYTHON }, { "perl", AGENT_RUNTIME_PERL },
	{ "php", AGENT_RUNTIME_PHP }, { "hotspot", AGENT_RUNTIME_HOTSPOT },
	{ "ruby", AGENT_RUNTIME_RUBY }, { "v8", AGENT_RUNTIME_V8 }, { "dotnet", 0 },
	{ "lua", AGENT_RUNTIME_LUA }, { "go", AGENT_RUNTIME_GO }, { "labels", AGENT_RUNTIME_GO },
	{ "beam", 0 }, { "luajit", AGENT_RUNTIME_LUAJIT } };

static bool apply_tracers(const struct cli_profiling_flags *f, struct agent_config *out)
{
	uint32_t runtimes = f->tracers.count ? 0 : AGENT_RUNTIMES_ALL;
	out->no_jit_names = f->tracers.count > 0;
	for (size_t i = 0; i < f->tracers.count; i++) {
		size_t k = 0;
		while (k < ARRAY_COUNT(tracers) && strcmp(f->tracers.v[i], tracers[k].name) != 0)
			k++;
		if (k == ARRAY_COUNT(tracers)) {
			cli_complain("--tracers: %s is none that is known", f->tracers.v[i]);
			return false;
		}
		runtimes |= tracers[k].runtimes;
		out->no_jit_names &= strcmp(tracers[k].name, "none") == 0;
	}
	out->no_jit_names |= f->no_jit_names;
	runtimes &= f->no_python ? ~AGENT_RUNTIME_PYTHON : UINT32_MAX;
	runtimes &= f->no_perl ? ~AGENT_RUNTIME_PERL : UINT32_MAX;
	runtimes &= f->no_php ? ~AGENT_RUNTIME_PHP : UINT32_MAX;
	runtimes &= f->no_v8 ? ~AGENT_RUNTIME_V8 : UINT32_MAX;
	runtimes &= f->no_ruby ? ~AGENT_RUNTIME_RUBY : UINT32_MAX;
	runtimes &= f->no_lua ? ~(AGENT_RUNTIME_LUA | AGENT_RUNTIME_LUAJIT) : UINT32_MAX;
	runtimes &= f->no_java ? ~AGENT_RUNTIME_HOTSPOT : UINT32_MAX;
	out->runtimes = runtimes;
	return true;
}

bool cli_profiling_apply(struct cli_profiling_flags *f, struct agent_config *out)
{
	if (!check_labels("metadata-external-labels", &f->labels) ||
		!check_labels("profiling-opt-out-label", &f->opt_out_labels) ||
		!check_labels("profiling-opt-in-label", &f->opt_in_labels) ||
		!add_label(
			"environment-type", "environment_type", f->environment_type, &f->labels) ||
		!add_label("machine-id", "machine_id", f->machine_id, &f->labels))
		return false;
	if (f->table_bytes != 0 &&
		(f->table_bytes < TABLE_BYTES_LEAST || f->table_bytes > AGENT_TABLE_BYTES_MAX)) {
		cli_complain("--bpf-table-memory: expected 4MiB to 2GiB");
		return false;
	}
	if (f->duration_ns < 100 * NS_PER_MS || f->duration_ns > 600 * NS_PER_SEC) {
		cli_complain("--profiling-duration: expected 100ms to 10m");
		return false;
	}
	if (f->wall_clock && f->off_cpu_probability <= 0) {
		cli_complain("--wall-clock: needs --off-cpu-threshold above 0");
		return false;
	}
	if (f->chance_ns < 60 * NS_PER_SEC || f->chance_ns > 300 * NS_PER_SEC) {
		cli_complain("--profiling-probabilistic-interval: expected 1m to 5m");
		return false;
	}
	if (!settle_dir("cache-path", f->cache_path, cli_cache_path, f->cache))
		return false;
	agent_config_default(out);
	out->node = f->node ? f->node : "";
	out->cache_dir = f->cache;
	out->frequency_hz = f->frequency_hz;
	out->off_cpu_probability = f->off_cpu_probability;
	out->off_cpu_min_ns = f->off_cpu_min_ns;
	out->wall_clock = f->wall_clock;
	out->keep_interpreters = f->keep_interpreters;
	if (!apply_tracers(f, out))
		return false;
	out->oom = f->oom;
	out->oom_allocs = f->oom_allocs;
	out->flush_interval_ns = f->duration_ns;
	out->table_bytes_max = (uint32_t)f->table_bytes;
	out->table_doublings = f->table_scale;
	out->external_labels = f->labels.count ? f->labels.v : NULL;
	out->env_vars = f->env_vars.count ? f->env_vars.v : NULL;
	apply_opting(f, out);
	out->config_path = f->config_path ? f->config_path : "";
	out->label_ttl_ns = f->label_ttl_ns;
	out->container_socket_path = f->container_socket;
	out->kubernetes_address = f->kubernetes_address;
	out->kubelet_address = f->kubelet_address;
	out->kubernetes_token_file = f->kubernetes_token;
	out->kubernetes_ca_file = f->kubernetes_ca;
	out->kubernetes_insecure = f->kubernetes_insecure;
	out->no_containers = f->no_containers;
	out->keep_privileges = f->keep_privileges;
	out->cpu_share = f->cpu_share;
	out->memory_bytes = f->memory_bytes;
	out->chance_ns = f->chance_ns;
	out->chance_percent = f->chance_percent;
	out->no_cpu = f->no_cpu;
	out->no_thread_id = f->no_thread_id;
	out->no_thread_name = f->no_thread_name;
	out->handover_fd = -1;
	out->ready_fd = -1;
	return true;
}

/* ---- signals of a verb that runs until it is stopped ---- */

volatile sig_atomic_t cli_stop;

static void on_stop(int number)
{
	(void)number;
	if (cli_stop)
		_exit(CLI_FAILED);
	cli_stop = 1;
}

void cli_stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = on_stop };
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}
