/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PHP program of known shape on the real kernel: recursion, a callback through the engine, a
 * generator, a method, an exception that was caught.
 */
#include "scripts.h"

static const char text[] =
	"<?php\n"                                                         /* 1 */
	"namespace App;\n"                                                /* 2 */
	"function leaf() {\n"                                             /* 3 */
	"    $x = 0;\n"                                                   /* 4 */
	"    for ($i = 0; $i < 3000; $i++) { $x += $i; }\n"               /* 5 */
	"    return $x;\n"                                                /* 6 */
	"}\n"                                                             /* 7 */
	"function thrower() {\n"                                          /* 8 */
	"    try { throw new \\Exception('x'); }\n"                       /* 9 */
	"    catch (\\Exception $e) { return leaf(); }\n"                 /* 10 */
	"}\n"                                                             /* 11 */
	"class Work {\n"                                                  /* 12 */
	"    function method() {\n"                                       /* 13 */
	"        return thrower();\n"                                     /* 14 */
	"    }\n"                                                         /* 15 */
	"}\n"                                                             /* 16 */
	"function numbers() {\n"                                          /* 17 */
	"    while (true) {\n"                                            /* 18 */
	"        yield (new Work)->method();\n"                           /* 19 */
	"    }\n"                                                         /* 20 */
	"}\n"                                                             /* 21 */
	"function key($m) {\n"                                            /* 22 */
	"    global $numbers;\n"                                          /* 23 */
	"    $numbers->next();\n"                                         /* 24 */
	"    return 'b';\n"                                               /* 25 */
	"}\n"                                                             /* 26 */
	"function again($n) {\n"                                          /* 27 */
	"    if ($n) { return again($n - 1); }\n"                         /* 28 */
	"    return \\preg_replace_callback('/a/', 'App\\key', 'aaa');\n" /* 29 */
	"}\n"                                                             /* 30 */
	"$numbers = numbers();\n"                                         /* 31 */
	"while (true) {\n"                                                /* 32 */
	"    again(2);\n"                                                 /* 33 */
	"}\n";

static const struct script_frame shape[] = {
	{ "{main}", 1, 33 },
	{ "App\\again", 27, 28 },
	{ "App\\again", 27, 28 },
	{ "App\\again", 27, 29 },
	{ "preg_replace_callback", 0, 0 },
	{ "App\\key", 22, 24 },
	{ "Generator::next", 0, 0 },
	{ "App\\numbers", 17, 19 },
	{ "App\\Work::method", 13, 14 },
	{ "App\\thrower", 8, 0 },
	{ "App\\leaf", 3, 0 },
};

static void shows_functions_and_lines(void **state)
{
	(void)state;
	const struct script script = { .interpreters = "/usr/bin/php[78].[0-9]",
		.text = text,
		.args = (const char *const[]){ "-n", NULL },
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_PHP,
		.deep = 70 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (!script_check_all(&script))
		SKIP("no PHP here");
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines))
