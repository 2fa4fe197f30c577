/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like Go's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

#define HEADER "\xff Go buildinf:\x08"

static enum status find(const char *version, bool has_g, struct runtime_record *out, struct err *e)
{
	static const uint8_t load[] = { 0x64, 0x4c, 0x8b, 0x34, 0x25, 0xf0, 0xff, 0xff, 0xff };
	uint8_t code[MADE_TEXT_BYTES] = { 0 }, header[64] = HEADER "\x02";
	memcpy(code + 0x123, load, has_g ? sizeof(load) : 0);
	header[32] = (uint8_t)strlen(version);
	memcpy(header + 33, version, strlen(version));
	const struct made_elf m = {
		.code = code, .buildinfo = header, .buildinfo_bytes = 33 + strlen(version)
	};
	return made_elf_find(&m, out, e);
}

static void knows_its_version(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint16_t minor, curg, labels, is_slice;
	} cases[] = {
		{ "go1.18", 18, 192, 360, 0 },
		{ "go1.20.14", 20, 192, 360, 0 },
		{ "go1.21rc2", 21, 192, 344, 0 },
		{ "go1.23.0", 23, 192, 352, 0 },
		{ "go1.24.1", 24, 192, 352, 1 },
		{ "go1.25", 25, 184, 344, 1 },
		{ "go1.26.8", 26, 184, 352, 1 },
	};
	FOR_EACH_CASE (c, cases) {
		for (int has_g = 0; has_g < 2; has_g++) {
			struct runtime_record r = { 0 };
			struct err e = { 0 };
			CHECK_OK(find(c->name, has_g, &r, &e), &e);
			const struct go_layout *l = &r.layout.go;
			CHECK_CASE(c, r.kind == RUNTIME_GO && r.version == (1 << 8 | c->minor));
			CHECK_CASE(c, l->g_at == (has_g ? -16 : 0) && l->m_curg == c->curg);
			CHECK_CASE(c, l->g_labels == c->labels && l->is_slice == c->is_slice);
			/* Nothing is of this program alone: others share the record. */
			CHECK_CASE(c, !r.text_from && r.text_bytes == UINT32_MAX && !r.delta);
		}
	}
}

/* Before 1.18 the header has the address of the version's string. */
static void knows_an_old_version(void **state)
{
	(void)state;
	uint8_t header[32] = HEADER, data[1024] = { 0 };
	const uint64_t at = MADE_DATA + 64, string[2] = { MADE_DATA + 80, 8 };
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	memcpy(header + 16, &at, sizeof(at));
	memcpy(data + 64, string, sizeof(string));
	memcpy(data + 80, "go1.17.5", 8);
	struct made_elf m = { .data = data, .buildinfo = header, .buildinfo_bytes = 32 };
	CHECK_OK(made_elf_find(&m, &r, &e), &e);
	CHECK(r.version == (1 << 8 | 17) && r.layout.go.g_labels == 360);
	data[71] = 0xff; /* an address that is not in the file */
	CHECK(made_elf_find(&m, &r, &e) == E_NOTFOUND);
}

static void leaves_alone_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name;
	} cases[] = { { "go1.16.3" }, { "go1.27" }, { "go2.1" }, { "devel +1234" }, { "" } };
	FOR_EACH_CASE (c, cases) {
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		CHECK_CASE(c, find(c->name, true, &r, &e) == E_NOTFOUND && r.version == 77);
	}
	const struct made_elf damaged[] = {
		{ .buildinfo = HEADER, .buildinfo_bytes = 16 },
		{ .buildinfo = "\xff Go buildinf;\x08\x02................\x06go1.26",
			.buildinfo_bytes = 39 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(damaged); i++) {
		struct runtime_record r;
		struct err e;
		CHECK(made_elf_find(&damaged[i], &r, &e) == E_NOTFOUND);
	}
}

static void reads_labels_within_their_limits(void **state)
{
	(void)state;
	struct runtime_label l[2] = {
		{ .key_bytes = 3, .value_bytes = 2, .key = "key", .value = "v\n" },
		{ .key_bytes = 999, .value_bytes = 999 }
	};
	for (uint32_t i = 0; i < 3; i++) {
		CLEANUP(buf_deinit) struct buf name;
		CLEANUP(buf_deinit) struct buf value;
		buf_init(&name, 1024);
		buf_init(&value, 1024);
		CHECK(runtimes_label(str_make(l, sizeof(l)), i, &name, &value) == (i < 2));
		if (i == 0)
			CHECK(str_eq(buf_view(&name), STR("key")) &&
				str_eq(buf_view(&value), STR("v?")));
		if (i == 1)
			CHECK(name.len == sizeof(l->key) && value.len == sizeof(l->value));
		CHECK(!runtimes_label(str_make(l, sizeof(l[0]) - 1), 0, &name, &value));
	}
}

TEST_MAIN(cmocka_unit_test(knows_its_version), cmocka_unit_test(knows_an_old_version),
	cmocka_unit_test(leaves_alone_what_it_does_not_know),
	cmocka_unit_test(reads_labels_within_their_limits))
