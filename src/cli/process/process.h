/* SPDX-License-Identifier: Apache-2.0 */
/* cli/process/process: processes of a verb: server and agent as children, commands that are
 * profiled, the directory of a run, and why a server did not start. Private to cli/. */
#pragma once

#include "cli/process/child.h"
#include "cli/process/launch.h"
#include "cli/process/startup.h"
#include "cli/process/supervise.h"
#include "cli/process/tempdir.h"
