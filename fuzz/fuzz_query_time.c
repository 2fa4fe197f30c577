/* SPDX-License-Identifier: Apache-2.0 */
/* Property: an accepted time lies between 1970 and 2262; an accepted duration, written again, reads
 * back equal; what is refused gets a sentence. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "base/units.h"
#include "query/query.h"

#define NOW (1767323045 * NS_PER_SEC)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_make(data, size);
	struct err e = { 0 };
	int64_t ns = -1, again = -1;
	uint64_t bytes = 0, bytes_again = 0;
	char form[UNITS_TEXT_MAX];
	for (unsigned flags = 0; flags <= (QUERY_TIME_END | QUERY_TIME_LOCAL); flags++) {
		ns = -1;
		if (query_parse_time(text, NOW, flags, &ns, &e) == OK)
			FUZZ_CHECK(ns >= 0);
		else
			FUZZ_CHECK(e.text[0] && ns == -1);
	}
	if (query_parse_duration(text, &ns, NULL) == OK) {
		FUZZ_CHECK(ns >= 0);
		FUZZ_CHECK(query_parse_duration(
				   str_of(units_format_duration(ns, form)), &again, NULL) == OK);
		FUZZ_CHECK(again == ns);
	}
	if (units_parse_bytes(text, &bytes, NULL) == OK) {
		FUZZ_CHECK(units_parse_bytes(str_of(units_format_bytes(bytes, form)), &bytes_again,
				   NULL) == OK);
		FUZZ_CHECK(bytes_again == bytes);
	}
	return 0;
}
