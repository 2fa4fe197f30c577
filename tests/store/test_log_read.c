/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this reader sees in a segment, sound or damaged, is what the Python reader sees, which was
 * written from docs/formats/log.md; and the samples of the log are those of the part that the
 * memtable became.
 */
#include "store/log/log.h"

#include "codec/codec.h"
#include "store/log/batch.h"
#include "tests/store/model.h"
#include "tests/store/python.h"

static void save(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	close(fd);
}

static void load(const char *path, struct buf *b)
{
	struct err e = { 0 };
	buf_init(b, 64 << 20);
	CHECK_OK(os_read_file(path, b, &e), &e);
}

/* ---- samples ---- */

static void append_linked(struct model *m, struct store *s, int n)
{
	struct profile p;
	struct err e = { 0 };
	struct profile_link link = { .trace_id = { 1, 2, 3 }, .span_id = { 9 } };
	uint32_t id;
	model_batch(m, &p, n, T0, 100 * SEC);
	CHECK(profile_add_link(&p, &link, &id) == OK);
	for (size_t i = 0; i < p.samples.len; i += 3)
		p.samples.v[i].link = id;
	CHECK_OK(store_append(s, STR("a tenant"), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

static void samples_are_those_of_the_part(void **state)
{
	(void)state;
	if (!python_has_zstandard())
		SKIP("no /usr/bin/python3 with the module zstandard (python3-zstandard)");
	char dir[64], copy[96], arguments[512];
	struct model m = { .random = 31 };
	struct store *s;
	struct buf b, logged, parted;
	struct err e = { 0 };
	buf_init(&logged, 64 << 20);
	buf_init(&parted, 64 << 20);
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock); /* the merging thread waits */
	model_append(&m, s, 400, T0, 100 * SEC);
	model_append(&m, s, 1, T0, 100 * SEC); /* too small to be packed */
	append_linked(&m, s, 200);
	snprintf(copy, sizeof(copy), "%s/log/0000000000000001.log", dir);
	load(copy, &b);
	snprintf(copy, sizeof(copy), "%s/copy", dir);
	save(copy, b.data, b.len);
	CHECK_OK(store_flush(s, &e), &e);
	CHECK(s->parts.len == 1);
	snprintf(arguments, sizeof(arguments),
		"log_reader.py --rows cpu,pid,span_id,thread_id,thread_name,trace_id %s", copy);
	CHECK(python_run(arguments, &logged));
	snprintf(arguments, sizeof(arguments), "part_reader.py %s", part_path(s->parts.v[0]));
	CHECK(python_run(arguments, &parted));
	lock_release(&s->merge_lock);
	CHECK(logged.len > 1000);
	CHECK(memmem(logged.data, logged.len, "span_id=09", 10) != NULL);
	CHECK(str_eq(buf_view(&logged), buf_view(&parted)));
	store_close(s);
	buf_deinit(&b);
	buf_deinit(&logged);
	buf_deinit(&parted);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* ---- damage ---- */

static void print_events(const struct buf *b, struct buf *out)
{
	struct log_cursor c;
	struct log_record r;
	if (log_cursor_open(buf_view(b), "segment", &c, NULL) != OK) {
		buf_cstr(out, "refused\n");
		return;
	}
	if (b->len < c.size)
		buf_printf(out, "cut %llu\n", (unsigned long long)c.size);
	for (enum log_event ev = LOG_EVENT_RECORD; ev != LOG_EVENT_END;) {
		ev = log_cursor_next(&c, &r);
		if (ev == LOG_EVENT_RECORD) {
			buf_printf(out, "record %llu %zu %lld ", (unsigned long long)r.sequence,
				c.offset, (long long)r.arrived_ns);
			for (size_t i = 0; i < sizeof(r.batch_id); i++)
				buf_printf(out, "%02x", ((const uint8_t *)&r.batch_id)[i]);
			buf_printf(out, " %u %u\n", r.kind, r.coding);
		}
		if (ev == LOG_EVENT_DAMAGE)
			buf_printf(out, "damage %zu %zu\n", c.offset, c.length);
		if (ev == LOG_EVENT_TORN)
			buf_printf(out, "torn %zu\n", c.offset);
	}
	buf_cstr(out, "end\n");
}

static void append_text(struct log *l, const char *text, uint64_t n)
{
	struct log_record r = { .kind = LOG_KIND_BATCH,
		.payload = str_of(text),
		.raw_len = (uint32_t)strlen(text),
		.arrived_ns = -(int64_t)n,
		.batch_id = { n, n * 3 } };
	uint64_t sequence;
	struct err e = { 0 };
	CHECK_OK(log_append(l, &r, &sequence, &e), &e);
}

/* A small segment that was used before: `size` says how much of the file there is. */
static void make_segment(const char *dir, struct buf *out)
{
	struct log *l;
	struct err e = { 0 };
	char path[128];
	CHECK_OK(log_open(dir, (struct hash128){ 1, 2 }, 1, FIXTURE_SEGMENT_BYTES, &l, &e), &e);
	for (uint64_t i = 0; i < 9; i++)
		append_text(l, "what was there before, of another length than what follows", i);
	CHECK_OK(log_release(l, log_seal(l), &e), &e);
	for (uint64_t i = 0; i < 5; i++)
		append_text(
			l, i % 2 ? "short" : "a payload whose length is not a multiple of 8", i);
	log_close(l);
	snprintf(path, sizeof(path), "%s/0000000000000002.log", dir);
	load(path, out);
	out->len = 2048;
	uint64_t size = out->len;
	memcpy(out->data + 48, &size, 8);
	uint32_t crc = codec_crc32c(0, out->data, 60);
	memcpy(out->data + 60, &crc, 4);
}

static void damage(struct buf *b, uint64_t *random, int round)
{
	size_t at = rnd_below(random, 1200), from = rnd_below(random, 1200);
	switch (round % 5) {
	case 0:
		break;
	case 1:
		b->data[at] ^= (uint8_t)(1u << rnd_below(random, 8));
		break;
	case 2:
		b->len = at;
		break;
	case 3: /* another place's bytes: records twice, in another order, out of step */
		memmove(b->data + at / 8 * 8, b->data + from / 8 * 8, rnd_below(random, 400));
		break;
	default:
		memset(b->data + at, 0, rnd_below(random, 400));
		break;
	}
}

enum { ROUNDS = 150 };

static void damage_is_seen_alike(void **state)
{
	(void)state;
	if (!python_has_zstandard())
		SKIP("no /usr/bin/python3 with the module zstandard (python3-zstandard)");
	char dir[64], path[128];
	uint64_t random = 4711;
	struct buf segment, arguments, mine, theirs;
	fixture_dir(dir);
	make_segment(dir, &segment);
	buf_init(&arguments, 1 << 20);
	buf_init(&mine, 1 << 20);
	buf_init(&theirs, 1 << 20);
	buf_cstr(&arguments, "log_reader.py --events");
	for (int i = 0; i < ROUNDS; i++) {
		struct buf b;
		buf_init(&b, 1 << 16);
		buf_str(&b, buf_view(&segment));
		damage(&b, &random, i);
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		save(path, b.data, b.len);
		buf_printf(&arguments, " %s", path);
		print_events(&b, &mine);
		buf_deinit(&b);
	}
	buf_cstr(&arguments, " | sed 's/^refused .*/refused/'");
	buf_u8(&arguments, 0);
	CHECK(python_run((const char *)arguments.data, &theirs));
	if (!str_eq(buf_view(&mine), buf_view(&theirs)))
		print_error("mine:\n%.*s\ntheirs:\n%.*s\n", STR_ARG(buf_view(&mine)),
			STR_ARG(buf_view(&theirs)));
	CHECK(str_eq(buf_view(&mine), buf_view(&theirs)));
	static const char *const seen[] = { "\ntorn ", "\ndamage ", "\ncut ", "refused\n" };
	for (size_t i = 0; i < ARRAY_COUNT(seen); i++)
		CHECK(memmem(mine.data, mine.len, seen[i], strlen(seen[i])) != NULL);
	buf_deinit(&segment);
	buf_deinit(&arguments);
	buf_deinit(&mine);
	buf_deinit(&theirs);
	fixture_clean(dir);
}

/* ---- versions ---- */

static void reads_later_minor_versions(void **state)
{
	(void)state;
	char dir[64];
	struct buf b, payload;
	struct log_cursor c;
	struct log_record r;
	struct err e = { 0 };
	int kinds[256] = { 0 };
	fixture_dir(dir);
	make_segment(dir, &b);
	b.data[10] = 7; /* minor */
	uint32_t crc = codec_crc32c(0, b.data, 60);
	memcpy(b.data + 60, &crc, 4);
	b.data[64 + 56] = 200; /* the first record's kind */
	uint32_t stored;
	memcpy(&stored, b.data + 64 + 48, 4);
	crc = codec_crc32c(0, b.data + 64 + 8, 56 + stored);
	memcpy(b.data + 64 + 4, &crc, 4);
	CHECK_OK(log_cursor_open(buf_view(&b), "segment", &c, &e), &e);
	while (log_cursor_next(&c, &r) == LOG_EVENT_RECORD)
		kinds[r.kind]++;
	CHECK(kinds[200] == 1 && kinds[LOG_KIND_BATCH] == 4);
	b.data[8] = 2; /* major */
	crc = codec_crc32c(0, b.data, 60);
	memcpy(b.data + 60, &crc, 4);
	CHECK(log_cursor_open(buf_view(&b), "segment 5", &c, &e) == E_UNSUPPORTED);
	CHECK(strstr(e.text, "segment 5: log version 2 was written by a newer firn") != NULL);
	/* More behind the samples of a batch. */
	struct model m = { .random = 4 };
	struct profile p, q;
	struct str tenant;
	model_batch(&m, &p, 30, T0, 100 * SEC);
	buf_init(&payload, 1 << 20);
	batch_encode(&payload, STR("t"), &p);
	buf_cstr(&payload, "later");
	CHECK(profile_init(&q, 1 << 20) == OK);
	CHECK_OK(batch_decode(buf_view(&payload), &q, &tenant, &e), &e);
	CHECK(q.samples.len == 30);
	profile_deinit(&p);
	profile_deinit(&q);
	buf_deinit(&payload);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(samples_are_those_of_the_part), cmocka_unit_test(damage_is_seen_alike),
	cmocka_unit_test(reads_later_minor_versions))
