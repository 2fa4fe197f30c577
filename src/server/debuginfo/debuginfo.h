/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/debuginfo/debuginfo: executables, debug files and source texts: uploads of them, files by
 * build id for others (debuginfod), source and instructions of functions.
 *
 * Private to server/. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise. routes.c has the table of them.
 */
#pragma once

#include "net/net.h"
#include "server/debuginfo/files.h"
#include "server/debuginfo/source.h"

/* debuginfo.c: parca.debuginfo.v1alpha1.DebuginfoService */
net_handler_fn server_debuginfo_should_initiate;
net_handler_fn server_debuginfo_initiate;
net_handler_fn server_debuginfo_mark_finished;
net_stream_fn server_debuginfo_upload;

/* debuginfod.c: GET /buildid/… */
net_stream_fn server_debuginfod;
net_handler_fn server_debuginfod_metadata;
