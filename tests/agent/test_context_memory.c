/* SPDX-License-Identifier: Apache-2.0 */
/* This process' own context, as that of another: whole, being changed, and forged. */
#include "agent/broker/context_memory.h"

#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct head {
	char signature[8];
	uint32_t version, bytes;
	uint64_t published_ns, address;
};

static const char text[] = "what it says";
static uint8_t got[CONTEXT_MEMORY_BYTES_MAX];
static struct head *head;

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int begin(void **state)
{
	(void)state;
	head = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Behind it nothing is mapped. */
	if (head == MAP_FAILED || munmap((char *)head + 4096, 4096))
		return -1;
	*head = (struct head){ "OTEL_CTX", 2, sizeof(text), 1, at(text) };
	return 0;
}

static int end(void **state)
{
	(void)state;
	return munmap(head, 4096);
}

static ssize_t read_it(void)
{
	return context_memory_read((int)getpid(), at(head), got);
}

static void reads_what_is_published(void **state)
{
	(void)state;
	assert_int_equal(read_it(), sizeof(text));
	assert_memory_equal(got, text, sizeof(text));
	head->bytes = 0;
	assert_int_equal(read_it(), 0);
}

static void waits_for_what_is_changed(void **state)
{
	(void)state;
	head->published_ns = 0;
	CHECK(read_it() == -1 && errno == EAGAIN);
}

static void refuses_what_is_none(void **state)
{
	(void)state;
	int pid = (int)getpid();
	head->version = 1;
	CHECK(read_it() == -1 && errno == EPROTO);
	head->version = 2;
	head->signature[7] = 0;
	CHECK(read_it() == -1 && errno == EPROTO);
	head->signature[7] = 'X';
	head->bytes = CONTEXT_MEMORY_BYTES_MAX + 1;
	CHECK(read_it() == -1 && errno == EFBIG);
	head->bytes = sizeof(text);
	head->address = 16;
	CHECK(read_it() == -1 && errno == EAGAIN);
	head->address = UINT64_MAX;
	CHECK(read_it() == -1 && errno == EAGAIN);
	/* The text ends with what is mapped. */
	head->address = at(head) + 4096 - 8;
	CHECK(read_it() == -1 && errno == EAGAIN);
	/* Not at the beginning of a page. */
	memcpy((char *)head + 64, head, sizeof(*head));
	CHECK(context_memory_read(pid, at(head) + 64, got) == -1 && errno == EPROTO);
	CHECK(context_memory_read(pid, 0, got) == -1 && errno == EPROTO);
	CHECK(context_memory_read(pid, UINT64_MAX - 4095, got) == -1 && errno == EPROTO);
	CHECK(context_memory_read(INT32_MAX, at(head), got) == -1 && errno == ENOENT);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(reads_what_is_published, begin, end),
	cmocka_unit_test_setup_teardown(waits_for_what_is_changed, begin, end),
	cmocka_unit_test_setup_teardown(refuses_what_is_none, begin, end))
