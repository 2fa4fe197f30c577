/* SPDX-License-Identifier: Apache-2.0 */
/* Properties: a record that was found reads no more of a structure than its block; texts are UTF-8;
 * so are
 * names; a line does not depend on what follows its entry, and is found for any table without
 * reading past it. */
#include "fuzz/fuzz.h"

#include "runtimes/runtimes.h"

static void fuzz_file(const uint8_t *data, size_t size)
{
	struct objfile *obj = NULL;
	struct runtime_record r;
	if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) != OK)
		return;
	enum status s = runtimes_find(obj, &r, NULL);
	if (s == OK && r.kind == RUNTIME_PHP) {
		const struct php_layout *l = &r.layout.php;
		FUZZ_CHECK(l->loop[0] <= l->loop[1] && l->loop[2] <= l->loop[3]);
		FUZZ_CHECK(l->function_file + 8u <= PHP_FUNCTION_BYTES);
		FUZZ_CHECK(l->function_line + 4u <= PHP_FUNCTION_BYTES);
	} else if (s == OK && r.kind == RUNTIME_LUA) {
		const struct lua_layout *l = &r.layout.lua;
		FUZZ_CHECK(l->loop[0] < l->loop[1] && l->loop[2] <= l->loop[3]);
		FUZZ_CHECK(l->frame_bytes <= LUA_FRAME_BYTES && l->frame_pc < l->frame_bytes);
		FUZZ_CHECK(l->frame_status < l->frame_bytes);
		FUZZ_CHECK(l->proto_source + 8u <= LUA_PROTO_BYTES);
	} else if (s == OK && r.kind == RUNTIME_RUBY) {
		const struct ruby_layout *l = &r.layout.ruby;
		FUZZ_CHECK(l->root && l->loop[0] < l->loop[1] && l->loop[2] <= l->loop[3]);
		FUZZ_CHECK(l->body_lines + 32u <= RUBY_BODY_BYTES && l->frame_bytes);
	} else if (s == OK && r.kind == RUNTIME_CPYTHON) {
		const struct cpython_layout *l = &r.layout.cpython;
		FUZZ_CHECK(runtime_name(r.kind)[0]);
		FUZZ_CHECK(l->thread_next + 8u <= CPYTHON_THREAD_BYTES);
		FUZZ_CHECK(l->thread_id + 8u <= CPYTHON_THREAD_BYTES);
		bool is_free = l->object_head == CPYTHON_HEAD_FREE_BYTES;
		unsigned code = is_free ? CPYTHON_CODE_FREE_BYTES : CPYTHON_CODE_BYTES;
		FUZZ_CHECK(is_free || l->object_head == CPYTHON_HEAD_BYTES);
		FUZZ_CHECK(l->code_name + 8u <= code && l->code_lines + 8u <= code);
		FUZZ_CHECK(l->frame_owner < CPYTHON_FRAME_BYTES);
	}
	objfile_close(obj);
}

static void fuzz_lines(const uint8_t *data, size_t size)
{
	uint16_t version = (uint16_t)(3 << 8 | (7 + data[0] % 8));
	uint32_t index = data[1] | (uint32_t)data[2] << 8;
	struct str table = str_make(data + 3, size - 3);
	uint32_t line = 0, again = 0;
	if (!cpython_line(version, 1000, table, index, &line)) {
		FUZZ_CHECK(line == 0);
		return;
	}
	FUZZ_CHECK(line > 0);
	if (version > (3 << 8 | 9) && table.len < 4096) {
		uint8_t longer[4096 + 16] = { 0 };
		memcpy(longer, table.p, table.len);
		FUZZ_CHECK(cpython_line(
			version, 1000, str_make(longer, table.len + 16), index, &again));
		FUZZ_CHECK(again == line);
	}
}

static void fuzz_text(const uint8_t *data, size_t size)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 8 * size + 1);
	if (runtimes_text(&out, str_make(data + 1, size - 1), data[0] & 7))
		FUZZ_CHECK(!out.failed && str_is_utf8(buf_view(&out)));
}

static void fuzz_name(const uint8_t *data, size_t size)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 3 * size + RUNTIMES_NAME_MORE_BYTES_MAX);
	runtimes_name(&out, data[0] % RUNTIME_KIND_COUNT, data[1], data[2],
		str_make(data + 3, size - 3), RUNTIME_TEXT_UTF8);
	FUZZ_CHECK(!out.failed && str_is_utf8(buf_view(&out)));
}

static void fuzz_labels(const uint8_t *data, size_t size)
{
	CLEANUP(buf_deinit) struct buf out;
	uint32_t i = 0;
	buf_init(&out, 3 * size + 1);
	while (runtimes_label(str_make(data, size), i, &out, &out))
		i++;
	FUZZ_CHECK(i <= RUNTIME_LABELS_MAX && i * sizeof(struct runtime_label) <= size);
	FUZZ_CHECK(!out.failed && str_is_utf8(buf_view(&out)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file(data, size);
	fuzz_labels(data, size);
	if (size >= 3)
		fuzz_lines(data, size);
	if (size >= 3 && data[0] % RUNTIME_KIND_COUNT != RUNTIME_CPYTHON)
		fuzz_name(data, size);
	if (size >= 1)
		fuzz_text(data, size);
	return 0;
}
