/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Perl program of known shape on the real kernel: recursion, a sort with a subroutine, a method,
 * an eval that has caught, one of a text.
 */
#include "scripts.h"

static const char text[] = "package App::Work;\n"                      /* 1 */
			   "sub new { bless {}, shift }\n"             /* 2 */
			   "sub method {\n"                            /* 3 */
			   "    my $self = shift;\n"                   /* 4 */
			   "    return App::thrower(3);\n"             /* 5 */
			   "}\n"                                       /* 6 */
			   "package App;\n"                            /* 7 */
			   "sub leaf {\n"                              /* 8 */
			   "    my $x = 0;\n"                          /* 9 */
			   "    for my $i (1 .. 3000) { $x += $i; }\n" /* 10 */
			   "    return $x;\n"                          /* 11 */
			   "}\n"                                       /* 12 */
			   "sub thrower {\n"                           /* 13 */
			   "    eval { die 'x' };\n"                   /* 14 */
			   "    return leaf();\n"                      /* 15 */
			   "}\n"                                       /* 16 */
			   "package main;\n"                           /* 17 */
			   "sub key {\n"                               /* 18 */
			   "    $main::work->method();\n"              /* 19 */
			   "    return $a <=> $b;\n"                   /* 20 */
			   "}\n"                                       /* 21 */
			   "sub again {\n"                             /* 22 */
			   "    my $n = shift;\n"                      /* 23 */
			   "    return again($n - 1) if $n;\n"         /* 24 */
			   "    my @a = sort key 3, 2, 1;\n"           /* 25 */
			   "}\n"                                       /* 26 */
			   "our $work = App::Work->new; while (1) {\n" /* 27 */
			   "    again(2);\n"                           /* 28 */
			   "}\n";

static const struct script_frame shape[] = {
	{ "main::RUNTIME", 0, 28 },
	{ "main::again", 0, 24 },
	{ "main::again", 0, 24 },
	{ "main::again", 0, 25 },
	{ "main::key", 0, 19 },
	{ "App::Work::method", 0, 5 },
	{ "App::thrower", 0, 15 },
	{ "App::leaf", 0, 0 },
};

static void shows_functions_and_lines(void **state)
{
	(void)state;
	const struct script script = { .interpreters = "/usr/bin/perl",
		.text = text,
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_PERL,
		.deep = 70 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (!script_check_all(&script))
		SKIP("no Perl here");
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines))
