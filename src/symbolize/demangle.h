/* SPDX-License-Identifier: Apache-2.0 */
/* demangle: names of D, and of Haskell's GHC. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

/* Of D, and of Haskell's GHC; `name` itself where it is none, or is left as it is. */
struct str symbolize_demangle_d(struct str name, struct arena *a);
struct str symbolize_demangle_ghc(struct str name, struct arena *a);
