/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what pb_json_decode() accepts, written as JSON and read again, gives JSON that is the
 * same; and whatever bytes are encoded, the JSON is UTF-8. */
#include "fuzz/fuzz.h"

#include "tests/pb/sample.h"

#define BYTES_MAX ((size_t)1 << 20)

static bool around(struct str json, unsigned flags, struct buf *out)
{
	struct buf bytes;
	buf_init(&bytes, BYTES_MAX);
	bool ok = pb_json_decode(&sample_desc, json, flags, &bytes, NULL) == OK;
	if (ok && pb_json_encode(&sample_desc, buf_view(&bytes), 0, out, NULL) != OK)
		FUZZ_CHECK(out->failed);
	buf_deinit(&bytes);
	return ok && !out->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 20000)
		return 0;
	struct buf once, twice;
	buf_init(&once, BYTES_MAX);
	buf_init(&twice, BYTES_MAX);
	struct str in = str_make(data, size);
	if (around(in, size & 1 ? PB_IGNORE_UNKNOWN : 0, &once) && once.len < 50000) {
		FUZZ_CHECK(around(buf_view(&once), 0, &twice));
		FUZZ_CHECK(str_eq(buf_view(&once), buf_view(&twice)));
	}
	buf_clear(&once);
	if (pb_json_encode(&sample_desc, in, PB_EMIT_ZERO, &once, NULL) == OK)
		FUZZ_CHECK(str_is_utf8(buf_view(&once)));
	buf_deinit(&once);
	buf_deinit(&twice);
	return 0;
}
