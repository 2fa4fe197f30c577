/* SPDX-License-Identifier: Apache-2.0 */
/* Against the running kernel: small BPF programs are loaded, and must be told of. */
#include "agent/names/kallsyms.h"
#include "agent/names/ksymbols.h"

#include "test.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <unistd.h>

/* More than the ring of one CPU holds. */
#define MANY 300

static struct ksymbols *loaded; /* NULL: not allowed here */

static int open_rings(void **state)
{
	(void)state;
	struct err e = { 0 };
	if (ksymbols_open(&loaded, &e) != OK)
		print_message("no rings: %s\n", e.text);
	return 0;
}

static int close_rings(void **state)
{
	(void)state;
	ksymbols_close(loaded);
	return 0;
}

static int load_program(const char *name)
{
	/* r0 = 0; exit */
	const struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT } };
	return bpf_prog_load(
		BPF_PROG_TYPE_SOCKET_FILTER, name, "GPL", code, ARRAY_COUNT(code), NULL);
}

/* Where it lies; 0: hidden, or not compiled. */
static uint64_t address_of(int program)
{
	uint64_t address = 0;
	struct bpf_prog_info info = { .nr_jited_ksyms = 1,
		.jited_ksyms = (uint64_t)(uintptr_t)&address };
	uint32_t len = sizeof(info);
	CHECK(bpf_obj_get_info_by_fd(program, &info, &len) == 0);
	return info.jited_prog_len ? address : 0;
}

static void names_a_program_that_is_loaded_later(void **state)
{
	(void)state;
	if (!loaded)
		SKIP("%s", "perf events of all processes need privileges");
	struct kallsyms *k;
	struct err e;
	enum status s = kallsyms_new(&k, &e);
	if (s == E_DENIED)
		SKIP("%s", e.text);
	CHECK_OK(s, &e);
	kallsyms_watch(k, loaded);
	int program = load_program("firn_later");
	uint64_t address = program < 0 ? 0 : address_of(program);
	if (program < 0 || !address) {
		kallsyms_free(k);
		SKIP("%s", "no BPF program can be loaded and compiled here");
	}
	struct kallsyms_symbol found;
	CHECK(kallsyms_find(k, address + 1, &found));
	CHECK(str_eq(found.module, STR("bpf")) && found.start == address);
	CHECK(str_starts(found.name, STR("bpf_prog_")) &&
		memmem(found.name.p, found.name.len, "firn_later", 10));
	close(program);
	kallsyms_free(k);
}

static void count_one(void *ctx, const struct ksymbol *s)
{
	CHECK(s->len > 0 && s->start > UINT64_MAX / 2 && s->time > 0 && s->name.len > 0);
	++*(uint32_t *)ctx;
}

static void says_what_was_lost(void **state)
{
	(void)state;
	if (!loaded)
		SKIP("%s", "perf events of all processes need privileges");
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	uint32_t count = 0;
	(void)ksymbols_take(loaded, count_one, &count);
	int program = load_program("firn_many");
	if (program < 0 || !address_of(program))
		SKIP("%s", "no BPF program can be loaded and compiled here");
	close(program);
	count = 0;
	CHECK(ksymbols_take(loaded, count_one, &count) && count >= 1);
	for (int i = 0; i < MANY; i++)
		close(load_program("firn_many"));
	/* The kernel says so in front of the next one that it has room for. */
	bool is_whole = ksymbols_take(loaded, count_one, &count);
	close(load_program("firn_many"));
	CHECK(!(ksymbols_take(loaded, count_one, &count) && is_whole));
}

struct own {
	char name[16]; /* nobody else's */
	uint32_t count;
};

static void count_own(void *ctx, const struct ksymbol *s)
{
	struct own *o = ctx;
	o->count += memmem(s->name.p, s->name.len, o->name, strlen(o->name)) != NULL;
}

static void load_on(int cpu, const char *name)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	close(load_program(name));
}

/* A CPU that is gone tells nothing; when it comes again it does, and something may have been missed
 * both times. */
static void follows_cpus(void **state)
{
	(void)state;
	struct err e;
	struct own own = { .count = 0 };
	char rest[64];
	cpu_set_t before;
	if (!loaded)
		SKIP("%s", "perf events of all processes need privileges");
	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	int cpu = 0, program = load_program("firn_cpu");
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &before))
		cpu++;
	if (program < 0 || !address_of(program))
		SKIP("%s", "no BPF program can be loaded and compiled here");
	close(program);
	CHECK_OK(ksymbols_update(loaded, &e), &e);
	CHECK(ksymbols_update_to(loaded, STR("x\n"), &e) == E_INVALID && strstr(e.text, "x"));
	/* As if there were one other CPU alone. */
	snprintf(rest, sizeof(rest), "%d\n", cpu == 0 ? 1 : 0);
	if (ksymbols_update_to(loaded, str_of(rest), &e) != OK)
		SKIP("%s", "a host with one CPU");
	snprintf(own.name, sizeof(own.name), "fc%d", (int)getpid());
	CHECK(!ksymbols_take(loaded, count_own, &own));
	load_on(cpu, own.name);
	(void)ksymbols_take(loaded, count_own, &own);
	CHECK(own.count == 0);
	CHECK_OK(ksymbols_update(loaded, &e), &e);
	CHECK(!ksymbols_take(loaded, count_own, &own) && own.count == 0);
	while (own.count == 0) { /* others may fill the ring */
		load_on(cpu, own.name);
		(void)ksymbols_take(loaded, count_own, &own);
	}
	CHECK(sched_setaffinity(0, sizeof(before), &before) == 0);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names_a_program_that_is_loaded_later),
		cmocka_unit_test(follows_cpus), cmocka_unit_test(says_what_was_lost) };
	return cmocka_run_group_tests(tests, open_rings, close_rings);
}
