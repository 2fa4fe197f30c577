/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of container engines. They are asked in turn until one knows the container: those of
 * Kubernetes first, since they know the pod, then those that give a container's name.
 */
#include "container/places.h"
#include "base/clock.h"
#include "container/engine.h"
#include "container/labels.h"
#include "container/peer.h"

#include <stdio.h>
#include <stdlib.h>

#define USERS_FOLDER "/run/user"

static void place_add(
	struct container_places *c, enum container_engine engine, uint32_t user, const char *path)
{
	if (c->count == CONTAINER_PLACES_MAX)
		c->count = c->fixed; /* users' engines are searched for again when needed */
	struct container_place *p = &c->v[c->count++];
	container_peer_close(&p->peer);
	*p = (struct container_place){ .engine = engine, .user = user };
	p->peer.speaks_grpc =
		engine == CONTAINER_ENGINE_CRI || engine == CONTAINER_ENGINE_CONTAINERD;
	snprintf(p->peer.address, sizeof(p->peer.address), "unix:%s%s", c->root, path);
	if (user)
		p->peer.trusted_len = strlen("unix:") + strlen(c->root) + strlen(USERS_FOLDER);
}

static void usual_places(struct container_places *c)
{
	/* clang-format off */
	static const struct { enum container_engine engine; const char *path; } usual[] = {
		{ CONTAINER_ENGINE_CRI, "/run/containerd/containerd.sock" },
		{ CONTAINER_ENGINE_CRI, "/run/crio/crio.sock" },
		{ CONTAINER_ENGINE_CRI, "/run/cri-dockerd.sock" },
		{ CONTAINER_ENGINE_CRI, "/run/k3s/containerd/containerd.sock" },
		{ CONTAINER_ENGINE_DOCKER, "/run/docker.sock" },
		{ CONTAINER_ENGINE_PODMAN, "/run/podman/podman.sock" },
		{ CONTAINER_ENGINE_CONTAINERD, "/run/containerd/containerd.sock" },
		{ CONTAINER_ENGINE_CONTAINERD, "/run/docker/containerd/containerd.sock" },
		{ CONTAINER_ENGINE_CONTAINERD, "/run/k3s/containerd/containerd.sock" },
	};
	/* clang-format on */
	const char *host = getenv("DOCKER_HOST");
	if (host && strncmp(host, "unix://", 7) == 0 && host[7] == '/')
		place_add(c, CONTAINER_ENGINE_DOCKER, 0, host + 7);
	for (size_t i = 0; i < ARRAY_COUNT(usual); i++)
		place_add(c, usual[i].engine, 0, usual[i].path);
}

/* The one socket that a flag names. Its name tells the engine, else each engine's API is tried. */
static void only_place(struct container_places *c, const char *path)
{
	bool podman = strstr(path, "podman") != NULL;
	bool docker = strstr(path, "docker.sock") != NULL;
	bool cri = strstr(path, "crio") || strstr(path, "cri-docker");
	if (strncmp(path, "unix://", 7) == 0)
		path += 7;
	if (!podman && !docker)
		place_add(c, CONTAINER_ENGINE_CRI, 0, path);
	if (!podman && !docker && !cri)
		place_add(c, CONTAINER_ENGINE_CONTAINERD, 0, path);
	if (!cri)
		place_add(c, podman ? CONTAINER_ENGINE_PODMAN : CONTAINER_ENGINE_DOCKER, 0, path);
}

static bool has_place(const struct container_places *c, const char *path)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (str_ends(str_of(c->v[i].peer.address), str_of(path)))
			return true;
	return false;
}

/* Adds engines that run as this user. */
static void users_places(struct container_places *c, uint32_t user)
{
	char docker[64], podman[64];
	if (!user || c->only)
		return;
	snprintf(docker, sizeof(docker), USERS_FOLDER "/%u/docker.sock", user);
	snprintf(podman, sizeof(podman), USERS_FOLDER "/%u/podman/podman.sock", user);
	if (!has_place(c, podman))
		place_add(c, CONTAINER_ENGINE_PODMAN, user, podman);
	if (!has_place(c, docker))
		place_add(c, CONTAINER_ENGINE_DOCKER, user, docker);
}

static enum status ask_place(struct container_places *c, struct container_place *p,
	const struct container_query *q, struct container_labels *out, struct err *e)
{
	switch (p->engine) {
	case CONTAINER_ENGINE_CRI:
		return container_cri_ask(&p->peer, c->node, q, out, e);
	case CONTAINER_ENGINE_DOCKER:
		return container_docker_ask(&p->peer, "docker", q, out, e);
	case CONTAINER_ENGINE_PODMAN:
		return container_docker_ask(&p->peer, "podman", q, out, e);
	case CONTAINER_ENGINE_CONTAINERD:
		return container_containerd_ask(&p->peer, q, out, e);
	}
	UNREACHABLE();
}

/* An engine that does not speak the protocol (containerd without its CRI) knows no container. */
static enum status settle_answer(struct container_place *p, enum status s, const struct err *e,
	struct containers_metrics *metrics)
{
	if (s == E_UNSUPPORTED)
		s = E_NOTFOUND;
	metric_add(s == OK || s == E_NOTFOUND ? &metrics->answered : &metrics->failed, 1);
	container_peer_note(&p->peer, s, e);
	return s;
}

enum status container_places_ask(struct container_places *c, const struct container_query *q,
	struct container_labels *out, struct containers_metrics *metrics)
{
	users_places(c, q->user);
	for (uint32_t i = 0; i < c->count; i++) {
		struct container_place *p = &c->v[i];
		struct err e = { 0 };
		/* A user's engine may answer anything, so it is asked only about containers of that
		 * user. Root's engines are not asked about names that a user may have given to
		 * groups. */
		if (p->user != q->user && !c->only)
			continue;
		/* Only containerd has ids that are names within its namespaces. */
		if (q->kind == PROCFS_CONTAINER_MAYBE && p->engine != CONTAINER_ENGINE_CONTAINERD)
			continue;
		if (!container_peer_ready(&p->peer, clock_monotonic_ns()))
			continue;
		metric_add(&metrics->asked, 1);
		container_labels_init(out, out->arena);
		if (settle_answer(p, ask_place(c, p, q, out, &e), &e, metrics) == OK)
			return OK;
	}
	return E_NOTFOUND;
}

void container_places_init(struct container_places *c, const struct containers_config *config)
{
	*c = (struct container_places){ .node = config->node ? config->node : "",
		.root = config->root ? config->root : "",
		.only = config->socket_path && config->socket_path[0] };
	if (c->only)
		only_place(c, config->socket_path);
	else
		usual_places(c);
	c->fixed = c->count;
}

void container_places_deinit(struct container_places *c)
{
	for (uint32_t i = 0; i < CONTAINER_PLACES_MAX; i++)
		container_peer_close(&c->v[i].peer);
}
