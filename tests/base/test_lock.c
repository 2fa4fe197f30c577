/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"
#include "test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock outer, inner, leaf, other_leaf, never_begun;
static struct rwlock middle;

static int begin(void **state)
{
	(void)state;
	lock_init(&outer, LOCK_RETAIN);
	rwlock_init(&middle, LOCK_GATE, true);
	lock_init(&inner, LOCK_PART);
	lock_init(&leaf, LOCK_DEDUPE);
	lock_init(&other_leaf, LOCK_POOL);
	return 0;
}

static void in_order(void)
{
	lock_take(&outer);
	rwlock_read(&middle);
	CHECK(lock_try(&inner));
	lock_take(&leaf);
	/* Outer ones may go first: what is left keeps its order. */
	lock_release(&outer);
	rwlock_release(&middle);
	lock_release(&leaf);
	lock_take(&other_leaf);
	lock_release(&other_leaf);
	lock_release(&inner);
	rwlock_write(&middle);
	rwlock_release(&middle);
}

static void inner_first(void)
{
	lock_take(&inner);
	rwlock_write(&middle);
}

static void one_place_twice(void)
{
	struct lock same;
	lock_init(&same, LOCK_PART);
	lock_take(&inner);
	lock_take(&same);
}

static void below_a_leaf(void)
{
	lock_take(&leaf);
	lock_take(&other_leaf);
}

static void tried_out_of_order(void)
{
	lock_take(&inner);
	(void)!lock_try(&outer);
}

static void without_a_place(void)
{
	lock_take(&never_begun);
}

static void what_is_not_held(void)
{
	lock_release(&inner);
}

/* What the program says before it ends by SIGABRT; "" when it goes on. */
static void run_apart(void (*fn)(void), char *said, size_t size)
{
	int pipes[2], status = 0;
	size_t len = 0;
	CHECK(pipe(pipes) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(pipes[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(pipes[1]);
	for (ssize_t n; len < size - 1 && (n = read(pipes[0], said + len, size - 1 - len)) > 0;)
		len += (size_t)n;
	said[len] = 0;
	close(pipes[0]);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK((len > 0) == (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

static void lets_locks_be_taken_in_order(void **state)
{
	(void)state;
	in_order();
	in_order();
}

static void ends_a_program_that_breaks_the_order(void **state)
{
	(void)state;
	static const struct {
		void (*fn)(void);
		const char *says;
	} cases[] = {
		{ in_order, "" },
		{ inner_first, "lock: gate is taken with another in hand (part); the order: " },
		{ one_place_twice, "lock: part is taken with another in hand (part)" },
		{ below_a_leaf, "lock: pool is taken with another in hand (dedupe)" },
		{ tried_out_of_order, "lock: retain_lock is taken with another in hand (part)" },
		{ without_a_place, "lock: no place is taken before lock_init()" },
		{ what_is_not_held, "lock: part is released by a thread that does not hold it" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		char said[4096];
		run_apart(cases[i].fn, said, sizeof(said));
		if (strncmp(said, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("case %zu said: %s", i, said);
		CHECK((said[0] == 0) == (cases[i].says[0] == 0));
	}
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lets_locks_be_taken_in_order, begin),
		cmocka_unit_test_setup(ends_a_program_that_breaks_the_order, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
