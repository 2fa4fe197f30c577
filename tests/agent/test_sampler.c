/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler on the real kernel, over programs of known shape (tests/workloads). Counts samples,
 * not seconds: on a busy machine it takes longer, and finds the same.
 */
#include "kernel_bytes.h"
#include "live_run.h"
#include "need_sampling.h"
#include "test.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

/* Of one program: far above what it is (some 312,000 on Linux 6.18), far below the kernel's limit
 * of a million. */
#define VERIFIED_INSNS_ALARM 340000

/* ---- processes ---- */

static void tells_of_exec_and_exit(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	live_begin(&l, 19, 0);
	uint32_t id = live_publish_file(&l, "/bin/true");
	CHECK(id != 0);
	const struct file_key *key = &l.files.v[id - FRAME_FILE_FIRST].key;
	int pid = live_spawn((const char *const[]){ "/bin/true", NULL }, -1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	live_poll(&l, 0);
	const struct event_process *exec = NULL, *end = NULL;
	for (size_t i = 0; i < l.processes.len; i++) {
		const struct event_process *p = &l.processes.v[i];
		if (p->h.pid != (uint32_t)pid)
			continue;
		if (p->h.type == EVENT_EXEC)
			exec = p;
		else
			end = p;
	}
	assert_true(exec && end);
	CHECK(exec->notice.key.inode == key->inode && exec->notice.key.dev == key->dev);
	CHECK(exec->notice.vma_start < exec->notice.vma_end);
	CHECK_STR(str_of(exec->h.comm), "true");
	CHECK(exec->ppid == (uint32_t)getpid());
	CHECK(end->h.type == EVENT_EXIT && end->h.time_ns >= exec->h.time_ns);
	CHECK(exec->h.process_start_ns == end->h.process_start_ns);
	CHECK(exec->h.process_start_ns != 0);
	live_end(&l);
}

/* Of the samples from `from` on, those whose stacks end so after so many frames. Now and then one
 * is in the vDSO or in libc, which are known. */
static size_t count_ends(const struct live *l, size_t from, enum stack_end end, uint32_t frames,
	const struct live_sample **out_last)
{
	size_t n = 0;
	for (size_t i = from; i < l->samples.len; i++) {
		const struct live_sample *s = &l->samples.v[i];
		if (s->h.stack_end != end || s->user_count != frames)
			continue;
		*out_last = s;
		n++;
	}
	return n;
}

/* A file that nobody published: the leaf, why, and how to find the file. */
static void gives_notice_of_unknown_files(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct err e = { 0 };
	int pid = live_spawn((const char *const[]){ workload("deep"), "20", "60", NULL }, -1);
	live_begin(&l, FREQUENCY_HZ, pid);
	live_start(&l);
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (l.samples.len < 20 && clock_monotonic_ns() < deadline)
		live_poll(&l, 20);
	const struct live_sample *s = NULL;
	CHECK(count_ends(&l, 0, STACK_END_NO_FILE, 1, &s) >= 10);
	CHECK(live_user_frames(&l, s)[0] >> FRAME_FILE_SHIFT == FRAME_FILE_ADDRESS);
	const struct file_notice *n = &l.last_notice;
	CHECK(n->key.inode != 0);
	/* By what the notice says it is found, and from then on the stacks are whole. */
	char path[128];
	(void)snprintf(
		path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, n->vma_start, n->vma_end);
	struct objfile *obj = NULL;
	struct unwind_table *table = NULL;
	CHECK_OK(objfile_open(path, &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &table, &e), &e);
	CHECK_OK(sampler_publish(l.sampler, &n->key, 4000, table, &e), &e);
	unwind_table_free(table);
	objfile_close(obj);
	live_poll(&l, 0);
	size_t before = l.samples.len;
	deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (l.samples.len < before + 20 && clock_monotonic_ns() < deadline)
		live_poll(&l, 20);
	CHECK(count_ends(&l, before, STACK_END_ROOT, DEEP_FRAMES(20), &s) >= 10);
	CHECK(live_user_frames(&l, s)[0] >> FRAME_FILE_SHIFT == 4000);
	live_end(&l);
	live_kill(pid);
}

/* ---- epochs, replacement, limits ---- */

/* A stack that comes by its hash has the frames it had before; whatever the epochs do. */
static void restores_frames(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "deep", "30", "60", NULL });
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	for (int i = 0; r.live.samples.len < SAMPLES_WANTED && clock_monotonic_ns() < deadline;
		i++) {
		live_poll(&r.live, 10);
		if (i % 3 == 0)
			sampler_next_epoch(r.live.sampler);
		if (i % 7 == 0)
			sampler_next_epoch(r.live.sampler);
	}
	live_stop(&r.live);
	struct sampler_stats stats;
	sampler_read_stats(r.live.sampler, &stats);
	CHECK(stats.bpf.seen > 0 && stats.bpf.delivered > 1);
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *a = &r.live.samples.v[i];
		CHECK(a->h.type == EVENT_SAMPLE);
		for (size_t k = 0; k < i; k++) {
			const struct live_sample *b = &r.live.samples.v[k];
			if (a->hash != b->hash)
				continue;
			size_t count = (size_t)a->kernel_count + a->user_count;
			CHECK(a->user_count == b->user_count);
			CHECK(memcmp(r.live.frames.v + a->first_frame,
				      r.live.frames.v + b->first_frame,
				      count * sizeof(uint64_t)) == 0);
			break;
		}
	}
	check_conservation(&r.live);
	run_end(&r);
}

/* The walk came to the program's file when that was not known: the first of its frames is there by
 * its address, none by the file. Before it only what the program calls: libc and the vDSO. */
static bool missed_the_file(const struct run *r, const struct live_sample *s)
{
	const uint64_t *f = live_user_frames(&r->live, s);
	if (s->h.stack_end != STACK_END_NO_FILE || s->user_count == 0 ||
		f[s->user_count - 1] >> FRAME_FILE_SHIFT != FRAME_FILE_ADDRESS)
		return false;
	for (uint32_t i = 0; i + 1 < s->user_count; i++) {
		uint64_t file = f[i] >> FRAME_FILE_SHIFT;
		if (file == r->text_id || file == FRAME_FILE_ADDRESS)
			return false;
	}
	return true;
}

/* Tables are replaced and retracted all the time while they are read: a sample may then miss the
 * file, but no stack is ever wrong. */
static void never_reads_a_half_written_table(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	struct err e = { 0 };
	run_begin(&r, (const char *const[]){ "deep", "100", "60", NULL });
	struct objfile *obj = NULL;
	struct unwind_table *table = NULL;
	CHECK_OK(objfile_open(workload("deep"), &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &table, &e), &e);
	const struct file_key key = r.live.files.v[r.text_id - FRAME_FILE_FIRST].key;
	struct sampler_stats before;
	sampler_read_stats(r.live.sampler, &before);
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	uint32_t rounds = 0;
	while (r.live.samples.len < 4 * SAMPLES_WANTED && clock_monotonic_ns() < deadline) {
		for (int i = 0; i < 20; i++) {
			if (++rounds % 5 == 0)
				sampler_retract(r.live.sampler, &key);
			CHECK_OK(sampler_publish(r.live.sampler, &key, r.text_id, table, &e), &e);
		}
		live_poll(&r.live, 1);
	}
	live_stop(&r.live);
	size_t whole = 0, missed_below = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		bool missed = missed_the_file(&r, s);
		bool right = stack_end_is_whole(s->h.stack_end);
		whole += right && s->user_count == DEEP_FRAMES(100);
		missed_below += missed && s->user_count > 1;
		if (!missed && !right)
			print_message("ends %u, %u frames\n", s->h.stack_end, s->user_count);
		CHECK(missed || right);
	}
	print_message("%zu samples, %zu whole, %u publications; %zu missed the file below libc\n",
		r.live.samples.len, whole, rounds, missed_below);
	CHECK(whole >= SAMPLES_NEEDED);
	struct sampler_stats after;
	sampler_read_stats(r.live.sampler, &after);
	CHECK(after.table_bytes == before.table_bytes && after.files == before.files);
	unwind_table_free(table);
	objfile_close(obj);
	check_conservation(&r.live);
	run_end(&r);
}

/* The smallest ring, filled faster than it is read: losses, and each one counted. */
static void counts_what_the_ring_does_not_take(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct err e = { 0 };
	struct live l = { 0 };
	int pid = live_spawn((const char *const[]){ workload("storm"), "60", NULL }, -1);
	const struct sampler_config config = {
		.frequency_hz = 4999, .ring_bytes = 4096, .only_pid = pid
	};
	const struct sampler_events events = { &l, live_on_sample, live_on_process };
	CHECK_OK(sampler_open(&config, &events, &l.sampler, &e), &e);
	live_start(&l);
	struct sampler_stats s = { 0 };
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (s.bpf.lost_ring < 50 && clock_monotonic_ns() < deadline) {
		(void)usleep(20000);
		sampler_read_stats(l.sampler, &s);
	}
	live_stop(&l);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.bpf.lost_ring >= 50 && s.bpf.delivered > 0);
	check_conservation(&l);
	live_kill(pid);
	live_end(&l);
}

static void refuses_what_cannot_be(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct sampler *s = NULL;
	struct err e = { 0 };
	const struct sampler_events events = { 0 };
	struct sampler_config config = { .frequency_hz = 0 };
	CHECK(sampler_open(&config, &events, &s, &e) == E_INVALID);
	config.frequency_hz = 10001;
	CHECK(sampler_open(&config, &events, &s, &e) == E_INVALID);
	config.frequency_hz = 19;
	config.ring_bytes = 5000;
	CHECK(sampler_open(&config, &events, &s, &e) == E_INVALID);
	CHECK(s == NULL);
}

/* Of each program, as the kernel counted them; all are there. */
static void is_verified_with_ease(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin_with(
		&l, &(struct sampler_config){ .frequency_hz = 19, .off_cpu_probability = 1 });
	sampler_read_stats(l.sampler, &s);
	CHECK(s.program_count == 5);
	for (uint32_t i = 0; i < s.program_count; i++) {
		print_message("%s: %u instructions verified\n", s.programs[i].name,
			s.programs[i].verified_insns);
		CHECK(s.programs[i].verified_insns < VERIFIED_INSNS_ALARM);
	}
	live_end(&l);
}

static void stays_small(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, 19, 0);
	live_start(&l);
	sampler_read_stats(l.sampler, &s);
	print_message("%.1f MiB in the kernel, %u CPUs, %u files\n",
		(double)s.kernel_bytes / (1 << 20), s.cpus, s.files);
	CHECK(s.kernel_bytes > 0 && s.kernel_bytes < 16u << 20);
	live_check_kernel_bytes(&l, &(struct sampler_config){ .frequency_hz = 19 });
	CHECK(s.cpus == (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(s.files >= 2 && s.table_bytes > 0);
	sampler_stop(l.sampler);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.cpus == 0);
	live_end(&l);
}

/* Nothing to do costs nothing: one system call a second and a little. */
static void costs_next_to_nothing_when_idle(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	const int64_t spent_ns = 3 * NS_PER_SEC;
	int pid = live_spawn((const char *const[]){ "sleep", "600", NULL }, -1);
	live_begin(&l, 19, pid);
	live_start(&l);
	live_poll(&l, 500);
	struct rusage before, after;
	CHECK(getrusage(RUSAGE_THREAD, &before) == 0);
	double stolen_ns = live_stolen_ns();
	int64_t cpu = clock_thread_cpu_ns(), begin = clock_monotonic_ns();
	int polls = 0;
	while (clock_monotonic_ns() - begin < spent_ns) {
		live_poll(&l, 500);
		polls++;
	}
	double used_ns = (double)(clock_thread_cpu_ns() - cpu);
	stolen_ns = live_stolen_ns() - stolen_ns;
	CHECK(getrusage(RUSAGE_THREAD, &after) == 0);
	print_message("%.4f %% of a CPU, %d polls, %ld times asleep\n",
		used_ns * 100 / (double)spent_ns, polls, after.ru_nvcsw - before.ru_nvcsw);
	/* It sleeps for as long as it may; the bound is for what a fault would take. */
	CHECK(polls <= 7);
	CHECK(used_ns <= 0.03 * (double)spent_ns + stolen_ns);
	live_kill(pid);
	live_end(&l);
}

/* ---- CPUs ---- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	fd_cleanup(&fd);
	return ok;
}

static uint32_t attached_within(struct live *l, uint32_t want)
{
	struct sampler_stats s = { 0 };
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	do {
		live_poll(l, 100);
		sampler_read_stats(l->sampler, &s);
	} while (s.cpus != want && clock_monotonic_ns() < deadline);
	return s.cpus;
}

static void follows_cpus_that_come_and_go(void **state)
{
	(void)state;
	NEED_SAMPLING();
	const char *path = "/sys/devices/system/cpu/cpu1/online";
	if (!getenv("FIRN_TEST_HOTPLUG"))
		SKIP("takes a CPU from the whole machine for a second; set FIRN_TEST_HOTPLUG=1");
	if (access(path, W_OK) != 0)
		SKIP("CPU 1 cannot be taken offline here");
	struct live l;
	uint32_t all = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	live_begin(&l, FREQUENCY_HZ, 0);
	live_start(&l);
	bool off = write_file(path, "0");
	uint32_t fewer = off ? attached_within(&l, all - 1) : all;
	bool on = write_file(path, "1");
	uint32_t again = attached_within(&l, all);
	CHECK(off && on && fewer == all - 1 && again == all);
	/* And the new event works. */
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
	size_t before = l.samples.len;
	int64_t until = clock_monotonic_ns() + 200000000;
	while (clock_monotonic_ns() < until)
		;
	live_stop(&l);
	size_t on_1 = 0;
	for (size_t i = before; i < l.samples.len; i++)
		on_1 += l.samples.v[i].h.cpu == 1;
	CHECK(on_1 > 10);
	live_end(&l);
}

/* Turn the perf events of this process off behind its back. */
static uint32_t silence_events(void)
{
	uint32_t count = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
		char path[300], target[64] = "";
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) > 0 &&
			strstr(target, "[perf_event]") &&
			ioctl(atoi(entry->d_name), PERF_EVENT_IOC_DISABLE, 0) == 0)
			count++;
	}
	(void)closedir(d);
	return count;
}

/* What has not fired yet is not dead: at one sample a second the first look comes sooner. */
static void waits_for_the_first_time(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, 1, 0);
	sampler_pause(l.sampler, true); /* as the agent, until it knows its files */
	live_start(&l);
	(void)usleep(1200000);
	sampler_pause(l.sampler, false);
	int64_t until = clock_monotonic_ns() + 500 * NS_PER_MS; /* one look, at once */
	while (clock_monotonic_ns() < until)
		live_poll(&l, 50);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.cpus > 0 && s.cpus_renewed == 0);
	live_stop(&l);
	live_end(&l);
}

/* As those of a CPU that went and came between two looks: the kernel has forgotten them. */
static void renews_events_that_are_silent(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, FREQUENCY_HZ, 0);
	live_start(&l);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.cpus > 0 && s.cpus_renewed == 0);
	CHECK(silence_events() == s.cpus);
	uint64_t before = s.bpf.samples + s.bpf.idle;
	int64_t deadline = clock_monotonic_ns() + 60 * NS_PER_SEC;
	uint32_t cpus = s.cpus;
	do {
		live_poll(&l, 100);
		sampler_read_stats(l.sampler, &s);
	} while ((s.cpus_renewed < cpus || s.bpf.samples + s.bpf.idle < before + 100) &&
		 clock_monotonic_ns() < deadline);
	CHECK(s.cpus_renewed >= cpus && s.cpus == cpus);
	CHECK(s.bpf.samples + s.bpf.idle >= before + 100);
	live_stop(&l);
	live_end(&l);
}

TEST_MAIN(cmocka_unit_test(refuses_what_cannot_be), cmocka_unit_test(stays_small),
	cmocka_unit_test(is_verified_with_ease), cmocka_unit_test(tells_of_exec_and_exit),
	cmocka_unit_test(gives_notice_of_unknown_files), cmocka_unit_test(restores_frames),
	cmocka_unit_test(never_reads_a_half_written_table),
	cmocka_unit_test(counts_what_the_ring_does_not_take),
	cmocka_unit_test(costs_next_to_nothing_when_idle),
	cmocka_unit_test(waits_for_the_first_time), cmocka_unit_test(renews_events_that_are_silent),
	cmocka_unit_test(follows_cpus_that_come_and_go))
