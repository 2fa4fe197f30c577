/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever a query string holds, what pb_params_decode() makes of it is a message that
 * can be written as JSON. */
#include "fuzz/fuzz.h"

#include "http/http.h"
#include "tests/pb/sample.h"

#define PARAMS_MAX 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_param v[PARAMS_MAX];
	size_t count = 0;
	struct arena a;
	struct buf bytes, json;
	if (size > 4096)
		return 0;
	arena_init(&a, 1 << 20);
	buf_init(&bytes, 1 << 20);
	buf_init(&json, 1 << 20);
	struct str query = str_make(data, size);
	bool whole = http_query_check(query, NULL) == OK;
	/* The table is walked for each. */
	size_t most = fuzz_thorough(data, size) ? PARAMS_MAX : 16;
	while (query.len && count < most) {
		enum status s = http_query_next(&query, &a, &v[count].key, &v[count].value, NULL);
		FUZZ_CHECK(!whole || s == OK);
		count += s == OK;
	}
	if (pb_params_decode(
		    &sample_desc, v, count, size & 1 ? PB_IGNORE_UNKNOWN : 0, &bytes, NULL) == OK)
		FUZZ_CHECK(pb_json_encode(&sample_desc, buf_view(&bytes), 0, &json, NULL) == OK);
	buf_deinit(&bytes);
	buf_deinit(&json);
	arena_deinit(&a);
	return 0;
}
