/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of lines is a stream of pairs (bytes of code, lines) to add to the pair before: a byte of
 * five bits and three; 255 and two compressed signed numbers; 0 at the end. Pairs are mostly in
 * order of the code, but javac may go back: a bytecode has the line of the nearest pair before it;
 * of several equally near ones, the last.
 *
 * Compressed numbers: up to five bytes of six bits and more, the last below 192. From 19 on no byte
 * is zero: each counts from one.
 *
 * Source: OpenJDK, oops/method.hpp (CompressedLineNumberReadStream), code/compressedStream.hpp,
 * utilities/unsigned5.hpp.
 */
#include "runtimes/runtimes.h"

#include "base/reader.h"

#define ESCAPE 0xff
#define LAST_BELOW 192
#define NO_ZEROS_FROM (19 << 8)

static uint32_t read_number(struct reader *r, unsigned base)
{
	uint32_t sum = 0;
	for (unsigned i = 0; i < 5; i++) {
		uint8_t byte = reader_u8(r);
		sum += (uint32_t)(byte - base) << 6 * i;
		if (byte < LAST_BELOW)
			break;
	}
	return sum;
}

static int64_t read_signed(struct reader *r, unsigned base)
{
	uint32_t n = read_number(r, base);
	return (int32_t)(n >> 1 ^ (0 - (n & 1)));
}

bool hotspot_line(uint16_t version, struct str table, uint32_t index, uint32_t *out_line)
{
	struct reader r = reader_over(table.p, table.len);
	unsigned base = version >= NO_ZEROS_FROM ? 1 : 0;
	int64_t at = 0, line = 0, best = -1, found = 0;
	while (!reader_done(&r)) {
		uint8_t first = reader_u8(&r);
		if (first == 0)
			break;
		if (first == ESCAPE) {
			at += read_signed(&r, base);
			line += read_signed(&r, base);
		} else {
			at += first >> 3;
			line += first & 7;
		}
		if (r.failed)
			break;
		if (at <= index && at >= best) {
			best = at;
			found = line;
		}
	}
	if (best < 0 || found <= 0 || found > UINT16_MAX)
		return false;
	*out_line = (uint32_t)found;
	return true;
}
