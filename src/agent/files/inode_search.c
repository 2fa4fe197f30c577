/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First /proc/self/mountinfo tells which folders may be searched, without asking any file system.
 * Of these only folders on the device of the key are searched. (On an overlay and on btrfs a file's
 * device differs from its mount's.) A folder is opened component by component, without following
 * links: a link ("/bin" of a merged /usr) leads to another folder of the list, or to a place that
 * is not searched.
 */
#include "agent/files/inode_search.h"

#include "os/os.h"
#include "procfs/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_ENTRIES_MAX 65536
/* Entries looked at in a folder that is not one of the usual ones, since its owner may fill it.
 * They take some milliseconds. */
#define BESIDE_ENTRIES_MAX 4096
#define PATTERN_FOLDERS_MAX 16 /* that match one component */
#define KERNEL_MINOR_BITS 20   /* include/linux/kdev_t.h */

static const char *const folders[] = {
	"/usr/bin",
	"/usr/sbin",
	"/usr/local/bin",
	"/usr/lib/*-linux-gnu",
	"/usr/lib64",
	"/usr/libexec",
	"/usr/lib/gcc/*/*",
	"/usr/libexec/gcc/*/*",
	"/usr/lib/git-core",
	"/usr/local/lib",
	"/usr/local/sbin",
	"/bin",
	"/sbin",
	"/lib/*-linux-gnu",
};

/* ---- which folders ---- */

struct place {
	struct str fixed; /* the folder up to its first component with a '*' */
	char text[PATH_MAX];
	size_t point_len; /* of the mount that it lies on */
	bool is_there;    /* on the device of the key, as far as can be said */
	bool may_hang;
};

#define PLACES_MAX 16
static_assert(ARRAY_COUNT(folders) <= PLACES_MAX && INODE_SEARCH_BESIDE_MAX <= PLACES_MAX, "room");

struct places {
	const struct file_key *key;
	const char *const *folders;
	size_t count;
	struct place v[PLACES_MAX];
};

static bool is_below(struct str path, struct str above)
{
	if (str_eq(above, STR("/")))
		return true;
	return str_starts(path, above) && (path.len == above.len || path.p[above.len] == '/');
}

static bool is_on(const struct procfs_mount *m, const struct file_key *key)
{
	return (m->dev_major << KERNEL_MINOR_BITS | m->dev_minor) == key->dev ||
	       str_eq(m->type, STR("overlay")) || str_eq(m->type, STR("btrfs"));
}

static bool look_at_mount(void *ctx, const struct procfs_mount *m)
{
	struct places *p = ctx;
	bool answers = procfs_mount_answers(m) || str_eq(m->point, STR("/"));
	for (size_t i = 0; i < p->count; i++) {
		struct place *x = &p->v[i];
		bool covers = is_below(x->fixed, m->point);
		if (covers || is_below(m->point, x->fixed))
			x->may_hang |= !answers;
		/* Of several mounts at one point the last one is on top. */
		if (covers && m->point.len >= x->point_len) {
			x->point_len = m->point.len;
			x->is_there = is_on(m, p->key);
		}
	}
	return true;
}

static bool choose_places(const char *root, struct places *p)
{
	for (size_t i = 0; i < p->count; i++) {
		struct place *x = &p->v[i];
		snprintf(x->text, sizeof(x->text), "%s%s", root, p->folders[i]);
		size_t fixed = strcspn(x->text, "*");
		while (x->text[fixed]) /* back to the component's beginning */
			if (x->text[--fixed] == '/')
				break;
		x->fixed = str_make(x->text, fixed);
	}
	return procfs_mounts(look_at_mount, p, NULL) == OK;
}

/* ---- in a folder ---- */

struct search {
	const struct file_key *key;
	struct open_file *out;
	char *path; /* the caller's */
	uint32_t entries_max;
};

static int open_component(int folder, const char *name)
{
	return openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void close_folder(DIR **d)
{
	if (*d)
		closedir(*d);
}

static DIR *read_folder(int place)
{
	int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !d)
		close(fd);
	return d;
}

/* Old XFS does not say what an entry is. */
static bool is_file(DIR *d, const struct dirent *entry)
{
	struct stat st;
	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_REG;
	return fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/* Its end is cut to fit. */
static void put_path(char path[OPEN_FILE_PATH_MAX], const char *folder, const char *name)
{
	const char *const parts[] = { folder, "/", name };
	size_t len = 0;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		size_t n = MIN(strlen(parts[i]), (size_t)OPEN_FILE_PATH_MAX - 1 - len);
		memcpy(path + len, parts[i], n);
		len += n;
	}
	path[len] = 0;
}

/* The entry with the inode; the folder says the number without a stat() of each. */
static bool search_folder(struct search *s, int place, const char *folder)
{
	CLEANUP(close_folder) DIR *d = read_folder(place);
	const struct dirent *entry;
	for (uint32_t n = 0; d && n < s->entries_max && (entry = readdir(d)); n++) {
		if (entry->d_ino != s->key->inode || !is_file(d, entry))
			continue;
		CLEANUP(open_file_close) struct open_file f = { .fd = -1 };
		int fd;
		if (os_open_regular(dirfd(d), entry->d_name, &fd, NULL) != OK ||
			open_file_init(&f, fd, entry->d_name, NULL) != OK ||
			!open_file_is(&f, s->key))
			continue;
		put_path(s->path, folder, entry->d_name);
		*s->out = f;
		f = (struct open_file){ .fd = -1 };
		return true;
	}
	return false;
}

static bool search_below(struct search *s, int place, const char *pattern, const char *folder);

static bool search_component(
	struct search *s, int place, const char *name, const char *rest, const char *folder)
{
	char below[PATH_MAX];
	CLEANUP(fd_cleanup) int next = open_component(place, name);
	snprintf(below, sizeof(below), "%.3000s/%s", folder, name);
	return next >= 0 && search_below(s, next, rest, below);
}

/* `pattern`: "/lib/gcc/…", or "" for the folder itself. */
static bool search_below(struct search *s, int place, const char *pattern, const char *folder)
{
	char part[NAME_MAX + 1];
	if (!pattern[0])
		return search_folder(s, place, folder);
	size_t len = strcspn(pattern + 1, "/");
	snprintf(part, sizeof(part), "%.*s", (int)len, pattern + 1);
	const char *rest = pattern + 1 + len;
	if (!strchr(part, '*'))
		return search_component(s, place, part, rest, folder);
	CLEANUP(close_folder) DIR *d = read_folder(place);
	const struct dirent *entry;
	bool found = false;
	for (uint32_t n = 0, met = 0; d && !found && n < FOLDER_ENTRIES_MAX &&
				      met < PATTERN_FOLDERS_MAX && (entry = readdir(d));
		n++) {
		if (entry->d_type == DT_REG || fnmatch(part, entry->d_name, FNM_PERIOD) != 0)
			continue;
		met++;
		found = search_component(s, place, entry->d_name, rest, folder);
	}
	return found;
}

static bool search_all(
	const char *root, const char *const *in, size_t count, const struct search *search)
{
	struct search s = *search;
	CLEANUP(free_cleanup) struct places *p = calloc(1, sizeof(*p));
	if (!p)
		return false;
	p->key = s.key;
	p->folders = in;
	p->count = count;
	CLEANUP(fd_cleanup)
	int top = open(root[0] ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 || !choose_places(root, p))
		return false;
	for (size_t i = 0; i < p->count; i++)
		if (p->v[i].is_there && !p->v[i].may_hang &&
			search_below(&s, top, p->folders[i], root))
			return true;
	return false;
}

bool inode_search(const char *root, const struct file_key *key, struct open_file *out,
	char path[OPEN_FILE_PATH_MAX])
{
	const struct search s = { key, out, path, FOLDER_ENTRIES_MAX };
	return search_all(root, folders, ARRAY_COUNT(folders), &s);
}

void inode_search_beside_add(struct inode_search_beside *b, struct str path)
{
	size_t len = str_rindex(path, '/');
	if (len == 0 || len >= path.len || len >= sizeof(b->folders[0]) || path.p[0] != '/' ||
		memchr(path.p, '*', len) || b->count == INODE_SEARCH_BESIDE_MAX)
		return;
	for (size_t i = 0; i < b->count; i++)
		if (str_eq(str_of(b->folders[i]), str_sub(path, 0, len)))
			return;
	snprintf(b->folders[b->count++], sizeof(b->folders[0]), "%.*s", (int)len, path.p);
}

static bool is_usual(const char *folder)
{
	for (size_t i = 0; i < ARRAY_COUNT(folders); i++)
		if (fnmatch(folders[i], folder, FNM_PATHNAME) == 0)
			return true;
	return false;
}

void inode_search_beside_note(struct inode_search_beside *b, struct str path)
{
	struct inode_search_beside fresh = { 0 };
	inode_search_beside_add(&fresh, path);
	if (fresh.count == 0 || is_usual(fresh.folders[0]))
		return;
	for (size_t i = 0; i < b->count && fresh.count < INODE_SEARCH_BESIDE_MAX; i++)
		if (strcmp(b->folders[i], fresh.folders[0]) != 0)
			memcpy(fresh.folders[fresh.count++], b->folders[i], sizeof(b->folders[i]));
	*b = fresh;
}

bool inode_search_beside(const struct inode_search_beside *b, const struct file_key *key,
	struct open_file *out, char path[OPEN_FILE_PATH_MAX])
{
	const char *in[INODE_SEARCH_BESIDE_MAX];
	for (size_t i = 0; i < b->count; i++)
		in[i] = b->folders[i];
	const struct search s = { key, out, path, BESIDE_ENTRIES_MAX };
	return search_all("", in, b->count, &s);
}
