/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side. A channel is taken from the request to its answer. While an answer is overdue,
 * no other request is sent on its channel, where it would wait, or for its device. The next caller
 * checks whether the answer has come, and drops it.
 *
 * Disks may be waited for without a limit: no user makes one slow at will, and files on a busy disk
 * shall not lose their names. Any other device may spend its credit.
 *
 * A pinned file is to be dropped once: now, or when its device may be asked again (`late`). This
 * holds also for a file whose handle comes when no caller waits for it any more.
 */
#include "agent/broker/broker.h"

#include "agent/broker/broker_request.h"
#include "agent/broker/broker_serve.h"
#include "agent/broker/device_credits.h"
#include "agent/broker/perfmap_open.h"
#include "base/lock.h"
#include "os/os.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A second, altogether. */
#define STOP_TRIES_MAX 200
#define STOP_TRY_US 5000
#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

/* Stands for the device of a request that has none. Numbers of devices are smaller. */
#define DEVICE_NONE UINT64_MAX
/* Each file that was named at the start counts as a device of its own, numbered down from this. */
#define DEVICE_OWN (UINT64_MAX - 1)
/* Added to a pid: a process whose memory map is asked for counts as a device. */
#define DEVICE_PROCESS ((uint64_t)1 << 40)
#define DEVICE_PROCESS_END ((uint64_t)1 << 41)

struct channel {
	int fd;
	bool busy;    /* a thread waits for its answer */
	bool overdue; /* the answer to `number`, which was given up */
	enum broker_kind kind;
	uint32_t number;
	uint64_t device;
	int64_t asked_ns;
};

struct late_drop {
	uint32_t handle;
	uint64_t whom;
};

struct broker {
	pid_t pid;
	const char *own_files[BROKER_OWN_FILES_MAX];
	struct lock lock; /* guards the state of channels and credits; not held while waiting */
	pthread_cond_t given_back;
	struct channel channels[BROKER_CHANNELS];
	struct device_credits credits;
	struct late_drop late[BROKER_PINNED_MAX]; /* as many as there are handles */
	uint32_t late_count;
	_Atomic bool gone;
	struct broker_metrics metrics;
};

static struct broker *the_broker; /* set while there is one thread */

/* ---- one answer ---- */

struct answer {
	void *text; /* the caller's */
	size_t text_size, text_len;
	int fd; /* -1: none */
};

/* The first descriptor; others are closed. */
static int take_descriptors(struct msghdr *m)
{
	int first = -1;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

/* errno, 0 when an answer is there. */
static int wait_for_answer(struct channel *c, int64_t deadline_ns)
{
	for (;;) {
		int ms = (int)MAX((deadline_ns - clock_monotonic_ns()) / NS_PER_MS, (int64_t)0);
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int n = poll(&p, 1, ms);
		if (n > 0)
			return 0;
		if (n == 0)
			return ETIMEDOUT;
		if (errno != EINTR)
			return errno;
	}
}

/* A file system may fail with any errno. Those that mean here that the broker is missing, or hangs,
 * become EIO. */
static int error_of(uint32_t told)
{
	bool is_ours = told == ENOSYS || told == EPIPE || told == ECONNRESET || told == ETIMEDOUT;
	return is_ours ? EIO : told <= 4095 ? (int)told : EBADMSG;
}

/* errno */
static int receive(struct channel *c, struct answer *out)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	uint32_t head[2]; /* number, error */
	struct iovec iov[] = { { head, sizeof(head) }, { out->text, out->text_size } };
	struct msghdr m = { .msg_iov = iov,
		.msg_iovlen = out->text_size ? 2 : 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	do {
		n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? errno : EPIPE;
	CLEANUP(fd_cleanup) int fd = take_descriptors(&m);
	if ((size_t)n < sizeof(head) || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return EBADMSG;
	if (head[0] != c->number)
		return EBADMSG;
	if (head[1])
		return error_of(head[1]);
	out->text_len = (size_t)n - sizeof(head);
	out->fd = STEAL_FD(fd);
	return 0;
}

/* ---- which channel ---- */

static bool is_disk(uint64_t device)
{
	bool is_process = device >= DEVICE_PROCESS && device < DEVICE_PROCESS_END;
	return !is_process && device >> KERNEL_MINOR_BITS != 0;
}

static void drop_later(struct broker *b, uint64_t handle, uint64_t whom)
{
	/* Our broker never gives more handles than there are. */
	if (b->late_count < BROKER_PINNED_MAX)
		b->late[b->late_count++] = (struct late_drop){ (uint32_t)handle, whom };
}

/* Drop the answer that was given up, if it has come. */
static void take_late_answer(struct broker *b, struct channel *c)
{
	struct pinned_files_answer pinned;
	struct answer late = { .text = &pinned, .text_size = sizeof(pinned), .fd = -1 };
	if (!c->overdue || wait_for_answer(c, 0) != 0)
		return;
	if (receive(c, &late) == 0 && c->kind == BROKER_HOLD && late.text_len == sizeof(pinned))
		drop_later(b, pinned.handle, c->device);
	fd_cleanup(&late.fd);
	c->overdue = false;
}

static void take_late_answers(struct broker *b)
{
	for (int i = 0; i < BROKER_CHANNELS; i++)
		take_late_answer(b, &b->channels[i]);
}

/* The device owes an answer, or has no credit. */
static bool is_resting(struct broker *b, uint64_t device)
{
	for (int i = 0; i < BROKER_CHANNELS; i++)
		if (b->channels[i].overdue && b->channels[i].device == device)
			return true;
	return device_credits_are_spent(&b->credits, device, clock_monotonic_ns());
}

/* The channels that a device may have: [*out_first, end). */
static int channels_of(uint64_t device, int *out_first)
{
	*out_first = device == DEVICE_NONE ? 0 : 1;
	if (device == DEVICE_NONE)
		return 1;
	return is_disk(device) ? BROKER_CHANNELS : BROKER_CHANNELS - 1;
}

/* NULL: not now, ETIMEDOUT. Else the caller gives it back. */
static struct channel *channel_take(struct broker *b, uint64_t device, enum broker_kind kind)
{
	int first, end = channels_of(device, &first);
	struct channel *found = NULL;
	bool wait = true;
	lock_take(&b->lock);
	while (!found && wait) {
		take_late_answers(b);
		wait = false;
		if (is_resting(b, device))
			break;
		for (int i = first; i < end && !found; i++) {
			struct channel *c = &b->channels[i];
			wait |= c->busy;
			if (!c->busy && !c->overdue)
				found = c;
		}
		if (!found && wait)
			lock_wait(&b->given_back, &b->lock);
	}
	if (found) {
		found->busy = true;
		found->device = device;
		found->kind = kind;
		found->asked_ns = clock_monotonic_ns();
	}
	lock_release(&b->lock);
	return found;
}

static void channel_give_back(struct broker *b, struct channel *c, int error)
{
	lock_take(&b->lock);
	c->busy = false;
	c->overdue = error == ETIMEDOUT;
	int64_t now = clock_monotonic_ns();
	if (!is_disk(c->device))
		device_credits_charge(&b->credits, c->device, now - c->asked_ns, now);
	pthread_cond_broadcast(&b->given_back);
	lock_release(&b->lock);
}

/* ---- one request ---- */

/* errno. Called with a channel that was taken. */
static int ask(struct channel *c, struct str payload, struct answer *out)
{
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, BROKER_MESSAGE_BYTES_MAX);
	buf_u32(&message, c->kind);
	buf_u32(&message, ++c->number);
	buf_str(&message, payload);
	if (buf_status(&message) != OK)
		return ENOMEM;
	int64_t deadline_ns = clock_monotonic_ns() + BROKER_PATIENCE_NS;
	if (send(c->fd, message.data, message.len, MSG_NOSIGNAL) < 0)
		return errno;
	int error = wait_for_answer(c, deadline_ns);
	return error ? error : receive(c, out);
}

static void count(struct broker *b, int error)
{
	metric_add(&b->metrics.requests, 1);
	if (error == EPIPE || error == ECONNRESET)
		atomic_store(&b->gone, true);
	else if (error == ETIMEDOUT)
		metric_add(&b->metrics.timeouts, 1);
	else if (error == EPERM || error == EBADMSG)
		metric_add(&b->metrics.refused, 1);
	else if (error)
		metric_add(&b->metrics.failed, 1);
}

/* Returns an errno. *out_asked: the request was sent, so it is done, or will be. */
static int exchange(uint64_t device, enum broker_kind kind, struct str payload, struct answer *out,
	bool *out_asked)
{
	struct broker *b = the_broker;
	*out_asked = false;
	if (!b)
		return ENOSYS;
	struct channel *c = channel_take(b, device, kind);
	int error = c ? ask(c, payload, out) : ETIMEDOUT;
	if (c)
		channel_give_back(b, c, error);
	count(b, error);
	*out_asked = c != NULL;
	return error;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* The descriptor; -1 with errno. */
static int request_fd(uint64_t device, enum broker_kind kind, struct str payload)
{
	struct answer a = { .fd = -1 };
	bool asked;
	int error = exchange(device, kind, payload, &a, &asked);
	if (error == 0 && a.fd < 0)
		error = EBADMSG;
	return error ? fail(error) : a.fd;
}

/* The length of the text, cut to fit; -1 with errno. */
static ssize_t request_text(
	uint64_t device, enum broker_kind kind, struct str payload, char *out, size_t size)
{
	char text[PATH_MAX];
	struct answer a = { .text = text, .text_size = sizeof(text), .fd = -1 };
	bool asked;
	int error = exchange(device, kind, payload, &a, &asked);
	fd_cleanup(&a.fd);
	if (error == 0 && a.text_len == 0)
		error = EBADMSG;
	if (error)
		return fail(error);
	size_t len = MIN(a.text_len, size);
	memcpy(out, text, len);
	return (ssize_t)len;
}

/* ---- requests ---- */

static int open_on(const char *path, uint64_t device)
{
	if (strlen(path) > BROKER_PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return request_fd(device, BROKER_OPEN, str_of(path));
}

static uint64_t own_device(const char *path)
{
	for (uint32_t i = 0; the_broker && i < BROKER_OWN_FILES_MAX; i++) {
		const char *own = the_broker->own_files[i];
		if (own && strcmp(own, path) == 0)
			return DEVICE_OWN - i;
	}
	return DEVICE_OWN;
}

/* Files of a process wait for locks of it. */
static uint64_t process_of(const char *path)
{
	int pid = 0;
	return sscanf(path, "/proc/%d/", &pid) == 1 ? DEVICE_PROCESS | (uint32_t)pid : DEVICE_NONE;
}

static int open_path(const char *path)
{
	return open_on(path, broker_may_hang(path) ? own_device(path) : process_of(path));
}

static ssize_t read_path(const char *path, char *out, size_t size)
{
	/* Reading a link asks no file system. */
	return request_text(process_of(path), BROKER_LINK, str_of(path), out, size);
}

bool broker_cgroup_path(uint64_t id, char out[PATH_MAX])
{
	ssize_t n = request_text(
		DEVICE_NONE, BROKER_CGROUP, str_make(&id, sizeof(id)), out, PATH_MAX - 1);
	if (n <= 0)
		return false;
	out[n] = 0;
	return true;
}

int broker_perf_event(uint32_t cpu, uint32_t frequency_hz)
{
	const uint32_t payload[] = { cpu, frequency_hz };
	return request_fd(DEVICE_NONE, BROKER_PERF_EVENT, str_make(payload, sizeof(payload)));
}

int broker_slab(void)
{
	return request_fd(DEVICE_NONE, BROKER_SLAB, STR(""));
}

/* ---- files that are pinned ---- */

static int hold(const char *path, uint64_t whom, bool below_is_disk, struct broker_file *out)
{
	struct pinned_files_answer pinned;
	struct answer a = { .text = &pinned, .text_size = sizeof(pinned), .fd = -1 };
	CLEANUP(buf_deinit) struct buf payload = { 0 };
	bool asked;
	if (strlen(path) > BROKER_PATH_MAX)
		return fail(ENAMETOOLONG);
	buf_init(&payload, BROKER_MESSAGE_BYTES_MAX);
	buf_u32(&payload, below_is_disk);
	buf_cstr(&payload, path);
	if (buf_status(&payload) != OK)
		return fail(ENOMEM);
	int error = exchange(whom, BROKER_HOLD, buf_view(&payload), &a, &asked);
	if (error)
		return fail(error);
	if (a.fd >= 0)
		return a.fd;
	if (a.text_len != sizeof(pinned) || pinned.handle >= BROKER_PINNED_MAX)
		return fail(EBADMSG);
	*out = (struct broker_file){ (uint32_t)pinned.handle, whom, pinned.stat };
	return BROKER_IS_PINNED;
}

int broker_open_executable(const char *path, uint32_t device, struct broker_file *out)
{
	return hold(path, device, is_disk(device), out);
}

int broker_open_own(const char *path, struct broker_file *out)
{
	return hold(path, own_device(path), false, out);
}

int broker_open_perfmap(int pid, int inner_pid, struct broker_file *out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", pid, inner_pid);
	int fd = hold(path, DEVICE_PROCESS | (uint32_t)pid, false, out);
	return fd == -1 && errno == ENOSYS ? perfmap_open(path) : fd;
}

int broker_open_maps(int pid, struct broker_file *out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return hold(path, DEVICE_PROCESS | (uint32_t)pid, false, out);
}

ssize_t broker_read_mapping(int pid, const char *link, char *out, size_t size)
{
	return request_text(DEVICE_PROCESS | (uint32_t)pid, BROKER_LINK, str_of(link), out, size);
}

/* The length of the answer; -1 with errno. */
static ssize_t request_bytes(
	uint64_t device, enum broker_kind kind, struct str payload, void *out, size_t size)
{
	struct answer a = { .text = out, .text_size = size, .fd = -1 };
	bool asked;
	int error = exchange(device, kind, payload, &a, &asked);
	fd_cleanup(&a.fd);
	return error ? fail(error) : (ssize_t)a.text_len;
}

/* A request of kind 9 or 11. */
static ssize_t ask_memory(int pid, enum broker_kind kind, uint64_t address, void *out, size_t size)
{
	uint8_t payload[12];
	memcpy(payload, &pid, sizeof(pid));
	memcpy(payload + sizeof(pid), &address, sizeof(address));
	return request_bytes(DEVICE_PROCESS | (uint32_t)pid, kind,
		str_make(payload, sizeof(payload)), out, size);
}

ssize_t broker_jit_list(
	int pid, uint64_t descriptor, struct jit_memory_object out[JIT_MEMORY_OBJECTS_MAX])
{
	ssize_t n = ask_memory(
		pid, BROKER_JIT_LIST, descriptor, out, JIT_MEMORY_OBJECTS_MAX * sizeof(*out));
	if (n < 0 && errno == ENOSYS)
		return jit_memory_list(pid, descriptor, out);
	return n < 0 ? n : n / (ssize_t)sizeof(*out);
}

ssize_t broker_jit_read(
	int pid, uint64_t descriptor, uint64_t entry, uint64_t offset, void *out, size_t len)
{
	const struct {
		uint32_t pid, len;
		uint64_t entry, offset, descriptor;
	} payload = { (uint32_t)pid, (uint32_t)MIN(len, (size_t)BROKER_READ_BYTES_MAX), entry,
		offset, descriptor };
	ssize_t n = request_bytes(DEVICE_PROCESS | (uint32_t)pid, BROKER_JIT_READ,
		str_make(&payload, sizeof(payload)), out, payload.len);
	if (n < 0 && errno == ENOSYS)
		return jit_memory_read(pid, descriptor, entry, offset, out, len);
	return n;
}

int broker_dotnet_find(
	int pid, unsigned version, uint64_t table, uint64_t address, struct dotnet_memory_code *out)
{
	const struct {
		uint32_t pid, version;
		uint64_t table, address;
	} payload = { (uint32_t)pid, version, table, address };
	ssize_t n = request_bytes(DEVICE_PROCESS | (uint32_t)pid, BROKER_DOTNET_FIND,
		str_make(&payload, sizeof(payload)), out, sizeof(*out));
	if (n < 0 && errno == ENOSYS)
		return dotnet_memory_find(pid, version, table, address, out);
	return n == (ssize_t)sizeof(*out) ? 0 : n < 0 ? -1 : fail(EPROTO);
}

ssize_t broker_dotnet_read(int pid, uint64_t metadata, uint64_t offset, void *out, size_t len)
{
	const struct {
		uint32_t pid, len;
		uint64_t metadata, offset;
	} payload = { (uint32_t)pid, (uint32_t)MIN(len, (size_t)BROKER_READ_BYTES_MAX), metadata,
		offset };
	ssize_t n = request_bytes(DEVICE_PROCESS | (uint32_t)pid, BROKER_DOTNET_READ,
		str_make(&payload, sizeof(payload)), out, payload.len);
	if (n < 0 && errno == ENOSYS)
		return dotnet_memory_read(pid, metadata, offset, out, len);
	return n;
}

ssize_t broker_context(int pid, uint64_t head, uint8_t out[CONTEXT_MEMORY_BYTES_MAX])
{
	ssize_t n = ask_memory(pid, BROKER_CONTEXT, head, out, CONTEXT_MEMORY_BYTES_MAX);
	return n < 0 && errno == ENOSYS ? context_memory_read(pid, head, out) : n;
}

ssize_t broker_read(const struct broker_file *f, void *out, size_t len, uint64_t offset)
{
	const struct {
		uint32_t handle, len;
		uint64_t offset;
	} payload = { f->handle, (uint32_t)MIN(len, (size_t)BROKER_READ_BYTES_MAX), offset };
	if (len == 0)
		return 0;
	return request_bytes(
		f->whom, BROKER_READ, str_make(&payload, sizeof(payload)), out, payload.len);
}

static void drop(uint32_t handle, uint64_t whom)
{
	struct broker *b = the_broker;
	struct answer a = { .fd = -1 };
	bool asked;
	if (!b)
		return;
	(void)exchange(whom, BROKER_DROP, str_make(&handle, sizeof(handle)), &a, &asked);
	fd_cleanup(&a.fd);
	if (asked)
		return;
	lock_take(&b->lock);
	drop_later(b, handle, whom);
	lock_release(&b->lock);
}

void broker_drop(const struct broker_file *f)
{
	drop(f->handle, f->whom);
}

/* The first of them whose device may be asked. */
static bool take_late_drop(struct broker *b, struct late_drop *out)
{
	bool found = false;
	lock_take(&b->lock);
	take_late_answers(b);
	for (uint32_t i = 0; i < b->late_count && !found; i++) {
		*out = b->late[i];
		found = !is_resting(b, out->whom);
		if (found)
			b->late[i] = b->late[--b->late_count];
	}
	lock_release(&b->lock);
	return found;
}

void broker_drop_late(void)
{
	struct late_drop late;
	/* A file whose device cannot be asked now stays late. */
	for (int i = 0; i < BROKER_PINNED_MAX && the_broker && take_late_drop(the_broker, &late);
		i++)
		drop(late.handle, late.whom);
}

/* The first channel's end is seen while no request is under way; a request ends it by itself. */
static bool is_hung_up(const struct broker *b)
{
	struct pollfd p = { .fd = b->channels[0].fd, .events = POLLRDHUP };
	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLRDHUP | POLLERR);
}

/* No request on the first channel hangs. A broker that was killed while another of its
 * threads is in an open() that nothing ends keeps its channels, and answers on none. */
static bool is_silent(struct broker *b)
{
	const struct channel *c = &b->channels[0];
	lock_take(&b->lock);
	take_late_answer(b, &b->channels[0]);
	bool silent = c->overdue && clock_monotonic_ns() - c->asked_ns > BROKER_SILENCE_NS;
	lock_release(&b->lock);
	return silent;
}

bool broker_is_gone(void)
{
	struct broker *b = the_broker;
	return b && (atomic_load(&b->gone) || is_hung_up(b) || is_silent(b));
}

pid_t broker_pid(void)
{
	return the_broker ? the_broker->pid : 0;
}

int64_t broker_cpu_ns(void)
{
	clockid_t clock;
	struct timespec t;
	if (!the_broker || clock_getcpuclockid(the_broker->pid, &clock) != 0 ||
		clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

void broker_write_metrics(struct buf *out)
{
	static const struct metric_def defs[] = { BROKER_METRICS(METRIC_DEF) };
	struct broker *b = the_broker;
	if (!b)
		return;
	uint64_t overdue = 0;
	lock_take(&b->lock);
	take_late_answers(b);
	for (int i = 0; i < BROKER_CHANNELS; i++)
		overdue += b->channels[i].overdue;
	lock_release(&b->lock);
	metric_set(&b->metrics.overdue, overdue);
	metrics_write(out, defs, &b->metrics.requests, ARRAY_COUNT(defs));
}

/* ---- life ---- */

static void channels_close(struct broker *b)
{
	for (int i = 0; i < BROKER_CHANNELS; i++)
		fd_cleanup(&b->channels[i].fd);
	pthread_cond_destroy(&b->given_back);
	lock_destroy(&b->lock);
}

static enum status split_off(
	struct broker *b, const struct broker_config *c, int ends[BROKER_CHANNELS], struct err *e)
{
	for (int i = 0; i < BROKER_CHANNELS; i++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			return err_os(e, "socket pair of the broker");
		b->channels[i].fd = pair[0];
		ends[i] = pair[1];
	}
	b->pid = fork();
	if (b->pid < 0)
		return err_os(e, "fork the broker");
	if (b->pid == 0)
		broker_serve(c, ends);
	return OK;
}

enum status broker_start(const struct broker_config *c, struct err *e)
{
	assert(!the_broker);
	struct broker *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, E_NOMEM, "broker");
	int ends[BROKER_CHANNELS];
	for (int i = 0; i < BROKER_CHANNELS; i++)
		ends[i] = b->channels[i].fd = -1;
	lock_init(&b->lock, LOCK_BROKER);
	b->credits.most_ns = c->device_credit_ns;
	pthread_cond_init(&b->given_back, NULL);
	enum status s = split_off(b, c, ends, e);
	for (int i = 0; i < BROKER_CHANNELS; i++)
		fd_cleanup(&ends[i]);
	if (s != OK) {
		channels_close(b);
		free(b);
		return s;
	}
	memcpy(b->own_files, c->own_files, sizeof(b->own_files));
	the_broker = b;
	os_set_broker(open_path, read_path);
	return OK;
}

void broker_hang_up(void)
{
	for (int i = 0; the_broker && i < BROKER_CHANNELS; i++)
		(void)shutdown(the_broker->channels[i].fd, SHUT_RDWR);
}

void broker_stop(void)
{
	struct broker *b = the_broker;
	if (!b)
		return;
	os_set_broker(NULL, NULL);
	os_set_own_reader(NULL);
	the_broker = NULL;
	channels_close(b);
	/* The broker sees that the channels are closed. If it hangs in an open() that nothing ends,
	 * it is left behind. */
	for (int i = 0; i < STOP_TRIES_MAX && waitpid(b->pid, NULL, WNOHANG) == 0; i++)
		usleep(STOP_TRY_US);
	free(b);
}
