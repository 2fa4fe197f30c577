/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/names/kallsyms.h"
#include "os/os.h"

#include "test.h"

#include <fcntl.h>
#include <unistd.h>

static char symbols_path[64];
static char modules_path[64];

static void write_file(char path[64], const char *name, const char *text)
{
	snprintf(path, 64, "/tmp/firn-test-%s-%d", name, (int)getpid());
	struct err e;
	CHECK_OK(os_replace_file(path, text, strlen(text), 0600, &e), &e);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(symbols_path);
	unlink(modules_path);
	return 0;
}

static const char some_symbols[] = "0000000000000000 A fixed_percpu_data\n"
				   "ffffffff81000000 t local_alias\n"
				   "ffffffff81000000 T _stext\n"
				   "ffffffff81000100 T do_work\n"
				   "ffffffff81000180 d some_data\n"
				   "ffffffff81000200 t helper.isra.0\n"
				   "ffffffff90000000 W last_of_kernel\n"
				   "ffffffffc0001000 t probe\t[e1000]\n"
				   "ffffffffc0002000 T send\t[e1000]\n";

static bool finds(struct kallsyms *k, uint64_t address, const char *name, const char *module)
{
	struct kallsyms_symbol s;
	return kallsyms_find(k, address, &s) && str_eq(s.name, str_of(name)) &&
	       str_eq(s.module, str_of(module)) && s.start <= address;
}

static void finds_the_symbol_that_covers(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	struct kallsyms_symbol s;
	write_file(symbols_path, "kallsyms", some_symbols);
	write_file(modules_path, "modules", "e1000 1 0 - Live 0x0\n");
	CHECK_OK(kallsyms_new_from(symbols_path, modules_path, &k, &e), &e);
	CHECK(kallsyms_count(k) == 6);
	CHECK(finds(k, 0xffffffff81000000, "_stext", ""));
	CHECK(finds(k, 0xffffffff810000ff, "_stext", ""));
	CHECK(finds(k, 0xffffffff81000100, "do_work", ""));
	CHECK(finds(k, 0xffffffff810001a0, "do_work", ""));
	CHECK(finds(k, 0xffffffff81000234, "helper.isra.0", ""));
	CHECK(finds(k, 0xffffffffc0001010, "probe", "e1000"));
	CHECK(finds(k, 0xffffffffc0002001, "send", "e1000"));
	/* Before the first, too far behind one, and behind the last. */
	CHECK(!kallsyms_find(k, 0xffffffff80ffffff, &s));
	CHECK(!kallsyms_find(k, 0xffffffff85000000, &s));
	CHECK(!kallsyms_find(k, 0xffffffffc0002000 + KALLSYMS_SPAN_MAX, &s));
	CHECK(!kallsyms_find(k, 0, &s) && !kallsyms_find(k, UINT64_MAX, &s));
	kallsyms_free(k);
}

static void reads_again_when_a_module_comes(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\n");
	write_file(modules_path, "modules", "x 1 0 - Live 0x0\n");
	CHECK_OK(kallsyms_new_from(symbols_path, modules_path, &k, &e), &e);
	CHECK(!kallsyms_refresh(k, clock_monotonic_ns(), false));
	/* The count of users alone is no reason. */
	write_file(modules_path, "modules", "x 1 5 - Live 0x0\n");
	CHECK(!kallsyms_refresh(k, clock_monotonic_ns(), true));
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T b\n");
	write_file(modules_path, "modules", "y 1 0 - Live 0x0\nx 1 5 - Live 0x0\n");
	CHECK(kallsyms_refresh(k, clock_monotonic_ns(), false));
	CHECK(finds(k, 0xffffffff81000000, "b", ""));
	/* What cannot be read leaves the old names. */
	unlink(symbols_path);
	write_file(modules_path, "modules", "z 1 0 - Live 0x0\n");
	CHECK(!kallsyms_refresh(k, clock_monotonic_ns(), false));
	CHECK(finds(k, 0xffffffff81000000, "b", ""));
	kallsyms_free(k);
}

static void reads_again_when_a_module_moves(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\nffffffffc0000000 t f\t[x]\n");
	write_file(modules_path, "modules", "x 4096 0 - Live 0xffffffffc0000000\n");
	CHECK_OK(kallsyms_new_from(symbols_path, modules_path, &k, &e), &e);
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\nffffffffc0008000 t f\t[x]\n");
	write_file(modules_path, "modules", "x 4096 1 y, Loading 0xffffffffc0000000\n");
	CHECK(!kallsyms_refresh(k, clock_monotonic_ns(), false));
	write_file(modules_path, "modules", "x 4096 0 - Live 0xffffffffc0008000\n");
	CHECK(kallsyms_refresh(k, clock_monotonic_ns(), false));
	CHECK(finds(k, 0xffffffffc0008010, "f", "x") && !finds(k, 0xffffffffc0000010, "f", "x"));
	kallsyms_free(k);
}

static void add(struct kallsyms *k, uint64_t start, uint32_t len, uint64_t time, const char *name)
{
	const struct ksymbol s = { start, len, time, str_of(name) };
	kallsyms_add(k, &s);
}

static void names_programs_that_were_loaded_later(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	struct kallsyms_symbol s;
	write_file(symbols_path, "kallsyms",
		"ffffffff81000000 T a\nffffffff81000100 T b\n"
		"ffffffffc0000000 t bpf_prog_1_old\t[bpf]\n"
		"ffffffffc0000180 t bpf_prog_2_old\t[bpf]\n");
	CHECK_OK(kallsyms_new_from(symbols_path, "/nonexistent", &k, &e), &e);
	CHECK(finds(k, 0xffffffffc0000110, "bpf_prog_1_old", "bpf"));
	add(k, 0xffffffffc0000100, 0x40, 10, "bpf_prog_3_new");
	CHECK(finds(k, 0xffffffffc0000010, "bpf_prog_1_old", "bpf"));
	CHECK(finds(k, 0xffffffffc0000100, "bpf_prog_3_new", "bpf"));
	CHECK(finds(k, 0xffffffffc000013f, "bpf_prog_3_new", "bpf"));
	CHECK(!kallsyms_find(k, 0xffffffffc0000140, &s));
	CHECK(finds(k, 0xffffffffc0000180, "bpf_prog_2_old", "bpf"));
	CHECK(finds(k, 0xffffffff81000010, "a", ""));
	/* Over two of before, of which one was told late; and over one of the file. */
	add(k, 0xffffffffc0000120, 0x80, 20, "bpf_prog_4_over");
	add(k, 0xffffffffc0000110, 0x80, 15, "bpf_prog_5_late");
	CHECK(finds(k, 0xffffffffc0000110, "bpf_prog_1_old", "bpf"));
	CHECK(finds(k, 0xffffffffc0000120, "bpf_prog_4_over", "bpf"));
	CHECK(finds(k, 0xffffffffc0000190, "bpf_prog_4_over", "bpf"));
	/* A trampoline ends where the next program begins. */
	add(k, 0xffffffffc0000400, 0x40, 30, "bpf_prog_6_next");
	add(k, 0xffffffffc0000300, 0x1000, 40, "bpf_trampoline_7");
	CHECK(finds(k, 0xffffffffc0000310, "bpf_trampoline_7", "bpf"));
	CHECK(finds(k, 0xffffffffc0000410, "bpf_prog_6_next", "bpf"));
	/* What was read again knows them. */
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\n");
	CHECK(kallsyms_refresh(k, clock_monotonic_ns() + KALLSYMS_PAUSE_MIN_NS, true));
	CHECK(!kallsyms_find(k, 0xffffffffc0000310, &s));
	kallsyms_free(k);
}

static void reads_again_where_too_many_were_loaded(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\nffffffffc1000000 T b\t[bpf]\n");
	CHECK_OK(kallsyms_new_from(symbols_path, "/nonexistent", &k, &e), &e);
	int64_t later = clock_monotonic_ns() + KALLSYMS_PAUSE_MIN_NS;
	for (uint32_t i = 0; i < 2 * KALLSYMS_LATER_MAX; i++) /* the same places again and again */
		add(k, 0xffffffffc0000000 + 64 * (i % KALLSYMS_LATER_MAX), 64, i, "bpf_prog_x");
	CHECK(!kallsyms_refresh(k, later, false));
	add(k, 0xfffffffff0000000, 64, UINT32_MAX, "bpf_prog_y");
	CHECK(!kallsyms_refresh(k, later - KALLSYMS_PAUSE_MIN_NS, false));
	CHECK(kallsyms_refresh(k, later, false));
	CHECK(!kallsyms_refresh(k, later + KALLSYMS_PAUSE_MIN_NS, false));
	kallsyms_free(k);
}

static void asks_less_often_what_has_no_name(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	struct kallsyms_symbol s;
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\n");
	CHECK_OK(kallsyms_new_from(symbols_path, "/nonexistent", &k, &e), &e);
	int64_t now = clock_monotonic_ns(), end = now + 24 * KALLSYMS_PAUSE_MAX_NS;
	uint32_t count = 0;
	for (; now < end; now += 5 * NS_PER_SEC) {
		CHECK(!kallsyms_find(k, 0xffffffffc0000000, &s));
		count += kallsyms_refresh(k, now, true);
	}
	/* After 1, 2, 4, 8, 16, 32 minutes, then each hour. */
	CHECK(count >= 27 && count <= 29);
	/* One that it does name is asked for soon again. */
	CHECK(!kallsyms_find(k, 0xffffffffc0000000, &s));
	write_file(symbols_path, "kallsyms", "ffffffff81000000 T a\nffffffffc0000000 t p\t[bpf]\n");
	now += KALLSYMS_PAUSE_MAX_NS;
	CHECK(kallsyms_refresh(k, now, true));
	CHECK(!kallsyms_find(k, 0xffffffffd0000000, &s));
	CHECK(!kallsyms_refresh(k, now + KALLSYMS_PAUSE_MIN_NS - 1, true));
	CHECK(kallsyms_refresh(k, now + KALLSYMS_PAUSE_MIN_NS, true));
	kallsyms_free(k);
}

static void says_when_addresses_are_hidden(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	write_file(symbols_path, "kallsyms", "0000000000000000 T _text\n0000000000000000 T a\n");
	CHECK(kallsyms_new_from(symbols_path, "/nonexistent", &k, &e) == E_DENIED);
	CHECK(strstr(e.text, "CAP_SYSLOG"));
	CHECK(kallsyms_new_from("/nonexistent", "/nonexistent", &k, &e) == E_NOTFOUND);
}

static void reads_pieces_that_end_inside_a_line(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 4 << 20);
	for (int i = 0; i < 20000; i++)
		buf_printf(&text, "%016llx t function_%d%.*s\n", 0xffffffff81000000ULL + 16ULL * i,
			i, i % 23, "abcdefghijklmnopqrstuvw");
	text.len--; /* no newline at the end */
	buf_u8(&text, 0);
	write_file(symbols_path, "kallsyms", (const char *)text.data);
	CHECK_OK(kallsyms_new_from(symbols_path, "/nonexistent", &k, &e), &e);
	CHECK(kallsyms_count(k) == 20000);
	for (int i = 0; i < 20000; i++) {
		struct kallsyms_symbol s;
		char head[32];
		snprintf(head, sizeof(head), "function_%d", i);
		CHECK(kallsyms_find(k, 0xffffffff81000000ULL + 16ULL * i + 7, &s));
		CHECK(str_starts(s.name, str_of(head)) &&
			s.name.len == strlen(head) + (size_t)(i % 23));
	}
	kallsyms_free(k);
}

static void reads_the_running_kernel(void **state)
{
	(void)state;
	struct kallsyms *k;
	struct err e;
	enum status s = kallsyms_new(&k, &e);
	if (s == E_DENIED)
		SKIP("%s", e.text);
	CHECK_OK(s, &e);
	CHECK(kallsyms_count(k) > 10000);
	kallsyms_free(k);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(finds_the_symbol_that_covers),
		cmocka_unit_test(reads_again_when_a_module_comes),
		cmocka_unit_test(reads_again_when_a_module_moves),
		cmocka_unit_test(names_programs_that_were_loaded_later),
		cmocka_unit_test(reads_again_where_too_many_were_loaded),
		cmocka_unit_test(asks_less_often_what_has_no_name),
		cmocka_unit_test(says_when_addresses_are_hidden),
		cmocka_unit_test(reads_pieces_that_end_inside_a_line),
		cmocka_unit_test(reads_the_running_kernel) };
	return cmocka_run_group_tests(tests, NULL, remove_files);
}
