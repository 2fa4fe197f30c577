/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes google.protobuf.FileDescriptorProto from the tables. A message or enum "Outer.Inner" is
 * nested in "Outer" of the same file; entries of maps are nested where they are used. A proto3
 * optional field is a oneof of its own ("_name"), after the real ones. Source:
 * google/protobuf/descriptor.proto.
 */
#include "pb/internal.h"

#include <stdio.h>

/* Whether a name is nested in another: "a.b.Outer.Inner" is in "a.b.Outer". */
static bool is_inside(const char *name, const char *outer)
{
	struct str n = str_of(name);
	size_t dot = str_rindex(n, '.');
	return dot < n.len && str_eq(str_sub(n, 0, dot), str_of(outer));
}

static struct str base_name(const char *name)
{
	struct str n = str_of(name);
	size_t dot = str_rindex(n, '.');
	return dot < n.len ? str_sub(n, dot + 1, n.len) : n;
}

static void put_name(struct buf *out, uint32_t field, const char *name)
{
	pb_put_str(out, field, base_name(name));
}

/* ".package.Name" */
static void put_type(struct buf *out, uint32_t field, const char *name)
{
	size_t begun = pb_begin(out, field);
	buf_u8(out, '.');
	buf_cstr(out, name);
	pb_end(out, begun);
}

static void put_enum(struct buf *out, uint32_t field, const struct pb_enum *v)
{
	size_t begun = pb_begin(out, field);
	put_name(out, 1, v->name);
	for (size_t i = 0; i < v->count; i++) {
		size_t value = pb_begin(out, 2);
		pb_put_str(out, 1, str_of(v->values[i].name));
		pb_put_u64_always(out, 2, (uint64_t)(int64_t)v->values[i].number);
		pb_end(out, value);
	}
	pb_end(out, begun);
}

/* Number of the oneof that a field is in, from 0; -1: none. */
static int64_t oneof_of(const struct pb_desc *d, const struct pb_member *m)
{
	int64_t real = 0, more = 0;
	if (m->oneof)
		return m->oneof - 1;
	if (!(m->flags & PB_OPTIONAL))
		return -1;
	while (real < (int64_t)ARRAY_COUNT(d->oneofs) && d->oneofs[real])
		real++;
	for (const struct pb_member *other = d->members; other < m; other++)
		more += (other->flags & PB_OPTIONAL) != 0;
	return real + more;
}

static void put_member(struct buf *out, const struct pb_desc *d, const struct pb_member *m)
{
	size_t begun = pb_begin(out, 2);
	pb_put_str(out, 1, str_of(m->name));
	pb_put_u64(out, 3, m->number);
	pb_put_u64(out, 4, m->flags & PB_REPEATED ? 3 : 1);
	pb_put_u64(out, 5, m->kind);
	if (m->message)
		put_type(out, 6, m->message->name);
	else if (m->values)
		put_type(out, 6, m->values->name);
	int64_t oneof = oneof_of(d, m);
	if (oneof >= 0)
		pb_put_u64_always(out, 9, (uint64_t)oneof);
	size_t json = pb_begin(out, 10);
	pb_put_camel(out, m->name);
	pb_end(out, json);
	pb_put_bool(out, 17, m->flags & PB_OPTIONAL);
	pb_end(out, begun);
}

static void put_oneofs(struct buf *out, const struct pb_desc *d)
{
	for (size_t i = 0; i < ARRAY_COUNT(d->oneofs) && d->oneofs[i]; i++) {
		size_t begun = pb_begin(out, 8);
		pb_put_str(out, 1, str_of(d->oneofs[i]));
		pb_end(out, begun);
	}
	for (size_t i = 0; i < d->count; i++) {
		if (!(d->members[i].flags & PB_OPTIONAL))
			continue;
		size_t begun = pb_begin(out, 8);
		size_t name = pb_begin(out, 1);
		buf_u8(out, '_');
		buf_cstr(out, d->members[i].name);
		pb_end(out, name);
		pb_end(out, begun);
	}
}

/* `f` NULL: an entry of a map, which has no nested types. */
static void put_message(
	struct buf *out, uint32_t field, const struct pb_file *f, const struct pb_desc *d)
{
	size_t begun = pb_begin(out, field);
	put_name(out, 1, d->name);
	for (size_t i = 0; i < d->count; i++)
		put_member(out, d, &d->members[i]);
	for (size_t i = 0; i < d->count; i++)
		if (d->members[i].flags & PB_MAP)
			put_message(out, 3, NULL, d->members[i].message);
	for (size_t i = 0; f && i < f->message_count; i++)
		if (is_inside(f->messages[i]->name, d->name))
			put_message(out, 3, f, f->messages[i]);
	for (size_t i = 0; f && i < f->enum_count; i++)
		if (is_inside(f->enums[i]->name, d->name))
			put_enum(out, 4, f->enums[i]);
	if (!f) {
		size_t options = pb_begin(out, 7);
		pb_put_bool(out, 7, true); /* map_entry */
		pb_end(out, options);
	}
	put_oneofs(out, d);
	pb_end(out, begun);
}

static void put_service(struct buf *out, const struct pb_service *s)
{
	size_t begun = pb_begin(out, 6);
	put_name(out, 1, s->name);
	for (size_t i = 0; i < s->count; i++) {
		const struct pb_method *m = &s->methods[i];
		size_t method = pb_begin(out, 2);
		pb_put_str(out, 1, str_of(m->name));
		put_type(out, 2, m->input->name);
		put_type(out, 3, m->output->name);
		pb_put_bool(out, 5, m->client_streams);
		pb_put_bool(out, 6, m->server_streams);
		pb_end(out, method);
	}
	pb_end(out, begun);
}

void pb_file_encode(const struct pb_file *f, struct buf *out)
{
	pb_put_str(out, 1, str_of(f->name));
	pb_put_str(out, 2, str_of(f->package));
	for (size_t i = 0; i < f->import_count; i++)
		pb_put_str(out, 3, str_of(f->imports[i]->name));
	for (size_t i = 0; i < f->message_count; i++)
		if (is_inside(f->messages[i]->name, f->package))
			put_message(out, 4, f, f->messages[i]);
	for (size_t i = 0; i < f->enum_count; i++)
		if (is_inside(f->enums[i]->name, f->package))
			put_enum(out, 5, f->enums[i]);
	for (size_t i = 0; i < f->service_count; i++)
		put_service(out, f->services[i]);
	pb_put_str(out, 12, STR("proto3"));
}
