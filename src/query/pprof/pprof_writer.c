/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: samples are encoded one by one, so that no second list of them is in memory, and the bytes
 * of a large profile are compressed while they are written. A small profile is compressed in one
 * piece, which is faster.
 */
#include "query/pprof/pprof_writer.h"
#include "query/plan/plan.h"

#include "codec/codec.h"

/* Bytes of uncompressed profile.proto that are kept before compression begins. */
#define PLAIN_BYTES ((size_t)4 << 20)
/* The most uncompressed bytes at once: of one sample, or of the tables, which follow the samples.
 */
#define PLAIN_BYTES_MAX ((size_t)1 << 30)
#define GZIP_LEVEL 3
#define STOP_EVERY 4096 /* samples */

void query_pprof_writer_deinit(struct query_pprof_writer *w)
{
	pprof_stream_free(w->stream);
	codec_pack_free(w->pack);
	buf_deinit(&w->plain);
}

enum status query_pprof_begin(struct query_pprof_writer *w, const struct query_plan *plan,
	const struct profile *tables, const uint32_t *types, uint32_t type_count, struct buf *out,
	struct err *e)
{
	*w = (struct query_pprof_writer){ .plan = plan, .out = out };
	buf_init(&w->plain, PLAIN_BYTES_MAX);
	if (pprof_stream_new(tables, types, type_count, &w->stream) != OK)
		return err_set(e, E_NOMEM, "a profile");
	pprof_stream_types(w->stream, &w->plain);
	return OK;
}

/* Compresses the bytes written so far. */
static enum status drain(struct query_pprof_writer *w, bool last, struct err *e)
{
	enum status s = buf_status(&w->plain);
	if (s == OK && last && !w->pack)
		s = codec_gzip(w->plain.data, w->plain.len, GZIP_LEVEL, w->out);
	else if (s == OK && (last || w->plain.len >= PLAIN_BYTES)) {
		if (!w->pack)
			s = codec_pack_new(GZIP_LEVEL, &w->pack);
		if (s == OK)
			s = codec_pack_step(w->pack, buf_view(&w->plain), last, w->out);
		buf_clear(&w->plain);
	} else if (s == OK) {
		return OK;
	}
	if (s != OK)
		return err_set(e, s, "a profile of more than %zu bytes", w->out->len);
	return query_count(w->plan, w->plain.cap + w->out->cap, e);
}

enum status query_pprof_sample(struct query_pprof_writer *w, const uint32_t *locations,
	uint32_t count, const int64_t *values, uint32_t labels, struct err *e)
{
	enum status s = OK;
	pprof_stream_sample(w->stream, locations, count, values, labels, &w->plain);
	if (w->samples++ % STOP_EVERY == 0)
		s = samples_stopped(&w->plan->store, e);
	return s == OK ? drain(w, false, e) : s;
}

enum status query_pprof_end(struct query_pprof_writer *w, int64_t time_ns, int64_t duration_ns,
	int64_t period, struct err *e)
{
	pprof_stream_tables(w->stream, time_ns, duration_ns, period, &w->plain);
	enum status s = pprof_stream_status(w->stream);
	return s == OK ? drain(w, true, e) : err_set(e, s, "a profile");
}
