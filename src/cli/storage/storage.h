/* SPDX-License-Identifier: Apache-2.0 */
/* cli/storage/storage: `firn store`, and what a storage directory holds. This is what the other
 * folders of cli/ see of it. Private to cli/. */
#pragma once

#include "cli/storage/layout.h"
