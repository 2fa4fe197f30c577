/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/model.h"
#include "tests/store/python.h"

#include "base/clock.h"
#include "codec/codec.h"

#include <errno.h>

static void make(struct buf *out)
{
	struct manifest m = { .store_id = { 3, 4 },
		.next_part = 9,
		.next_segment = 8,
		.next_sequence = 7,
		.trusted_ns = T0 + 5 };
	struct manifest_part a = { .id = 5,
		.bytes = 100,
		.rows = 10,
		.samples = 12,
		.first_ns = -1,
		.last_ns = T0,
		.resolution_ns = SEC,
		.level = 2 };
	CHECK(VEC_PUSH(&m.parts, a));
	a.id = 6;
	CHECK(VEC_PUSH(&m.parts, a));
	for (uint64_t i = 0; i < 3; i++) {
		struct batch_seen b = { .id = { 70 + i, 80 }, .arrived_ns = T0 + (int64_t)i };
		CHECK(VEC_PUSH(&m.removed, b));
	}
	buf_init(out, 1 << 16);
	manifest_encode(&m, out);
	CHECK(buf_status(out) == OK && out->len == 64 + 2 * 64 + 8 + 3 * 24 + 8 + 8 + 4);
	manifest_deinit(&m);
}

static void round_trips(void **state)
{
	(void)state;
	struct buf b;
	struct manifest m;
	struct err e = { 0 };
	make(&b);
	CHECK_OK(manifest_parse(buf_view(&b), &m, &e), &e);
	CHECK(m.store_id.hi == 4 && m.next_part == 9 && m.next_segment == 8);
	CHECK(m.next_sequence == 7 && m.parts.len == 2);
	CHECK(m.parts.v[1].id == 6 && m.parts.v[1].first_ns == -1 && m.parts.v[1].level == 2);
	CHECK(m.removed.len == 3 && m.removed.v[2].id.lo == 72 && m.removed.v[2].id.hi == 80);
	CHECK(m.removed.v[2].arrived_ns == T0 + 2 && m.trusted_ns == T0 + 5);
	manifest_deinit(&m);
	buf_deinit(&b);
}

static void refuses_damage(void **state)
{
	(void)state;
	struct buf b;
	struct manifest m;
	make(&b);
	for (size_t i = 0; i < b.len; i++) {
		CHECK(manifest_parse(str_make(b.data, i), &m, NULL) == E_CORRUPT);
		b.data[i] ^= 0x10;
		CHECK(manifest_parse(buf_view(&b), &m, NULL) == E_CORRUPT);
		b.data[i] ^= 0x10;
	}
	b.data[8] = 2; /* a newer version, and sound */
	uint32_t crc = codec_crc32c(0, b.data, b.len - 4);
	memcpy(b.data + b.len - 4, &crc, 4);
	CHECK(manifest_parse(buf_view(&b), &m, NULL) == E_UNSUPPORTED);
	buf_deinit(&b);
}

/* A later minor version: longer entries, something behind them. */
static void reads_later_minor_versions(void **state)
{
	(void)state;
	struct buf b, c;
	struct manifest m;
	struct err e = { 0 };
	make(&b);
	buf_init(&c, 1 << 16);
	b.data[10] = 3;
	b.data[60] = 72;
	buf_put(&c, b.data, 64);
	for (int i = 0; i < 2; i++) {
		buf_put(&c, b.data + 64 + i * 64, 64);
		buf_u64(&c, 4711);
	}
	buf_u32(&c, 4711); /* a section of a later version */
	buf_u32(&c, 4);
	buf_cstr(&c, "more");
	buf_put(&c, b.data + 64 + 128, b.len - 64 - 128 - 4);
	uint32_t len = (uint32_t)c.len + 4;
	memcpy(c.data + 12, &len, 4);
	buf_u32(&c, codec_crc32c(0, c.data, c.len));
	CHECK_OK(manifest_parse(buf_view(&c), &m, &e), &e);
	CHECK(m.parts.len == 2 && m.parts.v[1].id == 6 && m.removed.len == 3);
	CHECK(m.trusted_ns == T0 + 5);
	manifest_deinit(&m);
	buf_deinit(&b);
	buf_deinit(&c);
}

/* Sound but for the sections: their lengths have to add up. */
static void refuses_broken_sections(void **state)
{
	(void)state;
	static const uint32_t lengths[] = { 71, 73, 48, 0x7FFFFFFF, 0xFFFFFFFF };
	static const uint32_t of_time[] = { 0, 7, 9, 0xFFFFFFFF };
	size_t first = ARRAY_COUNT(lengths), both = first + ARRAY_COUNT(of_time);
	for (size_t i = 0; i < both; i++) {
		struct buf b;
		struct manifest m;
		struct err e = { 0 };
		make(&b);
		if (i < first)
			memcpy(b.data + 64 + 128 + 4, &lengths[i], 4);
		else
			memcpy(b.data + b.len - 16, &of_time[i - first], 4);
		uint32_t crc = codec_crc32c(0, b.data, b.len - 4);
		memcpy(b.data + b.len - 4, &crc, 4);
		CHECK(manifest_parse(buf_view(&b), &m, &e) == E_CORRUPT);
		CHECK(strstr(e.text, "MANIFEST") != NULL);
		buf_deinit(&b);
	}
}

/* The Python reader, written from docs/formats/manifest.md, sees the same; of a store's own too. */
static void print(struct str bytes, struct buf *out)
{
	struct manifest m;
	if (manifest_parse(bytes, &m, NULL) != OK) {
		buf_cstr(out, "refused\n");
		return;
	}
	buf_cstr(out, "store ");
	for (size_t i = 0; i < sizeof(m.store_id); i++)
		buf_printf(out, "%02x", ((const uint8_t *)&m.store_id)[i]);
	buf_printf(out, " next %llu %llu %llu\n", (unsigned long long)m.next_part,
		(unsigned long long)m.next_segment, (unsigned long long)m.next_sequence);
	for (size_t i = 0; i < m.parts.len; i++) {
		const struct manifest_part *p = &m.parts.v[i];
		buf_printf(out, "part %llu %llu %llu %llu %lld %lld %lld %u\n",
			(unsigned long long)p->id, (unsigned long long)p->bytes,
			(unsigned long long)p->rows, (unsigned long long)p->samples,
			(long long)p->first_ns, (long long)p->last_ns, (long long)p->resolution_ns,
			p->level);
	}
	for (size_t i = 0; i < m.removed.len; i++)
		buf_printf(out, "removed %016llx%016llx %lld\n",
			(unsigned long long)m.removed.v[i].id.lo,
			(unsigned long long)m.removed.v[i].id.hi,
			(long long)m.removed.v[i].arrived_ns);
	if (m.trusted_ns)
		buf_printf(out, "trusted %lld\n", (long long)m.trusted_ns);
	manifest_deinit(&m);
}

static void python_reads_the_same(void **state)
{
	(void)state;
	if (!python_has_zstandard())
		SKIP("no /usr/bin/python3 with the module zstandard (python3-zstandard)");
	char dir[64], path[128];
	uint64_t random = 5;
	struct buf arguments, mine, theirs, made, b;
	struct err e = { 0 };
	buf_init(&arguments, 1 << 20);
	buf_init(&mine, 1 << 20);
	buf_init(&theirs, 1 << 20);
	fixture_dir(dir);
	buf_cstr(&arguments, "manifest_reader.py");
	make(&made);
	for (int i = 0; i < 100; i++) {
		size_t at = rnd_below(&random, made.len);
		buf_init(&b, 1 << 16);
		buf_str(&b, buf_view(&made));
		if (i % 4 == 1)
			b.len = at;
		else if (i)
			b.data[at] ^= (uint8_t)(1u << rnd_below(&random, 8));
		if (i % 4 == 2 && at >= 16) { /* sound but for one field */
			uint32_t crc = codec_crc32c(0, b.data, b.len - 4);
			memcpy(b.data + b.len - 4, &crc, 4);
		}
		if (i % 4 == 2 &&
			at / 8 == 8) { /* the order of ids is not the C reader's business */
			buf_deinit(&b);
			continue;
		}
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		CHECK_OK(os_replace_file(path, b.data, b.len, 0600, &e), &e);
		buf_printf(&arguments, " %s", path);
		print(buf_view(&b), &mine);
		buf_deinit(&b);
	}
	struct store *s;
	struct model m = { .random = 4 };
	snprintf(path, sizeof(path), "%s/store", dir);
	struct store_config c = fixture_config(path);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	model_append(&m, s, 50, T0, 60 * SEC);
	store_close(s);
	VEC_FREE(&m.samples);
	snprintf(path, sizeof(path), "%s/store/MANIFEST", dir);
	buf_init(&b, 1 << 16);
	CHECK_OK(os_read_file(path, &b, &e), &e);
	print(buf_view(&b), &mine);
	buf_printf(&arguments, " %s | sed 's/^refused .*/refused/'", path);
	buf_u8(&arguments, 0);
	CHECK(python_run((const char *)arguments.data, &theirs));
	if (!str_eq(buf_view(&mine), buf_view(&theirs)))
		print_error("mine:\n%.*s\ntheirs:\n%.*s\n", STR_ARG(buf_view(&mine)),
			STR_ARG(buf_view(&theirs)));
	CHECK(str_eq(buf_view(&mine), buf_view(&theirs)));
	buf_deinit(&b);
	buf_deinit(&made);
	buf_deinit(&arguments);
	buf_deinit(&mine);
	buf_deinit(&theirs);
	fixture_clean(dir);
}

/* ---- a disk that has no room for it ---- */

static atomic_bool no_room;

static int fail_renames(void *ctx, const char *operation)
{
	(void)ctx;
	return atomic_load(&no_room) && strcmp(operation, "rename") == 0 ? ENOSPC : 0;
}

static size_t parts_on_disk(struct store *s)
{
	struct manifest m = { 0 };
	struct err e = { 0 };
	CHECK_OK(store_manifest_read(s, &m, &e), &e);
	size_t n = m.parts.len;
	manifest_deinit(&m);
	return n;
}

static void delete_all(struct store *s)
{
	struct fx_query f;
	struct store_deleted gone;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	CHECK(gone.samples == 50);
	fx_query_end(&f);
}

static struct store *open_told(const char *dir, struct notices *n)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, fixture_notice, n, &s, &e), &e);
	return s;
}

static void append_part(struct store *s, uint64_t batch)
{
	struct model m = { .random = 4, .next_batch = batch };
	struct err e = { 0 };
	model_append(&m, s, 50, clock_realtime_ns(), SEC); /* nothing to merge for some minutes */
	CHECK_OK(store_flush(s, &e), &e);
	VEC_FREE(&m.samples);
	CHECK(parts_on_disk(s) == 1);
}

static int count_of(const char *text, const char *what)
{
	int n = 0;
	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void no_room_for_it(void **state)
{
	(void)state;
	char dir[64];
	struct notices told = { .lock = PTHREAD_MUTEX_INITIALIZER };
	fixture_dir(dir);
	store_io_hook = (struct store_io_hook){ fail_renames, NULL };
	struct store *s = open_told(dir, &told);
	append_part(s, 1);
	atomic_store(&no_room, true);
	delete_all(s);
	store_manifest_write(s);
	CHECK(count_of(told.all, "the manifest was not written") == 1);
	CHECK(strstr(told.all, "No space left") != NULL);
	CHECK(parts_on_disk(s) == 1 && metric_get(&s->metrics.parts) == 0);
	/* The merging thread writes it when it can. */
	atomic_store(&no_room, false);
	int64_t deadline = clock_monotonic_ns() + 120 * SEC;
	while (parts_on_disk(s) && clock_monotonic_ns() < deadline) {
		lock_take(&s->lock);
		pthread_cond_signal(&s->merge_wake);
		lock_release(&s->lock);
		usleep(1000);
	}
	CHECK(parts_on_disk(s) == 0);
	/* It ends before that: the next start finds the set without it. */
	append_part(s, 2);
	atomic_store(&no_room, true);
	delete_all(s);
	CHECK(count_of(told.all, "the manifest was not written") == 2);
	CHECK(count_of(told.all, "is gone from the disk") == 0);
	store_close(s);
	atomic_store(&no_room, false);
	s = open_told(dir, &told);
	CHECK(metric_get(&s->metrics.parts) == 0 && parts_on_disk(s) == 0);
	CHECK(count_of(told.all, "is gone from the disk") == 1);
	store_close(s);
	store_io_hook = (struct store_io_hook){ 0 };
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(round_trips), cmocka_unit_test(refuses_damage),
	cmocka_unit_test(reads_later_minor_versions), cmocka_unit_test(refuses_broken_sections),
	cmocka_unit_test(python_reads_the_same), cmocka_unit_test(no_room_for_it))
