/* SPDX-License-Identifier: Apache-2.0 */
/* The sender against a real server on a Unix socket that comes, goes, refuses and stalls. */
#include "temp_dir.h"
#include "test.h"

#include "agent/send/send.h"
#include "base/clock.h"
#include "net/net.h"
#include "otlp/otlp.h"

#include <time.h>

/* Generous: the machine may be loaded. */
#define WAIT_NS (30 * NS_PER_SEC)

#define ORDER_MAX 4096

struct server {
	char address[128];
	struct net_server *net;
	_Atomic int answer; /* enum status */
	_Atomic int rejects;
	_Atomic uint64_t taken; /* requests answered with OK */
	_Atomic uint64_t calls;
	_Atomic uint64_t bytes_sum; /* of the numbers in the messages taken */
	_Atomic uint64_t last;
	_Atomic uint64_t order[ORDER_MAX]; /* the numbers taken, as they came */
};

/* A message is a number in text. */
static void take_export(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	uint64_t number = 0;
	atomic_fetch_add(&s->calls, 1);
	struct err e = { 0 };
	if (atomic_load(&s->answer) != OK) {
		net_fail(out, (enum status)atomic_load(&s->answer),
			(err_set(&e, (enum status)atomic_load(&s->answer), "not now"), &e));
		return;
	}
	if (!str_parse_u64(r->body, 10, &number)) {
		net_fail(out, E_INVALID, (err_set(&e, E_INVALID, "not a number"), &e));
		return;
	}
	atomic_fetch_add(&s->bytes_sum, number);
	atomic_store(&s->last, number);
	atomic_store(&s->order[atomic_load(&s->taken) % ORDER_MAX], number);
	atomic_fetch_add(&s->taken, 1);
	struct otlp_rejects rejects = { .profiles = atomic_load(&s->rejects) };
	if (rejects.profiles)
		strcpy(rejects.reason, "a reason");
	otlp_encode_response(&rejects, &out->body);
}

static void server_init(struct server *s, const struct temp_dir *d)
{
	*s = (struct server){ 0 };
	snprintf(s->address, sizeof(s->address), "unix:%s/socket", d->path);
}

static void server_start(struct server *s)
{
	struct net_server_config c;
	net_server_config_default(&c);
	c.address = s->address;
	c.drain_timeout_ns = NS_PER_SEC;
	const struct net_route route = { "POST",
		"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
		take_export, s, .is_rpc = true };
	struct err e;
	CHECK_OK(net_server_start(&c, &route, 1, &s->net, &e), &e);
}

static void server_stop(struct server *s)
{
	net_server_stop(s->net);
	s->net = NULL;
	unlink(s->address + strlen("unix:"));
}

static struct sender *start_sender(
	const struct server *server, const char *spool_dir, uint64_t spool_bytes)
{
	struct sender_config c;
	sender_config_default(&c);
	CHECK(c.backoff_min_ns == NS_PER_SEC && c.backoff_max_ns == 60 * NS_PER_SEC);
	c.remote.address = server->address;
	c.spool_dir = spool_dir;
	c.spool_bytes_max = spool_bytes;
	c.backoff_min_ns = 10 * NS_PER_MS;
	c.backoff_max_ns = 50 * NS_PER_MS;
	struct sender *s = NULL;
	struct err e;
	CHECK_OK(sender_new(&c, &s, &e), &e);
	return s;
}

static void push(struct sender *s, uint64_t number, uint32_t samples)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 100);
	buf_printf(&b, "%llu", (unsigned long long)number);
	sender_push(s, &b, samples);
	CHECK(b.len == 0);
}

#define WAIT_FOR(x)                                                                \
	do {                                                                       \
		int64_t until_ = clock_monotonic_ns() + WAIT_NS;                   \
		while (!(x) && clock_monotonic_ns() < until_)                      \
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL); \
		CHECK(x);                                                          \
	} while (0)

static uint64_t get(const metric_value *m)
{
	return metric_get(m);
}

/* samples + recovered = sent + lost + waiting + spooled */
static void check_conserved(const struct sender *s)
{
	const struct send_metrics *m = sender_metrics(s);
	uint64_t in = get(&m->samples) + get(&m->recovered);
	uint64_t out = get(&m->sent) + get(&m->lost_queue) + get(&m->lost_spool) +
		       get(&m->lost_damaged) + get(&m->lost_refused) + get(&m->waiting) +
		       get(&m->spooled);
	if (in != out) {
		print_error("%llu samples in, %llu accounted for\n", (unsigned long long)in,
			(unsigned long long)out);
		fail();
	}
}

static void sends_what_it_is_given(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	struct server server;
	server_init(&server, &d);
	server_start(&server);
	struct sender *s = start_sender(&server, NULL, 0);
	for (uint64_t i = 1; i <= 10; i++)
		push(s, i, 3);
	sender_stop(s, WAIT_NS);
	check_conserved(s);
	CHECK(get(&sender_metrics(s)->sent) == 30 && get(&sender_metrics(s)->waiting) == 0);
	CHECK(atomic_load(&server.bytes_sum) == 55);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 16);
	sender_write_metrics(s, &text);
	buf_u8(&text, 0);
	CHECK(strstr((char *)text.data, "firn_agent_sent_samples_total 30\n"));
	sender_free(s);
	server_stop(&server);
}

/* The server is away when batches are made, comes, goes again, and comes again. */
static void keeps_batches_while_the_server_is_away(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d, spool;
	temp_dir_init(&d);
	temp_dir_init(&spool);
	struct server server;
	server_init(&server, &d);
	struct sender *s = start_sender(&server, spool.path, 1 << 20);
	const struct send_metrics *m = sender_metrics(s);
	for (uint64_t i = 1; i <= 5; i++)
		push(s, i, 2);
	WAIT_FOR(get(&m->spooled) == 10 && get(&m->waiting) == 0);
	CHECK(temp_dir_count(&spool, ".batch") == 5);
	WAIT_FOR(get(&m->failures) >= 3);

	server_start(&server);
	WAIT_FOR(atomic_load(&server.taken) == 5);
	WAIT_FOR(get(&m->spooled) == 0);
	CHECK(temp_dir_count(&spool, ".batch") == 0);
	server_stop(&server);

	for (uint64_t i = 6; i <= 8; i++)
		push(s, i, 2);
	WAIT_FOR(get(&m->spooled) == 6);
	server_start(&server);
	push(s, 9, 2);
	WAIT_FOR(get(&m->sent) == 18);
	sender_stop(s, WAIT_NS);
	check_conserved(s);
	CHECK(atomic_load(&server.bytes_sum) == 45 && get(&m->lost_spool) == 0);
	sender_free(s);
	server_stop(&server);
}

static void the_next_agent_sends_what_is_left(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d, spool;
	temp_dir_init(&d);
	temp_dir_init(&spool);
	struct server server;
	server_init(&server, &d);
	struct sender *s = start_sender(&server, spool.path, 1 << 20);
	for (uint64_t i = 1; i <= 4; i++)
		push(s, i, 5);
	sender_stop(s, NS_PER_MS); /* nobody there: all goes to disk */
	check_conserved(s);
	CHECK(get(&sender_metrics(s)->spooled) == 20);
	sender_free(s);

	server_start(&server);
	s = start_sender(&server, spool.path, 1 << 20);
	CHECK(get(&sender_metrics(s)->recovered) == 20);
	WAIT_FOR(get(&sender_metrics(s)->sent) == 20);
	CHECK(atomic_load(&server.bytes_sum) == 10);
	sender_stop(s, WAIT_NS);
	check_conserved(s);
	sender_free(s);
	server_stop(&server);
}

#define NEW 1000 /* numbers from here on were never on disk */

/* What came, in order: those that waited are 1, 2, … and nothing else, the new ones ascend. */
static void check_order(struct server *s, uint64_t waited)
{
	uint64_t old = 0, last = NEW - 1;
	for (uint64_t i = 0; i < atomic_load(&s->taken); i++) {
		uint64_t number = atomic_load(&s->order[i]);
		if (number < NEW)
			CHECK(number == ++old);
		else
			CHECK(number == ++last);
	}
	CHECK(old == waited);
}

/* Over two ends of the agent, and a server that goes away in the middle. */
static void sends_in_order(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d, spool;
	temp_dir_init(&d);
	temp_dir_init(&spool);
	static struct server server;
	server_init(&server, &d);
	struct sender *s = start_sender(&server, spool.path, 1 << 20);
	for (uint64_t i = 1; i <= 12; i++)
		push(s, i, 1);
	sender_stop(s, NS_PER_MS);
	sender_free(s);

	s = start_sender(&server, spool.path, 1 << 20);
	for (uint64_t i = 13; i <= 100; i++)
		push(s, i, 1);
	WAIT_FOR(get(&sender_metrics(s)->spooled) == 100);
	server_start(&server);
	WAIT_FOR(atomic_load(&server.taken) >= 20);
	atomic_store(&server.answer, E_UNAVAILABLE);
	/* From a refusal on nothing is under way that was taken. */
	uint64_t failures = get(&sender_metrics(s)->failures);
	WAIT_FOR(get(&sender_metrics(s)->failures) > failures || atomic_load(&server.taken) == 100);
	sender_stop(s, NS_PER_MS);
	sender_free(s);

	atomic_store(&server.answer, OK);
	uint64_t begun = atomic_load(&server.taken);
	s = start_sender(&server, spool.path, 1 << 20);
	for (uint64_t i = 0; i < 30; i++) {
		push(s, NEW + i, 1);
		WAIT_FOR(atomic_load(&server.taken) > begun + i);
	}
	WAIT_FOR(get(&sender_metrics(s)->sent) == 100 - begun + 30);
	check_order(&server, 100);
	CHECK(atomic_load(&server.taken) == 130);
	sender_stop(s, WAIT_NS);
	check_conserved(s);
	sender_free(s);
	server_stop(&server);
}

static void without_a_spool_memory_is_the_limit(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	struct server server;
	server_init(&server, &d);
	struct sender *s = start_sender(&server, "", 0);
	const struct send_metrics *m = sender_metrics(s);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 2 << 20);
	for (int i = 0; i < 40; i++) {
		CHECK(buf_extend(&b, 1 << 20));
		memset(b.data, '0', 1 << 20);
		sender_push(s, &b, 1);
		WAIT_FOR(get(&m->waiting_bytes) <= SEND_HELD_BYTES_MAX + (1 << 20));
	}
	WAIT_FOR(get(&m->lost_queue) == 40 - (SEND_HELD_BYTES_MAX >> 20)); /* counted last */
	CHECK(get(&m->waiting_bytes) <= SEND_HELD_BYTES_MAX);
	CHECK(get(&m->waiting) == SEND_HELD_BYTES_MAX >> 20);
	push(s, 77, 1);
	server_start(&server);
	WAIT_FOR(atomic_load(&server.last) == 77);
	sender_stop(s, WAIT_NS);
	check_conserved(s);
	sender_free(s);
	server_stop(&server);
}

static void a_refused_batch_is_dropped(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d, spool;
	temp_dir_init(&d);
	temp_dir_init(&spool);
	struct server server;
	server_init(&server, &d);
	server_start(&server);
	struct sender *s = start_sender(&server, spool.path, 1 << 20);
	const struct send_metrics *m = sender_metrics(s);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 100);
	buf_cstr(&b, "no number");
	sender_push(s, &b, 4);
	push(s, 5, 1);
	WAIT_FOR(get(&m->sent) == 1);
	CHECK(get(&m->lost_refused) == 4 && get(&m->reachable) == 1);

	/* "Too much" for a long time means this batch. */
	atomic_store(&server.answer, E_QUOTA);
	push(s, 6, 2);
	WAIT_FOR(get(&m->lost_refused) == 6);
	CHECK(atomic_load(&server.calls) == 2 + SEND_LIMIT_ANSWERS_MAX);

	/* No right to write, for now: somebody may mend that. */
	atomic_store(&server.answer, E_DENIED);
	push(s, 7, 3);
	WAIT_FOR(get(&m->spooled) == 3);
	atomic_store(&server.answer, OK);
	WAIT_FOR(get(&m->sent) == 4);
	sender_stop(s, WAIT_NS);
	check_conserved(s);
	sender_free(s);
	server_stop(&server);
}

static void partial_success_is_counted(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	struct server server;
	server_init(&server, &d);
	atomic_store(&server.rejects, 2);
	server_start(&server);
	struct sender *s = start_sender(&server, NULL, 0);
	push(s, 1, 9);
	sender_stop(s, WAIT_NS);
	CHECK(get(&sender_metrics(s)->rejected_profiles) == 2);
	CHECK(get(&sender_metrics(s)->sent) == 9);
	sender_free(s);
	server_stop(&server);
}

static void bad_settings_are_errors(void **state)
{
	(void)state;
	struct sender_config c;
	sender_config_default(&c);
	char address[300] = "unix:/";
	memset(address + 6, 'x', sizeof(address) - 7);
	c.remote.address = address; /* longer than a socket's path may be */
	struct sender *s = NULL;
	struct err e = { 0 };
	CHECK(sender_new(&c, &s, &e) != OK && !s && e.text[0]);
	c.remote.address = "127.0.0.1:1";
	c.spool_dir = "/proc/self/status"; /* no directory */
	CHECK(sender_new(&c, &s, &e) != OK && !s && strstr(e.text, "/proc/self/status"));
}

/* Offline: all goes to disk, in order, and another sender takes it to a server. */
static void keeps_everything_offline(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	CLEANUP(temp_dir_deinit) struct temp_dir spool;
	struct server server;
	temp_dir_init(&d);
	temp_dir_init(&spool);
	server_init(&server, &d);
	struct sender_config c;
	sender_config_default(&c);
	c.offline = true;
	c.spool_dir = spool.path;
	struct sender *s = NULL;
	struct err e;
	CHECK_OK(sender_new(&c, &s, &e), &e);
	CHECK(sender_is_done(s));
	for (uint64_t i = 1; i <= 5; i++)
		push(s, i, 10);
	WAIT_FOR(get(&sender_metrics(s)->spool_batches) == 5);
	CHECK(get(&sender_metrics(s)->failures) == 0);
	push(s, 6, 10);
	sender_stop(s, 0);
	CHECK(get(&sender_metrics(s)->spooled) == 60 && !sender_is_done(s));
	check_conserved(s);
	sender_free(s);
	server_start(&server);
	s = start_sender(&server, spool.path, 1 << 20);
	WAIT_FOR(sender_is_done(s));
	CHECK(atomic_load(&server.taken) == 6 && atomic_load(&server.bytes_sum) == 21 &&
		atomic_load(&server.last) == 6);
	check_conserved(s);
	sender_free(s);
	server_stop(&server);
}

TEST_MAIN(cmocka_unit_test(keeps_everything_offline), cmocka_unit_test(sends_what_it_is_given),
	cmocka_unit_test(keeps_batches_while_the_server_is_away),
	cmocka_unit_test(the_next_agent_sends_what_is_left), cmocka_unit_test(sends_in_order),
	cmocka_unit_test(without_a_spool_memory_is_the_limit),
	cmocka_unit_test(a_refused_batch_is_dropped), cmocka_unit_test(partial_success_is_counted),
	cmocka_unit_test(bad_settings_are_errors))
