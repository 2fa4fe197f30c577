/* SPDX-License-Identifier: Apache-2.0 */
/* lazy: the functions that lazy.c has and lazy_plugin.c calls. */
#pragma once

#include <stdint.h>

#define LAZY_EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
/* clang-format off */
#define LAZY_FUNCTIONS(X)                                                                       \
	LAZY_EIGHT(X, 1)                                                                        \
	LAZY_EIGHT(X, 2) LAZY_EIGHT(X, 3) LAZY_EIGHT(X, 4) LAZY_EIGHT(X, 5) LAZY_EIGHT(X, 6)    \
		LAZY_EIGHT(X, 7) LAZY_EIGHT(X, 8) LAZY_EIGHT(X, 9) LAZY_EIGHT(X, 10)            \
			LAZY_EIGHT(X, 11) LAZY_EIGHT(X, 12) LAZY_EIGHT(X, 13) LAZY_EIGHT(X, 14) \
				LAZY_EIGHT(X, 15)
/* clang-format on */

#define LAZY_DECLARE(n) uint64_t lazy_function_##n(uint64_t x);
LAZY_FUNCTIONS(LAZY_DECLARE)

uint64_t lazy_run(uint64_t x);
