/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/request/request: what every request needs: the server's state, whose samples a request is
 * about, the frame around a query, where a protocol puts samples, files that people keep.
 *
 * Private to server/.
 */
#pragma once

#include "server/request/call.h"
#include "server/request/inlet.h"
#include "server/request/kept.h"
#include "server/request/query_call.h"
#include "server/request/state.h"
#include "server/request/tenant.h"
