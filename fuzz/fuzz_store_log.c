/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log segment of hostile bytes: the cursor ends, records lie inside, and what batch_decode()
 * accepts is a sound profile whose encoding decodes to the same. manifest_parse() beside it: the
 * first byte says which. Checksums are all zero in this program.
 */
#include "fuzz/fuzz.h"

#include "codec/codec.h"
#include "store/log/batch.h"
#include "store/log/log.h"
#include "store/state/state.h"

#define PROFILE_BYTES ((size_t)16 << 20)

/* Instead of codec's. */
uint32_t codec_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	(void)crc, (void)bytes, (void)len;
	return 0;
}

static void try_batch(struct str payload)
{
	struct profile p, q;
	struct str tenant, again;
	struct buf b;
	FUZZ_CHECK(profile_init(&p, PROFILE_BYTES) == OK);
	if (batch_decode(payload, &p, &tenant, NULL) == OK) {
		FUZZ_CHECK(profile_validate(&p, NULL) == OK);
		buf_init(&b, PROFILE_BYTES);
		batch_encode(&b, tenant, &p);
		FUZZ_CHECK(buf_status(&b) == OK);
		FUZZ_CHECK(profile_init(&q, PROFILE_BYTES) == OK);
		FUZZ_CHECK(batch_decode(buf_view(&b), &q, &again, NULL) == OK);
		FUZZ_CHECK(q.samples.len == p.samples.len && str_eq(tenant, again));
		FUZZ_CHECK(q.stacks.len == p.stacks.len && q.locations.len == p.locations.len);
		profile_deinit(&q);
		buf_deinit(&b);
	}
	profile_deinit(&p);
}

static void try_segment(struct str bytes)
{
	struct log_cursor c;
	struct log_record r;
	struct buf scratch;
	if (log_cursor_open(bytes, "fuzz", &c, NULL) != OK)
		return;
	buf_init(&scratch, PROFILE_BYTES);
	size_t at = 0;
	for (enum log_event ev = LOG_EVENT_RECORD; ev != LOG_EVENT_END;) {
		ev = log_cursor_next(&c, &r);
		FUZZ_CHECK(c.at >= at && c.offset <= bytes.len);
		at = c.at;
		struct str payload;
		if (ev == LOG_EVENT_RECORD && log_payload(&r, &scratch, &payload, NULL) == OK)
			try_batch(payload);
	}
	buf_deinit(&scratch);
}

static void try_manifest(struct str bytes)
{
	struct manifest m;
	if (manifest_parse(bytes, &m, NULL) == OK)
		manifest_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct str bytes = str_make(data + 1, size - 1);
	if (data[0] % 3 == 0)
		try_segment(bytes);
	else if (data[0] % 3 == 1)
		try_batch(bytes);
	else
		try_manifest(bytes);
	return 0;
}
