/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#include <fcntl.h>
#include <unistd.h>

struct found {
	struct procfs_mount last;
	char point[256], type[64];
	int count, stop_after;
};

static bool collect(void *ctx, const struct procfs_mount *m)
{
	struct found *f = ctx;
	f->last = *m;
	snprintf(f->point, sizeof(f->point), "%.*s", STR_ARG(m->point));
	snprintf(f->type, sizeof(f->type), "%.*s", STR_ARG(m->type));
	return ++f->count != f->stop_after;
}

/* clang-format off */
static const struct { const char *name; const char *text; bool ok; const char *point, *type; } texts[] = {
	{ "none", "", true, "", "" },
	{ "a disk", "36 35 98:3 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n", true, "/mnt2", "ext3" },
	{ "two optional fields", "36 35 98:3 / /a rw shared:1 master:2 - fuse.sshfs a:/ rw", true, "/a", "fuse.sshfs" },
	{ "no optional field", "36 35 98:3 / /a\\040b rw - tmpfs tmpfs rw\n", true, "/a\\040b", "tmpfs" },
	{ "no source", "36 35 98:3 / / rw - tmpfs", true, "/", "tmpfs" },
	{ "empty line", "\n", false, "", "" },
	{ "no type", "36 35 98:3 / / rw - ", false, "", "" },
	{ "no dash", "36 35 98:3 / / rw tmpfs tmpfs rw", false, "", "" },
	{ "no device", "36 35 98 / / rw - tmpfs", false, "", "" },
	{ "device too large", "36 35 4294967296:3 / / rw - tmpfs", false, "", "" },
	{ "cut short", "36 35 98:3", false, "", "" },
};
/* clang-format on */

static void parses(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, texts) {
		struct found f = { .count = 0 };
		struct err e = { 0 };
		enum status s = procfs_mounts_parse(str_of(c->text), collect, &f, &e);
		CHECK_CASE(c, (s == OK) == c->ok && strcmp(f.point, c->point) == 0 &&
				      strcmp(f.type, c->type) == 0);
		CHECK_CASE(c, !f.count || (f.last.id == 36 && f.last.dev_minor == 3));
		CHECK_CASE(c, s == OK || strstr(e.text, "line 1 is malformed"));
	}
	struct found f = { .stop_after = 1 };
	struct err e = { 0 };
	CHECK_OK(procfs_mounts_parse(STR("1 1 0:1 / /x rw - a\nnonsense\n"), collect, &f, &e), &e);
}

static void knows_who_answers(void **state)
{
	(void)state;
	CHECK(procfs_mount_answers(&(struct procfs_mount){ .type = STR("ext4") }));
	CHECK(procfs_mount_answers(&(struct procfs_mount){ .type = STR("tmpfs") }));
	CHECK(!procfs_mount_answers(&(struct procfs_mount){ .type = STR("fuse.sshfs") }));
	CHECK(!procfs_mount_answers(&(struct procfs_mount){ .type = STR("nfs4") }));
	CHECK(!procfs_mount_answers(&(struct procfs_mount){ .type = STR("overlay") }));
}

struct wanted {
	uint32_t id;
	char point[256];
};

static bool point_of(void *ctx, const struct procfs_mount *m)
{
	struct wanted *w = ctx;
	if (m->id == w->id)
		snprintf(w->point, sizeof(w->point), "%.*s", STR_ARG(m->point));
	return true;
}

static void finds_the_mount_of_a_descriptor(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct wanted w = { 0 };
	CLEANUP(fd_cleanup) int fd = open("/proc/self", O_PATH | O_CLOEXEC);
	CHECK(fd >= 0 && procfs_fd_mount(fd, &w.id));
	CHECK_OK(procfs_mounts(point_of, &w, &e), &e);
	CHECK_STR(str_of(w.point), "/proc");
	CHECK(!procfs_mount_id_answers(w.id)); /* it is none of those that hold files */
	CHECK(!procfs_fd_mount(-1, &w.id) && !procfs_mount_id_answers(UINT32_MAX));
}

TEST_MAIN(cmocka_unit_test(parses), cmocka_unit_test(knows_who_answers),
	cmocka_unit_test(finds_the_mount_of_a_descriptor))
