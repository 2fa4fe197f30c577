/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heavy load on a whole server: four senders push pprof files of 10,000 distinct random stacks
 * of 10 to 45 frames, ten series a call, as fast as they are answered; then the merged flame graph
 * and the pprof file of all samples are requested. The server is a separate process with its
 * default memory, so that its processor time and memory can be measured alone. The peer's figures
 * (Parca, same load, same kind of machine) are constants: it is not built here.
 *
 *   [FIRN_BENCH_STACKS=40000] bench_server_heavy [FIRN [SECONDS [FLAG...]]]
 *
 * FIRN_BENCH_STACKS is the number of distinct stacks: each call has the next 10,000.
 */
#include "bench_store.h"
#include "codec/codec.h"
#include "net/net.h"
#include "pb/pb.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum {
	SENDERS = 4,
	SERIES = 10,
	STACKS = 10000, /* of a call */
	STACKS_MAX = 200000,
	FUNCTIONS = 4096,
	DEPTH_LEAST = 10,
	DEPTH_MOST = 45
};
#define CALL_BYTES_MAX ((size_t)64 << 20)
#define PARCA_PER_CPU_SECOND 20000.0
#define PARCA_FLAME_MS 7257.0
#define PARCA_PPROF_MS 7375.0
#define WRITE_RAW "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
#define QUERY "/parca.query.v1alpha1.QueryService/Query"
#define TYPE "process_cpu:samples:count:cpu:nanoseconds:delta"

static uint32_t stacks[STACKS_MAX][DEPTH_MOST], depths[STACKS_MAX], stack_count = STACKS;
static char address[128];
static atomic_bool stop;
static atomic_ullong accepted, refused, calls, call_ns;
static atomic_uint sequence;

static uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(hash_u64(*state += 0x9E3779B97F4A7C15ull) % n);
}

static void make_stacks(void)
{
	uint64_t state = 7;
	for (uint32_t i = 0; i < stack_count; i++) {
		depths[i] = DEPTH_LEAST + random_below(&state, DEPTH_MOST - DEPTH_LEAST + 1);
		for (uint32_t d = 0; d < depths[i]; d++)
			stacks[i][d] = 1 + random_below(&state, FUNCTIONS);
	}
}

/* ---- a call ---- */

static void put_message(struct buf *out, uint32_t field, struct buf *message)
{
	pb_put_str_always(out, field, buf_view(message));
	buf_clear(message);
}

static void put_type(struct buf *out, uint32_t field, uint64_t name, uint64_t unit)
{
	CLEANUP(buf_deinit) struct buf m;
	buf_init(&m, 64);
	pb_put_u64(&m, 1, name);
	pb_put_u64(&m, 2, unit);
	put_message(out, field, &m);
}

/* Strings: "", samples, count, cpu, nanoseconds, then a name for each function. */
enum { TEXT_SAMPLES = 1, TEXT_COUNT, TEXT_CPU, TEXT_NANOSECONDS, TEXT_NAMES };

static void put_symbols(struct buf *out)
{
	static const char *const texts[] = { "", "samples", "count", "cpu", "nanoseconds" };
	CLEANUP(buf_deinit) struct buf m;
	CLEANUP(buf_deinit) struct buf line;
	char name[64];
	buf_init(&m, 256);
	buf_init(&line, 64);
	for (uint64_t i = 1; i <= FUNCTIONS; i++) {
		pb_put_u64(&line, 1, i);
		pb_put_u64(&line, 2, i % 900);
		pb_put_u64(&m, 1, i);
		put_message(&m, 4, &line);
		put_message(out, 4, &m);
		pb_put_u64(&m, 1, i);
		pb_put_u64(&m, 2, TEXT_NAMES + i - 1);
		put_message(out, 5, &m);
	}
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		pb_put_str_always(out, 6, str_of(texts[i]));
	for (uint32_t i = 1; i <= FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "package%u.(*Type%u).Method%u", i % 61, i % 397, i);
		pb_put_str_always(out, 6, str_of(name));
	}
}

/* profile.proto of a tenth of the call's stacks, which begin with `first`. */
static void put_profile(
	struct buf *out, uint32_t first, uint32_t series, int64_t time_ns, uint64_t *state)
{
	CLEANUP(buf_deinit) struct buf m;
	buf_init(&m, 1024);
	put_type(out, 1, TEXT_SAMPLES, TEXT_COUNT);
	for (uint32_t i = series; i < STACKS; i += SERIES) {
		uint64_t value = 1 + random_below(state, 20);
		uint32_t stack = (first + i) % stack_count;
		pb_put_packed_u32(&m, 1, stacks[stack], depths[stack]);
		pb_put_packed_u64(&m, 2, &value, 1);
		put_message(out, 2, &m);
	}
	put_symbols(out);
	pb_put_u64(out, 9, (uint64_t)time_ns);
	pb_put_u64(out, 10, (uint64_t)(10 * NS_PER_SEC));
	put_type(out, 11, TEXT_CPU, TEXT_NANOSECONDS);
	pb_put_u64(out, 12, 10000000);
}

static void put_label(struct buf *out, const char *name, const char *value)
{
	CLEANUP(buf_deinit) struct buf m;
	buf_init(&m, 256);
	pb_put_str(&m, 1, str_of(name));
	pb_put_str(&m, 2, str_of(value));
	put_message(out, 1, &m);
}

/* WriteRawRequest { series = 2 { labels = 1, samples = 2 { raw_profile = 1 } } } */
static void make_call(struct buf *out, uint64_t *state)
{
	CLEANUP(buf_deinit) struct buf profile, packed, labels, sample, series;
	struct buf *all[] = { &profile, &packed, &labels, &sample, &series };
	char value[16];
	unsigned number = atomic_fetch_add(&sequence, 1);
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_init(all[i], CALL_BYTES_MAX);
	for (uint32_t i = 0; i < SERIES; i++) {
		put_profile(&profile, number * STACKS % stack_count, i, clock_realtime_ns(), state);
		BENCH_CHECK(codec_gzip(profile.data, profile.len, 1, &packed) == OK);
		buf_clear(&profile);
		snprintf(value, sizeof(value), "%u", number % SENDERS * SERIES + i);
		put_label(&labels, "__name__", "process_cpu");
		put_label(&labels, "instance", value);
		put_message(&series, 1, &labels);
		put_message(&sample, 1, &packed);
		put_message(&series, 2, &sample);
		put_message(out, 2, &series);
	}
	BENCH_CHECK(buf_status(out) == OK);
}

static void *send_calls(void *ctx)
{
	uint64_t state = (uint64_t)(uintptr_t)ctx * 1000003;
	struct net_client *client;
	struct err e;
	CLEANUP(buf_deinit) struct buf call;
	CLEANUP(buf_deinit) struct buf answer;
	buf_init(&call, CALL_BYTES_MAX);
	buf_init(&answer, CALL_BYTES_MAX);
	BENCH_OK(net_client_new(address, &client, &e), &e);
	while (!atomic_load(&stop)) {
		bool retry;
		buf_clear(&call);
		buf_clear(&answer);
		make_call(&call, &state);
		int64_t begun = clock_monotonic_ns();
		enum status s = net_client_rpc(
			client, WRITE_RAW, buf_view(&call), 60 * NS_PER_SEC, &answer, &retry, &e);
		atomic_fetch_add(&call_ns, (unsigned long long)(clock_monotonic_ns() - begun));
		atomic_fetch_add(&calls, 1);
		if (s == OK)
			atomic_fetch_add(&accepted, STACKS);
		else if (atomic_fetch_add(&refused, 1) == 0)
			fprintf(stderr, "first refusal: %s\n", err_text(&e, s));
	}
	net_client_free(client);
	return NULL;
}

/* ---- the server ---- */

static pid_t start_server(const char *firn, const char *dir, char **flags, int flag_count)
{
	int ends[2];
	const char *argv[40] = { firn, "server", "--http-address", "127.0.0.1:0", "--storage-path",
		dir };
	for (int i = 0; i < flag_count && i < 32; i++)
		argv[6 + i] = flags[i];
	BENCH_CHECK(pipe(ends) == 0);
	pid_t pid = fork();
	BENCH_CHECK(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		execv(firn, (char **)(uintptr_t)argv);
		_exit(127);
	}
	close(ends[1]);
	FILE *log = fdopen(ends[0], "r");
	char line[1024];
	while (log && fgets(line, sizeof(line), log)) {
		char *at = strstr(line, "address=");
		if (at)
			(void)sscanf(at, "address=%127s", address);
		if (strstr(line, "msg=\"started\""))
			break;
	}
	BENCH_CHECK(address[0]);
	return pid;
}

static double cpu_seconds(pid_t pid)
{
	char path[64], text[1024] = "";
	unsigned long user = 0, kernel = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "r");
	BENCH_CHECK(f && fgets(text, sizeof(text), f));
	fclose(f);
	BENCH_CHECK(sscanf(strrchr(text, ')') + 2,
			    "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			    &kernel) == 2);
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static double status_mib(pid_t pid, const char *key)
{
	char path[64], line[256];
	double kib = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtod(line + strlen(key), NULL);
	if (f)
		fclose(f);
	return kib / 1024;
}

/* ---- questions ---- */

static void put_time(struct buf *out, uint32_t field, int64_t ns)
{
	CLEANUP(buf_deinit) struct buf m;
	buf_init(&m, 32);
	pb_put_u64(&m, 1, (uint64_t)(ns / NS_PER_SEC));
	put_message(out, field, &m);
}

/* The median of five times in milliseconds; *out_bytes: of the answer. 0: it was refused. */
static double ask(uint64_t report, pid_t server, double *out_cpu_ms, size_t *out_bytes)
{
	enum { TIMES = 5 };
	double ms[TIMES];
	struct net_client *client;
	struct err e;
	CLEANUP(buf_deinit) struct buf request, merge, answer;
	buf_init(&request, 4096);
	buf_init(&merge, 4096);
	buf_init(&answer, NET_ANSWER_MAX);
	BENCH_OK(net_client_new(address, &client, &e), &e);
	pb_put_str(&merge, 1, STR(TYPE));
	put_time(&merge, 2, clock_realtime_ns() - 3600 * NS_PER_SEC);
	put_time(&merge, 3, clock_realtime_ns() + 3600 * NS_PER_SEC);
	pb_put_u64(&request, 1, 2);
	put_message(&request, 3, &merge);
	pb_put_u64(&request, 5, report);
	double cpu = cpu_seconds(server);
	for (int i = 0; i < TIMES; i++) {
		bool retry;
		buf_clear(&answer);
		int64_t begun = clock_monotonic_ns();
		enum status s = net_client_rpc(
			client, QUERY, buf_view(&request), 120 * NS_PER_SEC, &answer, &retry, &e);
		double took = (double)(clock_monotonic_ns() - begun) * 1e-6;
		int at = i;
		for (; at > 0 && ms[at - 1] > took; at--)
			ms[at] = ms[at - 1];
		ms[at] = took;
		if (s != OK) {
			fprintf(stderr, "report %d: %s\n", (int)report, err_text(&e, s));
			net_client_free(client);
			return 0;
		}
	}
	net_client_free(client);
	*out_cpu_ms = (cpu_seconds(server) - cpu) * 1000 / TIMES;
	*out_bytes = answer.len;
	return ms[TIMES / 2];
}

static void report_question(const char *name, uint64_t report, pid_t server, double parca_ms)
{
	size_t bytes = 0;
	char note[160];
	double cpu_ms = 0, ms = ask(report, server, &cpu_ms, &bytes);
	snprintf(note, sizeof(note),
		"%.1f million samples; %.1f MB; %.0f ms of the server's CPUs; %s",
		(double)atomic_load(&accepted) * 1e-6, (double)bytes * 1e-6, cpu_ms,
		ms > 0 ? "middle of five" : "refused");
	bench_report(
		name, ms, "ms", "Parca over 0.8 million of them", ms > 0 ? parca_ms / ms : 0, note);
}

int main(int argc, char **argv)
{
	const char *firn = argc > 1 ? argv[1] : FIRN_PROGRAM;
	int seconds = argc > 2 ? atoi(argv[2]) : 20;
	char dir[64], note[256];
	pthread_t threads[SENDERS];
	struct err e;
	const char *wanted = getenv("FIRN_BENCH_STACKS");
	if (wanted)
		stack_count = (uint32_t)MIN(MAX(atoi(wanted), (int)STACKS), (int)STACKS_MAX);
	bench_dir(dir);
	make_stacks();
	pid_t pid = start_server(firn, dir, argv + 3, argc > 3 ? argc - 3 : 0);
	double begun = cpu_seconds(pid);
	for (uintptr_t i = 0; i < SENDERS; i++)
		BENCH_OK(os_thread_start(&threads[i], "send", send_calls, (void *)(i + 1), &e), &e);
	sleep((unsigned)seconds);
	atomic_store(&stop, true);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	double cpu = cpu_seconds(pid) - begun;
	double rate = (double)atomic_load(&accepted) / cpu;
	snprintf(note, sizeof(note),
		"%llu calls of %d samples in %d s, %llu refused, %.0f ms each; resident %.0f MiB, "
		"at most %.0f",
		atomic_load(&calls), STACKS, seconds, atomic_load(&refused),
		(double)atomic_load(&call_ns) * 1e-6 / (double)MAX(atomic_load(&calls), 1ull),
		status_mib(pid, "VmRSS:"), status_mib(pid, "VmHWM:"));
	bench_report("server.heavy_per_cpu_second", rate, "samples", "Parca",
		rate / PARCA_PER_CPU_SECOND, note);
	bench_report("server.heavy_refused", (double)atomic_load(&refused), "calls", "calls",
		(double)atomic_load(&refused) / (double)MAX(atomic_load(&calls), 1ull), "");
	report_question("server.heavy_flamegraph_arrow_ms", 5, pid, PARCA_FLAME_MS);
	report_question("server.heavy_pprof_ms", 1, pid, PARCA_PPROF_MS);
	fprintf(stderr, "resident after the questions: %.0f MiB, at most %.0f\n",
		status_mib(pid, "VmRSS:"), status_mib(pid, "VmHWM:"));
	kill(pid, SIGTERM);
	(void)waitpid(pid, NULL, 0);
	bench_clean(dir);
	return 0;
}
