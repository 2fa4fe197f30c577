/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/memory: samples in memory and the memory budget, as the other folders of store/ see
 * them. Private to store/.
 */
#pragma once

#include "store/memory/canon.h"
#include "store/memory/dictionary.h"
#include "store/memory/memory_share.h"
#include "store/memory/memtable.h"
#include "store/memory/tables.h"
