/* SPDX-License-Identifier: Apache-2.0 */
/* owner: which user may have made a control group, or put a socket there. */
#pragma once

#include "base/str.h"

/* "/user.slice/user-1000.slice/…": 1000; 0: no user's. */
uint32_t container_owner_by_name(struct str path);
/* The owner of the group above that one, below `root`/sys/fs/cgroup; 0: root, or not known. */
uint32_t container_owner(const char *root, struct str group);

/* The socket `below` (a path without empty parts) a folder that is no user's, as a descriptor that
 * only names it (O_PATH); -1: there is none, or it is reached by a link, or over a file system that
 * may hang. */
int container_user_socket(const char *trusted, const char *below);
