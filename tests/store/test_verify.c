/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever byte is damaged, the piece that it lies in is named; what is sound is not. */
#define FIXTURE_FORKS
#include "codec/codec.h"
#include "tests/store/model.h"

#include <sys/wait.h>

/* Each byte; of some, where a sanitizer makes every file slow. */
enum { STEP = SANITIZED ? 13 : 1 };

struct files {
	char dir[64];
	char part[160], log[160], manifest[96];
};

static void first_name(const char *dir, const char *sub, const char *suffix, char *out)
{
	char path[96];
	struct arena a;
	struct str *names;
	size_t n;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	CHECK_OK(os_list_dir(path, &a, &names, &n, &e), &e);
	out[0] = 0;
	for (size_t i = 0; i < n && !out[0]; i++)
		if (str_ends(names[i], str_of(suffix)))
			snprintf(out, 160, "%s/%.*s", path, STR_ARG(names[i]));
	CHECK(out[0] != 0);
	arena_deinit(&a);
}

/* A part, and a log with three batches that no part has. */
static void make(struct files *f, int samples)
{
	struct store *s;
	struct err e = { 0 };
	struct model m = { .random = 21 };
	fixture_dir(f->dir);
	pid_t pid = fork();
	int status;
	CHECK(pid >= 0);
	if (pid == 0) {
		struct store_config c = fixture_config(f->dir);
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
		lock_take(&s->merge_lock); /* the merging thread waits */
		model_append(&m, s, samples, T0, 60 * SEC);
		CHECK_OK(store_flush(s, &e), &e);
		for (int i = 0; i < 3; i++)
			model_append(&m, s, 5, T0, 60 * SEC);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	first_name(f->dir, "parts", ".part", f->part);
	first_name(f->dir, "log", ".log", f->log);
	snprintf(f->manifest, sizeof(f->manifest), "%s/MANIFEST", f->dir);
}

static void load(const char *path, struct buf *b)
{
	struct err e = { 0 };
	buf_init(b, 64 << 20);
	CHECK_OK(os_read_file(path, b, &e), &e);
}

static void save(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	close(fd);
}

static enum status verify(const char *path, struct buf *out)
{
	struct err e = { 0 };
	buf_init(out, 1 << 20);
	enum status s = store_verify(path, out, &e);
	CHECK(s == OK || e.text[0]);
	buf_u8(out, 0);
	return s;
}

/* A line "… at +OFFSET, LEN bytes: …" whose piece holds the byte. */
static bool names_byte(const struct buf *found, uint64_t at)
{
	for (const char *p = (const char *)found->data; (p = strstr(p, " at +")); p++) {
		unsigned long long offset = 0, len = 0;
		if (sscanf(p, " at +%llu, %llu bytes", &offset, &len) == 2 && at >= offset &&
			at < offset + len)
			return true;
	}
	return false;
}

static void all_is_sound(void **state)
{
	(void)state;
	struct files f;
	struct buf found;
	make(&f, 100);
	CHECK(verify(f.dir, &found) == OK);
	CHECK(strstr((char *)found.data, "damaged") == NULL);
	CHECK(strstr((char *)found.data, ": 3 records\n") != NULL);
	CHECK(strstr((char *)found.data, "/MANIFEST: 1 parts\n") != NULL);
	buf_deinit(&found);
	fixture_clean(f.dir);
}

static void each_byte_of_a_part(void **state)
{
	(void)state;
	struct files f;
	struct buf b, found;
	make(&f, 20);
	load(f.part, &b);
	for (size_t i = 0; i < b.len; i += STEP) {
		b.data[i] ^= 0x10;
		save(f.part, b.data, b.len);
		b.data[i] ^= 0x10;
		enum status s = verify(f.part, &found);
		if (s != E_CORRUPT && s != E_UNSUPPORTED)
			print_error("byte %zu of %zu\n", i, b.len);
		CHECK(s == E_CORRUPT || (s == E_UNSUPPORTED && (i == 8 || i == 9)));
		CHECK(s == E_UNSUPPORTED || names_byte(&found, i));
		buf_deinit(&found);
	}
	for (size_t i = 0; i < b.len; i += 11) {
		save(f.part, b.data, i);
		CHECK(verify(f.part, &found) == E_CORRUPT);
		buf_deinit(&found);
	}
	buf_deinit(&b);
	fixture_clean(f.dir);
}

static void each_piece_is_named(void **state)
{
	(void)state;
	struct files f;
	struct buf b, found;
	struct part *p;
	struct err e = { 0 };
	make(&f, 100);
	load(f.part, &b);
	CHECK_OK(part_open(f.part, &p, &e), &e);
	size_t n;
	const struct part_section_entry *x = part_sections(p, &n);
	for (size_t i = 0; i < n; i++) /* META apart, without which nothing is read */
		if (x[i].kind == PART_TRIE || x[i].kind == PART_FUNCTIONS)
			b.data[x[i].offset + 1] ^= 1;
	b.data[33] ^= 1; /* in the first block */
	part_unref(p);
	save(f.part, b.data, b.len);
	CHECK(verify(f.dir, &found) == E_CORRUPT);
	CHECK(strstr((char *)found.data, ": TRIE at +") != NULL);
	CHECK(strstr((char *)found.data, ": FUNCTIONS at +") != NULL);
	CHECK(strstr((char *)found.data, ": SAMPLES, block 0, column ") != NULL);
	CHECK(strstr((char *)found.data, ": 3 records\n") != NULL); /* the log is sound */
	buf_deinit(&found);
	/* The same part behind a sound one: offsets count from the beginning of the file. */
	struct buf both;
	buf_init(&both, 64 << 20);
	b.data[33] ^= 1;
	for (int k = 0; k < 2; k++)
		buf_str(&both, buf_view(&b));
	both.data[b.len + 33] ^= 1;
	save(f.part, both.data, both.len);
	CHECK(verify(f.part, &found) == E_CORRUPT);
	CHECK(names_byte(&found, b.len + 33) && !names_byte(&found, 33));
	buf_deinit(&found);
	buf_deinit(&both);
	buf_deinit(&b);
	fixture_clean(f.dir);
}

/* In a file that is too long to be written anew for each byte. */
static void put_byte(const char *path, size_t at, uint8_t byte)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, &byte, 1, (off_t)at) == 1);
	close(fd);
}

static void logs(void **state)
{
	(void)state;
	struct files f;
	struct buf b, found;
	make(&f, 20);
	load(f.log, &b);
	size_t used = b.len;
	while (used && b.data[used - 1] == 0)
		used--;
	size_t last = 0; /* the last record: what is damaged there looks like a torn write */
	for (size_t i = 64; i + 8 < used; i += 8)
		if (memcmp(b.data + i, "FREC", 4) == 0)
			last = i;
	for (size_t i = 0; i < last; i += STEP) {
		put_byte(f.log, i, b.data[i] ^ 0x10);
		enum status s = verify(f.log, &found);
		put_byte(f.log, i, b.data[i]);
		bool gap = s == OK && b.data[i] == 0; /* between records */
		if (!gap && s != E_CORRUPT && s != E_UNSUPPORTED)
			print_error("byte %zu of %zu\n", i, used);
		CHECK(gap || s == E_CORRUPT || s == E_UNSUPPORTED);
		CHECK(s != E_CORRUPT || names_byte(&found, i));
		buf_deinit(&found);
	}
	save(f.log, b.data, 5000);
	CHECK(verify(f.log, &found) == E_CORRUPT);
	CHECK(strstr((char *)found.data, "the end at +5000") != NULL);
	buf_deinit(&found);
	b.data[last + 70] ^= 1;
	save(f.log, b.data, b.len);
	CHECK(verify(f.log, &found) == OK);
	CHECK(strstr((char *)found.data, "note ") != NULL);
	buf_deinit(&found);
	buf_deinit(&b);
	fixture_clean(f.dir);
}

/* A copy under another number: a store sets it aside. */
static void numbers_are_those_of_the_names(void **state)
{
	(void)state;
	struct files f;
	struct buf b, found;
	char copy[160];
	make(&f, 20);
	load(f.part, &b);
	snprintf(copy, sizeof(copy), "%s/parts/0000000000000050.part", f.dir);
	save(copy, b.data, b.len);
	CHECK(verify(f.dir, &found) == E_CORRUPT);
	CHECK(strstr((char *)found.data, "50.part: the part at +0") != NULL);
	CHECK(strstr((char *)found.data, "it is part 0000000000000001 by another name") != NULL);
	buf_deinit(&found);
	CHECK(verify(copy, &found) == OK); /* an export may be called anything */
	buf_deinit(&found);
	buf_deinit(&b);
	fixture_clean(f.dir);
}

/* ---- a store in use ---- */

static struct store *in_use;
static pthread_t who;
static atomic_bool armed;
static struct model in_use_model = { .random = 22 };

static void merge_all(struct store *s)
{
	struct err e = { 0 };
	bool merged = true;
	while (merged)
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
}

static void add_part(struct store *s)
{
	struct err e = { 0 };
	model_append(&in_use_model, s, 20, T0, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
}

/* All parts that were listed are gone when the first of them is opened, and others have come. */
static int change_once(void *ctx, const char *operation)
{
	(void)ctx, (void)operation;
	if (!atomic_load(&armed) || !pthread_equal(pthread_self(), who))
		return 0;
	atomic_store(&armed, false);
	merge_all(in_use);
	add_part(in_use);
	return 0;
}

static struct store *open_with_parts(char *dir)
{
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock); /* the merging thread waits */
	for (int i = 0; i < 8; i++)
		add_part(s);
	s->merge_retry_ns = INT64_MAX; /* and merges nothing later */
	lock_release(&s->merge_lock);
	return s;
}

static void parts_come_and_go(void **state)
{
	(void)state;
	char dir[64];
	struct buf found;
	who = pthread_self();
	store_io_hook = (struct store_io_hook){ change_once, NULL };
	in_use = open_with_parts(dir);
	lock_take(&in_use->merge_lock);
	in_use->merge_retry_ns = 0;
	lock_release(&in_use->merge_lock);
	atomic_store(&armed, true);
	CHECK(verify(dir, &found) == OK);
	CHECK(!atomic_load(&armed));
	CHECK(strstr((char *)found.data, "damaged") == NULL);
	CHECK(strstr((char *)found.data, "unreadable") == NULL);
	buf_deinit(&found);
	store_close(in_use);
	store_io_hook = (struct store_io_hook){ 0 };
	VEC_FREE(&in_use_model.samples);
	fixture_clean(dir);
}

struct crossing {
	char path[96], fresh[96];
};

static void *cross_out_later(void *ctx)
{
	const struct crossing *c = ctx;
	usleep(300000);
	CHECK(rename(c->fresh, c->path) == 0);
	return NULL;
}

/* A server removes files before it says so. */
static void manifests_come_later(void **state)
{
	(void)state;
	char dir[64];
	struct crossing c;
	struct buf before, after, found;
	struct store_deleted gone;
	struct fx_query f;
	struct err e = { 0 };
	pthread_t t;
	struct store *s = open_with_parts(dir);
	snprintf(c.path, sizeof(c.path), "%s/MANIFEST", dir);
	snprintf(c.fresh, sizeof(c.fresh), "%s/MANIFEST.fresh", dir);
	load(c.path, &before);
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	load(c.path, &after);
	save(c.fresh, after.data, after.len);
	save(c.path, before.data, before.len);
	CHECK(pthread_create(&t, NULL, cross_out_later, &c) == 0);
	CHECK(verify(dir, &found) == OK);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(strstr((char *)found.data, "damaged") == NULL);
	buf_deinit(&found);
	buf_deinit(&before);
	buf_deinit(&after);
	fx_query_end(&f);
	store_close(s);
	VEC_FREE(&in_use_model.samples);
	fixture_clean(dir);
}

static void manifests_and_versions(void **state)
{
	(void)state;
	struct files f;
	struct buf b, found;
	make(&f, 20);
	load(f.manifest, &b);
	b.data[40] ^= 1;
	save(f.manifest, b.data, b.len);
	CHECK(verify(f.dir, &found) == E_CORRUPT);
	CHECK(names_byte(&found, 40));
	buf_deinit(&found);
	b.data[40] ^= 1;
	save(f.manifest, b.data, b.len);
	CHECK(unlink(f.part) == 0);
	CHECK(verify(f.dir, &found) == E_CORRUPT);
	CHECK(strstr((char *)found.data, "there is no such file") != NULL);
	buf_deinit(&found);
	buf_deinit(&b);
	/* A later major version of each file, with a right checksum: no damage. */
	uint8_t part[64] = "FIRNPART\x02", segment[64] = "FIRNWLOG\x02",
		manifest[68] = "FIRNMANI\x02";
	uint32_t crc = codec_crc32c(0, part, 28);
	memcpy(part + 28, &crc, 4);
	crc = codec_crc32c(0, segment, 60);
	memcpy(segment + 60, &crc, 4);
	manifest[12] = sizeof(manifest);
	crc = codec_crc32c(0, manifest, sizeof(manifest) - 4);
	memcpy(manifest + sizeof(manifest) - 4, &crc, 4);
	save(f.part, part, sizeof(part));
	save(f.log, segment, sizeof(segment));
	save(f.manifest, manifest, sizeof(manifest));
	CHECK(verify(f.dir, &found) == E_UNSUPPORTED);
	static const char *const names[] = { "part", "log", "MANIFEST" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		CHECK(strstr((char *)found.data, names[i]) != NULL);
	CHECK(strstr((char *)found.data, "damaged") == NULL);
	buf_deinit(&found);
	CHECK(verify("/nonexistent/firn", &found) == E_NOTFOUND);
	buf_deinit(&found);
	fixture_clean(f.dir);
}

TEST_MAIN(cmocka_unit_test(numbers_are_those_of_the_names), cmocka_unit_test(parts_come_and_go),
	cmocka_unit_test(manifests_come_later), cmocka_unit_test(all_is_sound),
	cmocka_unit_test(each_byte_of_a_part), cmocka_unit_test(each_piece_is_named),
	cmocka_unit_test(logs), cmocka_unit_test(manifests_and_versions))
