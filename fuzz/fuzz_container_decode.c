/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every answer of an engine on the same bytes; the first byte chooses. Property: whatever is
 * accepted, labels have a name of the right letters and a value, and there are not too many.
 */
#include "fuzz/fuzz.h"

#include "container/internal.h"

static struct container_labels labels, node;

static void check(const struct container_labels *l)
{
	FUZZ_CHECK(l->count <= CONTAINER_LABELS_MAX);
	for (uint32_t i = 0; i < l->count; i++) {
		struct str name = l->v[i].name;
		FUZZ_CHECK(str_starts(name, STR("__meta_")));
		FUZZ_CHECK(l->v[i].value.len && l->v[i].value.len <= CONTAINER_VALUE_BYTES_MAX);
		for (size_t k = 0; k < name.len; k++)
			FUZZ_CHECK(name.p[k] == '_' || (name.p[k] >= '0' && name.p[k] <= '9') ||
				   ((name.p[k] | 32) >= 'a' && (name.p[k] | 32) <= 'z'));
	}
}

static void take(void *ctx, struct str key, const struct container_labels *l)
{
	(void)ctx;
	FUZZ_CHECK(key.len > 0 && key.len < CONTAINER_ID_MAX + 8);
	check(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct container_sink sink = { take, NULL };
	struct container_cri cri = { 0 };
	struct str name;
	if (size == 0)
		return 0;
	struct str bytes = str_make(data + 1, size - 1);
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 8 << 20);
	container_labels_init(&labels, &a);
	container_labels_init(&node, &a);
	switch (data[0] % 9) {
	case 0:
		(void)!container_docker_decode(bytes, "docker", &labels, NULL);
		break;
	case 1:
		(void)!container_cri_container_decode(bytes, STR("id"), &cri, NULL);
		break;
	case 2:
		(void)!container_cri_image_decode(bytes, &cri, NULL);
		break;
	case 3:
		(void)!container_cri_sandbox_decode(bytes, STR("id"), &labels, NULL);
		break;
	case 4:
		(void)!container_cri_address_decode(bytes, &labels, NULL);
		break;
	case 5:
		(void)!container_containerd_decode(bytes, STR("default"), &labels, NULL);
		break;
	case 6:
		(void)!container_spaces_decode(bytes, data[0], &name, NULL);
		break;
	case 7:
		(void)!container_node_decode(bytes, &labels, NULL);
		break;
	default:
		(void)!container_pods_decode(bytes, &node, &sink, NULL);
	}
	check(&labels);
	return 0;
}
