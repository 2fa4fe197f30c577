/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written is read by a checker that shares nothing with src/ (otlp_check.py), and by our
 * own decoder: both must see the same samples.
 */
#include "profile_example.h"
#include "test.h"

#include "os/os.h"
#include "otlp/otlp.h"
#include "profile_dump.h"

#include <unistd.h>

/* The checker's answer to `message`. */
static void run_checker(const struct buf *message, struct buf *out)
{
	char path[] = "/tmp/test_otlp_XXXXXX", command[512];
	CLEANUP(fd_cleanup) int fd = mkstemp(path);
	struct err e = { 0 };
	CHECK(fd >= 0);
	CHECK_OK(os_write_full(fd, message->data, message->len, path, &e), &e);
	snprintf(command, sizeof(command), "python3 %s/otlp_check.py %s 2>&1", TEST_DIR, path);
	FILE *f = popen(command, "r");
	CHECK(f);
	char part[4096];
	for (size_t n; (n = fread(part, 1, sizeof(part), f)) > 0;)
		buf_put(out, part, n);
	int code = pclose(f);
	unlink(path);
	if (code != 0) {
		print_error("otlp_check.py: %.*s\n", STR_ARG(buf_view(out)));
		fail();
	}
}

static void check_same(struct str got, struct str want)
{
	if (str_eq(got, want))
		return;
	print_error("got:\n%.*s\nwant:\n%.*s\n", STR_ARG(got), STR_ARG(want));
	fail();
}

static void check_encoding(const struct profile *p)
{
	CLEANUP(buf_deinit) struct buf message, want, got;
	buf_init(&message, 16 << 20);
	buf_init(&want, 16 << 20);
	buf_init(&got, 16 << 20);
	CHECK(otlp_encode(p, &message) == OK);
	CHECK(profile_dump(p, &want));
	run_checker(&message, &got);
	check_same(buf_view(&got), buf_view(&want));

	CLEANUP(profile_deinit) struct profile back;
	CHECK(profile_init(&back, 16 << 20) == OK);
	struct otlp_rejects rejects;
	struct err e;
	CHECK_OK(otlp_decode(buf_view(&message), &back, &rejects, &e), &e);
	CHECK_STR(str_of(rejects.reason), "");
	CHECK_OK(profile_validate(&back, &e), &e);
	buf_clear(&got);
	CHECK(profile_dump(&back, &got));
	check_same(buf_view(&got), buf_view(&want));
}

static void every_table_is_written(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	example_profile(&p);
	check_encoding(&p);
}

static bool has_key(const struct buf *message, const char *key)
{
	char field[40];
	int len = snprintf(field, sizeof(field), "%c%s", (int)strlen(key), key);
	return memmem(message->data, message->len, field, (size_t)len) != NULL;
}

static uint32_t label_set(struct profile *p, const char *a, const char *b)
{
	struct profile_label l[2];
	uint32_t set;
	CHECK(profile_add_string(p, str_of(a), &l[0].name) == OK);
	CHECK(profile_add_string(p, str_of(b), &l[1].name) == OK);
	CHECK(profile_add_string(p, STR("7"), &l[0].value) == OK);
	l[1].value = l[0].value;
	CHECK(profile_add_labels(p, l, 2, &set) == OK);
	return set;
}

/* A reader that makes labels of keys, as Parca does, has `node` and `cpu`. */
static void labels_keep_their_names(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CLEANUP(buf_deinit) struct buf message;
	example_profile(&p);
	buf_init(&message, 1 << 20);
	p.samples.len = 1;
	p.samples.v[0].resource = label_set(&p, "node", "container_id");
	p.samples.v[0].own = label_set(&p, "cpu", "thread_id");
	CHECK(otlp_encode(&p, &message) == OK);
	CHECK(has_key(&message, "host.name") && has_key(&message, "node"));
	CHECK(has_key(&message, "container.id") && !has_key(&message, "container_id"));
	CHECK(has_key(&message, "cpu") && !has_key(&message, "cpu.logical_number"));
	CHECK(has_key(&message, "thread.id") && !has_key(&message, "thread_id"));
	check_encoding(&p);
}

static void no_samples_is_a_message(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	check_encoding(&p);
}

/* Equal samples are one Sample with timestamps, and only what is used is in the dictionary. */
static void equal_samples_are_merged(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	example_profile(&p);
	p.samples.len = 1;
	CLEANUP(buf_deinit) struct buf one, many;
	buf_init(&one, 1 << 20);
	buf_init(&many, 1 << 20);
	CHECK(otlp_encode(&p, &one) == OK);
	for (int i = 1; i < 100; i++) {
		struct profile_sample s = p.samples.v[0];
		s.time_ns += i;
		CHECK(profile_add_sample(&p, &s) == OK);
	}
	CHECK(otlp_encode(&p, &many) == OK);
	CHECK(many.len < one.len + 100 * 8 + 16);
	CHECK(!memmem(one.data, one.len, "do_syscall_64", 13));
	check_encoding(&p);
}

/* Also where they are of one moment, that of the profile itself: agents count what they send. */
static void as_many_come_back(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p, back;
	CLEANUP(buf_deinit) struct buf message;
	struct otlp_rejects rejects;
	struct err e = { 0 };
	example_profile(&p);
	p.samples.len = 1;
	p.samples.v[0].time_ns = p.heads.v[p.samples.v[0].head].time_ns;
	for (int i = 1; i < 3; i++) {
		struct profile_sample s = p.samples.v[0];
		CHECK(profile_add_sample(&p, &s) == OK);
	}
	buf_init(&message, 1 << 20);
	CHECK(otlp_encode(&p, &message) == OK);
	CHECK(profile_init(&back, 1 << 20) == OK);
	CHECK_OK(otlp_decode(buf_view(&message), &back, &rejects, &e), &e);
	CHECK(back.samples.len == 3 && back.samples.v[2].value == p.samples.v[0].value);
	CHECK(back.samples.v[2].time_ns == p.samples.v[0].time_ns);
}

static void the_buffers_maximum_holds(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	example_profile(&p);
	CLEANUP(buf_deinit) struct buf all;
	buf_init(&all, 1 << 20);
	CHECK(otlp_encode(&p, &all) == OK);
	for (size_t max = 1; max < all.len; max += 13) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, max);
		CHECK(otlp_encode(&p, &b) == E_LIMIT);
	}
}

/* Equal content gives equal bytes: a retry can be known by its profile_id. */
static void encoding_is_stable(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p, q;
	example_profile(&p);
	example_profile(&q);
	CLEANUP(buf_deinit) struct buf a, b;
	buf_init(&a, 1 << 20);
	buf_init(&b, 1 << 20);
	CHECK(otlp_encode(&p, &a) == OK && otlp_encode(&q, &b) == OK);
	CHECK(str_eq(buf_view(&a), buf_view(&b)));
}

TEST_MAIN(cmocka_unit_test(every_table_is_written), cmocka_unit_test(labels_keep_their_names),
	cmocka_unit_test(no_samples_is_a_message), cmocka_unit_test(equal_samples_are_merged),
	cmocka_unit_test(as_many_come_back), cmocka_unit_test(the_buffers_maximum_holds),
	cmocka_unit_test(encoding_is_stable))
