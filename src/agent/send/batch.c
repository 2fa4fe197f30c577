/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch is a struct profile that is filled sample by sample and cleared when it was encoded.
 * The mapping and segments of a file id repeat from sample to sample, and are looked up once a
 * batch. A sample that runs into a limit or out of memory is left out whole and counted; the
 * interned pieces it left behind do no harm.
 */
#include "agent/send/batch.h"

#include "agent/send/jitframes.h"
#include "agent/send/sample_labels.h"
#include "base/clock.h"
#include "base/log.h"
#include "otlp/otlp.h"
#include "profile/profile.h"
#include "runtimes/runtimes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PROFILE_NAME "parca_agent"
#define PROFILE_BYTES_MAX ((size_t)64 << 20) /* of texts in one batch */
#define OFF_CPU_OWN_FRAMES_MAX 12
#define FRAMES_MAX (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX + 1)
/* Less is a clock that is slewed, or two reads that were interrupted. */
#define CLOCK_STEP_NS (100 * NS_PER_MS)
static_assert(FRAMES_MAX <= PROFILE_STACK_MAX, "a whole sample fits a stack of the profile");

/* A file of this batch. */
struct file_entry {
	uint32_t file_id;
	uint32_t mapping;
	bool known;          /* info is filled */
	struct file_key key; /* of code that a process has made; inode 0: not known any more */
	struct file_info info;
};

/* A frame in a file that was not known when the sample was taken. It mostly is by the end of the
 * interval: then the location gets its mapping and its address. */
struct late_location {
	uint32_t location;
	struct file_key key;
};

struct batch {
	struct batch_config config;
	struct profile profile;
	uint32_t head;
	uint32_t wall_head;      /* of the wall clock's type; 0: not needed so far */
	int64_t begin_ns;        /* realtime */
	int64_t clock_offset_ns; /* realtime - monotonic */
	/* Samples until `step_ns` (monotonic) belong to the offset before. */
	int64_t step_ns, offset_before_ns;
	int64_t looked_ns; /* when the clocks were compared last; monotonic */
	VEC(struct file_entry) files;
	struct map file_index;
	VEC(struct late_location) late;
	struct jitframes jit;
	struct remapped remapped;
	struct sample_labels labels;
	bool missed_kernel;
	int pid;                       /* of the sample that is added */
	const struct process *process; /* that it is of */
	struct batch_metrics metrics;
};

/* ---- begin and end of an interval ---- */

static enum status add_head(struct batch *b, const char *const type_parts[5], uint32_t *out)
{
	struct profile *p = &b->profile;
	struct profile_type type = { .delta = true };
	uint32_t *ids[] = { &type.name, &type.sample_type, &type.sample_unit, &type.period_type,
		&type.period_unit };
	enum status s = OK;
	for (size_t i = 0; i < ARRAY_COUNT(ids) && s == OK; i++)
		s = profile_add_string(p, str_of(type_parts[i]), ids[i]);
	struct profile_head head = { .period = NS_PER_SEC / b->config.frequency_hz,
		.time_ns = b->begin_ns };
	if (s == OK)
		s = profile_add_type(p, &type, &head.type);
	return s == OK ? profile_add_head(p, &head, out) : s;
}

static enum status wall_head(struct batch *b, uint32_t *out)
{
	static const char *const type[] = { PROFILE_NAME, "wallclock", "nanoseconds", "samples",
		"count" };
	enum status s = OK;
	if (!b->wall_head)
		s = add_head(b, type, &b->wall_head);
	*out = b->wall_head;
	return s;
}

static int64_t realtime_ns(const struct batch *b)
{
	return b->config.realtime_ns ? b->config.realtime_ns() : clock_realtime_ns();
}

static enum status begin(struct batch *b)
{
	struct profile *p = &b->profile;
	enum status s = profile_clear(p);
	if (s != OK)
		return s;
	VEC_CLEAR(&b->files);
	VEC_CLEAR(&b->late);
	jitframes_clear(&b->jit);
	map_clear(&b->file_index);
	int64_t now = clock_monotonic_ns();
	b->looked_ns = now;
	b->begin_ns = realtime_ns(b);
	b->clock_offset_ns = b->begin_ns - now;
	b->wall_head = 0;
	static const char *const type[] = { PROFILE_NAME, "samples", "count", "cpu",
		"nanoseconds" };
	return add_head(b, type, &b->head);
}

static void resolve_late(struct batch *b);

/* Encode what is there, hand it over, begin anew. */
static void emit(struct batch *b)
{
	struct profile *p = &b->profile;
	uint32_t count = (uint32_t)p->samples.len;
	if (count) {
		/* By the clock that the batch began with, should it have been set since. */
		int64_t end = MAX(clock_monotonic_ns() + b->clock_offset_ns, b->begin_ns + 1);
		p->heads.v[b->head].duration_ns = end - b->begin_ns;
		if (b->wall_head)
			p->heads.v[b->wall_head].duration_ns = end - b->begin_ns;
		for (size_t i = 0; i < p->samples.len; i++)
			p->samples.v[i].time_ns = MIN(p->samples.v[i].time_ns, end);
		jitframes_resolve(&b->jit, p);
		resolve_late(b);
		CLEANUP(buf_deinit) struct buf message;
		buf_init(&message, BATCH_MESSAGE_BYTES_MAX);
		if (otlp_encode(p, &message) == OK) {
			metric_add(&b->metrics.messages, 1);
			metric_add(&b->metrics.message_bytes, message.len);
			b->config.emit(b->config.ctx, &message, count);
		} else {
			metric_add(&b->metrics.lost, count);
		}
	}
	/* Out of memory here: the next samples are lost and counted until there is some. */
	b->head = b->wall_head = 0;
	(void)!begin(b);
}

/* The wall clock was set, or the host slept: what follows belongs to another batch, with a
 * beginning by the new time. A drift stays within a batch. */
static void look_at_clocks(struct batch *b, int64_t sampled_ns)
{
	int64_t now = clock_monotonic_ns();
	int64_t offset = realtime_ns(b) - now;
	int64_t change = offset - b->clock_offset_ns;
	if (change > -CLOCK_STEP_NS && change < CLOCK_STEP_NS) {
		b->looked_ns = now;
		return;
	}
	if (sampled_ns <= b->looked_ns)
		return; /* before that: it belongs to the batch that is there */
	int64_t before = b->clock_offset_ns, until = b->looked_ns;
	metric_add(&b->metrics.clock_steps, 1);
	emit(b);
	b->step_ns = until;
	b->offset_before_ns = before;
}

void batch_look_at_clocks(struct batch *b)
{
	look_at_clocks(b, INT64_MAX);
}

/* Real time of a sample. */
static int64_t time_of(const struct batch *b, uint64_t sampled_ns)
{
	int64_t at = (int64_t)sampled_ns;
	if (b->step_ns && at <= b->step_ns)
		return at + b->offset_before_ns;
	return MAX(at + b->clock_offset_ns, b->begin_ns);
}

/* ---- frames ---- */

static bool file_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct batch *b = ctx;
	return b->files.v[value].file_id == *(const uint32_t *)key;
}

static enum status file_add(struct batch *b, uint32_t file_id, uint32_t *out)
{
	struct profile *p = &b->profile;
	struct file_entry f = { .file_id = file_id };
	f.known = files_get(b->config.files, file_id, &f.info);
	if (f.known && !f.info.build_id[0])
		(void)files_key(b->config.files, file_id, &f.key);
	struct str path = f.known                      ? str_of(f.info.path)
			  : file_id == FRAME_FILE_VDSO ? STR("[vdso]")
						       : STR("[file gone]");
	struct profile_mapping m = { 0 };
	enum status s = profile_add_string(p, path, &m.filename);
	if (s == OK && f.known)
		s = profile_add_string(p, str_of(f.info.build_id), &m.build_id);
	if (s == OK)
		s = profile_add_mapping(p, &m, &f.mapping);
	if (s != OK)
		return s;
	uint32_t at = (uint32_t)b->files.len;
	if (!VEC_PUSH(&b->files, f))
		return E_NOMEM;
	if (!map_insert(&b->file_index, hash_u64(file_id), at)) {
		b->files.len--;
		return E_NOMEM;
	}
	if (f.known && f.info.build_id[0] && b->config.met)
		b->config.met(b->config.ctx, file_id, &f.info, b->pid);
	*out = at;
	return OK;
}

static enum status file_find(struct batch *b, uint32_t file_id, const struct file_entry **out)
{
	uint32_t at = map_find(&b->file_index, hash_u64(file_id), file_equal, b, &file_id);
	enum status s = at == MAP_NONE ? file_add(b, file_id, &at) : OK;
	if (s == OK)
		*out = &b->files.v[at];
	return s;
}

/* Mapping and address of an offset in a file. */
static enum status place_in_file(
	struct batch *b, uint32_t file_id, uint64_t offset, struct profile_location *loc)
{
	const struct file_entry *f;
	enum status s = file_find(b, file_id, &f);
	if (s != OK)
		return s;
	loc->mapping = f->mapping;
	if (!f->known || !file_info_vaddr(&f->info, offset, &loc->address))
		loc->address = offset;
	if (f->known && !f->info.build_id[0]) /* no ELF file: code that a runtime has made */
		loc->kind = FRAME_JIT;
	return OK;
}

/* The file is named by its key until it is known, so that two of them are not one. */
static enum status late_location(
	struct batch *b, uint64_t offset, const struct file_key *key, uint32_t *out)
{
	char name[64];
	snprintf(name, sizeof(name), "[file %u:%" PRIu64 ", not read yet]", key->dev,
		(uint64_t)key->inode);
	struct profile_mapping m = { 0 };
	struct profile_location loc = { .address = offset, .kind = FRAME_NATIVE };
	enum status s = profile_add_string(&b->profile, str_of(name), &m.filename);
	if (s == OK)
		s = profile_add_mapping(&b->profile, &m, &loc.mapping);
	size_t before = b->profile.locations.len;
	if (s == OK)
		s = profile_add_location(&b->profile, &loc, NULL, 0, out);
	if (s == OK && b->profile.locations.len > before &&
		!VEC_PUSH(&b->late, (struct late_location){ *out, *key }))
		s = E_NOMEM;
	return s;
}

/* Interning ends here: the locations are changed in place, right before they are encoded. */
static void resolve_late(struct batch *b)
{
	b->pid = 0; /* anybody's */
	for (size_t i = 0; i < b->late.len; i++) {
		const struct late_location *l = &b->late.v[i];
		uint32_t file_id = files_find(b->config.files, &l->key);
		struct profile_location loc = b->profile.locations.v[l->location];
		if (file_id && place_in_file(b, file_id, loc.address, &loc) == OK)
			b->profile.locations.v[l->location] = loc;
	}
}

static enum frame_kind kind_of_runtime(unsigned runtime)
{
	static const enum frame_kind kinds[RUNTIME_KIND_COUNT] = {
		[RUNTIME_CPYTHON] = FRAME_CPYTHON,
		[RUNTIME_HOTSPOT] = FRAME_JVM,
		[RUNTIME_PHP] = FRAME_PHP,
		[RUNTIME_PERL] = FRAME_PERL,
		[RUNTIME_V8] = FRAME_V8JS,
		[RUNTIME_RUBY] = FRAME_RUBY,
		[RUNTIME_LUA] = FRAME_LUA,
		[RUNTIME_LUAJIT] = FRAME_LUAJIT,
	};
	return runtime < RUNTIME_KIND_COUNT ? kinds[runtime] : FRAME_UNKNOWN;
}

/* Frames of a runtime are missing here. */
static enum status gap_location(struct batch *b, uint64_t frame, uint32_t *out)
{
	static const char *const texts[RUNTIME_GAP_COUNT] = {
#define GAP_TEXT(name, number, text) [number] = text,
		RUNTIME_GAP_LIST(GAP_TEXT)
#undef GAP_TEXT
	};
	unsigned why = frame & FRAME_POSITION_NONE;
	const char *text = why < RUNTIME_GAP_COUNT ? texts[why] : NULL;
	char name[160];
	snprintf(name, sizeof(name), "[%s: %s]", runtime_name(frame_code(frame) >> 16 & 0xff),
		text ? text : "?");
	return profile_add_marker(&b->profile, str_of(name), out);
}

static enum status runtime_line(
	struct batch *b, const struct code_frame *frame, struct profile_line *out)
{
	const struct code *c = frame->function;
	struct profile_function f = { .start_line = frame->lines.first };
	*out = (struct profile_line){ .line = frame->lines.line };
	struct str name = STR("[a function whose name was not told]");
	char placed[RUNTIMES_NAME_PLACED_BYTES];
	if (c)
		name = c->name.len ? runtimes_name_placed(
					     c->kind, c->name, c->file, f.start_line, placed)
				   : STR("[no name]");
	enum status s = profile_add_string(&b->profile, name, &f.name);
	f.system_name = f.name;
	if (s == OK && c)
		s = profile_add_string(&b->profile, c->file, &f.filename);
	return s == OK ? profile_add_function(&b->profile, &f, &out->function) : s;
}

/* A frame of a language runtime: its function, file and line, and those of what was put into it. */
static enum status runtime_location(struct batch *b, uint64_t frame, uint32_t *out)
{
	uint64_t number = frame_code(frame);
	if (!(number & FRAME_CODE_REAL))
		return gap_location(b, frame, out);
	const struct code *c =
		b->config.codes ? codes_find(b->config.codes, (uint32_t)b->pid, number) : NULL;
	if (!c)
		return profile_add_marker(
			&b->profile, STR("[a function whose name was not told]"), out);
	struct profile_location loc = { .kind = (uint8_t)kind_of_runtime(c->kind) };
	struct profile_line lines[CODE_FRAMES_MAX];
	struct code_frame frames[CODE_FRAMES_MAX];
	size_t n = codes_frames(b->config.codes, c, frame & FRAME_POSITION_NONE, frames);
	enum status s = OK;
	for (size_t i = 0; i < n && s == OK; i++)
		s = runtime_line(b, &frames[i], &lines[i]);
	return s == OK ? profile_add_location(&b->profile, &loc, lines, (uint32_t)n, out) : s;
}

/* Code that the process has made; `loc` is what is known of it without its runtime. */
static enum status jit_location(struct batch *b, const struct event_header *h, uint32_t file_id,
	uint64_t at, const struct profile_location *loc, uint32_t *out)
{
	struct jitnames_place place = {
		.pid = (int)h->pid, .start_ns = h->process_start_ns, .at = at, .time_ns = h->time_ns
	};
	const struct file_entry *f = NULL;
	if (file_id != FRAME_FILE_ADDRESS && file_find(b, file_id, &f) == OK)
		place.key = f->key;
	if (file_id != FRAME_FILE_ADDRESS && !place.key.inode)
		return profile_add_location(&b->profile, loc, NULL, 0, out);
	return jitframes_location(&b->jit, &b->profile, &place, loc, out);
}

/* Text of a file that lies in anonymous memory. A file that nobody has met yet is told of: the next
 * sample has its name. */
static bool is_remapped(
	struct batch *b, const struct event_header *h, uint32_t *file_id, uint64_t *offset)
{
	const struct remapped_region *g = remapped_find(
		&b->remapped, (int)h->pid, h->process_start_ns, *offset, clock_monotonic_ns());
	if (!g)
		return false;
	uint32_t id = files_find(b->config.files, &g->key);
	if (!id) {
		const struct file_notice n = { g->key, g->start, g->end, g->offset };
		files_notice(b->config.files, &n, (int)h->pid);
		return false;
	}
	*file_id = id;
	*offset = *offset - g->start + g->offset;
	return true;
}

static enum status user_location(
	struct batch *b, const struct event_header *h, uint64_t frame, uint32_t *out)
{
	if (frame_is_runtime(frame))
		return runtime_location(b, frame, out);
	uint32_t file_id = (uint32_t)(frame >> FRAME_FILE_SHIFT);
	uint64_t offset = frame & FRAME_OFFSET_MASK;
	struct profile_location loc = { .address = offset, .kind = FRAME_NATIVE };
	enum status s = OK;
	if (file_id == FRAME_FILE_ADDRESS && is_remapped(b, h, &file_id, &offset))
		s = place_in_file(b, file_id, offset, &loc);
	else if (file_id == FRAME_FILE_ADDRESS)
		loc.kind = FRAME_JIT;
	else
		s = place_in_file(b, file_id, offset, &loc);
	if (s == OK && loc.kind == FRAME_JIT && b->jit.names)
		return jit_location(b, h, file_id, offset, &loc, out);
	return s == OK ? profile_add_location(&b->profile, &loc, NULL, 0, out) : s;
}

/* A native frame in the file of a language runtime; Go's own functions are native ones. */
static bool is_interpreter(struct batch *b, uint64_t frame)
{
	uint32_t file_id = (uint32_t)(frame >> FRAME_FILE_SHIFT);
	const struct file_entry *f;
	return file_id >= FRAME_FILE_FIRST && file_id <= FRAME_FILE_MAX &&
	       file_find(b, file_id, &f) == OK && f->known && f->info.runtime &&
	       f->info.runtime != RUNTIME_GO;
}

/* The frame at which a stack ended, in a file nobody knew. */
static bool is_late(const struct event_sample *s, uint64_t frame)
{
	const struct file_notice *n = &s->notice;
	return s->h.stack_end == STACK_END_NO_FILE && n->key.inode &&
	       frame >> FRAME_FILE_SHIFT == FRAME_FILE_ADDRESS && frame >= n->vma_start &&
	       frame < n->vma_end;
}

/* A location with one function and nothing else known of it. */
static enum status named_location(
	struct batch *b, const struct profile_location *loc, struct str name, uint32_t *out)
{
	struct profile_function f = { 0 };
	enum status s = profile_add_string(&b->profile, name, &f.name);
	f.system_name = f.name;
	struct profile_line line = { 0 };
	if (s == OK)
		s = profile_add_function(&b->profile, &f, &line.function);
	return s == OK ? profile_add_location(&b->profile, loc, &line, 1, out) : s;
}

/* `looked_up` lies in the function: the address itself for the leaf, one less for callers. */
static enum status kernel_location(struct batch *b, uint64_t looked_up, uint32_t *out)
{
	struct kallsyms_symbol symbol;
	bool found = b->config.kallsyms && kallsyms_find(b->config.kallsyms, looked_up, &symbol);
	char text[64];
	struct profile_location loc = { .kind = FRAME_KERNEL };
	struct str file = STR("[kernel.kallsyms]"), name;
	if (found) {
		/* By function, so that a kernel at another address gives equal stacks. */
		loc.address = looked_up - symbol.start;
		name = symbol.name;
		if (symbol.module.len) {
			snprintf(text, sizeof(text), "[%.*s]",
				STR_ARG(str_sub(symbol.module, 0, 60)));
			file = str_of(text);
		}
	} else {
		metric_add(&b->metrics.unnamed_kernel, 1);
		b->missed_kernel = true;
		loc.address = looked_up;
		snprintf(text, sizeof(text), "[kernel]+0x%" PRIx64, looked_up);
		name = str_of(text);
	}
	struct profile_mapping m = { 0 };
	enum status s = profile_add_string(&b->profile, file, &m.filename);
	if (s == OK)
		s = profile_add_mapping(&b->profile, &m, &loc.mapping);
	return s == OK ? named_location(b, &loc, name, out) : s;
}

static enum status marker_location(struct batch *b, unsigned end, uint32_t *out)
{
	static const char *const texts[] = {
#define MARKER_TEXT(name, number, text) [number] = "[unwind: " text "]",
		STACK_END_LIST(MARKER_TEXT)
#undef MARKER_TEXT
	};
	assert(end < ARRAY_COUNT(texts));
	struct str text = end == STACK_END_DEPTH ? STR("[truncated]") : str_of(texts[end]);
	return profile_add_marker(&b->profile, text, out);
}

/* The stack of a thread that leaves its CPU begins in our program and the tracepoint: it ends for
 * people where the scheduler was called. */
static uint32_t first_kernel_frame(const struct batch *b, const struct event_sample *s)
{
	struct kallsyms_symbol symbol;
	uint32_t count = MIN((uint32_t)s->kernel_count, (uint32_t)OFF_CPU_OWN_FRAMES_MAX);
	if (event_state(&s->h) == THREAD_ON_CPU || !b->config.kallsyms)
		return 0;
	for (uint32_t i = 1; i < count; i++) {
		if (kallsyms_find(b->config.kallsyms, s->frames[i] - 1, &symbol) &&
			str_eq(symbol.name, STR("__schedule")))
			return i;
	}
	return 0;
}

static enum status add_stack(struct batch *b, const struct event_sample *s, uint32_t *out)
{
	uint32_t locations[FRAMES_MAX];
	uint32_t n = 0;
	enum status st = OK;
	uint32_t kernel = MIN((uint32_t)s->kernel_count, (uint32_t)SAMPLE_KERNEL_FRAMES_MAX);
	uint32_t user = MIN((uint32_t)s->user_count, (uint32_t)SAMPLE_USER_FRAMES_MAX);
	for (uint32_t i = first_kernel_frame(b, s); i < kernel && st == OK; i++)
		st = kernel_location(b, s->frames[i] - (i > 0), &locations[n++]);
	unsigned end = MIN((unsigned)s->h.stack_end, (unsigned)STACK_END_COUNT - 1);
	/* The root is shown always: a stack without it looks cut. */
	uint32_t root = stack_end_is_whole(end) ? user - 1 : user;
	bool leads_to_runtime = false;
	for (uint32_t i = 0; i < user && st == OK; i++) {
		uint64_t frame = s->frames[s->kernel_count + i];
		if (frame_is_runtime(frame))
			leads_to_runtime = !b->config.keep_interpreters;
		else if (leads_to_runtime && i != root && is_interpreter(b, frame))
			continue;
		if (is_late(s, frame))
			st = late_location(b, frame - s->notice.vma_start + s->notice.offset,
				&s->notice.key, &locations[n++]);
		else
			st = user_location(b, &s->h, frame, &locations[n++]);
	}
	if (st == OK && !stack_end_is_whole(end))
		st = marker_location(b, end, &locations[n++]);
	return st == OK ? profile_add_stack(&b->profile, locations, n, out) : st;
}

/* ---- samples ---- */

/* A sample of the wall clock: the same stack, as time in a state. */
static enum status add_wall(struct batch *b, const struct event_sample *s,
	const struct profile_sample *like, int64_t value_ns)
{
	static const char *const states[] = {
#define STATE_TEXT(name, number, text) [number] = text,
		THREAD_STATE_LIST(STATE_TEXT)
#undef STATE_TEXT
	};
	struct profile_sample sample = *like;
	sample.value = value_ns;
	enum status st = wall_head(b, &sample.head);
	if (st == OK)
		st = sample_labels_own(&b->labels, &b->profile, b->process, s,
			str_of(states[event_state(&s->h)]), &sample.own);
	return st == OK ? profile_add_sample(&b->profile, &sample) : st;
}

/* All that the samples of both types have in common. */
static enum status add_common(struct batch *b, const struct event_sample *s,
	const struct process *x, struct profile_sample *out)
{
	out->time_ns = time_of(b, s->h.time_ns);
	enum status st = sample_labels_of_process(&b->profile, x, &out->resource);
	return st == OK ? add_stack(b, s, &out->stack) : st;
}

static enum status add_on_cpu(
	struct batch *b, const struct event_sample *s, const struct profile_sample *common)
{
	struct profile_sample sample = *common;
	sample.value = 1;
	sample.head = b->head;
	enum status st =
		sample_labels_own(&b->labels, &b->profile, b->process, s, STR(""), &sample.own);
	if (st == OK)
		st = profile_add_sample(&b->profile, &sample);
	if (st == OK && b->config.wall_clock)
		st = add_wall(b, s, common, NS_PER_SEC / b->config.frequency_hz);
	return st;
}

/* For the status page: whose stacks do not reach their root, and why. */
static void note_cut(struct batch *b, const struct event_sample *s, const struct process *x)
{
	static const char *const reasons[] = {
#define REASON(name, number, text) [number] = text,
		STACK_END_LIST(REASON)
#undef REASON
	};
	unsigned end = MIN((unsigned)s->h.stack_end, (unsigned)STACK_END_COUNT - 1);
	if (stack_end_is_whole(end) || !b->config.problems)
		return;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", STR_ARG(x->comm));
	problems_add(b->config.problems, PROBLEM_STACK, name[0] ? name : "?", reasons[end]);
}

static enum status add_sample(struct batch *b, const struct event_sample *s, int64_t away_ns)
{
	if (!b->head) {
		/* The last begin() found no memory. */
		enum status again = begin(b);
		if (again != OK)
			return again;
	}
	b->pid = (int)s->h.pid;
	const struct process *x = processes_find(b->config.processes, &s->h);
	b->process = x;
	if (!x)
		return E_NOMEM;
	if (x->dropped) {
		metric_add(&b->metrics.dropped, 1);
		return OK;
	}
	bool is_off_cpu = event_state(&s->h) != THREAD_ON_CPU;
	struct profile_sample common = { 0 };
	enum status st = add_common(b, s, x, &common);
	if (st == OK)
		st = is_off_cpu ? add_wall(b, s, &common, away_ns) : add_on_cpu(b, s, &common);
	if (st != OK)
		return st;
	metric_add(&b->metrics.samples, 1);
	metric_add(&b->metrics.off_cpu, is_off_cpu);
	note_cut(b, s, x);
	metric_add(&b->metrics.stack_end[MIN(s->h.stack_end, STACK_END_COUNT - 1)], 1);
	return OK;
}

/* About what the message will take: a sample with its time and label indexes, a frame of a stack, a
 * location, and the texts. */
static size_t bytes_so_far(const struct profile *p)
{
	return p->samples.len * 32 + p->stack_locations.len * 3 + p->locations.len * 16 +
	       p->strings.arena.used;
}

static void add(struct batch *b, const struct event_sample *s, int64_t away_ns)
{
	if (add_sample(b, s, away_ns) != OK)
		metric_add(&b->metrics.lost, 1);
	if (b->profile.samples.len >= BATCH_SAMPLES_MAX ||
		bytes_so_far(&b->profile) >= BATCH_BYTES_SOFT)
		emit(b);
}

void batch_add(struct batch *b, const struct event_sample *s)
{
	look_at_clocks(b, (int64_t)s->h.time_ns);
	assert(event_state(&s->h) == THREAD_ON_CPU);
	add(b, s, 0);
}

void batch_add_off_cpu(struct batch *b, const struct event_sample *s, int64_t away_ns)
{
	assert(event_state(&s->h) != THREAD_ON_CPU);
	add(b, s, away_ns);
}

void batch_set_frequency(struct batch *b, uint32_t frequency_hz)
{
	assert(frequency_hz > 0 && b->profile.samples.len == 0);
	b->config.frequency_hz = frequency_hz;
	b->head = 0;
	(void)!begin(b);
}

bool batch_finish(struct batch *b)
{
	emit(b);
	bool missed = b->missed_kernel;
	b->missed_kernel = false;
	return missed;
}

/* ---- life ---- */

enum status batch_new(const struct batch_config *c, struct batch **out, struct err *e)
{
	assert(c->frequency_hz > 0 && c->emit);
	struct batch *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, E_NOMEM, "batch");
	b->config = *c;
	b->jit.names = c->jitnames;
	b->labels.no_thread_id = c->no_thread_id;
	b->labels.no_thread_name = c->no_thread_name;
	b->labels.no_cpu = c->no_cpu;
	b->labels.codes = c->codes;
	b->labels.left_out = &b->metrics.labels_left_out;
	enum status s = profile_init(&b->profile, PROFILE_BYTES_MAX);
	if (s == OK)
		s = begin(b);
	if (s != OK) {
		batch_free(b);
		return err_set(e, s, "batch");
	}
	*out = b;
	return OK;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	profile_deinit(&b->profile);
	VEC_FREE(&b->files);
	VEC_FREE(&b->late);
	jitframes_deinit(&b->jit);
	map_deinit(&b->file_index);
	free(b);
}

const struct batch_metrics *batch_metrics(const struct batch *b)
{
	return &b->metrics;
}

void batch_write_metrics(const struct batch *b, struct buf *out)
{
	static const struct metric_def defs[] = { BATCH_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &b->metrics.samples, ARRAY_COUNT(defs));
	static const struct metric_def ends[] = {
#define END_DEF(name, number, text)                                                      \
	{ "firn_agent_stacks_total{end=\"" #name "\"}", "User stacks, by why they end.", \
		METRIC_COUNTER },
		STACK_END_LIST(END_DEF)
#undef END_DEF
	};
	metrics_write(out, ends, b->metrics.stack_end, ARRAY_COUNT(ends));
}
