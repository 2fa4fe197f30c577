/* SPDX-License-Identifier: Apache-2.0 */
/* How: the dynamic linker lists its objects; a build id is a note in memory. */
#include "self/objects.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct finding {
	struct objects *o;
	struct profile *p;
	struct err *e;
	enum status s;
	bool first; /* the program itself */
};

static void find_build_id(const struct dl_phdr_info *d, char out[PROFILE_BUILD_ID_MAX])
{
	out[0] = 0;
	for (int i = 0; i < d->dlpi_phnum && !out[0]; i++) {
		const ElfW(Phdr) *h = &d->dlpi_phdr[i];
		const char *at = (const char *)(d->dlpi_addr + h->p_vaddr), *end = at + h->p_memsz;
		while (h->p_type == PT_NOTE && (size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *n = (const void *)at;
			size_t name = (n->n_namesz + 3u) & ~3u, desc = (n->n_descsz + 3u) & ~3u;
			at += sizeof(*n);
			if ((size_t)(end - at) < name + desc)
				break;
			const unsigned char *id = (const unsigned char *)at + name;
			if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
				memcmp(at, "GNU", 4) == 0 && 2 * n->n_descsz < PROFILE_BUILD_ID_MAX)
				for (size_t k = 0; k < n->n_descsz; k++)
					snprintf(out + 2 * k, 3, "%02x", id[k]);
			at += name + desc;
		}
	}
}

static enum status add(struct finding *f, const struct dl_phdr_info *d, const ElfW(Phdr) * h,
	struct str path, struct str build_id)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = d->dlpi_addr + h->p_vaddr;
	uint64_t below = start & (page - 1);
	struct object *o = &f->o->v[f->o->count];
	*o = (struct object){ .start = start - below, .limit = start + h->p_memsz };
	o->limit = (o->limit + page - 1) & ~(page - 1);
	struct profile_mapping m = {
		.start = o->start, .limit = o->limit, .offset = h->p_offset - below
	};
	enum status s = profile_add_string(f->p, path, &m.filename);
	if (s == OK)
		s = profile_add_build_id(f->p, build_id, &m.build_id);
	if (s == OK)
		s = profile_add_mapping(f->p, &m, &o->mapping);
	f->o->count += s == OK;
	return s;
}

static int take(struct dl_phdr_info *d, size_t size, void *ctx)
{
	struct finding *f = ctx;
	char id[PROFILE_BUILD_ID_MAX], own[4096] = "";
	(void)size;
	bool first = f->first;
	f->first = false;
	find_build_id(d, id);
	if (first) {
		ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
		own[n > 0 ? n : 0] = 0;
	}
	struct str path = str_of(first                             ? own
				 : d->dlpi_name && d->dlpi_name[0] ? d->dlpi_name
								   : "[vdso]");
	for (int i = 0; f->s == OK && i < d->dlpi_phnum && f->o->count < OBJECTS_MAX; i++)
		if (d->dlpi_phdr[i].p_type == PT_LOAD && (d->dlpi_phdr[i].p_flags & PF_X))
			f->s = add(f, d, &d->dlpi_phdr[i], path, str_of(id));
	return f->s != OK;
}

enum status objects_find(struct objects *o, struct profile *p, struct err *e)
{
	struct finding f = { .o = o, .p = p, .e = e, .first = true };
	o->count = 0;
	(void)dl_iterate_phdr(take, &f);
	return f.s == OK ? OK : err_set(e, f.s, "mappings");
}

const struct object *objects_of(const struct objects *o, uint64_t address)
{
	for (uint32_t i = 0; i < o->count; i++)
		if (address >= o->v[i].start && address < o->v[i].limit)
			return &o->v[i];
	return NULL;
}
