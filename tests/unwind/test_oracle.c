/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent reader of call frame information, binutils' readelf, against unwind_table_find():
 * each row that readelf prints for real libraries and programs, at its first and its last byte.
 * UNWIND_ORACLE=/file:/file replaces the list.
 */
#include "test.h"

#include "unwind/unwind.h"

#include <sys/stat.h>
#include <unistd.h>

#define COLUMNS_MAX 64
#define SHOWN_MAX 10

struct expected { /* one row as readelf prints it */
	uint64_t begin;
	uint64_t end;
	char cfa[32];
	char fp[32];
	char ra[32];
	bool is_signal;
};

struct oracle {
	struct objfile *obj;
	struct unwind_table *table;
	struct expected row; /* waiting for its end */
	struct expected cie[64];
	uint64_t cie_offset[64];
	size_t cie_count;
	size_t cie_reading; /* rows that follow are of this CIE; cie_count: of an FDE */
	uint64_t fde_begin;
	uint64_t fde_end;
	uint64_t compared;
	uint64_t different;
	uint64_t not_expressible;
	bool is_libc;
	uint64_t context_start; /* libc's __start_context, of which the information is wrong */
	char columns[COLUMNS_MAX][8];
	size_t column_count;
};

static long number_behind(const char *text, size_t prefix)
{
	return strtol(text + prefix, NULL, 10);
}

/* Does the rule say what readelf says? Expressions are taken on trust here (test_x86.c has them).
 */
static bool agrees(const struct unwind_rule *rule, const struct expected *x)
{
	if (x->is_signal)
		return rule->cfa == UNWIND_CFA_SIGNAL;
	if (strcmp(x->ra, "u") == 0)
		return rule->cfa == UNWIND_CFA_STOP;
	if (x->ra[0] != 'c') /* in a register, or by an expression */
		return rule->cfa == UNWIND_CFA_UNSUPPORTED || rule->cfa == UNWIND_CFA_RA_REGISTER;
	if (strcmp(x->cfa, "exp") == 0)
		return rule->cfa == UNWIND_CFA_PLT || rule->cfa == UNWIND_CFA_DEREF_FP ||
		       rule->cfa == UNWIND_CFA_DEREF_SP || rule->cfa == UNWIND_CFA_UNSUPPORTED;
	bool by_sp = strncmp(x->cfa, "rsp", 3) == 0;
	bool by_fp = strncmp(x->cfa, "rbp", 3) == 0;
	if (!by_sp && !by_fp)
		return (rule->cfa == UNWIND_CFA_UNSUPPORTED && x->ra[0] == 'c' &&
			       number_behind(x->ra, 1) != -8) || /* setcontext */
		       (rule->cfa == UNWIND_CFA_REGISTER &&
			       rule->cfa_off == strtol(strpbrk(x->cfa, "+-"), NULL, 10));
	bool is_large = by_sp && rule->cfa == UNWIND_CFA_SP_WORDS;
	if (rule->cfa == UNWIND_CFA_UNSUPPORTED)
		return by_fp && number_behind(x->cfa, 3) > INT16_MAX;
	if ((!is_large && rule->cfa != (by_sp ? UNWIND_CFA_SP : UNWIND_CFA_FP)) ||
		(is_large ? 8 * ((uint16_t)rule->cfa_off + 65536 * rule->ra_off) : rule->cfa_off) !=
			number_behind(x->cfa, 3))
		return false;
	int ra_off = (rule->fp & UNWIND_BX_MASK) == UNWIND_BX_SAVED || is_large ? -8 : rule->ra_off;
	unsigned fp = rule->fp & UNWIND_FP_MASK;
	if (ra_off != number_behind(x->ra, 1))
		return false;
	if (x->fp[0] == 'c')
		return fp == UNWIND_FP_SAVED && rule->fp_off == number_behind(x->fp, 1);
	if (x->fp[0] == 0 || strcmp(x->fp, "u") == 0 || strcmp(x->fp, "s") == 0)
		return fp == UNWIND_FP_SAME || fp == UNWIND_FP_UNDEFINED;
	return fp != UNWIND_FP_SAME;
}

static void compare(struct oracle *o, uint64_t at)
{
	struct fileoff off;
	if (!objfile_fileoff_of(o->obj, (struct vaddr){ at }, &off))
		return;
	struct unwind_rule rule = unwind_table_find(o->table, off.v);
	o->compared++;
	o->not_expressible += rule.cfa == UNWIND_CFA_UNSUPPORTED;
	if (agrees(&rule, &o->row) ||
		(rule.cfa == UNWIND_CFA_STOP && o->fde_begin == objfile_entry(o->obj).v))
		return;
	if (o->is_libc && rule.cfa == UNWIND_CFA_STOP &&
		(!o->context_start || o->context_start == o->fde_begin)) {
		o->context_start = o->fde_begin;
		return;
	}
	if (o->different++ < SHOWN_MAX)
		print_error("%s at %llx: readelf says cfa %s rbp %s ra %s%s; ours: %u%+d fp %u%+d "
			    "ra %+d\n",
			objfile_name(o->obj), (unsigned long long)at, o->row.cfa, o->row.fp,
			o->row.ra, o->row.is_signal ? " signal" : "", rule.cfa, rule.cfa_off,
			rule.fp, rule.fp_off, rule.ra_off);
}

/* The row that was being read ends here. */
static void end_row(struct oracle *o, uint64_t end)
{
	if (o->row.cfa[0] && end > o->row.begin) {
		compare(o, o->row.begin);
		compare(o, end - 1);
	}
	o->row.cfa[0] = 0;
}

static void begin_cie(struct oracle *o, const char *line)
{
	unsigned long long offset;
	end_row(o, o->fde_end);
	CHECK(o->cie_count < ARRAY_COUNT(o->cie));
	CHECK(sscanf(line, "%llx", &offset) == 1);
	const char *quote = strchr(line, '"');
	CHECK(quote != NULL);
	o->cie_offset[o->cie_count] = offset;
	o->cie[o->cie_count].is_signal =
		strchr(quote, 'S') && strchr(quote, 'S') < strchr(quote + 1, '"');
	o->cie_reading = o->cie_count++;
	o->column_count = 0;
}

static void begin_fde(struct oracle *o, const char *line)
{
	unsigned long long cie, begin, end;
	end_row(o, o->fde_end);
	CHECK(sscanf(strstr(line, "cie="), "cie=%llx pc=%llx..%llx", &cie, &begin, &end) == 3);
	size_t i = 0;
	while (i < o->cie_count && o->cie_offset[i] != cie)
		i++;
	CHECK(i < o->cie_count);
	o->cie_reading = o->cie_count;
	o->row = o->cie[i];
	o->row.begin = begin;
	o->fde_begin = begin;
	o->fde_end = end;
	o->column_count = 0;
}

static void read_columns(struct oracle *o, char *line)
{
	char *save = NULL;
	o->column_count = 0;
	for (char *p = strtok_r(line, " \n", &save); p; p = strtok_r(NULL, " \n", &save)) {
		CHECK(o->column_count < COLUMNS_MAX);
		snprintf(o->columns[o->column_count++], sizeof(o->columns[0]), "%s", p);
	}
}

static void read_row(struct oracle *o, char *line)
{
	struct expected row = { 0 };
	char *save = NULL;
	size_t i = 0;
	for (char *p = strtok_r(line, " \n", &save); p && i < o->column_count;
		p = strtok_r(NULL, " \n", &save)) {
		if (*p == '(') /* "r10 (r10)": the register's name */
			continue;
		if (i == 0)
			row.begin = strtoull(p, NULL, 16);
		else if (strcmp(o->columns[i], "CFA") == 0)
			snprintf(row.cfa, sizeof(row.cfa), "%s", p);
		else if (strcmp(o->columns[i], "rbp") == 0)
			snprintf(row.fp, sizeof(row.fp), "%s", p);
		else if (strcmp(o->columns[i], "ra") == 0)
			snprintf(row.ra, sizeof(row.ra), "%s", p);
		i++;
	}
	if (o->cie_reading < o->cie_count) { /* the row that its functions begin with */
		row.is_signal = o->cie[o->cie_reading].is_signal;
		o->cie[o->cie_reading] = row;
		return;
	}
	row.is_signal = o->row.is_signal;
	if (row.begin >= o->fde_end)
		return;
	uint64_t begin = row.begin;
	if (o->row.begin != begin)
		end_row(o, begin);
	o->row = row;
}

static void compare_file(const char *path, struct oracle *o)
{
	struct err e = { 0 };
	CHECK_OK(objfile_open(path, &o->obj, &e), &e);
	o->is_libc = strstr(path, "/libc.so") != NULL;
	CHECK_OK(unwind_table_build(o->obj, &o->table, &e), &e);
	CHECK_OK(unwind_table_check(o->table, &e), &e);
	char command[4096];
	snprintf(command, sizeof(command), "LC_ALL=C readelf -wF '%s' 2>/dev/null", path);
	FILE *f = popen(command, "r");
	CHECK(f != NULL);
	char *line = NULL;
	size_t cap = 0;
	bool in_section = false;
	while (getline(&line, &cap, f) > 0) {
		if (strncmp(line, "Contents of the", 15) == 0)
			in_section = strstr(line, ".eh_frame ") != NULL;
		else if (!in_section || line[0] == '\n' || strstr(line, "ZERO terminator"))
			continue;
		else if (strstr(line, " CIE "))
			begin_cie(o, line);
		else if (strstr(line, " FDE "))
			begin_fde(o, line);
		else if (strncmp(line, "   LOC", 6) == 0)
			read_columns(o, line);
		else if (o->column_count && strspn(line, "0123456789abcdef") == 16)
			read_row(o, line);
	}
	end_row(o, o->fde_end);
	free(line);
	pclose(f);
}

static void finish(struct oracle *o)
{
	unwind_table_free(o->table);
	objfile_close(o->obj);
}

static void check_file(const char *path, double most_unsupported)
{
	static struct oracle o;
	memset(&o, 0, sizeof(o));
	compare_file(path, &o);
	print_message("%s: %llu points, %llu differ, %llu not expressible\n", path,
		(unsigned long long)o.compared, (unsigned long long)o.different,
		(unsigned long long)o.not_expressible);
	CHECK(o.compared > 100);
	CHECK(o.different == 0);
	CHECK((double)o.not_expressible <= most_unsupported * (double)o.compared);
	finish(&o);
}

static void agrees_with_readelf(void **state)
{
	(void)state;
	if (access("/usr/bin/readelf", X_OK) != 0)
		SKIP("binutils' readelf is not installed");
	char self[4096] = "";
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	const char *const files[] = {
		self,
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/bin/bash",
		"/usr/bin/python3.11",
		"/lib/x86_64-linux-gnu/libcrypto.so.3",
	};
	const char *given = getenv("UNWIND_ORACLE");
	if (given) {
		char *list = strdup(given);
		char *save = NULL;
		for (char *p = strtok_r(list, ":", &save); p; p = strtok_r(NULL, ":", &save))
			check_file(p, 1);
		free(list);
		return;
	}
	size_t checked = 0;
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		if (access(files[i], R_OK) != 0)
			continue;
		check_file(files[i], 0.01);
		checked++;
	}
	CHECK(checked >= 2);
}

TEST_MAIN(cmocka_unit_test(agrees_with_readelf))
