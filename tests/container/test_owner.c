/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include "container/owner.h"
#include "os/os.h"

#include <stdio.h>
#include <unistd.h>

static void reads_names(void **state)
{
	(void)state;
	static const struct {
		const char *name, *path;
		uint32_t want;
	} cases[] = {
		{ "a user's", "/user.slice/user-1000.slice/session-1.scope", 1000 },
		{ "root's", "/user.slice/user-0.slice/session-1.scope", 0 },
		{ "from a namespace", "/../../user.slice/user-7.slice/x", 7 },
		{ "deeper", "/docker/x/user.slice/user-7.slice/x", 0 },
		{ "no number", "/user.slice/user-.slice/x", 0 },
		{ "too large", "/user.slice/user-4294967295.slice/x", 0 },
		{ "the slice alone", "/user.slice", 0 },
		{ "root", "/", 0 },
		{ "nothing", "", 0 },
		{ "only up", "/../..", 0 },
	};
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, container_owner_by_name(str_of(c->path)) == c->want);
}

static char root[] = "/tmp/firn-test-owner-XXXXXX";

static void make(const char *path, uint32_t user)
{
	char name[300];
	struct err e;
	snprintf(name, sizeof(name), "%s/sys/fs/cgroup%s", root, path);
	CHECK_OK(os_make_dirs(name, &e), &e);
	CHECK(chown(name, user, (gid_t)-1) == 0);
}

static void finds_owners(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("only root may give folders away");
	CHECK(mkdtemp(root));
	make("/unified/system.slice", 0);
	make("/unified/system.slice/app.service", 1234);
	make("/unified/system.slice/app.service/docker-x.scope", 1234);
	make("/cpu/docker/x", 0);
	make("/cpu/given/x", 77);
	make("/cpu/given", 77);
	make("/memory/half", 0);
	make("/pids/half", 88);
	static const struct {
		const char *name, *group;
		uint32_t want;
	} cases[] = {
		{ "of a service that makes groups", "/system.slice/app.service/docker-x.scope",
			1234 },
		{ "gone, below it", "/system.slice/app.service/docker-y.scope", 1234 },
		{ "gone with what was above", "/system.slice/app.service/a/b/docker-y.scope",
			1234 },
		{ "the service's own", "/system.slice/app.service", 0 },
		{ "in version 1", "/docker/x", 0 },
		{ "in version 1, given away", "/given/x", 77 },
		{ "in one hierarchy of two", "/half/x", 88 },
		{ "of none that is known", "/other/x", 0 },
		{ "at the top", "/x", 0 },
		{ "out of sight", "/../given/x", 0 },
		{ "no path", "x", 0 },
		{ "nothing", "", 0 },
	};
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, container_owner(root, str_of(c->group)) == c->want);
	char command[100];
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(system(command) == 0);
}

TEST_MAIN(cmocka_unit_test(reads_names), cmocka_unit_test(finds_owners))
