/* SPDX-License-Identifier: Apache-2.0 */
/* "ffffffff81000000 T name\t[module]". Source: kernel/kallsyms.c, s_show(). */
#include "procfs/procfs.h"

static bool parse_line(struct str line, struct procfs_kallsym *out)
{
	size_t blank = str_index(line, ' ');
	if (blank > 16 || !str_parse_u64(str_sub(line, 0, blank), 16, &out->address))
		return false;
	struct str rest = str_sub(line, blank + 1, line.len);
	if (rest.len < 3 || rest.p[1] != ' ')
		return false;
	out->type = rest.p[0];
	rest = str_sub(rest, 2, rest.len);
	size_t tab = str_index(rest, '\t');
	out->name = str_sub(rest, 0, tab);
	out->module = str_sub(rest, tab + 1, rest.len);
	if (out->module.len >= 2 && out->module.p[0] == '[' &&
		out->module.p[out->module.len - 1] == ']')
		out->module = str_sub(out->module, 1, out->module.len - 2);
	return out->name.len > 0;
}

enum status procfs_kallsyms_parse(struct str text, procfs_kallsym_fn *fn, void *ctx, struct err *e)
{
	struct str line;
	for (uint32_t number = 1; str_split(&text, '\n', &line); number++) {
		struct procfs_kallsym s;
		if (!parse_line(line, &s))
			return err_set(e, E_INVALID, "kallsyms: line %u is malformed: \"%.*s\"",
				number, STR_ARG(str_sub(line, 0, 80)));
		if (!fn(ctx, &s))
			return OK;
	}
	return OK;
}
