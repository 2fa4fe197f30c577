/* SPDX-License-Identifier: Apache-2.0 */
#include "jit/jit.h"

#include "test.h"

/* Texts as node 20, JDK 17, Erlang 25, Python 3.12 and PHP 8.2 wrote them; .NET, LuaJIT and YJIT by
 * their sources. */
/* clang-format off */
static const struct { const char *name; const char *function; const char *file; uint32_t line; enum frame_kind kind; } cases[] = {
	{ "JS:*fib /tmp/w/fib.js:2:13", "fib", "/tmp/w/fib.js", 2, FRAME_V8JS },
	{ "JS:^heavy /tmp/w/fib.js:3:19", "heavy", "/tmp/w/fib.js", 3, FRAME_V8JS },
	{ "JS:+heavy /tmp/w/fib.js:3:19", "heavy", "/tmp/w/fib.js", 3, FRAME_V8JS },
	{ "JS:+'heavy /tmp/w/fib.js:3:19", "heavy", "/tmp/w/fib.js", 3, FRAME_V8JS },
	{ "JS:o*'heavy /tmp/w/fib.js:3:19", "heavy", "/tmp/w/fib.js", 3, FRAME_V8JS },
	{ "JS:o* file:///tmp/w/fib.js:3:19", "(anonymous)", "file:///tmp/w/fib.js", 3, FRAME_V8JS },
	{ "JS:on /tmp/w/fib.js:3:19", "on", "/tmp/w/fib.js", 3, FRAME_V8JS },
	{ "JS:~ /tmp/w/fib.js:6:11", "(anonymous)", "/tmp/w/fib.js", 6, FRAME_V8JS },
	{ "LazyCompile:*processTicksAndRejections node:internal/process/task_queues:67:35",
		"processTicksAndRejections", "node:internal/process/task_queues", 67, FRAME_V8JS },
	{ "LazyCompile:~get size /srv/my app/a.js:7", "get size", "/srv/my app/a.js", 7, FRAME_V8JS },
	{ "JS:*go file:///srv/a b/c.mjs:12:5", "go", "file:///srv/a b/c.mjs", 12, FRAME_V8JS },
	{ "Script:~ evalmachine.<anonymous>:1:1", "(anonymous)", "evalmachine.<anonymous>", 1, FRAME_V8JS },
	{ "JS:*f", "f", "", 0, FRAME_V8JS },
	{ "JS:*", "(anonymous)", "", 0, FRAME_V8JS },
	{ "Builtin:ArrayMap", "Builtin:ArrayMap", "", 0, FRAME_V8JS },
	{ "RegExp:^a|b:1:2", "RegExp:^a|b:1:2", "", 0, FRAME_V8JS },
	{ "py::W.run.<locals>.<lambda>:/tmp/w/fib.py", "W.run.<locals>.<lambda>", "/tmp/w/fib.py", 0, FRAME_CPYTHON },
	{ "py::<module>:<frozen importlib._bootstrap>", "<module>", "<frozen importlib._bootstrap>", 0, FRAME_CPYTHON },
	{ "int java.lang.String.indexOf(java.lang.String, int)", "java.lang.String.indexOf", "", 0, FRAME_JVM },
	{ "double Fib.heavy(int)", "Fib.heavy", "", 0, FRAME_JVM },
	{ "Ljava/lang/String;::hashCode", "java/lang/String;::hashCode", "", 0, FRAME_JVM },
	{ "I2C/C2I adapters", "I2C/C2I adapters", "", 0, FRAME_JIT },
	{ "$lists:map/2", "lists:map/2", "", 0, FRAME_BEAM },
	{ "$lists:map/2-CodeInfoPrologue", "lists:map/2", "", 0, FRAME_BEAM },
	{ "fib:fib/1", "fib:fib/1", "", 0, FRAME_BEAM },
	{ "fib:fib/1-CodeInfoPrologue", "fib:fib/1", "", 0, FRAME_BEAM },
	{ "$global::apply_fun_shared", "global::apply_fun_shared", "", 0, FRAME_BEAM },
	{ "global::call_bif_shared", "global::call_bif_shared", "", 0, FRAME_BEAM },
	{ "void [System.Console] System.Console::WriteLine(string)[OptimizedTier1]",
		"System.Console::WriteLine", "", 0, FRAME_DOTNET },
	{ "instance void [a] B`1[System.__Canon]::M()[Tier0]", "B`1[System.__Canon]::M", "", 0, FRAME_DOTNET },
	{ "TRACE_12::fib.lua:34", "fib.lua:34", "fib.lua", 34, FRAME_LUAJIT },
	{ "JIT$Foo::bar:/srv/a.php:12", "Foo::bar", "/srv/a.php", 12, FRAME_PHP },
	{ "TRACE-3$fib$2", "fib$2", "", 0, FRAME_PHP },
	{ "JIT$$assign_const", "JIT$$assign_const", "", 0, FRAME_PHP },
	{ "[JIT] Object#fib", "Object#fib", "", 0, FRAME_RUBY },
	{ "wasm[0]::function[12]::fib", "wasm[0]::function[12]::fib", "", 0, FRAME_JIT },
	{ "julia_fib_123", "julia_fib_123", "", 0, FRAME_JIT },
	{ "void ns::f(int)", "void ns::f(int)", "", 0, FRAME_JIT },
	{ "$", "$", "", 0, FRAME_JIT },
	{ "py::", "py::", "", 0, FRAME_JIT },
	{ "", "", "", 0, FRAME_JIT },
};
/* clang-format on */

static void reads_each_form(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct jit_name n = jit_name_parse(str_of(c->name));
		CHECK_CASE(c, str_eq(n.function, str_of(c->function)));
		CHECK_CASE(c, str_eq(n.file, str_of(c->file)));
		CHECK_CASE(c, n.line == c->line);
		CHECK_CASE(c, n.kind == c->kind);
	}
}

TEST_MAIN(cmocka_unit_test(reads_each_form))
