/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side. A channel is taken from the request to its answer. While an answer is overdue
 * nothing else is asked on its channel, where it would wait behind it, nor of its device. Whoever
 * asks next looks whether it has come, and drops it.
 *
 * Disks may be waited for without a limit: nobody makes one be slow at will, and what lies on a
 * busy one shall not lose its names. Any other device may run into debts.
 */
#include "agent/broker.h"

#include "agent/broker_request.h"
#include "agent/broker_serve.h"
#include "agent/debts.h"
#include "base/reader.h"
#include "os/os.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A second, altogether. */
#define STOP_TRIES_MAX 200
#define STOP_TRY_US 5000
#define ANSWER_BYTES_MAX (8 + PATH_MAX)
#define KERNEL_MINOR_BITS 20 /* include/linux/kdev_t.h */

/* Whom a request makes wait. Numbers of devices are less. */
#define DEVICE_NONE UINT64_MAX
/* The files that were named at the start, wherever they lie. */
#define DEVICE_OWN (UINT64_MAX - 1)

struct channel {
	int fd;
	bool busy;    /* somebody waits for its answer */
	bool overdue; /* the answer to `number`, for which nobody waits any more */
	uint32_t number;
	uint64_t device;
	int64_t asked_ns;
	uint8_t answer[ANSWER_BYTES_MAX];
};

struct broker {
	pid_t pid;
	pthread_mutex_t lock; /* guards what channels and debts say; not held while waiting */
	pthread_cond_t given_back;
	struct channel channels[BROKER_CHANNELS];
	struct debts debts;
	_Atomic bool gone;
	struct broker_metrics metrics;
};

static struct broker *the_broker; /* set while there is one thread */

/* ---- one answer ---- */

struct answer {
	struct str text; /* in the channel */
	int fd;          /* -1: none */
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

/* errno */
static int receive(struct channel *c, struct answer *out)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = { c->answer, sizeof(c->answer) };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	do {
		n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? errno : EPIPE;
	CLEANUP(fd_cleanup) int fd = take_descriptors(&m);
	struct reader r = reader_over(c->answer, (size_t)n);
	uint32_t number = reader_u32(&r), error = reader_u32(&r);
	if (r.failed || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return EBADMSG;
	if (number != c->number)
		return EBADMSG;
	if (error)
		return error <= 4095 ? (int)error : EBADMSG;
	out->text = reader_str(&r, reader_left(&r));
	out->fd = STEAL_FD(fd);
	return 0;
}

/* ---- which channel ---- */

static bool is_disk(uint64_t device)
{
	return device >> KERNEL_MINOR_BITS != 0;
}

/* Drop the answer for which nobody waits any more, if it has come. */
static void take_late_answer(struct channel *c)
{
	struct answer late = { .fd = -1 };
	if (!c->overdue || wait_for_answer(c, 0) != 0)
		return;
	(void)receive(c, &late);
	fd_cleanup(&late.fd);
	c->overdue = false;
}

/* It owes an answer, or is in debt. */
static bool is_resting(struct broker *b, uint64_t device)
{
	for (int i = 0; i < BROKER_CHANNELS; i++)
		if (b->channels[i].overdue && b->channels[i].device == device)
			return true;
	return debts_has(&b->debts, device, clock_monotonic_ns());
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
static struct channel *channel_take(struct broker *b, uint64_t device)
{
	int first, end = channels_of(device, &first);
	struct channel *found = NULL;
	bool wait = true;
	pthread_mutex_lock(&b->lock);
	while (!found && wait) {
		for (int i = 0; i < BROKER_CHANNELS; i++)
			take_late_answer(&b->channels[i]);
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
			pthread_cond_wait(&b->given_back, &b->lock);
	}
	if (found) {
		found->busy = true;
		found->device = device;
		found->asked_ns = clock_monotonic_ns();
	}
	pthread_mutex_unlock(&b->lock);
	return found;
}

static void channel_give_back(struct broker *b, struct channel *c, int error)
{
	pthread_mutex_lock(&b->lock);
	c->busy = false;
	c->overdue = error == ETIMEDOUT;
	int64_t now = clock_monotonic_ns();
	if (!is_disk(c->device))
		debts_charge(&b->debts, c->device, now - c->asked_ns, now);
	pthread_cond_broadcast(&b->given_back);
	pthread_mutex_unlock(&b->lock);
}

/* ---- one request ---- */

/* errno. Called with a channel that was taken. */
static int ask(struct channel *c, enum broker_kind kind, struct str payload, struct answer *out)
{
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, BROKER_MESSAGE_BYTES_MAX);
	buf_u32(&message, kind);
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

/* Asks, and copies the text. -1 with errno; else the descriptor, or the length of the text. */
static ssize_t request(uint64_t device, enum broker_kind kind, struct str payload, char *out_text,
	size_t text_size)
{
	struct broker *b = the_broker;
	if (!b) {
		errno = ENOSYS;
		return -1;
	}
	struct channel *c = channel_take(b, device);
	struct answer a = { .fd = -1 };
	int error = c ? ask(c, kind, payload, &a) : ETIMEDOUT;
	CLEANUP(fd_cleanup) int fd = a.fd;
	size_t len = MIN(a.text.len, text_size);
	if (out_text && !error && len)
		memcpy(out_text, a.text.p, len);
	if (c)
		channel_give_back(b, c, error);
	bool good = out_text ? len > 0 : fd >= 0;
	if (!error && !good)
		error = EBADMSG;
	count(b, error);
	if (error) {
		errno = error;
		return -1;
	}
	return out_text ? (ssize_t)len : STEAL_FD(fd);
}

/* ---- questions ---- */

static int open_on(const char *path, uint64_t device)
{
	if (strlen(path) > BROKER_PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return (int)request(device, BROKER_OPEN, str_of(path), NULL, 0);
}

int broker_open(const char *path, uint32_t device)
{
	return open_on(path, device);
}

static int open_path(const char *path)
{
	return open_on(path, broker_may_hang(path) ? DEVICE_OWN : DEVICE_NONE);
}

static ssize_t read_path(const char *path, char *out, size_t size)
{
	/* Reading a link asks no file system. */
	return request(DEVICE_NONE, BROKER_LINK, str_of(path), out, size);
}

bool broker_cgroup_path(uint64_t id, char out[PATH_MAX])
{
	ssize_t n =
		request(DEVICE_NONE, BROKER_CGROUP, str_make(&id, sizeof(id)), out, PATH_MAX - 1);
	if (n <= 0)
		return false;
	out[n] = 0;
	return true;
}

int broker_perf_event(uint32_t cpu, uint32_t frequency_hz)
{
	const uint32_t payload[] = { cpu, frequency_hz };
	return (int)request(
		DEVICE_NONE, BROKER_PERF_EVENT, str_make(payload, sizeof(payload)), NULL, 0);
}

int broker_slab(void)
{
	return (int)request(DEVICE_NONE, BROKER_SLAB, STR(""), NULL, 0);
}

/* The first channel's end is seen while nothing is asked; a question ends it by itself. */
static bool is_hung_up(const struct broker *b)
{
	struct pollfd p = { .fd = b->channels[0].fd, .events = POLLRDHUP };
	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLRDHUP | POLLERR);
}

/* What is asked on the first channel does not hang. A broker that was killed while another of its
 * threads is in an open() that nothing ends keeps its channels, and answers on none. */
static bool is_silent(struct broker *b)
{
	const struct channel *c = &b->channels[0];
	pthread_mutex_lock(&b->lock);
	take_late_answer(&b->channels[0]);
	bool silent = c->overdue && clock_monotonic_ns() - c->asked_ns > BROKER_SILENCE_NS;
	pthread_mutex_unlock(&b->lock);
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
	if (the_broker)
		metrics_write(out, defs, &the_broker->metrics.requests, ARRAY_COUNT(defs));
}

/* ---- life ---- */

static void channels_close(struct broker *b)
{
	for (int i = 0; i < BROKER_CHANNELS; i++)
		fd_cleanup(&b->channels[i].fd);
	pthread_cond_destroy(&b->given_back);
	pthread_mutex_destroy(&b->lock);
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
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->given_back, NULL);
	enum status s = split_off(b, c, ends, e);
	for (int i = 0; i < BROKER_CHANNELS; i++)
		fd_cleanup(&ends[i]);
	if (s != OK) {
		channels_close(b);
		free(b);
		return s;
	}
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
	the_broker = NULL;
	channels_close(b);
	/* It sees the end of the channels. What hangs in an open() that nothing ends is left. */
	for (int i = 0; i < STOP_TRIES_MAX && waitpid(b->pid, NULL, WNOHANG) == 0; i++)
		usleep(STOP_TRY_US);
	free(b);
}
