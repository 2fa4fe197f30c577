/* SPDX-License-Identifier: Apache-2.0 */
/* This process' own memory, as that of another. */
#include "agent/broker/jit_memory.h"

#include "jit_registered.h"
#include "test.h"

#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

struct registered_descriptor __jit_debug_descriptor;

static struct jit_memory_object found[JIT_MEMORY_OBJECTS_MAX];
static struct registered_object first, second;

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

#define DESCRIPTOR at(&__jit_debug_descriptor)

static ssize_t list(void)
{
	return jit_memory_list((int)getpid(), at(&__jit_debug_descriptor), found);
}

static int begin(void **state)
{
	(void)state;
	__jit_debug_descriptor = (struct registered_descriptor){ .version = 1 };
	registered_make(&first, "first", 0x1000, 16);
	registered_make(&second, "second", 0x2000, 16);
	return 0;
}

static void lists_what_is_registered(void **state)
{
	(void)state;
	assert_int_equal(list(), 0);
	registered_add(&first);
	registered_add(&second);
	assert_int_equal(list(), 2);
	CHECK(found[0].entry == at(&second.entry) && found[0].address == at(&second));
	CHECK(found[1].entry == at(&first.entry) && found[1].bytes == first.entry.bytes);
}

static void leaves_out_what_is_no_object(void **state)
{
	(void)state;
	registered_add(&first);
	registered_add(&second);
	second.head.e_ident[0] = 0;
	assert_int_equal(list(), 1);
	first.entry.object = (const void *)16;
	assert_int_equal(list(), 0);
	begin(NULL);
	registered_add(&first);
	first.entry.bytes = 8;
	assert_int_equal(list(), 0);
	first.entry.bytes = JIT_MEMORY_BYTES_MAX;
	assert_int_equal(list(), 1);
	first.entry.bytes = JIT_MEMORY_BYTES_MAX + 1;
	assert_int_equal(list(), 0);
	first.entry.bytes = UINT64_MAX;
	assert_int_equal(list(), 0);
}

static void ends_where_the_list_does_not(void **state)
{
	(void)state;
	registered_add(&first);
	first.entry.next = &first.entry;
	assert_int_equal(list(), JIT_MEMORY_OBJECTS_MAX);
	first.entry.next = (struct registered_entry *)16;
	assert_int_equal(list(), 1);
}

static void refuses_what_is_no_descriptor(void **state)
{
	(void)state;
	registered_add(&first);
	__jit_debug_descriptor.version = 2;
	CHECK(list() == -1 && errno == EPROTO);
	__jit_debug_descriptor.version = 1;
	__jit_debug_descriptor.action = 3;
	CHECK(list() == -1 && errno == EPROTO);
	CHECK(jit_memory_list((int)getpid(), 16, found) == -1 && errno == EPROTO);
	CHECK(jit_memory_list((int)getpid(), UINT64_MAX, found) == -1 && errno == EPROTO);
	CHECK(jit_memory_list(INT32_MAX, 16, found) == -1 && errno == ENOENT);
}

static void reads_an_object_and_no_more(void **state)
{
	(void)state;
	struct registered_object copy = { 0 };
	int pid = (int)getpid();
	size_t len = (size_t)first.entry.bytes;
	registered_add(&first);
	assert_int_equal(
		jit_memory_read(pid, DESCRIPTOR, at(&first.entry), 0, &copy, sizeof(copy)), len);
	assert_memory_equal(&copy, &first, len);
	assert_int_equal(jit_memory_read(pid, DESCRIPTOR, at(&first.entry), len - 3, &copy, 64), 3);
	assert_int_equal(jit_memory_read(pid, DESCRIPTOR, at(&first.entry), len, &copy, 64), 0);
	assert_int_equal(
		jit_memory_read(pid, DESCRIPTOR, at(&first.entry), INT64_MAX, &copy, 64), 0);
	CHECK(jit_memory_read(pid, DESCRIPTOR, at(&first), 0, &copy, 64) == -1 && errno == ENOEXEC);
	CHECK(jit_memory_read(pid, DESCRIPTOR, 16, 0, &copy, 64) == -1 && errno == ENOEXEC);
	first.head.e_ident[0] = 0;
	CHECK(jit_memory_read(pid, DESCRIPTOR, at(&first.entry), 0, &copy, 64) == -1 &&
		errno == ENOEXEC);
}

static ssize_t read_first(void)
{
	char copy[64];
	return jit_memory_read((int)getpid(), DESCRIPTOR, at(&first.entry), 0, copy, sizeof(copy));
}

static void reads_no_entry_that_is_not_in_a_list(void **state)
{
	(void)state;
	registered_add(&first);
	registered_add(&second);
	assert_int_equal(read_first(), 64);
	second.entry.next = NULL;
	CHECK(read_first() == -1 && errno == ENOEXEC);
	first.entry.previous = (struct registered_entry *)16;
	CHECK(read_first() == -1 && errno == ENOEXEC);
	/* Nothing is before it, and it is not the first one. */
	first.entry.previous = NULL;
	CHECK(read_first() == -1 && errno == ENOEXEC);
	__jit_debug_descriptor.first = &first.entry;
	assert_int_equal(read_first(), 64);
	__jit_debug_descriptor.version = 2;
	CHECK(read_first() == -1 && errno == ENOEXEC);
	__jit_debug_descriptor.version = 1;
	first.entry.next = &second.entry;
	CHECK(read_first() == -1 && errno == ENOEXEC);
}

/* A pointer to each library and to its name follow each other there. */
static void reads_no_library_of_the_dynamic_linker(void **state)
{
	(void)state;
	char copy[64];
	int count = 0;
	for (const struct link_map *l = _r_debug.r_map; l; l = l->l_next, count++)
		CHECK(jit_memory_read(
			      (int)getpid(), DESCRIPTOR, at(&l->l_addr) - 16, 0, copy, 64) == -1);
	CHECK(count > 1);
}

/* Erlang's: each byte that makes it one. */
static void lists_objects_of_erlang(void **state)
{
	(void)state;
	static char module[128];
	struct registered_entry entry = { .object = module, .bytes = sizeof(module) };
	module[0] = 1;
	module[24] = 4;
	memcpy(module + 26, "fib", 4);
	memcpy(module + 26 + 4 + 6 + 14, "fib::codeHeader", 16);
	__jit_debug_descriptor.first = &entry;
	assert_int_equal(list(), 1);
	CHECK(found[0].address == at(module) && found[0].bytes == sizeof(module));
	static const uint8_t needed[] = { 0, 1, 24, 25, 26, 29, 50, 53, 54 };
	for (size_t i = 0; i < sizeof(needed); i++) {
		module[needed[i]] ^= 64;
		assert_int_equal(list(), 0);
		module[needed[i]] ^= 64;
	}
	entry.bytes = sizeof(Elf64_Ehdr);
	assert_int_equal(list(), 1);
	entry.bytes--;
	assert_int_equal(list(), 0);
}

/* It says that it is larger than what is mapped. */
static void reads_up_to_what_is_mapped(void **state)
{
	(void)state;
	char copy[64];
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
	memcpy(pages, &first, sizeof(first));
	registered_add(&first);
	first.entry.object = pages;
	first.entry.bytes = 8192;
	assert_int_equal(
		jit_memory_read((int)getpid(), DESCRIPTOR, at(&first.entry), 4090, copy, 64), 6);
	CHECK(jit_memory_read((int)getpid(), DESCRIPTOR, at(&first.entry), 4096, copy, 64) == -1);
	munmap(pages, 4096);
}

TEST_MAIN(cmocka_unit_test_setup(lists_what_is_registered, begin),
	cmocka_unit_test_setup(leaves_out_what_is_no_object, begin),
	cmocka_unit_test_setup(ends_where_the_list_does_not, begin),
	cmocka_unit_test_setup(refuses_what_is_no_descriptor, begin),
	cmocka_unit_test_setup(reads_an_object_and_no_more, begin),
	cmocka_unit_test_setup(reads_no_entry_that_is_not_in_a_list, begin),
	cmocka_unit_test_setup(reads_no_library_of_the_dynamic_linker, begin),
	cmocka_unit_test_setup(lists_objects_of_erlang, begin),
	cmocka_unit_test_setup(reads_up_to_what_is_mapped, begin))
