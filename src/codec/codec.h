/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: checksums and compression of whole blocks, bytes in and bytes out.
 *
 * Layer 1 (may use base). Every decompressor has a limit on its output, where a decompression bomb
 * ends with E_LIMIT.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* CRC-32C (Castagnoli), as iSCSI and ext4: crc of "123456789" is 0xE3069283. Continue with the
 * previous result as `crc`, 0 to begin. */
uint32_t codec_crc32c(uint32_t crc, const void *bytes, size_t len);

/* zstd frames; the content size is in the frame. `out` is appended to; its max is the limit. */
NODISCARD enum status codec_zstd_compress(
	const void *bytes, size_t len, int level, struct buf *out);
NODISCARD enum status codec_zstd_decompress(
	const void *bytes, size_t len, struct buf *out, struct err *e);
/* Into exactly `out_len` bytes; E_CORRUPT when the frame holds more or fewer. */
NODISCARD enum status codec_zstd_decompress_exact(
	const void *bytes, size_t len, void *out, size_t out_len, struct err *e);

/* LZ4 frames (lz4_Frame_format.md 1.6), as Arrow's LZ4_FRAME: one frame written, with its content's
 * size; one or several frames read. `out` is appended to; its max is the limit. */
NODISCARD enum status codec_lz4_compress(const void *bytes, size_t len, struct buf *out);
NODISCARD enum status codec_lz4_decompress(
	const void *bytes, size_t len, struct buf *out, struct err *e);
/* Into exactly `out_len` bytes; E_CORRUPT when the frames hold more or fewer. */
NODISCARD enum status codec_lz4_decompress_exact(
	const void *bytes, size_t len, void *out, size_t out_len, struct err *e);

/* One LZ4 block (lz4_Block_format.md 1.6.4) without a length: for data that stays in this process.
 * `out` is appended to. E_LIMIT, E_NOMEM. */
NODISCARD enum status codec_lz4_block_compress(const void *bytes, size_t len, struct buf *out);
NODISCARD enum status codec_lz4_block_decompress_exact(
	const void *bytes, size_t len, void *out, size_t out_len, struct err *e);

/* gzip (RFC 1952): one member written; one or several members read. */
NODISCARD enum status codec_gzip(const void *bytes, size_t len, int level, struct buf *out);
NODISCARD enum status codec_gunzip(const void *bytes, size_t len, struct buf *out, struct err *e);
bool codec_is_gzip(const void *bytes, size_t len);

/* ---- long data, piece by piece ---- */

struct codec_unpack;
/* Chooses gzip or zstd by the first bytes (four are enough); E_INVALID for anything else. */
NODISCARD enum status codec_unpack_new(struct str begin, struct codec_unpack **out, struct err *e);
void codec_unpack_free(struct codec_unpack *u); /* NULL is fine */
/* Takes the input that it needs off the front of *io_in, and writes up to `room` bytes. If *out_len
 * is 0 and *io_in is empty, it needs more input. E_INVALID: damaged. */
NODISCARD enum status codec_unpack_step(struct codec_unpack *u, struct str *io_in, void *to,
	size_t room, size_t *out_len, struct err *e);
/* False: the input so far is not complete. */
bool codec_unpack_may_end(const struct codec_unpack *u);

struct codec_pack;
/* One gzip member. E_NOMEM. */
NODISCARD enum status codec_pack_new(int level, struct codec_pack **out);
void codec_pack_free(struct codec_pack *p); /* NULL is fine */
/* Appends the output that is ready to `out`; after the last step all of it. E_LIMIT, E_NOMEM: from
 * `out`; the rest is lost. */
NODISCARD enum status codec_pack_step(
	struct codec_pack *p, struct str in, bool last, struct buf *out);
