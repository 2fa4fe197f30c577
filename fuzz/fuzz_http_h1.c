/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a connection says the same of some bytes whether they come whole, one at a time, or in
 * pieces of a size that the input chooses; and what it takes as one request is one by its length.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>

#include "tests/http/peer.h"

static void run(struct peer *p, const uint8_t *data, size_t size, size_t step)
{
	peer_init(p);
	peer_feed(p, data, size, step);
	peer_end(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 40000)
		return 0;
	size_t odd = (size_t)data[0] + 2;
	data++;
	size--;
	/* HTTP/2 has a target of its own. */
	if (size >= 24 && memcmp(data, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) == 0)
		return 0;
	const size_t steps[] = { odd, 1 };
	struct peer first, other;
	run(&first, data, size, HTTP_FEED_MAX);
	FUZZ_CHECK(first.closes == first.heads);
	FUZZ_CHECK(first.ends <= first.heads);
	size_t count = fuzz_thorough(data, size) ? 2 : 0;
	for (size_t i = 0; i < count; i++) {
		run(&other, data, size, steps[i]);
		FUZZ_CHECK(str_eq(buf_view(&first.log), buf_view(&other.log)));
		FUZZ_CHECK(str_eq(buf_view(&first.out), buf_view(&other.out)));
		peer_deinit(&other);
	}
	peer_deinit(&first);
	return 0;
}
