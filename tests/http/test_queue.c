/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "http/queue.h"

static void keeps_order(void **state)
{
	(void)state;
	struct http_queue q = { 0 };
	CHECK(http_queue_put(&q, "abc", 3));
	CHECK(http_queue_put(&q, "de", 2));
	uint8_t *big = malloc(10000);
	memset(big, 'x', 10000);
	CHECK(http_queue_take(&q, big, 10000));
	CHECK(http_queue_put(&q, "end", 3));
	CHECK(http_queue_put(&q, NULL, 0));
	assert_int_equal(q.bytes, 10008);

	struct str pieces[8];
	assert_int_equal(http_queue_pieces(&q, pieces, 8), 3);
	CHECK_STR(pieces[0], "abcde");
	CHECK(pieces[1].p == (const char *)big);
	CHECK_STR(pieces[2], "end");
	assert_int_equal(http_queue_pieces(&q, pieces, 1), 1);

	http_queue_drop(&q, 2);
	assert_int_equal(http_queue_pieces(&q, pieces, 8), 3);
	CHECK_STR(pieces[0], "cde");
	uint8_t out[16];
	assert_int_equal(http_queue_read(&q, out, 5), 5);
	CHECK_STR(str_make(out, 5), "cdexx");
	http_queue_drop(&q, 9998);
	assert_int_equal(http_queue_read(&q, out, sizeof(out)), 3);
	CHECK_STR(str_make(out, 3), "end");
	assert_int_equal(q.bytes, 0);
	CHECK(q.head == NULL && q.tail == NULL);
	CHECK(http_queue_put(&q, "again", 5));
	http_queue_deinit(&q);
	CHECK(http_queue_take(&q, malloc(1), 0));
	http_queue_deinit(&q);
}

TEST_MAIN(cmocka_unit_test(keeps_order))
