/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "8cb56e4c-1234-4abc-9def-001122334455"
#define UID_ "8cb56e4c_1234_4abc_9def_001122334455"
#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice"

/* clang-format off */
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
	{ "nested: the outermost", "/docker/" ID "/docker/" OTHER, ID },
	{ "ECS", "/ecs/task/0123456789abcdef0123456789abcdef-1234567", "0123456789abcdef0123456789abcdef-1234567" },
	{ "buildkit", "/docker/buildkit/z5x9q2", "z5x9q2" },
	{ "lxc", "/lxc.payload.web1/system.slice", "web1" },
	{ "a service", "/system.slice/ssh.service", "" },
	{ "65 digits", "/docker/a" ID, "" },
	{ "capitals", "/docker/ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "" },
	{ "CRI-O, crun's group", POD "/crio-" ID ".scope/container", ID },
	{ "kubernetes in docker (kind)", "/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope", OTHER },
	{ "out of a group namespace", "/../../kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope", ID },
	{ "podman, of a user", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", ID },
	{ "podman, in a pod", "/machine.slice/machine-libpod_pod_" OTHER ".slice/libpod-" ID ".scope", ID },
	{ "podman, cgroupfs", "/libpod_parent/libpod-" ID, ID },
	{ "podman, in a pod, cgroupfs", "/libpod_parent/" OTHER "/libpod-" ID, ID },
	{ "podman's pod itself, cgroupfs", "/libpod_parent/" OTHER, "" },
	{ "podman's pod itself", "/machine.slice/machine-libpod_pod_" OTHER ".slice", "" },
	{ "nerdctl", "/system.slice/nerdctl-" ID ".scope", ID },
	{ "a build, systemd", "/system.slice/docker-z5x9q2z5x9q2z5x9q2z5x9q2z.scope", "z5x9q2z5x9q2z5x9q2z5x9q2z" },
	{ "lxc, its own folder", "/lxc.payload/web1", "web1" },
	{ "lxc's helper", "/lxc.monitor.web1", "" },
	{ "lxc without a name", "/lxc.payload./x", "" },
	{ "perhaps containerd's", "/default/web", "" },
	{ "root", "/", "" },
	{ "empty", "", "" },
};
static const struct { const char *name; const char *path; const char *want; } units[] = {
	{ "service", "/system.slice/ssh.service", "ssh.service" },
	{ "user's", "/user.slice/user-1.slice/user@1.service/app.slice/x.service", "x.service" },
	{ "scope", "/user.slice/user-0.slice/session-3.scope", "session-3.scope" },
	{ "a service's own scope", "/system.slice/x.service/init.scope", "x.service" },
	{ "escaped", "/system.slice/_cpu.service", "cpu.service" },
	{ "template", "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service" },
	{ "suffix alone", "/.service", "" },
	{ "slice", "/system.slice", "" },
	{ "out of a group namespace", "/../../../system.slice/ssh.service", "ssh.service" },
};
static const struct { const char *name; const char *path; const char *want; } slices[] = {
	{ "system", "/system.slice/ssh.service", "system.slice" },
	{ "the innermost", "/user.slice/user-0.slice/session-3.scope", "user-0.slice" },
	{ "none", "/docker/" ID, "" },
};
static const struct { const char *name; const char *path; const char *want; } pods[] = {
	{ "cgroupfs", "/kubepods/burstable/pod" UID "/" ID, UID },
	{ "guaranteed, cgroupfs", "/kubepods/pod" UID "/" ID, UID },
	{ "systemd", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope", UID },
	{ "guaranteed, systemd", "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope", UID },
	{ "from a file", "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID, "0123456789abcdef0123456789abcdef" },
	{ "containerd, version 1", "/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" ID, UID },
	{ "kind", "/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope", "" },
	{ "a pod in a pod", "/kubepods/burstable/pod" UID "/" ID "/kubepods/pod9cb56e4c-1234-4abc-9def-001122334455/" OTHER, UID },
	{ "out of a group namespace", "/../../pod" UID "/" ID, UID },
	{ "somebody's podium", "/podium/x", "" },
	{ "podman's pod", "/machine.slice/machine-libpod_pod_" OTHER ".slice/libpod-" ID ".scope", "" },
	{ "none", "/", "" },
};
/* clang-format on */

static void finds_ids(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, ids)
		CHECK_CASE(c, str_eq(procfs_container_id(str_of(c->path)), str_of(c->want)));
}

static void finds_all_of_a_nest(void **state)
{
	(void)state;
	struct procfs_container found[PROCFS_CONTAINERS_MAX];
	assert_int_equal(procfs_containers(STR("/docker/" OTHER "/kubelet.slice/kubelet-pod1.slice/"
					       "cri-containerd-" ID ".scope"),
				 found),
		2);
	CHECK_STR(found[0].id, OTHER);
	CHECK_STR(found[0].engine, "docker");
	CHECK_STR(found[1].id, ID);
	CHECK_STR(found[1].engine, "cri-containerd");
	assert_int_equal(procfs_containers(STR("/lxc/a/lxc/b/lxc/c/lxc/d/lxc/e/x"), found), 4);
	CHECK_STR(found[0].id, "a");
	CHECK_STR(found[3].id, "d");
	CHECK(found[0].kind == PROCFS_LXC);
	assert_int_equal(procfs_containers(STR("/x.slice:cri-containerd:" ID), found), 1);
	CHECK_STR(found[0].engine, "cri-containerd");
	assert_int_equal(procfs_containers(STR("/default/web-1/inner"), found), 1);
	CHECK(found[0].kind == PROCFS_CONTAINER_MAYBE);
	CHECK_STR(found[0].space, "default");
	CHECK_STR(found[0].id, "web-1");
	static const char *const none[] = { "/default", "/system.slice/x.service",
		"/kubepods/burstable", "/../web", "", "/", "//", "default/web" };
	for (size_t i = 0; i < ARRAY_COUNT(none); i++)
		assert_int_equal(procfs_containers(str_of(none[i]), found), 0);
}

static void finds_pods_and_units(void **state)
{
	(void)state;
	char uid[PROCFS_POD_UID_MAX];
	FOR_EACH_CASE (c, pods)
		CHECK_CASE(c, str_eq(procfs_pod_uid(str_of(c->path), uid), str_of(c->want)));
	FOR_EACH_CASE (c, units)
		CHECK_CASE(c, str_eq(procfs_systemd_unit(str_of(c->path)), str_of(c->want)));
	FOR_EACH_CASE (c, slices)
		CHECK_CASE(c, str_eq(procfs_systemd_slice(str_of(c->path)), str_of(c->want)));
}

TEST_MAIN(cmocka_unit_test(finds_ids), cmocka_unit_test(finds_all_of_a_nest),
	cmocka_unit_test(finds_pods_and_units))
