/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of GDB's interface: ELF files and Erlang's. Properties: what is found covers the address
 * and has a name that is not too long; reading it twice adds the same functions again.
 */
#include "fuzz/fuzz.h"

#include "jit/jit.h"

static enum status read_all(struct jit_map *m, struct str bytes)
{
	uint32_t next = 0, last;
	enum status s;
	do {
		last = next;
		s = jit_object_read(m, bytes, 5, &next, NULL);
		FUZZ_CHECK(next == 0 || next > last);
	} while (next);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_map *m;
	struct str bytes = str_make(data, size);
	if (jit_map_new(&m) != OK)
		return 0;
	enum status s = read_all(m, bytes);
	FUZZ_CHECK(s == OK || s == E_CORRUPT);
	uint32_t count = jit_map_len(m);
	uint64_t refused = jit_map_refused(m);
	FUZZ_CHECK(s == OK || (count == 0 && jit_map_bad(m) == 1));
	FUZZ_CHECK(read_all(m, bytes) == s);
	FUZZ_CHECK(refused || jit_map_refused(m) || jit_map_len(m) == 2 * count);
	for (size_t i = 0; i + 8 <= size && i < 4096; i++) {
		struct jit_found f;
		uint64_t address;
		memcpy(&address, data + i, sizeof(address));
		if (!jit_map_find(m, address, 5, &f))
			continue;
		FUZZ_CHECK(f.start <= address && address - f.start < JIT_CODE_BYTES_MAX);
		FUZZ_CHECK(f.name.len > 0 && f.name.len <= JIT_NAME_BYTES_MAX);
	}
	jit_map_free(m);
	return 0;
}
