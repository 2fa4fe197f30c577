/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample: the samples: taken in the kernel, finished, with their time off the CPU; and how often.
 * The agent's other sub-folders include this header only.
 */
#pragma once

#include "agent/sample/cpus.h"
#include "agent/sample/deferred.h"
#include "agent/sample/governor.h"
#include "agent/sample/mapsizes.h"
#include "agent/sample/offcpu.h"
#include "agent/sample/probe.h"
#include "agent/sample/sampler.h"
