/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo: symbol tables (symtab/symtab.h), and files that clients upload (uploads/uploads.h).
 *
 * Layer 3 (may use base, os, codec, objfile).
 */
#pragma once

#include "debuginfo/symtab/symtab.h"
#include "debuginfo/uploads/uploads.h"
