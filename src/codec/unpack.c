/* SPDX-License-Identifier: Apache-2.0 */
/* A stream is one or several gzip members or zstd frames; between two of them it may end. */
#include "codec/codec.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* A larger window is refused: it is the decoder's own memory. What zstd's levels up to 19 and Go's
 * encoder write needs 8 MiB. */
#define WINDOW_LOG_MAX 25
#define GZIP_WINDOW_BITS (15 + 16) /* zlib: with gzip's header */

struct codec_unpack {
	bool is_zstd;
	bool between; /* at the end of a member or frame */
	ZSTD_DCtx *zstd;
	z_stream gzip;
};

enum status codec_unpack_new(struct str begin, struct codec_unpack **out, struct err *e)
{
	static const char zstd_magic[] = "\x28\xb5\x2f\xfd";
	struct codec_unpack *u = calloc(1, sizeof(*u));
	bool good = u != NULL;
	if (good && str_starts(begin, str_make(zstd_magic, 4))) {
		u->is_zstd = true;
		u->zstd = ZSTD_createDCtx();
		good = u->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(
					  u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX));
	} else if (good && codec_is_gzip(begin.p, begin.len)) {
		good = inflateInit2(&u->gzip, GZIP_WINDOW_BITS) == Z_OK;
	} else if (good) {
		free(u);
		return err_set(e, E_INVALID, "neither gzip nor zstd");
	}
	if (!good) {
		codec_unpack_free(u);
		return err_set(e, E_NOMEM, "decompression");
	}
	*out = u;
	return OK;
}

void codec_unpack_free(struct codec_unpack *u)
{
	if (!u)
		return;
	if (u->is_zstd)
		ZSTD_freeDCtx(u->zstd);
	else
		(void)inflateEnd(&u->gzip);
	free(u);
}

static enum status step_zstd(struct codec_unpack *u, struct str *io_in, void *to, size_t room,
	size_t *out_len, struct err *e)
{
	ZSTD_inBuffer in = { io_in->p, io_in->len, 0 };
	ZSTD_outBuffer out = { to, room, 0 };
	size_t rc = ZSTD_decompressStream(u->zstd, &out, &in);
	if (ZSTD_isError(rc))
		return err_set(e, E_INVALID, "zstd: %s", ZSTD_getErrorName(rc));
	/* rc is 0 when a frame is complete, and also if this is called again before the next frame
	 * begins. */
	if (in.pos || out.pos)
		u->between = rc == 0;
	*io_in = str_sub(*io_in, in.pos, io_in->len);
	*out_len = out.pos;
	return OK;
}

static enum status step_gzip(struct codec_unpack *u, struct str *io_in, void *to, size_t room,
	size_t *out_len, struct err *e)
{
	if (u->between && io_in->len) {
		if (inflateReset(&u->gzip) != Z_OK)
			return err_set(e, E_INVALID, "gzip: damaged");
		u->between = false;
	}
	size_t taken = MIN(io_in->len, (size_t)1 << 30);
	u->gzip.next_in = (Bytef *)(uintptr_t)io_in->p;
	u->gzip.avail_in = (uInt)taken;
	u->gzip.next_out = (Bytef *)to;
	u->gzip.avail_out = (uInt)MIN(room, (size_t)1 << 30);
	size_t had = u->gzip.avail_out;
	int rc = u->between ? Z_BUF_ERROR : inflate(&u->gzip, Z_NO_FLUSH);
	if (rc == Z_MEM_ERROR)
		return err_set(e, E_NOMEM, "gzip");
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return err_set(e, E_INVALID, "gzip: %s", u->gzip.msg ? u->gzip.msg : "damaged");
	u->between |= rc == Z_STREAM_END;
	*io_in = str_sub(*io_in, taken - u->gzip.avail_in, io_in->len);
	*out_len = had - u->gzip.avail_out;
	return OK;
}

enum status codec_unpack_step(struct codec_unpack *u, struct str *io_in, void *to, size_t room,
	size_t *out_len, struct err *e)
{
	return u->is_zstd ? step_zstd(u, io_in, to, room, out_len, e)
			  : step_gzip(u, io_in, to, room, out_len, e);
}

bool codec_unpack_may_end(const struct codec_unpack *u)
{
	return u->between;
}
