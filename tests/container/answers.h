/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of engines as they give them, and labels as text. */
#pragma once

#include "container/container.h"
#include "pb/pb.h"
#include "test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INIT_ID "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DEBUG_ID "2123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SANDBOX_ID "3123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "8cb56e4c-1234-4abc-9def-001122334455"

/* Docker 20.10, shortened: a field that is not read, of each kind, is left in. */
#define DOCKER_INSPECT                                                                        \
	"{\"Id\":\"" ID "\",\"Created\":\"2026-11-21T20:00:00.1Z\",\"Path\":\"sleep\","       \
	"\"Args\":[\"1000\"],\"State\":{\"Status\":\"running\",\"Pid\":4711,\"Dead\":false}," \
	"\"Image\":\"sha256:00\",\"Name\":\"/web\",\"RestartCount\":0,\"HostConfig\":null,"   \
	"\"Config\":{\"Hostname\":\"x\",\"Env\":[\"PASSWORD=geheim\"],\"Cmd\":null,"          \
	"\"Image\":\"nginx:1.27\",\"Labels\":{\"com.docker.compose.service\":\"front-end\","  \
	"\"empty\":\"\"}}}"

#define POD_OBJECT                                                                                 \
	"{\"metadata\":{\"name\":\"web-6f-x1\",\"generateName\":\"web-6f-\","                      \
	"\"namespace\":\"shop\",\"uid\":\"" UID "\",\"resourceVersion\":\"76\","                   \
	"\"creationTimestamp\":\"2026-11-21T20:00:00Z\",\"labels\":{\"app\":\"web\","              \
	"\"pod-template-hash\":\"6f\"},\"annotations\":{\"example.com/team\":\"x\"},"              \
	"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Other\",\"name\":\"o\","           \
	"\"uid\":\"1\"},{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-6f\","  \
	"\"uid\":\"2\",\"controller\":true,\"blockOwnerDeletion\":true}],"                         \
	"\"managedFields\":[{\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{}}}}]},"                  \
	"\"spec\":{\"nodeName\":\"node-1\",\"containers\":[{\"name\":\"app\",\"image\":"           \
	"\"shop/web:2\",\"ports\":[{\"containerPort\":80}]}],\"initContainers\":[{\"name\":"       \
	"\"migrate\",\"image\":\"shop/migrate:1\"}],\"ephemeralContainers\":[{\"name\":"           \
	"\"debugger\",\"image\":\"busybox\"}]},\"status\":{\"phase\":\"Running\",\"conditions\":[" \
	"{\"type\":\"PodScheduled\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":"          \
	"\"True\",\"lastProbeTime\":null}],\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.1.0.7\","        \
	"\"podIPs\":[{\"ip\":\"10.1.0.7\"}],\"initContainerStatuses\":[{\"name\":\"migrate\","     \
	"\"image\":\"docker.io/shop/migrate:1\",\"containerID\":\"containerd://" INIT_ID "\"}],"   \
	"\"containerStatuses\":[{\"name\":\"app\",\"ready\":true,\"image\":"                       \
	"\"docker.io/shop/web:2\",\"imageID\":\"i\",\"containerID\":\"containerd://" ID "\"}],"    \
	"\"ephemeralContainerStatuses\":[{\"name\":\"debugger\",\"containerID\":"                  \
	"\"containerd://" DEBUG_ID "\"}]}}"

#define PODS                                                                                     \
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"77\"}," \
	"\"items\":[" POD_OBJECT ","                                                             \
	"{\"metadata\":{\"name\":\"new\",\"namespace\":\"shop\",\"uid\":\"u2\"},\"spec\":{"      \
	"\"nodeName\":\"node-1\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]},"            \
	"\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"c\","              \
	"\"containerID\":\"\"}]}}]}"

/* What a watch says of it. */
#define POD_EVENT "{\"type\":\"ADDED\",\"object\":" POD_OBJECT "}\n"

/* The pod of PODS, a moment after its container was made. */
#define PENDING                                                                                   \
	"{\"items\":[{\"metadata\":{\"name\":\"web-6f-x1\",\"namespace\":\"shop\",\"uid\":\"" UID \
	"\"},\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"app\","         \
	"\"containerID\":\"containerd://" ID "\"}]}}]}"

#define NODE                                                                        \
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\",\"labels\":{"         \
	"\"topology.kubernetes.io/zone\":\"eu-1\"},\"annotations\":{\"a\":\"b\"}}," \
	"\"status\":{\"allocatable\":{\"pods\":\"110\"}}}"

/* "name=value\n…", each name without "__meta_". */
static inline const char *labels_text(const struct container_label *v, uint32_t count)
{
	static char text[65536];
	size_t at = 0;
	text[0] = 0;
	for (uint32_t i = 0; i < count && at < sizeof(text); i++) {
		CHECK(str_starts(v[i].name, STR("__meta_")));
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s=%.*s\n",
			STR_ARG(str_sub(v[i].name, 7, v[i].name.len)), STR_ARG(v[i].value));
	}
	return text;
}

/* CRI's answers, by the numbers of its api.proto. */
static inline void put_pair(struct buf *b, uint32_t field, const char *key, const char *value)
{
	size_t begun = pb_begin(b, field);
	pb_put_str(b, 1, str_of(key));
	pb_put_str(b, 2, str_of(value));
	pb_end(b, begun);
}

static inline void put_one(struct buf *b, uint32_t field, uint32_t inner, const char *value)
{
	size_t begun = pb_begin(b, field);
	pb_put_str(b, inner, str_of(value));
	pb_end(b, begun);
}

static inline void cri_containers(struct buf *b)
{
	size_t begun = pb_begin(b, 1);
	pb_put_str(b, 1, STR(ID));
	pb_put_str(b, 2, STR(SANDBOX_ID));
	put_one(b, 3, 1, "app");
	put_one(b, 4, 1, "sha256:22");
	pb_put_u64(b, 6, 1);
	put_pair(b, 8, "io.kubernetes.container.name", "app");
	pb_end(b, begun);
}

static inline void cri_sandboxes(struct buf *b)
{
	size_t begun = pb_begin(b, 1);
	pb_put_str(b, 1, STR(SANDBOX_ID));
	size_t metadata = pb_begin(b, 2);
	pb_put_str(b, 1, STR("web-6f-x1"));
	pb_put_str(b, 2, STR(UID));
	pb_put_str(b, 3, STR("shop"));
	pb_end(b, metadata);
	put_pair(b, 5, "app", "web");
	/* The kubelet's own, as 1.34 gives them to containerd 1.6 and CRI-O 1.34. */
	put_pair(b, 5, "io.kubernetes.pod.name", "web-6f-x1");
	put_pair(b, 5, "io.kubernetes.pod.namespace", "shop");
	put_pair(b, 5, "io.kubernetes.pod.uid", UID);
	put_pair(b, 6, "example.com/team", "x");
	put_pair(b, 6, "kubernetes.io/config.seen", "2026-11-22T15:00:24.989373654Z");
	put_pair(b, 6, "kubernetes.io/config.source", "api");
	pb_end(b, begun);
}

static inline void cri_image(struct buf *b)
{
	size_t begun = pb_begin(b, 1);
	put_one(b, 8, 1, "docker.io/shop/web:2");
	pb_end(b, begun);
}

static inline void cri_address(struct buf *b)
{
	size_t begun = pb_begin(b, 1);
	put_one(b, 5, 1, "10.1.0.7");
	pb_end(b, begun);
}

static inline void containerd_container(struct buf *b, const char *id)
{
	size_t begun = pb_begin(b, 1);
	pb_put_str(b, 1, str_of(id));
	put_pair(b, 2, "nerdctl/name", "web");
	pb_put_str(b, 3, STR("docker.io/library/nginx:1.27"));
	pb_end(b, begun);
}
