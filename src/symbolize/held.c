/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that wait, by a descriptor, until their table is asked for. A worker looks at them now and
 * then. The lock is given up while a path is followed: the entry is looked at anew afterwards, as
 * it may stand for another build id by then.
 */
#include "base/clock.h"
#include "os/os.h"
#include "symbolize/tables.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Files that changed lately are under development: they will be written over, some linkers do that
 * in place. */
#define YOUNG_NS (24 * 3600 * NS_PER_SEC)

static bool is_young(const struct stat *st)
{
	return clock_realtime_ns() / NS_PER_SEC - st->st_mtim.tv_sec < YOUNG_NS / NS_PER_SEC;
}

/* Is the file that waits the one at its path, so that it can be had again? */
static bool lies_at(const char *path, const struct stat *of)
{
	struct stat st;
	CLEANUP(fd_cleanup) int fd = -1;
	return os_open_regular(AT_FDCWD, path, &fd, NULL) == OK && fstat(fd, &st) == 0 &&
	       st.st_dev == of->st_dev && st.st_ino == of->st_ino;
}

static bool waits(const struct symbolize_entry *en)
{
	return en->state == ENTRY_IDLE && en->fd >= 0 && en->wants > 0;
}

void symbolize_held_look(struct symbolize_tables *t)
{
	for (size_t i = 0; i < t->entries.len && !t->stop; i++) {
		struct symbolize_entry *en = t->entries.v[i];
		struct stat st;
		char id[sizeof(en->id)], path[SYMBOLIZE_PATH_MAX];
		if (!waits(en) || fstat(en->fd, &st) != 0)
			continue;
		bool is_there = st.st_nlink > 0 && t->config.local_files && !is_young(&st);
		if (is_there && !en->is_found) {
			memcpy(id, en->id, sizeof(id));
			snprintf(path, sizeof(path), "%s", en->path ? en->path : "");
			pthread_mutex_unlock(&t->lock);
			is_there = lies_at(path, &st);
			pthread_mutex_lock(&t->lock);
			if (strcmp(en->id, id) != 0 || !waits(en))
				continue;
			en->is_found = is_there;
		}
		if (!is_there && !symbolize_entry_queue(t, en))
			return;
	}
}

static bool is_unused(const struct symbolize_tables *t, const struct symbolize_entry *en)
{
	return en->is_brief && en->state == ENTRY_IDLE && en->home &&
	       t->held < SYMBOLIZER_HELD_MAX && !(en->open && en->open->refs > 1) &&
	       clock_monotonic_ns() - en->asked_ns > t->config.brief_ns;
}

void symbolize_held_drop_unused(struct symbolize_tables *t)
{
	for (size_t i = 0; i < t->entries.len && !t->stop; i++) {
		struct symbolize_entry *en = t->entries.v[i];
		char id[sizeof(en->id)], path[SYMBOLIZE_PATH_MAX];
		if (!is_unused(t, en))
			continue;
		memcpy(id, en->id, sizeof(id));
		snprintf(path, sizeof(path), "%s", en->home);
		pthread_mutex_unlock(&t->lock);
		CLEANUP(fd_cleanup) int fd = symbolize_file_open(path, id);
		pthread_mutex_lock(&t->lock);
		if (strcmp(en->id, id) != 0 || !is_unused(t, en))
			continue;
		struct stat st;
		if (fd >= 0 && fstat(fd, &st) == 0 && is_young(&st)) {
			en->asked_ns = clock_monotonic_ns(); /* later */
			continue;
		}
		en->is_brief = false;
		if (fd < 0 || en->fd >= 0)
			continue; /* kept */
		symbolize_entry_close(t, en);
		metric_add(&t->metrics->unused, 1);
		symbolize_disk_remove(&t->disk, id);
		en->fd = STEAL_FD(fd);
		free(en->path);
		en->path = STEAL_PTR(en->home);
		t->held++;
		en->is_done = en->wanted = false;
		en->is_found = true;
		en->wants = MAX(en->wants, 1u);
	}
}
