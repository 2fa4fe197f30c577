/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout: the names of all that firn keeps on disk, in one table, for the check that a directory is
 * firn's and for firn-disk-layout(7).
 *
 * Private to cli/. No I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cli_layout_entry {
	const char *name;   /* name in the storage directory, or a whole path */
	const char *text;   /* what it is, and the effect of removing it */
	const char *format; /* the page of docs/formats, "" for none */
};

extern const struct cli_layout_entry cli_layout_storage[]; /* ends with a NULL name */
extern const struct cli_layout_entry cli_layout_others[];  /* outside of it, likewise */

/* Whether a file or folder of that name, right in a storage directory, is firn's. */
bool cli_layout_has(const char *name);
