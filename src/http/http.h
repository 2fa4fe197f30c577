/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: HTTP/1.1, HTTP/2 and gRPC framing without sockets: bytes in, events out, bytes out.
 *
 * Layer 2 (may use base, codec). Runs on any thread and under any fuzzer. HTTP/1 is a strict parser
 * of our own (RFC 9112: CRLF only, Host required, no obs-fold, no smuggling through
 * Content-Length and Transfer-Encoding); HTTP/2 is libnghttp2 with limits.
 *
 * The folder's author completes this header.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
