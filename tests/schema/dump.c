/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For schema_check.py. Without arguments: every file as a FileDescriptorProto, each behind its
 * length (4 bytes, little endian). With "decode MESSAGE" JSON on standard input becomes bytes, with
 * "encode MESSAGE" the other way round.
 */
#include "schema/schema.h"

#include <stdio.h>

static const struct pb_desc *find(const char *name)
{
	for (size_t i = 0; schema_files[i]; i++)
		for (size_t k = 0; k < schema_files[i]->message_count; k++)
			if (strcmp(schema_files[i]->messages[k]->name, name) == 0)
				return schema_files[i]->messages[k];
	return NULL;
}

static int dump(struct buf *out)
{
	for (size_t i = 0; schema_files[i]; i++) {
		size_t at = out->len;
		buf_u32(out, 0);
		pb_file_encode(schema_files[i], out);
		uint32_t len = (uint32_t)(out->len - at - 4);
		if (!out->failed)
			memcpy(out->data + at, &len, sizeof(len));
	}
	return 0;
}

/* Pairs of length and bytes on standard input, each answered by a length and bytes; a refusal is
 * 2^32 - 1. */
static int convert(const struct pb_desc *d, bool decodes, struct buf *out)
{
	static char in[1 << 20];
	uint32_t len;
	struct err e;
	while (fread(&len, 1, 4, stdin) == 4) {
		if (len > sizeof(in) || fread(in, 1, len, stdin) != len)
			return 2;
		CLEANUP(buf_deinit) struct buf one;
		buf_init(&one, 16 << 20);
		enum status s = decodes ? pb_json_decode(d, str_make(in, len), 0, &one, &e)
					: pb_json_encode(d, str_make(in, len), 0, &one, &e);
		buf_u32(out, s == OK ? (uint32_t)one.len : UINT32_MAX);
		if (s == OK)
			buf_str(out, buf_view(&one));
	}
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 256 << 20);
	const struct pb_desc *d = argc == 3 ? find(argv[2]) : NULL;
	if (argc != 1 && !d)
		return 2;
	int code = d ? convert(d, strcmp(argv[1], "decode") == 0, &out) : dump(&out);
	if (code == 0 &&
		(buf_status(&out) != OK || fwrite(out.data, 1, out.len, stdout) != out.len))
		return 2;
	return code;
}
