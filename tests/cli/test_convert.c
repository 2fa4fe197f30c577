/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "profile_example.h"
#include "temp_dir.h"

#include "agent/send/spool.h"
#include "codec/codec.h"
#include "os/os.h"
#include "otlp/otlp.h"
#include "pprof/pprof.h"

#define CPU "parca_agent:samples:count:cpu:nanoseconds:delta"
#define WALL "parca_agent:wallclock:nanoseconds:cpu:nanoseconds:delta"

static void sample(struct profile *p, uint32_t head, uint32_t stack, int64_t value)
{
	const struct profile_sample s = { .value = value,
		.time_ns = EXAMPLE_TIME_NS,
		.head = head,
		.stack = stack,
		.resource = LABELS(p, "comm=stress", "node=n"),
		.own = LABELS(p, "pid=42") };
	CHECK(profile_add_sample(p, &s) == OK);
}

/* A batch as an agent keeps it: `cpu` samples of the CPU's type, `wall` of the other. */
static void keep(struct spool *spool, uint32_t cpu, uint32_t wall)
{
	struct profile p;
	uint32_t stacks[3];
	struct spool_sum lost = { 0 };
	struct err e;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	CHECK(profile_init(&p, 1 << 20) == OK);
	example_stacks(&p, stacks);
	uint32_t head = example_head(&p, "parca_agent", "samples", "count", EXAMPLE_DURATION_NS);
	uint32_t other =
		example_head(&p, "parca_agent", "wallclock", "nanoseconds", EXAMPLE_DURATION_NS);
	for (uint32_t i = 0; i < cpu; i++)
		sample(&p, head, stacks[i % 3], 1);
	for (uint32_t i = 0; i < wall; i++)
		sample(&p, other, stacks[i % 3], 1000);
	CHECK(otlp_encode(&p, &message) == OK);
	CHECK_OK(spool_add(spool, buf_view(&message), cpu + wall, &lost, &e), &e);
	profile_deinit(&p);
}

static void fill(const struct temp_dir *d, uint32_t wall)
{
	struct spool *spool = NULL;
	struct err e;
	CHECK_OK(spool_open(d->path, 1 << 20, &spool, &e), &e);
	keep(spool, 5, wall);
	keep(spool, 7, 0);
	spool_close(spool);
}

#define RUN(c, ...)                                                           \
	do {                                                                  \
		char line_[512];                                              \
		(void)snprintf(line_, sizeof(line_), "convert " __VA_ARGS__); \
		capture_run((c), cli_convert, line_);                         \
	} while (0)

/* A file of parca-agent's as parca_maker.py writes it, into `to`; compressed as that agent does. */
static void bring(const struct temp_dir *made, const char *name, const char *to, bool compressed)
{
	char path[256];
	struct err e;
	CLEANUP(buf_deinit) struct buf plain, packed;
	buf_init(&plain, 16 << 20);
	buf_init(&packed, 16 << 20);
	snprintf(path, sizeof(path), "%s/%s.arrow", made->path, name);
	CHECK_OK(os_read_file(path, &plain, &e), &e);
	CHECK(codec_zstd_compress(plain.data, plain.len, 1, &packed) == OK);
	const struct buf *b = compressed ? &packed : &plain;
	CHECK_OK(os_replace_file(to, b->data, b->len, 0600, &e), &e);
}

/* Sum of the values of what lies in a file. */
static int64_t sum_of(const char *path, bool is_otlp)
{
	CLEANUP(buf_deinit) struct buf file, plain;
	struct profile p;
	struct err e;
	int64_t sum = 0;
	buf_init(&file, 1 << 20);
	buf_init(&plain, 1 << 20);
	CHECK(profile_init(&p, 1 << 20) == OK);
	CHECK_OK(os_read_file(path, &file, &e), &e);
	if (is_otlp) {
		struct otlp_rejects rejects = { 0 };
		CHECK_OK(otlp_decode(buf_view(&file), &p, &rejects, &e), &e);
	} else {
		CHECK_OK(codec_gunzip(file.data, file.len, &plain, &e), &e);
		CHECK_OK(pprof_decode(buf_view(&plain), STR("parca_agent"), &p, &e), &e);
	}
	bool labelled = true;
	for (size_t i = 0; i < p.samples.len; i++) {
		sum += p.samples.v[i].value;
		labelled = labelled && p.samples.v[i].own;
	}
	CHECK(labelled);
	profile_deinit(&p);
	return sum;
}

static void makes_one_profile(void **state)
{
	(void)state;
	static struct capture c;
	CLEANUP(temp_dir_deinit) struct temp_dir d, to;
	char out[128];
	temp_dir_init(&d);
	temp_dir_init(&to);
	snprintf(out, sizeof(out), "%s/out", to.path);
	fill(&d, 3);
	RUN(&c, "%s --output %s", d.path, out);
	CHECK_HAS(c.err, "3 samples of other types are left out");
	CHECK_HAS(c.err, "--type " WALL " (3 samples)\n");
	CHECK(!strstr(c.err, CPU));
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, " samples of 2 batches");
	CHECK(sum_of(out, false) == 12);
	RUN(&c, "%s -o %s --type " WALL, d.path, out);
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK(sum_of(out, false) == 3000);
	RUN(&c, "%s --format otlp -o %s", d.path, out);
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK(sum_of(out, true) == 3012);
	/* What it read stays. */
	CHECK(temp_dir_count(&d, ".batch") == 2);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	static struct capture c;
	CLEANUP(temp_dir_deinit) struct temp_dir d, to;
	char out[128], bad[128];
	struct err e;
	temp_dir_init(&d);
	temp_dir_init(&to);
	snprintf(out, sizeof(out), "%s/out", to.path);
	RUN(&c, "%s", d.path);
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "-o FILE");
	RUN(&c, "%s -o %s", d.path, out);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "no samples in 0 batches");
	RUN(&c, "%s/none -o %s", d.path, out);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/none");
	fill(&d, 0);
	RUN(&c, "%s -o %s --type x:y:z:a:b", d.path, out);
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "there is no x:y:z:a:b, but:");
	CHECK_HAS(c.err, CPU);
	/* A damaged one is named; the others are there. */
	snprintf(bad, sizeof(bad), "%s/0000000000000001-00000001.batch", d.path);
	CHECK_OK(os_replace_file(bad, "FIRNSPL1 and so on", 18, 0600, &e), &e);
	RUN(&c, "%s -o %s", d.path, out);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "0000000000000001-00000001.batch: ");
	CHECK(sum_of(out, false) == 12);
	RUN(&c, "%s -o %s", bad, out);
	assert_int_equal(c.code, CLI_FAILED);
	capture_run(&c, cli_convert, "convert --help");
	assert_int_equal(c.code, CLI_OK);
	check_width(c.out);
}

/* Also of parca-agent's files, and together with ours. */
static void reads_the_other_agents_files(void **state)
{
	(void)state;
	static struct capture c;
	CLEANUP(temp_dir_deinit) struct temp_dir made, d, to;
	char path[128], out[128], command[1024];
	temp_dir_init(&made);
	temp_dir_init(&d);
	temp_dir_init(&to);
	snprintf(out, sizeof(out), "%s/out", to.path);
	snprintf(command, sizeof(command),
		"python3 " TESTS_DIR "/parca/parca_maker.py " TESTS_DIR "/arrow %s", made.path);
	CHECK(system(command) == 0);
	fill(&d, 0);
	snprintf(path, sizeof(path), "%s/1700000000-7.padata.zst", d.path);
	bring(&made, "offline_v1", path, true);
	RUN(&c, "%s -o %s --format otlp", d.path, out);
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, " samples of 6 batches");
	int64_t with_v1 = sum_of(out, true);
	CHECK(with_v1 > 12);
	snprintf(path, sizeof(path), "%s/1700000900-7.padata", d.path);
	bring(&made, "offline_v2", path, false);
	RUN(&c, "%s -o %s --format otlp", d.path, out);
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, " samples of 10 batches");
	CHECK(sum_of(out, true) == 2 * with_v1 - 12); /* the same samples in the other schema */
	bring(&made, "offline_torn", path, false);
	RUN(&c, "%s -o %s --format otlp", path, out);
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.err, "behind its 2 batches are left out");
	bring(&made, "cut_end", path, true);
	RUN(&c, "%s -o %s --format otlp", path, out);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "1700000900-7.padata: batch 2 of 2: stacks of ");
	CHECK_HAS(c.out, " samples of 1 batch\n");
	bring(&made, "offline_gaps", path, false);
	RUN(&c, "%s -o %s --format otlp", path, out);
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.err, " samples have no stack");
}

TEST_MAIN(cmocka_unit_test(makes_one_profile), cmocka_unit_test(reads_the_other_agents_files),
	cmocka_unit_test(says_what_is_wrong))
