/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Docker's API, which podman has too. A request is for one container by its id, without a version
 * in the path, so that the engine uses its own version. Source:
 * docs.docker.com/reference/api/engine, ContainerInspect.
 *
 * The answer also has the container's environment, which is skipped and freed with the answer.
 */
#include "container/decode.h"
#include "container/engine.h"
#include "container/labels.h"
#include "container/peer.h"

#include <stdio.h>

enum { INSPECT_ID = 1, INSPECT_NAME, INSPECT_CONFIG };
enum { CONFIG_IMAGE = 1, CONFIG_LABELS };

static const struct pb_member entry_members[] = { PB_FIELD("key", 1, STRING),
	PB_FIELD("value", 2, STRING) };
static const struct pb_desc entry = PB_DESC("entry", entry_members);
static const struct pb_member config_members[] = { PB_FIELD("Image", CONFIG_IMAGE, STRING),
	PB_MAP_OF("Labels", CONFIG_LABELS, entry) };
static const struct pb_desc config = PB_DESC("Config", config_members);
static const struct pb_member inspect_members[] = { PB_FIELD("Id", INSPECT_ID, STRING),
	PB_FIELD("Name", INSPECT_NAME, STRING), PB_MSG("Config", INSPECT_CONFIG, config) };
static const struct pb_desc inspect = PB_DESC("Container", inspect_members);

struct names {
	char id[64], name[64], image[64], label[64];
};

static struct names names_of(const char *engine)
{
	struct names n;
	snprintf(n.id, sizeof(n.id), "__meta_%s_container_id", engine);
	snprintf(n.name, sizeof(n.name), "__meta_%s_container_name", engine);
	snprintf(n.image, sizeof(n.image), "__meta_%s_container_image", engine);
	snprintf(n.label, sizeof(n.label), "__meta_%s_container_label", engine);
	return n;
}

static bool read_config(struct str bytes, const struct names *names, struct container_labels *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == CONFIG_IMAGE)
			container_put(out, names->image, f.bytes);
		else if (f.number == CONFIG_LABELS)
			container_put_entry(out, names->label, f.bytes);
	}
	return !r.failed;
}

enum status container_docker_decode(
	struct str json, const char *engine, struct container_labels *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, 2 * CONTAINER_ANSWER_BYTES_MAX);
	enum status s = pb_json_decode(&inspect, json, PB_IGNORE_UNKNOWN, &bytes, e);
	if (s != OK)
		return s;
	const struct names names = names_of(engine);
	struct reader r = reader_over(bytes.data, bytes.len);
	struct pb_field f;
	bool good = true;
	while (good && pb_next(&r, &f)) {
		if (f.number == INSPECT_ID)
			container_put(out, names.id, f.bytes);
		else if (f.number == INSPECT_NAME) /* "/web" */
			container_put(out, names.name,
				str_sub(f.bytes, str_starts(f.bytes, STR("/")), f.bytes.len));
		else if (f.number == INSPECT_CONFIG)
			good = read_config(f.bytes, &names, out);
	}
	if (!good || r.failed || !container_get(out, names.id).len)
		return err_set(e, E_INVALID, "the answer names no container");
	return OK;
}

enum status container_docker_ask(struct container_peer *p, const char *engine,
	const struct container_query *q, struct container_labels *out, struct err *e)
{
	char path[CONTAINER_ID_MAX + 32];
	if (q->kind != PROCFS_CONTAINER || q->is_pod)
		return err_set(e, E_NOTFOUND, "not one of its containers");
	snprintf(path, sizeof(path), "/containers/%s/json", q->id);
	CLEANUP(buf_deinit) struct buf json;
	buf_init(&json, CONTAINER_ANSWER_BYTES_MAX);
	enum status s = container_peer_get(p, path, CONTAINER_ANSWER_BYTES_MAX, &json, e);
	if (s == OK)
		s = container_docker_decode(buf_view(&json), engine, out, e);
	const struct names names = names_of(engine);
	if (s == OK && !str_eq(container_get(out, names.id), str_of(q->id)))
		return err_set(e, E_INVALID, "the answer is of another container");
	return s;
}
