/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf maps and jitdump files: the first byte says which. Properties: read whole or in two pieces
 * it is the same table; what is found covers the address; parts of a name lie in it, or are
 * constants.
 */
#include "fuzz/fuzz.h"

#include "jit/jit.h"

static struct str input;
static bool is_dump;

/* As a file that has `len` bytes now. */
static uint64_t read_on(struct jit_dump *d, struct jit_map *m, uint64_t at, size_t len)
{
	while (at < len) {
		struct str window = str_sub(input, at, MIN(len - at, JIT_DUMP_WINDOW_BYTES));
		uint64_t taken = 0;
		if (!is_dump)
			taken = jit_perfmap_read(m, window, 5);
		else if (jit_dump_read(d, m, window, 5, &taken, NULL) != OK)
			return UINT64_MAX;
		if (taken == 0)
			break;
		at += taken;
	}
	return at;
}

static void look(struct jit_map *m, uint64_t address)
{
	struct jit_found f;
	if (!jit_map_find(m, address, 5, &f))
		return;
	FUZZ_CHECK(f.start <= address && address - f.start < JIT_CODE_BYTES_MAX);
	FUZZ_CHECK(f.name.len > 0 && f.name.len <= JIT_NAME_BYTES_MAX);
	struct jit_name n = jit_name_parse(f.name);
	FUZZ_CHECK(n.function.len > 0 && n.function.len <= JIT_NAME_BYTES_MAX);
	FUZZ_CHECK(n.file.len == 0 ||
		   (n.file.p >= f.name.p && n.file.p + n.file.len <= f.name.p + f.name.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	is_dump = data[0] & 1;
	input = str_make(data + 1, size - 1);
	struct jit_map *whole, *pieces;
	if (jit_map_new(&whole) != OK)
		return 0;
	if (jit_map_new(&pieces) != OK) {
		jit_map_free(whole);
		return 0;
	}
	struct jit_dump d = { 0 }, e = { 0 };
	uint64_t end = read_on(&d, whole, 0, input.len);
	uint64_t at = read_on(&e, pieces, 0, input.len / 2);
	if (at != UINT64_MAX)
		at = read_on(&e, pieces, at, input.len);
	FUZZ_CHECK(at == end);
	FUZZ_CHECK(jit_map_len(whole) == jit_map_len(pieces));
	FUZZ_CHECK(jit_map_bad(whole) == jit_map_bad(pieces));
	for (size_t i = 0; i + 8 <= input.len && i < 512; i++) {
		uint64_t address;
		memcpy(&address, input.p + i, sizeof(address));
		look(whole, address);
		look(whole, address & 0xffff);
	}
	jit_map_free(whole);
	jit_map_free(pieces);
	return 0;
}
