/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's rules: any text is a rule, whose pieces lie in the text, or a sentence. */
#include "fuzz/fuzz.h"

#include "store/store.h"

static void inside(struct str piece, const uint8_t *data, size_t len)
{
	if (piece.len)
		FUZZ_CHECK(piece.p >= (const char *)data &&
			   piece.p + piece.len <= (const char *)data + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct store_retention_rule r;
	struct store_thin_rule t;
	struct err e = { 0 };
	struct str text = str_make(data, len);
	if (store_retention_parse(text, &r, &e) == OK) {
		FUZZ_CHECK(r.has_tenant || r.has_type);
		inside(r.tenant, data, len);
		inside(r.type, data, len);
	} else {
		FUZZ_CHECK(e.text[0]);
	}
	e.text[0] = 0;
	if (store_thin_parse(text, &t, &e) == OK) {
		for (size_t i = 0; i < t.name_count; i++)
			inside(t.names[i], data, len);
	} else {
		FUZZ_CHECK(e.text[0]);
	}
	return 0;
}
