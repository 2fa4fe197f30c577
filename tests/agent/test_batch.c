/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/batch.h"
#include "agent/send/label_values.h"
#include "base/clock.h"
#include "otlp/otlp.h"

#include "test.h"

#include <unistd.h>

/* Four files, by id; all others are gone. Stands in for agent/files/files.c. */
bool files_get(struct files *f, uint32_t file_id, struct file_info *out)
{
	(void)f;
	if (file_id == 4) { /* no ELF file */
		*out = (struct file_info){ .file_id = file_id, .path = "[memfd:code]" };
		return true;
	}
	if (file_id != 2 && file_id != 3 && file_id != 5)
		return false;
	*out = (struct file_info){ .file_id = file_id, .segment_count = 1 };
	out->runtime = file_id == 3 ? RUNTIME_CPYTHON : file_id == 5 ? RUNTIME_GO : RUNTIME_NONE;
	out->segments[0] = (struct objfile_segment){
		.offset = 0x1000, .vaddr = 0x401000, .file_size = 0x10000, .mem_size = 0x10000
	};
	snprintf(out->path, sizeof(out->path), "/usr/lib/lib%u.so", file_id);
	snprintf(out->build_id, sizeof(out->build_id), "abcd%u", file_id);
	return true;
}

/* Inode 77 is read by the end of the interval. */
void files_notice(struct files *f, const struct file_notice *n, int pid)
{
	(void)f;
	(void)n;
	(void)pid;
}

uint32_t files_find(struct files *f, const struct file_key *key)
{
	(void)f;
	return key->inode == 77 ? 2 : 0;
}

bool files_key(struct files *f, uint32_t file_id, struct file_key *out)
{
	(void)f, (void)file_id, (void)out;
	return false;
}

bool file_info_vaddr(const struct file_info *i, uint64_t file_offset, uint64_t *out_vaddr)
{
	const struct objfile_segment *s = &i->segments[0];
	if (file_offset < s->offset || file_offset - s->offset >= s->file_size)
		return false;
	*out_vaddr = file_offset - s->offset + s->vaddr;
	return true;
}

struct got {
	struct profile profile;
	uint32_t messages;
	uint32_t samples;
};

static void keep(void *ctx, struct buf *message, uint32_t sample_count)
{
	struct got *g = ctx;
	struct otlp_rejects rejects = { 0 };
	struct err e;
	CHECK_OK(otlp_decode(buf_view(message), &g->profile, &rejects, &e), &e);
	CHECK(rejects.profiles == 0);
	CHECK(message->len <= 4 << 20);
	g->messages++;
	g->samples += sample_count;
}

struct fixture {
	struct metadata *metadata;
	struct processes *processes;
	struct codes *codes;
	struct batch *batch;
	struct got got;
};

static const char *rules_path = "";
static bool no_cpu;
static struct {
	bool wall_clock;
} off_cpu;

static int64_t wall_offset_ns; /* what somebody set the wall clock by */

static int64_t fake_realtime(void)
{
	return clock_realtime_ns() + wall_offset_ns;
}

static void setup(struct fixture *f, const char *const *external)
{
	struct err e;
	const struct metadata_config m = {
		.node = "host-1", .external_labels = external, .config_path = rules_path
	};
	CHECK_OK(metadata_new(&m, &f->metadata, &e), &e);
	const struct processes_config pc = { .metadata = f->metadata,
		.patience_ns = 30 * NS_PER_SEC };
	CHECK_OK(processes_new(&pc, &f->processes, &e), &e);
	CHECK_OK(codes_new(CODES_BYTES_MAX, &f->codes, &e), &e);
	f->got = (struct got){ .messages = 0 };
	CHECK(profile_init(&f->got.profile, 64 << 20) == OK);
	struct batch_config c = { .frequency_hz = 19,
		.no_cpu = no_cpu,
		.wall_clock = off_cpu.wall_clock,
		.processes = f->processes,
		.codes = f->codes,
		.emit = keep,
		.realtime_ns = fake_realtime,
		.ctx = &f->got };
	CHECK_OK(batch_new(&c, &f->batch, &e), &e);
}

static void teardown(struct fixture *f)
{
	batch_free(f->batch);
	codes_free(f->codes);
	processes_free(f->processes);
	metadata_free(f->metadata);
	profile_deinit(&f->got.profile);
}

/* An event with these frames; of a process that is not there, so that nothing is read of it. */
static struct event_sample *sample(enum stack_end end, uint16_t kernel, uint16_t user)
{
	struct event_sample *s = calloc(1, sizeof(*s) + (kernel + user) * sizeof(uint64_t));
	s->h = (struct event_header){ .type = EVENT_SAMPLE,
		.stack_end = (uint8_t)end,
		.cpu = 3,
		.pid = 1u << 30,
		.tid = (1u << 30) + 1,
		.process_start_ns = 5,
		.comm = "worker" };
	s->kernel_count = kernel;
	s->user_count = user;
	return s;
}

static uint64_t frame(uint64_t file, uint64_t offset)
{
	return file << FRAME_FILE_SHIFT | offset;
}

static struct str function_of(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations.v[location];
	if (!l->line_count)
		return STR("");
	return profile_str(p, p->functions.v[p->lines.v[l->line_first].function].name);
}

static bool has_label(const struct profile *p, uint32_t set, const char *name, const char *value)
{
	const struct profile_labels *s = &p->label_sets.v[set];
	for (uint32_t i = s->first; i < s->first + s->count; i++)
		if (str_eq(profile_str(p, p->labels.v[i].name), str_of(name)))
			return str_eq(profile_str(p, p->labels.v[i].value), str_of(value));
	return false;
}

static void makes_locations_of_frames(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 2, 6);
	s->frames[0] = 0xffffffff81000010;
	s->frames[1] = 0xffffffff81000020;
	s->frames[2] = frame(2, 0x1234);
	s->frames[3] = frame(3, 0x2000);
	s->frames[4] = frame(2, 0x900000); /* in no segment */
	s->frames[5] = frame(FRAME_FILE_ADDRESS, 0x7f0000001000);
	s->frames[6] = frame(99, 0x40); /* a file that is gone */
	s->frames[7] = frame(4, 0x51);
	batch_add(f.batch, s);
	CHECK(batch_finish(f.batch)); /* a kernel address had no name */
	const struct profile *p = &f.got.profile;
	CHECK(f.got.messages == 1 && p->samples.len == 1);
	const struct profile_stack *stack = &p->stacks.v[p->samples.v[0].stack];
	CHECK(stack->count == 8);
	const uint32_t *at = p->stack_locations.v + stack->first;
	CHECK_STR(function_of(p, at[0]), "[kernel]+0xffffffff81000010");
	CHECK_STR(function_of(p, at[1]), "[kernel]+0xffffffff8100001f"); /* in the call */
	CHECK(p->locations.v[at[0]].kind == FRAME_KERNEL);
	const struct profile_location *l = &p->locations.v[at[2]];
	CHECK(l->kind == FRAME_NATIVE && l->address == 0x401234 && l->line_count == 0);
	CHECK_STR(profile_str(p, p->mappings.v[l->mapping].filename), "/usr/lib/lib2.so");
	CHECK_STR(profile_str(p, p->mappings.v[l->mapping].build_id), "abcd2");
	CHECK(p->mappings.v[l->mapping].start == 0 && p->mappings.v[l->mapping].offset == 0);
	CHECK(p->locations.v[at[3]].address == 0x402000);
	CHECK(p->locations.v[at[4]].address == 0x900000);
	CHECK(p->locations.v[at[5]].kind == FRAME_JIT);
	CHECK(p->locations.v[at[5]].address == 0x7f0000001000);
	l = &p->locations.v[at[6]];
	CHECK_STR(profile_str(p, p->mappings.v[l->mapping].filename), "[file gone]");
	l = &p->locations.v[at[7]];
	CHECK(l->kind == FRAME_JIT && l->address == 0x51);
	CHECK_STR(profile_str(p, p->mappings.v[l->mapping].filename), "[memfd:code]");
	teardown(&f);
}

static void places_frames_of_files_read_late(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_NO_FILE, 0, 2);
	s->frames[0] = 0x7f0000000234;
	s->frames[1] = FRAME_RUNTIME | 0x1030bULL << FRAME_CODE_SHIFT | RUNTIME_GAP_OWNER;
	for (uint64_t inode = 77; inode <= 78; inode++) {
		s->notice = (struct file_notice){ .key = { .inode = inode, .dev = 8 },
			.vma_start = 0x7f0000000000,
			.vma_end = 0x7f0000001000,
			.offset = 0x1000 };
		batch_add(f.batch, s);
	}
	(void)batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	CHECK(p->samples.len == 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct profile_stack *stack = &p->stacks.v[p->samples.v[i].stack];
		CHECK(stack->count == 3); /* and the gap, and the marker */
		const struct profile_location *l =
			&p->locations.v[p->stack_locations.v[stack->first]];
		struct str name = profile_str(p, p->mappings.v[l->mapping].filename);
		CHECK(l->kind == FRAME_NATIVE);
		CHECK(l->address == (i == 0 ? 0x401234u : 0x1234u));
		CHECK(str_eq(
			name, i == 0 ? STR("/usr/lib/lib2.so") : STR("[file 8:78, not read yet]")));
	}
	teardown(&f);
}

static void labels_each_sample(void **state)
{
	(void)state;
	struct fixture f;
	static const char *const external[] = { "region=eu", "comm=never wins", NULL };
	setup(&f, external);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 1);
	s->frames[0] = frame(2, 0x1234);
	batch_add(f.batch, s);
	CHECK(!batch_finish(f.batch));
	const struct profile *p = &f.got.profile;
	const struct profile_sample *x = &p->samples.v[0];
	CHECK(has_label(p, x->resource, "node", "host-1"));
	CHECK(has_label(p, x->resource, "comm", "worker"));
	CHECK(has_label(p, x->resource, "executable", "worker"));
	CHECK(has_label(p, x->resource, "region", "eu"));
	CHECK(has_label(p, x->own, "pid", "1073741824"));
	CHECK(has_label(p, x->own, "thread_id", "1073741825"));
	CHECK(has_label(p, x->own, "thread_name", "worker"));
	CHECK(has_label(p, x->own, "cpu", "3"));
	CLEANUP(buf_deinit) struct buf type;
	buf_init(&type, 200);
	profile_type_write(&type, p, &p->types.v[p->heads.v[x->head].type]);
	CHECK_STR(buf_view(&type), "parca_agent:samples:count:cpu:nanoseconds:delta");
	CHECK(p->heads.v[x->head].period == 1000000000 / 19 && x->value == 1);
	CHECK(x->time_ns >= p->heads.v[x->head].time_ns);
	CHECK(x->time_ns <= p->heads.v[x->head].time_ns + p->heads.v[x->head].duration_ns);
	teardown(&f);
}

static void shows_what_is_missing(void **state)
{
	(void)state;
	for (unsigned end = 0; end < STACK_END_COUNT; end++) {
		struct fixture f;
		setup(&f, NULL);
		CLEANUP(free_cleanup) struct event_sample *s = sample((enum stack_end)end, 0, 1);
		s->frames[0] = frame(2, 0x1234);
		batch_add(f.batch, s);
		(void)batch_finish(f.batch);
		const struct profile *p = &f.got.profile;
		const struct profile_stack *stack = &p->stacks.v[p->samples.v[0].stack];
		uint32_t root = p->stack_locations.v[stack->first + stack->count - 1];
		CHECK(stack->count == (stack_end_is_whole(end) ? 1u : 2u));
		CHECK((p->locations.v[root].kind == FRAME_MARKER) == !stack_end_is_whole(end));
		if (end == STACK_END_DEPTH)
			CHECK_STR(function_of(p, root), "[truncated]");
		if (end == STACK_END_NO_FILE)
			CHECK_STR(function_of(p, root),
				"[unwind: this file's table is not loaded yet]");
		if (end == STACK_END_NO_ROOM)
			CHECK_STR(function_of(p, root),
				"[unwind: no room for this file's table: --bpf-table-memory]");
		CHECK(metric_get(&batch_metrics(f.batch)->stack_end[end]) == 1);
		teardown(&f);
	}
}

static void keeps_the_deepest_stack_whole(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup)
	struct event_sample *s =
		sample(STACK_END_DEPTH, SAMPLE_KERNEL_FRAMES_MAX, SAMPLE_USER_FRAMES_MAX);
	for (uint32_t i = 0; i < SAMPLE_KERNEL_FRAMES_MAX; i++)
		s->frames[i] = 0xffffffff81000000 + i;
	for (uint32_t i = 0; i < SAMPLE_USER_FRAMES_MAX; i++)
		s->frames[SAMPLE_KERNEL_FRAMES_MAX + i] = frame(2, 0x1000 + i);
	batch_add(f.batch, s);
	(void)batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	const struct profile_stack *stack = &p->stacks.v[p->samples.v[0].stack];
	CHECK(stack->count == SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX + 1);
	teardown(&f);
}

static void splits_and_loses_nothing(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 3);
	uint32_t total = 2 * BATCH_SAMPLES_MAX + 77;
	for (uint32_t i = 0; i < total; i++) {
		s->h.time_ns = (uint64_t)i * 1000;
		s->frames[0] = frame(2, 0x1000 + i % 5000);
		s->frames[1] = frame(3, 0x1000 + i % 77);
		s->frames[2] = frame(3, 0x2000);
		batch_add(f.batch, s);
	}
	(void)batch_finish(f.batch);
	(void)batch_finish(f.batch); /* nothing there: nothing sent */
	CHECK(f.got.messages == 3 && f.got.samples == total);
	CHECK(f.got.profile.samples.len == total);
	const struct batch_metrics *m = batch_metrics(f.batch);
	CHECK(metric_get(&m->samples) == total && metric_get(&m->lost) == 0);
	CHECK(metric_get(&m->messages) == 3);
	teardown(&f);
}

static void splits_by_bytes(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 1000);
	uint32_t total = 6000;
	for (uint32_t i = 0; i < total; i++) {
		for (uint32_t k = 0; k < 1000; k++)
			s->frames[k] = frame(2, 0x1000 + (i * 7 + k * 13) % 60000);
		batch_add(f.batch, s);
	}
	(void)batch_finish(f.batch);
	CHECK(f.got.messages > 3 && f.got.samples == total);
	teardown(&f);
}

static void leaves_out_what_rules_drop(void **state)
{
	(void)state;
	struct fixture f;
	char path[] = "/tmp/firn-test-batch-XXXXXX";
	int fd = mkstemp(path);
	const char rules[] =
		"relabel_configs:\n- {source_labels: [comm], regex: worker, action: drop}\n";
	CHECK(write(fd, rules, strlen(rules)) == (ssize_t)strlen(rules));
	close(fd);
	rules_path = path;
	no_cpu = true;
	setup(&f, NULL);
	rules_path = "";
	no_cpu = false;
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 1);
	s->frames[0] = frame(2, 0x1000);
	batch_add(f.batch, s);
	s->h.tid = s->h.pid += 1;
	memcpy(s->h.comm, "other", sizeof("other"));
	batch_add(f.batch, s);
	(void)batch_finish(f.batch);
	assert_int_equal(f.got.samples, 1);
	assert_int_equal(metric_get(&batch_metrics(f.batch)->dropped), 1);
	assert_int_equal(metric_get(&batch_metrics(f.batch)->samples), 1);
	assert_int_equal(metric_get(&batch_metrics(f.batch)->lost), 0);
	const struct profile *p = &f.got.profile;
	CHECK(has_label(p, p->samples.v[0].own, "thread_name", "other"));
	CHECK(!has_label(p, p->samples.v[0].own, "cpu", "3"));
	teardown(&f);
	unlink(path);
}

static struct str type_of(const struct profile *p, const struct profile_sample *x, struct buf *out)
{
	buf_clear(out);
	profile_type_write(out, p, &p->types.v[p->heads.v[x->head].type]);
	return buf_view(out);
}

/* The samples of the CPU are in the wall clock too. */
static void counts_time_off_the_cpu(void **state)
{
	(void)state;
	struct fixture f;
	off_cpu.wall_clock = true;
	setup(&f, NULL);
	off_cpu.wall_clock = false;
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 2);
	s->frames[0] = frame(2, 0x1234);
	s->frames[1] = frame(3, 0x2000);
	batch_add(f.batch, s);
	s->h.flags = THREAD_SLEEPING << EVENT_STATE_SHIFT;
	batch_add_off_cpu(f.batch, s, 30000);
	s->h.flags = THREAD_BLOCKED << EVENT_STATE_SHIFT;
	batch_add_off_cpu(f.batch, s, 500);
	(void)batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1000);
	CHECK(f.got.messages == 1 && p->samples.len == 4 && f.got.samples == 4);
	uint32_t seen = 0;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		CHECK(x->stack == p->samples.v[0].stack);
		if (x->value == 1) {
			CHECK_STR(type_of(p, x, &text),
				"parca_agent:samples:count:cpu:nanoseconds:delta");
			CHECK(!has_label(p, x->own, "state", "on-cpu"));
			seen |= 1;
			continue;
		}
		CHECK_STR(type_of(p, x, &text),
			"parca_agent:wallclock:nanoseconds:samples:count:delta");
		CHECK(has_label(p, x->own, "thread_name", "worker"));
		seen |= x->value == NS_PER_SEC / 19 && has_label(p, x->own, "state", "on-cpu") ? 2
			: x->value == 30000 && has_label(p, x->own, "state", "sleeping")       ? 4
			: x->value == 500 && has_label(p, x->own, "state", "blocked")          ? 8
											       : 0;
	}
	CHECK(seen == 15);
	const struct batch_metrics *m = batch_metrics(f.batch);
	CHECK(metric_get(&m->samples) == 3 && metric_get(&m->off_cpu) == 2);
	teardown(&f);
}

static void take(struct batch *b, int64_t at_ns)
{
	struct event_sample *s = sample(STACK_END_ROOT, 0, 1);
	s->h.time_ns = (uint64_t)at_ns;
	s->frames[0] = (uint64_t)2 << FRAME_FILE_SHIFT | 0x1100;
	batch_add(b, s);
	free(s);
}

/* The wall clock is set, one way and the other, between two looks at the ring: what was taken
 * before keeps the time that it had, what comes after has the new one. */
static void keeps_the_time_that_held(void **state)
{
	(void)state;
	static const int64_t steps_ns[] = { 3600 * NS_PER_SEC, -3600 * NS_PER_SEC };
	for (size_t i = 0; i < ARRAY_COUNT(steps_ns); i++) {
		struct fixture f;
		wall_offset_ns = 0;
		setup(&f, NULL);
		int64_t first = clock_monotonic_ns(), real = clock_realtime_ns();
		take(f.batch, first);
		usleep(2000);
		batch_look_at_clocks(f.batch);
		int64_t second = clock_monotonic_ns() - 1000000;
		wall_offset_ns = steps_ns[i];
		take(f.batch, second); /* taken before the last look, read after the step */
		usleep(2000);
		int64_t third = clock_monotonic_ns();
		take(f.batch, third);
		batch_finish(f.batch);
		CHECK(f.got.messages == 2 && f.got.samples == 3);
		CHECK(metric_get(&batch_metrics(f.batch)->clock_steps) == 1);
		const int64_t want[] = { real, real + second - first,
			real + third - first + steps_ns[i] };
		CHECK(f.got.profile.samples.len == 3);
		for (size_t k = 0; k < 3; k++) {
			int64_t off = f.got.profile.samples.v[k].time_ns - want[k];
			CHECK(off > -50 * NS_PER_MS && off < 50 * NS_PER_MS);
		}
		wall_offset_ns = 0;
		teardown(&f);
	}
}

static void says_how_often_it_was_sampled(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	take(f.batch, clock_monotonic_ns());
	batch_finish(f.batch);
	batch_set_frequency(f.batch, 4);
	take(f.batch, clock_monotonic_ns());
	batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	CHECK(p->samples.len == 2);
	CHECK(p->heads.v[p->samples.v[0].head].period == NS_PER_SEC / 19);
	CHECK(p->heads.v[p->samples.v[1].head].period == NS_PER_SEC / 4);
	teardown(&f);
}

/* ---- language runtimes ---- */

#define CODE (FRAME_CODE_REAL | 0x77)

static uint64_t runtime_frame(uint64_t code, uint64_t position)
{
	return FRAME_RUNTIME | code << FRAME_CODE_SHIFT | position;
}

static void tell_code(struct fixture *f)
{
	static const char texts[] = "Work.methodwork.py\x87\x12\xdf\x01\x02";
	struct event_code *e = calloc(1, sizeof(*e));
	CHECK(e);
	*e = (struct event_code){ .kind = RUNTIME_CPYTHON,
		.version = 3 << 8 | 11,
		.name_bytes = 11,
		.file_bytes = 7,
		.lines_bytes = 5,
		.name_unit = 1,
		.file_unit = 1,
		.pid = 1u << 30,
		.first_line = 40,
		.code = CODE };
	memcpy(e->data, texts, sizeof(texts) - 1);
	codes_add(f->codes, e);
	free(e);
}

static void names_frames_of_runtimes(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	tell_code(&f);
	struct event_sample *s = sample(STACK_END_ROOT, 0, 9);
	s->frames[0] = frame(3, 0x1010); /* where the interpreter is: stays */
	s->frames[1] = runtime_frame(CODE, 9);
	s->frames[2] = runtime_frame(CODE, FRAME_POSITION_NONE);
	s->frames[3] = runtime_frame(CODE + 1, 9); /* nobody told its name */
	s->frames[4] = runtime_frame(RUNTIME_CPYTHON << 16 | 0x30b, RUNTIME_GAP_FRAME);
	s->frames[5] = frame(3, 0x1020); /* what of it leads to its own frames does not, */
	s->frames[6] = frame(2, 0x1030);
	s->frames[7] = frame(5, 0x1050); /* a function of Go stays, */
	s->frames[8] = frame(3, 0x1040); /* and the root does */
	batch_add(f.batch, s);
	(void)batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	const struct profile_stack *stack = &p->stacks.v[p->samples.v[0].stack];
	CHECK(p->samples.len == 1 && stack->count == 8);
	const uint32_t *at = &p->stack_locations.v[stack->first];
	const struct profile_location *l = &p->locations.v[at[1]];
	const struct profile_line *line = &p->lines.v[l->line_first];
	const struct profile_function *function = &p->functions.v[line->function];
	CHECK(p->locations.v[at[0]].kind == FRAME_NATIVE && l->kind == FRAME_CPYTHON);
	CHECK(line->line == 41 && function->start_line == 40);
	CHECK_STR(profile_str(p, function->name), "Work.method");
	CHECK_STR(profile_str(p, function->filename), "work.py");
	CHECK(p->lines.v[p->locations.v[at[2]].line_first].line == 0);
	CHECK_STR(function_of(p, at[2]), "Work.method");
	CHECK_STR(function_of(p, at[3]), "[a function whose name was not told]");
	CHECK_STR(function_of(p, at[4]), "[cpython: a frame could not be read]");
	CHECK(p->locations.v[at[4]].kind == FRAME_MARKER);
	CHECK(p->locations.v[at[5]].kind == FRAME_NATIVE);
	CHECK(p->locations.v[at[5]].address == 0x401030);
	CHECK(p->locations.v[at[6]].address == 0x401050);
	CHECK(p->locations.v[at[7]].kind == FRAME_NATIVE); /* the root */
	CHECK(codes_missed(f.codes));
	free(s);
	teardown(&f);
}

static void put_goroutine_label(struct event_code *e, const char *key, const char *value)
{
	struct runtime_label l = { .key_bytes = (uint16_t)strlen(key),
		.value_bytes = (uint16_t)strlen(value) };
	memcpy(l.key, key, l.key_bytes);
	memcpy(l.value, value, l.value_bytes);
	memcpy(e->data + e->lines_bytes, &l, sizeof(l));
	e->lines_bytes += sizeof(l);
}

/* A goroutine's labels are those of its samples, but for names that have another meaning. */
static void labels_samples_of_goroutines(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup) struct event_code *e = calloc(1, sizeof(*e));
	CHECK(e);
	*e = (struct event_code){ .kind = RUNTIME_GO,
		.name_unit = RUNTIME_TEXT_UTF8,
		.file_unit = RUNTIME_TEXT_UTF8,
		.pid = 1u << 30,
		.code = CODE };
	put_goroutine_label(e, "span_id", "00f067aa0ba902b7");
	put_goroutine_label(e, "endpoint", "/api/\xff");
	put_goroutine_label(e, "pid", "1");
	put_goroutine_label(e, "comm", "other");
	put_goroutine_label(e, "__name__", "other");
	put_goroutine_label(e, "pod", "other");
	put_goroutine_label(e, "", "other");
	codes_add(f.codes, e);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 1);
	s->frames[0] = frame(2, 0x1234);
	s->labels = CODE;
	batch_add(f.batch, s);
	s->labels = CODE + 1; /* nobody told them */
	batch_add(f.batch, s);
	(void)batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	CHECK(p->samples.len == 2);
	const struct profile_sample *x = &p->samples.v[0];
	CHECK(has_label(p, x->own, "span_id", "00f067aa0ba902b7"));
	CHECK(has_label(p, x->own, "endpoint", "/api/\xef\xbf\xbd"));
	CHECK(has_label(p, x->own, "pid", "1073741824"));
	CHECK(has_label(p, x->resource, "comm", "worker") &&
		!has_label(p, x->own, "comm", "other"));
	CHECK(!has_label(p, x->own, "__name__", "other") && !has_label(p, x->own, "pod", "other"));
	CHECK(!has_label(p, p->samples.v[1].own, "span_id", "00f067aa0ba902b7"));
	CHECK(codes_missed(f.codes));
	teardown(&f);
}

/* A label with a value for each request is left out after some hundred, and others stay. */
static void leaves_out_labels_with_many_values(void **state)
{
	(void)state;
	struct fixture f;
	setup(&f, NULL);
	CLEANUP(free_cleanup) struct event_code *e = calloc(1, sizeof(*e));
	CHECK(e);
	CLEANUP(free_cleanup) struct event_sample *s = sample(STACK_END_ROOT, 0, 1);
	s->frames[0] = frame(2, 0x1234);
	for (unsigned i = 0; i < 1000; i++) {
		char value[32];
		*e = (struct event_code){ .kind = RUNTIME_GO,
			.name_unit = RUNTIME_TEXT_UTF8,
			.file_unit = RUNTIME_TEXT_UTF8,
			.pid = 1u << 30,
			.code = CODE + i };
		snprintf(value, sizeof(value), "r%u", i);
		put_goroutine_label(e, "request_id", value);
		put_goroutine_label(e, "span_id", value);
		put_goroutine_label(e, "endpoint", "/api");
		codes_add(f.codes, e);
		s->labels = CODE + i;
		batch_add(f.batch, s);
	}
	(void)batch_finish(f.batch);
	const struct profile *p = &f.got.profile;
	size_t requests = 0;
	CHECK(p->samples.len == 1000);
	for (size_t i = 0; i < 1000; i++) {
		char value[32];
		snprintf(value, sizeof(value), "r%zu", i);
		uint32_t own = p->samples.v[i].own;
		requests += has_label(p, own, "request_id", value);
		CHECK(has_label(p, own, "span_id", value) && has_label(p, own, "endpoint", "/api"));
	}
	CHECK(requests > LABEL_VALUES_MAX / 2 && requests < LABEL_VALUES_MAX * 3 / 2);
	teardown(&f);
}

TEST_MAIN(cmocka_unit_test(labels_samples_of_goroutines),
	cmocka_unit_test(leaves_out_labels_with_many_values),
	cmocka_unit_test(names_frames_of_runtimes), cmocka_unit_test(keeps_the_time_that_held),
	cmocka_unit_test(says_how_often_it_was_sampled), cmocka_unit_test(counts_time_off_the_cpu),
	cmocka_unit_test(makes_locations_of_frames),
	cmocka_unit_test(places_frames_of_files_read_late), cmocka_unit_test(labels_each_sample),
	cmocka_unit_test(shows_what_is_missing), cmocka_unit_test(keeps_the_deepest_stack_whole),
	cmocka_unit_test(splits_and_loses_nothing), cmocka_unit_test(splits_by_bytes),
	cmocka_unit_test(leaves_out_what_rules_drop))
