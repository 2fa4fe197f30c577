/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts are kept for each thread: making one costs more than a small block. */
#include "codec/codec.h"

#include <pthread.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* A frame whose window is larger than this is refused: it bounds the decoder's own memory. */
#define WINDOW_LOG_MAX 27
#define STREAM_STEP_BYTES ((size_t)256 << 10)

struct contexts {
	ZSTD_CCtx *compress;
	ZSTD_DCtx *decompress;
};

static pthread_key_t contexts_key;
static pthread_once_t contexts_once = PTHREAD_ONCE_INIT;

static void contexts_free(void *p)
{
	struct contexts *c = p;
	ZSTD_freeCCtx(c->compress);
	ZSTD_freeDCtx(c->decompress);
	free(c);
}

static void contexts_init(void)
{
	int rc = pthread_key_create(&contexts_key, contexts_free);
	assert(rc == 0);
}

/* This thread's contexts, or NULL when there is no memory. */
static struct contexts *contexts_get(void)
{
	pthread_once(&contexts_once, contexts_init);
	struct contexts *c = pthread_getspecific(contexts_key);
	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->compress = ZSTD_createCCtx();
	c->decompress = ZSTD_createDCtx();
	if (!c->compress || !c->decompress || pthread_setspecific(contexts_key, c)) {
		contexts_free(c);
		return NULL;
	}
	ZSTD_DCtx_setParameter(c->decompress, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	return c;
}

static enum status status_of(size_t rc)
{
	return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? E_NOMEM : E_CORRUPT;
}

enum status codec_zstd_compress(const void *bytes, size_t len, int level, struct buf *out)
{
	struct contexts *c = contexts_get();
	size_t bound = ZSTD_compressBound(len);
	uint8_t *p = c ? buf_reserve(out, bound) : NULL;
	if (!p)
		return c ? buf_status(out) : E_NOMEM;
	size_t n = ZSTD_compressCCtx(c->compress, p, bound, bytes, len, level);
	if (ZSTD_isError(n))
		return E_NOMEM; /* there is room for the worst case, so nothing but memory can be
				   missing */
	out->len += n;
	return OK;
}

static enum status decompress_step(
	ZSTD_DCtx *d, ZSTD_inBuffer *in, struct buf *out, size_t *out_hint, struct err *e)
{
	size_t room = MIN(out->max - out->len, STREAM_STEP_BYTES);
	uint8_t extra;
	uint8_t *p = room ? buf_reserve(out, room) : &extra;
	if (!p)
		return err_set(e, buf_status(out), "zstd: out of memory");
	ZSTD_outBuffer o = { p, room ? room : 1, 0 };
	size_t rc = ZSTD_decompressStream(d, &o, in);
	if (ZSTD_isError(rc))
		return err_set(
			e, status_of(rc), "zstd: %s at +%zu", ZSTD_getErrorName(rc), in->pos);
	if (!room && o.pos)
		return err_set(e, E_LIMIT, "zstd: more than %zu bytes", out->max);
	if (room)
		out->len += o.pos;
	else if (in->pos == in->size && rc)
		return err_set(e, E_CORRUPT, "zstd: cut short");
	if (in->pos == in->size && rc && o.pos < o.size)
		return err_set(e, E_CORRUPT, "zstd: cut short at +%zu", in->pos);
	*out_hint = rc;
	return OK;
}

enum status codec_zstd_decompress(const void *bytes, size_t len, struct buf *out, struct err *e)
{
	struct contexts *c = contexts_get();
	if (!c)
		return err_set(e, E_NOMEM, "zstd");
	ZSTD_DCtx_reset(c->decompress, ZSTD_reset_session_only);
	ZSTD_inBuffer in = { bytes, len, 0 };
	size_t hint = len == 0;
	if (hint)
		return err_set(e, E_CORRUPT, "zstd: no bytes");
	/* hint is 0 when a frame is complete; further frames may follow. */
	do {
		enum status s = decompress_step(c->decompress, &in, out, &hint, e);
		if (s != OK)
			return s;
	} while (hint || in.pos < in.size);
	return OK;
}

enum status codec_zstd_decompress_exact(
	const void *bytes, size_t len, void *out, size_t out_len, struct err *e)
{
	struct contexts *c = contexts_get();
	if (!c)
		return err_set(e, E_NOMEM, "zstd");
	ZSTD_DCtx_reset(c->decompress, ZSTD_reset_session_only);
	size_t n = ZSTD_decompressDCtx(c->decompress, out, out_len, bytes, len);
	if (ZSTD_isError(n))
		return err_set(e, status_of(n), "zstd: %s", ZSTD_getErrorName(n));
	if (n != out_len)
		return err_set(e, E_CORRUPT, "zstd: %zu bytes, expected %zu", n, out_len);
	return OK;
}
