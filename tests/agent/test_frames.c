/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/frames.h"

#include "test.h"

/* ---- stand-ins for files, symbols of the kernel, and text in anonymous memory ---- */

enum { NATIVE = 2, PYTHON = 3, GO = 5 };
static uint64_t noticed_inode;

bool files_get(struct files *f, uint32_t file_id, struct file_info *out)
{
	(void)f;
	if (file_id != NATIVE && file_id != PYTHON && file_id != GO)
		return false;
	*out = (struct file_info){ .file_id = file_id, .path = "/lib/x" };
	out->runtime = file_id == PYTHON ? RUNTIME_CPYTHON : file_id == GO ? RUNTIME_GO : 0;
	snprintf(out->build_id, sizeof(out->build_id), "abcd%u", file_id);
	return true;
}

uint32_t files_find(struct files *f, const struct file_key *key)
{
	(void)f;
	return key->inode == 77 ? NATIVE : 0;
}

void files_notice(struct files *f, const struct file_notice *n, int pid)
{
	(void)f, (void)pid;
	noticed_inode = n->key.inode;
}

bool files_key(struct files *f, uint32_t file_id, struct file_key *out)
{
	(void)f, (void)file_id, (void)out;
	return false;
}

bool file_info_vaddr(const struct file_info *i, uint64_t file_offset, uint64_t *out_vaddr)
{
	(void)i;
	*out_vaddr = file_offset + 0x400000;
	return true;
}

bool kallsyms_find(struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out)
{
	(void)k;
	if (address < 0x1000 || address >= 0x4000)
		return false;
	*out = (struct kallsyms_symbol){ .start = address & ~0xfffULL };
	out->name = address < 0x2000   ? STR("our_program")
		    : address < 0x3000 ? STR("__schedule")
				       : STR("nf_hook");
	out->module = address < 0x3000 ? STR("") : STR("nf_tables");
	return true;
}

const struct remapped_region *remapped_find(
	struct remapped *r, int pid, uint64_t start_ns, uint64_t address, int64_t now_ns)
{
	static const struct remapped_region regions[] = {
		{ 0x10000, 0x20000, { .inode = 77 }, 0x3000 },
		{ 0x20000, 0x30000, { .inode = 78 }, 0 },
	};
	(void)r, (void)pid, (void)start_ns, (void)now_ns;
	for (size_t i = 0; i < ARRAY_COUNT(regions); i++)
		if (address >= regions[i].start && address < regions[i].end)
			return &regions[i];
	return NULL;
}

/* ---- a stack, as text ---- */

static struct profile profile;
static metric_value unnamed;
static uint32_t met_count;

static void meet(void *ctx, uint32_t file_id, const struct file_info *file, int pid)
{
	(void)ctx, (void)file_id, (void)file, (void)pid;
	met_count++;
}

static int setup(void **state)
{
	(void)state;
	met_count = 0;
	noticed_inode = 0;
	unnamed = 0;
	return profile_init(&profile, 1 << 20) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	profile_deinit(&profile);
	return 0;
}

static struct batch_frames frames_of(struct kallsyms *k)
{
	return (struct batch_frames){ .profile = &profile,
		.met = meet,
		.kallsyms = k,
		.unnamed_kernel = &unnamed,
		.pid = 7 };
}

static void put_location(struct buf *out, const struct profile_location *l)
{
	const struct profile *p = &profile;
	struct str file = profile_str(p, p->mappings.v[l->mapping].build_id);
	buf_printf(out, "%s", out->len ? " " : "");
	if (l->line_count)
		buf_str(out,
			profile_str(p, p->functions.v[p->lines.v[l->line_first].function].name));
	else
		buf_printf(out, "%.*s", STR_ARG(file));
	buf_printf(out, "+%llx", (unsigned long long)l->address);
}

/* Leaf first, after the batch has ended. */
static void check_stack(struct batch_frames *b, const struct event_sample *s, const char *want)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 4096);
	uint32_t at = 0;
	assert_int_equal(batch_frames_stack(b, s, &at), OK);
	batch_frames_resolve(b);
	const struct profile_stack *stack = &profile.stacks.v[at];
	for (uint32_t i = 0; i < stack->count; i++)
		put_location(
			&out, &profile.locations.v[profile.stack_locations.v[stack->first + i]]);
	CHECK_STR(buf_view(&out), want);
}

static struct event_sample *sample(uint16_t kernel, uint16_t user, const uint64_t *frames)
{
	size_t count = (size_t)kernel + user;
	struct event_sample *s = calloc(1, sizeof(*s) + count * sizeof(*frames));
	assert_non_null(s);
	s->h = (struct event_header){ .type = EVENT_SAMPLE, .stack_end = STACK_END_ROOT, .pid = 7 };
	s->kernel_count = kernel;
	s->user_count = user;
	memcpy(s->frames, frames, count * sizeof(*frames));
	return s;
}

static uint64_t in_file(uint64_t file, uint64_t offset)
{
	return file << FRAME_FILE_SHIFT | offset;
}

static void names_functions_of_the_kernel(void **state)
{
	(void)state;
	int symbols;
	struct batch_frames b = frames_of((struct kallsyms *)&symbols);
	const uint64_t frames[] = { 0x3010, 0x3000, 0x9001 };
	CLEANUP(free_cleanup) struct event_sample *s = sample(3, 0, frames);
	/* Of a caller the byte before is looked up. */
	check_stack(&b, s, "nf_hook+10 __schedule+fff [kernel]+0x9000+9000");
	const struct profile_location *leaf = &profile.locations.v[profile.stack_locations.v[0]];
	CHECK(leaf->kind == FRAME_KERNEL);
	CHECK_STR(profile_str(&profile, profile.mappings.v[leaf->mapping].filename), "[nf_tables]");
	CHECK(metric_get(&unnamed) == 1 && b.missed_kernel);
	batch_frames_deinit(&b);
}

static void begins_where_the_scheduler_was_called(void **state)
{
	(void)state;
	int symbols;
	struct batch_frames b = frames_of((struct kallsyms *)&symbols);
	const uint64_t frames[] = { 0x1010, 0x1020, 0x2011, 0x3011 };
	CLEANUP(free_cleanup) struct event_sample *s = sample(4, 0, frames);
	check_stack(&b, s, "our_program+10 our_program+1f __schedule+10 nf_hook+10");
	s->h.flags = (uint8_t)(THREAD_OFF_CPU << EVENT_STATE_SHIFT);
	check_stack(&b, s, "__schedule+10 nf_hook+10");
	b.kallsyms = NULL;
	check_stack(&b, s,
		"[kernel]+0x1010+1010 [kernel]+0x101f+101f [kernel]+0x2010+2010 "
		"[kernel]+0x3010+3010");
	batch_frames_deinit(&b);
}

static void leaves_out_what_runs_an_interpreter(void **state)
{
	(void)state;
	struct batch_frames b = frames_of(NULL);
	uint64_t gap = FRAME_RUNTIME | (uint64_t)RUNTIME_CPYTHON << 16 << FRAME_CODE_SHIFT;
	const uint64_t frames[] = { in_file(PYTHON, 1), gap | RUNTIME_GAP_OWNER, in_file(PYTHON, 2),
		in_file(GO, 3), in_file(NATIVE, 4), in_file(PYTHON, 5) };
	CLEANUP(free_cleanup) struct event_sample *s = sample(0, 6, frames);
	uint32_t at;
	assert_int_equal(batch_frames_stack(&b, s, &at), OK);
	CHECK(profile.stacks.v[at].count == 5); /* without the one behind the gap */
	b.keep_interpreters = true;
	assert_int_equal(batch_frames_stack(&b, s, &at), OK);
	CHECK(profile.stacks.v[at].count == 6);
	batch_frames_deinit(&b);
}

static void counts_samples_of_each_runtime(void **state)
{
	(void)state;
	struct batch_frames b = frames_of(NULL);
	uint64_t gap = FRAME_RUNTIME | (uint64_t)(RUNTIME_LUA << 16 | 5 << 8 | 4)
					       << FRAME_CODE_SHIFT;
	const uint64_t frames[] = { gap | RUNTIME_GAP_STATE, in_file(NATIVE, 4) };
	CLEANUP(free_cleanup) struct event_sample *s = sample(0, 2, frames);
	uint32_t at;
	assert_int_equal(batch_frames_stack(&b, s, &at), OK);
	CHECK(b.runtimes.v[0].what == (RUNTIME_LUA << 16 | 5 << 8 | 4));
	CHECK(b.runtimes.v[0].samples == 1 && b.runtimes.v[0].whole == 0);
	batch_frames_deinit(&b);
}

static void finds_text_in_anonymous_memory(void **state)
{
	(void)state;
	struct batch_frames b = frames_of(NULL);
	const uint64_t frames[] = { 0x10010, 0x30010 };
	CLEANUP(free_cleanup) struct event_sample *s = sample(0, 2, frames);
	check_stack(&b, s, "abcd2+403010 +30010");
	CHECK(noticed_inode == 0);
	s->frames[0] = 0x20010; /* of a file that nobody has met */
	check_stack(&b, s, "+20010 +30010");
	CHECK(noticed_inode == 78);
	batch_frames_deinit(&b);
}

static void meets_each_file_once_a_batch(void **state)
{
	(void)state;
	struct batch_frames b = frames_of(NULL);
	const uint64_t frames[] = { in_file(NATIVE, 1), in_file(NATIVE, 2), in_file(99, 3) };
	CLEANUP(free_cleanup) struct event_sample *s = sample(0, 3, frames);
	check_stack(&b, s, "abcd2+400001 abcd2+400002 +3");
	check_stack(&b, s, "abcd2+400001 abcd2+400002 +3");
	CHECK(met_count == 1);
	batch_frames_clear(&b);
	assert_int_equal(profile_clear(&profile), OK);
	check_stack(&b, s, "abcd2+400001 abcd2+400002 +3");
	CHECK(met_count == 2);
	batch_frames_deinit(&b);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(names_functions_of_the_kernel, setup, teardown),
	cmocka_unit_test_setup_teardown(begins_where_the_scheduler_was_called, setup, teardown),
	cmocka_unit_test_setup_teardown(leaves_out_what_runs_an_interpreter, setup, teardown),
	cmocka_unit_test_setup_teardown(counts_samples_of_each_runtime, setup, teardown),
	cmocka_unit_test_setup_teardown(finds_text_in_anonymous_memory, setup, teardown),
	cmocka_unit_test_setup_teardown(meets_each_file_once_a_batch, setup, teardown))
