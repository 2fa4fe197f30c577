/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Ruby program of known shape on the real kernel: recursion, a block that a function in C calls,
 * a method that has rescued, one of the class itself, one made by define_method, a fiber, a thread.
 */
#include "scripts.h"

static const char text[] = "module App\n"                     /* 1 */
			   "  class Work\n"                   /* 2 */
			   "    def self.leaf\n"              /* 3 */
			   "      x = 0\n"                    /* 4 */
			   "      i = 0\n"                    /* 5 */
			   "      while i < 20000\n"          /* 6 */
			   "        x += i\n"                 /* 7 */
			   "        i += 1\n"                 /* 8 */
			   "      end\n"                      /* 9 */
			   "      x\n"                        /* 10 */
			   "    end\n"                        /* 11 */
			   "    def rescuer\n"                /* 12 */
			   "      begin\n"                    /* 13 */
			   "        raise 'x'\n"              /* 14 */
			   "      rescue RuntimeError\n"      /* 15 */
			   "        Work.leaf\n"              /* 16 */
			   "      end\n"                      /* 17 */
			   "    end\n"                        /* 18 */
			   "    define_method(:made) do\n"    /* 19 */
			   "      rescuer\n"                  /* 20 */
			   "    end\n"                        /* 21 */
			   "    def each_one\n"               /* 22 */
			   "      [1, 2].each do |i|\n"       /* 23 */
			   "        made\n"                   /* 24 */
			   "      end\n"                      /* 25 */
			   "    end\n"                        /* 26 */
			   "  end\n"                          /* 27 */
			   "end\n"                            /* 28 */
			   "def again(n)\n"                   /* 29 */
			   "  return again(n - 1) if n > 0\n" /* 30 */
			   "  App::Work.new.each_one\n"       /* 31 */
			   "end\n"                            /* 32 */
			   "while true\n"                     /* 33 */
			   "  again(2)\n"                     /* 34 */
			   "end\n";

static const struct script_frame shape[] = {
	{ "<main>", SCRIPT_ANY_LINE, 34 },
	{ "Object#again", 29, 30 },
	{ "Object#again", 29, 30 },
	{ "Object#again", 29, 31 },
	{ "App::Work#each_one", 22, 23 },
	{ "Array#each", 0, 0 },
	{ "block in App::Work#each_one", 23, 24 },
	{ "block in <class:Work>", 19, 20 },
	{ "App::Work#rescuer", 12, 12 },
	{ "rescue in App::Work#rescuer", SCRIPT_ANY_LINE, 16 },
	{ "App::Work.leaf", 3, 0 },
};

static const char *const args[] = { "--disable-gems", NULL };

static void shows_functions_and_lines(void **state)
{
	(void)state;
	const struct script script = { .interpreters = "/usr/bin/ruby[23].*",
		.text = text,
		.args = args,
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_RUBY,
		.deep = 80 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (!script_check_all(&script))
		SKIP("no Ruby here");
}

/* Compiled code writes down where it is only where that may be asked for: lines are not compared.
 */
static void shows_functions_of_yjit(void **state)
{
	(void)state;
	static const char *const yjit[] = { "--disable-gems", "--yjit", "--yjit-call-threshold=2",
		NULL };
	struct script_frame any[ARRAY_COUNT(shape)];
	memcpy(any, shape, sizeof(any));
	for (size_t i = 0; i < ARRAY_COUNT(any); i++)
		any[i].line = 0;
	const struct script script = { .interpreters = "/usr/bin/ruby3.[1-9]",
		.text = text,
		.args = yjit,
		.shape = any,
		.depth = ARRAY_COUNT(any),
		.kind = RUNTIME_RUBY,
		.deep = 80 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (system("/usr/bin/ruby --yjit -e exit 2>/dev/null") != 0 || !script_check_all(&script))
		SKIP("no Ruby with YJIT here");
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines), cmocka_unit_test(shows_functions_of_yjit))
