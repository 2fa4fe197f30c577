/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that nobody knew before they ran, in places where a path says little: deleted, in a
 * memfd, behind a bind mount, in a chroot, on an overlay file system, in other namespaces. Sampler,
 * files and deferred samples work together as in agent.c; every sample must be whole, the first one
 * too, or its copy is counted as lost: where the machine stands still for a while the ring fills.
 */
#include "live.h"
#include "test.h"

#include "host.h"

#include <sched.h>
#include <sys/mount.h>

#define FREQUENCY_HZ 199
#define SAMPLES_WANTED 60
#define SAMPLES_NEEDED 20
#define SECONDS_MAX 50
#define DEPTH "100"
#define DEPTH_FRAMES (4 + 100 + 1 + 1) /* as in test_sampler.c */
#define NOT_HERE 77                    /* exit status: this cannot be set up here */

static char folder[] = "/tmp/firn-blind-XXXXXX";

/* ---- what is counted ---- */

struct counted {
	const char *name; /* comm of the samples that count; or of this process: */
	int pid;
	uint32_t samples, whole, right;
};

static void count(void *ctx, const struct event_sample *s)
{
	struct counted *h = ctx;
	bool is_ours = (int)s->h.pid == h->pid || strncmp(s->h.comm, h->name, 15) == 0;
	bool is_whole = stack_end_is_whole(s->h.stack_end);
	/* Before exec it is this program, after it the dynamic linker: all of that is whole too. */
	if (!is_ours || (is_whole && s->user_count < DEPTH_FRAMES - 3))
		return;
	h->samples++;
	h->whole += is_whole;
	h->right += is_whole && s->user_count == DEPTH_FRAMES;
}

/* ---- the places; each runs in the child and does not return ---- */

static void give_up(void)
{
	_exit(NOT_HERE);
}

static void path_of(char *out, const char *a, const char *b)
{
	(void)snprintf(out, 512, "%s/%s%s%s", folder, a, b[0] ? "/" : "", b);
}

/* A copy of a workload, of content of its own. */
static int copy(const char *workload, const char *to)
{
	char command[2048];
	(void)snprintf(command, sizeof(command), "cp %s/%s %s && echo %s >> %s", WORKLOADS_DIR,
		workload, to, to, to);
	return system(command);
}

static char program[] = "deep", depth[] = DEPTH, seconds[] = "60";
static char *args[] = { program, depth, seconds, NULL };

static void run(const char *path)
{
	(void)execv(path, args);
	give_up();
}

static void run_deleted(const char *name)
{
	char path[512];
	path_of(path, name, "");
	if (copy("deep", path) != 0)
		give_up();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)unlink(path);
	(void)fexecve(fd, args, environ);
	give_up();
}

/* Empty files until one gets the inode that is free again; 0: a few, so that the next one has an
 * inode that no program had. */
static void take_inode(const char *path, ino_t wanted)
{
	struct stat st = { 0 };
	for (int i = 0; i < (wanted ? 1000 : 50) && (i == 0 || st.st_ino != wanted); i++) {
		char other[600];
		(void)snprintf(other, sizeof(other), "%s.%d%c", path, i, wanted ? 'b' : 'a');
		(void)rename(path, other);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
		if (fd < 0 || fstat(fd, &st) != 0)
			give_up();
		fd_cleanup(&fd);
	}
	if (wanted && st.st_ino != wanted)
		give_up();
}

/* A program that is known by then, and that nobody sampled. Its inode. */
static ino_t run_another(const char *path)
{
	char command[2048];
	struct stat st;
	take_inode(path, 0);
	(void)snprintf(command, sizeof(command), "cp /bin/sleep %s && %s 0.3", path, path);
	if (system(command) != 0 || stat(path, &st) != 0)
		give_up();
	return st.st_ino;
}

/* Another program had its inode before. */
static void run_reused(const char *name)
{
	char path[512];
	path_of(path, name, "");
	ino_t inode = run_another(path);
	(void)unlink(path);
	take_inode(path, inode);
	if (copy("deep", path) != 0)
		give_up();
	run(path);
}

/* Written over another program, which leaves the inode and its generation as they are. */
static void run_overwritten(const char *name)
{
	char path[512];
	path_of(path, name, "");
	(void)run_another(path);
	if (copy("deep", path) != 0)
		give_up();
	run(path);
}

static void run_memfd(const char *name)
{
	char path[512];
	static char bytes[4u << 20];
	path_of(path, name, "");
	if (copy("deep", path) != 0)
		give_up();
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int fd = memfd_create(name, MFD_CLOEXEC);
	ssize_t len = read(from, bytes, sizeof(bytes));
	if (fd < 0 || len <= 0 || write(fd, bytes, (size_t)len) != len)
		give_up();
	(void)unlink(path);
	(void)fexecve(fd, args, environ);
	give_up();
}

static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		give_up();
}

static void run_bind_mount(const char *name)
{
	char from[512], to[512];
	own_mounts();
	path_of(from, "bound", "");
	path_of(to, name, "");
	int fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	if (fd < 0 || copy("deep", from) != 0 || mount(from, to, NULL, MS_BIND, NULL) != 0)
		give_up();
	fd_cleanup(&fd);
	run(to);
}

static void run_chroot(const char *name)
{
	char root[512], path[512];
	path_of(root, "root", "");
	path_of(path, "root", name);
	if (mkdir(root, 0755) != 0 || copy("deep_static", path) != 0 || chroot(root) != 0 ||
		chdir("/") != 0)
		give_up();
	(void)snprintf(path, sizeof(path), "/%s", name);
	run(path);
}

static void run_overlay(const char *name)
{
	char options[2048], merged[512], path[1024];
	static const char *const folders[] = { "lower", "upper", "work", "merged" };
	own_mounts();
	/* Upper and work must lie on a file system that can be one. */
	path_of(path, "tmpfs", "");
	if (mkdir(path, 0755) != 0 || mount("tmpfs", path, "tmpfs", 0, NULL) != 0)
		give_up();
	for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
		path_of(path, "tmpfs", folders[i]);
		if (mkdir(path, 0755) != 0)
			give_up();
	}
	(void)snprintf(options, sizeof(options),
		"lowerdir=%s/tmpfs/lower,upperdir=%s/tmpfs/upper,workdir=%s/tmpfs/work", folder,
		folder, folder);
	(void)snprintf(path, sizeof(path), "%s/tmpfs/lower/%s", folder, name);
	path_of(merged, "tmpfs", "merged");
	if (copy("deep", path) != 0 || mount("overlay", merged, "overlay", 0, options) != 0)
		give_up();
	(void)snprintf(path, sizeof(path), "%s/tmpfs/merged/%s", folder, name);
	run(path);
}

static void run_namespaces(const char *name)
{
	char path[512];
	path_of(path, name, "");
	if (copy("deep", path) != 0 || unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
		give_up();
	int pid = fork();
	if (pid == 0)
		run(path);
	int status = 0;
	(void)waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static const struct {
	const char *name; /* and of the file, so of the comm */
	void (*run)(const char *name);
} places[] = {
	{ "blind-deleted", run_deleted },
	{ "blind-reused", run_reused },
	{ "blind-written", run_overwritten },
	{ "blind-memfd", run_memfd },
	{ "blind-bind", run_bind_mount },
	{ "blind-chroot", run_chroot },
	{ "blind-overlay", run_overlay },
	{ "blind-ns", run_namespaces },
};

static void sees_programs_in_every_place(void **state)
{
	(void)state;
	struct err e = { 0 };
	if (probe_sampling(&e) != OK)
		SKIP("%s", e.text);
	struct counted h = { .name = "" };
	struct host host = { .ctx = &h, .count = count };
	host_begin(&host, FREQUENCY_HZ);
	FOR_EACH_CASE (c, places) {
		h.samples = h.whole = h.right = 0;
		h.name = c->name;
		h.pid = fork();
		CHECK_CASE(c, h.pid >= 0);
		if (h.pid == 0) {
			(void)setpgid(0, 0);
			c->run(c->name);
		}
		(void)setpgid(h.pid, h.pid);
		int status = 0;
		bool is_over = false;
		uint64_t lost = host_not_copied(&host);
		int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * NS_PER_SEC;
		while (h.whole < SAMPLES_WANTED && !is_over && clock_monotonic_ns() < deadline) {
			host_poll(&host, false);
			is_over = waitpid(h.pid, &status, WNOHANG) == h.pid;
		}
		(void)kill(-h.pid, SIGKILL);
		if (!is_over)
			(void)waitpid(h.pid, &status, 0);
		if (is_over && WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE) {
			print_message("[%s] skipped: it cannot be set up here\n", c->name);
			continue;
		}
		host_poll(&host, true);
		lost = host_not_copied(&host) - lost;
		print_message("[%s] %u samples, %u whole, %u of the right depth, %llu not copied\n",
			c->name, h.samples, h.whole, h.right, (unsigned long long)lost);
		CHECK_CASE(c, h.whole >= SAMPLES_NEEDED);
		/* One in a hundred, give or take chance. */
		CHECK_CASE(c, h.whole + lost + 2 >= h.samples);
		CHECK_CASE(c, h.right * 100 >= h.whole * 95);
	}
	host_end(&host);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[256];
	(void)snprintf(command, sizeof(command), "rm -rf --one-file-system '%s'", folder);
	return system(command);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sees_programs_in_every_place) };
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
