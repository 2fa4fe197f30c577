/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records follow one another, each with the segment's salt and a checksum. If one cannot be read,
 * the next whole record is searched: the bytes before it are damaged. If there is none, the log
 * ends here.
 */
#include "store/log/log.h"

#include "base/reader.h"
#include "codec/codec.h"
#include "store/log/batch.h"

enum status log_cursor_open(
	struct str bytes, const char *name, struct log_cursor *out, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	if (bytes.len < LOG_HEADER_BYTES || memcmp(bytes.p, "FIRNWLOG", 8) != 0)
		return err_set(e, E_CORRUPT, "%s: no header of a log segment at +0", name);
	reader_skip(&r, 8);
	uint16_t major = reader_u16(&r);
	reader_skip(&r, 6);
	struct log_cursor c = { .bytes = bytes, .at = LOG_HEADER_BYTES };
	c.id = reader_u64(&r);
	c.salt = reader_u64(&r);
	c.store_id.lo = reader_u64(&r);
	c.store_id.hi = reader_u64(&r);
	c.size = reader_u64(&r);
	reader_skip(&r, 4);
	if (reader_u32(&r) != codec_crc32c(0, bytes.p, LOG_HEADER_BYTES - 4))
		return err_set(e, E_CORRUPT, "%s: checksum of the header at +0", name);
	if (major != 1)
		return err_set(e, E_UNSUPPORTED,
			"%s: log version %u was written by a newer firn; this one reads version 1",
			name, major);
	*out = c;
	return OK;
}

void log_cursor_salvage(struct str bytes, struct log_cursor *out)
{
	*out = (struct log_cursor){ .bytes = bytes, .at = LOG_HEADER_BYTES };
	if (bytes.len >= LOG_HEADER_BYTES + 16)
		memcpy(&out->salt, bytes.p + LOG_HEADER_BYTES + 8, 8);
}

/* A record at `at`, as far as magic and salt tell. */
static bool looks_like_record(const struct log_cursor *c, size_t at)
{
	const char *p = c->bytes.p + at;
	return c->bytes.len - at >= LOG_RECORD_HEADER_BYTES && memcmp(p, "FREC", 4) == 0 &&
	       memcmp(p + 8, &c->salt, 8) == 0;
}

/* Reads a record with any salt; `salt_differs` says whether it is another segment life's. */
static bool read_record(
	const struct log_cursor *c, size_t at, struct log_record *out, bool *salt_differs)
{
	if (c->bytes.len - at < LOG_RECORD_HEADER_BYTES || memcmp(c->bytes.p + at, "FREC", 4) != 0)
		return false;
	*salt_differs = memcmp(c->bytes.p + at + 8, &c->salt, 8) != 0;
	struct reader r = reader_over(c->bytes.p + at, c->bytes.len - at);
	reader_skip(&r, 4);
	uint32_t crc = reader_u32(&r);
	reader_skip(&r, 8);
	struct log_record rec = { .sequence = reader_u64(&r) };
	rec.arrived_ns = reader_i64(&r);
	rec.batch_id.lo = reader_u64(&r);
	rec.batch_id.hi = reader_u64(&r);
	uint32_t stored = reader_u32(&r);
	rec.raw_len = reader_u32(&r);
	rec.kind = reader_u8(&r);
	rec.coding = reader_u8(&r);
	reader_skip(&r, 6);
	rec.payload = reader_str(&r, stored);
	if (r.failed)
		return false;
	size_t checked = LOG_RECORD_HEADER_BYTES - 8 + (size_t)stored;
	if (codec_crc32c(0, c->bytes.p + at + 8, checked) != crc)
		return false;
	*out = rec;
	return true;
}

static bool parse_record(const struct log_cursor *c, size_t at, struct log_record *out)
{
	bool differs;
	return looks_like_record(c, at) && read_record(c, at, out, &differs) && !differs &&
	       out->sequence > c->sequence;
}

/* For a place without a valid record: is it the end, or does a torn record begin here? Magic or
 * salt is enough for that, unless it is a whole record of the segment's former life. */
static bool looks_torn(const struct log_cursor *c, size_t at)
{
	struct log_record rec;
	bool differs;
	size_t left = c->bytes.len - at;
	bool magic = left >= 4 && memcmp(c->bytes.p + at, "FREC", 4) == 0;
	bool salt = left >= 16 && memcmp(c->bytes.p + at + 8, &c->salt, 8) == 0;
	return (magic || salt) && !(read_record(c, at, &rec, &differs) && differs);
}

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

enum log_event log_cursor_next(struct log_cursor *c, struct log_record *out)
{
	struct log_record rec;
	if (c->at >= c->bytes.len)
		return LOG_EVENT_END;
	if (parse_record(c, c->at, &rec)) {
		c->offset = c->at;
		c->length = LOG_RECORD_HEADER_BYTES + rec.payload.len;
		c->at += align8(c->length);
		c->sequence = rec.sequence;
		*out = rec;
		return LOG_EVENT_RECORD;
	}
	for (size_t at = c->at + 8; at < c->bytes.len; at += 8) {
		if (!parse_record(c, at, &rec))
			continue;
		c->offset = c->at;
		c->length = at - c->at;
		c->at = at;
		return LOG_EVENT_DAMAGE;
	}
	bool torn = looks_torn(c, c->at);
	c->offset = c->at;
	c->length = c->bytes.len - c->at;
	c->at = c->bytes.len;
	return torn ? LOG_EVENT_TORN : LOG_EVENT_END;
}

enum status log_payload(
	const struct log_record *r, struct buf *out, struct str *payload, struct err *e)
{
	if (r->coding == LOG_CODING_NONE) {
		*payload = r->payload;
		return OK;
	}
	if (r->coding != LOG_CODING_ZSTD)
		return err_set(e, E_UNSUPPORTED, "record %llu: payload coding %u",
			(unsigned long long)r->sequence, r->coding);
	if (r->raw_len > BATCH_BYTES_MAX)
		return err_set(e, E_CORRUPT, "record %llu: a payload of %u bytes",
			(unsigned long long)r->sequence, r->raw_len);
	buf_clear(out);
	uint8_t *p = buf_extend(out, r->raw_len);
	if (!p)
		return err_set(e, buf_status(out), "record %llu: no memory for %u bytes",
			(unsigned long long)r->sequence, r->raw_len);
	enum status s = codec_zstd_decompress_exact(r->payload.p, r->payload.len, p, r->raw_len, e);
	*payload = str_make(p, r->raw_len);
	return s;
}
