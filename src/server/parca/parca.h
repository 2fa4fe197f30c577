/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/parca/parca: Parca's QueryService and AgentsService, and profiles that are shared.
 *
 * Private to server/. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise. routes.c has the table of them.
 */
#pragma once

#include "net/net.h"
#include "server/parca/snapshot.h"

/* parca_query.c: parca.query.v1alpha1.QueryService */
net_handler_fn server_parca_profile_types;
net_handler_fn server_parca_labels;
net_handler_fn server_parca_values;
net_handler_fn server_parca_series;
net_handler_fn server_parca_query_range;
net_handler_fn server_parca_query;
net_handler_fn server_parca_has_profile_data;

/* share.c */
net_handler_fn server_parca_share;
net_handler_fn server_handle_shared;

/* agents.c */
net_handler_fn server_agents;
