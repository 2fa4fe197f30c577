/* SPDX-License-Identifier: Apache-2.0 */
/* Engines on Unix sockets in a directory of their own, and a Kubernetes API, in this process. */
#pragma once

#include "answers.h"
#include "base/clock.h"
#include "net/net.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int docker_asked, cri_asked, containerd_asked, pods_asked;
static atomic_bool docker_knows, pods_known, pods_pending;
static char engines_dir[64];

static inline void serve_docker(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	/* About our container: processes of this host may be in others. */
	bool ours = str_eq(r->path, STR("/containers/" ID "/json"));
	atomic_fetch_add(&docker_asked, ours);
	out->content_type = "application/json";
	if (atomic_load(&docker_knows) && ours) {
		buf_cstr(&out->body, DOCKER_INSPECT);
		return;
	}
	out->http_status = 404;
	buf_cstr(&out->body, "{\"message\":\"No such container\"}");
}

static inline void serve_cri(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	bool ours = memmem(r->body.p, r->body.len, ID, sizeof(ID) - 1) ||
		    memmem(r->body.p, r->body.len, SANDBOX_ID, sizeof(ID) - 1);
	bool container = memmem(r->body.p, r->body.len, ID, sizeof(ID) - 1);
	if (!ours)
		return;
	atomic_fetch_add(&cri_asked, 1);
	if (str_ends(r->path, STR("/ListContainers")) && container)
		cri_containers(&out->body);
	else if (str_ends(r->path, STR("/ListPodSandbox")) && !container)
		cri_sandboxes(&out->body);
	else if (str_ends(r->path, STR("/ContainerStatus")))
		cri_image(&out->body);
	else if (str_ends(r->path, STR("/PodSandboxStatus")))
		cri_address(&out->body);
}

static inline void serve_containerd(
	void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&containerd_asked, 1);
	if (str_ends(r->path, STR("/List"))) {
		put_one(&out->body, 1, 1, "default");
		put_one(&out->body, 1, 1, "moby");
	} else if (str_eq(net_header_find(r, "containerd-namespace"), STR("default")) &&
		   memmem(r->body.p, r->body.len, "web-1", 5)) {
		containerd_container(&out->body, "web-1");
	} else {
		struct err e;
		err_set(&e, E_NOTFOUND, "container not found");
		net_fail(out, E_NOTFOUND, &e);
	}
}

static inline void serve_pods(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&pods_asked, 1);
	out->content_type = "application/json";
	if (!str_eq(net_header_find(r, "authorization"), STR("Bearer secret-1"))) {
		out->http_status = 401;
		return;
	}
	if (str_eq(r->path, STR("/api/v1/nodes/node-1")))
		buf_cstr(&out->body, NODE);
	else if (str_eq(r->path, STR("/pods")) ||
		 str_eq(r->query, STR("fieldSelector=spec.nodeName%3Dnode-1&resourceVersion=0")))
		buf_cstr(&out->body, atomic_load(&pods_pending) ? PENDING
				     : atomic_load(&pods_known) ? PODS
								: "{\"items\":[]}");
	else
		out->http_status = 400;
}

static inline struct net_server *engine_start(const char *address, net_handler_fn *fn, bool rpc)
{
	struct net_server_config c;
	struct net_server *s = NULL;
	struct err e;
	net_server_config_default(&c);
	c.address = address;
	c.workers = 1;
	const struct net_route routes[] = { { .path = "/*", .fn = fn, .is_rpc = rpc } };
	CHECK_OK(net_server_start(&c, routes, 1, &s, &e), &e);
	return s;
}

/* Below engines_dir, as below "/". */
static inline struct net_server *engine_at(const char *path, net_handler_fn *fn, bool rpc)
{
	char address[200];
	snprintf(address, sizeof(address), "%s%s", engines_dir, path);
	*strrchr(address, '/') = 0;
	struct err e;
	CHECK_OK(os_make_dirs(address, &e), &e);
	snprintf(address, sizeof(address), "unix:%s%s", engines_dir, path);
	return engine_start(address, fn, rpc);
}

static inline int engines_setup(void **state)
{
	(void)state;
	strcpy(engines_dir, "/tmp/firn-test-engines-XXXXXX");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("DOCKER_HOST");
	return mkdtemp(engines_dir) ? 0 : -1;
}

static inline int engines_teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", engines_dir);
	return system(command);
}
