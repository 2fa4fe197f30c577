/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample: takes samples in the kernel, finishes them, adds their time off the CPU, and decides how
 * often. The agent's other sub-folders include this header only.
 */
#pragma once

#include "agent/sample/cpus.h"
#include "agent/sample/deferred.h"
#include "agent/sample/governor.h"
#include "agent/sample/mapsizes.h"
#include "agent/sample/offcpu.h"
#include "agent/sample/probe.h"
#include "agent/sample/sampler.h"
