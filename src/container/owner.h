/* SPDX-License-Identifier: Apache-2.0 */
/* owner: which user may have made a control group or a socket. */
#pragma once

#include "base/str.h"

/* "/user.slice/user-1000.slice/…": 1000; 0: no user's. */
uint32_t container_owner_by_name(struct str path);
/* The owner of the parent of that group in `root`/sys/fs/cgroup; 0: root, or not known. */
uint32_t container_owner(const char *root, struct str group);

/* Opens the socket at the path `below` (without empty parts) in the folder `trusted`, which belongs
 * to no user. The descriptor only names it (O_PATH); -1: there is none, or its path has a link, or
 * a file system that may hang. */
int container_user_socket(const char *trusted, const char *below);
