/* SPDX-License-Identifier: Apache-2.0 */
/* labels: labels on their way from an answer into the cache. */
#pragma once

#include "container/container.h"

struct container_labels {
	struct arena *arena;
	struct container_label v[CONTAINER_LABELS_MAX];
	uint32_t count;
	bool cut; /* something did not fit */
};

void container_labels_init(struct container_labels *l, struct arena *a);
/* Adds a label; an empty value adds none. The texts are copied. */
void container_put(struct container_labels *l, const char *name, struct str value);
/* Adds "__meta_x_label_KEY" = value and "__meta_x_labelpresent_KEY" = "true", if `what` is
 * "__meta_x_label". */
void container_put_pair(
	struct container_labels *l, const char *what, struct str key, struct str value);
/* The same for one entry of a map<string, string>, given as bytes. */
void container_put_entry(struct container_labels *l, const char *what, struct str entry);
/* Removes what the kubelet and engines add to a pod's own labels and annotations. So the result is
 * the same from each source: Kubernetes' API does not have these, and one of them is a time. */
void container_drop_kubelets(struct container_labels *l);
/* "" when absent. */
struct str container_get(const struct container_labels *l, const char *name);
