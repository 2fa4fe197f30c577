/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that take more disk than the samples are cut to what the samples need, and are made whole
 * again when more is asked. */
#include "own.h"

#include "base/clock.h"

#include <sys/stat.h>

/* What the store holds: one location of this program, or none. A worker asks. */
static struct {
	_Atomic uint64_t address; /* 0: none */
	_Atomic(enum status) status;
	atomic_int asked;
} samples;

static __attribute__((noinline)) uintptr_t cold_function(int x)
{
	uintptr_t at = inlined_inner(x + 1);
	sink += 3;
	return at;
}

static uint64_t bytes(void *ctx)
{
	(void)ctx;
	return 1;
}

static enum status locations(void *ctx, const struct profile_locations *to, void *of, struct err *e)
{
	(void)ctx;
	static const struct profile_mapping m = { 0 };
	atomic_fetch_add(&samples.asked, 1);
	enum status s = samples.status;
	uint64_t address = samples.address;
	if (s != OK)
		return err_set(e, s, "made to fail");
	CHECK(to->mapping(of, STR("00ff"), STR("/other"), &m) == PROFILE_LOCATIONS_NONE);
	uint32_t n = address ? to->mapping(of, str_of(t.build_id), str_of(t.exe), &m)
			     : PROFILE_LOCATIONS_NONE;
	if (n != PROFILE_LOCATIONS_NONE)
		to->location(of, n, address);
	return OK;
}

/* DIR/program, a copy of this one. */
static void start(bool on_demand, int64_t idle_ns)
{
	snprintf(t.exe, sizeof(t.exe), "%s/program", t.dir);
	shell("cp /proc/%d/exe %s", (int)getpid(), t.exe);
	symbolizer_free(t.s);
	t.config.on_demand = on_demand;
	t.config.wants_min = 2;
	t.config.look_ns = 2 * NS_PER_MS;
	t.config.whole_bytes = 1;
	t.config.trim_idle_ns = idle_ns;
	t.config.sweep_ns = 10 * NS_PER_MS;
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	samples.address = 0;
	samples.status = OK;
	samples.asked = 0;
}

static void begin_trimming(void)
{
	symbolizer_set_samples(t.s, &(struct symbolizer_samples){ bytes, locations, NULL });
}

/* The location of an address of this program, named. */
static uint32_t ask(uint64_t at)
{
	CHECK_OK(profile_clear(&t.p), NULL);
	uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), at, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	return a;
}

static void wait_for(const char *name, uint64_t count)
{
	int64_t end = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;
	while (metric(name) < count && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK(metric(name) >= count);
}

static off_t table_bytes(void)
{
	char path[1024];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%.2s/%s.sym", t.dir, t.build_id, t.build_id + 2);
	return stat(path, &st) == 0 ? st.st_size : 0;
}

static const char trimmed[] = "firn_symbolizer_tables_trimmed_total";

/* From now on nothing is trimmed. */
static void stop_trimming(void)
{
	samples.status = E_IO;
	wait_for("firn_symbolizer_trims_failed_total",
		metric("firn_symbolizer_trims_failed_total") + 2);
}

/* The names of samples stay when the program is gone, in a fraction of the room. */
static void keeps_the_names_of_samples(void **state)
{
	(void)state;
	uint64_t hot = outer_function(1) - base(), cold = cold_function(1) - base();
	start(false, 0);
	check_own(ask(hot));
	off_t whole = table_bytes();
	samples.address = hot;
	begin_trimming();
	wait_for(trimmed, 1);
	unlink(t.exe);
	check_own(ask(hot));
	CHECK(table_bytes() > 0 && table_bytes() * 4 < whole);
	/* It is counted behind the table that is in place. */
	for (int i = 0; metric("firn_symbolizer_disk_bytes") > (uint64_t)table_bytes() + 4096;
		i++) {
		CHECK(i < 6000);
		usleep(10000);
	}
	/* Nobody can tell, once the whole table is out of memory too; and it does not wait for what
	 * cannot come. */
	for (int i = 0; ask(cold), str_eq(name_of(1, 0), STR("inlined_inner")); i++) {
		CHECK(i < 6000);
		usleep(10000);
	}
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
}

/* An address that came later is named, as long as the program is there. */
static void makes_it_whole_again(void **state)
{
	(void)state;
	uint64_t hot = outer_function(1) - base(), cold = cold_function(1) - base();
	start(false, 0);
	check_own(ask(hot));
	samples.address = hot;
	begin_trimming();
	wait_for(trimmed, 1);
	stop_trimming();
	uint32_t a = ask(cold);
	CHECK_STR(name_of(a, 0), "inlined_inner");
	CHECK_STR(name_of(a, 1), "cold_function");
	check_own(ask(hot));
	CHECK(metric("firn_symbolizer_tables_built_total") == 2);
}

/* Samples of a program whose table is trimmed come again, and then it goes. */
static void makes_it_whole_before_the_program_goes(void **state)
{
	(void)state;
	uint64_t hot = outer_function(1) - base(), cold = cold_function(1) - base();
	start(true, 0);
	shell("touch -d '2 days ago' %s", t.exe);
	check_own(ask(hot));
	samples.address = hot;
	begin_trimming();
	wait_for(trimmed, 1);
	stop_trimming();
	symbolizer_want(t.s, str_of(t.build_id), str_of(t.exe));
	unlink(t.exe);
	wait_for("firn_symbolizer_tables_built_total", 2);
	CHECK_STR(name_of(ask(cold), 1), "cold_function");
}

/* What has samples now, or cannot be looked up, stays whole. */
static void leaves_what_is_in_use(void **state)
{
	(void)state;
	start(true, 3600 * NS_PER_SEC);
	symbolizer_want(t.s, str_of(t.build_id), str_of(t.exe));
	check_own(ask(outer_function(1) - base()));
	off_t whole = table_bytes();
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	begin_trimming();
	usleep(20000);
	CHECK(samples.asked == 0 && table_bytes() == whole);

	start(false, 0);
	samples.status = E_LIMIT;
	begin_trimming();
	wait_for("firn_symbolizer_trims_failed_total", 2);
	CHECK(table_bytes() == whole && metric(trimmed) == 0);
}

/* Of a program without samples nothing is kept, trimmed or not. */
static void removes_what_no_sample_needs(void **state)
{
	(void)state;
	uint64_t hot = outer_function(1) - base();
	start(false, 0);
	check_own(ask(hot));
	begin_trimming();
	wait_for("firn_symbolizer_tables_needless_total", 1);
	CHECK(table_bytes() == 0);
	start(false, 0);
	check_own(ask(hot));
	samples.address = hot;
	begin_trimming();
	wait_for(trimmed, 1);
	samples.address = 0;
	wait_for("firn_symbolizer_tables_needless_total", 1);
	CHECK(table_bytes() == 0);
}

TEST_MAIN_WITH(debuginfo_child_main, CASE(keeps_the_names_of_samples), CASE(makes_it_whole_again),
	CASE(makes_it_whole_before_the_program_goes), CASE(leaves_what_is_in_use),
	CASE(removes_what_no_sample_needs))
