/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every answer of an engine on the same bytes; the first byte chooses. Property: whatever is
 * accepted, labels have a name of the right letters and a value, and there are not too many.
 */
#include "fuzz/fuzz.h"

#include "container/decode.h"
#include "container/labels.h"
#include "container/peer.h"

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

/* A version goes into a URL. */
static void check_version(const char *version)
{
	size_t len = strlen(version);
	FUZZ_CHECK(len < CONTAINER_VERSION_MAX);
	for (size_t i = 0; i < len; i++)
		FUZZ_CHECK((version[i] >= '0' && version[i] <= '9') ||
			   ((version[i] | 32) >= 'a' && (version[i] | 32) <= 'z'));
}

/* A watch: the events that lie in the bytes, found in two halves as in one. */
static void follow(struct str bytes, const struct container_sink *sink)
{
	while (bytes.len) {
		struct container_frames whole = { 0 }, halves = { 0 };
		struct container_event event;
		size_t len = 0, again = 0;
		enum status s = container_frame_next(&whole, bytes, &len, NULL);
		enum status t = container_frame_next(
			&halves, str_sub(bytes, 0, bytes.len / 2), &again, NULL);
		if (t == OK && !again)
			t = container_frame_next(&halves, bytes, &again, NULL);
		FUZZ_CHECK(s == t && len == again && len <= bytes.len);
		if (s != OK || !len)
			return;
		if (container_event_decode(str_sub(bytes, 0, len), &node, sink, &event, NULL) == OK)
			check_version(event.version);
		bytes = str_sub(bytes, len, bytes.len);
	}
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
	switch (data[0] % 10) {
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
	case 8:
		(void)!container_pods_decode(bytes, &node, &sink, NULL, NULL);
		break;
	default:
		follow(bytes, &sink);
	}
	check(&labels);
	return 0;
}
