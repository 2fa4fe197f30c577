/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables with a row for each flag: where its value is stored, and what it may be. settings.c makes
 * configurations of the values.
 */
#include "cli/flags/flags.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"

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
	  .help = "Debuginfod servers that are asked, in this order, for debug information and "
		  "sources that are not here, such as https://debuginfod.debian.net. They learn "
		  "the build ids of programs that were profiled, and the paths of sources that "
		  "are looked at. Default: none is asked." },
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
	  .help = "Show the functions of these language runtimes: python, hotspot, perl, php, ruby, v8, lua, luajit, beam, "
		  "dotnet, labels (of Go's goroutines), "
		  "all or none. Default: all. none also leaves out the names of JIT code, which "
		  "those of .NET belong to." },
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
