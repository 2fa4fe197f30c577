/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreters of this machine: each is found in its file in the version that it says itself,
 * and for each instruction of some functions it says the line that is found in their tables.
 */
#include "runtimes/runtimes.h"
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One line a code object: version, first line, table, then what each instruction's line is. */
static const char script[] =
	"import sys,types,dis,inspect,textwrap\n"
	"def codes(c):\n"
	"    yield c\n"
	"    for k in c.co_consts:\n"
	"        if isinstance(k,types.CodeType):\n"
	"            for x in codes(k): yield x\n"
	"v=sys.version_info\n"
	"for m in (textwrap,dis):\n"
	"    for c in codes(compile(inspect.getsource(m),'m','exec')):\n"
	"        n=len(c.co_code)//2\n"
	"        lines=[0]*n\n"
	"        if v>=(3,10):\n"
	"            for a,b,l in c.co_lines():\n"
	"                for i in range(a//2,min(b//2,n)): lines[i]=l or 0\n"
	"            t=c.co_linetable\n"
	"        else:\n"
	"            t=c.co_lnotab\n"
	"            starts=dict(dis.findlinestarts(c)); cur=c.co_firstlineno\n"
	"            for i in range(n):\n"
	"                cur=starts.get(2*i,cur); lines[i]=cur\n"
	"        print(v[0]<<8|v[1],c.co_firstlineno,t.hex() or '-',*lines)\n";

static size_t check_code(const char *name, char *line)
{
	static uint8_t table[1 << 16];
	char *save = NULL;
	uint16_t version = (uint16_t)strtoul(strtok_r(line, " \n", &save), NULL, 10);
	uint32_t first = (uint32_t)strtoul(strtok_r(NULL, " \n", &save), NULL, 10);
	const char *hex = strtok_r(NULL, " \n", &save);
	size_t len = 0;
	for (; hex[0] != '-' && hex[2 * len] && len < sizeof(table); len++) {
		char byte[3] = { hex[2 * len], hex[2 * len + 1], 0 };
		table[len] = (uint8_t)strtoul(byte, NULL, 16);
	}
	uint32_t index = 0;
	for (const char *p; (p = strtok_r(NULL, " \n", &save)); index++) {
		uint32_t want = (uint32_t)strtoul(p, NULL, 10), got = 0;
		(void)cpython_line(version, first, str_make(table, len), index, &got);
		if (got != want)
			print_error("%s: code at line %u, instruction %u: line %u, not %u\n", name,
				first, index, got, want);
		CHECK(got == want);
	}
	return index;
}

static size_t check_lines(const char *python)
{
	static char line[1 << 20];
	char path[] = "/tmp/firn-test-lines-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, script, sizeof(script) - 1) == sizeof(script) - 1);
	close(fd);
	char command[512];
	(void)snprintf(command, sizeof(command), "%s %s", python, path);
	FILE *f = popen(command, "r");
	size_t checked = 0;
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		checked += check_code(python, line);
	CHECK(pclose(f) == 0);
	(void)unlink(path);
	return checked;
}

static bool check_file(const char *path, unsigned *out_minor)
{
	struct runtime_record r;
	struct err e = { 0 };
	struct objfile *obj = NULL;
	if (objfile_open(path, &obj, &e) != OK)
		return false;
	enum status s = runtimes_find(obj, &r, &e);
	if (s == OK)
		*out_minor = r.version & 0xff;
	else if (s != E_NOTFOUND)
		print_message("%s\n", e.text);
	objfile_close(obj);
	return s == OK;
}

/* "…/bin/python3.N" without a letter behind it; 0: another program. */
static unsigned minor_of_path(const char *path)
{
	const char *at = strstr(path, "/bin/python3.");
	char *end = NULL;
	unsigned minor = at ? (unsigned)strtoul(at + strlen("/bin/python3."), &end, 10) : 0;
	return end && *end == 0 ? minor : 0;
}

static void agrees_with_those_of_this_machine(void **state)
{
	(void)state;
	glob_t g = { 0 };
	(void)glob("/usr/bin/python3.*", 0, NULL, &g);
	(void)glob("/root/.pyenv/versions/*/bin/python3.*", GLOB_APPEND, NULL, &g);
	size_t found = 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		unsigned minor = minor_of_path(g.gl_pathv[i]), told = 0;
		if (minor < 7)
			continue;
		char library[512];
		(void)snprintf(library, sizeof(library), "%.*s/lib/libpython3.%u%s.so.1.0",
			(int)(strstr(g.gl_pathv[i], "/bin/") - g.gl_pathv[i]), g.gl_pathv[i], minor,
			minor == 7 ? "m" : "");
		CHECK(check_file(g.gl_pathv[i], &told) || check_file(library, &told));
		CHECK(told == minor);
		size_t lines = check_lines(g.gl_pathv[i]);
		print_message("%s: %zu instructions\n", g.gl_pathv[i], lines);
		CHECK(lines > 1000);
		found++;
	}
	globfree(&g);
	if (!found)
		SKIP("no CPython here");
}

TEST_MAIN(cmocka_unit_test(agrees_with_those_of_this_machine))
