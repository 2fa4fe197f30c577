/* SPDX-License-Identifier: Apache-2.0 */
/* Properties: a record that was found reads no more of an object than its block; a line, the
 * frames of a piece of code and newlines are found for any bytes without reading past them. */
#include "fuzz/fuzz.h"

#include "runtimes/runtimes.h"

static void fuzz_file(const uint8_t *data, size_t size)
{
	struct objfile *obj = NULL;
	struct runtime_record r;
	if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) != OK)
		return;
	if (runtimes_find(obj, &r, NULL) == OK && r.kind == RUNTIME_V8) {
		const struct v8_layout *l = &r.layout.v8;
		FUZZ_CHECK(l->function_shared + 8u <= V8_FUNCTION_BYTES);
		FUZZ_CHECK(l->function_feedback + 8u <= V8_FUNCTION_BYTES);
		FUZZ_CHECK(l->shared_name + 8u <= V8_SHARED_BYTES);
		FUZZ_CHECK(l->shared_flags + 8u <= V8_SHARED_BYTES);
		FUZZ_CHECK(l->script_id + 8u <= V8_SCRIPT_BYTES);
		FUZZ_CHECK(l->code_start + 8u <= V8_CODE_BYTES || l->code_is_inline);
		FUZZ_CHECK(l->deopt_inlining + 8u <= V8_DEOPT_BYTES);
		FUZZ_CHECK(r.text_bytes > 0 && r.version >= (8 << 8 | 4));
	}
	struct runtimes_thread_context context;
	if (runtimes_thread_context(obj, &context))
		FUZZ_CHECK(context.form != THREAD_CONTEXT_NONE);
	objfile_close(obj);
}

static void fuzz_function(uint16_t version, uint32_t index, struct str told)
{
	struct v8_function f;
	uint32_t character = 0;
	if (!v8_function_told(version, told, &f))
		return;
	FUZZ_CHECK(f.begin < f.end && f.source != 0);
	if (v8_source_position(&f, index, &character))
		FUZZ_CHECK(character < 1u << 30);
}

static void fuzz_code(uint16_t version, uint32_t index, struct str told)
{
	struct v8_code c;
	struct v8_code_frame frames[V8_CODE_FRAMES_MAX];
	if (!v8_code_told(version, told, &c))
		return;
	size_t n = v8_code_frames(&c, index, frames);
	FUZZ_CHECK(n >= 1 && n <= V8_CODE_FRAMES_MAX && frames[n - 1].function == c.function);
}

static void fuzz_source(unsigned unit, uint32_t character, struct str text)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 2 * text.len + 64);
	if (!v8_newlines(&out, text, unit))
		return;
	FUZZ_CHECK(!out.failed);
	FUZZ_CHECK(v8_newlines_before(buf_view(&out), character) <= text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file(data, size);
	if (size < 4)
		return 0;
	uint16_t version = (uint16_t)((8 + data[0] % 8) << 8);
	uint32_t index = data[1] | (uint32_t)data[2] << 8;
	struct str rest = str_make(data + 4, size - 4);
	fuzz_function(version, index, rest);
	fuzz_code(version, index, rest);
	fuzz_source(data[3] & 3, index, rest);
	return 0;
}
