/* SPDX-License-Identifier: Apache-2.0 */
/* The name with the least distance wins. Only three rows of the matrix are kept, as no more are
 * needed. */
#include "base/nearest.h"

#include <string.h>

#include "base/status.h"

/* Levenshtein's distance, in which two swapped neighbours are one error. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	size_t rows[3][NEAREST_WORD_MAX + 1]; /* rows of the matrix, used in turn */
	if (la > NEAREST_WORD_MAX || lb > NEAREST_WORD_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= la; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *top = rows[(i + 1) % 3];
		for (size_t k = 0; k <= lb; k++) {
			if (i == 0 || k == 0) {
				row[k] = i + k;
				continue;
			}
			row[k] = MIN(above[k - 1] + (a[i - 1] != b[k - 1]),
				MIN(above[k], row[k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = MIN(row[k], top[k - 2] + 1);
		}
	}
	return rows[la % 3][lb];
}

const char *nearest_word(const char *typed, const char *const *names)
{
	const char *best = NULL;
	/* Only typing errors, not other words: in three letters one may be wrong, but not two. */
	size_t len = strlen(typed), least = len < 4 ? 2 : len / 3 + 2;
	for (; *names; names++) {
		size_t d = distance(typed, *names);
		/* The user may have typed a part of the name, as --address for --http-address. */
		if (len >= 3 && strstr(*names, typed))
			d = MIN(d, (size_t)1);
		if (d < least) {
			least = d;
			best = *names;
		}
	}
	return best;
}
