/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotspot_method: finds the number of a Method of HotSpot, and sends its event: class and name,
 * file, and the table of lines, which lies behind the bytecodes.
 */
#pragma once

#include "hotspot_process.h"

#define HOTSPOT_HAS_LINES 1 /* a flag of ConstMethod */
#define HOTSPOT_CLASS_BYTES_MAX 191
#define HOTSPOT_METHOD_BYTES_MAX 63

/* Copies the text of the Symbol at `at` to data[where], `max` bytes (a constant below 256) at most;
 * returns how many. */
static __always_inline __u32 hotspot_copy_symbol(
	struct event_code *e, const struct hotspot_layout *l, __u64 at, __u32 where, __u32 max)
{
	__u16 length = 0;
	if (!at || !read_user(&length, sizeof(length), at + l->symbol_length))
		return 0;
	__u32 bytes = length > max ? max : length;
	if (bytes == 0 || bytes > max || where > CODE_NAME_BYTES_MAX)
		return 0;
	return read_user(&e->data[bounded(where, 512)], bounded(bytes, 256), at + l->symbol_text)
		       ? bytes
		       : 0;
}

/* The Symbol at an index of the constant pool at `pool`. */
static __always_inline __u64 hotspot_symbol(const struct hotspot_layout *l, __u64 pool, __u32 index)
{
	return index ? runtime_word(pool + l->pool_size + (__u64)index * sizeof(__u64)) : 0;
}

/* Sends the method whose ConstMethod was read to h->method: "class.method", file, table of lines.
 */
static __always_inline void hotspot_tell(
	struct walk *w, const struct runtime_record *r, struct hotspot_scratch *h, __u64 number)
{
	const struct hotspot_layout *l = &r->layout.hotspot;
	__u64 pool = hotspot_word(h->method, l->const_pool);
	struct event_code *e = code_begin();
	if (!e)
		return;
	if (!read_user(h->pool, HOTSPOT_POOL_BYTES, pool))
		__builtin_memset(h->pool, 0, HOTSPOT_POOL_BYTES);
	__u64 class = hotspot_word(h->pool, l->pool_class);
	__u64 name = runtime_word(class + l->class_name);
	__u32 file = l->pool_file ? hotspot_quarter(h->pool, l->pool_file)
				  : runtime_half(class + l->class_file) & 0xffff;
	__u32 at = hotspot_copy_symbol(e, l, name, 0, HOTSPOT_CLASS_BYTES_MAX);
	e->data[bounded(at, 256)] = '.';
	name = hotspot_symbol(l, pool, hotspot_quarter(h->method, l->const_name));
	__u32 bytes = hotspot_copy_symbol(e, l, name, at + 1, HOTSPOT_METHOD_BYTES_MAX);
	if (!at || !bytes) {
		code_drop();
		return;
	}
	at += 1 + bytes;
	e->name_bytes = at;
	e->name_unit = 1;
	bytes = hotspot_copy_symbol(e, l, hotspot_symbol(l, pool, file), at, 255);
	e->file_bytes = bytes;
	e->file_unit = 1;
	e->first_line = 0;
	at += bytes;
	__u64 all = (__u64)hotspot_half(h->method, l->const_words) * sizeof(__u64);
	__u64 before = l->const_size + h->bytecodes_bytes;
	__u64 left = all > before ? all - before : 0;
	bytes = left > HOTSPOT_LINES_BYTES_MAX ? HOTSPOT_LINES_BYTES_MAX : left;
	if (bytes == 0 || bytes > HOTSPOT_LINES_BYTES_MAX || at > 512 ||
		!(hotspot_quarter(h->method, l->const_flags) & HOTSPOT_HAS_LINES) ||
		!read_user(&e->data[bounded(at, 1024)], bounded(bytes, 8192),
			h->bytecodes + h->bytecodes_bytes))
		bytes = 0;
	e->lines_bytes = bytes;
	code_end(w, r, e, number, at + bytes);
}

/* The number of the Method at `method`; a new Method is sent with its name. 0: there is no Method.
 * Sets h->bytecodes. */
__noinline __u64 hotspot_method(__u64 method)
{
	struct walk *w = walk_here();
	struct hotspot_scratch *h = hotspot_scratch_here();
	if (!w || !h || !config.walk_runtimes)
		return 0;
	const struct runtime_record *r = hotspot_record(w);
	if (!r)
		return 0;
	if (method && method == w->runtime.last_code)
		return w->runtime.last_number;
	const struct hotspot_layout *l = &r->layout.hotspot;
	w->runtime.last_code = 0;
	__u64 at = method && !(method & 7) ? runtime_word(method + l->method_const) : 0;
	if (!at || (at & 7) || !read_user(h->method, HOTSPOT_CONST_METHOD_BYTES, at))
		return 0;
	__u64 pool = hotspot_word(h->method, l->const_pool);
	__u32 words = hotspot_half(h->method, l->const_words);
	h->bytecodes = at + l->const_size;
	h->bytecodes_bytes = hotspot_quarter(h->method, l->const_code_bytes);
	if (!pool || (pool & 7) ||
		(__u64)words * sizeof(__u64) < l->const_size + h->bytecodes_bytes)
		return 0;
	__u64 number = hash_mix(hash_mix(code_number_begin(w, method), at), pool);
	number = hash_mix(number, hotspot_word(h->method, l->const_name));
	number = hash_mix(number, hotspot_word(h->method, l->const_words));
	number |= FRAME_CODE_REAL;
	if (code_is_due(w, number))
		hotspot_tell(w, r, h, number);
	w->runtime.last_code = method;
	w->runtime.last_number = number;
	return number;
}

static __always_inline void hotspot_record_method(
	struct walk *w, const struct runtime_record *r, __u64 number, __u64 position)
{
	struct hotspot_scratch *h = hotspot_scratch_here();
	/* If the Method could not be sent, the frames are not kept, so that it is found again and
	 * sent later. */
	if (h && h->kept.key && (!number || !code_is_told(number)))
		h->kept.key = 0;
	if (number)
		runtime_record_frame(w, number, position);
	else
		runtime_record_gap(w, r, RUNTIME_GAP_CODE);
}
