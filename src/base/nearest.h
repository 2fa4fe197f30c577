/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest: the known word that is most like a mistyped one.
 *
 * Layer 0. A pure function.
 */
#pragma once

#define NEAREST_WORD_MAX 64 /* bytes; longer ones are near to none */

/* The name among `names` (NULL at the end) that `typed` was probably meant to be; NULL: none. */
const char *nearest_word(const char *typed, const char *const *names);
