/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's side alone, by what goes over its sockets. */
#include "agent/broker/broker_request.h"
#include "agent/broker/broker_serve.h"
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct served {
	pid_t pid;
	int ends[BROKER_CHANNELS];
};

static void serve(struct served *s)
{
	static const struct broker_config config = { .environment = false };
	int theirs[BROKER_CHANNELS];
	for (int i = 0; i < BROKER_CHANNELS; i++) {
		int pair[2];
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
		s->ends[i] = pair[0];
		theirs[i] = pair[1];
	}
	s->pid = fork();
	if (s->pid == 0)
		broker_serve(&config, theirs);
	for (int i = 0; i < BROKER_CHANNELS; i++)
		close(theirs[i]);
}

static void hang_up(struct served *s)
{
	for (int i = 0; i < BROKER_CHANNELS; i++)
		fd_cleanup(&s->ends[i]);
}

/* The error of the answer; its number must be `number`. */
static int ask(int fd, const void *bytes, size_t len, uint32_t number)
{
	uint32_t answer[1100];
	CHECK(send(fd, bytes, len, 0) == (ssize_t)len);
	CHECK(recv(fd, answer, sizeof(answer), 0) >= 8);
	CHECK(answer[0] == number);
	return (int)answer[1];
}

static void pass_descriptor(int to)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &to, sizeof(int));
	CHECK(sendmsg(to, &m, 0) == 1);
}

static void answers_whatever_comes(void **state)
{
	(void)state;
	struct served s;
	serve(&s);
	for (int i = 0; i < BROKER_CHANNELS; i++) {
		const uint32_t strange[] = { 77, 5, 1 };
		CHECK(ask(s.ends[i], strange, sizeof(strange), 5) == EBADMSG);
		CHECK(ask(s.ends[i], "x", 1, 0) == EBADMSG);
		static char big[BROKER_MESSAGE_BYTES_MAX + 100] = { BROKER_OPEN };
		memset(big + 8, 'a', sizeof(big) - 8);
		CHECK(ask(s.ends[i], big, sizeof(big), 0) == EBADMSG);
		const uint32_t nowhere[] = { BROKER_OPEN, 6, 0x6374652f }; /* "/etc" */
		CHECK(ask(s.ends[i], nowhere, sizeof(nowhere), 6) == EPERM);
		const uint32_t link[] = { BROKER_LINK, 7, 0x6374652f };
		CHECK(ask(s.ends[i], link, sizeof(link), 7) == EPERM);
		const uint32_t group[] = { BROKER_CGROUP, 8, 1, 0xffff };
		CHECK(ask(s.ends[i], group, sizeof(group), 8) != 0);
	}
	close(s.ends[BROKER_CHANNELS - 1]); /* any of them */
	s.ends[BROKER_CHANNELS - 1] = -1;
	int wait_status = 0;
	CHECK(waitpid(s.pid, &wait_status, 0) == s.pid);
	CHECK(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
	hang_up(&s);
}

/* What the system does not let pass is an answer, too, and not the end. */
static void says_when_it_cannot_pass(void **state)
{
	(void)state;
	struct served s;
	struct rlimit was, few = { 32, 32 };
	int pair[2];
	if (geteuid() != 0)
		SKIP("needs root: descriptors under way above the limit");
	CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
	few.rlim_max = was.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	serve(&s);
	CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	for (int i = 0; i < 64; i++)
		pass_descriptor(pair[0]);
	struct {
		uint32_t kind, number;
		char path[32];
	} request = { BROKER_OPEN, 9, "" };
	snprintf(request.path, sizeof(request.path), "/proc/%d/maps", (int)getpid());
	const size_t len = 8 + strlen(request.path);
	CHECK(ask(s.ends[0], &request, len, 9) == ETOOMANYREFS);
	close(pair[0]);
	close(pair[1]);
	/* The limit is one of all processes of a user: others may have some under way. */
	int error = ETOOMANYREFS;
	for (int i = 0; i < 30000 && error == ETOOMANYREFS; i++) {
		error = ask(s.ends[0], &request, len, 9);
		usleep(error ? 1000 : 0);
	}
	CHECK(error == 0);
	hang_up(&s);
	CHECK(waitpid(s.pid, NULL, 0) == s.pid);
}

static uint64_t set_of(pid_t pid, const char *name)
{
	char path[64];
	uint64_t set = ~(uint64_t)0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	CHECK(os_read_file(path, &b, NULL) == OK);
	struct str text = buf_view(&b), line;
	while (str_split(&text, '\n', &line))
		if (str_starts(line, str_of(name)))
			CHECK(str_parse_u64(
				str_trim(str_sub(line, strlen(name), line.len)), 16, &set));
	return set;
}

static void keeps_what_it_needs(void **state)
{
	(void)state;
	struct served s;
	if (geteuid() != 0)
		SKIP("needs root: there is nothing to keep");
	serve(&s);
	const uint32_t ping[] = { 77, 5 };
	CHECK(ask(s.ends[0], ping, sizeof(ping), 5) == EBADMSG); /* it has settled */
	uint64_t want = (uint64_t)1 << CAP_SYS_PTRACE | (uint64_t)1 << CAP_DAC_READ_SEARCH |
			(uint64_t)1 << CAP_SYSLOG | (uint64_t)1 << 38 | (uint64_t)1 << 39 |
			(uint64_t)1 << 40;
	CHECK(set_of(s.pid, "CapEff:") == want);
	CHECK(set_of(s.pid, "CapPrm:") == want);
	CHECK(set_of(s.pid, "CapBnd:") == 0);
	CHECK(set_of(s.pid, "NoNewPrivs:") == 1);
	CHECK(set_of(s.pid, "Seccomp:") == (SANITIZED ? 0 : 2));
	hang_up(&s);
	CHECK(waitpid(s.pid, NULL, 0) == s.pid);
}

TEST_MAIN(cmocka_unit_test(answers_whatever_comes), cmocka_unit_test(says_when_it_cannot_pass),
	cmocka_unit_test(keeps_what_it_needs))
