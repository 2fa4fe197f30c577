/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read again by arrow_reader.py, which knows the format's pages only. */
#include "arrow/arrow.h"
#include "test.h"

#include <unistd.h>

#define ROWS 5
/* The columns that another writer writes begin here; before them there is one dictionary. */
#define PART_COLUMN 7
#define PART_DICTIONARY 1

/* part: NULL, or a writer of its own for the later columns. */
static void write_all(struct arrow_writer *w, struct arrow_writer *part)
{
	static const uint8_t valid[ROWS] = { 1, 0, 1, 1, 0 };
	static const uint8_t flags[ROWS] = { 1, 1, 0, 1, 0 };
	static const int64_t small[ROWS] = { 0, 1, 254, 3, 4 };
	static const int64_t wide[ROWS] = { 0, -1, INT64_MAX, INT64_MIN, 4 };
	static const int64_t minus[ROWS] = { 0, -128, 5, 3, 4 };
	static const uint32_t numbers[ROWS] = { 0, UINT32_MAX, 254, 3, 65535 };
	static const uint32_t indices[ROWS] = { 1, 99, 0, 2, 99 };
	static const uint32_t offsets[ROWS + 1] = { 0, 2, 2, 3, 3, 4 };
	static const int64_t elements[4] = { 1, 2, 300, 4 };
	const struct str texts[ROWS] = { STR(""), STR("unseen"), STR("b\xffz"), STR("d"),
		STR("x") };
	const struct str words[3] = { STR("zero"), STR("one"), STR("") };
	const struct arrow_write_column columns[] = {
		{ .name = STR("flag"), .kind = ARROW_WRITE_BOOL, .bools = flags },
		{ .name = STR("maybe"),
			.kind = ARROW_WRITE_BOOL,
			.bools = flags,
			.valid = valid,
			.nullable = true },
		{ .name = STR("small"), .kind = ARROW_WRITE_INT, .ints = small },
		{ .name = STR("wide"),
			.kind = ARROW_WRITE_INT,
			.ints = wide,
			.bits = 64,
			.is_signed = true },
		{ .name = STR("minus"),
			.kind = ARROW_WRITE_INT,
			.ints = minus,
			.is_signed = true,
			.valid = valid },
		{ .name = STR("bytes"),
			.kind = ARROW_WRITE_BINARY,
			.texts = texts,
			.text_count = ROWS,
			.valid = valid },
		{ .name = STR("word"),
			.kind = ARROW_WRITE_DICT_UTF8,
			.bits = 32,
			.indices = indices,
			.texts = words,
			.text_count = 3,
			.valid = valid },
		{ .name = STR("least"),
			.kind = ARROW_WRITE_DICT_BINARY,
			.indices = indices,
			.texts = words,
			.text_count = 3,
			.valid = valid },
		{ .name = STR("list"),
			.kind = ARROW_WRITE_LIST,
			.bits = 32,
			.ints = elements,
			.offsets = offsets,
			.valid = valid },
		{ .name = STR("least word"),
			.kind = ARROW_WRITE_INT,
			.words = numbers,
			.valid = valid },
		{ .name = STR("wide word"), .kind = ARROW_WRITE_INT, .words = numbers },
		{ .name = STR("minus word"),
			.kind = ARROW_WRITE_INT,
			.bits = 32,
			.is_signed = true,
			.words = numbers },
		{ .name = STR("list of words"),
			.kind = ARROW_WRITE_LIST,
			.words = numbers,
			.offsets = offsets },
	};
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		arrow_write_column(i < PART_COLUMN || !part ? w : part, &columns[i]);
	arrow_write_metadata(w, STR("version"), STR("v1"));
}

static const char expected[] =
	"{\"columns\": ["
	"[\"flag\", \"bool\", false, [true, true, false, true, false]], "
	"[\"maybe\", \"bool\", true, [true, null, false, true, null]], "
	"[\"small\", \"uint8\", false, [0, 1, 254, 3, 4]], "
	"[\"wide\", \"int64\", false, [0, -1, 9223372036854775807, -9223372036854775808, 4]], "
	"[\"minus\", \"int8\", false, [0, null, 5, 3, null]], "
	"[\"bytes\", \"binary\", false, [\"\", null, \"b\\u00ffz\", \"d\", null]], "
	"[\"word\", \"dictionary<uint32,utf8>\", false, [\"one\", null, \"zero\", \"\", null]], "
	"[\"least\", \"dictionary<uint8,binary>\", false, [\"one\", null, \"zero\", \"\", null]], "
	"[\"list\", \"list<uint32>\", false, [[1, 2], null, [300], [], null]], "
	"[\"least word\", \"uint8\", false, [0, null, 254, 3, null]], "
	"[\"wide word\", \"uint64\", false, [0, 4294967295, 254, 3, 65535]], "
	"[\"minus word\", \"int32\", false, [0, -1, 254, 3, 65535]], "
	"[\"list of words\", \"list<uint64>\", false, [[0, 4294967295], [], [254], [], [3]]]"
	"], \"metadata\": {\"version\": \"v1\"}}\n";

/* What the Python reader says of `stream`. */
static void read_again(const struct buf *stream, char *out, size_t size)
{
	char path[] = "/tmp/firn-test-arrow-XXXXXX", command[1024];
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, stream->data, stream->len) == (ssize_t)stream->len);
	close(fd);
	snprintf(command, sizeof(command), "python3 %s %s", ARROW_READER, path);
	FILE *f = popen(command, "r");
	CHECK(f);
	size_t n = fread(out, 1, size - 1, f);
	out[n] = 0;
	CHECK(pclose(f) == 0);
	unlink(path);
}

static void is_read_by_an_independent_reader(void **state)
{
	(void)state;
	for (int codec = 0; codec < 2; codec++)
		for (int with_end = 0; with_end < 2; with_end++) {
			CLEANUP(buf_deinit) struct buf out;
			struct arrow_writer w;
			struct err e = { 0 };
			static char text[65536];
			buf_init(&out, 1 << 20);
			arrow_write_begin(
				&w, ROWS, codec ? ARROW_WRITE_LZ4 : ARROW_WRITE_PLAIN, 1 << 20);
			write_all(&w, NULL);
			CHECK_OK(arrow_write_end(&w, with_end, &out, &e), &e);
			read_again(&out, text, sizeof(text));
			CHECK_STR(str_of(text), expected);
		}
}

static void appends_what_another_writer_wrote(void **state)
{
	(void)state;
	for (int expect = 0; expect < 2; expect++) {
		CLEANUP(buf_deinit) struct buf out, whole;
		struct arrow_writer w, part;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		buf_init(&whole, 1 << 20);
		arrow_write_begin(&w, ROWS, ARROW_WRITE_LZ4, 1 << 20);
		write_all(&w, NULL);
		CHECK_OK(arrow_write_end(&w, true, &whole, &e), &e);
		arrow_write_begin(&w, ROWS, ARROW_WRITE_LZ4, 1 << 20);
		arrow_write_begin_part(&part, ROWS, PART_DICTIONARY, ARROW_WRITE_LZ4, 1 << 20);
		if (expect)
			arrow_write_expect(&w, SIZE_MAX);
		write_all(&w, &part);
		arrow_write_append(&w, &part);
		CHECK_OK(arrow_write_end(&w, true, &out, &e), &e);
		CHECK(str_eq(buf_view(&out), buf_view(&whole)));
	}
}

static void reports_what_failed_in_a_part(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	static const int64_t ones[1000] = { 1 };
	struct arrow_write_column c = {
		.name = STR("n"), .kind = ARROW_WRITE_INT, .bits = 64, .ints = ones
	};
	static const uint32_t zeros[1000];
	const struct str text = STR("word");
	struct arrow_write_column words = { .name = STR("word"),
		.kind = ARROW_WRITE_DICT_UTF8,
		.indices = zeros,
		.texts = &text,
		.text_count = 1 };
	struct arrow_writer w, part;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	/* The part is too long, both together are, the first one is: then its dictionary is
	 * missing. */
	static const size_t limits[][2] = { { 10000, 1000 }, { 10000, 10000 }, { 1000, 10000 } };
	for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
		arrow_write_begin(&w, ARRAY_COUNT(ones), ARROW_WRITE_PLAIN, limits[i][0]);
		arrow_write_begin_part(
			&part, ARRAY_COUNT(ones), 1, ARROW_WRITE_PLAIN, limits[i][1]);
		arrow_write_column(&w, &c);
		arrow_write_column(&w, &words);
		arrow_write_column(&part, &c);
		arrow_write_append(&w, &part);
		CHECK(arrow_write_end(&w, false, &out, &e) == E_LIMIT && out.len == 0);
	}
	/* A column that cannot be written: none comes after it. */
	arrow_write_begin(&w, ARRAY_COUNT(ones), ARROW_WRITE_PLAIN, 10000);
	arrow_write_begin_part(&part, ARRAY_COUNT(ones), 1, ARROW_WRITE_PLAIN, 10000);
	w.status = E_NOMEM;
	arrow_write_column(&w, &words);
	arrow_write_column(&part, &c);
	arrow_write_append(&w, &part);
	CHECK(arrow_write_end(&w, false, &out, &e) == E_NOMEM && out.len == 0);
}

static void chooses_the_least_width(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t value;
		bool is_signed;
		const char *type;
	} cases[] = {
		{ "254", 254, false, "uint8" },
		{ "255", 255, false, "uint16" },
		{ "65535", 65535, false, "uint32" },
		{ "2^32-1", UINT32_MAX, false, "uint64" },
		{ "126", 126, true, "int8" },
		{ "127", 127, true, "int16" },
		{ "-127", -127, true, "int8" },
		{ "-128", -128, true, "int16" },
		{ "-2^31", INT32_MIN, true, "int64" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		struct arrow_writer w;
		struct err e = { 0 };
		char text[4096];
		buf_init(&out, 1 << 20);
		arrow_write_begin(&w, 1, ARROW_WRITE_LZ4, 1 << 20);
		arrow_write_column(&w, &(struct arrow_write_column){ .name = STR("n"),
					       .kind = ARROW_WRITE_INT,
					       .ints = &c->value,
					       .is_signed = c->is_signed });
		CHECK_OK(arrow_write_end(&w, false, &out, &e), &e);
		read_again(&out, text, sizeof(text));
		char want[64];
		snprintf(want, sizeof(want), "\"%s\"", c->type);
		CHECK_CASE(c, strstr(text, want));
	}
}

static void compresses_what_repeats(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	static int64_t zeros[100000];
	struct arrow_writer w;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	arrow_write_begin(&w, ARRAY_COUNT(zeros), ARROW_WRITE_LZ4, 1 << 20);
	arrow_write_column(
		&w, &(struct arrow_write_column){
			    .name = STR("n"), .kind = ARROW_WRITE_INT, .bits = 64, .ints = zeros });
	CHECK_OK(arrow_write_end(&w, false, &out, &e), &e);
	CHECK(out.len < 8192);
}

static void ends_at_the_limit(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	static int64_t zeros[100000];
	struct arrow_writer w;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	arrow_write_begin(&w, ARRAY_COUNT(zeros), ARROW_WRITE_PLAIN, 1000);
	arrow_write_column(
		&w, &(struct arrow_write_column){
			    .name = STR("n"), .kind = ARROW_WRITE_INT, .bits = 64, .ints = zeros });
	CHECK(arrow_write_end(&w, false, &out, &e) == E_LIMIT && e.text[0]);
	CHECK(out.len == 0);
}

TEST_MAIN(cmocka_unit_test(is_read_by_an_independent_reader),
	cmocka_unit_test(chooses_the_least_width), cmocka_unit_test(compresses_what_repeats),
	cmocka_unit_test(ends_at_the_limit), cmocka_unit_test(appends_what_another_writer_wrote),
	cmocka_unit_test(reports_what_failed_in_a_part))
