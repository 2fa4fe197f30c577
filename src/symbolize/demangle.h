/* SPDX-License-Identifier: Apache-2.0 */
/* demangle: names of D, and of Haskell's GHC. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

/* The demangled name; `name` itself if it is not mangled, or cannot be demangled. */
struct str symbolize_demangle_d(struct str name, struct arena *a);
struct str symbolize_demangle_ghc(struct str name, struct arena *a);
