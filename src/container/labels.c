/* SPDX-License-Identifier: Apache-2.0 */
/* A label that does not fit is left out as a whole, and that is noted. */
#include "container/labels.h"
#include "pb/pb.h"

#include <stdio.h>

#define NAME_BYTES_MAX 512
/* The most labels that come from the user, so that name, id and image always have room. */
#define PAIRS_MAX (CONTAINER_LABELS_MAX - 32)
#define ADDED_ALWAYS 4 /* of added[], which the kubelet adds */

void container_labels_init(struct container_labels *l, struct arena *a)
{
	l->arena = a;
	l->count = 0;
	l->cut = false;
}

static void put(struct container_labels *l, struct str name, struct str value, uint32_t room)
{
	if (value.len == 0)
		return;
	if (l->count >= room || value.len > CONTAINER_VALUE_BYTES_MAX) {
		l->cut = true;
		return;
	}
	struct container_label x = { { arena_copy(l->arena, name.p, name.len), name.len },
		{ arena_copy(l->arena, value.p, value.len), value.len } };
	if (x.name.p && x.value.p)
		l->v[l->count++] = x;
	else
		l->cut = true;
}

void container_put(struct container_labels *l, const char *name, struct str value)
{
	put(l, str_of(name), value, CONTAINER_LABELS_MAX);
}

static void put_named(struct container_labels *l, const char *what, const char *middle,
	struct str key, struct str value)
{
	char name[NAME_BYTES_MAX];
	int head = snprintf(name, sizeof(name), "%s%s_", what, middle);
	size_t len = (size_t)head + key.len;
	if (head < 0 || len > sizeof(name)) {
		l->cut = true;
		return;
	}
	for (size_t i = 0; i < key.len; i++) {
		char c = key.p[i];
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '_';
		name[(size_t)head + i] = good ? c : '_';
	}
	put(l, str_make(name, len), value, PAIRS_MAX);
}

void container_put_pair(
	struct container_labels *l, const char *what, struct str key, struct str value)
{
	put_named(l, what, "", key, value);
	put_named(l, what, "present", key, STR("true"));
}

void container_put_entry(struct container_labels *l, const char *what, struct str entry)
{
	struct reader r = reader_over(entry.p, entry.len);
	struct pb_field f;
	struct str key = STR(""), value = STR("");
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			key = f.bytes;
		else if (f.number == 2)
			value = f.bytes;
	}
	if (!r.failed && key.len)
		container_put_pair(l, what, key, value);
}

struct str container_get(const struct container_labels *l, const char *name)
{
	struct str want = str_of(name);
	for (uint32_t i = 0; i < l->count; i++)
		if (str_eq(l->v[i].name, want))
			return l->v[i].value;
	return STR("");
}

/* "__meta_kubernetes_pod_label_KEY" and "…_labelpresent_KEY" for "label". */
static bool is_pods(struct str name, const char *what, const char *key)
{
	struct str head = STR("__meta_kubernetes_pod_"), present = STR("present");
	if (!str_starts(name, head))
		return false;
	name = str_sub(name, head.len, name.len);
	if (!str_starts(name, str_of(what)))
		return false;
	name = str_sub(name, strlen(what), name.len);
	if (str_starts(name, present))
		name = str_sub(name, present.len, name.len);
	return str_starts(name, STR("_")) && str_eq(str_sub(name, 1, name.len), str_of(key));
}

void container_drop_kubelets(struct container_labels *l)
{
	/* clang-format off */
	static const struct { const char *what, *key; } added[] = {
		{ "label", "io_kubernetes_pod_name" },
		{ "label", "io_kubernetes_pod_namespace" },
		{ "label", "io_kubernetes_pod_uid" },
		{ "label", "io_kubernetes_container_name" }, /* CRI-O: "POD" */
		{ "annotation", "kubernetes_io_config_seen" },
		{ "annotation", "kubernetes_io_config_source" },
	};
	/* clang-format on */
	struct str source =
		container_get(l, "__meta_kubernetes_pod_annotation_kubernetes_io_config_source");
	/* A static pod, which comes from a file, has the kubelet's annotations in the API as
	 * well. */
	size_t count = str_eq(source, STR("api")) ? ARRAY_COUNT(added) : ADDED_ALWAYS;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < l->count; i++) {
		bool drop = false;
		for (size_t j = 0; j < count && !drop; j++)
			drop = is_pods(l->v[i].name, added[j].what, added[j].key);
		if (!drop)
			l->v[kept++] = l->v[i];
	}
	l->count = kept;
}
