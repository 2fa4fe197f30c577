/* SPDX-License-Identifier: Apache-2.0 */
/* Properties: a record that was found reads no more of a structure than its block; names are UTF-8
 * without control characters; a line is found for any table without reading past it. */
#include "fuzz/fuzz.h"

#include "runtimes/runtimes.h"

static void fuzz_file(const uint8_t *data, size_t size)
{
	struct objfile *obj = NULL;
	struct runtime_record r;
	if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) != OK)
		return;
	if (runtimes_find(obj, &r, NULL) == OK && r.kind == RUNTIME_HOTSPOT) {
		const struct hotspot_layout *l = &r.layout.hotspot;
		FUZZ_CHECK(l->blob_name + 8u <= HOTSPOT_BLOB_BYTES);
		FUZZ_CHECK(l->blob_mutable + 8u <= HOTSPOT_BLOB_BYTES);
		FUZZ_CHECK(l->nmethod_method + 8u <= HOTSPOT_NMETHOD_BYTES);
		FUZZ_CHECK(l->nmethod_scopes + 8u <= HOTSPOT_NMETHOD_BYTES);
		FUZZ_CHECK(l->nmethod_pcs_end + 4u <= HOTSPOT_NMETHOD_BYTES);
		FUZZ_CHECK(l->const_pool + 8u <= HOTSPOT_CONST_METHOD_BYTES);
		FUZZ_CHECK(l->const_size <= HOTSPOT_CONST_METHOD_BYTES);
		FUZZ_CHECK(l->pool_class + 8u <= HOTSPOT_POOL_BYTES);
		FUZZ_CHECK(r.text_bytes > 0 && r.version >= 8 << 8);
	}
	objfile_close(obj);
}

static void fuzz_lines(const uint8_t *data, size_t size)
{
	uint16_t version = (uint16_t)((8 + data[0] % 19) << 8);
	uint32_t index = data[1] | (uint32_t)data[2] << 8;
	uint32_t line = 0;
	bool found = hotspot_line(version, str_make(data + 3, size - 3), index, &line);
	FUZZ_CHECK(found == (line > 0));
}

static void fuzz_names(const uint8_t *data, size_t size)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 8 * size + 64);
	static const struct str files[] = { STR("A.java"), STR("A.scala"), STR("a.clj"), STR("") };
	if (data[0] & 1)
		hotspot_name(&out, str_make(data + 1, size - 1), files[data[0] >> 1 & 3]);
	else
		hotspot_stub_name(&out, str_make(data + 1, size - 1));
	FUZZ_CHECK(!out.failed && str_is_utf8(buf_view(&out)));
	for (size_t i = 0; i < out.len; i++)
		FUZZ_CHECK(out.data[i] >= 0x20 && out.data[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file(data, size);
	if (size >= 3)
		fuzz_lines(data, size);
	if (size >= 1)
		fuzz_names(data, size);
	return 0;
}
