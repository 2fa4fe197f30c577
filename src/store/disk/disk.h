/* SPDX-License-Identifier: Apache-2.0 */
/* store/disk/disk: files and objects, as the other folders of store/ see them. Private to store/.
 */
#pragma once

#include "store/disk/io.h"
#include "store/disk/object.h"
#include "store/disk/place.h"
