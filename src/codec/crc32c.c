/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With SSE 4.2 its instruction is used, eight bytes at a time; else tables, "slicing by 8" (M.
 * Kounavis, F. Berry, 2005). The choice is made once, by cpuid.
 */
#include "codec/codec.h"

#include "base/reader.h"

#include <pthread.h>

#define POLYNOMIAL 0x82F63B78u /* 0x1EDC6F41, bits reversed */

static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? (c >> 1) ^ POLYNOMIAL : c >> 1;
		tables[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xFF];
}

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t len)
{
	pthread_once(&tables_once, make_tables);
	for (; len >= 8; len -= 8, p += 8) {
		uint64_t v;
		memcpy(&v, p, sizeof(v));
		v ^= crc;
		crc = 0;
		for (int i = 0; i < 8; i++)
			crc ^= tables[7 - i][(v >> (8 * i)) & 0xFF];
	}
	for (; len; len--, p++)
		crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xFF];
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t c = crc;
	for (; len >= 8; len -= 8, p += 8) {
		uint64_t v;
		memcpy(&v, p, sizeof(v));
		c = __builtin_ia32_crc32di(c, v);
	}
	crc = (uint32_t)c;
	for (; len; len--, p++)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}
#endif

uint32_t codec_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	if (len == 0)
		return crc;
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~by_instruction(~crc, bytes, len);
#endif
	return ~by_table(~crc, bytes, len);
}

/* For the test: the other implementation. */
uint32_t codec_crc32c_portable(uint32_t crc, const void *bytes, size_t len);
uint32_t codec_crc32c_portable(uint32_t crc, const void *bytes, size_t len)
{
	return ~by_table(~crc, bytes, len);
}
