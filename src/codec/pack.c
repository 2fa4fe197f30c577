/* SPDX-License-Identifier: Apache-2.0 */
/* One gzip member, made as its bytes come. */
#include "codec/codec.h"

#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW_BITS (15 + 16) /* zlib: with gzip's header */
#define MEMORY_LEVEL 8
#define STEP_BYTES ((size_t)64 << 10)
#define IN_MAX ((size_t)1 << 30)

struct codec_pack {
	z_stream gzip;
	bool ended;
};

enum status codec_pack_new(int level, struct codec_pack **out)
{
	struct codec_pack *p = calloc(1, sizeof(*p));
	if (!p)
		return E_NOMEM;
	if (deflateInit2(&p->gzip, level, Z_DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL,
		    Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return E_NOMEM;
	}
	*out = p;
	return OK;
}

void codec_pack_free(struct codec_pack *p)
{
	if (!p)
		return;
	(void)deflateEnd(&p->gzip);
	free(p);
}

enum status codec_pack_step(struct codec_pack *p, struct str in, bool last, struct buf *out)
{
	assert(!p->ended);
	do {
		size_t taken = MIN(in.len, IN_MAX);
		bool finish = last && taken == in.len;
		uint8_t *to = buf_reserve(out, STEP_BYTES);
		if (!to)
			return buf_status(out);
		p->gzip.next_in = (Bytef *)(uintptr_t)in.p;
		p->gzip.avail_in = (uInt)taken;
		p->gzip.next_out = to;
		p->gzip.avail_out = STEP_BYTES;
		int rc = deflate(&p->gzip, finish ? Z_FINISH : Z_NO_FLUSH);
		assert(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
		out->len += STEP_BYTES - p->gzip.avail_out;
		in = str_sub(in, taken - p->gzip.avail_in, in.len);
		p->ended = rc == Z_STREAM_END;
	} while (in.len || p->gzip.avail_out == 0 || (last && !p->ended));
	return OK;
}
