/* SPDX-License-Identifier: Apache-2.0 */
#include "lazy.h"

uint64_t lazy_run(uint64_t x)
{
#define LAZY_CALL(n) x = lazy_function_##n(x);
	LAZY_FUNCTIONS(LAZY_CALL)
	return x;
}
