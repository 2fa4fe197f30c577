/* SPDX-License-Identifier: Apache-2.0 */
/* capset(2) changes the calling thread only: capabilities are dropped while there is one thread. */
#include "os/os.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool read_sets(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	return syscall(SYS_capget, &head, data) == 0;
}

uint64_t os_capabilities(void)
{
	struct __user_cap_data_struct data[2] = { 0 };
	return read_sets(data) ? (uint64_t)data[1].effective << 32 | data[0].effective : 0;
}

enum status os_set_capabilities(uint64_t effective, uint64_t permitted, struct err *e)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };
	/* Without CAP_SETPCAP the bounding set is not changed. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned long cap = 0; cap < 64; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (!read_sets(data))
		return err_os(e, "capget");
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(permitted >> 32 * i);
		data[i].effective = data[i].permitted & (uint32_t)(effective >> 32 * i);
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) < 0)
		return err_os(e, "capset");
	return OK;
}

enum status os_harden(struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_os(e, "no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_os(e, "not dumpable");
	return OK;
}
