/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever the decoders of Parca's Arrow schemas take is a sound profile; what they
 * refuse they say why, and leave no samples. The first byte is the schema, the next two where the
 * second message of schema v1 begins.
 */
#include "fuzz/fuzz.h"

#include "parca/parca.h"

#define LIMIT ((size_t)8 << 20)

static enum status decode_v1(struct str first, struct str second, struct profile *p, struct err *e)
{
	struct parca_arrow_stats stats = { 0 };
	struct parca_session *session;
	struct buf question;
	bool any;
	FUZZ_CHECK(parca_session_new(LIMIT, p, &stats, &session) == OK);
	buf_init(&question, LIMIT);
	enum status s = parca_session_samples(session, first, e);
	FUZZ_CHECK(p->samples.len == 0);
	if (s == OK)
		s = parca_session_ask(session, &question, &any, e);
	if (s == OK && any)
		s = parca_session_stacks(session, second, e);
	if (s == OK)
		s = parca_session_finish(session, e);
	parca_session_free(session);
	buf_deinit(&question);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct parca_arrow_stats stats = { 0 };
	struct err e = { 0 };
	if (size < 3)
		return 0;
	size_t cut = (size_t)(data[1] | data[2] << 8);
	struct str bytes = str_make(data + 3, size - 3);
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	enum status s = data[0] & 1 ? decode_v1(str_sub(bytes, 0, cut),
					      str_sub(bytes, cut, bytes.len), &p, &e)
				    : parca_arrow_decode(bytes, LIMIT, &p, &stats, &e);
	FUZZ_CHECK(profile_validate(&p, NULL) == OK);
	FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
	FUZZ_CHECK(s != E_CORRUPT);
	profile_deinit(&p);
	return 0;
}
