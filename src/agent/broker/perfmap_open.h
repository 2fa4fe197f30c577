/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap_open: the file in which a process names the code that it makes. Private to agent/: by the
 * broker, or by the agent itself where there is none.
 */
#pragma once

/* `path` is "/proc/PID/root/tmp/perf-N.map", as broker_place_of() knows it. A descriptor to read,
 * or -1 with errno: EACCES when it is not the process' own user's, EINVAL when it is no regular
 * file (ELOOP: a link). So a process cannot make the broker read a file that the process itself
 * could not read, and a compromised agent cannot read any other file of the process. */
int perfmap_open(const char *path);
