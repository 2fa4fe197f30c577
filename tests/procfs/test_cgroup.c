/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice"

/* clang-format off */
static const struct { const char *name; const char *text; const char *want; } files[] = {
	{ "version 2", "0::/system.slice/x.service\n", "/system.slice/x.service" },
	{ "both, 2 says more", "9:cpu:/a\n0::/b\n", "/b" },
	{ "both, 2 says nothing", "9:memory:/m\n8:cpu,cpuacct:/a\n0::/\n", "/a" },
	{ "only memory says something", "9:memory:/m\n8:cpu:/\n0::/\n", "/m" },
	{ "nothing says anything", "8:cpu:/\n0::/\n", "/" },
	{ "colons in the path", "0::/a:b:c\n", "/a:b:c" },
	{ "no newline", "0::/a", "/a" },
};
static const struct { const char *name; const char *path; const char *want; } ids[] = {
	{ "docker, cgroupfs", "/docker/" ID, ID },
	{ "docker, systemd", "/system.slice/docker-" ID ".scope", ID },
	{ "docker, inner group", "/docker/" ID "/init.scope", ID },
	{ "containerd, kubernetes", POD "/cri-containerd-" ID ".scope", ID },
	{ "containerd, version 1", "/x.slice:cri-containerd:" ID, ID },
	{ "CRI-O", POD "/crio-" ID ".scope", ID },
	{ "CRI-O's helper", POD "/crio-conmon-" ID ".scope", "" },
	{ "podman", "/machine.slice/libpod-" ID ".scope/container", ID },
	{ "podman's helper", "/machine.slice/libpod-conmon-" ID ".scope", "" },
	{ "kubernetes, cgroupfs", "/kubepods/burstable/pod1-2/" ID, ID },
	{ "nested: the innermost", "/docker/" ID "/docker/f" "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" },
	{ "ECS", "/ecs/task/0123456789abcdef0123456789abcdef-1234567", "0123456789abcdef0123456789abcdef-1234567" },
	{ "buildkit", "/docker/buildkit/z5x9q2", "z5x9q2" },
	{ "lxc", "/lxc.payload.web1/system.slice", "web1" },
	{ "a service", "/system.slice/ssh.service", "" },
	{ "65 digits", "/docker/a" ID, "" },
	{ "capitals", "/docker/ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "" },
	{ "root", "/", "" },
	{ "empty", "", "" },
};
static const struct { const char *name; const char *path; const char *want; } units[] = {
	{ "service", "/system.slice/ssh.service", "ssh.service" },
	{ "user's", "/user.slice/user-1.slice/user@1.service/app.slice/x.service", "x.service" },
	{ "scope", "/user.slice/session-3.scope", "" },
	{ "suffix alone", "/.service", "" },
};
/* clang-format on */

static void chooses_a_line(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4096);
	struct str path;
	FOR_EACH_CASE (c, files) {
		CHECK_CASE(c, procfs_cgroup_parse(str_of(c->text), &a, &path, NULL) == OK);
		CHECK_CASE(c, str_eq(path, str_of(c->want)));
	}
	struct err e;
	CHECK(procfs_cgroup_parse(STR(""), &a, &path, &e) == E_NOTFOUND);
	CHECK(procfs_cgroup_parse(STR("0:/a\n"), &a, &path, &e) == E_INVALID);
	CHECK(procfs_cgroup_parse(STR("0::a\n"), &a, &path, &e) == E_INVALID);
	CHECK_OK(procfs_cgroup((int)getpid(), &a, &path, &e), &e);
	CHECK(path.len && path.p[0] == '/');
}

static void finds_containers_and_units(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, ids)
		CHECK_CASE(c, str_eq(procfs_container_id(str_of(c->path)), str_of(c->want)));
	FOR_EACH_CASE (c, units)
		CHECK_CASE(c, str_eq(procfs_systemd_unit(str_of(c->path)), str_of(c->want)));
}

TEST_MAIN(cmocka_unit_test(chooses_a_line), cmocka_unit_test(finds_containers_and_units))
