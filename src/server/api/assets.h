/* SPDX-License-Identifier: Apache-2.0 */
/* assets: the page, and the pages of docs/ for people, embedded by tools/embed.py. */
#pragma once

#include <stdint.h>

/* The last entry of each table has no path. */
struct server_asset {
	const char *path; /* "/", "/assets/app-1a2b3c4d.js" */
	const char *content_type;
	const char *etag; /* quoted */
	const uint8_t *gzip;
	uint64_t gzip_len;
	uint64_t immutable; /* its name carries its hash */
};
extern const struct server_asset server_assets[];
extern const struct server_asset server_docs[]; /* "/docs/", "/docs/symbols.html" */
