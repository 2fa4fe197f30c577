/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.c and adhoc.c only: files that people keep on this server, each of one tenant. Together
 * they have at most SHARED_…_MAX of kept.c; above that the oldest go. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "server/request/state.h"

/* PROFILE: a gzipped profile.proto, which may expire. UPLOAD: any bytes, with a name. */
enum kept_kind { KEPT_PROFILE, KEPT_UPLOAD };
#define KEPT_FILE_MAX ((size_t)64 << 20)
#define KEPT_NAME_MAX 64 /* letters, digits, '.', '-', '_' */
#define KEPT_LETTERS 22  /* random ones */
#define KEPT_END_LETTERS 6
/* The random letters, then the letters of the end or "-NAME", and a NUL. */
#define KEPT_ID_BYTES (KEPT_LETTERS + 1 + KEPT_NAME_MAX + 1)

struct kept {
	char id[KEPT_ID_BYTES];
	int64_t time_ns; /* when it came */
};
/* The name of an upload, which its id ends with. */
static inline struct str kept_name(struct str id)
{
	return str_sub(id, KEPT_LETTERS + 1, id.len);
}
/* end_ns: when it expires; 0: never. An upload never does. */
NODISCARD enum status kept_put(struct server *s, struct str tenant, enum kept_kind kind,
	struct str name, struct str bytes, int64_t end_ns, struct kept *out, struct err *e);
/* Appended to `out`. E_NOTFOUND: no such file, or its end has come. */
NODISCARD enum status kept_get(const struct server *s, struct str tenant, enum kept_kind kind,
	struct str id, struct buf *out, int64_t *out_time_ns, struct err *e);
/* All of a tenant, the youngest first. */
NODISCARD enum status kept_list(const struct server *s, struct str tenant, enum kept_kind kind,
	struct arena *a, struct kept **out, size_t *out_count, struct err *e);
