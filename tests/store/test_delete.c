/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was deleted is in no answer and in no file, wherever it lay; all the rest is there, exactly.
 */
#define FIXTURE_FORKS
#include "base/clock.h"
#include "codec/codec.h"
#include "store/merge/merge.h"
#include "tests/store/countdown.h"
#include "tests/store/counted.h"
#include "tests/store/forker.h"
#include "tests/store/model_check.h"
#include "tests/store/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

static struct store_deleted delete_now(
	struct store *s, const char *selector, int64_t from, int64_t to)
{
	struct fx_query f;
	struct store_deleted d = { 0 };
	struct err e = { 0 };
	CHECK_OK(store_delete(s, STR(""), fx_query(&f, selector, from, to), &d, &e), &e);
	fx_query_end(&f);
	return d;
}

static void merge_all(struct store *s)
{
	struct err e = { 0 };
	bool merged;
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
}

/* The model forgets; returns how many. */
static uint64_t model_delete(struct model *m, const struct model_query *q, int64_t from, int64_t to)
{
	size_t kept = 0, all = m->samples.len;
	for (size_t i = 0; i < all; i++)
		if (!model_picks(q, &m->samples.v[i], from, to))
			m->samples.v[kept++] = m->samples.v[i];
	m->samples.len = kept;
	return all - kept;
}

/* ---- against the model ---- */

static void delete_some(struct store *s, struct model *m)
{
	const struct model_query *q =
		&model_queries[rnd_below(&m->random, ARRAY_COUNT(model_queries))];
	/* Multiples of the resolution: merged samples have moved within it. */
	int64_t from = T0 + (int64_t)rnd_below(&m->random, 6) * 10 * SEC;
	int64_t to = from + (1 + (int64_t)rnd_below(&m->random, 3)) * 10 * SEC;
	char text[256];
	model_query_text(q, text);
	uint64_t want = model_delete(m, q, from, to);
	struct store_deleted d = delete_now(s, text, from, to);
	CHECK_CASE(q, d.samples == want);
	CHECK_CASE(q, (d.rows == 0) == (want == 0) && (d.parts == 0) == (want == 0));
	d = delete_now(s, text, from, to);
	CHECK_CASE(q, d.samples == 0 && d.parts == 0);
}

static void answers_equal_the_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		char dir[64];
		struct model m = { .random = seed };
		struct err e = { 0 };
		fixture_dir(dir);
		struct store *s = open_store(dir);
		for (int round = 0; round < 6; round++) {
			model_append(&m, s, 60, T0 + round * 10 * SEC, 10 * SEC);
			model_append(&m, s, 30, T0, 60 * SEC);
			if (round % 3 == 1)
				CHECK_OK(store_flush(s, &e), &e);
			if (round == 4 && seed % 2)
				merge_all(s);
			delete_some(s, &m);
			model_check(s, &m, T0, T0 + 60 * SEC);
		}
		merge_all(s);
		delete_some(s, &m);
		model_check(s, &m, INT64_MIN, INT64_MAX);
		store_close(s);
		s = open_store(dir);
		model_check(s, &m, INT64_MIN, INT64_MAX);
		struct buf found;
		buf_init(&found, 1 << 20);
		CHECK_OK(store_verify(dir, &found, &e), &e);
		buf_deinit(&found);
		store_close(s);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
	}
}

/* ---- the disk ---- */

static const char *needle;
static int needles;

static int search_file(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)f;
	if (flag != FTW_F)
		return 0;
	struct buf b;
	struct err e = { 0 };
	buf_init(&b, 64 << 20);
	CHECK_OK(os_read_file(path, &b, &e), &e);
	if (b.len && memmem(b.data, b.len, needle, strlen(needle))) {
		print_message("%s holds %s\n", path, needle);
		needles++;
	}
	buf_deinit(&b);
	return 0;
}

/* Files that hold the text, while merging puts none in the place of others. Short strings lie in a
 * part as they are, not compressed; a record of the log shows the batch's identity. */
static int files_with(struct store *s, const char *dir, const char *text)
{
	needle = text;
	needles = 0;
	lock_take(&s->merge_lock);
	CHECK(nftw(dir, search_file, 16, FTW_PHYS) == 0);
	lock_release(&s->merge_lock);
	return needles;
}

static void append_named(struct store *s, const char *label, const char *function, uint64_t n)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1), stack;
	uint32_t frame = fx_named(&p, function, 1, NULL);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	const char *const labels[] = { "comm", label, "pid", label, NULL };
	fx_sample(&p, T0 + (int64_t)n, 1, head, stack, fx_labels(&p, labels), 0);
	struct hash128 id = { .lo = n };
	memcpy(&id.hi, label, sizeof(id.hi));
	CHECK_OK(store_append(s, STR(""), &p, id, &e), &e);
	profile_deinit(&p);
}

static void nothing_is_left_on_disk(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	append_named(s, "PublicLabel", "PublicFunction", 2);
	append_named(s, "SecretLabel", "SecretFunction", 1);
	append_named(s, "SecretLabel", "SecretFunction", 6);
	CHECK_OK(store_flush(s, &e), &e); /* a part, and a segment that is used again: 6 stays */
	append_named(s, "SecretLabel", "SecretFunction", 3);
	append_named(s, "PublicLabel", "PublicFunction", 4);
	char log_dir[96];
	snprintf(log_dir, sizeof(log_dir), "%s/log", dir);
	CHECK(files_with(s, dir, "SecretLabel") > 0); /* this test can fail */
	CHECK(files_with(s, log_dir, "SecretLa") > 0);
	struct store_deleted d = delete_now(s, COUNTED_TYPE "{comm=\"SecretLabel\"}", 0, INT64_MAX);
	CHECK(d.samples == 3 && d.parts >= 1 && d.damaged == 0); /* merging may come before */
	CHECK(files_with(s, dir, "Secret") == 0);
	CHECK(files_with(s, dir, "PublicLabel") > 0);
	append_named(s, "PublicLabel", "PublicFunction", 5); /* a segment that is not an old one */
	CHECK(files_with(s, dir, "Secret") == 0);
	/* A sender's retry of what was deleted is known, and not stored. */
	append_named(s, "SecretLabel", "SecretFunction", 3);
	CHECK(files_with(s, dir, "Secret") == 0);
	d = delete_now(s, "{}", 0, INT64_MAX);
	CHECK(d.samples == 3);
	CHECK(s->parts.len == 0);
	/* Their identities are remembered, which begin with other letters in truth. */
	CHECK(files_with(s, dir, "PublicLabel") == 0 && files_with(s, dir, "PublicFunction") == 0);
	store_close(s);
	fixture_clean(dir);
}

/* Also after a start, which no longer finds the part that held it. */
static void retries_of_what_is_gone_stay_out(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	uint32_t *counts = calloc(COUNTED_MAX, sizeof(*counts));
	CHECK(counts != NULL);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	for (uint32_t i = 0; i < 6; i++) {
		CHECK_OK(counted_append(s, i, &e), &e);
		if (i == 2)
			CHECK_OK(store_flush(s, &e), &e);
	}
	CHECK(delete_now(s, "{}", 0, INT64_MAX).samples == (uint64_t)6 * COUNTED_SAMPLES);
	for (int start = 0; start < 3; start++) {
		store_close(s);
		s = open_store(dir);
		for (uint32_t i = 0; i < 6; i++)
			CHECK_OK(counted_append(s, i, &e), &e);
		CHECK(counted_read(s, counts) == 0);
	}
	CHECK_OK(counted_append(s, 6, &e), &e); /* a new one is stored */
	CHECK(counted_read(s, counts) == COUNTED_SAMPLES);
	store_close(s);
	free(counts);
	fixture_clean(dir);
}

static void other_tenants_stay(void **state)
{
	(void)state;
	char dir[64];
	struct profile p;
	struct model m = { .random = 5 };
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	model_append(&m, s, 50, T0, 10 * SEC);
	struct model other = { .random = 6 };
	model_batch(&other, &p, 40, T0, 10 * SEC);
	CHECK_OK(store_append(s, STR("b"), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	struct fx_query f;
	struct store_deleted d;
	struct samples_query *q = fx_query(&f, "{}", 0, INT64_MAX);
	CHECK_OK(store_delete(s, STR("b"), q, &d, &e), &e);
	CHECK(d.samples == 40);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	q->to_ns = q->from_ns;
	CHECK(store_delete(s, STR(""), q, &d, &e) == E_INVALID);
	fx_query_end(&f);
	store_close(s);
	VEC_FREE(&m.samples);
	VEC_FREE(&other.samples);
	fixture_clean(dir);
}

/* ---- an exit at each operation ---- */

enum { BATCHES = 12, ASKED = BATCHES, ANSWERED };

/* Parts, the memtable and the log, and then a deletion of the batches of comm b: every third. */
static void exit_in_script(struct forked *child)
{
	struct store *s;
	struct store_config config = fixture_config(child->dir);
	struct fx_query f;
	struct store_deleted d;
	store_io_hook = (struct store_io_hook){ countdown_exit, NULL };
	if (store_open(&config, NULL, NULL, &s, NULL) != OK)
		_exit(2);
	for (uint32_t i = 0; i < BATCHES; i++) {
		if (counted_append(s, i, NULL) == OK)
			child->told[i] = true;
		if (i == 3 || i == 7)
			(void)!store_flush(s, NULL);
	}
	child->told[ASKED] = true;
	atomic_store(&countdown, child->at);
	enum status st =
		store_delete(s, STR(""), fx_query(&f, "{comm=\"b\"}", 0, INT64_MAX), &d, NULL);
	countdown_survive();
	if (st == OK)
		child->told[ANSWERED] = true;
	_exit(0);
}

static void check_batches(struct store *s, const uint8_t *told)
{
	uint32_t *counts = calloc(COUNTED_MAX, sizeof(*counts));
	CHECK(counts != NULL);
	counted_read(s, counts);
	for (uint32_t i = 0; i < BATCHES; i++) {
		CHECK(counts[i] == 0 || counts[i] == COUNTED_SAMPLES);
		CHECK(i % 3 == 0 || !told[i] || counts[i]);
		CHECK(i % 3 != 0 || !told[ANSWERED] || !counts[i]);
	}
	free(counts);
}

static void exit_at_each_operation(void **state)
{
	(void)state;
	int rc = 9, at;
	struct forker f;
	forker_start(&f, exit_in_script);
	char *dir = f.child->dir;
	uint8_t *told = f.child->told;
	for (at = 1; rc == 9; at += sweep_each()) {
		fixture_dir(dir);
		rc = forker_run(&f, at);
		CHECK((rc == 0 || rc == 9) && told[ASKED] && told[ANSWERED] == (rc == 0));
		struct store *s = open_store(dir);
		check_batches(s, told);
		store_close(s);
		s = open_store(dir);
		check_batches(s, told);
		delete_now(s, "{comm=\"b\"}", 0, INT64_MAX); /* asked again, it is done */
		told[ANSWERED] = true;
		check_batches(s, told);
		store_close(s);
		fixture_clean(dir);
	}
	forker_stop(&f);
	print_message("%d operations\n", at - 1);
	CHECK(at > 20);
}

/* ---- each operation fails ---- */

static int fail_at_zero(void *ctx, const char *operation)
{
	(void)ctx;
	(void)operation;
	return countdown_reached() ? EIO : 0;
}

static void failures_are_told(void **state)
{
	(void)state;
	bool failed = true;
	int at = 1;
	for (; failed; at += sweep_each()) {
		char dir[64];
		uint8_t told[ANSWERED + 1] = { 0 };
		struct fx_query f;
		struct store_deleted d;
		fixture_dir(dir);
		store_io_hook = (struct store_io_hook){ fail_at_zero, NULL };
		struct store *s = open_store(dir);
		for (uint32_t i = 0; i < BATCHES; i++) {
			told[i] = true;
			CHECK(counted_append(s, i, NULL) == OK);
			if (i == 3 || i == 7)
				CHECK(store_flush(s, NULL) == OK);
		}
		struct samples_query *q = fx_query(&f, "{comm=\"b\"}", 0, INT64_MAX);
		atomic_store(&countdown, at);
		told[ANSWERED] = store_delete(s, STR(""), q, &d, NULL) == OK;
		failed = countdown_stop();
		fx_query_end(&f);
		check_batches(s, told);
		store_close(s);
		s = open_store(dir);
		check_batches(s, told);
		store_close(s);
		fixture_clean(dir);
	}
	print_message("%d operations\n", at - 1);
	CHECK(at > 20);
}

/* ---- a full disk ---- */

/* Nothing can be written until so many files were removed. */
static atomic_int files_to_go;

static int full_disk(void *ctx, const char *operation)
{
	(void)ctx;
	if (strcmp(operation, "unlink") == 0 && atomic_load(&files_to_go) > 0)
		atomic_fetch_sub(&files_to_go, 1);
	bool writes = strcmp(operation, "write") == 0 || strcmp(operation, "alloc") == 0;
	return writes && atomic_load(&files_to_go) > 0 ? ENOSPC : 0;
}

/* A part of comm b alone, one of both, both in memory. */
static struct store *open_filled(const char *dir)
{
	struct err e = { 0 };
	store_io_hook = (struct store_io_hook){ full_disk, NULL };
	struct store *s = open_store(dir);
	lock_take(&s->merge_lock); /* the merging thread waits */
	for (uint32_t i = 0; i < 7; i++) {
		CHECK_OK(counted_append(s, i, &e), &e);
		if (i == 0 || i == 4)
			CHECK_OK(store_flush(s, &e), &e);
	}
	CHECK(s->parts.len == 2);
	s->merge_retry_ns = INT64_MAX; /* they stay apart */
	lock_release(&s->merge_lock);
	return s;
}

/* What needs no room goes first; when that is not enough the answer says what is missing, and when
 * it is, all is done in one go. */
static void a_full_disk_can_be_emptied(void **state)
{
	(void)state;
	static const int to_go[] = { 1000, 3 };
	for (size_t i = 0; i < ARRAY_COUNT(to_go); i++) {
		char dir[64];
		uint32_t *counts = calloc(COUNTED_MAX, sizeof(*counts));
		struct fx_query f;
		struct store_deleted d;
		struct err e = { 0 };
		CHECK(counts != NULL);
		fixture_dir(dir);
		atomic_store(&files_to_go, 0);
		struct store *s = open_filled(dir);
		struct samples_query *q = fx_query(&f, "{comm=\"b\"}", 0, INT64_MAX);
		atomic_store(&files_to_go, to_go[i]);
		enum status st = store_delete(s, STR(""), q, &d, &e);
		bool enough = atomic_exchange(&files_to_go, 0) <= 0;
		counted_read(s, counts);
		CHECK(counts[0] == 0); /* it was in a part of its own */
		CHECK(counts[1] && counts[2] && counts[4] && counts[5]);
		if (!enough) {
			CHECK(st == E_NOSPACE && strstr(e.text, "disk") != NULL);
			CHECK(counts[3] && counts[6]);
			CHECK_OK(store_delete(s, STR(""), q, &d, &e), &e);
			counted_read(s, counts);
		} else {
			CHECK_OK(st, &e);
			CHECK(d.samples == (uint64_t)3 * COUNTED_SAMPLES);
		}
		CHECK(counts[3] == 0 && counts[6] == 0 && counts[5]);
		fx_query_end(&f);
		store_close(s);
		s = open_store(dir);
		counted_read(s, counts);
		CHECK(!counts[0] && !counts[3] && !counts[6] && counts[1] && counts[5]);
		store_close(s);
		free(counts);
		fixture_clean(dir);
	}
	store_io_hook = (struct store_io_hook){ 0 };
}

/* ---- a log segment that had to be kept ---- */

static void in_child(const char *dir, void (*fn)(struct store *s))
{
	int status;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct store *s;
		struct store_config c = fixture_config(dir);
		if (store_open(&c, NULL, NULL, &s, NULL) != OK)
			_exit(2);
		fn(s);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void append_three(struct store *s)
{
	for (uint32_t i = 0; i < 3; i++)
		if (counted_append(s, i, NULL) != OK)
			_exit(3);
}

/* What is in the segment would come back, so it is refused. */
static void delete_all(struct store *s)
{
	struct fx_query f;
	struct store_deleted gone;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	if (store_delete(s, STR(""), q, &gone, &e) != E_UNAVAILABLE || !strstr(e.text, ".log"))
		_exit(4);
}

/* A damaged segment that cannot be copied stays until the next start, with what is sound in it. */
static void a_kept_segment_gives_nothing_back(void **state)
{
	(void)state;
	char dir[64], path[128];
	uint8_t byte = 0x5A;
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	in_child(dir, append_three);
	snprintf(path, sizeof(path), "%s/quarantine/0000000000000001.log", dir);
	CHECK(mkdir(path, 0750) == 0); /* no file can be made there */
	snprintf(path, sizeof(path), "%s/log/0000000000000001.log", dir);
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0 && pwrite(fd, &byte, 1, LOG_HEADER_BYTES + LOG_RECORD_HEADER_BYTES) == 1);
	CHECK(close(fd) == 0);
	in_child(dir, delete_all);
	snprintf(path, sizeof(path), "%s/quarantine/0000000000000001.log", dir);
	CHECK(rmdir(path) == 0);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	struct fx_query f;
	struct store_deleted gone;
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	fx_query_end(&f);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	uint32_t *counts = calloc(COUNTED_MAX, sizeof(*counts));
	CHECK(counts != NULL && counted_read(s, counts) == 0);
	free(counts);
	store_close(s);
	fixture_clean(dir);
}

/* A part that this firn does not read may hold what is to be deleted. */
static void a_newer_part_stops_it(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct model m = { .random = 41 };
	struct fx_query f;
	struct store_deleted gone;
	struct err e = { 0 };
	uint8_t header[64] = "FIRNPART\x02";
	uint32_t crc = codec_crc32c(0, header, 28);
	memcpy(header + 28, &crc, 4);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	model_append(&m, s, 50, T0, 60 * SEC);
	store_close(s);
	snprintf(path, sizeof(path), "%s/parts/0000000000000077.part", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, header, sizeof(header)) == sizeof(header) && close(fd) == 0);
	s = open_store(dir);
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK(store_delete(s, STR(""), q, &gone, &e) == E_UNSUPPORTED);
	CHECK(strstr(e.text, "0000000000000077.part is of a newer firn") != NULL);
	model_check(s, &m, INT64_MIN, INT64_MAX); /* all of it is there */
	CHECK(unlink(path) == 0);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	CHECK(gone.samples == 50);
	fx_query_end(&f);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* The process is small as long as it starts a forker. */
TEST_MAIN(cmocka_unit_test(exit_at_each_operation), cmocka_unit_test(a_newer_part_stops_it),
	cmocka_unit_test(a_kept_segment_gives_nothing_back),
	cmocka_unit_test(answers_equal_the_model), cmocka_unit_test(nothing_is_left_on_disk),
	cmocka_unit_test(retries_of_what_is_gone_stay_out), cmocka_unit_test(other_tenants_stay),
	cmocka_unit_test(failures_are_told), cmocka_unit_test(a_full_disk_can_be_emptied))
