/* SPDX-License-Identifier: Apache-2.0 */
/* Property: an answer gives targets with an address that a URL may have, or is refused with a
 * sentence. The first byte chooses the type. */
#include "fuzz/fuzz.h"

#include "scrape/discover/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int types[] = { 33, 1, 28, 15, 2 };
	CLEANUP(discover_found_deinit) struct discover_found f;
	struct err e = { 0 };
	discover_found_init(&f);
	if (!size)
		return 0;
	enum status s = dns_answer_parse(str_make(data + 1, size - 1), STR("name"),
		types[data[0] % ARRAY_COUNT(types)], 80, &f, &e);
	FUZZ_CHECK(s == OK || e.text[0]);
	for (size_t i = 0; i < f.targets.len; i++)
		for (const char *p = f.targets.v[i].address; *p; p++)
			FUZZ_CHECK(*p > ' ' && *p <= '~' && *p != '/' && *p != '@');
	return 0;
}
