/* SPDX-License-Identifier: Apache-2.0 */
#include "container/owner.h"
#include "container/peer.h"
#include "engines.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>

static const char *in_folder(const char *path)
{
	static char out[4][200];
	static unsigned next;
	char *at = out[next++ % 4];
	snprintf(at, sizeof(out[0]), "%s%s", engines_dir, path);
	return at;
}

static int open_it(void)
{
	return container_user_socket(in_folder("/run/user"), "1234/podman/podman.sock");
}

static void is_connected_to_by_its_descriptor(void **state)
{
	(void)state;
	struct container_peer p = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	struct err e;
	CHECK(open_it() == -1);
	buf_init(&out, 65536);
	atomic_store(&docker_knows, true);
	struct net_server *s = engine_at("/run/user/1234/podman/podman.sock", serve_docker, false);
	int fd = open_it();
	CHECK(fd >= 0 && close(fd) == 0);
	CHECK(container_user_socket(in_folder("/run/user"), "1234/podman") == -1);
	snprintf(p.address, sizeof(p.address), "unix:%s",
		in_folder("/run/user/1234/podman/podman.sock"));
	p.trusted_len = strlen("unix:") + strlen(in_folder("/run/user"));
	CHECK(container_peer_ready(&p, clock_monotonic_ns()) && p.http);
	CHECK_OK(container_peer_get(&p, "/containers/" ID "/json", 65536, &out, &e), &e);
	/* One that ends is one that is not there. */
	net_server_stop(s);
	CHECK(container_peer_get(&p, "/containers/" ID "/json", 65536, &out, &e) != OK);
	container_peer_note(&p, E_UNAVAILABLE, &e);
	CHECK(!container_peer_ready(&p, INT64_MAX) && !p.http && !p.problem[0]);
	container_peer_close(&p);
}

static void follows_no_link(void **state)
{
	(void)state;
	struct err e;
	struct net_server *s = engine_at("/home/user/podman.sock", serve_docker, false);
	CHECK_OK(os_make_dirs(in_folder("/run/user/1234"), &e), &e);
	CHECK(symlink(in_folder("/home/user"), in_folder("/run/user/1234/podman")) == 0);
	CHECK(open_it() == -1);
	CHECK(unlink(in_folder("/run/user/1234/podman")) == 0);
	CHECK(mkdir(in_folder("/run/user/1234/podman"), 0755) == 0);
	CHECK(symlink(in_folder("/home/user/podman.sock"),
		      in_folder("/run/user/1234/podman/podman.sock")) == 0);
	CHECK(open_it() == -1);
	net_server_stop(s);
}

static int mount_on(const char *folder, const char *type)
{
	char options[96] = "";
	int fuse = -1;
	if (strcmp(type, "tmpfs") != 0) {
		fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
		snprintf(options, sizeof(options),
			"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	}
	if (mount("firn-test", folder, type, MS_NOSUID | MS_NODEV, options) == 0)
		return fuse >= 0 ? fuse : open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fuse >= 0)
		close(fuse);
	return -1;
}

/* Its server never says anything: who looks there hangs. */
static void does_not_wait_for_what_a_user_mounts(void **state)
{
	(void)state;
	static const char *const places[] = { "/run/user/1234", "/run/user/1234/podman",
		"/run/user/1234/podman/podman.sock" };
	struct err e;
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		CHECK_OK(os_make_dirs(in_folder(places[i]), &e), &e);
		int fuse = mount_on(in_folder(places[i]), "fuse.firn-test");
		if (fuse < 0)
			SKIP("a FUSE file system cannot be mounted here");
		CHECK(open_it() == -1);
		CHECK(close(fuse) == 0 && umount2(in_folder(places[i]), MNT_DETACH) == 0);
	}
}

/* systemd mounts one for each user. */
static void looks_below_what_answers(void **state)
{
	(void)state;
	struct err e;
	CHECK_OK(os_make_dirs(in_folder("/run/user/1234"), &e), &e);
	int place = mount_on(in_folder("/run/user/1234"), "tmpfs");
	if (place < 0)
		SKIP("a file system cannot be mounted here");
	struct net_server *s = engine_at("/run/user/1234/podman/podman.sock", serve_docker, false);
	int fd = open_it();
	net_server_stop(s);
	CHECK(close(place) == 0 && umount2(in_folder("/run/user/1234"), MNT_DETACH) == 0);
	CHECK(fd >= 0 && close(fd) == 0);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(
		  is_connected_to_by_its_descriptor, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(follows_no_link, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(
		does_not_wait_for_what_a_user_mounts, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(looks_below_what_answers, engines_setup, engines_teardown))
