/* SPDX-License-Identifier: Apache-2.0 */
/* This process as one that publishes a context: the thread finds it. */
#include "agent/files/contexts.h"

#include "base/clock.h"
#include "test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct head {
	char signature[8];
	uint32_t version, bytes;
	uint64_t published_ns;
	const char *text;
};

static const char text[] = "what it says";

static struct contexts_answer *wait_for_answer(struct contexts *c)
{
	struct contexts_answer *a = NULL;
	int64_t end = clock_monotonic_ns() + 60 * NS_PER_SEC;
	while (!(a = contexts_take(c)) && clock_monotonic_ns() < end)
		usleep(1000);
	return a;
}

static struct contexts_answer *ask(struct contexts *c, int pid)
{
	CHECK(contexts_ask(c, (uint32_t)pid, 77));
	struct contexts_answer *a = wait_for_answer(c);
	CHECK(a && a->pid == (uint32_t)pid && a->place.process_start_ns == 77);
	return a;
}

static void finds_what_is_published(void **state)
{
	(void)state;
	struct contexts *c = NULL;
	struct err e = { 0 };
	CHECK_OK(contexts_new(&c, &e), &e);
	CLEANUP(free_cleanup) struct contexts_answer *none = ask(c, getpid());
	CHECK(none->is_known && none->bytes == 0);
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	struct head *h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(h != MAP_FAILED);
	close(fd);
	*h = (struct head){ "OTEL_CTX", 2, sizeof(text), 0, text };
	CLEANUP(free_cleanup) struct contexts_answer *changing = ask(c, getpid());
	CHECK(!changing->is_known && changing->bytes == 0);
	h->published_ns = 1;
	CLEANUP(free_cleanup) struct contexts_answer *a = ask(c, getpid());
	CHECK(a->is_known && a->bytes == sizeof(text) && !memcmp(a->context, text, sizeof(text)));
	CHECK(a->place.form == THREAD_CONTEXT_NONE); /* this program has no such variable */
	CLEANUP(free_cleanup) struct contexts_answer *gone = ask(c, INT32_MAX);
	CHECK(!gone->is_known && gone->bytes == 0);
	munmap(h, 4096);
	CLEANUP(buf_deinit) struct buf figures;
	buf_init(&figures, 1 << 16);
	contexts_write_metrics(c, &figures);
	buf_u8(&figures, 0);
	const char *said = (const char *)figures.data;
	CHECK(strstr(said, "firn_agent_context_looks_total 4\n"));
	CHECK(strstr(said, "firn_agent_context_failures_total 1\n"));
	contexts_free(c);
}

static void takes_no_more_than_it_has_room_for(void **state)
{
	(void)state;
	struct contexts *c = NULL;
	struct err e = { 0 };
	CHECK_OK(contexts_new(&c, &e), &e);
	CHECK(contexts_room(c) == CONTEXTS_ASKED_MAX);
	for (int i = 0; i < CONTEXTS_ASKED_MAX; i++)
		CHECK(contexts_ask(c, (uint32_t)getpid(), 1));
	/* Whether they are answered by now or not. */
	CHECK(contexts_room(c) == 0 && !contexts_ask(c, (uint32_t)getpid(), 1));
	free(wait_for_answer(c));
	CHECK(contexts_room(c) == 1 && contexts_ask(c, (uint32_t)getpid(), 1));
	contexts_free(c); /* with answers that nobody took */
}

TEST_MAIN(cmocka_unit_test(finds_what_is_published),
	cmocka_unit_test(takes_no_more_than_it_has_room_for))
