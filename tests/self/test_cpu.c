/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/os.h"
#include "pprof/pprof.h"
#include "self/self.h"

#define BURN_NS (500 * NS_PER_MS)

static atomic_bool begin_burning;
static volatile uint64_t sink;

static int64_t thread_cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* So much of the thread's own time, however long it takes. */
__attribute__((noinline)) static void burn(int64_t ns)
{
	int64_t end = thread_cpu_ns() + ns;
	while (thread_cpu_ns() < end)
		for (int i = 0; i < 20000; i++)
			sink += (uint64_t)i;
}

static void *run(void *ctx)
{
	(void)ctx;
	while (!atomic_load(&begin_burning))
		usleep(1000);
	burn(BURN_NS);
	atomic_store(&begin_burning, false);
	return NULL;
}

static struct str thread_of(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_labels *set = &p->label_sets.v[s->own];
	for (uint32_t i = 0; i < set->count; i++)
		if (str_eq(profile_str(p, p->labels.v[set->first + i].name), STR("thread_name")))
			return profile_str(p, p->labels.v[set->first + i].value);
	return STR("");
}

static void samples_threads(void **state)
{
	(void)state;
	struct self_cpu *c = NULL, *other = NULL;
	struct profile p;
	struct err e = { 0 };
	pthread_t thread;
	uint64_t lost = 0;
	int64_t cpu_ns = 0, in_burn = 0;
	if (TEST_TSAN) {
		print_message("skipped: the thread sanitizer holds signals back\n");
		skip();
	}
	CHECK_OK(profile_init(&p, SELF_BYTES_MAX), &e);
	CHECK_OK(os_thread_start(&thread, "burner", run, NULL, &e), &e);
	CHECK_OK(self_cpu_start(&c, &e), &e);
	CHECK(self_cpu_start(&other, &e) == E_EXISTS && !other);
	atomic_store(&begin_burning, true);
	while (atomic_load(&begin_burning)) {
		usleep(20000);
		CHECK_OK(self_cpu_look(c, &e), &e);
	}
	CHECK_OK(self_cpu_stop(c, &p, &lost, &e), &e);
	self_cpu_free(c);
	CHECK(pthread_join(thread, NULL) == 0 && lost == 0);
	CHECK_OK(profile_validate(&p, &e), &e);
	for (size_t i = 0; i < p.samples.len; i++) {
		const struct profile_sample *s = &p.samples.v[i];
		const struct profile_stack *stack = &p.stacks.v[s->stack];
		if (!str_eq(thread_of(&p, s), STR("burner")) || s->head != 2)
			continue;
		cpu_ns += s->value;
		for (uint32_t k = 0; k < stack->count; k++) {
			const struct profile_location *l =
				&p.locations.v[p.stack_locations.v[stack->first + k]];
			uintptr_t f = (uintptr_t)burn;
			if (l->address >= f && l->address < f + 512) {
				in_burn += s->value;
				CHECK(l->mapping && p.mappings.v[l->mapping].start <= f);
				break;
			}
		}
	}
	CHECK(p.heads.len == 3 && p.heads.v[2].duration_ns > 0);
	CHECK(cpu_ns > BURN_NS / 2 && cpu_ns < BURN_NS * 2);
	CHECK(in_burn > cpu_ns / 10 * 9);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, SELF_BYTES_MAX);
	CHECK_OK(pprof_encode(&p, &out, &e), &e);
	profile_deinit(&p);
	/* The next one finds nothing of the last. */
	CHECK_OK(self_cpu_start(&c, &e), &e);
	self_cpu_free(c);
}

TEST_MAIN(cmocka_unit_test(samples_threads))
