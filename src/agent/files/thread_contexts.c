/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings say whether there is a context, and whose C library the process has; then the files
 * of its code are asked (code_files.h).
 */
#include "agent/files/thread_contexts.h"

#include "runtimes/runtimes.h"

static bool is_context(struct str path)
{
	return str_eq(path, STR("[anon_shmem:OTEL_CTX]")) || str_eq(path, STR("[anon:OTEL_CTX]")) ||
	       str_starts(path, STR("/memfd:OTEL_CTX"));
}

static void look(void *ctx, const struct procfs_map *m)
{
	struct thread_contexts_found *out = ctx;
	size_t slash = str_rindex(m->path, '/');
	if (!out->head && is_context(m->path))
		out->head = m->start;
	out->place.is_musl |= m->exec && slash < m->path.len &&
			      str_starts(str_sub(m->path, slash + 1, m->path.len), STR("ld-musl-"));
}

static bool is_wanted(void *ctx)
{
	return ((const struct thread_contexts_found *)ctx)->head != 0;
}

static bool ask(void *ctx, const struct objfile *obj, uint64_t bias)
{
	struct thread_context_place *out = &((struct thread_contexts_found *)ctx)->place;
	struct runtimes_thread_context found;
	if (!runtimes_thread_context(obj, &found))
		return false;
	out->form = found.form;
	out->at = found.at;
	if (found.form != THREAD_CONTEXT_FIXED)
		out->at += bias;
	return true;
}

enum status thread_contexts_find(
	struct code_files_memory *known, int pid, struct thread_contexts_found *out)
{
	const struct code_files_asked asked = { look, ask, is_wanted, out, 1 };
	uint32_t count;
	*out = (struct thread_contexts_found){ .place.process_start_ns =
						       out->place.process_start_ns };
	return code_files_each(known, pid, &asked, &count);
}
