/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one thread, one poll() over a signalfd and the children's ready pipes. The states of a child
 * are
 *
 * 	absent -> running -> (dead: absent, with a time at which it starts again)
 *
 * and the phases are running, stopping the agent, stopping the server, and done: the agent stops
 * first, so that its last batch still reaches the server. Both ends of the handover socket stay
 * open here, so that either child can be started again without the other noticing. The server's
 * real address is kept once it listens, so that a restarted server listens where the agent sends
 * to. After a restart the agent gets a message through the server's end, since samples that the old
 * server had taken are lost. If the caller watches a process, its end is a reason to stop too.
 */
#include "cli/process/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "cli/process/child.h"
#include "cli/process/startup.h"
#include "os/os.h"

#define ADDRESS_MAX 256
#define NEVER INT64_MAX

enum phase { RUNNING, STOPPING_AGENT, STOPPING_SERVER, DONE };
enum which { SERVER, AGENT, CHILDREN };

struct child {
	const char *name;
	pid_t pid; /* 0: absent */
	int ready_fd;
	bool ready; /* since its last start */
	int64_t started_ns;
	int64_t start_at_ns; /* NEVER: it is not started again */
	int64_t kill_at_ns;  /* while it is being stopped: when it is killed */
	int64_t ask_at_ns;   /* while it is being stopped: when it gets SIGTERM once more */
	uint32_t deaths;     /* consecutive, without a long enough life between them */
};

struct supervisor {
	const struct supervise_config *c;
	struct child children[CHILDREN];
	enum phase phase;
	int signal_fd;
	int handover[2]; /* the server's end, the agent's end */
	char address[ADDRESS_MAX];
	char dial[ADDRESS_MAX];
	sigset_t old_mask;
	pid_t watch_pid; /* 0: it has ended */
	bool hurried;    /* the agent does not wait for its last samples any more */
	int64_t second_at_ns;
	int exit_code;
};

/* ---- starting ---- */

static int run_child(struct supervisor *s, enum which which, int ready, pid_t parent)
{
	close(s->signal_fd);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
	close(s->handover[which == SERVER ? 1 : 0]);
	for (int i = 0; i < CHILDREN; i++)
		if (s->children[i].ready_fd >= 0)
			close(s->children[i].ready_fd);
	if (which == SERVER) {
		struct server_config server = s->c->server;
		server.ready_fd = ready;
		server.handover_fd = s->handover[0];
		if (s->address[0])
			server.http_address = s->address;
		return child_run_server(&server, parent);
	}
	struct agent_config agent = s->c->agent;
	agent.ready_fd = ready;
	agent.handover_fd = s->handover[1];
	char url[ADDRESS_MAX + 16];
	snprintf(url, sizeof(url), "%s%s", s->c->server.tls_cert_file ? "https://" : "", s->dial);
	agent.remote_store_address = url;
	agent.remote_store_cert = s->c->server.tls_cert_file;
	return child_run_agent(&agent, parent);
}

static int64_t patience(int64_t wanted_ns, int64_t otherwise_ns)
{
	return wanted_ns ? wanted_ns : otherwise_ns;
}

static void retry_later(const struct supervisor *s, struct child *child)
{
	int64_t wait_ns = patience(s->c->backoff_min_ns, SUPERVISE_BACKOFF_MIN_NS);
	for (uint32_t i = 1; i < child->deaths && wait_ns < SUPERVISE_BACKOFF_MAX_NS; i++)
		wait_ns *= 2;
	child->start_at_ns = clock_monotonic_ns() + MIN(wait_ns, SUPERVISE_BACKOFF_MAX_NS);
}

static void start(struct supervisor *s, enum which which)
{
	struct child *child = &s->children[which];
	int ready[2] = { -1, -1 };
	pid_t parent = getpid();
	fflush(NULL); /* else the child would write the buffered output again */
	pid_t pid = pipe2(ready, O_CLOEXEC) < 0 ? -1 : fork();
	if (pid == 0) {
		close(ready[0]);
		exit(run_child(s, which, ready[1], parent));
	}
	if (ready[1] >= 0)
		close(ready[1]);
	if (pid < 0) {
		log_error("child not started", "child=%s errno=%d", child->name, errno);
		if (ready[0] >= 0)
			close(ready[0]);
		child->deaths++;
		retry_later(s, child);
		return;
	}
	child->pid = pid;
	child->ready_fd = ready[0];
	child->ready = false;
	child->started_ns = clock_monotonic_ns();
	child->start_at_ns = NEVER;
	child->kill_at_ns = child->ask_at_ns = NEVER;
}

static void start_what_is_due(struct supervisor *s)
{
	for (int i = 0; i < CHILDREN; i++)
		if (s->phase == RUNNING && s->children[i].pid == 0 &&
			clock_monotonic_ns() >= s->children[i].start_at_ns)
			start(s, (enum which)i);
}

/* ---- ready ---- */

/* Sends the message for the agent (docs/formats/handover.md). If the socket is full, it has the
 * message several times already. */
static void tell_of_new_server(struct supervisor *s)
{
	static const uint8_t new_server[4] = { 4 };
	if (send(s->handover[0], new_server, sizeof(new_server), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("the agent is not told of the server", "errno=%d", errno);
}

static void server_is_ready(struct supervisor *s, const char *line)
{
	if (s->address[0])
		tell_of_new_server(s);
	snprintf(s->address, sizeof(s->address), "%.*s", (int)strcspn(line, "\n"), line);
	cli_dial_address(s->address, s->dial, sizeof(s->dial));
	s->c->on_server(s->c->ctx, s->address, s->dial);
	os_notify("READY=1");
	struct child *agent = &s->children[AGENT];
	if (s->c->with_agent && agent->pid == 0 && agent->start_at_ns == NEVER)
		agent->start_at_ns = 0;
}

static void read_ready(struct supervisor *s, enum which which)
{
	struct child *child = &s->children[which];
	char line[ADDRESS_MAX] = "";
	ssize_t n = read(child->ready_fd, line, sizeof(line) - 1);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	close(child->ready_fd);
	child->ready_fd = -1;
	if (n <= 0)
		return; /* it has died or will; SIGCHLD follows */
	child->ready = true;
	if (which == SERVER) {
		server_is_ready(s, line);
		return;
	}
	s->c->on_agent(s->c->ctx);
	s->second_at_ns = 0;
}

/* ---- stopping ---- */

static void ask_to_stop(struct child *child, int64_t patience_ns)
{
	child->start_at_ns = NEVER;
	if (child->pid == 0)
		return;
	kill(child->pid, SIGTERM);
	child->ask_at_ns = clock_monotonic_ns() + SUPERVISE_ASK_AGAIN_NS;
	child->kill_at_ns = clock_monotonic_ns() + patience_ns;
}

/* Goes on to the next phase when the process that this one waits for is gone. */
static void advance(struct supervisor *s)
{
	if (s->phase == STOPPING_AGENT && s->children[AGENT].pid == 0) {
		if (s->c->on_agent_end && s->children[SERVER].pid && s->address[0])
			s->c->on_agent_end(s->c->ctx, s->dial);
		s->phase = STOPPING_SERVER;
		ask_to_stop(&s->children[SERVER],
			patience(s->c->server_stop_ns, SUPERVISE_SERVER_STOP_NS) +
				s->c->server.shutdown_delay_ns);
	}
	if (s->phase == STOPPING_SERVER && s->children[SERVER].pid == 0)
		s->phase = DONE;
}

static void begin_stop(struct supervisor *s)
{
	s->phase = STOPPING_AGENT;
	os_notify("STOPPING=1");
	s->children[SERVER].start_at_ns = NEVER;
	ask_to_stop(&s->children[AGENT], patience(s->c->agent_stop_ns, SUPERVISE_AGENT_STOP_NS));
	advance(s);
}

static void kill_all(struct supervisor *s)
{
	for (int i = 0; i < CHILDREN; i++)
		if (s->children[i].pid > 0) {
			kill(s->children[i].pid, SIGKILL);
			waitpid(s->children[i].pid, NULL, 0);
			s->children[i].pid = 0;
		}
	s->exit_code = CLI_FAILED;
	s->phase = DONE;
}

/* Somebody does not want to wait. The first time, a recording is not lost by that: its agent sends
 * what it has. */
static void hurry(struct supervisor *s)
{
	bool agent_waits = s->phase == STOPPING_AGENT && s->children[AGENT].pid;
	if (!agent_waits || !s->c->on_agent_end || s->hurried) {
		kill_all(s);
		return;
	}
	kill(s->children[AGENT].pid, SIGUSR1);
	s->hurried = true;
}

/* Sends SIGTERM again. The kernel merges a signal with a pending equal one: if a service manager
 * has just sent SIGTERM to all processes, the child does not see the supervisor's, which is the
 * only one that it obeys. */
static void ask_again(struct supervisor *s)
{
	int64_t now = clock_monotonic_ns();
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &s->children[i];
		if (child->pid == 0 || now < child->ask_at_ns)
			continue;
		kill(child->pid, SIGTERM);
		child->ask_at_ns = now + SUPERVISE_ASK_AGAIN_NS;
	}
}

static void kill_what_is_late(struct supervisor *s)
{
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &s->children[i];
		if (child->pid == 0 || clock_monotonic_ns() < child->kill_at_ns)
			continue;
		log_error("child does not stop and is killed", "child=%s pid=%d", child->name,
			child->pid);
		kill(child->pid, SIGKILL);
		child->kill_at_ns = child->ask_at_ns = NEVER;
	}
}

/* ---- deaths ---- */

static void died(struct supervisor *s, enum which which, pid_t pid, int wait_status)
{
	struct child *child = &s->children[which];
	int64_t lived_ns = clock_monotonic_ns() - child->started_ns;
	bool first = which == SERVER && !s->address[0];
	char end[128], quoted[160];
	child_describe_end(wait_status, end, sizeof(end));
	log_quote(str_of(end), quoted, sizeof(quoted));
	child->deaths = lived_ns >= SUPERVISE_HEALTHY_NS ? 1 : child->deaths + 1;
	bool give_up = which == SERVER && (first || child->deaths > SUPERVISE_SERVER_DEATHS_MAX);
	if (give_up) {
		if (!first)
			log_error("the server dies again and again: giving up", "deaths=%u last=%s",
				child->deaths, quoted);
		bool usage =
			first && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == CLI_USAGE;
		s->exit_code = usage ? CLI_USAGE : CLI_FAILED;
		begin_stop(s);
		return;
	}
	retry_later(s, child);
	log_error("child died and is started again", "child=%s pid=%d end=%s in_ms=%lld",
		child->name, pid, quoted,
		(long long)((child->start_at_ns - clock_monotonic_ns()) / NS_PER_MS));
}

static void reap_watched(struct supervisor *s)
{
	int wait_status = 0;
	if (s->watch_pid == 0 || waitpid(s->watch_pid, &wait_status, WNOHANG) != s->watch_pid)
		return;
	s->watch_pid = 0;
	if (s->c->on_watch_end)
		s->c->on_watch_end(s->c->ctx, wait_status);
	if (s->phase == RUNNING)
		begin_stop(s);
}

static void reap(struct supervisor *s)
{
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &s->children[i];
		int wait_status = 0;
		if (child->pid == 0 || waitpid(child->pid, &wait_status, WNOHANG) != child->pid)
			continue;
		pid_t pid = child->pid;
		child->pid = 0; /* from here on the pid may be that of another process */
		/* Drops what it wrote before it died: an address that is no longer valid. */
		if (child->ready_fd >= 0) {
			close(child->ready_fd);
			child->ready_fd = -1;
		}
		if (s->phase == RUNNING)
			died(s, (enum which)i, pid, wait_status);
		else if (wait_status != 0)
			s->exit_code = CLI_FAILED;
	}
	advance(s);
	reap_watched(s);
}

/* ---- the loop ---- */

static void take_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	while (s->phase != DONE && read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(s);
		else if (s->phase == RUNNING)
			begin_stop(s);
		else
			hurry(s);
	}
}

static int poll_timeout_ms(const struct supervisor *s)
{
	int64_t next = os_notify_alive();
	for (int i = 0; i < CHILDREN; i++) {
		const struct child *child = &s->children[i];
		next = MIN(next,
			child->pid ? MIN(child->kill_at_ns, child->ask_at_ns) : child->start_at_ns);
	}
	if (s->c->on_second && s->phase == RUNNING)
		next = MIN(next, s->second_at_ns);
	if (next == NEVER)
		return -1;
	int64_t left_ms = (next - clock_monotonic_ns()) / NS_PER_MS + 1;
	return (int)MAX(MIN(left_ms, (int64_t)3600 * 1000), (int64_t)0);
}

static void tell_the_second(struct supervisor *s)
{
	int64_t now = clock_monotonic_ns();
	if (!s->c->on_second || s->phase != RUNNING || now < s->second_at_ns)
		return;
	s->second_at_ns = now + NS_PER_SEC;
	if (s->c->on_second(s->c->ctx, &s->second_at_ns))
		begin_stop(s);
}

static void loop(struct supervisor *s)
{
	while (s->phase != DONE) {
		start_what_is_due(s);
		struct pollfd fds[1 + CHILDREN] = { { .fd = s->signal_fd, .events = POLLIN } };
		for (int i = 0; i < CHILDREN; i++)
			fds[1 + i] =
				(struct pollfd){ .fd = s->children[i].ready_fd, .events = POLLIN };
		if (poll(fds, ARRAY_COUNT(fds), poll_timeout_ms(s)) < 0 && errno != EINTR) {
			log_error("poll failed", "errno=%d", errno);
			kill_all(s);
			return;
		}
		for (int i = 0; i < CHILDREN; i++)
			if (fds[1 + i].revents)
				read_ready(s, (enum which)i);
		if (fds[0].revents)
			take_signals(s);
		ask_again(s);
		kill_what_is_late(s);
		tell_the_second(s);
	}
}

int supervise_run(const struct supervise_config *c)
{
	struct supervisor s = {
		.c = c, .phase = RUNNING, .handover = { -1, -1 }, .watch_pid = c->watch_pid
	};
	s.children[SERVER] = (struct child){ .name = "server", .ready_fd = -1 };
	s.children[AGENT] = (struct child){ .name = "agent", .ready_fd = -1, .start_at_ns = NEVER };
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, &s.old_mask);
	s.signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	int made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s.handover);
	if (s.signal_fd < 0 || made < 0) {
		cli_complain("signalfd or socketpair: %m");
		s.exit_code = CLI_FAILED;
	} else {
		loop(&s);
	}
	for (int i = 0; i < CHILDREN; i++)
		fd_cleanup(&s.children[i].ready_fd);
	fd_cleanup(&s.signal_fd);
	fd_cleanup(&s.handover[0]);
	fd_cleanup(&s.handover[1]);
	sigprocmask(SIG_SETMASK, &s.old_mask, NULL);
	return s.exit_code;
}
