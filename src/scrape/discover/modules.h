/* SPDX-License-Identifier: Apache-2.0 */
/* The modules, for the table in kinds.c. */
#pragma once

#include "scrape/discover/discover.h"

extern const struct discover_kind discover_consul, discover_dns, discover_docker, discover_ec2,
	discover_kubernetes, discover_nomad;
