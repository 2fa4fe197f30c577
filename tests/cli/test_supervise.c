/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor runs in a process of its own; what its children do is scripted, and written down
 * in memory that all share.
 */
#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/process/startup.h"
#include "cli/process/supervise.h"
#include "fakes.h"
#include "test.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS (30 * NS_PER_SEC)
#define LIVES_MAX 16

enum script { SERVE, FAIL, DIE_WHEN_READY, IGNORE_STOP, LOSE_STOP, WAIT_FOR_TABLES };
enum event {
	SERVER_BEGAN = 1,
	SERVER_ENDED,
	AGENT_BEGAN,
	AGENT_ENDED,
	SERVER_SAID,
	AGENT_SAID,
	WATCH_ENDED,
	AGENT_END_SAID,
	SECOND
};

static struct shared {
	_Atomic uint32_t events[64];
	_Atomic uint32_t event_count;
	_Atomic uint32_t server_lives, agent_lives;
	_Atomic int server_pid, agent_pid;
	_Atomic uint32_t received; /* datagrams on the handover socket */
	_Atomic uint32_t told;     /* likewise by the agent: that a server was started again */
	enum script server_script[LIVES_MAX], agent_script[LIVES_MAX];
	char server_address[LIVES_MAX][64], agent_remote[64], said[64];
} * shared;

static void note(enum event e)
{
	uint32_t at = atomic_fetch_add(&shared->event_count, 1);
	assert(at < ARRAY_COUNT(shared->events));
	shared->events[at] = e;
}

static uint32_t noted(enum event e)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < ARRAY_COUNT(shared->events); i++)
		count += shared->events[i] == e;
	return count;
}

static enum status live(enum script script, int ready_fd, const char *ready,
	const volatile sig_atomic_t *stop, struct err *e)
{
	sigset_t term;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (script == FAIL)
		return err_set(e, E_IO, "a scripted failure");
	if (script == LOSE_STOP)
		sigprocmask(SIG_BLOCK, &term, NULL);
	if (write(ready_fd, ready, strlen(ready)) < 0)
		return E_IO;
	if (script == DIE_WHEN_READY)
		_exit(7);
	if (script == LOSE_STOP) {
		(void)sigwaitinfo(&term, NULL);
		sigprocmask(SIG_UNBLOCK, &term, NULL);
	}
	fake_wait(stop);
	while (script == IGNORE_STOP)
		pause();
	while (script == WAIT_FOR_TABLES && *stop != AGENT_STOP_NOW)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return OK;
}

static enum status serve(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	shared->server_pid = getpid();
	uint32_t life = atomic_fetch_add(&shared->server_lives, 1);
	char datagram[16];
	snprintf(shared->server_address[life], 64, "%s", c->http_address);
	note(SERVER_BEGAN);
	if (shared->server_script[life] == SERVE && life > 0 &&
		recv(c->handover_fd, datagram, sizeof(datagram), 0) == 5)
		shared->received++;
	enum status s = live(shared->server_script[life], c->ready_fd, "0.0.0.0:4242\n", stop, e);
	note(SERVER_ENDED);
	return s;
}

static enum status sample(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	shared->agent_pid = getpid(); /* before the count, which the tests wait for */
	uint32_t life = atomic_fetch_add(&shared->agent_lives, 1);
	snprintf(shared->agent_remote, 64, "%s", c->remote_store_address);
	note(AGENT_BEGAN);
	if (send(c->handover_fd, "hello", 5, MSG_NOSIGNAL) != 5)
		return E_IO;
	enum status s = live(shared->agent_script[life], c->ready_fd, "1", stop, e);
	uint8_t datagram[16];
	while (recv(c->handover_fd, datagram, sizeof(datagram), MSG_DONTWAIT) == 4)
		shared->told += datagram[0] == 4;
	note(AGENT_ENDED);
	return s;
}

static void on_server(void *ctx, const char *address, const char *dial)
{
	(void)ctx;
	snprintf(shared->said, sizeof(shared->said), "%s %s", address, dial);
	note(SERVER_SAID);
}

static void on_agent(void *ctx)
{
	(void)ctx;
	note(AGENT_SAID);
}

static int setup(void **state)
{
	(void)state;
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fake_server_run = serve;
	fake_agent_run = sample;
	return shared == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(shared, sizeof(*shared));
}

static struct supervise_config config(void)
{
	struct supervise_config c = {
		.with_agent = true,
		.on_server = on_server,
		.on_agent = on_agent,
		.backoff_min_ns = NS_PER_MS,
	};
	c.server.http_address = "0.0.0.0:0";
	c.server.storage_path = "/tmp";
	return c;
}

/* In a group of its own, as a shell starts it. */
static pid_t begin(const struct supervise_config *c)
{
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		setpgid(0, 0);
		/* What is logged is not this test's output. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(99);
		_exit(supervise_run(c));
	}
	setpgid(pid, pid);
	return pid;
}

static bool is_running(int pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	const char *state = n ? strrchr(text, ')') : NULL;
	return state && state[2] != 'Z' && state[2] != 'X';
}

/* Sent to the process, and not taken by it yet. */
static bool is_pending(int pid, int number)
{
	char path[64], line[256];
	unsigned long long set = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "ShdPnd: %llx", &set) != 1)
		;
	fclose(f);
	return set >> (number - 1) & 1;
}

#define WAIT_FOR(condition)                                                        \
	do {                                                                       \
		int64_t until_ = clock_monotonic_ns() + PATIENCE_NS;               \
		while (!(condition) && clock_monotonic_ns() < until_)              \
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); \
		CHECK(condition);                                                  \
	} while (0)

static int end_of(pid_t pid)
{
	int wait_status = 0;
	pid_t got = 0;
	WAIT_FOR(got != 0 || (got = waitpid(pid, &wait_status, WNOHANG)) != 0);
	CHECK(got == pid);
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -WTERMSIG(wait_status);
}

static void stops_in_order(void **state)
{
	(void)state;
	struct supervise_config c = config();
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK_STR(str_of(shared->said), "0.0.0.0:4242 127.0.0.1:4242");
	CHECK_STR(str_of(shared->agent_remote), "127.0.0.1:4242");
	/* A terminal sends it to all of them. */
	CHECK(kill(-pid, SIGINT) == 0);
	CHECK(end_of(pid) == CLI_OK);
	static const uint32_t want[] = { SERVER_BEGAN, SERVER_SAID, AGENT_BEGAN, AGENT_SAID,
		AGENT_ENDED, SERVER_ENDED };
	CHECK(shared->event_count == ARRAY_COUNT(want));
	for (size_t i = 0; i < ARRAY_COUNT(want); i++)
		CHECK(shared->events[i] == want[i]);
	CHECK(shared->told == 0);
}

static void on_watch_end(void *ctx, int wait_status)
{
	(void)ctx;
	CHECK(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 3);
	note(WATCH_ENDED);
}

static void on_agent_end(void *ctx, const char *dial)
{
	(void)ctx;
	CHECK_STR(str_of(dial), "127.0.0.1:4242");
	CHECK(is_running(shared->server_pid) && !is_running(shared->agent_pid));
	note(AGENT_END_SAID);
}

static bool on_second(void *ctx, int64_t *next_ns)
{
	(void)ctx;
	*next_ns = clock_monotonic_ns();
	if (noted(AGENT_SAID) && !noted(SECOND))
		note(SECOND);
	return noted(SECOND) > 0;
}

static pid_t watched(void)
{
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	pid_t pid = fork();
	if (pid)
		return pid;
	while (!noted(AGENT_SAID) && clock_monotonic_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	_exit(3);
}

/* It must be a child of the supervisor's own process. */
static pid_t begin_watching(void)
{
	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	struct supervise_config c = config();
	c.on_watch_end = on_watch_end;
	c.on_agent_end = on_agent_end;
	c.watch_pid = watched();
	if (!freopen("/dev/null", "w", stderr))
		_exit(99);
	_exit(supervise_run(&c));
}

static void stops_when_the_watched_ends(void **state)
{
	(void)state;
	CHECK(end_of(begin_watching()) == CLI_OK);
	static const uint32_t want[] = { SERVER_BEGAN, SERVER_SAID, AGENT_BEGAN, AGENT_SAID,
		WATCH_ENDED, AGENT_ENDED, AGENT_END_SAID, SERVER_ENDED };
	CHECK(shared->event_count == ARRAY_COUNT(want));
	for (size_t i = 0; i < ARRAY_COUNT(want); i++)
		CHECK(shared->events[i] == want[i]);
}

static void stops_when_the_second_says_so(void **state)
{
	(void)state;
	struct supervise_config c = config();
	c.on_second = on_second;
	c.on_agent_end = on_agent_end;
	CHECK(end_of(begin(&c)) == CLI_OK);
	static const uint32_t want[] = { SERVER_BEGAN, SERVER_SAID, AGENT_BEGAN, AGENT_SAID, SECOND,
		AGENT_ENDED, AGENT_END_SAID, SERVER_ENDED };
	CHECK(shared->event_count == ARRAY_COUNT(want));
	for (size_t i = 0; i < ARRAY_COUNT(want); i++)
		CHECK(shared->events[i] == want[i]);
}

static void runs_without_an_agent(void **state)
{
	(void)state;
	struct supervise_config c = config();
	c.with_agent = false;
	pid_t pid = begin(&c);
	WAIT_FOR(noted(SERVER_SAID));
	CHECK(kill(pid, SIGTERM) == 0);
	CHECK(end_of(pid) == CLI_OK);
	CHECK(noted(SERVER_ENDED) == 1 && noted(AGENT_BEGAN) == 0);
}

static void ends_when_the_server_never_listens(void **state)
{
	(void)state;
	struct supervise_config c = config();
	shared->server_script[0] = FAIL;
	CHECK(end_of(begin(&c)) == CLI_FAILED);
	CHECK(shared->server_lives == 1 && shared->agent_lives == 0);
}

static void restarts_the_agent(void **state)
{
	(void)state;
	struct supervise_config c = config();
	shared->agent_script[0] = FAIL;
	shared->agent_script[1] = DIE_WHEN_READY;
	pid_t pid = begin(&c);
	WAIT_FOR(shared->agent_lives == 3 && noted(AGENT_SAID) >= 1);
	CHECK(kill(shared->agent_pid, SIGKILL) == 0);
	WAIT_FOR(shared->agent_lives == 4);
	CHECK(kill(pid, SIGTERM) == 0);
	CHECK(end_of(pid) == CLI_OK);
	CHECK(shared->server_lives == 1);
}

static void restarts_the_server_where_it_was(void **state)
{
	(void)state;
	struct supervise_config c = config();
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK(kill(shared->server_pid, SIGKILL) == 0);
	WAIT_FOR(noted(SERVER_SAID) == 2);
	CHECK_STR(str_of(shared->server_address[0]), "0.0.0.0:0");
	CHECK_STR(str_of(shared->server_address[1]), "0.0.0.0:4242");
	CHECK(kill(pid, SIGINT) == 0);
	CHECK(end_of(pid) == CLI_OK);
	CHECK(shared->agent_lives == 1);
	CHECK(shared->received == 1); /* what the agent had handed over before waited for it */
	CHECK(shared->told == 1);
}

static void gives_up_on_a_server_that_always_dies(void **state)
{
	(void)state;
	struct supervise_config c = config();
	for (size_t i = 1; i < LIVES_MAX; i++)
		shared->server_script[i] = FAIL;
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK(kill(shared->server_pid, SIGKILL) == 0);
	CHECK(end_of(pid) == CLI_FAILED);
	CHECK(shared->server_lives == SUPERVISE_SERVER_DEATHS_MAX + 1);
	CHECK(noted(AGENT_ENDED) == 1);
}

static void ends_at_once_when_asked_twice(void **state)
{
	(void)state;
	struct supervise_config c = config();
	c.agent_stop_ns = 4 * PATIENCE_NS;
	shared->agent_script[0] = IGNORE_STOP;
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK(kill(pid, SIGINT) == 0);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	CHECK(is_running(shared->server_pid)); /* its turn comes after the agent */
	/* A signal that comes before the one before it was taken is one with it. */
	WAIT_FOR(!is_pending(pid, SIGINT));
	CHECK(kill(pid, SIGINT) == 0);
	CHECK(end_of(pid) == CLI_FAILED);
	WAIT_FOR(!is_running(shared->server_pid) && !is_running(shared->agent_pid));
}

static void keeps_a_recording_when_asked_twice(void **state)
{
	(void)state;
	struct supervise_config c = config();
	c.agent_stop_ns = 4 * PATIENCE_NS;
	c.on_agent_end = on_agent_end;
	shared->agent_script[0] = WAIT_FOR_TABLES;
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	for (int i = 0; i < 2; i++) {
		CHECK(kill(pid, SIGINT) == 0);
		WAIT_FOR(!is_pending(pid, SIGINT));
	}
	CHECK(end_of(pid) == CLI_OK);
	CHECK(noted(AGENT_ENDED) == 1 && noted(AGENT_END_SAID) == 1 && noted(SERVER_ENDED) == 1);
}

static void asks_again_who_has_not_heard(void **state)
{
	(void)state;
	struct supervise_config c = config();
	c.agent_stop_ns = c.server_stop_ns = 2 * PATIENCE_NS;
	shared->agent_script[0] = shared->server_script[0] = LOSE_STOP;
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK(kill(pid, SIGTERM) == 0);
	CHECK(end_of(pid) == CLI_OK);
	CHECK(noted(AGENT_ENDED) == 1 && noted(SERVER_ENDED) == 1);
}

static void kills_what_does_not_stop(void **state)
{
	(void)state;
	struct supervise_config c = config();
	c.agent_stop_ns = 20 * NS_PER_MS;
	shared->agent_script[0] = IGNORE_STOP;
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK(kill(pid, SIGTERM) == 0);
	CHECK(end_of(pid) == CLI_FAILED);
	CHECK(noted(SERVER_ENDED) == 1);
}

static void leaves_no_orphans(void **state)
{
	(void)state;
	struct supervise_config c = config();
	pid_t pid = begin(&c);
	WAIT_FOR(noted(AGENT_SAID));
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(end_of(pid) == -SIGKILL);
	WAIT_FOR(noted(AGENT_ENDED) && noted(SERVER_ENDED));
	WAIT_FOR(!is_running(shared->server_pid) && !is_running(shared->agent_pid));
}

/* clang-format off */
static const struct {
	const char *name, *in, *want;
} addresses[] = {
	{ "as it is", "127.0.0.1:7070", "127.0.0.1:7070" },
	{ "another host", "10.0.0.1:7070", "10.0.0.1:7070" },
	{ "every IPv4 address", "0.0.0.0:7070", "127.0.0.1:7070" },
	{ "every IPv6 address", "[::]:7070", "[::1]:7070" },
	{ "no host", ":7070", "127.0.0.1:7070" },
	{ "IPv6", "[fe80::1]:7070", "[fe80::1]:7070" },
	{ "a path", "unix:/run/firn", "unix:/run/firn" },
};
/* clang-format on */

static void dials(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, addresses) {
		char got[64];
		cli_dial_address(c->in, got, sizeof(got));
		CHECK_CASE(c, strcmp(got, c->want) == 0);
	}
}

#define SCRIPTED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN(cmocka_unit_test_setup_teardown(stops_when_the_watched_ends, setup, teardown),
	cmocka_unit_test_setup_teardown(stops_when_the_second_says_so, setup, teardown),
	SCRIPTED(stops_in_order), SCRIPTED(runs_without_an_agent),
	SCRIPTED(ends_when_the_server_never_listens), SCRIPTED(restarts_the_agent),
	SCRIPTED(restarts_the_server_where_it_was), SCRIPTED(gives_up_on_a_server_that_always_dies),
	SCRIPTED(ends_at_once_when_asked_twice), SCRIPTED(keeps_a_recording_when_asked_twice),
	SCRIPTED(asks_again_who_has_not_heard), SCRIPTED(kills_what_does_not_stop),
	SCRIPTED(leaves_no_orphans), cmocka_unit_test(dials))
