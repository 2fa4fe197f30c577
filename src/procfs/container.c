/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds containers in the path of a control group, component by component:
 *
 *   <64 hex>                                    docker, containerd and others with cgroupfs
 *   docker-<64 hex>.scope, cri-containerd-….scope, crio-….scope, libpod-….scope, nerdctl-….scope
 *   …slice:cri-containerd:<64 hex>              containerd with the systemd driver in version 1
 *   <32 hex>-<digits>                           Amazon ECS
 *   buildkit/<name>, docker-<25 letters>.scope  builds
 *   lxc.payload.<name>, lxc.payload/<name>, lxc/<name>
 *   libpod_parent/<64 hex>                      a pod of podman's with cgroupfs, and no container:
 *                                               those lie in it, libpod-<64 hex>
 *   /<namespace>/<id>, and nothing else         containerd with cgroupfs, or another engine
 *
 * In a control group namespace the path may begin with several "/..", which does not change the
 * meaning of the rest. The helpers of podman, CRI-O and LXC (…-conmon-…, lxc.monitor.…) are not in
 * the container.
 *
 * A pod is "pod<uid>" or "kubepods-burstable-pod<uid>.slice", there with '_' for '-'.
 */
#include "procfs/procfs.h"

#define CONTAINER_ID_HEX 64
#define ECS_ID_HEX 32
#define BUILD_ID_MIN 20
#define BUILD_ID_MAX 32
#define UID_LEN 36
#define STATIC_UID_LEN 32 /* uid of static pods, which come from a file */

static bool all_of(struct str s, const char *set)
{
	for (size_t i = 0; i < s.len; i++)
		if (!s.p[i] || !strchr(set, s.p[i]))
			return false;
	return s.len > 0;
}

static bool is_container_hex(struct str s)
{
	return s.len == CONTAINER_ID_HEX && all_of(s, "0123456789abcdef");
}

static bool is_ecs_id(struct str s)
{
	return s.len > ECS_ID_HEX + 1 && s.p[ECS_ID_HEX] == '-' &&
	       all_of(str_sub(s, 0, ECS_ID_HEX), "0123456789abcdef") &&
	       all_of(str_sub(s, ECS_ID_HEX + 1, s.len), "0123456789");
}

static bool contains(struct str s, struct str part)
{
	for (size_t i = 0; i + part.len <= s.len; i++)
		if (str_eq(str_sub(s, i, part.len), part))
			return true;
	return false;
}

static struct str without(struct str s, struct str suffix)
{
	return str_ends(s, suffix) ? str_sub(s, 0, s.len - suffix.len) : s;
}

/* ---- containers ---- */

static bool is_build(struct str name, struct procfs_container *out)
{
	struct str docker = STR("docker-");
	struct str id = str_sub(name, docker.len, name.len);
	if (!str_starts(name, docker) || id.len < BUILD_ID_MIN || id.len > BUILD_ID_MAX ||
		!all_of(id, "0123456789abcdefghijklmnopqrstuvwxyz"))
		return false;
	*out = (struct procfs_container){ .kind = PROCFS_BUILDKIT, .id = id };
	return true;
}

static bool is_named(struct str name, struct str before, struct procfs_container *out)
{
	struct str payload = STR("lxc.payload.");
	if (str_starts(name, payload) && name.len > payload.len)
		*out = (struct procfs_container){ .kind = PROCFS_LXC,
			.id = str_sub(name, payload.len, name.len) };
	else if (str_eq(before, STR("lxc")) || str_eq(before, STR("lxc.payload")))
		*out = (struct procfs_container){ .kind = PROCFS_LXC, .id = name };
	else if (str_eq(before, STR("buildkit")))
		*out = (struct procfs_container){ .kind = PROCFS_BUILDKIT, .id = name };
	else
		return false;
	return true;
}

/* The container that one component of a path names. `before` is the component before it; the engine
 * if it is "docker". */
static bool read_component(struct str name, struct str before, struct procfs_container *out)
{
	if (name.len == 0)
		return false;
	if (is_named(name, before, out))
		return true;
	bool scope = str_ends(name, STR(".scope"));
	name = without(name, STR(".scope"));
	if (scope && is_build(name, out))
		return true;
	*out = (struct procfs_container){ .kind = PROCFS_CONTAINER, .id = name };
	if (is_ecs_id(name))
		return true;
	if (name.len < CONTAINER_ID_HEX)
		return false;
	struct str prefix = str_sub(name, 0, name.len - CONTAINER_ID_HEX);
	bool separated = prefix.len == 0 || strchr("-:", prefix.p[prefix.len - 1]);
	out->id = str_sub(name, prefix.len, CONTAINER_ID_HEX);
	if (!separated || contains(prefix, STR("conmon")) || !is_container_hex(out->id))
		return false;
	if (prefix.len == 0 && str_eq(before, STR("libpod_parent")))
		return false;
	if (prefix.len == 0) {
		out->engine = str_eq(before, STR("docker")) ? before : STR("");
		return true;
	}
	prefix.len--;
	size_t colon = str_rindex(prefix, ':');
	out->engine = colon < prefix.len ? str_sub(prefix, colon + 1, prefix.len) : prefix;
	return true;
}

/* Reads "/default/web", which the container's own groups may follow. */
static bool read_pair(struct str path, struct procfs_container *out)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	struct str empty, space, id;
	if (!str_split(&path, '/', &empty) || empty.len || !str_split(&path, '/', &space) ||
		!str_split(&path, '/', &id))
		return false;
	if (!all_of(space, letters) || !all_of(id, letters) || str_ends(space, STR(".slice")) ||
		str_starts(space, STR("..")) || str_starts(space, STR("kubepods")) ||
		str_starts(space, STR("lxc.")))
		return false;
	*out = (struct procfs_container){ PROCFS_CONTAINER_MAYBE, id, STR(""), space };
	return true;
}

size_t procfs_containers(struct str cgroup_path, struct procfs_container out[PROCFS_CONTAINERS_MAX])
{
	struct str rest = cgroup_path, before = STR(""), component;
	size_t count = 0;
	while (count < PROCFS_CONTAINERS_MAX && str_split(&rest, '/', &component)) {
		count += read_component(component, before, &out[count]);
		before = component;
	}
	if (count == 0 && read_pair(cgroup_path, &out[0]))
		count = 1;
	return count;
}

struct str procfs_container_id(struct str cgroup_path)
{
	struct procfs_container found[PROCFS_CONTAINERS_MAX];
	size_t count = procfs_containers(cgroup_path, found);
	return count && found[0].kind != PROCFS_CONTAINER_MAYBE ? found[0].id : STR("");
}

/* ---- pods ---- */

static struct str uid_of_component(struct str name)
{
	struct str pod = STR("pod");
	name = str_sub(name, 0, str_index(name, ':')); /* "….slice:cri-containerd:…" */
	struct str cut = without(name, STR(".slice"));
	if (cut.len < name.len) {
		/* "kubepods-besteffort-pod…": the last "-pod", as the rest has only '_' */
		size_t dash = str_rindex(cut, '-');
		cut = dash < cut.len ? str_sub(cut, dash + 1, cut.len) : STR("");
	}
	if (!str_starts(cut, pod))
		return STR("");
	struct str uid = str_sub(cut, pod.len, cut.len);
	bool fits = uid.len == UID_LEN || uid.len == STATIC_UID_LEN;
	return fits && all_of(uid, "0123456789abcdef-_") ? uid : STR("");
}

struct str procfs_pod_uid(struct str cgroup_path, char out[PROCFS_POD_UID_MAX])
{
	struct str uid = STR(""), before = STR(""), component;
	struct procfs_container ignored;
	while (!uid.len && str_split(&cgroup_path, '/', &component)) {
		uid = uid_of_component(component);
		if (read_component(component, before, &ignored))
			break;
		before = component;
	}
	static_assert(UID_LEN <= PROCFS_POD_UID_MAX, "a uid fits");
	for (size_t i = 0; i < uid.len; i++)
		out[i] = uid.p[i] == '_' ? '-' : uid.p[i];
	return str_make(out, uid.len);
}

/* ---- systemd ---- */

/* systemd writes a '_' before names that the kernel would take for its own (cg_escape()). */
static struct str unescaped(struct str component)
{
	return str_starts(component, STR("_")) ? str_sub(component, 1, component.len) : component;
}

static bool is_unit(struct str name, struct str suffix)
{
	return str_ends(name, suffix) && name.len > suffix.len;
}

struct str procfs_systemd_unit(struct str cgroup_path)
{
	struct str service = STR(""), scope = STR(""), component;
	while (str_split(&cgroup_path, '/', &component)) {
		struct str name = unescaped(component);
		if (is_unit(name, STR(".service")))
			service = name;
		else if (is_unit(name, STR(".scope")))
			scope = name;
	}
	return service.len ? service : scope;
}

struct str procfs_systemd_slice(struct str cgroup_path)
{
	struct str slice = STR(""), component;
	while (str_split(&cgroup_path, '/', &component)) {
		struct str name = unescaped(component);
		if (is_unit(name, STR(".slice")))
			slice = name;
	}
	return slice;
}
