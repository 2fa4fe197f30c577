/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: the functions of arm64_machine, by name for their test. Private to unwind/. */
#pragma once

#include "unwind/machine.h"

struct unwind_rule arm64_rule(const struct cfi_state *state, bool is_signal, bool with_bx);
ptrdiff_t arm64_find_sigreturn(const uint8_t *code, size_t len, size_t *out_len);
bool arm64_is_entry(const uint8_t *code, size_t len);
uint32_t arm64_section_rows(struct str section, const uint8_t *code, size_t len,
	struct machine_row out[MACHINE_ROWS_MAX]);
