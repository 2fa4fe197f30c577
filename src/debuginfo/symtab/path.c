/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/symtab/readers.h"

#include <stdio.h>
#include <string.h>

bool debuginfo_path_join(const char *dir, const char *path, char out[DEBUGINFO_SOURCE_PATH_MAX])
{
	char whole[DEBUGINFO_SOURCE_PATH_MAX];
	bool join = path[0] != '/' && dir && dir[0] == '/';
	size_t len = strlen(path) + (join ? strlen(dir) + 1 : 0), n = 0;
	if (len >= sizeof(whole))
		return false;
	snprintf(whole, sizeof(whole), "%s%s%s", join ? dir : "", join ? "/" : "", path);
	bool absolute = whole[0] == '/';
	struct str rest = str_of(whole), part;
	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_eq(part, STR(".")))
			continue;
		size_t last = str_rindex(str_make(out, n), '/');
		struct str name =
			last < n ? str_sub(str_make(out, n), last + 1, n) : str_make(out, n);
		if (str_eq(part, STR("..")) && absolute && n == 0)
			continue;
		if (str_eq(part, STR("..")) && n > 0 && !str_eq(name, STR(".."))) {
			n = last < n ? last : 0;
			continue;
		}
		if (absolute || n > 0)
			out[n++] = '/';
		memcpy(out + n, part.p, part.len);
		n += part.len;
	}
	out[n] = 0;
	return true;
}
