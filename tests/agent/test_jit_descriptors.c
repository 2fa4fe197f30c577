/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/jit_descriptors.h"

#include "jit_registered.h"
#include "test.h"

#include <unistd.h>

struct registered_descriptor __jit_debug_descriptor = { .version = 1 };

static struct code_files_memory known;

static void finds_its_own(void **state)
{
	(void)state;
	uint64_t at[JIT_DESCRIPTORS_MAX];
	uint64_t own = (uint64_t)(uintptr_t)&__jit_debug_descriptor;
	for (int i = 0; i < 2; i++) { /* what has one is asked again */
		assert_int_equal(jit_descriptors_find(&known, (int)getpid(), at), 1);
		CHECK(at[0] == own);
	}
	assert_int_equal(jit_descriptors_find(&known, INT32_MAX, at), 0);
}

TEST_MAIN(cmocka_unit_test(finds_its_own))
