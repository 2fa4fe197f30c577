/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/process.h"
#include "procfs/procfs.h"

#include "base/clock.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Node alone. */
static struct metadata *metadata(void)
{
	static struct metadata *m;
	struct err e;
	const struct metadata_config c = { .node = "host-1", .config_path = "" };
	if (!m)
		CHECK_OK(metadata_new(&c, &m, &e), &e);
	return m;
}

static const struct processes_config *config(void)
{
	static struct processes_config c;
	c.metadata = metadata();
	c.patience_ns = 30 * NS_PER_SEC; /* however busy the machine is */
	return &c;
}

static struct str label_of(const struct process *x, struct str name)
{
	for (uint32_t i = 0; i < x->label_count; i++)
		if (str_eq(x->labels[i].name, name))
			return x->labels[i].value;
	return STR("");
}

/* A context with one attribute, as otlp_decode_process_context() reads it. */
static struct str context_of(const char *key, const char *value)
{
	static char text[128];
	size_t k = strlen(key), v = strlen(value);
	snprintf(text, sizeof(text), "\n%c\n%c\n%c%s\x12%c\n%c%s", (int)(k + v + 8),
		(int)(k + v + 6), (int)k, key, (int)v + 2, (int)v, value);
	return str_make(text, k + v + 10);
}

/* An event of a live process, as the kernel would send it. */
static struct event_header event_of(pid_t pid, const char *comm)
{
	struct procfs_stat stat;
	struct err e;
	CHECK_OK(procfs_stat((int)pid, &stat, &e), &e);
	struct event_header h = { .pid = (uint32_t)pid, .tid = (uint32_t)pid };
	/* Some nanoseconds more than the tick: the kernel's clock is finer. */
	h.process_start_ns =
		stat.start_ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK)) + 1234;
	memcpy(h.comm, comm, MIN(strlen(comm), sizeof(h.comm)));
	return h;
}

static void describes_a_live_process(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	prctl(PR_SET_NAME, "main name");
	struct event_header h = event_of(getpid(), "thread");
	const struct process *x = processes_find(p, &h);
	CHECK(x && x->pid == (uint32_t)getpid());
	CHECK_STR(x->comm, "main name");
	CHECK_STR(x->executable, program_invocation_short_name);
	CHECK_STR(label_of(x, STR("node")), "host-1");
	CHECK_STR(label_of(x, STR("comm")), "main name");
	CHECK(!x->dropped);
	CHECK(metric_get(&processes_metrics(p)->read) == 1);
	CHECK(processes_find(p, &h) && metric_get(&processes_metrics(p)->read) == 1);
	/* exec: read again. */
	prctl(PR_SET_NAME, "other");
	processes_exec(p, &h);
	CHECK_STR(processes_find(p, &h)->comm, "other");
	CHECK_STR(label_of(processes_find(p, &h), STR("comm")), "other");
	processes_forget(p); /* other rules: read again */
	CHECK_STR(label_of(processes_find(p, &h), STR("comm")), "other");
	processes_free(p);
}

static void labels_it_by_its_context(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	struct event_header h = event_of(getpid(), "x");
	processes_set_context(p, h.pid, h.process_start_ns, STR("")); /* not known yet */
	CHECK(label_of(processes_find(p, &h), STR("service_name")).len == 0);
	processes_set_context(p, h.pid, h.process_start_ns, context_of("service.name", "orders"));
	CHECK_STR(label_of(processes_find(p, &h), STR("service_name")), "orders");
	uint64_t read = metric_get(&processes_metrics(p)->relabelled);
	processes_set_context(p, h.pid, h.process_start_ns, context_of("service.name", "orders"));
	CHECK_STR(label_of(processes_find(p, &h), STR("service_name")), "orders");
	CHECK(metric_get(&processes_metrics(p)->relabelled) == read);
	/* Of another process nothing is believed, and of one that cannot be read nothing known. */
	processes_set_context(p, h.pid, h.process_start_ns + 1, context_of("service.name", "z"));
	CHECK_STR(label_of(processes_find(p, &h), STR("service_name")), "orders");
	processes_set_context(p, h.pid, h.process_start_ns, STR("\n\xff"));
	CHECK(label_of(processes_find(p, &h), STR("service_name")).len == 0);
	CHECK(metric_get(&processes_metrics(p)->contexts_bad) == 1);
	/* Another program has another one, or none. */
	processes_set_context(p, h.pid, h.process_start_ns, context_of("service.name", "orders"));
	processes_exec(p, &h);
	CHECK(label_of(processes_find(p, &h), STR("service_name")).len == 0);
	processes_free(p);
}

static void never_mixes_two_of_one_pid(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	/* The event is of an earlier process with our pid: what /proc says is not its. */
	struct event_header h = event_of(getpid(), "earlier");
	h.process_start_ns -= 3000000000ULL;
	const struct process *x = processes_find(p, &h);
	CHECK_STR(x->comm, "earlier");
	CHECK_STR(x->executable, "earlier");
	CHECK(metric_get(&processes_metrics(p)->gone) == 1);
	struct event_header now = event_of(getpid(), "now");
	CHECK_STR(processes_find(p, &now)->executable, program_invocation_short_name);
	CHECK_STR(processes_find(p, &h)->executable, "earlier");
	processes_free(p);
}

static void keeps_the_name_of_the_dead(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	struct event_header h = event_of(child, "short-lived");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	processes_exec(p, &h);
	const struct process *x = processes_find(p, &h);
	CHECK_STR(x->comm, "short-lived");
	CHECK_STR(x->executable, "short-lived");
	CHECK(metric_get(&processes_metrics(p)->gone) == 1);
	processes_exit(p, &h);
	for (int i = 0; i < 4; i++)
		processes_tick(p);
	CHECK(metric_get(&processes_metrics(p)->known) == 0);
	processes_free(p);
}

/* A child that waits; its event. */
static pid_t start_child(const char *comm, struct event_header *out)
{
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	CHECK(child > 0);
	*out = event_of(child, comm);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Of a thousand programs a second few are ever sampled. */
static void reads_what_begins_only_while_it_lives(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	const struct process_metrics *m = processes_metrics(p);
	struct event_header lives, dies, sampled;
	pid_t children[] = { start_child("lives", &lives), start_child("dies", &dies),
		start_child("sampled", &sampled) };
	processes_exec(p, &lives);
	processes_exec(p, &dies);
	processes_exec(p, &sampled);
	CHECK(metric_get(&m->read) == 0);
	/* Asked for before it ended: by its event when /proc has it no more. */
	end_child(children[2]);
	const struct process *x = processes_find(p, &sampled);
	CHECK(metric_get(&m->read) == 1 && metric_get(&m->gone) == 1);
	CHECK_STR(x->comm, "sampled");
	processes_exit(p, &sampled);
	end_child(children[1]);
	processes_exit(p, &dies);
	processes_settle(p);
	CHECK(metric_get(&m->read) == 2 && metric_get(&m->gone) == 1);
	end_child(children[0]);
	CHECK_STR(processes_find(p, &lives)->executable, program_invocation_short_name);
	CHECK(metric_get(&m->read) == 2);
	processes_tick(p);
	CHECK(metric_get(&m->known) == 2); /* that of `dies` is not remembered at all */
	/* Another program in a known process: the old labels are not the new program's. */
	memcpy(lives.comm, "newer", 6);
	processes_exec(p, &lives);
	CHECK_STR(processes_find(p, &lives)->comm, "newer");
	CHECK_STR(processes_find(p, &lives)->executable, "newer");
	processes_free(p);
}

/* The event of its exec was lost: it is what /proc says as soon as that is suspected. */
static void reads_again_what_may_be_another_program(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	int go[2], done[2];
	char byte = 0;
	CHECK(pipe(go) == 0 && pipe(done) == 0);
	CHECK_OK(processes_new(config(), &p, &e), &e);
	pid_t child = fork();
	if (child == 0) {
		if (read(go[0], &byte, 1) != 1 || prctl(PR_SET_NAME, "another") != 0 ||
			write(done[1], &byte, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	CHECK(child > 0);
	struct event_header h = event_of(child, "x");
	CHECK(!str_eq(processes_find(p, &h)->comm, STR("another")));
	CHECK(write(go[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1);
	CHECK(!str_eq(processes_find(p, &h)->comm, STR("another")));
	processes_doubt(p);
	CHECK_STR(processes_find(p, &h)->comm, "another");
	CHECK(metric_get(&processes_metrics(p)->relabelled) == 1);
	(void)processes_find(p, &h); /* once */
	CHECK(metric_get(&processes_metrics(p)->relabelled) == 1);
	end_child(child);
	processes_free(p);
	for (int i = 0; i < 2; i++)
		(void)(close(go[i]) + close(done[i]));
}

static void forgets_for_room(void **state)
{
	(void)state;
	struct processes *p;
	struct err e;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	/* No process has such a pid: every label comes from the event. */
	struct event_header h = { .pid = 1u << 30, .tid = 1u << 30 };
	for (uint32_t i = 0; i < PROCESSES_MAX + 5000; i++) {
		h.process_start_ns = i;
		int n = snprintf(h.comm, sizeof(h.comm), "p%u", i);
		CHECK(n > 0);
		const struct process *x = processes_find(p, &h);
		CHECK(x && str_eq(x->comm, str_of(h.comm)));
		if (i % 1000 == 0)
			processes_tick(p);
	}
	processes_tick(p);
	CHECK(metric_get(&processes_metrics(p)->known) <= PROCESSES_MAX);
	CHECK(metric_get(&processes_metrics(p)->evicted) >= 5000);
	processes_free(p);
}

static void count_look(void *ctx, uint32_t pid, uint64_t start_ns)
{
	unsigned *looks = ctx;
	*looks += pid == (uint32_t)getpid() && start_ns != 0;
}

/* After 1, 2, 4 ticks, while it has samples; anew as another program. */
static void is_looked_at_ever_more_seldom(void **state)
{
	(void)state;
	static const unsigned want[] = { 1, 2, 2, 3, 3, 3, 3, 4, 4 };
	struct processes *p;
	struct err e;
	unsigned looks = 0;
	CHECK_OK(processes_new(config(), &p, &e), &e);
	struct event_header h = event_of(getpid(), "x");
	for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
		CHECK(processes_find(p, &h));
		CHECK(processes_look_holds(p, h.pid, h.process_start_ns) == (i > 0));
		processes_look(p, 16, count_look, &looks);
		CHECK(looks == want[i]);
		processes_tick(p);
	}
	processes_exec(p, &h);
	CHECK(processes_find(p, &h));
	CHECK(!processes_look_holds(p, h.pid, h.process_start_ns));
	processes_look(p, 16, count_look, &looks);
	CHECK(looks == ARRAY_COUNT(want) - 4);
	CHECK(processes_look_holds(p, h.pid, h.process_start_ns));
	CHECK(!processes_look_holds(p, h.pid, h.process_start_ns + 1));
	for (int i = 0; i < 8; i++) { /* without samples */
		processes_tick(p);
		if (i >= 2)
			processes_look(p, 16, count_look, &looks);
	}
	CHECK(looks == ARRAY_COUNT(want) - 4);
	processes_exit(p, &h);
	CHECK(!processes_look_holds(p, h.pid, h.process_start_ns));
	processes_look(p, 16, count_look, &looks);
	CHECK(looks == ARRAY_COUNT(want) - 4);
	processes_free(p);
}

TEST_MAIN(cmocka_unit_test(is_looked_at_ever_more_seldom),
	cmocka_unit_test(describes_a_live_process), cmocka_unit_test(labels_it_by_its_context),
	cmocka_unit_test(never_mixes_two_of_one_pid), cmocka_unit_test(keeps_the_name_of_the_dead),
	cmocka_unit_test(reads_what_begins_only_while_it_lives),
	cmocka_unit_test(reads_again_what_may_be_another_program),
	cmocka_unit_test(forgets_for_room))
