/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags of parca-agent without a meaning in firn. They are accepted, so that a unit file or a
 * manifest need not be changed, and answered with a sentence that says why they do nothing. --help
 * does not show them.
 */
#include "cli/flags/flags.h"

#define MEMORY "kernel memory is --bpf-table-memory, and needs no limit raised"
#define NO_RUNTIME "this is no Go program"
#define POLLING "the ring is read four times a second, whatever is in it"
#define NO_FILES "what is sent of a file is read as it is sent: no temporary file is made"
#define NO_CACHE                                                                                 \
	"the server is asked once for each build id, and again after six hours, or when it has " \
	"lost what it had"
#define NO_SENDING "nothing is sent but samples, and only to the server that you name"
#define ALWAYS_TABLES "stacks are unwound by tables, and by frame pointers where there are none"
#define NO_GPU "firn has no profiles of GPUs"
#define NO_PROBES "firn measures no functions by probes"
#define NO_OTLP "samples are all that is sent; logs go to standard error"
#define RETRIES "what cannot be sent waits, and is tried again until the server takes it"
#define MESSAGES "batches are cut at 3 MiB, which every server takes"
#define NO_LIMITS "reading is bounded by a share of a CPU instead"

/* clang-format off */
#define GONE_SWITCH(flag, why) { .name = flag, .kind = CLI_BOOL, .hidden = true, .gone = why },
#define GONE_VALUE(flag, why) \
	{ .name = flag, .kind = CLI_TEXT, .value = "VALUE", .hidden = true, .gone = why },

static const struct cli_option parca_options[] = {
	GONE_VALUE("otel-tags", "use --metadata-external-labels")
	GONE_VALUE("memlock-rlimit", MEMORY)
	GONE_VALUE("mutex-profile-fraction", NO_RUNTIME)
	GONE_VALUE("block-profile-rate", NO_RUNTIME)
	GONE_VALUE("profiling-perf-event-buffer-poll-interval", POLLING)
	GONE_VALUE("profiling-perf-event-buffer-processing-interval", POLLING)
	GONE_VALUE("profiling-perf-event-buffer-worker-count", POLLING)
	GONE_SWITCH("profiling-enable-error-frames",
		"a stack that is not whole always says why in its last frame")
	GONE_SWITCH("metadata-disable-caching", "--profiling-label-ttl says how old labels get")
	GONE_SWITCH("metadata-enable-process-cmdline",
		"a rule in --config-path that names __meta_process_cmdline does that")
	GONE_VALUE("local-store-directory", "what cannot be sent waits in --spool-path")
	GONE_VALUE("remote-store-batch-write-interval", "use --profiling-duration")
	GONE_VALUE("remote-store-grpc-startup-backoff-time", RETRIES)
	GONE_VALUE("remote-store-grpc-connection-timeout", RETRIES)
	GONE_VALUE("remote-store-grpc-max-connection-retries", RETRIES)
	GONE_VALUE("remote-store-grpc-max-call-recv-msg-size", MESSAGES)
	GONE_VALUE("remote-store-grpc-max-call-send-msg-size", MESSAGES)
	GONE_VALUE("offline-mode-rotation-interval", "each batch is a file of its own")
	GONE_SWITCH("remote-store-rpc-logging-enable", "use --log-level debug")
	GONE_SWITCH("remote-store-use-v2-schema", "samples are sent as OTLP profiles")
	GONE_VALUE("debuginfo-temp-dir", NO_FILES)
	GONE_SWITCH("debuginfo-compress", "the sections are sent as they are in the file")
	GONE_VALUE("debuginfo-upload-timeout-duration", "an upload ends when nothing has gone for a minute")
	GONE_VALUE("debuginfo-upload-cache-duration", NO_CACHE)
	GONE_SWITCH("debuginfo-disable-caching", NO_CACHE)
	GONE_SWITCH("dwarf-unwinding-disable", ALWAYS_TABLES)
	GONE_SWITCH("dwarf-unwinding-mixed", ALWAYS_TABLES)
	GONE_VALUE("object-file-pool-eviction-policy", "files are closed when they are read")
	GONE_VALUE("object-file-pool-size", "files are closed when they are read")
	GONE_VALUE("otlp-address", NO_OTLP)
	GONE_VALUE("otlp-exporter", NO_OTLP)
	GONE_SWITCH("otlp-logging", NO_OTLP)
	GONE_VALUE("clock-sync-interval", "the clocks are compared in each --profiling-duration")
	GONE_SWITCH("instrument-cuda-launch", NO_GPU)
	GONE_SWITCH("merge-gpu-profiles", NO_GPU)
	GONE_VALUE("probe-config-file", NO_PROBES)
	GONE_VALUE("bpf-cupti-event-scale-factor", NO_GPU)
	GONE_SWITCH("analytics-opt-out", NO_SENDING)
	GONE_SWITCH("telemetry-disable-panic-reporting", NO_SENDING)
	GONE_VALUE("telemetry-stderr-buffer-size-kb", NO_SENDING)
	GONE_SWITCH("bpf-verbose-logging", "the eBPF programs count, and do not log: see /metrics")
	GONE_SWITCH("bpf-log-trace-pipe", "the eBPF programs count, and do not log: see /metrics")
	GONE_VALUE("bpf-events-buffer-size", "the ring has the size that the number of CPUs asks for")
	GONE_VALUE("bpf-verifier-log-level", "what the verifier refuses is always told")
	GONE_VALUE("bpf-verifier-log-size", "what the verifier refuses is always told")
	GONE_SWITCH("allow-running-as-non-root", "capabilities decide, not the user")
	GONE_SWITCH("allow-running-in-non-root-pid-namespace", "it is not forbidden")
	GONE_SWITCH("force-panic", NO_RUNTIME)
	GONE_SWITCH("ignore-unsafe-kernel-version", "the kernel is asked what it can do")
	GONE_VALUE("rate-limit-unwind-info", NO_LIMITS)
	GONE_VALUE("rate-limit-process-mappings", NO_LIMITS)
	GONE_VALUE("rate-limit-refresh-process-info", NO_LIMITS)
	GONE_VALUE("rate-limit-read", NO_LIMITS)
};
/* clang-format on */

const struct cli_group cli_parca_group = { "", parca_options, ARRAY_COUNT(parca_options), 0 };
