/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapping and segments of a file id repeat from sample to sample, and are looked up once a
 * batch. A frame in a file that was not known when the sample was taken, or in code that a process
 * has made, gets its place or its name when the batch ends.
 */
#include "agent/send/frames.h"

#include "base/clock.h"
#include "runtimes/runtimes.h"

#include <inttypes.h>
#include <stdio.h>

#define OFF_CPU_OWN_FRAMES_MAX 12
#define FRAMES_MAX (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX + 1)
static_assert(FRAMES_MAX <= PROFILE_STACK_MAX, "a whole sample fits a stack of the profile");

void batch_frames_clear(struct batch_frames *b)
{
	VEC_CLEAR(&b->entries);
	VEC_CLEAR(&b->late);
	jitframes_clear(&b->jit);
	map_clear(&b->file_index);
}

void batch_frames_deinit(struct batch_frames *b)
{
	VEC_FREE(&b->entries);
	VEC_FREE(&b->late);
	jitframes_deinit(&b->jit);
	map_deinit(&b->file_index);
}

static bool file_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct batch_frames *b = ctx;
	return b->entries.v[value].file_id == *(const uint32_t *)key;
}

static enum status file_add(struct batch_frames *b, uint32_t file_id, uint32_t *out)
{
	struct profile *p = b->profile;
	struct batch_file f = { .file_id = file_id };
	f.known = files_get(b->files, file_id, &f.info);
	if (f.known && !f.info.build_id[0])
		(void)files_key(b->files, file_id, &f.key);
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
	uint32_t at = (uint32_t)b->entries.len;
	if (!VEC_PUSH(&b->entries, f))
		return E_NOMEM;
	if (!map_insert(&b->file_index, hash_u64(file_id), at)) {
		b->entries.len--;
		return E_NOMEM;
	}
	if (f.known && f.info.build_id[0] && b->met)
		b->met(b->ctx, file_id, &f.info, b->pid);
	*out = at;
	return OK;
}

static enum status file_find(
	struct batch_frames *b, uint32_t file_id, const struct batch_file **out)
{
	uint32_t at = map_find(&b->file_index, hash_u64(file_id), file_equal, b, &file_id);
	enum status s = at == MAP_NONE ? file_add(b, file_id, &at) : OK;
	if (s == OK)
		*out = &b->entries.v[at];
	return s;
}

/* Mapping and address of an offset in a file. */
static enum status place_in_file(
	struct batch_frames *b, uint32_t file_id, uint64_t offset, struct profile_location *loc)
{
	const struct batch_file *f;
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
	struct batch_frames *b, uint64_t offset, const struct file_key *key, uint32_t *out)
{
	char name[64];
	snprintf(name, sizeof(name), "[file %u:%" PRIu64 ", not read yet]", key->dev,
		(uint64_t)key->inode);
	struct profile_mapping m = { 0 };
	struct profile_location loc = { .address = offset, .kind = FRAME_NATIVE };
	enum status s = profile_add_string(b->profile, str_of(name), &m.filename);
	if (s == OK)
		s = profile_add_mapping(b->profile, &m, &loc.mapping);
	size_t before = b->profile->locations.len;
	if (s == OK)
		s = profile_add_location(b->profile, &loc, NULL, 0, out);
	if (s == OK && b->profile->locations.len > before &&
		!VEC_PUSH(&b->late, (struct batch_late){ *out, *key }))
		s = E_NOMEM;
	return s;
}

/* The locations are changed in place. */
void batch_frames_resolve(struct batch_frames *b)
{
	jitframes_resolve(&b->jit, b->profile);
	b->pid = 0; /* of any process */
	for (size_t i = 0; i < b->late.len; i++) {
		const struct batch_late *l = &b->late.v[i];
		uint32_t file_id = files_find(b->files, &l->key);
		struct profile_location loc = b->profile->locations.v[l->location];
		if (file_id && place_in_file(b, file_id, loc.address, &loc) == OK)
			b->profile->locations.v[l->location] = loc;
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
		[RUNTIME_BEAM] = FRAME_BEAM,
		[RUNTIME_DOTNET] = FRAME_DOTNET,
	};
	return runtime < RUNTIME_KIND_COUNT ? kinds[runtime] : FRAME_UNKNOWN;
}

/* Frames of a runtime are missing here. */
static enum status gap_location(struct batch_frames *b, uint64_t frame, uint32_t *out)
{
	static const char *const texts[RUNTIME_GAP_COUNT] = {
#define GAP_TEXT(name, number, text) [number] = text,
		RUNTIME_GAP_LIST(GAP_TEXT)
#undef GAP_TEXT
	};
	unsigned why = frame & FRAME_POSITION_NONE;
	b->runtime = b->runtime ? b->runtime : (uint32_t)frame_code(frame) & 0xffffff;
	b->misses_frames = true;
	const char *text = why < RUNTIME_GAP_COUNT ? texts[why] : NULL;
	char name[160];
	snprintf(name, sizeof(name), "[%s: %s]", runtime_name(frame_code(frame) >> 16 & 0xff),
		text ? text : "?");
	return profile_add_marker(b->profile, str_of(name), out);
}

static enum status runtime_line(
	struct batch_frames *b, const struct code_frame *frame, struct profile_line *out)
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
	enum status s = profile_add_string(b->profile, name, &f.name);
	f.system_name = f.name;
	if (s == OK && c)
		s = profile_add_string(b->profile, c->file, &f.filename);
	return s == OK ? profile_add_function(b->profile, &f, &out->function) : s;
}

/* A frame of a language runtime: its function, file and line, and those of what was put into it. */
static enum status runtime_location(struct batch_frames *b, uint64_t frame, uint32_t *out)
{
	uint64_t number = frame_code(frame);
	if (!(number & FRAME_CODE_REAL))
		return gap_location(b, frame, out);
	const struct code *c = b->codes ? codes_find(b->codes, (uint32_t)b->pid, number) : NULL;
	if (!c) {
		b->misses_frames = true;
		return profile_add_marker(
			b->profile, STR("[a function whose name was not told]"), out);
	}
	b->runtime = b->runtime ? b->runtime : (uint32_t)c->kind << 16 | c->version;
	struct profile_location loc = { .kind = (uint8_t)kind_of_runtime(c->kind) };
	struct profile_line lines[CODE_FRAMES_MAX];
	struct code_frame frames[CODE_FRAMES_MAX];
	size_t n = codes_frames(b->codes, c, frame & FRAME_POSITION_NONE, frames);
	enum status s = OK;
	for (size_t i = 0; i < n && s == OK; i++)
		s = runtime_line(b, &frames[i], &lines[i]);
	return s == OK ? profile_add_location(b->profile, &loc, lines, (uint32_t)n, out) : s;
}

/* Code that the process has made; `loc` is what is known of it without its runtime. */
static enum status jit_location(struct batch_frames *b, const struct event_header *h,
	uint32_t file_id, uint64_t at, const struct profile_location *loc, uint32_t *out)
{
	struct jitnames_place place = {
		.pid = (int)h->pid, .start_ns = h->process_start_ns, .at = at, .time_ns = h->time_ns
	};
	const struct batch_file *f = NULL;
	if (file_id != FRAME_FILE_ADDRESS && file_find(b, file_id, &f) == OK)
		place.key = f->key;
	if (file_id != FRAME_FILE_ADDRESS && !place.key.inode)
		return profile_add_location(b->profile, loc, NULL, 0, out);
	return jitframes_location(&b->jit, b->profile, &place, loc, out);
}

/* Text of a file that lies in anonymous memory. A file that was not met yet is told of: the next
 * sample has its name. */
static bool is_remapped(
	struct batch_frames *b, const struct event_header *h, uint32_t *file_id, uint64_t *offset)
{
	const struct remapped_region *g = remapped_find(
		&b->remapped, (int)h->pid, h->process_start_ns, *offset, clock_monotonic_ns());
	if (!g)
		return false;
	uint32_t id = files_find(b->files, &g->key);
	if (!id) {
		const struct file_notice n = { g->key, g->start, g->end, g->offset };
		files_notice(b->files, &n, (int)h->pid);
		return false;
	}
	*file_id = id;
	*offset = *offset - g->start + g->offset;
	return true;
}

static enum status user_location(
	struct batch_frames *b, const struct event_header *h, uint64_t frame, uint32_t *out)
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
	return s == OK ? profile_add_location(b->profile, &loc, NULL, 0, out) : s;
}

/* A native frame in the file of a language runtime; Go's own functions are native ones. */
static bool is_interpreter(struct batch_frames *b, uint64_t frame)
{
	uint32_t file_id = (uint32_t)(frame >> FRAME_FILE_SHIFT);
	const struct batch_file *f;
	return file_id >= FRAME_FILE_FIRST && file_id <= FRAME_FILE_MAX &&
	       file_find(b, file_id, &f) == OK && f->known && f->info.runtime &&
	       f->info.runtime != RUNTIME_GO;
}

/* The frame at which a stack ended, in an unknown file. */
static bool is_late(const struct event_sample *s, uint64_t frame)
{
	const struct file_notice *n = &s->notice;
	return s->h.stack_end == STACK_END_NO_FILE && n->key.inode &&
	       frame >> FRAME_FILE_SHIFT == FRAME_FILE_ADDRESS && frame >= n->vma_start &&
	       frame < n->vma_end;
}

/* A location with one function and nothing else known of it. */
static enum status named_location(
	struct batch_frames *b, const struct profile_location *loc, struct str name, uint32_t *out)
{
	struct profile_function f = { 0 };
	enum status s = profile_add_string(b->profile, name, &f.name);
	f.system_name = f.name;
	struct profile_line line = { 0 };
	if (s == OK)
		s = profile_add_function(b->profile, &f, &line.function);
	return s == OK ? profile_add_location(b->profile, loc, &line, 1, out) : s;
}

/* `looked_up` lies in the function: the address itself for the leaf, one less for callers. */
static enum status kernel_location(struct batch_frames *b, uint64_t looked_up, uint32_t *out)
{
	struct kallsyms_symbol symbol;
	bool found = b->kallsyms && kallsyms_find(b->kallsyms, looked_up, &symbol);
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
		metric_add(b->unnamed_kernel, 1);
		b->missed_kernel = true;
		loc.address = looked_up;
		snprintf(text, sizeof(text), "[kernel]+0x%" PRIx64, looked_up);
		name = str_of(text);
	}
	struct profile_mapping m = { 0 };
	enum status s = profile_add_string(b->profile, file, &m.filename);
	if (s == OK)
		s = profile_add_mapping(b->profile, &m, &loc.mapping);
	return s == OK ? named_location(b, &loc, name, out) : s;
}

static enum status marker_location(struct batch_frames *b, unsigned end, uint32_t *out)
{
	static const char *const texts[] = {
#define MARKER_TEXT(name, number, text) [number] = "[unwind: " text "]",
		STACK_END_LIST(MARKER_TEXT)
#undef MARKER_TEXT
	};
	assert(end < ARRAY_COUNT(texts));
	struct str text = end == STACK_END_DEPTH ? STR("[truncated]") : str_of(texts[end]);
	return profile_add_marker(b->profile, text, out);
}

/* The stack of a thread that leaves its CPU begins in our program and the tracepoint: it ends for
 * people where the scheduler was called. */
static uint32_t first_kernel_frame(const struct batch_frames *b, const struct event_sample *s)
{
	struct kallsyms_symbol symbol;
	uint32_t count = MIN((uint32_t)s->kernel_count, (uint32_t)OFF_CPU_OWN_FRAMES_MAX);
	if (event_state(&s->h) == THREAD_ON_CPU || !b->kallsyms)
		return 0;
	for (uint32_t i = 1; i < count; i++) {
		if (kallsyms_find(b->kallsyms, s->frames[i] - 1, &symbol) &&
			str_eq(symbol.name, STR("__schedule")))
			return i;
	}
	return 0;
}

enum status batch_frames_stack(struct batch_frames *b, const struct event_sample *s, uint32_t *out)
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
	b->runtime = 0;
	b->misses_frames = false;
	for (uint32_t i = 0; i < user && st == OK; i++) {
		uint64_t frame = s->frames[s->kernel_count + i];
		if (frame_is_runtime(frame))
			leads_to_runtime = !b->keep_interpreters;
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
	if (st == OK && b->runtime)
		runtimes_met_add(
			&b->runtimes, b->runtime, stack_end_is_whole(end) && !b->misses_frames);
	return st == OK ? profile_add_stack(b->profile, locations, n, out) : st;
}
