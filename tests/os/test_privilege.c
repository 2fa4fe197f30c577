/* SPDX-License-Identifier: Apache-2.0 */
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP ((uint64_t)1 << CAP_SYSLOG | (uint64_t)1 << CAP_SYS_PTRACE)

static int give_up(void)
{
	if (os_set_capabilities(0, KEEP, NULL) != OK || os_capabilities() != 0)
		return 1;
	if (os_set_capabilities(KEEP, KEEP, NULL) != OK || os_capabilities() != KEEP)
		return 2; /* what was permitted still can be taken up */
	if (os_set_capabilities(0, 0, NULL) != OK || os_capabilities() != 0)
		return 3;
	if (os_set_capabilities(KEEP, KEEP, NULL) != OK || os_capabilities() != 0)
		return 4; /* and what was given up cannot */
	if (sethostname("x", 1) == 0 || errno != EPERM)
		return 5;
	if (os_harden(NULL) != OK || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
		prctl(PR_GET_DUMPABLE) != 0)
		return 6;
	if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0)
		return 7;
	return 0;
}

static void what_is_given_up_stays_away(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("needs root: there is nothing to give up");
	pid_t pid = fork();
	if (pid == 0)
		_exit(give_up());
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFEXITED(wait_status));
	CHECK(WEXITSTATUS(wait_status) == 0);
}

TEST_MAIN(cmocka_unit_test(what_is_given_up_stays_away))
