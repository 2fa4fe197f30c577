/* SPDX-License-Identifier: Apache-2.0 */
/* names: names of kernel addresses and of functions of language runtimes. What the agent's other
 * sub-folders include of it. */
#pragma once

#include "agent/names/codes.h"
#include "agent/names/kallsyms.h"
#include "agent/names/ksymbols.h"
