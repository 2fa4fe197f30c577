/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For schema_check.py. Without arguments: every file as a FileDescriptorProto, each behind its
 * length (4 bytes, little endian). With "decode" JSON on standard input becomes bytes, with
 * "encode" the other way round.
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

enum { PIECE_MAX = 1 << 20 };

/* A length and bytes; *end: nothing more comes. */
static bool read_piece(char *out, uint32_t *len, bool *end)
{
	*end = fread(len, 1, 4, stdin) != 4;
	return *end || (*len < PIECE_MAX && fread(out, 1, *len, stdin) == *len);
}

/* On standard input pairs of a message's name and what it holds, each answered by a length and
 * bytes; a refusal is 2^32 - 1. */
static int convert(bool decodes, struct buf *out)
{
	static char name[PIECE_MAX], in[PIECE_MAX];
	uint32_t len;
	bool end;
	struct err e;
	while (read_piece(name, &len, &end) && !end) {
		name[len] = 0;
		const struct pb_desc *d = find(name);
		if (!d || !read_piece(in, &len, &end) || end)
			return 2;
		CLEANUP(buf_deinit) struct buf one;
		buf_init(&one, 16 << 20);
		enum status s = decodes ? pb_json_decode(d, str_make(in, len), 0, &one, &e)
					: pb_json_encode(d, str_make(in, len), 0, &one, &e);
		buf_u32(out, s == OK ? (uint32_t)one.len : UINT32_MAX);
		if (s == OK)
			buf_str(out, buf_view(&one));
	}
	return end ? 0 : 2;
}

int main(int argc, char **argv)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 256 << 20);
	if (argc > 2)
		return 2;
	int code = argc == 2 ? convert(strcmp(argv[1], "decode") == 0, &out) : dump(&out);
	if (code == 0 &&
		(buf_status(&out) != OK || fwrite(out.data, 1, out.len, stdout) != out.len))
		return 2;
	return code;
}
