/* SPDX-License-Identifier: Apache-2.0 */
/* A process that says by OpenTelemetry's thread context which span it works for, on the real
 * kernel: it is a child of this one, which has the variable, too. */
#include "test.h"

#include "agent/files/files.h"
#include "agent/sample/probe.h"
#include "live.h"

#include <sys/prctl.h>

#define FREQUENCY_HZ 199
#define SAMPLES_FIRST 5
#define SAMPLES_WANTED 40
#define SECONDS_MAX 60

static uint8_t record[THREAD_CONTEXT_BYTES] = { "0123456789abcdefSPAN-ID8\1\1" };

__attribute__((visibility("default"))) __thread const void *otel_thread_ctx_v1;

static _Noreturn void work(int ready)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where the test fails */
	/* Written as a library does: a page that was never touched cannot be read at a sample. */
	*(volatile uint8_t *)record = record[0];
	otel_thread_ctx_v1 = record;
	if (fd < 0 || ftruncate(fd, 4096) ||
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ||
		write(ready, "1", 1) != 1)
		_exit(1);
	for (volatile unsigned i = 0;; i++)
		;
}

static int start(void)
{
	int ready[2];
	char byte;
	CHECK(pipe(ready) == 0);
	int pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		work(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void poll_until(struct live *l, size_t samples)
{
	int64_t end = clock_monotonic_ns() + SECONDS_MAX * NS_PER_SEC;
	while (l->samples.len < samples && clock_monotonic_ns() < end)
		live_poll(l, 50);
	CHECK(l->samples.len >= samples);
}

static void tells_the_span(void **state)
{
	(void)state;
	static struct code_files_memory contexts;
	struct thread_contexts_found found_at = { 0 };
	struct live l;
	size_t found = 0;
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	int pid = start();
	live_begin(&l, FREQUENCY_HZ, pid);
	live_publish_process(&l, pid);
	live_start(&l);
	poll_until(&l, SAMPLES_FIRST);
	CHECK(thread_contexts_find(&contexts, pid, &found_at) == OK);
	CHECK(found_at.place.form != THREAD_CONTEXT_NONE);
	found_at.place.process_start_ns = l.samples.v[0].h.process_start_ns;
	CHECK(sampler_set_thread_context(l.sampler, (uint32_t)pid, &found_at.place) == OK);
	poll_until(&l, SAMPLES_WANTED);
	live_stop(&l);
	for (size_t i = 0; i < l.codes.len; i++) {
		const struct event_code *e = &l.codes.v[i].event;
		found += e->pid == (uint32_t)pid && e->form == RUNTIME_FORM_CONTEXT &&
			 memcmp(e->data, record, sizeof(record)) == 0;
	}
	CHECK(found == 1); /* it is told once */
	live_kill(pid);
	live_end(&l);
}

TEST_MAIN(cmocka_unit_test(tells_the_span))
