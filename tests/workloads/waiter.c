/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiter SECONDS FILE: sleeps, waits for a mutex, for a pipe and for FILE's disk, and burns a
 * little in between, from when its standard input gives a byte or ends. Measures itself how long it
 *was off the CPU in each, and prints at its end
 *
 *	{"off_cpu_ns":123,"functions":[{"name":"sleeps","share":0.5,"begin":4660,"end":4800},…]}
 *
 * share: of the time that the main thread was off its CPU in all but `burns`: wall clock less its
 * CPU time. (While it burns, that is also what interrupts and the machine below take from it.)
 * begin, end as in burner.cc.
 */
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>

#define MEASURED(name) NOINLINE __attribute__((section("fn_" #name)))
#define BOUNDS(name) extern const char __start_fn_##name[], __stop_fn_##name[];
#define FUNCTIONS(X) X(sleeps) X(locks) X(reads) X(syncs) X(burns)

extern const char __ehdr_start[];
FUNCTIONS(BOUNDS)

#define BYTES 65536

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ask[2], answer[2], hold[2];
static int file;
static char bytes[BYTES];

static void sleep_ms(long ms)
{
	struct timespec t = { 0, ms * 1000000 };
	(void)nanosleep(&t, NULL);
}

/* Answers a byte with a byte, 5 ms later. */
static void *answer_slowly(void *arg)
{
	char c;
	while (read(ask[0], &c, 1) == 1) {
		sleep_ms(5);
		if (write(answer[1], &c, 1) != 1)
			break;
	}
	return arg;
}

/* Takes the mutex, says so, and keeps it for 4 ms. */
static void *hold_slowly(void *arg)
{
	char c;
	while (read(hold[0], &c, 1) == 1) {
		(void)pthread_mutex_lock(&mutex);
		if (write(answer[1], &c, 1) != 1)
			break;
		sleep_ms(4);
		(void)pthread_mutex_unlock(&mutex);
	}
	return arg;
}

MEASURED(sleeps) static uint64_t sleeps(uint64_t x)
{
	sleep_ms(3);
	return x + 1;
}

MEASURED(locks) static uint64_t locks(uint64_t x)
{
	(void)pthread_mutex_lock(&mutex);
	(void)pthread_mutex_unlock(&mutex);
	return x + 1;
}

MEASURED(reads) static uint64_t reads(uint64_t x)
{
	char c = 0;
	return x + (uint64_t)write(ask[1], &c, 1) + (uint64_t)read(answer[0], &c, 1);
}

MEASURED(syncs) static uint64_t syncs(uint64_t x)
{
	return x + (uint64_t)pwrite(file, bytes, BYTES, 0) + (uint64_t)fdatasync(file);
}

MEASURED(burns) static uint64_t burns(uint64_t x)
{
	return workload_spin(x, WORKLOAD_ROUNDS) + 1;
}

static int64_t off_cpu_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return workload_now_ns() - (int64_t)t.tv_sec * 1000000000 - t.tv_nsec;
}

static NOINLINE uint64_t measure(uint64_t (*run)(uint64_t), uint64_t x, int64_t *sum_ns)
{
	int64_t begin = off_cpu_ns();
	x = run(x);
	*sum_ns += off_cpu_ns() - begin;
	return x;
}

int main(int argc, char **argv)
{
	static struct {
		const char *name, *begin, *end;
		uint64_t (*run)(uint64_t);
		int64_t off_ns;
	} functions[] = {
#define FUNCTION(name) { #name, __start_fn_##name, __stop_fn_##name, name, 0 },
		FUNCTIONS(FUNCTION)
	};
	const int count = sizeof(functions) / sizeof(functions[0]);
	pthread_t answerer, holder;
	char c = 0;
	file = open(argc > 2 ? argv[2] : "/dev/null", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || pipe(ask) || pipe(answer) || pipe(hold) ||
		pthread_create(&answerer, NULL, answer_slowly, NULL) ||
		pthread_create(&holder, NULL, hold_slowly, NULL))
		return 1;
	(void)!read(0, &c, 1);
	workload_begin(argc, argv, 1);
	uint64_t x = 1;
	while (!workload_is_over()) {
		if (write(hold[1], &c, 1) != 1 || read(answer[0], &c, 1) != 1)
			return 1;
		/* The mutex is held now. */
		x = measure(functions[1].run, x, &functions[1].off_ns);
		for (int i = 0; i < count; i++)
			x = i == 1 ? x : measure(functions[i].run, x, &functions[i].off_ns);
	}
	int64_t total = 0;
	for (int i = 0; i < count - 1; i++)
		total += functions[i].off_ns;
	workload_sink = x;
	printf("{\"off_cpu_ns\":%lld,\"functions\":[", (long long)total);
	for (int i = 0; i < count; i++)
		printf("%s{\"name\":\"%s\",\"share\":%.6f,\"begin\":%lu,\"end\":%lu}", i ? "," : "",
			functions[i].name, (double)functions[i].off_ns / (double)total,
			(unsigned long)(functions[i].begin - __ehdr_start),
			(unsigned long)(functions[i].end - __ehdr_start));
	printf("]}\n");
	return 0;
}
