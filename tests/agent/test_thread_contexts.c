/* SPDX-License-Identifier: Apache-2.0 */
/* This process as one with a context: it has the variable, and a mapping of that name. */
#include "test.h"

#include "agent/files/files.h"
#include "agent/files/thread_contexts.h"

#include <sys/mman.h>
#include <unistd.h>

__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;

static struct code_files_memory t;

static void finds_the_variable(void **state)
{
	(void)state;
	struct thread_contexts_found f = { 0 };
	int pid = (int)getpid();
	otel_thread_ctx_v1 = &t; /* so that it is there */
	CHECK(thread_contexts_find(&t, pid, &f) == OK);
	CHECK(f.head == 0 && f.place.form == THREAD_CONTEXT_NONE);
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	CHECK(thread_contexts_find(&t, pid, &f) == OK);
	CHECK(f.place.form == THREAD_CONTEXT_FIXED && !f.place.is_musl);
	CHECK(f.head == (uintptr_t)p);
	uintptr_t pointer;
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	CHECK(pointer + f.place.at == (uintptr_t)&otel_thread_ctx_v1);
	/* Others that map it have other code: what has no variable is remembered. */
	CHECK(thread_contexts_find(&t, pid, &f) == OK);
	munmap(p, 4096);
	CHECK(thread_contexts_find(&t, pid, &f) == OK);
	CHECK(f.head == 0 && f.place.form == THREAD_CONTEXT_NONE);
	CHECK(thread_contexts_find(&t, INT32_MAX, &f) == E_NOTFOUND);
}

TEST_MAIN(cmocka_unit_test(finds_the_variable))
