/* SPDX-License-Identifier: Apache-2.0 */
/* The table of modules. */
#include "scrape/discover/modules.h"

const struct discover_kind *const discover_kinds[] = { &discover_consul, &discover_dns,
	&discover_docker, &discover_ec2, &discover_kubernetes, &discover_nomad, NULL };

const char *const discover_refused[] = { "lightsail_sd_configs", "azure_sd_configs",
	"gce_sd_configs", "digitalocean_sd_configs", "dockerswarm_sd_configs", "eureka_sd_configs",
	"hetzner_sd_configs", "ionos_sd_configs", "kuma_sd_configs", "linode_sd_configs",
	"marathon_sd_configs", "nerve_sd_configs", "serverset_sd_configs", "openstack_sd_configs",
	"ovhcloud_sd_configs", "puppetdb_sd_configs", "scaleway_sd_configs", "stackit_sd_configs",
	"triton_sd_configs", "uyuni_sd_configs", "vultr_sd_configs", NULL };
