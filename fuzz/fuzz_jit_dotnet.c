/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata of .NET. The first byte is a method's number. Properties: what is named has both parts
 * of a name, and is as long as its texts allow; nothing is read beyond the end.
 */
#include "fuzz/fuzz.h"

#include "jit/jit.h"

/* Module, namespace, method, and eight types, and what stands between them. */
#define TEXTS_MAX (11 * (512 + 8))

static bool read_bytes(void *ctx, uint64_t offset, void *out, size_t len)
{
	const struct str *s = ctx;
	memset(out, 0, len);
	if (offset >= s->len)
		return false;
	memcpy(out, s->p + offset, MIN(len, s->len - (size_t)offset));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct str s = str_make(data + 1, size - 1);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 2 * TEXTS_MAX);
	if (jit_dotnet_name(read_bytes, &s, data[0], &b))
		FUZZ_CHECK(b.len >= 5 && b.len < TEXTS_MAX && b.data[0] == '[');
	return 0;
}
