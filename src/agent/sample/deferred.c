/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of a sample comes right before it from the same CPU. So one stack for each CPU is kept
 * until its sample is there; then both become one item of a short list, oldest first. In the list a
 * stack is compressed: with hundreds of programs that start at once, stacks would be most of the
 * agent's memory.
 *
 * When the list is processed, a walk is tried again if the file in which it ended last is not
 * unknown any more. It begins where it ended in the kernel. It mirrors agent/bpf/walk.h, with
 * unwind_step() for the steps, the copied words for memory, and the list of mappings for the tree.
 * Frames of a language runtime are not walked again: where the kernel has left a gap for them, it
 * stays behind the last frame.
 */
#include "agent/sample/deferred.h"

#include "base/clock.h"
#include "base/vec.h"
#include "codec/codec.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 8192
/* Samples that wait for their files may take one part in this many of the memory limit. */
#define DEFERRED_LIMIT_PARTS 4

struct item {
	struct event_sample *sample;
	void *packed; /* its stack */
	uint32_t packed_len, stack_len;
	bool is_tried;
	struct file_key unknown; /* is_tried: the file that it waits for */
	int64_t deadline_ns;
};

struct deferred {
	struct deferred_config config;
	VEC(struct event_stack *) pending; /* by CPU; NULL: none */
	VEC(struct item) items;            /* in order of arrival */
	uint32_t items_max;
	uint64_t bytes; /* bytes of the items' stacks and samples */
	uint64_t bytes_max;
	struct buf packed;         /* the stack that is compressed last */
	struct event_stack *stack; /* the stack that is being walked */
	struct event_sample *out;  /* room for the longest one */
	struct deferred_metrics metrics;
};

static const struct metric_def metric_defs[] = { DEFERRED_METRICS(METRIC_DEF) };

static size_t stack_len(const struct event_stack *s)
{
	return offsetof(struct event_stack, stack) + s->stack_bytes;
}

static size_t sample_len(const struct event_sample *s)
{
	return sizeof(*s) + ((size_t)s->kernel_count + s->user_count) * sizeof(s->frames[0]);
}

static void *copy_of(const void *from, size_t len)
{
	void *to = malloc(len);
	if (to)
		memcpy(to, from, len);
	return to;
}

/* ---- in ---- */

void deferred_stack(struct deferred *d, const struct event_stack *stack)
{
	uint32_t cpu = stack->h.cpu;
	if (cpu >= CPUS_MAX || stack->stack_bytes > STACK_BYTES_MAX ||
		stack->mapping_count > STACK_MAPPINGS_MAX)
		return;
	while (d->pending.len <= cpu) {
		if (!VEC_PUSH(&d->pending, NULL))
			return;
	}
	free(d->pending.v[cpu]);
	d->pending.v[cpu] = copy_of(stack, stack_len(stack));
}

/* Takes the stack that came for this sample; the caller owns it. NULL: it was lost. */
static struct event_stack *take_stack(struct deferred *d, const struct event_sample *s)
{
	if (s->h.cpu >= d->pending.len)
		return NULL;
	struct event_stack *stack = d->pending.v[s->h.cpu];
	d->pending.v[s->h.cpu] = NULL;
	if (stack && (stack->h.time_ns != s->h.time_ns || stack->h.tid != s->h.tid)) {
		free(stack);
		return NULL;
	}
	return stack;
}

static uint64_t item_bytes(const struct item *item)
{
	return item->packed_len + sample_len(item->sample);
}

static void item_free(struct item *item)
{
	free(item->packed);
	free(item->sample);
}

/* Makes an item of a stack and its sample. E_LIMIT, E_NOMEM: nothing of it is left. */
static enum status item_make(struct deferred *d, const struct event_stack *stack,
	const struct event_sample *s, struct item *out)
{
	size_t len = stack_len(stack);
	buf_clear(&d->packed);
	enum status status = codec_lz4_block_compress(stack, len, &d->packed);
	if (status != OK)
		return status;
	if (d->packed.len + sample_len(s) > d->bytes_max - d->bytes)
		return E_LIMIT;
	struct item item = { .packed = copy_of(d->packed.data, d->packed.len),
		.packed_len = (uint32_t)d->packed.len,
		.stack_len = (uint32_t)len,
		.sample = copy_of(s, sample_len(s)) };
	if (!item.packed || !item.sample) {
		item_free(&item);
		return E_NOMEM;
	}
	*out = item;
	return OK;
}

bool deferred_add(struct deferred *d, const struct event_sample *s, int64_t now_ns)
{
	if (!(s->h.flags & EVENT_FLAG_STACK))
		return false;
	struct event_stack *stack = take_stack(d, s);
	struct item item = { 0 };
	bool is_made = stack && s->user_count > 0 && d->items.len < d->items_max &&
		       item_make(d, stack, s, &item) == OK;
	free(stack);
	item.deadline_ns = now_ns + d->config.wait_ns;
	if (!is_made || !VEC_PUSH(&d->items, item)) {
		item_free(&item);
		metric_add(&d->metrics.refused, 1);
		return false;
	}
	d->bytes += item_bytes(&item);
	metric_add(&d->metrics.taken, 1);
	metric_set(&d->metrics.waiting, d->items.len);
	metric_set(&d->metrics.bytes, d->bytes);
	return true;
}

/* ---- one walk ---- */

struct rewalk {
	const struct deferred *d;
	const struct event_stack *stack;
	struct unwind_frame frame;
	struct event_sample *out;
	const struct stack_mapping *unknown; /* the file that it ended in */
	bool left_copy;                      /* the word read last lies beyond what was copied */
};

static bool read_copy(void *ctx, uint64_t address, uint64_t *out)
{
	struct rewalk *w = ctx;
	const struct event_stack *s = w->stack;
	w->left_copy = false;
	for (uint32_t i = 0; i < STACK_PARTS; i++) {
		const struct stack_part *p = &s->parts[i];
		uint64_t at = address - p->at;
		uint64_t last = at + sizeof(*out) - 1;
		uint64_t place = i * STACK_PART_BYTES + at;
		if (at > STACK_PART_BYTES - sizeof(*out))
			continue;
		if (p->missing >> at / STACK_CHUNK_BYTES & 1 ||
			p->missing >> last / STACK_CHUNK_BYTES & 1 ||
			place + sizeof(*out) > s->stack_bytes)
			return false;
		memcpy(out, s->stack + place, sizeof(*out));
		return true;
	}
	w->left_copy = true; /* the kernel did not try to copy it */
	return false;
}

static struct unwind_frame first_frame(const struct event_stack *s)
{
	struct unwind_frame f = { .pc = s->pc, .is_exact = s->pc_is_exact };
	for (unsigned i = 0; i < UNWIND_X86_SIGNAL_PC && f.is_exact; i++) {
		f.registers[i] = s->regs[UNWIND_X86_SIGNAL_PLACE(i)];
		f.known |= 1u << i;
	}
	f.registers[3] = s->bx;
	f.registers[6] = s->fp;
	f.registers[7] = s->sp;
	f.known |= (s->bx_is_known ? 1u << 3 : 0) | 1u << 6 | 1u << 7;
	return f;
}

static const struct stack_mapping *mapping_of(const struct event_stack *s, uint64_t address)
{
	for (uint32_t i = 0; i < s->mapping_count; i++) {
		const struct stack_mapping *m = &s->mappings[i];
		if (address >= m->start && address < m->end)
			return m;
	}
	return NULL;
}

static void record(struct rewalk *w, uint32_t file_id, uint64_t offset)
{
	struct event_sample *o = w->out;
	o->frames[o->kernel_count + o->user_count++] =
		(uint64_t)file_id << FRAME_FILE_SHIFT | (offset & FRAME_OFFSET_MASK);
}

static enum stack_end step_by(struct rewalk *w, const struct unwind_rule *rule)
{
	static const enum stack_end ends[] = {
		[UNWIND_STEP_ON] = STACK_END_NONE,
		[UNWIND_STEP_ROOT] = STACK_END_ROOT,
		[UNWIND_STEP_ROOT_ZERO] = STACK_END_ROOT_ZERO,
		[UNWIND_STEP_NO_RULE] = STACK_END_NO_TABLE,
		[UNWIND_STEP_UNSUPPORTED] = STACK_END_UNSUPPORTED,
		[UNWIND_STEP_READ_ERROR] = STACK_END_READ_ERROR,
		[UNWIND_STEP_LOOP] = STACK_END_LOOP,
		[UNWIND_STEP_ZERO] = STACK_END_ZERO,
	};
	bool is_at_base = unwind_is_at_stack_base(w->stack->stack_start, w->frame.registers[7]);
	bool has_zero_fp = !w->frame.is_exact && w->frame.known >> 6 & 1 && !w->frame.registers[6];
	if (is_at_base && (rule->cfa == UNWIND_CFA_NONE ||
				  (rule->cfa == UNWIND_CFA_FRAME_POINTER && has_zero_fp)))
		return STACK_END_ROOT_NO_INFO;
	/* This rule needs memory that is on no stack. */
	w->left_copy = rule->cfa == UNWIND_CFA_GO_MORESTACK;
	enum stack_end end = ends[unwind_step(EM_X86_64, rule, &w->frame, read_copy, w)];
	bool needed_more = end == STACK_END_READ_ERROR || end == STACK_END_UNSUPPORTED ||
			   end == STACK_END_NO_TABLE;
	return needed_more && w->left_copy ? STACK_END_COPY : end;
}

/* Record the frame, and go to its caller. */
static enum stack_end rewalk_frame(struct rewalk *w)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_FRAME_POINTER };
	uint64_t address = w->frame.is_exact ? w->frame.pc : w->frame.pc - 1;
	const struct stack_mapping *m = mapping_of(w->stack, address);
	if (w->out->user_count >= SAMPLE_USER_FRAMES_MAX)
		return STACK_END_DEPTH;
	if (!m && w->stack->mapping_count == STACK_MAPPINGS_MAX)
		return STACK_END_COPY; /* there may be more frames */
	if (!m)
		return w->frame.is_guess ? STACK_END_NO_TABLE : STACK_END_NO_VMA;
	bool is_vdso = w->stack->vdso && m->start == w->stack->vdso;
	uint32_t file_id = FRAME_FILE_ADDRESS;
	uint64_t offset = address - m->start + (is_vdso ? 0 : m->offset);
	if (m->key.inode || is_vdso) {
		enum deferred_file found =
			w->d->config.find(w->d->config.ctx, &m->key, offset, &file_id, &rule);
		if (found == DEFERRED_NO_ROOM) {
			record(w, file_id, offset);
			return STACK_END_NO_ROOM;
		}
		if (found != DEFERRED_KNOWN) {
			record(w, FRAME_FILE_ADDRESS, address);
			w->unknown = m;
			return STACK_END_NO_FILE;
		}
	}
	uint64_t early = unwind_rule_early_bytes(&rule, w->frame.is_exact);
	record(w, file_id, file_id == FRAME_FILE_ADDRESS ? address : offset + early);
	return step_by(w, &rule);
}

/* Takes the gap off that follows the frame where the walk ended; 0: there is none. */
static uint64_t take_gap(struct event_sample *s)
{
	uint64_t last = s->frames[s->kernel_count + s->user_count - 1];
	if (s->user_count < 2 || !frame_is_runtime(last))
		return 0;
	s->user_count--;
	return last;
}

/* Puts the sample with the frames that can be found now into d->out. *unknown: the mapping of
 * d->stack in which the walk ended. */
static enum stack_end rewalk(
	struct deferred *d, const struct item *item, const struct stack_mapping **unknown)
{
	enum status s = codec_lz4_block_decompress_exact(
		item->packed, item->packed_len, d->stack, item->stack_len, NULL);
	assert(s == OK); /* it was packed here */
	struct rewalk w = { d, d->stack, first_frame(d->stack), d->out, NULL, false };
	memcpy(d->out, item->sample, sample_len(item->sample));
	uint64_t gap = take_gap(d->out);
	d->out->user_count--; /* the last frame is recorded again, with its file */
	enum stack_end end = STACK_END_NONE;
	while (end == STACK_END_NONE)
		end = rewalk_frame(&w);
	if (gap && d->out->user_count < SAMPLE_USER_FRAMES_MAX)
		d->out->frames[d->out->kernel_count + d->out->user_count++] = gap;
	*unknown = w.unknown;
	return end;
}

/* ---- out ---- */

static bool is_unknown(const struct deferred *d, const struct file_key *key)
{
	uint32_t id;
	struct unwind_rule rule;
	return d->config.find(d->config.ctx, key, 0, &id, &rule) == DEFERRED_NOT_YET;
}

/* Tries to finish an item. True: it was emitted and freed. */
static bool try_item(struct deferred *d, struct item *item, bool is_last_time)
{
	if (item->is_tried && !is_last_time && is_unknown(d, &item->unknown))
		return false;
	const struct stack_mapping *unknown = NULL;
	enum stack_end end = rewalk(d, item, &unknown);
	item->is_tried = unknown != NULL;
	if (unknown)
		item->unknown = unknown->key;
	if (unknown && !is_last_time && is_unknown(d, &unknown->key))
		return false;
	if (stack_end_is_whole(end))
		metric_add(&d->metrics.whole, 1);
	else if (d->out->user_count > item->sample->user_count)
		metric_add(&d->metrics.longer, 1);
	else
		metric_add(&d->metrics.expired, 1);
	d->out->h.stack_end = (uint8_t)end;
	d->out->h.flags &= EVENT_STATE_MASK;
	d->out->notice = (struct file_notice){ 0 };
	if (unknown)
		d->out->notice = (struct file_notice){ unknown->key, unknown->start, unknown->end,
			unknown->offset };
	d->config.emit(d->config.ctx, d->out);
	d->bytes -= item_bytes(item);
	item_free(item);
	return true;
}

void deferred_run(struct deferred *d, int64_t now_ns, bool all)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->items.len; i++) {
		struct item *item = &d->items.v[i];
		if (!try_item(d, item, all || now_ns >= item->deadline_ns))
			d->items.v[kept++] = *item;
	}
	d->items.len = kept;
	metric_set(&d->metrics.waiting, kept);
	metric_set(&d->metrics.bytes, d->bytes);
}

/* ---- life ---- */

uint64_t deferred_bytes(uint64_t host_bytes, uint64_t limit_bytes)
{
	uint64_t bytes = MAX(host_bytes / DEFERRED_HOST_PARTS, DEFERRED_BYTES_LEAST);
	bytes = MIN(bytes, DEFERRED_BYTES_MAX);
	return limit_bytes ? MIN(bytes, limit_bytes / DEFERRED_LIMIT_PARTS) : bytes;
}

enum status deferred_new(const struct deferred_config *c, struct deferred **out, struct err *e)
{
	struct deferred *d = calloc(1, sizeof(*d));
	if (d) {
		buf_init(&d->packed, 2 * sizeof(*d->stack));
		d->stack = calloc(1, sizeof(*d->stack));
		d->out = calloc(
			1, sizeof(*d->out) + (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX) *
						     sizeof(uint64_t));
	}
	if (!d || !d->out || !d->stack) {
		deferred_free(d);
		return err_set(e, E_NOMEM, "deferred samples");
	}
	d->config = *c;
	if (!c->wait_ns)
		d->config.wait_ns = DEFERRED_WAIT_NS;
	uint64_t count = (uint64_t)c->frequency_hz * (uint64_t)(d->config.wait_ns / NS_PER_SEC);
	d->items_max = (uint32_t)MIN(MAX(count, (uint64_t)DEFERRED_LEAST), (uint64_t)UINT32_MAX);
	d->bytes_max = MIN(c->bytes_max ? c->bytes_max : UINT64_MAX, DEFERRED_BYTES_MAX);
	*out = d;
	return OK;
}

void deferred_free(struct deferred *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->items.len; i++)
		item_free(&d->items.v[i]);
	VEC_FREE(&d->items);
	for (size_t i = 0; i < d->pending.len; i++)
		free(d->pending.v[i]);
	VEC_FREE(&d->pending);
	buf_deinit(&d->packed);
	free(d->stack);
	free(d->out);
	free(d);
}

const struct deferred_metrics *deferred_metrics(const struct deferred *d)
{
	return &d->metrics;
}

void deferred_write_metrics(const struct deferred *d, struct buf *out)
{
	metrics_write(
		out, metric_defs, (const metric_value *)&d->metrics, ARRAY_COUNT(metric_defs));
}
