/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is hard of musl's stacks, a thread each: doubles that are printed (a frame of many
 * kilobytes), sorting, which calls back, signals on a stack of their own while memory is moved, and
 * locks that threads wait for. musl has no call frame information: everything of it is read from
 * its code.
 */
#define _GNU_SOURCE
#include "workload.h"

#include <math.h>
#include <pthread.h>
#include <sys/time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t turns;

static NOINLINE void print_doubles(uint32_t turn)
{
	char text[512];
	for (uint32_t i = 0; i < 200; i++) {
		(void)snprintf(text, sizeof(text), "%.17g %Lf %a", sqrt((double)(turn + i)) * 1e9,
			(long double)(turn + 1) * 1e18L, (double)i / 3);
		workload_sink = (uint64_t)strtod(text, NULL);
	}
}

static NOINLINE int compare_words(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return workload_spin(*x, 3) < workload_spin(*y, 3) ? -1 : 1;
}

static NOINLINE void sort_words(uint32_t turn)
{
	uint64_t words[600];
	for (uint32_t i = 0; i < 600; i++)
		words[i] = workload_spin(turn + i, 2);
	qsort(words, 600, sizeof(words[0]), compare_words);
}

static NOINLINE void handler_leaf(void)
{
	workload_spin(1, WORKLOAD_ROUNDS);
}

static void on_signal(int number)
{
	(void)number;
	handler_leaf();
	workload_sink = 1;
}

static NOINLINE void move_memory(uint32_t turn)
{
	static char from[1 << 16], to[1 << 16];
	for (uint32_t i = 0; i < 50; i++) {
		memset(from, (int)(turn + i), sizeof(from));
		memcpy(to, from + i % 8, sizeof(to) - 8);
		memmove(to + 3, to, sizeof(to) - 3);
		workload_sink = strlen(to) + (memchr(to, 0, sizeof(to)) != NULL);
	}
	if (turn % 8 == 0)
		(void)pthread_kill(pthread_self(), SIGUSR1);
}

static NOINLINE void *wait_a_turn(void *unused)
{
	(void)unused;
	(void)pthread_mutex_lock(&lock);
	turns++;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
	workload_spin(turns, 5000);
	return NULL;
}

static NOINLINE void start_threads(uint32_t turn)
{
	pthread_t threads[4];
	(void)turn;
	(void)pthread_mutex_lock(&lock);
	uint64_t until = turns + 4;
	(void)pthread_mutex_unlock(&lock);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, wait_a_turn, NULL) != 0)
			abort();
	}
	(void)pthread_mutex_lock(&lock);
	while (turns < until)
		(void)pthread_cond_wait(&changed, &lock);
	(void)pthread_mutex_unlock(&lock);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	free(malloc(100000 + turn % 7 * 65536));
}

static void *work(void *of)
{
	void (*turn_of)(uint32_t) = *(void (*const *)(uint32_t))of;
	static __thread char stack[65536];
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	(void)sigaltstack(&other, NULL);
	for (uint32_t turn = 0; !workload_is_over(); turn++)
		turn_of(turn);
	return NULL;
}

int main(int argc, char **argv)
{
	static void (*const works[])(
		uint32_t) = { print_doubles, sort_words, move_memory, start_threads };
	pthread_t threads[4];
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	workload_begin(argc, argv, 1);
	(void)sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, work, (void *)&works[i]) != 0)
			abort();
	}
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}
