/* SPDX-License-Identifier: Apache-2.0 */
/* store/read/read: reading, as the other folders of store/ see it. Private to store/. */
#pragma once

#include "store/read/caches.h"
#include "store/read/pick.h"
#include "store/read/view.h"
