/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF program's walk of stacks on the real kernel, over programs of known shape
 * (tests/workloads) and some of the system. Counts samples, not seconds: on a busy machine it takes
 * longer, and finds the same.
 */
#include "live_run.h"
#include "need_sampling.h"
#include "test.h"

/* Percent of the samples of a process (0: of all) that are whole stacks; prints what is not. */
static double whole_percent(const struct live *l, uint32_t pid, const char *name)
{
	size_t whole = 0, all = 0;
	for (size_t i = 0; i < l->samples.len; i++) {
		const struct live_sample *s = &l->samples.v[i];
		if (pid && s->h.pid != pid)
			continue;
		all++;
		if (stack_end_is_whole(s->h.stack_end)) {
			whole++;
			continue;
		}
		const uint64_t *f = live_user_frames(l, s);
		uint64_t last = s->user_count ? f[s->user_count - 1] : 0;
		print_message("[%s] %s ends %u, %u frames, last %" PRIu64 "+%" PRIx64 "\n", name,
			s->h.comm, s->h.stack_end, s->user_count, last >> FRAME_FILE_SHIFT,
			(uint64_t)(last & FRAME_OFFSET_MASK));
	}
	double percent = all ? 100.0 * (double)whole / (double)all : 0;
	print_message("[%s] %zu samples, %.1f %% whole\n", name, all, percent);
	return percent;
}

static double depth_percent(const struct live *l, uint32_t pid, uint32_t depth)
{
	size_t n = 0, all = 0;
	for (size_t i = 0; i < l->samples.len; i++) {
		all += l->samples.v[i].h.pid == pid;
		n += l->samples.v[i].h.pid == pid && l->samples.v[i].user_count == depth;
	}
	return all ? 100.0 * (double)n / (double)all : 0;
}

/* ---- whole stacks, of the depth they have ---- */

/* clang-format off */
static const struct {
	const char *name;
	const char *args[6];
	uint32_t depth;       /* frames of the samples in its loop; 0: not one depth */
	double depth_percent; /* of the samples at least have that depth */
} shapes[] = {
	{ "deep 10", { "deep", "10", "60" }, DEEP_FRAMES(10), 95 },
	{ "deep 100", { "deep", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "deep 1000", { "deep", "1000", "60" }, DEEP_FRAMES(1000), 95 },
	{ "stripped", { "deep_stripped", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "static", { "deep_static", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "static PIE", { "deep_static_pie", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "dlopen", { "dlopener", WORKLOADS_DIR "/libplugin.so", "60" }, 6, 90 },
	/* handler_leaf, on_signal, the restorer; interrupted, 21 of recurse, main and below. */
	{ "signal on another stack", { "signals", "60" }, 3 + 1 + 21 + 4, 5 },
	/* inner and outer of the machine code, run, main and below. */
	{ "machine code in anonymous memory", { "jit", "60" }, 2 + 1 + 4, 95 },
	{ "storm of mappings", { "storm", "60" }, 0, 0 },
	{ "C++", { "burner", "60" }, 0, 0 },
};
/* clang-format on */

/* Polls until there are so many samples of a process; how many. */
static size_t wait_for_samples(struct live *l, uint32_t pid, size_t wanted)
{
	size_t theirs = 0, until = l->samples.len;
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (theirs < wanted && clock_monotonic_ns() < deadline) {
		live_poll(l, 50);
		for (; until < l->samples.len; until++)
			theirs += l->samples.v[until].h.pid == pid;
	}
	return theirs;
}

/* One sampler for all: the kernel takes a second to verify its programs. */
static void walks_whole_stacks(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	live_begin(&l, FREQUENCY_HZ, 0);
	(void)live_publish_file(&l, workload("libplugin.so"));
	FOR_EACH_CASE (c, shapes) {
		live_publish_program(&l, workload(c->args[0])); /* its libraries, as it starts */
		CHECK_CASE(c, live_publish_file(&l, workload(c->args[0])) != 0);
	}
	live_start(&l);
	FOR_EACH_CASE (c, shapes) {
		const char *args[8] = { workload(c->args[0]) };
		memcpy(args + 1, c->args + 1, sizeof(c->args) - sizeof(c->args[0]));
		int pid = live_spawn(args, -1);
		CHECK_CASE(
			c, wait_for_samples(&l, (uint32_t)pid, SAMPLES_WANTED) >= SAMPLES_NEEDED);
		live_kill(pid);
		CHECK_CASE(c, whole_percent(&l, (uint32_t)pid, c->name) >= 99);
		if (c->depth)
			CHECK_CASE(
				c, depth_percent(&l, (uint32_t)pid, c->depth) >= c->depth_percent);
	}
	live_stop(&l);
	check_conservation(&l);
	live_end(&l);
}

/* Code that keeps no frame pointer, with a zero in it: nothing says that the stack ends there. */
static void a_zero_in_machine_code_is_no_root(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "jit", "60", "zero", NULL });
	run_until(&r, SAMPLES_WANTED);
	live_stop(&r.live);
	size_t cut = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		cut += s->h.stack_end == STACK_END_ZERO && s->user_count == 2;
	}
	CHECK(cut * 100 >= r.live.samples.len * 95 && cut >= SAMPLES_NEEDED);
	check_conservation(&r.live);
	run_end(&r);
}

static void cuts_what_is_too_deep(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "deep", "3000", "60", NULL });
	run_until(&r, SAMPLES_WANTED);
	live_stop(&r.live);
	size_t cut = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		cut += s->h.stack_end == STACK_END_DEPTH && s->user_count == SAMPLE_USER_FRAMES_MAX;
	}
	CHECK(cut * 100 >= r.live.samples.len * 95 && cut >= SAMPLES_NEEDED);
	check_conservation(&r.live);
	run_end(&r);
}

/* The dynamic linker at work for a call of the plugin: what is below _dl_runtime_resolve, which
 * finds its frame by rbx, must find rbx. */
static void walks_through_the_dynamic_linker(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	char plugin[512];
	(void)snprintf(plugin, sizeof(plugin), "%s", workload("liblazy_plugin.so"));
	run_begin(&r, (const char *const[]){ "lazy", plugin, "60", NULL });
	uint32_t plugin_id = live_publish_file(&r.live, plugin);
	uint32_t ld_id = live_publish_file(&r.live, "/lib64/ld-linux-x86-64.so.2");
	CHECK(plugin_id && ld_id);
	run_until(&r, 3 * SAMPLES_WANTED);
	live_stop(&r.live);
	size_t through = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		const uint64_t *f = live_user_frames(&r.live, s);
		bool found = false;
		for (uint32_t k = 0; k + 1 < s->user_count; k++)
			found = found || (f[k] >> FRAME_FILE_SHIFT == ld_id &&
						 f[k + 1] >> FRAME_FILE_SHIFT == plugin_id);
		through += found && stack_end_is_whole(s->h.stack_end);
	}
	print_message(
		"%zu of %zu samples through the dynamic linker\n", through, r.live.samples.len);
	CHECK(r.live.samples.len >= SAMPLES_NEEDED && through >= 10);
	/* Five standard deviations, where it was few. */
	double missing = (100 - whole_percent(&r.live, 0, "lazy binding")) / 100;
	double over = MAX(0, missing - 0.005) * (double)r.live.samples.len - 1;
	CHECK(over <= 0 || over * over <= 25 * 0.005 * (double)r.live.samples.len);
	run_end(&r);
}

/* recurse 5 * n + 6 times; worker, start_thread, clone3. */
static void tells_threads_apart(void **state)
{
	(void)state;
	NEED_SAMPLING();
	enum { THREADS = 3 };
	size_t of[THREADS] = { 0 }, right[THREADS] = { 0 };
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "threads", "3", "60", NULL });
	run_until(&r, 3 * SAMPLES_WANTED);
	live_stop(&r.live);
	CHECK(whole_percent(&r.live, 0, "threads") >= 99);
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		int n = s->h.comm[7] - '0';
		CHECK(s->h.pid == (uint32_t)r.pid);
		if (strncmp(s->h.comm, "worker-", 7) != 0 || n < 0 || n >= THREADS)
			continue;
		CHECK(s->h.tid != s->h.pid);
		of[n]++;
		right[n] += s->user_count == 5 * (uint32_t)n + 6 + 3;
	}
	for (int n = 0; n < THREADS; n++)
		CHECK(of[n] >= SAMPLES_NEEDED / 2 && right[n] * 100 >= of[n] * 95);
	check_conservation(&r.live);
	run_end(&r);
}

static void walks_children_that_live_for_milliseconds(void **state)
{
	(void)state;
	NEED_SAMPLING();
	static const char *const modes[] = { "exec", "fork", "vfork" };
	for (size_t m = 0; m < ARRAY_COUNT(modes); m++) {
		struct live l;
		char path[512];
		(void)snprintf(path, sizeof(path), "%s", workload("forker"));
		live_begin(&l, FREQUENCY_HZ, 0);
		(void)live_publish_file(&l, path);
		live_start(&l);
		int pid = live_spawn((const char *const[]){ path, modes[m], "60", NULL }, -1);
		size_t theirs = 0, whole = 0, seen_until = 0;
		int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
		while (theirs < SAMPLES_WANTED && clock_monotonic_ns() < deadline) {
			live_poll(&l, 50);
			for (; seen_until < l.samples.len; seen_until++) {
				const struct live_sample *s = &l.samples.v[seen_until];
				if (strcmp(s->h.comm, "forker") != 0)
					continue;
				theirs++;
				whole += (size_t)stack_end_is_whole(s->h.stack_end);
			}
		}
		live_stop(&l);
		live_kill(pid);
		print_message("[%s] %zu samples, %.1f %% whole\n", modes[m], theirs,
			100.0 * (double)whole / (double)(theirs ? theirs : 1));
		/* In vfork() itself the return address is in a register: a few of a thousand. */
		CHECK(theirs >= SAMPLES_NEEDED && whole * 100 >= theirs * 98);
		check_conservation(&l);
		live_end(&l);
	}
}

/* The shell itself or its child: others on this host may run programs of the same names. */
static bool is_of(const struct live_sample *s, int shell)
{
	return s->h.pid == (uint32_t)shell || s->ppid == (uint32_t)shell;
}

/* Programs of the system that live for a few milliseconds, their tables there before them: whole
 * from their first instruction in ld.so on. */
static void walks_short_programs_of_the_system(void **state)
{
	(void)state;
	NEED_SAMPLING();
	static const char script[] = "while :; do /bin/true; /bin/ls -l /etc >/dev/null; "
				     "/bin/ls /usr/bin | /usr/bin/sort >/dev/null; done";
	struct live l;
	live_begin(&l, FREQUENCY_HZ, 0);
	live_publish_program(&l, "/bin/true");
	live_publish_program(&l, "/bin/ls");
	live_publish_program(&l, "/usr/bin/sort");
	live_publish_program(&l, "/bin/sh");
	live_start(&l);
	int pid = live_spawn((const char *const[]){ "/bin/sh", "-c", script, NULL }, -1);
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	size_t until = 0, kept = 0, user = 0;
	while (kept < 3 * SAMPLES_WANTED && clock_monotonic_ns() < deadline) {
		live_poll(&l, 50);
		for (; until < l.samples.len; until++)
			kept += is_of(&l.samples.v[until], pid);
	}
	live_stop(&l);
	live_kill(pid);
	check_conservation(&l);
	kept = 0;
	for (size_t i = 0; i < l.samples.len; i++) {
		const struct live_sample *s = &l.samples.v[i];
		if (!is_of(s, pid))
			continue;
		user += s->user_count > 0;
		l.samples.v[kept++] = *s;
	}
	l.samples.len = kept;
	CHECK(kept >= SAMPLES_NEEDED && user > 0);
	CHECK(whole_percent(&l, 0, "churn") >= 97);
	live_end(&l);
}

/* ---- shares ---- */

static bool in_function(const char *json, const char *name, uint64_t vaddr, double *out_share)
{
	char want[64];
	(void)snprintf(want, sizeof(want), "{\"name\":\"%s\",", name);
	const char *at = strstr(json, want);
	uint64_t begin = 0, end = 0;
	CHECK(at &&
		sscanf(at + strlen(want), "\"share\":%lf,\"begin\":%" SCNu64 ",\"end\":%" SCNu64,
			out_share, &begin, &end) == 3);
	return vaddr >= begin && vaddr < end;
}

/* The program says at its end how long each function took; so do the samples. */
static void shares_agree_with_the_program(void **state)
{
	(void)state;
	NEED_SAMPLING();
	static const char *const names[] = { "alpha", "beta", "gamma", "delta" };
	char json[1024] = "";
	int out[2];
	struct live l;
	char path[512];
	(void)snprintf(path, sizeof(path), "%s", workload("burner"));
	CHECK(pipe2(out, O_CLOEXEC) == 0);
	live_begin(&l, FREQUENCY_HZ, 0);
	uint32_t id = live_publish_file(&l, path);
	live_start(&l);
	double stolen_ns = live_stolen_ns();
	int pid = live_spawn((const char *const[]){ path, "6", NULL }, out[1]);
	(void)close(out[1]);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		live_poll(&l, 50);
	stolen_ns = live_stolen_ns() - stolen_ns;
	live_stop(&l);
	CHECK(read(out[0], json, sizeof(json) - 1) > 0);
	(void)close(out[0]);

	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open(path, &obj, &e), &e);
	size_t total = 0, hits[ARRAY_COUNT(names)] = { 0 };
	double share[ARRAY_COUNT(names)] = { 0 };
	for (size_t i = 0; i < l.samples.len; i++) {
		const struct live_sample *s = &l.samples.v[i];
		if ((int)s->h.pid != pid)
			continue;
		total++;
		const uint64_t *frames = live_user_frames(&l, s);
		bool in[ARRAY_COUNT(names)] = { false };
		for (uint32_t k = 0; k < s->user_count; k++) {
			struct vaddr at;
			struct fileoff off = { frames[k] & FRAME_OFFSET_MASK };
			if (frames[k] >> FRAME_FILE_SHIFT != id || !objfile_vaddr_of(obj, off, &at))
				continue;
			for (size_t n = 0; n < ARRAY_COUNT(names); n++)
				in[n] |= in_function(json, names[n], at.v, &share[n]);
		}
		for (size_t n = 0; n < ARRAY_COUNT(names); n++)
			hits[n] += in[n];
	}
	objfile_close(obj);
	CHECK(total >= SAMPLES_NEEDED);
	/* What was stolen may have been of one function. */
	double stolen = stolen_ns * FREQUENCY_HZ / 1e9 / (double)total;
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		double sampled = (double)hits[n] / (double)total;
		print_message("%s: %.3f by itself, %.3f by %zu samples; %.3f stolen\n", names[n],
			share[n], sampled, total, stolen);
		/* Five standard deviations of a share of one half of so many samples: chance. */
		double error = MAX(0, __builtin_fabs(sampled - share[n]) - stolen);
		CHECK(error <= 0.02 || error * error * (double)total <= 6.25);
	}
	live_end(&l);
}

TEST_MAIN(cmocka_unit_test(walks_whole_stacks), cmocka_unit_test(a_zero_in_machine_code_is_no_root),
	cmocka_unit_test(cuts_what_is_too_deep), cmocka_unit_test(walks_through_the_dynamic_linker),
	cmocka_unit_test(tells_threads_apart),
	cmocka_unit_test(walks_children_that_live_for_milliseconds),
	cmocka_unit_test(walks_short_programs_of_the_system),
	cmocka_unit_test(shares_agree_with_the_program))
