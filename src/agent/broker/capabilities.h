/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities: numbers that the headers of older kernels lack. Private to agent/. */
#pragma once

#include <linux/capability.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif
