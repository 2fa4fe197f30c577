/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread a channel: receive, look at the form of the request, open, answer. Between requests
 * only the pinned files are kept. Only the first four bytes of an opened file are looked at, and no
 * memory is allocated. Of a process' memory: jit_memory.h, context_memory.h, dotnet_memory.h.
 */
#include "agent/broker/broker_serve.h"
#include "agent/broker/capabilities.h"

#include "agent/broker/broker_request.h"
#include "agent/broker/cgroupid.h"
#include "agent/broker/context_memory.h"
#include "agent/broker/dotnet_memory.h"
#include "agent/broker/jit_memory.h"
#include "agent/broker/perfmap_open.h"
#include "agent/broker/pinned_files.h"
#include "agent/broker/privileged_open.h"
#include "agent/broker/sandbox.h"
#include "agent/broker/slab_grants.h"
#include "base/lock.h"
#include "base/log.h"
#include "os/os.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CHANNEL_FD_FIRST 3 /* after standard error */

struct broker {
	struct broker_config config;
	struct cgroupid cgroups;
	struct pinned_files pinned;
	struct lock slabs_lock;
	struct slab_grants slabs;
};

struct channel {
	struct broker *b;
	int fd;
	struct broker_request request;
	uint8_t message[BROKER_MESSAGE_BYTES_MAX + 1];
	_Alignas(8) char text[BROKER_READ_BYTES_MAX];
	struct pinned_files_answer pinned;
};
static_assert(BROKER_READ_BYTES_MAX >= PATH_MAX, "the text of a link");
static_assert(BROKER_READ_BYTES_MAX >= CONTEXT_MEMORY_BYTES_MAX, "a context");
static_assert(BROKER_READ_BYTES_MAX >= JIT_MEMORY_OBJECTS_MAX * sizeof(struct jit_memory_object),
	"a list");

static bool has(uint64_t set, unsigned capability)
{
	return set >> capability & 1;
}

uint64_t broker_capabilities(void)
{
	uint64_t all = os_capabilities();
	uint64_t wanted = (uint64_t)1 << CAP_SYS_PTRACE | (uint64_t)1 << CAP_DAC_READ_SEARCH |
			  (uint64_t)1 << CAP_SYSLOG | (uint64_t)1 << CAP_PERFMON |
			  (uint64_t)1 << CAP_BPF | (uint64_t)1 << CAP_CHECKPOINT_RESTORE;
	/* Before Linux 5.9 there was no such thing as CAP_CHECKPOINT_RESTORE. */
	bool has_restore = prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) >= 0;
	if (!has_restore && has(all, CAP_SYS_ADMIN))
		wanted |= (uint64_t)1 << CAP_SYS_ADMIN;
	return all & wanted;
}

/* ---- opening ---- */

static int reopen(int place, int flags)
{
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	return open(link, O_CLOEXEC | flags);
}

/* What an open file must be for the agent to get it. */
enum wanted {
	WANTED_ELF,
	WANTED_CODE, /* that, or a jitdump: names of code that a process makes */
	WANTED_ANY,
};

static bool is_wanted(int fd, enum wanted what)
{
	static const char jitdump[] = "DTiJ";
	char magic[SELFMAG];
	if (what == WANTED_ANY)
		return true;
	if (pread(fd, magic, SELFMAG, 0) != SELFMAG)
		return false;
	return memcmp(magic, ELFMAG, SELFMAG) == 0 ||
	       (what == WANTED_CODE && memcmp(magic, jitdump, SELFMAG) == 0);
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Opens the file of `place` (O_PATH) if it is of the wanted kind. Other files are not passed as
 * O_PATH either: such a descriptor can be opened again by the file's own mode, past the folders
 * above it. */
static int open_place(int place, enum wanted what)
{
	struct stat st;
	if (place < 0 || fstat(place, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return fail(EINVAL);
	CLEANUP(fd_cleanup) int fd = reopen(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (is_wanted(fd, what))
		return STEAL_FD(fd);
	return fail(ENOEXEC);
}

static int open_below(int root, const char *below)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	return (int)syscall(SYS_openat2, root, below, &how, sizeof(how));
}

/* /proc/PID/root/BELOW */
static int open_in_root(const char *path, const char *below)
{
	char root_path[64];
	snprintf(root_path, sizeof(root_path), "%.*s", (int)(below - path - 1), path);
	CLEANUP(fd_cleanup) int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	CLEANUP(fd_cleanup) int place = open_below(root, below);
	return open_place(place, WANTED_ELF);
}

static int open_for(const struct broker *b, const char *path)
{
	const char *below = NULL;
	enum broker_place where = broker_place_of(&b->config, path, &below);
	if (where == BROKER_NOWHERE)
		return fail(EPERM);
	if (where == BROKER_TEXT)
		return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (where == BROKER_IN_ROOT)
		return open_in_root(path, below);
	if (where == BROKER_PERFMAP)
		return perfmap_open(path);
	CLEANUP(fd_cleanup) int place = open(path, O_PATH | O_CLOEXEC);
	return open_place(place, where == BROKER_OWN ? WANTED_ANY : WANTED_CODE);
}

static struct broker_stat stat_of(const struct stat *st, const struct statfs *fs)
{
	return (struct broker_stat){ st->st_dev, st->st_ino, (uint64_t)st->st_size,
		st->st_mtim.tv_sec, st->st_mtim.tv_nsec, st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
		st->st_uid, (uint64_t)fs->f_type };
}

/* The descriptor; or -1, and an answer that says that it is pinned, or errno. */
static int hold_for(struct channel *c, struct str *out_text)
{
	const struct broker_request *r = &c->request;
	const char *below = NULL;
	enum broker_place where = broker_place_of(&c->b->config, r->path, &below);
	struct stat st;
	if (where == BROKER_NOWHERE)
		return fail(EPERM);
	CLEANUP(fd_cleanup) int fd = open_for(c->b, r->path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0) /* then it is not one of the kernel's own file systems */
		fs = (struct statfs){ 0 };
	/* A path below a root may lead to another file than the mapped one. */
	bool below_is_disk = r->below_is_disk && where == BROKER_MAPPED;
	if (!pinned_files_may_hang((uint64_t)fs.f_type, below_is_disk))
		return STEAL_FD(fd);
	int handle = pinned_files_add(&c->b->pinned, STEAL_FD(fd));
	if (handle < 0)
		return -1;
	c->pinned = (struct pinned_files_answer){ (uint64_t)handle, stat_of(&st, &fs) };
	*out_text = str_make(&c->pinned, sizeof(c->pinned));
	return -1;
}

static ssize_t link_for(const char *path, char *out, size_t size)
{
	return broker_is_link(path) ? readlink(path, out, size) : fail(EPERM);
}

/* Slabs of an agent before a restart do not count: its broker ended with it. */
static int slab_for(struct broker *b)
{
	lock_take(&b->slabs_lock);
	bool may = slab_grants_take(&b->slabs, b->config.slabs_max, clock_monotonic_ns());
	lock_release(&b->slabs_lock);
	int fd = may ? privileged_open_slab() : fail(EDQUOT);
	if (may && fd < 0) { /* a slab that could not be made does not count */
		int error = errno;
		lock_take(&b->slabs_lock);
		b->slabs.count -= b->slabs.count > 0;
		lock_release(&b->slabs_lock);
		errno = error;
	}
	return fd;
}

/* The broker gives nothing of its own memory. The number of one of its threads is refused too,
 * since it leads there. */
static bool is_own_memory(uint32_t pid)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/self/task/%u", pid);
	CLEANUP(fd_cleanup) int fd = open(path, O_PATH | O_CLOEXEC);
	return fd >= 0;
}

/* The length of the answer; -1 with errno. */
static ssize_t memory_for(struct channel *c)
{
	const struct broker_request *r = &c->request;
	int pid = (int)r->pid;
	if (is_own_memory(r->pid))
		return fail(EPERM);
	if (r->kind == BROKER_CONTEXT)
		return context_memory_read(pid, r->address, (void *)c->text);
	if (r->kind == BROKER_DOTNET_FIND) {
		struct dotnet_memory_code *out = (void *)c->text;
		int found = dotnet_memory_find(pid, r->version, r->descriptor, r->address, out);
		return found < 0 ? -1 : (ssize_t)sizeof(*out);
	}
	if (r->kind == BROKER_DOTNET_READ)
		return dotnet_memory_read(pid, r->address, r->offset, c->text, r->len);
	if (r->kind == BROKER_JIT_READ)
		return jit_memory_read(pid, r->descriptor, r->address, r->offset, c->text, r->len);
	ssize_t n = jit_memory_list(pid, r->address, (void *)c->text);
	return n < 0 ? n : n * (ssize_t)sizeof(struct jit_memory_object);
}

/* ---- one request ---- */

/* errno */
static int try_answer(const struct channel *c, int error, struct str text, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	uint32_t head[2] = { c->request.number, (uint32_t)error };
	struct iovec iov[] = { { head, sizeof(head) }, { (void *)(uintptr_t)text.p, text.len } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = text.len ? 2 : 1 };
	if (fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *head_of = CMSG_FIRSTHDR(&m);
		head_of->cmsg_level = SOL_SOCKET;
		head_of->cmsg_type = SCM_RIGHTS;
		head_of->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head_of), &fd, sizeof(int));
	}
	while (sendmsg(c->fd, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

static void answer(const struct channel *c, int error, struct str text, int fd)
{
	int failed = try_answer(c, error, text, fd);
	/* There may be no memory, or too many descriptors of this user under way (ETOOMANYREFS). */
	if (failed && failed != EPIPE && failed != ECONNRESET)
		failed = try_answer(c, failed, STR(""), -1);
	if (failed)
		_exit(0); /* the agent has ended */
}

static void handle(struct channel *c, size_t len)
{
	struct broker_request *r = &c->request;
	CLEANUP(fd_cleanup) int fd = -1;
	struct str text = STR("");
	bool done = false;
	errno = 0;
	if (broker_request_parse(str_make(c->message, len), r, NULL) != OK) {
		answer(c, EBADMSG, text, -1);
		return;
	}
	switch (r->kind) {
	case BROKER_OPEN:
		fd = open_for(c->b, r->path);
		done = fd >= 0;
		break;
	case BROKER_LINK: {
		ssize_t n = link_for(r->path, c->text, PATH_MAX - 1);
		done = n > 0;
		text = str_make(c->text, done ? (size_t)n : 0);
		break;
	}
	case BROKER_CGROUP:
		done = cgroupid_path(&c->b->cgroups, r->cgroup_id, c->text);
		text = done ? str_of(c->text) : text;
		break;
	case BROKER_PERF_EVENT:
		fd = r->frequency_hz ? privileged_open_cpu(r->cpu, r->frequency_hz)
				     : privileged_open_ksymbols(r->cpu);
		done = fd >= 0;
		break;
	case BROKER_SLAB:
		fd = slab_for(c->b);
		done = fd >= 0;
		break;
	case BROKER_HOLD:
		fd = hold_for(c, &text);
		done = fd >= 0 || text.len;
		break;
	case BROKER_READ: {
		ssize_t n = pinned_files_read(&c->b->pinned, r->handle, c->text, r->len, r->offset);
		done = n >= 0;
		text = str_make(c->text, done ? (size_t)n : 0);
		break;
	}
	case BROKER_DROP:
		done = pinned_files_drop(&c->b->pinned, r->handle) == 0;
		break;
	case BROKER_JIT_LIST:
	case BROKER_JIT_READ:
	case BROKER_CONTEXT:
	case BROKER_DOTNET_FIND:
	case BROKER_DOTNET_READ: {
		ssize_t n = memory_for(c);
		done = n >= 0;
		text = str_make(c->text, done ? (size_t)n : 0);
		break;
	}
	}
	answer(c, done ? 0 : errno ? errno : ENOENT, text, fd);
}

static void *serve(void *ctx)
{
	struct channel *c = ctx;
	for (;;) {
		ssize_t n = recv(c->fd, c->message, sizeof(c->message), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		handle(c, (size_t)n);
	}
	return NULL;
}

/* ---- life ---- */

/* Only standard error and the channels stay open. */
static void settle_descriptors(const int channels[BROKER_CHANNELS], int out[BROKER_CHANNELS])
{
	int high[BROKER_CHANNELS];
	for (int i = 0; i < BROKER_CHANNELS; i++)
		high[i] = fcntl(channels[i], F_DUPFD_CLOEXEC, CHANNEL_FD_FIRST + BROKER_CHANNELS);
	for (int i = 0; i < BROKER_CHANNELS; i++) {
		out[i] = CHANNEL_FD_FIRST + i;
		if (high[i] < 0 || dup3(high[i], out[i], O_CLOEXEC) < 0)
			_exit(1);
	}
	if (syscall(SYS_close_range, CHANNEL_FD_FIRST + BROKER_CHANNELS, ~0U, 0) < 0)
		log_debug("descriptors stay open in the broker", "errno=%d", errno);
}

static bool may_open_events(void)
{
	CLEANUP(fd_cleanup) int fd = privileged_open_cpu((uint32_t)sched_getcpu(), 1);
	return fd >= 0 || (errno != EACCES && errno != EPERM);
}

/* Debian's kernels know a kernel.perf_event_paranoid of 3, their default, and where it is set only
 * CAP_SYS_ADMIN opens an event of a CPU. Without it a host that has slept would not be sampled any
 * more, but for one CPU. */
static enum status settle_capabilities(struct err *e)
{
	uint64_t keep = broker_capabilities();
	uint64_t admin = os_capabilities() & ~keep & (uint64_t)1 << CAP_SYS_ADMIN;
	if (!has(keep, CAP_PERFMON))
		admin = 0;
	enum status s = os_set_capabilities(keep, keep | admin, e);
	if (s != OK || !admin || may_open_events())
		return s == OK ? os_set_capabilities(keep, keep, e) : s;
	s = os_set_capabilities(keep | admin, keep | admin, e);
	if (s == OK && !may_open_events()) /* CAP_SYS_ADMIN does not help either */
		return os_set_capabilities(keep, keep, e);
	log_info("this kernel wants CAP_SYS_ADMIN for the event of a CPU: the broker keeps it",
		"sysctl=kernel.perf_event_paranoid");
	return s;
}

static enum status settle(struct err *e)
{
	const int ignored[] = { SIGINT, SIGHUP, SIGTERM, SIGPIPE, SIGQUIT };
	const struct rlimit none = { 0, 0 }, unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	/* The broker ignores signals that end a session: it ends after the agent, not before. */
	for (size_t i = 0; i < ARRAY_COUNT(ignored); i++)
		sigaction(ignored[i], &ignore, NULL);
	prctl(PR_SET_NAME, "firn-broker", 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &none);
	/* Before Linux 5.11 the slabs count as locked memory. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	enum status s = settle_capabilities(e);
	return s == OK ? os_harden(e) : s;
}

_Noreturn void broker_serve(const struct broker_config *c, const int channels[BROKER_CHANNELS])
{
	static struct broker b;
	static struct channel each[BROKER_CHANNELS];
	int fds[BROKER_CHANNELS];
	struct err e = { 0 };
	pthread_t thread;
	os_set_broker(NULL, NULL);
	os_set_own_reader(NULL);
	settle_descriptors(channels, fds);
	b.config = *c;
	lock_init(&b.slabs_lock, LOCK_SLABS);
	enum status s = settle(&e);
	cgroupid_open(&b.cgroups);
	pinned_files_init(&b.pinned);
	for (int i = 0; i < BROKER_CHANNELS; i++) {
		each[i].b = &b;
		each[i].fd = fds[i];
	}
	for (int i = 1; i < BROKER_CHANNELS && s == OK; i++)
		s = os_thread_start(&thread, "firn-broker", serve, &each[i], &e);
	if (s == OK)
		s = sandbox_enter_broker(&e);
	if (s != OK) {
		log_error("the broker cannot start", "err=%s", LOG_QUOTED(err_text(&e, s)));
		_exit(1);
	}
	serve(&each[0]);
	_exit(0);
}
