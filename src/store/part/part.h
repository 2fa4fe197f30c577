/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part: an immutable file of samples (docs/formats/part.md): written once, read by any
 * thread. This is what the other folders of store/ see of it.
 *
 * Private to store/.
 */
#pragma once

#include "store/part/block_keep.h"
#include "store/part/part_format.h"
#include "store/part/part_open.h"
#include "store/part/part_read.h"
#include "store/part/part_section.h"
#include "store/part/part_verify.h"
#include "store/part/part_write.h"
