/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte says whether the rest is a tar, which is packed here, or the archive itself.
 * Property: a found text is no longer than the archive says it may be; else there is a sentence. */
#include "fuzz/fuzz.h"

#include "codec/codec.h"
#include "debuginfo/debuginfo.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf packed;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&packed, 4 << 20);
	buf_init(&out, 1 << 20);
	if (size < 1)
		return 0;
	if (data[0] & 1)
		buf_put(&packed, data + 1, size - 1);
	else if (codec_gzip(data + 1, size - 1, fuzz_thorough(data, size), &packed) != OK)
		return 0;
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("archive", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && ftruncate(fd, 0) == 0);
	FUZZ_CHECK(pwrite(fd, packed.data, packed.len, 0) == (ssize_t)packed.len);
	enum status s = debuginfo_archive_find(fd, STR("a"), NULL, NULL, &out, &e);
	FUZZ_CHECK(s == OK ? out.len <= out.max : e.text[0] != 0 && out.len == 0);
	return 0;
}
