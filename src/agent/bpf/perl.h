/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * perl: the frames of Perl, 5.28 to 5.44, built with threads, as distributions build it.
 *
 * Each thread's interpreter leads to its innermost PERL_SI, a stack of contexts, and each PERL_SI
 * to the one before: sort, DESTROY and the like have a PERL_SI of their own. A context of a
 * subroutine has its CV, and the COP (file and line) at which it was called. So a frame is a CV
 * with the COP of the context above it; the innermost frame's COP is PL_curcop.
 *
 * A run is what one native frame of Perl_runops_standard executes: it ends at a subroutine that
 * returns to no operation (retop), or where a PERL_SI ends. An eval that begins a loop of its own
 * in the middle of a run is not noticed: native frames above it may appear one run too far in.
 */
#pragma once

#include "runtime.h"

/* struct stackinfo */
#define PERL_SI_BYTES 40
#define PERL_SI_WORDS (PERL_SI_BYTES / 8)
#define PERL_SI_CONTEXTS 8
#define PERL_SI_PREVIOUS 16
#define PERL_SI_INDEX 32 /* i32: index of the innermost context; below 0: there is none */
#define PERL_SI_SORT 3
/* struct context */
#define PERL_CONTEXT_BYTES 96 /* bytes that are read; up to 5.30 a context has no more */
#define PERL_CONTEXT_WORDS (PERL_CONTEXT_BYTES / 8)
#define PERL_CONTEXT_COP 16
#define PERL_CONTEXT_RETURN 48
#define PERL_CONTEXT_EVAL_CV 16 /* where an eval's CV is, from where a subroutine's CV is */
#define PERL_TYPE_MASK 15
#define PERL_TYPE_SUB 9
#define PERL_TYPE_FORMAT 10
#define PERL_TYPE_EVAL 11
#define PERL_EVAL_BLOCK 0x40 /* CXp_TRYBLOCK: eval { } */
#define PERL_CONTEXTS_OF_STEP 8
#define PERL_STACKS_OF_STEP 4
/* struct cop */
#define PERL_COP_LINE 36
#define PERL_COP_FILE 48
/* SV, XPVCV, XPVGV, HEK */
#define PERL_SV_UNION 16
#define PERL_CV_BYTES 96
#define PERL_CV_WORDS (PERL_CV_BYTES / 8)
#define PERL_CV_STASH 32
#define PERL_CV_START 40
#define PERL_CV_GV 56
#define PERL_CV_FLAGS 92
#define PERL_CV_NAMED 0x8000
#define PERL_GV_NAME 32
#define PERL_GV_STASH 40
#define PERL_HEK_LENGTH 4
#define PERL_HEK_KEY 8
/* XPVHV, xpvhv_aux */
#define PERL_HV_MAX 24
#define PERL_HV_AUX 32
#define PERL_AUX_COUNT 28

/* In w->runtime.owner: the index of the context that is next, or one of these. */
#define PERL_INDEX_INNERMOST 0x7fffffff
#define PERL_ONLY_MAIN (1ULL << 32) /* only the program itself remains */

static __always_inline __u32 perl_copy_hek(struct event_code *e, __u32 at, __u64 hek, __u32 max)
{
	__s32 length = 0;
	if (!hek || !read_user(&length, sizeof(length), hek + PERL_HEK_LENGTH) || length <= 0)
		return 0;
	return code_copy(e, at, hek + PERL_HEK_KEY, (__u32)length, max);
}

/* The name of a package: a HEK, or the first in a list of HEKs. */
static __always_inline __u64 perl_stash_name(const struct perl_layout *l, __u64 stash)
{
	__u64 body = stash ? runtime_word(stash) : 0;
	if (!body)
		return 0;
	__u64 aux = body + PERL_HV_AUX;
	if (!l->has_body_aux)
		aux = runtime_word(stash + PERL_SV_UNION) +
		      8 * (runtime_word(body + PERL_HV_MAX) + 1);
	__u32 count = 0;
	__u64 name = runtime_word(aux);
	(void)read_user(&count, sizeof(count), aux + PERL_AUX_COUNT);
	return name && count ? runtime_word(name) : name;
}

/* Sends the function whose XPVCV is in s->block, or the code of `form`. */
static __always_inline void perl_tell(struct walk *w, const struct runtime_record *r,
	const struct runtime_scratch *s, __u64 cop, __u32 form, __u64 number)
{
	struct event_code *e = code_begin();
	if (!e)
		return;
	__u32 at = 0;
	e->form = form;
	if (form == RUNTIME_FORM_NAMED) {
		__u64 name = block_word(s->block, PERL_CV_WORDS, PERL_CV_GV);
		__u64 stash = block_word(s->block, PERL_CV_WORDS, PERL_CV_STASH);
		if (!(block_half(s->block, PERL_CV_WORDS, PERL_CV_FLAGS) & PERL_CV_NAMED)) {
			__u64 gv = name ? runtime_word(name) : 0;
			name = gv ? runtime_word(gv + PERL_GV_NAME) : 0;
			stash = gv ? runtime_word(gv + PERL_GV_STASH) : 0;
		}
		at = perl_copy_hek(
			e, 0, perl_stash_name(&r->layout.perl, stash), CODE_OWNER_BYTES_MAX);
		e->owner_bytes = at;
		at += perl_copy_hek(e, at, name, CODE_NAME_BYTES_MAX);
		e->name_bytes = at;
	}
	__u64 file = cop ? runtime_word(cop + PERL_COP_FILE) : 0;
	e->file_bytes = code_copy_string(e, at, file, CODE_FILE_BYTES_MAX);
	code_end(w, r, e, number, at + e->file_bytes);
}

/* Records a frame of `cv`, or of the code that `form` says, at the current COP. */
static __always_inline void perl_record(struct walk *w, const struct runtime_record *r,
	struct runtime_scratch *s, __u64 cv, __u32 form)
{
	__u64 cop = w->runtime.look;
	__u64 number = w->runtime.last_number;
	__u32 line = 0;
	if (form != RUNTIME_FORM_NAMED || cv != w->runtime.last_code) {
		w->runtime.last_code = 0;
		number = hash_mix(code_number_begin(w, cv), form);
		__u64 body = form == RUNTIME_FORM_NAMED ? runtime_word(cv) : 0;
		if (form == RUNTIME_FORM_NAMED &&
			(!body || !read_user(s->block, PERL_CV_BYTES, body))) {
			runtime_record_gap(w, r, RUNTIME_GAP_CODE);
			return;
		}
		if (form == RUNTIME_FORM_NAMED) {
			number = hash_mix(
				number, block_word(s->block, PERL_CV_WORDS, PERL_CV_START));
			number = hash_mix(number, block_word(s->block, PERL_CV_WORDS, PERL_CV_GV));
			w->runtime.last_code = cv;
		} else { /* evaluated texts, "(eval 7)", may have the same CV */
			__u64 file = cop ? runtime_word(cop + PERL_COP_FILE) : 0;
			number = hash_mix(number, file ? runtime_word(file + 0) : 0);
			number = hash_mix(number, file ? runtime_word(file + 8) : 0);
		}
		number |= FRAME_CODE_REAL;
		w->runtime.last_number = number;
		if (code_is_due(w, number))
			perl_tell(w, r, s, cop, form, number);
	}
	if (!cop || !read_user(&line, sizeof(line), cop + PERL_COP_LINE) || !line)
		line = FRAME_POSITION_NONE;
	runtime_record_frame(w, number, line);
}

/* The PERL_SI in s->block has no more contexts. The walk goes on at the nearest PERL_SI before it
 * that has some. A PERL_SI without contexts runs nothing: the outermost one has none while a
 * program is being compiled and its BEGIN blocks run. 1: there is a PERL_SI before it. */
static __always_inline int perl_leave_stack(struct walk *w, struct runtime_scratch *s)
{
	__u64 previous = block_word(s->block, PERL_SI_WORDS, PERL_SI_PREVIOUS);
	int is_left = previous != 0;
	for (int i = 0; i < PERL_STACKS_OF_STEP && previous; i++) {
		w->runtime.frame = previous;
		if (!read_user(s->block, PERL_SI_BYTES, previous) ||
			(__s32)block_half(s->block, PERL_SI_WORDS, PERL_SI_INDEX) >= 0)
			break;
		previous = block_word(s->block, PERL_SI_WORDS, PERL_SI_PREVIOUS);
	}
	w->runtime.owner = previous ? PERL_INDEX_INNERMOST : PERL_ONLY_MAIN;
	return is_left;
}

/* Looks at the next context of the run. 1: the search goes on. */
static __always_inline int perl_context(struct walk *w, const struct runtime_record *r,
	struct runtime_scratch *s, __u64 contexts, __s32 index)
{
	const struct perl_layout *l = &r->layout.perl;
	if (!read_user(s->code, PERL_CONTEXT_BYTES, contexts + (__u64)index * l->context_bytes)) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		w->runtime.frame = 0;
		return 0;
	}
	__u32 kind = block_byte(s->code, PERL_CONTEXT_WORDS, 0);
	__u32 type = kind & PERL_TYPE_MASK;
	__u32 is_text = type == PERL_TYPE_EVAL && !(kind & PERL_EVAL_BLOCK);
	if (type != PERL_TYPE_SUB && type != PERL_TYPE_FORMAT && !is_text)
		return 1;
	__u64 cv = block_word(
		s->code, PERL_CONTEXT_WORDS, l->context_cv + (is_text ? PERL_CONTEXT_EVAL_CV : 0));
	if (!cv && !is_text) /* the subroutine is being entered or left */
		return 1;
	perl_record(w, r, s, cv, is_text ? RUNTIME_FORM_EVAL : RUNTIME_FORM_NAMED);
	w->runtime.look = block_word(s->code, PERL_CONTEXT_WORDS, PERL_CONTEXT_COP);
	if (block_word(s->code, PERL_CONTEXT_WORDS, PERL_CONTEXT_RETURN))
		w->runtime.stage = RUNTIME_FRAMES;
	return 0;
}

/* If C code begins a run so that it can catch an error, as for BEGIN blocks, an eval that returns
 * nowhere is below the run, and belongs to it. */
static __always_inline __s32 perl_skip_catch(
	const struct runtime_record *r, struct runtime_scratch *s, __u64 contexts, __s32 index)
{
	if (index < 0 ||
		!read_user(s->code, PERL_CONTEXT_BYTES,
			contexts + (__u64)index * r->layout.perl.context_bytes) ||
		block_word(s->code, PERL_CONTEXT_WORDS, PERL_CONTEXT_RETURN))
		return index;
	__u32 kind = block_byte(s->code, PERL_CONTEXT_WORDS, 0);
	int is_catch = (kind & PERL_TYPE_MASK) == PERL_TYPE_EVAL && kind & PERL_EVAL_BLOCK;
	return is_catch ? index - 1 : index;
}

/* Records the next frame of the run, or skips some contexts that are no frames. */
static __always_inline void perl_frame(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	__u64 stack = w->runtime.frame;
	if (w->runtime.owner == PERL_ONLY_MAIN) {
		w->runtime.frame = 0;
		perl_record(w, r, s, stack, RUNTIME_FORM_MAIN);
		return;
	}
	if (!read_user(s->block, PERL_SI_BYTES, stack)) {
		runtime_record_gap(w, r, RUNTIME_GAP_FRAME);
		w->runtime.frame = 0;
		return;
	}
	__u64 contexts = block_word(s->block, PERL_SI_WORDS, PERL_SI_CONTEXTS);
	__s32 index = w->runtime.owner;
	if (index == PERL_INDEX_INNERMOST)
		index = block_half(s->block, PERL_SI_WORDS, PERL_SI_INDEX);
	int more = 1;
	for (int i = 0; i < PERL_CONTEXTS_OF_STEP && more && index >= 0; i++, index--)
		more = perl_context(w, r, s, contexts, index);
	if (!w->runtime.frame)
		return;
	if (!more && w->runtime.stage == RUNTIME_NATIVE)
		index = perl_skip_catch(r, s, contexts, index);
	w->runtime.owner = (__u32)index;
	if (index >= 0) {
		w->runtime.stage |= more ? RUNTIME_FRAMES : RUNTIME_NATIVE;
		return;
	}
	/* Recording the frame may have used the block. */
	if (!read_user(s->block, PERL_SI_BYTES, stack))
		return;
	if (perl_leave_stack(w, s))
		w->runtime.stage = RUNTIME_NATIVE;
	else if (more)
		w->runtime.stage = RUNTIME_FRAMES;
}

static __always_inline void perl_begin(
	struct walk *w, const struct runtime_record *r, struct runtime_scratch *s)
{
	const struct perl_layout *l = &r->layout.perl;
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	__u64 interpreter = 0;
	if (l->thread_at)
		interpreter = runtime_word(BPF_CORE_READ(task, thread.fsbase) - l->thread_at);
	else if (w->event.h.tid == w->event.h.pid) /* other threads may have another interpreter */
		interpreter = runtime_word(w->runtime.root);
	__u64 stack = interpreter ? runtime_word(interpreter + l->interp_stack) : 0;
	if (!stack || !read_user(s->block, PERL_SI_BYTES, stack))
		return;
	w->runtime.frame = stack;
	w->runtime.look = runtime_word(interpreter + l->interp_cop);
	w->runtime.owner = PERL_INDEX_INNERMOST;
	if ((__s32)block_half(s->block, PERL_SI_WORDS, PERL_SI_INDEX) < 0)
		(void)perl_leave_stack(w, s);
}

/* Does the native frame at `offset` execute the next run? A sort has the context of its function
 * even while it compares nothing. */
static __always_inline int perl_owned(
	const struct walk *w, const struct perl_layout *l, __u64 offset)
{
	__u32 type = 0;
	if (is_in_loop(l->loop, offset))
		return 1;
	if (w->runtime.count || offset < l->sort[0] || offset >= l->sort[1])
		return 0;
	return read_user(&type, sizeof(type), w->runtime.frame + l->stack_type) &&
	       type == PERL_SI_SORT;
}

/* Must a native frame run the remaining frames? No native frame runs a program that is being
 * compiled. */
static __always_inline int perl_misses_owner(const struct walk *w)
{
	return w->runtime.owner != PERL_ONLY_MAIN;
}

/* Global: verified by itself. The stage that is next is native, unless this sets another. */
__noinline int perl_step(__u32 stage)
{
	struct walk *w = walk_here();
	struct runtime_scratch *s = runtime_scratch_here();
	struct bpf_counters *c = counters_here();
	const struct runtime_record *r = w && config.walk_runtimes ? runtime_record_of(w) : NULL;
	if (!w || !s || !c || !r)
		return 0;
	if (stage == RUNTIME_ENTER) {
		c->runtime_samples++;
		perl_begin(w, r, s);
	} else if (w->runtime.frame) {
		perl_frame(w, r, s);
	}
	return 0;
}
