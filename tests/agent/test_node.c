/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JavaScript program of known shape in Node.js on the real kernel: recursion, a callback through
 * a builtin, a method, an exception that was caught, a generator, a function without a name; in the
 * interpreter. All below it, the modules of Node itself, is left out. More programs than this
 * machine's: FIRN_TEST_NODES=PATH:PATH.
 */
#include "scripts.h"

static const char text[] = "'use strict';\n"                                  /* 1 */
			   "function leaf() {\n"                              /* 2 */
			   "    let x = 0;\n"                                 /* 3 */
			   "    for (let i = 0; i < 3000; i++) { x += i; }\n" /* 4 */
			   "    return x;\n"                                  /* 5 */
			   "}\n"                                              /* 6 */
			   "function thrower() {\n"                           /* 7 */
			   "    try { throw new Error('x'); }\n"              /* 8 */
			   "    catch (e) { return leaf(); }\n"               /* 9 */
			   "}\n"                                              /* 10 */
			   "class Work {\n"                                   /* 11 */
			   "    method() {\n"                                 /* 12 */
			   "        return thrower();\n"                      /* 13 */
			   "    }\n"                                          /* 14 */
			   "}\n"                                              /* 15 */
			   "function *numbers() {\n"                          /* 16 */
			   "    while (true) {\n"                             /* 17 */
			   "        yield new Work().method();\n"             /* 18 */
			   "    }\n"                                          /* 19 */
			   "}\n"                                              /* 20 */
			   "const all = numbers();\n"                         /* 21 */
			   "function again(n) {\n"                            /* 22 */
			   "    if (n) { return again(n - 1); }\n"            /* 23 */
			   "    return [1].map((m) => {\n"                    /* 24 */
			   "        return all.next().value + m;\n"           /* 25 */
			   "    })[0];\n"                                     /* 26 */
			   "}\n"                                              /* 27 */
			   "const nameless = [function () {\n"                /* 28 */
			   "    return again(2);\n"                           /* 29 */
			   "}];\n"                                            /* 30 */
			   "while (true) {\n"                                 /* 31 */
			   "    nameless[0]();\n"                             /* 32 */
			   "}\n";

static const struct script_frame shape[] = {
	{ "(anonymous)", 1, 32 },
	{ "nameless", 28, 29 },
	{ "again", 22, 23 },
	{ "again", 22, 23 },
	{ "again", 22, 24 },
	{ "map", 0, 0 },
	{ "(anonymous)", 24, 25 },
	{ "next", 0, 0 },
	{ "numbers", 16, 18 },
	{ "method", 12, 13 },
	{ "thrower", 7, 0 },
	{ "leaf", 2, 0 },
};

static void shows_functions_and_lines(void **state)
{
	(void)state;
	const struct script script = { .interpreters = "/usr/bin/node",
		.text = text,
		.args = (const char *const[]){ "--jitless", NULL },
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_V8,
		.has_runtime_below = true,
		.deep = 50 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	bool found = script_check_all(&script);
	const char *more = getenv("FIRN_TEST_NODES");
	struct str left = str_of(more ? more : ""), one;
	while (left.len && str_split(&left, ':', &one)) {
		char path[256];
		(void)snprintf(path, sizeof(path), "%.*s", STR_ARG(one));
		script_check(&script, "", path);
		found = true;
	}
	if (!found)
		SKIP("no Node.js here");
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines))
