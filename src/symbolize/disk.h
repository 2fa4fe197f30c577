/* SPDX-License-Identifier: Apache-2.0 */
/* disk: the folder of the tables, and the limit of its bytes. */
#pragma once

#include "base/lock.h"
#include "base/vec.h"
#include "symbolize/find.h"
#include "symbolize/symbolize.h"

struct symbolize_disk {
	char *dir;
	uint64_t bytes_max;
	struct symbolize_metrics *metrics;
	bool is_starting;
	struct lock lock; /* guards what follows */
	uint64_t bytes;
};
/* Makes the folder, and removes leftovers of a run that was killed, and tables beyond the limit. */
NODISCARD enum status symbolize_disk_init(struct symbolize_disk *d, const char *dir,
	uint64_t bytes_max, struct symbolize_metrics *metrics, struct err *e);
void symbolize_disk_deinit(struct symbolize_disk *d);
/* The path of a build id's table, or of the table's folder; false: too long. */
bool symbolize_disk_path(
	const struct symbolize_disk *d, const char *id, bool folder, char out[SYMBOLIZE_PATH_MAX]);
/* Marks a table as used now: the least recently used are removed first. */
void symbolize_disk_used(const char *path);
uint64_t symbolize_disk_bytes(struct symbolize_disk *d);
/* To be called when a table was removed or became smaller, by so many bytes. */
void symbolize_disk_freed(struct symbolize_disk *d, uint64_t bytes);
/* Lists the tables that are on disk now; `out` must be empty at first. */
struct symbolize_on_disk {
	char name[SYMBOLIZE_ID_MAX + 8]; /* "xx/rest.sym" */
	uint64_t bytes;
	int64_t used_ns;
};
struct symbolize_listing {
	const struct symbolize_disk *d;
	VEC(struct symbolize_on_disk) files;
	uint64_t bytes;
};
NODISCARD enum status symbolize_disk_list(
	struct symbolize_disk *d, struct symbolize_listing *out, struct err *e);
/* To be called when a table was built. Removes others if all together are over the limit. */
void symbolize_disk_added(struct symbolize_disk *d, const char *path);
