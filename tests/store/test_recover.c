/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was acknowledged is there once: after kill -9 at a random moment under load, after an end at
 * each single change of the disk (a write then is half done), after a power cut behind each of them
 * with all that was not synced lost or torn, and when any call of recovery itself fails. Damage
 * costs what is damaged, by name.
 */
#define FIXTURE_FORKS
#include "base/clock.h"
#include "codec/codec.h"
#include "store/merge/merge.h"
#include "tests/store/counted.h"
#include "tests/store/forker.h"
#include "tests/store/powercut.h"
#include "tests/store/sweep.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static_assert((int)FORKER_TOLD_MAX >= COUNTED_MAX, "counted_check() looks at all");

enum { DEFAULT_ROUNDS = 8, FIRST_WAIT_MS = 300 * 1000, CHILD_THREADS = 3, LOAD_MAX = 1 << 17 };

/* ---- children ---- */

struct child_work {
	struct store *s;
	int acks; /* pipe */
	uint32_t from, until;
};

static void *append_for_ever(void *ctx)
{
	struct child_work *w = ctx;
	for (uint32_t i = w->from; i < w->until; i += CHILD_THREADS) {
		struct err e = { 0 };
		if (counted_append(w->s, i, &e) != OK)
			continue;
		if (write(w->acks, &i, sizeof(i)) != sizeof(i))
			_exit(3);
	}
	return NULL;
}

/* Appends on some threads and flushes on another until it is killed; merging runs by itself. */
static void run_under_load(const char *dir, int acks, uint32_t from, uint32_t until)
{
	struct store *s;
	struct store_config c = fixture_config(dir);
	c.memory_bytes = 16 << 20;
	if (store_open(&c, NULL, NULL, &s, NULL) != OK)
		_exit(2);
	struct child_work work[CHILD_THREADS];
	for (uint32_t i = 0; i < CHILD_THREADS; i++) {
		pthread_t t;
		work[i] = (struct child_work){ s, acks, from + i, until };
		if (pthread_create(&t, NULL, append_for_ever, &work[i]))
			_exit(2);
	}
	for (uint64_t r = from;;) {
		usleep((useconds_t)(1000 + rnd_below(&r, 20000)));
		(void)!store_flush(s, NULL);
	}
}

static uint32_t read_acks(int fd, uint8_t *acknowledged)
{
	uint32_t i, last = 0;
	while (read(fd, &i, sizeof(i)) == sizeof(i)) {
		CHECK(i < LOAD_MAX);
		acknowledged[i] = 1;
		last = MAX(last, i);
	}
	return last;
}

/* Kill a child after a random time; the highest batch it acknowledged. `busy`: once it has
 * acknowledged one, however long that takes. A machine that forgets us lets it come to `until`. */
static uint32_t kill_one(const char *dir, uint32_t from, uint32_t until, bool busy,
	uint64_t *random, uint8_t *acknowledged)
{
	int fds[2], status;
	CHECK(pipe(fds) == 0);
	/* A pipe that is full would stop the child: it takes 64 KiB, and is read after the end. */
	CHECK(fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) > 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		run_under_load(dir, fds[1], from, until);
	}
	close(fds[1]);
	struct pollfd first = { .fd = fds[0], .events = POLLIN };
	CHECK(!busy || poll(&first, 1, FIRST_WAIT_MS) == 1);
	usleep((useconds_t)(30000 + rnd_below(random, 250000)));
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	uint32_t last = read_acks(fds[0], acknowledged);
	close(fds[0]);
	return MAX(last, from);
}

static void verify_files(const char *dir)
{
	struct buf out;
	struct err e = { 0 };
	buf_init(&out, 16 << 20);
	enum status st = store_verify(dir, &out, &e);
	if (st != OK)
		print_error("%.*s\n", STR_ARG(buf_view(&out)));
	CHECK_OK(st, &e);
	buf_deinit(&out);
}

static void kill_under_load(void **state)
{
	(void)state;
	char dir[64];
	const char *env = getenv("FIRN_CRASH_ROUNDS");
	int rounds = env ? (int)strtol(env, NULL, 10) : DEFAULT_ROUNDS;
	uint8_t *acknowledged = calloc(LOAD_MAX, 1);
	uint64_t random = sweep_seed();
	uint32_t from = 0, acks = 0;
	CHECK(acknowledged != NULL);
	fixture_disk_dir(dir);
	for (int i = 0; i < rounds; i++) {
		struct store *s;
		struct err e = { 0 };
		struct notices n = { .lock = PTHREAD_MUTEX_INITIALIZER };
		struct store_config c = fixture_config(dir);
		uint32_t until = from + (LOAD_MAX - from) / (uint32_t)(rounds - i);
		from = kill_one(dir, from, until, i % 2 == 1, &random, acknowledged) + 1;
		from = MIN(from + CHILD_THREADS, until); /* those that were under way */
		verify_files(dir);
		CHECK_OK(store_open(&c, fixture_notice, &n, &s, &e), &e);
		counted_check_up_to(s, acknowledged, LOAD_MAX);
		CHECK(metric_get(&s->metrics.quarantined) == 0);
		store_close(s);
	}
	for (uint32_t i = 0; i < LOAD_MAX; i++)
		acks += acknowledged[i];
	print_message("%d kills, %u batches acknowledged, all there once\n", rounds, acks);
	CHECK(acks > 0);
	free(acknowledged);
	fixture_clean(dir);
}

/* ---- an end at each change of the disk ---- */

enum { SCRIPT_BATCHES = 12 };

/* Some of everything. */
static void script(const char *dir, void (*acknowledged)(uint32_t))
{
	struct store *s;
	struct store_config c = fixture_config(dir);
	bool merged;
	if (store_open(&c, NULL, NULL, &s, NULL) != OK)
		_exit(2);
	for (uint32_t i = 0; i < SCRIPT_BATCHES; i++) {
		if (counted_append(s, i, NULL) == OK)
			acknowledged(i);
		if (i % 4 == 2)
			(void)!store_flush(s, NULL);
		if (i == 10)
			do
				if (store_merge_step(s, T0 + 90000 * SEC, &merged, NULL) != OK)
					merged = false;
			while (merged);
	}
	store_close(s);
}

static struct forker forker;

static void tell_parent(uint32_t i)
{
	forker.child->told[i] = 1;
}

static void exit_in_script(struct forked *child)
{
	struct faults f = { .classes = FAULT_WRITE, .at = child->at, .kill = true };
	forker.child = child;
	faults_arm(&f);
	faults_begin();
	script(child->dir, tell_parent);
	_exit(0);
}

static void exit_at_each_operation(void **state)
{
	(void)state;
	int rc = 9, at;
	forker_start(&forker, exit_in_script);
	char *dir = forker.child->dir;
	for (at = 1; rc == 9; at += sweep_each()) {
		struct store *s;
		struct err e = { 0 };
		fixture_dir(dir);
		rc = forker_run(&forker, at);
		CHECK(rc == 0 || rc == 9);
		struct store_config c = fixture_config(dir);
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
		counted_check(s, forker.child->told);
		store_close(s);
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e); /* and again */
		counted_check(s, forker.child->told);
		store_close(s);
		fixture_clean(dir);
	}
	print_message("%d operations\n", at - 1);
	CHECK(at > 60);
	forker_stop(&forker);
}

/* ---- the log of a table that waits ---- */

/* One batch is in an old part, one in a table that the disk does not take; retention drops the
 * part. Ends without closing. */
static void drop_while_a_table_waits(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct faults f = { .classes = FAULT_WRITE, .at = 1, .sticky = true, .error = ENOSPC };
	struct store_config c = fixture_config(dir);
	if (store_open(&c, NULL, NULL, &s, &e) != OK)
		_exit(2);
	fixture_stop_merging(s); /* the disk is full for one who merges, too */
	if (counted_append(s, 0, &e) != OK || store_flush(s, &e) != OK ||
		counted_append(s, 1, &e) != OK)
		_exit(2);
	faults_arm(&f);
	faults_begin();
	enum status full = store_flush(s, &e);
	faults_end();
	atomic_store(&f.off, true);
	if (full == OK || !s->frozen)
		_exit(3);
	lock_take(&s->retain_lock);
	s->config.retention_ns = 3600 * SEC;
	lock_release(&s->retain_lock);
	store_retain(s, T0 + 90000 * SEC);
	_exit(s->parts.len == 0 ? 0 : 4);
}

static void retention_keeps_the_log_of_a_waiting_table(void **state)
{
	(void)state;
	char dir[64];
	int status;
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		drop_while_a_table_waits(dir);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	uint32_t *counts = calloc(COUNTED_MAX, sizeof(*counts));
	CHECK(counts != NULL);
	counted_read(s, counts);
	CHECK(counts[0] == 0);
	CHECK(counts[1] == COUNTED_SAMPLES);
	free(counts);
	store_close(s);
	fixture_clean(dir);
}

/* ---- the power fails ---- */

static void power_check(const char *dir, const uint8_t *acknowledged, const char *what)
{
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	for (int round = 0; round < 2; round++) {
		struct store *s;
		enum status st = store_open(&c, NULL, NULL, &s, &e);
		if (st != OK)
			print_error("%s: %s\n", what, err_text(&e, st));
		CHECK(st == OK);
		if (metric_get(&s->metrics.quarantined))
			print_error("%s: something is in quarantine\n", what);
		CHECK(metric_get(&s->metrics.quarantined) == 0);
		counted_check(s, acknowledged);
		store_close(s);
	}
}

static void power_fails_behind_each_change(void **state)
{
	(void)state;
	char dir[64], what[64];
	uint64_t random = sweep_seed();
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	fixture_dir(dir);
	powercut_begin(dir);
	script(dir, powercut_ack);
	powercut_end();
	fixture_clean(dir);
	size_t n = powercut.events.len, states = 0;
	size_t step = sweep_all() ? 1 : (size_t)(6 * sweep_each());
	for (size_t end = rnd_below(&random, step); end <= n; end += step)
		for (int luck = 0; luck < POWER_LUCKS; luck++, states++) {
			powercut_acknowledged(end, acknowledged, COUNTED_MAX);
			snprintf(what, sizeof(what), "after change %zu of %zu, luck %d", end, n,
				luck);
			CHECK(mkdir(dir, 0700) == 0);
			powercut_make(dir, end, (enum power_luck)luck, &random);
			power_check(dir, acknowledged, what);
			fixture_clean(dir);
		}
	print_message("%zu changes, %zu states of the disk\n", n, states);
	powercut_acknowledged(n, acknowledged, COUNTED_MAX);
	for (uint32_t i = 0; i < SCRIPT_BATCHES; i++)
		CHECK(acknowledged[i]);
	powercut_free();
	free(acknowledged);
}

/* ---- killed while it recovers ---- */

enum { LONG_BATCHES = 12, LONG_NAMES = 4000 };

/* About a third of what the smallest memory budget takes before it writes a part. */
static void append_long(struct store *s, uint32_t n)
{
	struct profile p;
	struct err e = { 0 };
	char id[16], name[256];
	CHECK(profile_init(&p, 16 << 20) == OK);
	snprintf(id, sizeof(id), "%u", n);
	const char *const own[] = { "thread_id", id, NULL };
	uint32_t head = fx_head(&p, "cpu", true, 1), o = fx_labels(&p, own), stack;
	uint32_t frames[PROFILE_STACK_MAX];
	for (uint32_t i = 0; i < COUNTED_SAMPLES; i++) {
		uint32_t depth = LONG_NAMES / COUNTED_SAMPLES;
		for (uint32_t k = 0; k < depth; k++) {
			snprintf(name, sizeof(name), "%0200u",
				(n * COUNTED_SAMPLES + i) * depth + k);
			frames[k] = fx_named(&p, name, 1, NULL);
		}
		CHECK(profile_add_stack(&p, frames, depth, &stack) == OK);
		fx_sample(&p, T0 + (int64_t)n * SEC + i, 1, head, stack, 0, o);
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ n + 1, 7 }, &e), &e);
	profile_deinit(&p);
}

/* Batches that are in the log only, and a manifest whose next number is beyond them. */
static void fill_log(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (uint32_t n = 0; n < LONG_BATCHES; n++)
		append_long(s, n);
	store_manifest_write(s);
	_exit(0);
}

static int exit_at_third_rename(void *ctx, const char *operation)
{
	atomic_int *left = ctx;
	if (strcmp(operation, "rename") == 0 && atomic_fetch_sub(left, 1) == 1)
		_exit(9);
	return 0;
}

/* Less memory than before, so that parts are written while the log is read; it ends behind the
 * first: the renames are those of the part, of the manifest, of the second part. */
static void recover_in_part(const char *dir)
{
	struct store *s;
	struct store_config c = fixture_config(dir);
	atomic_int left = 3;
	c.memory_bytes = 16 << 20;
	store_io_hook = (struct store_io_hook){ exit_at_third_rename, &left };
	(void)!store_open(&c, NULL, NULL, &s, NULL);
	_exit(0);
}

static int status_of(void (*child)(const char *), const char *dir)
{
	int status;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(dir);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void kill_while_it_recovers(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	memset(acknowledged, 1, LONG_BATCHES);
	fixture_dir(dir);
	CHECK(status_of(fill_log, dir) == 0);
	CHECK(status_of(recover_in_part, dir) == 9);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(fixture_part_count(s) == 1); /* it did get that far */
	counted_check(s, acknowledged);
	store_close(s);
	free(acknowledged);
	fixture_clean(dir);
}

/* ---- damage ---- */

static const char *model_name(int i)
{
	static char names[16][16];
	snprintf(names[i % 16], sizeof(names[0]), "x%d", i);
	return names[i % 16];
}

/* Batch i has the value 4^i: the digits of a total tell which batches it counts. */
static void append_digit(struct store *s, int i)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1), stack;
	uint32_t frame = fx_named(&p, model_name(i), 1, NULL);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	const char *const labels[] = { "comm", model_name(i % 3), "pid", model_name(i), NULL };
	/* Of tomorrow, so that nothing is merged, however long this takes. */
	fx_sample(&p, clock_realtime_ns() + 86400 * SEC, 1LL << 2 * i, head, stack,
		fx_labels(&p, labels), 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ (uint64_t)i + 1, 5 }, &e), &e);
	profile_deinit(&p);
}

/* Three parts of three batches, and three batches in the log only. */
static void make_digits(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	pid_t pid = fork();
	int status;
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
		for (int i = 0; i < 12; i++) {
			if (i == 3 || i == 6 || i == 9)
				CHECK_OK(store_flush(s, &e), &e);
			append_digit(s, i);
		}
		_exit(0); /* without closing: the last ones stay in the log */
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct damage_file {
	char path[256];
	uint8_t *bytes;
	size_t len;
	off_t size; /* with the zeros behind `bytes` */
};

enum { DAMAGE_FILES_MAX = 64, DAMAGE_BYTES_MAX = 4096 };

static size_t load_files(const char *dir, struct damage_file *files)
{
	static const char *const subs[] = { "parts", "log", "." };
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_COUNT(subs); i++) {
		char sub[128];
		snprintf(sub, sizeof(sub), "%s/%s", dir, subs[i]);
		DIR *d = opendir(sub);
		CHECK(d != NULL);
		for (struct dirent *x; (x = readdir(d));) {
			struct damage_file *f = &files[n];
			struct stat st;
			snprintf(f->path, sizeof(f->path), "%s/%.100s", sub, x->d_name);
			if (stat(f->path, &st) < 0 || !S_ISREG(st.st_mode) ||
				strcmp(x->d_name, "LOCK") == 0)
				continue;
			f->size = st.st_size;
			f->len = MIN((size_t)st.st_size, (size_t)DAMAGE_BYTES_MAX * 4);
			f->bytes = malloc(f->len + 1);
			int fd = open(f->path, O_RDONLY | O_CLOEXEC);
			CHECK(f->bytes && fd >= 0 && read(fd, f->bytes, f->len) == (ssize_t)f->len);
			close(fd);
			CHECK(++n < DAMAGE_FILES_MAX);
		}
		closedir(d);
	}
	return n;
}

static void write_files(const char *dir, const struct damage_file *files, size_t n)
{
	static const char *const subs[] = { "parts", "log", "quarantine" };
	fixture_clean(dir);
	CHECK(mkdir(dir, 0700) == 0);
	for (size_t i = 0; i < ARRAY_COUNT(subs); i++) {
		char sub[128];
		snprintf(sub, sizeof(sub), "%s/%s", dir, subs[i]);
		CHECK(mkdir(sub, 0700) == 0);
	}
	for (size_t i = 0; i < n; i++) {
		int fd = open(files[i].path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		CHECK(fd >= 0 && write(fd, files[i].bytes, files[i].len) == (ssize_t)files[i].len);
		CHECK(ftruncate(fd, files[i].size) == 0);
		close(fd);
	}
}

static int64_t total(struct store *s)
{
	struct fx_query f;
	struct store_view *v;
	struct samples_tree t;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, COUNTED_TYPE, 0, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	int64_t sum = t.total;
	samples_tree_deinit(&t);
	store_view_close(v);
	fx_query_end(&f);
	return sum;
}

/* Open what was damaged. What is left is whole batches; what is missing was named. */
static void check_damaged(const char *dir, const char *what)
{
	struct store *s;
	struct err e = { 0 };
	struct notices n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct store_config c = fixture_config(dir);
	enum status st = store_open(&c, fixture_notice, &n, &s, &e);
	if (st != OK)
		print_error("%s: %s\n", what, e.text);
	CHECK(st == OK);
	int64_t sum = total(s);
	int there = 0;
	for (int64_t x = sum; x; x >>= 2) {
		if ((x & 3) > 1)
			print_error("%s: total %llx\n", what, (unsigned long long)sum);
		CHECK((x & 3) <= 1);
		there += (int)(x & 1);
	}
	CHECK(sum >= 0 && sum < 1LL << 24);
	if (there < 12 && n.count == 0)
		print_error("%s: %d batches left, and nobody said so\n", what, there);
	CHECK(there == 12 || n.count > 0);
	CHECK(there >= 9 - 3); /* one file's worth at most */
	store_close(s);
}

/* The log's unused rest is of no interest. */
static size_t used_bytes(const struct damage_file *f)
{
	size_t used = f->len;
	while (used && f->bytes[used - 1] == 0)
		used--;
	return used;
}

/* One bit of a byte is wrong, or the file ends before it. */
static void damage_at(const char *dir, struct damage_file *files, size_t n, struct damage_file *f,
	size_t at, bool cut, unsigned bit)
{
	char what[512];
	size_t len = f->len;
	off_t size = f->size;
	if (cut)
		f->size = (off_t)(f->len = at);
	else
		f->bytes[at] ^= (uint8_t)(1u << bit);
	write_files(dir, files, n);
	f->len = len;
	f->size = size;
	if (!cut)
		f->bytes[at] ^= (uint8_t)(1u << bit);
	snprintf(what, sizeof(what), "%s %s +%zu bit %u", cut ? "cut" : "flip", f->path, at, bit);
	check_damaged(dir, what);
}

/* Four hundred places, or with FIRN_SWEEP=all every byte and every length of every file. */
static void damage_is_contained(void **state)
{
	(void)state;
	enum { ROUNDS = 400 };
	char dir[64];
	struct damage_file files[DAMAGE_FILES_MAX];
	uint64_t random = sweep_seed();
	size_t places = 0;
	fixture_dir(dir);
	make_digits(dir);
	size_t n = load_files(dir, files);
	CHECK(n >= 5);
	for (int round = 0; round < sweep_tried(ROUNDS) && !sweep_all(); round++, places++) {
		struct damage_file *f = &files[rnd_below(&random, n)];
		size_t used = used_bytes(f);
		if (used)
			damage_at(dir, files, n, f, rnd_below(&random, used), round % 8 == 7,
				(unsigned)rnd_below(&random, 8));
	}
	for (size_t i = 0; i < n && sweep_all(); i++)
		for (size_t at = 0; at < used_bytes(&files[i]); at++, places += 2) {
			damage_at(dir, files, n, &files[i], at, false,
				(unsigned)rnd_below(&random, 8));
			damage_at(dir, files, n, &files[i], at, true, 0);
		}
	print_message("%zu places in %zu files\n", places, n);
	for (size_t i = 0; i < n; i++)
		free(files[i].bytes);
	fixture_clean(dir);
}

/* ---- recovery itself fails ---- */

/* Parts, a part that another replaces, a file that was being written, and batches in the log. */
static size_t make_all_kinds(const char *dir, struct damage_file *files)
{
	pid_t pid = fork();
	int status;
	CHECK(pid >= 0);
	if (pid == 0) {
		struct store *s;
		struct store_config c = fixture_config(dir);
		bool merged;
		/* What a merge replaces, ours or the store's own, cannot be removed. */
		struct faults f = { .classes = FAULT_UNLINK, .sticky = true, .error = EIO };
		faults_arm(&f);
		faults_begin();
		CHECK(store_open(&c, NULL, NULL, &s, NULL) == OK);
		for (uint32_t i = 0; i < SCRIPT_BATCHES; i++) {
			CHECK(counted_append(s, i, NULL) == OK);
			if (i == 2 || i == 5 || i == 8)
				CHECK(store_flush(s, NULL) == OK);
			if (i == 5)
				CHECK(store_merge_step(s, T0 + 90000 * SEC, &merged, NULL) == OK);
		}
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return load_files(dir, files);
}

static bool recover_with(const char *dir, const struct damage_file *files, size_t n,
	struct faults *f, const uint8_t *acknowledged)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	write_files(dir, files, n);
	faults_arm(f);
	faults_begin();
	enum status st = store_open(&c, NULL, NULL, &s, &e);
	faults_end();
	atomic_store(&f->off, true);
	if (st == OK) {
		counted_check(s, acknowledged);
		CHECK(metric_get(&s->metrics.quarantined) == 0);
		store_close(s);
	} else if (!e.text[0] || st == E_CORRUPT) {
		print_error(
			"%s failed: %s: %s\n", atomic_load(&f->struck), status_name(st), e.text);
		CHECK(false);
	}
	bool reached = atomic_load(&f->count) >= f->at;
	faults_arm(NULL);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	if (metric_get(&s->metrics.quarantined))
		print_error(
			"after %s failed: something is in quarantine\n", atomic_load(&f->struck));
	CHECK(metric_get(&s->metrics.quarantined) == 0);
	counted_check(s, acknowledged);
	store_close(s);
	return reached;
}

static void each_call_of_recovery_fails(void **state)
{
	(void)state;
	static const struct {
		unsigned classes;
		int error;
		bool sticky;
	} kinds[] = {
		{ FAULT_MEMORY, 0, false },
		{ FAULT_MEMORY, 0, true },
		{ FAULT_READ, EIO, false },
		{ FAULT_WRITE, EIO, false },
		{ FAULT_WRITE, ENOSPC, true },
	};
	char dir[64];
	struct damage_file files[DAMAGE_FILES_MAX];
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	memset(acknowledged, 1, SCRIPT_BATCHES);
	fixture_dir(dir);
	size_t n = make_all_kinds(dir, files);
	for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
		bool each = sweep_all() || (kinds[k].classes == FAULT_WRITE && !sweep_is("few"));
		int at = 1, step = each ? 1 : 9;
		struct faults f;
		do {
			f = (struct faults){ .classes = kinds[k].classes,
				.at = at,
				.sticky = kinds[k].sticky,
				.error = kinds[k].error };
			at += step;
		} while (recover_with(dir, files, n, &f, acknowledged));
		print_message("%d calls\n", atomic_load(&f.count));
		CHECK(at > 5);
	}
	for (size_t i = 0; i < n; i++)
		free(files[i].bytes);
	free(acknowledged);
	fixture_clean(dir);
}

/* ---- the set ---- */

static void newer_part_is_left_alone(void **state)
{
	(void)state;
	char dir[64], path[256];
	struct store *s;
	struct err e = { 0 };
	struct notices n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	fixture_dir(dir);
	make_digits(dir);
	/* A header of version 2, with its checksum. */
	uint8_t h[64] = "FIRNPART\x02";
	h[16] = 200;
	uint32_t crc = codec_crc32c(0, h, 28);
	memcpy(h + 28, &crc, 4);
	snprintf(path, sizeof(path), "%s/parts/00000000000000c8.part", dir);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, h, sizeof(h)) == sizeof(h));
	close(fd);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, fixture_notice, &n, &s, &e), &e);
	CHECK(strstr(n.all, "newer firn") != NULL);
	CHECK(total(s) == 0x555555);
	append_digit(s, 12);
	CHECK_OK(store_flush(s, &e), &e);
	store_close(s);
	struct stat st;
	CHECK(stat(path, &st) == 0); /* still there */
	fixture_clean(dir);
}

static void lost_part_is_named(void **state)
{
	(void)state;
	char dir[64], path[256];
	struct store *s;
	struct err e = { 0 };
	struct notices n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append_digit(s, 0);
	CHECK_OK(store_flush(s, &e), &e);
	snprintf(path, sizeof(path), "%s", part_path(s->parts.v[0]));
	store_close(s);
	DIR *d = opendir(dir);
	CHECK(d != NULL);
	closedir(d);
	snprintf(path, sizeof(path), "%s/parts", dir);
	fixture_clean(path);
	CHECK_OK(store_open(&c, fixture_notice, &n, &s, &e), &e);
	CHECK(strstr(n.all, "is gone from the disk") != NULL);
	store_close(s);
	fixture_clean(dir);
}

static void make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CHECK(snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) <
		(int)sizeof(address.sun_path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(fd);
}

/* What is no file is no part and no log, and keeps no store from opening. */
static void pipes_and_directories_are_left_alone(void **state)
{
	(void)state;
	static const char *const names[] = { "parts/0000000000000070.part",
		"parts/0000000000000071.part", "parts/0000000000000072.part",
		"log/0000000000000073.log", "log/0000000000000074.free", "MANIFEST" };
	char dir[64], path[ARRAY_COUNT(names)][128];
	struct store *s;
	struct stat st;
	struct err e = { 0 };
	struct notices n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	fixture_dir(dir);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", dir, names[i]);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append_digit(s, 1);
	store_close(s);
	CHECK(unlink(path[5]) == 0 && mkfifo(path[5], 0600) == 0);
	CHECK(mkfifo(path[0], 0600) == 0 && mkdir(path[1], 0700) == 0);
	make_socket(path[2]);
	CHECK(mkfifo(path[3], 0600) == 0 && mkfifo(path[4], 0600) == 0);
	alarm(600); /* nobody writes to the pipes: who waits, waits for ever */
	CHECK_OK(store_open(&c, fixture_notice, &n, &s, &e), &e);
	alarm(0);
	CHECK(metric_get(&s->metrics.parts) == 1 && s->next_part > 0x72);
	append_digit(s, 2);
	store_close(s);
	for (int i = 0; i < 3; i++) {
		char says[128];
		snprintf(says, sizeof(says), "%s: not a regular file; it is left alone", names[i]);
		CHECK(strstr(n.all, says) != NULL);
	}
	CHECK(strstr(n.all, "MANIFEST: not a regular file; it is written anew") != NULL);
	CHECK(stat(path[5], &st) == 0 && S_ISREG(st.st_mode));
	CHECK(stat(path[2], &st) == 0 && S_ISSOCK(st.st_mode));
	CHECK(stat(path[3], &st) == 0 && S_ISFIFO(st.st_mode));
	CHECK(stat(path[4], &st) == 0 && S_ISFIFO(st.st_mode));
	CHECK_OK(store_open(&c, fixture_notice, &n, &s, &e), &e);
	CHECK(total(s) == 0x14);
	store_close(s);
	fixture_clean(dir);
}

/* The process is small as long as it starts a forker. */
TEST_MAIN(cmocka_unit_test(exit_at_each_operation),
	cmocka_unit_test(pipes_and_directories_are_left_alone), cmocka_unit_test(kill_under_load),
	cmocka_unit_test(retention_keeps_the_log_of_a_waiting_table),
	cmocka_unit_test(power_fails_behind_each_change), cmocka_unit_test(kill_while_it_recovers),
	cmocka_unit_test(each_call_of_recovery_fails), cmocka_unit_test(damage_is_contained),
	cmocka_unit_test(newer_part_is_left_alone), cmocka_unit_test(lost_part_is_named))
