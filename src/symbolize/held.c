/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that wait, with an open descriptor, until their table is needed. A worker checks them now
 * and then. It releases the lock while it opens a path; afterwards it searches for the entry again,
 * which may be of another build id by then.
 */
#include "base/clock.h"
#include "os/os.h"
#include "symbolize/entries.h"
#include "symbolize/find.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Files that changed lately are under development: they will be overwritten, by some linkers in
 * place. */
#define YOUNG_NS (24 * 3600 * NS_PER_SEC)

static bool is_young(const struct stat *st)
{
	return clock_realtime_ns() / NS_PER_SEC - st->st_mtim.tv_sec < YOUNG_NS / NS_PER_SEC;
}

bool symbolize_held_lies_at(const char *path, const struct stat *of)
{
	struct stat st;
	CLEANUP(fd_cleanup) int fd = -1;
	return os_open_regular(AT_FDCWD, path, &fd, NULL) == OK && fstat(fd, &st) == 0 &&
	       st.st_dev == of->st_dev && st.st_ino == of->st_ino;
}

/* Closes files that were removed and whose tables were trimmed, or are whole: no new process can
 * start from them, and closing them frees their disk space. */
static void let_go(struct symbolize_tables *t, struct symbolize_entry *en)
{
	struct stat st;
	int *fds[] = { &en->kept_fd, en->state == ENTRY_IDLE && en->is_left ? &en->fd : NULL };
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		if (fds[i] && *fds[i] >= 0 && fstat(*fds[i], &st) == 0 && st.st_nlink == 0) {
			fd_cleanup(fds[i]);
			*fds[i] = -1;
			t->held--;
		}
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
		let_go(t, en);
		if (!waits(en) || fstat(en->fd, &st) != 0)
			continue;
		bool is_there = st.st_nlink > 0 && t->config.local_files && !is_young(&st);
		if (is_there && !en->is_found) {
			memcpy(id, en->id, sizeof(id));
			snprintf(path, sizeof(path), "%s", en->path ? en->path : "");
			lock_release(&t->lock);
			is_there = symbolize_held_lies_at(path, &st);
			lock_take(&t->lock);
			if (strcmp(en->id, id) != 0 || !waits(en))
				continue;
			en->is_found = is_there;
		}
		if (!is_there && !symbolize_entry_queue(t, en))
			return;
	}
}
