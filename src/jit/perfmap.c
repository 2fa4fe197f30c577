/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read line by line. Runtimes write from several threads, and some lines are mixed up:
 * a line without the right form is counted and skipped.
 */
#include "jit/map.h"

/* Takes a hexadecimal number up to a blank. */
static bool take_hex(struct str *line, uint64_t *out)
{
	struct str part;
	if (!str_split(line, ' ', &part))
		return false;
	if (str_starts(part, STR("0x")) || str_starts(part, STR("0X"))) /* JDK 25 */
		part = str_sub(part, 2, part.len);
	return str_parse_u64(part, 16, out);
}

static void read_line(struct jit_map *m, struct str line, uint64_t since_ns)
{
	struct jit_code c = { .since_ns = since_ns };
	bool is_code = line.len <= JIT_PERFMAP_LINE_MAX && take_hex(&line, &c.start) &&
		       take_hex(&line, &c.size);
	c.name = str_trim(line);
	if (is_code)
		jit_map_add(m, &c);
	else
		jit_map_add_bad(m);
}

size_t jit_perfmap_read(struct jit_map *m, struct str text, uint64_t since_ns)
{
	size_t done = 0;
	while (done < text.len) {
		struct str rest = str_sub(text, done, text.len);
		size_t end = str_index(rest, '\n');
		if (end == rest.len && end <= JIT_PERFMAP_LINE_MAX)
			break; /* the rest of the line comes later */
		if (end > 0)
			read_line(m, str_sub(rest, 0, end), since_ns);
		done += MIN(end + 1, rest.len);
	}
	return done;
}
