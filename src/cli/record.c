/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a server and an agent run as with `firn up`, but with a directory and a socket of their own,
 * which are removed at the end. When the agent has sent its last batch, the server is asked for the
 * report until it has all names that it can find.
 */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/ask/ask.h"
#include "cli/flags/flags.h"
#include "cli/process/process.h"
#include "fetch/fetch.h"

#define PROFILE_TYPE "parca_agent:samples:count:cpu:nanoseconds:delta"
#define STORE_MEMORY_BYTES ((uint64_t)512 << 20)
#define FLUSH_INTERVAL_NS NS_PER_SEC
/* How long reading names from large debug files may take. */
#define NAMES_PATIENCE_NS (60 * NS_PER_SEC)
#define PENDING_TEXT_BYTES 512          /* of the list of files that have no names yet */
#define AGENT_STOP_NS (90 * NS_PER_SEC) /* in it the last samples wait for tables */
#define ASK_TIMEOUT_NS (120 * NS_PER_SEC)
#define METRICS_BYTES_MAX ((size_t)4 << 20)
#define FLAME_BYTES_MAX ((size_t)1 << 30)

struct record {
	uint32_t frequency_hz;
	int64_t duration_ns;
	const char *pid_text;
	bool all;
	const char *output;
	const char *format;
	struct cli_log_flags log;
	/* ---- */
	char *const *command;
	int pid;    /* of -p */
	int pid_fd; /* readable when the process has ended, also as a zombie; -1: none */
	char dir[CLI_TEMP_DIR_BYTES];
	char address[96];
	char cache[PATH_MAX];
	struct launch launch;
	int64_t began_ns; /* monotonic; 0: not begun yet */
	int64_t ended_ns;
	int wait_status; /* of the command's end */
	bool command_ended, not_started;
	bool shows_progress;
	double samples, lost; /* samples below 0: unknown */
	int exit_code;
};

/* The suffix of -o's name gives the format. */
static const struct record_format {
	const char *name;
	const char *suffix;
	const char *path; /* of the API */
} formats[] = {
	{ "pprof", ".pb.gz", "/api/pprof" },
	{ "html", ".html", "/api/flamegraph" },
	{ "folded", ".folded", "/api/flamegraph" },
	{ "speedscope", ".speedscope.json", "/api/flamegraph" },
	{ "firefox", ".firefox.json", "/api/flamegraph" },
	{ "text", ".txt", "/api/top" },
};

/* clang-format off */
static const struct cli_option options[] = {
	{ .name = "frequency", .letter = 'F', .kind = CLI_NUMBER,
	  .at = offsetof(struct record, frequency_hz), .value = "HZ", .otherwise = "997",
	  .least = 1, .most = 10000, .help = "Samples a second on each CPU." },
	{ .name = "duration", .letter = 'd', .kind = CLI_DURATION,
	  .at = offsetof(struct record, duration_ns), .value = "TIME",
	  .help = "Stop after this time: 30s, 5m. Default: when the command or the process ends, "
		  "or Ctrl-C is pressed." },
	{ .name = "pid", .letter = 'p', .kind = CLI_TEXT, .at = offsetof(struct record, pid_text),
	  .value = "PID", .help = "Record this process, and what it starts." },
	{ .name = "all", .letter = 'a', .kind = CLI_BOOL, .at = offsetof(struct record, all),
	  .help = "Record every process and the kernel." },
	{ .name = "output", .letter = 'o', .kind = CLI_TEXT, .at = offsetof(struct record, output),
	  .value = "FILE", .help = "Where the profile goes. Default: firn.pb.gz, or firn with the suffix of --format." },
	{ .name = "format", .kind = CLI_CHOICE, .at = offsetof(struct record, format),
	  .value = "FORMAT", .choices = "pprof html folded speedscope firefox text",
	  .help = "pprof (.pb.gz), html (a flame graph in one file), folded, speedscope "
		  "(.speedscope.json), firefox (.firefox.json: profiler.firefox.com), text (a table). "
		  "Default: by the suffix of FILE, else pprof." },
};
/* clang-format on */

static const struct cli_command command = {
	.name = "record",
	.summary = "firn record: record a command, a process or the whole host to a file.",
	.args = "[-- COMMAND...]",
	.args_most = UINT32_MAX,
	.args_are_a_command = true,
	.text = "Needs no server, and the same privileges as `firn up`. A command is recorded with "
		"everything that it starts; the exit code is the command's.\n"
		"\n"
		"  sudo firn record -o build.html -- make -j2\n"
		"  sudo firn record -p 4711 -d 30s -o app.pb.gz && firn open app.pb.gz\n"
		"  sudo firn record -a -d 10s --format text -o /dev/stdout",
	.groups = { { "Recording", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1,
};

/* ---- requests to the server ---- */

static bool get(const struct record *r, const char *path, struct buf *out)
{
	struct err e = { 0 };
	struct fetch *f = NULL;
	int http_status = 0;
	enum status s = fetch_new(&(struct fetch_config){ .address = r->address }, &f, &e);
	if (s == OK)
		s = fetch_get(f, path, ASK_TIMEOUT_NS, &http_status, out, &e);
	fetch_free(f);
	return s == OK && http_status == 200;
}

/* Sum of a metric over its labels. */
static double metric(struct str text, const char *name)
{
	double sum = 0, value = 0;
	struct str line;
	while (str_split(&text, '\n', &line)) {
		if (!str_starts(line, str_of(name)))
			continue;
		struct str rest = str_sub(line, strlen(name), line.len);
		if (!rest.len || (rest.p[0] != ' ' && rest.p[0] != '{'))
			continue;
		size_t blank = line.len;
		while (blank && line.p[blank - 1] != ' ')
			blank--;
		if (str_parse_double(str_sub(line, blank, line.len), &value))
			sum += value;
	}
	return sum;
}

/* The number of addresses whose names are still being read; `files`: in which files, as a JSON
 * list. */
static uint64_t pending_names(const struct record *r, char *files, size_t size)
{
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, FLAME_BYTES_MAX);
	files[0] = 0;
	if (!get(r, "/api/flamegraph?from=0&to=now&trim=0&query=" PROFILE_TYPE, &body))
		return 0;
	buf_u8(&body, 0);
	if (buf_status(&body) != OK)
		return 0;
	const char *at = strstr((const char *)body.data, "\"pending\":");
	const char *list = at ? strstr(at, "\"pending_files\":[") : NULL;
	const char *end = list ? strstr(list, "],\"strings\":") : NULL;
	if (end) {
		list += strlen("\"pending_files\":[");
		snprintf(files, size, "%.*s", (int)MIN((size_t)(end - list), size - 1), list);
	}
	return at ? strtoul(at + strlen("\"pending\":"), NULL, 10) : 0;
}

static void wait_for_names(const struct record *r)
{
	char files[PENDING_TEXT_BYTES];
	uint64_t pending;
	int64_t end = clock_monotonic_ns() + NAMES_PATIENCE_NS;
	while ((pending = pending_names(r, files, sizeof(files))) && clock_monotonic_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = 200 * NS_PER_MS }, NULL);
	if (r->shows_progress)
		fputs("\r\033[K", stderr);
	if (pending)
		cli_complain("%llu addresses stay without names: after %d s the symbols of %s were "
			     "still being read",
			(unsigned long long)pending, (int)(NAMES_PATIENCE_NS / NS_PER_SEC),
			files[0] ? files : "some files");
}

/* ---- the course of a recording ---- */

static void on_server(void *ctx, const char *address, const char *dial)
{
	(void)ctx;
	(void)address;
	(void)dial;
}

static void on_agent(void *ctx)
{
	struct record *r = ctx;
	if (r->began_ns)
		return; /* the server was started again */
	r->began_ns = clock_monotonic_ns();
	launch_go(&r->launch);
}

static void on_watch_end(void *ctx, int wait_status)
{
	struct record *r = ctx;
	r->command_ended = true;
	r->wait_status = wait_status;
	r->not_started = launch_failed(&r->launch);
	r->launch.pid = 0;
}

static double seconds_since(int64_t begin_ns, int64_t end_ns)
{
	return (double)(end_ns - begin_ns) / (double)NS_PER_SEC;
}

static void show_progress(const struct record *r)
{
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, METRICS_BYTES_MAX);
	if (!get(r, "/metrics", &body))
		return;
	fprintf(stderr, "\r\033[Krecording: %.0f s, %.0f samples",
		seconds_since(r->began_ns, clock_monotonic_ns()),
		metric(buf_view(&body), "firn_store_samples_total"));
	fflush(stderr);
}

static bool on_second(void *ctx, int64_t *next_ns)
{
	struct record *r = ctx;
	if (!r->began_ns)
		return false;
	if (r->shows_progress)
		show_progress(r);
	struct pollfd target = { .fd = r->pid_fd, .events = POLLIN };
	if (r->pid_fd >= 0 && poll(&target, 1, 0) == 1)
		return true;
	if (!r->duration_ns)
		return false;
	int64_t left = r->duration_ns - (clock_monotonic_ns() - r->began_ns);
	*next_ns = MIN(*next_ns, clock_monotonic_ns() + left);
	return left <= 0;
}

static void count_samples(struct record *r)
{
	CLEANUP(buf_deinit) struct buf body;
	buf_init(&body, METRICS_BYTES_MAX);
	if (!get(r, "/metrics", &body))
		return;
	struct str text = buf_view(&body);
	r->samples = metric(text, "firn_store_samples_total");
	r->lost = metric(text, "firn_agent_samples_lost_total") -
		  metric(text, "firn_agent_samples_lost_total{reason=\"excluded\"}");
}

static void summarize(const struct record *r)
{
	double seconds = seconds_since(r->began_ns, r->ended_ns);
	if (r->samples != 0 && r->exit_code == CLI_OK)
		fprintf(stderr, "%.0f sample%s in %.1f s -> %s\n", r->samples,
			r->samples == 1 ? "" : "s", seconds, r->output);
	else if (r->samples == 0)
		cli_complain("no samples in %.1f s: nothing of it ran on a CPU when one was taken; "
			     "%s is not written",
			seconds, r->output);
	if (r->lost > 0)
		cli_complain("%.0f samples were lost", r->lost);
}

static void on_agent_end(void *ctx, const char *dial)
{
	struct record *r = ctx;
	(void)dial;
	if (!r->began_ns)
		return;
	r->ended_ns = clock_monotonic_ns();
	launch_end(&r->launch);
	if (r->not_started)
		return;
	if (r->shows_progress)
		fputs("\r\033[Kreading symbols", stderr);
	wait_for_names(r);
	count_samples(r);
	const struct cli_ask ask = {
		.server = r->address, .query = PROFILE_TYPE, .from = "0", .to = "now"
	};
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, 1 << 16);
	const char *format = r->format;
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++)
		if (strcmp(formats[i].name, format) == 0)
			cli_url_begin(&url, formats[i].path);
	bool pprof = strcmp(format, "pprof") == 0;
	if (r->shows_progress)
		fputs("\r\033[K", stderr);
	/* If the reader of the output ends early (`| head`), this process must not, as it has a
	 * folder to remove. SIGPIPE is ignored only now, since the command would have inherited
	 * that. */
	signal(SIGPIPE, SIG_IGN);
	r->exit_code = CLI_OK; /* also for a program that only slept: no samples */
	if (r->samples != 0)
		r->exit_code = cli_ask(&ask, &url, pprof ? NULL : format, r->output);
	summarize(r);
}

/* ---- before and after ---- */

/* Whether the file's suffix is that of no format. */
static bool has_other_ending(const char *path)
{
	const char *name = strrchr(path, '/');
	return strchr(name ? name + 1 : path, '.') != NULL;
}

static bool settle_output(struct record *r)
{
	static char name[64];
	struct err e = { 0 };
	if (!r->format && r->output)
		r->format = cli_format_of(r->output);
	if (!r->format) {
		r->format = "pprof";
		if (r->output && has_other_ending(r->output)) {
			cli_complain("--output: the ending of %s names no format: .pb.gz, .html, "
				     ".folded, .speedscope.json, .firefox.json and .txt do, and so "
				     "does --format",
				r->output);
			return false;
		}
	}
	for (size_t i = 0; !r->output && i < ARRAY_COUNT(formats); i++)
		if (strcmp(formats[i].name, r->format) == 0) {
			snprintf(name, sizeof(name), "firn%s", formats[i].suffix);
			r->output = name;
		}
	enum status s = cli_output_check(r->output, &e);
	if (s != OK)
		cli_complain("--output: %s", err_text(&e, s));
	return s == OK;
}

static bool settle_target(struct record *r, int argc, char **argv, int at)
{
	uint64_t pid = 0;
	int targets = (at < argc) + (r->pid_text != NULL) + r->all;
	if (targets != 1) {
		cli_complain("record %s `firn record -- COMMAND`, `firn record -p PID` or `firn "
			     "record -a`",
			targets ? "one thing at a time:" : "what?");
		return false;
	}
	if (at < argc)
		r->command = argv + at;
	if (!r->pid_text)
		return true;
	if (!str_parse_u64(str_of(r->pid_text), 10, &pid) || pid == 0 || pid > INT_MAX) {
		cli_complain("--pid: '%s' is no number of a process", r->pid_text);
		return false;
	}
	r->pid = (int)pid;
	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (r->pid_fd >= 0)
		return true;
	if (errno == EINVAL)
		cli_complain("--pid: %s is a thread; its process is in Tgid of /proc/%s/status",
			r->pid_text, r->pid_text);
	else
		cli_complain("--pid: there is no process %s", r->pid_text);
	return false;
}

static void clean_up(struct record *r)
{
	launch_end(&r->launch);
	fd_cleanup(&r->pid_fd);
	cli_temp_dir_remove(r->dir);
}

static bool make_dir(struct record *r)
{
	if (!cli_temp_dir_make("record", r->dir))
		return false;
	snprintf(r->address, sizeof(r->address), "unix:%s/socket", r->dir);
	return true;
}

static int run(struct record *r)
{
	struct supervise_config c = { .with_agent = true,
		.on_server = on_server,
		.on_agent = on_agent,
		.on_second = on_second,
		.on_watch_end = on_watch_end,
		.on_agent_end = on_agent_end,
		.ctx = r };
	struct err e = { 0 };
	if (r->command && launch_prepare(r->command, &r->launch, &e) != OK) {
		cli_complain("%s", e.text);
		return CLI_FAILED;
	}
	server_config_default(&c.server);
	c.server.http_address = r->address;
	c.server.storage_path = r->dir;
	c.server.symbols_on_demand = true;
	c.server.storage_memory_bytes = STORE_MEMORY_BYTES;
	agent_config_default(&c.agent);
	c.agent.frequency_hz = r->frequency_hz;
	c.agent.flush_interval_ns = FLUSH_INTERVAL_NS;
	c.agent.is_recording = true;
	c.agent.only_pid = r->command ? r->launch.pid : r->pid;
	c.agent.cache_dir = cli_cache_path(r->cache, "unwind") ? r->cache : "";
	c.agent_stop_ns = AGENT_STOP_NS;
	c.watch_pid = r->launch.pid;
	r->exit_code = CLI_FAILED; /* until there is a profile */
	int code = supervise_run(&c);
	if (!r->not_started && (r->exit_code != CLI_OK || code != CLI_OK))
		return CLI_FAILED;
	return r->command_ended ? launch_exit_code(r->wait_status) : CLI_OK;
}

int cli_record(int argc, char **argv)
{
	struct record r = {
		.samples = -1, .pid_fd = -1, .launch = { .go_fd = -1, .failed_fd = -1 }
	};
	struct cli_command c = command;
	c.groups[1] = cli_quiet_log_group;
	c.groups[1].at = offsetof(struct record, log);
	c.group_count = 2;
	int at = 0, code = CLI_OK;
	if (!cli_parse(&c, argc, argv, &r, &at, &code))
		return code;
	if (!cli_log_apply(&r.log) || !settle_target(&r, argc, argv, at))
		return CLI_USAGE;
	struct err e = { 0 };
	enum status s = r.command ? launch_find(r.command[0], &e) : OK;
	if (s != OK) {
		cli_complain("%s", err_text(&e, s));
		return s == E_NOTFOUND ? LAUNCH_NO_COMMAND : LAUNCH_NOT_STARTED;
	}
	s = agent_probe(&e);
	if (s == OK)
		s = agent_probe_pids(&e);
	if (s != OK) {
		cli_complain("%s", err_text(&e, s));
		return CLI_FAILED;
	}
	if (!settle_output(&r))
		return CLI_FAILED;
	r.shows_progress = isatty(STDERR_FILENO);
	code = make_dir(&r) ? run(&r) : CLI_FAILED;
	clean_up(&r);
	return code;
}
