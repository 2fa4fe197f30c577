/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each runtime has its own form of names, and no name says which runtime wrote it. So the forms are
 * tried one after the other, those with the clearest signs first.
 */
#include "jit/jit.h"

#define NAMELESS STR("(anonymous)")

/* Cuts `prefix` off; false: the text does not begin with it. */
static bool take(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	*s = str_sub(*s, prefix.len, s->len);
	return true;
}

/* Index of `what`, or s.len. */
static size_t find(struct str s, struct str what)
{
	for (size_t i = 0; i + what.len <= s.len; i++)
		if (memcmp(s.p + i, what.p, what.len) == 0)
			return i;
	return s.len;
}

/* Cuts ":NUMBER" off the end; false: there is none. */
static bool take_number(struct str *s, uint32_t *out)
{
	uint64_t n;
	size_t colon = str_rindex(*s, ':');
	if (colon == s->len || !str_parse_u64(str_sub(*s, colon + 1, s->len), 10, &n) ||
		n > UINT32_MAX)
		return false;
	*s = str_sub(*s, 0, colon);
	*out = (uint32_t)n;
	return true;
}

/* ---- V8: "JS:*name file:line:column", also "LazyCompile:~name file:line" ---- */

/* Where the file begins: both parts may hold blanks. */
static size_t file_of_script(struct str s)
{
	static const char *const signs[] = { " /",
		" file:", " node:", " http:", " https:", " webpack" };
	size_t first = s.len;
	for (size_t i = 0; i < ARRAY_COUNT(signs); i++)
		first = MIN(first, find(s, str_of(signs[i])));
	return first < s.len ? first : str_rindex(s, ' ');
}

static void parse_script(struct str s, struct jit_name *out)
{
	uint32_t line = 0, column;
	/* Signs of how it was compiled, as in "o*'name": o for a long loop, ' for one context. */
	static const char tiers[] = "*~^+";
	if (s.len > 1 && s.p[0] == 'o' && s.p[1] && strchr("*+", s.p[1]))
		s = str_sub(s, 1, s.len);
	bool has_tier = false;
	for (; s.len && s.p[0] && strchr(tiers, s.p[0]); has_tier = true)
		s = str_sub(s, 1, s.len);
	if (has_tier)
		(void)take(&s, STR("'"));
	struct str place = s;
	if (take_number(&place, &line)) {
		column = line;
		if (!take_number(&place, &line))
			line = column;
		size_t blank = file_of_script(place);
		s = str_sub(place, 0, blank);
		out->file = blank < place.len ? str_sub(place, blank + 1, place.len) : STR("");
		out->line = line;
	}
	s = str_trim(s);
	out->function = s.len ? s : NAMELESS;
}

static bool parse_v8(struct str s, struct jit_name *out)
{
	static const char *const scripts[] = {
		"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"
	};
	static const char *const others[] = {
		"Builtin:", "BytecodeHandler:", "Handler:", "Stub:", "RegExp:"
	};
	bool is_native = take(&s, STR("Native")); /* a function of V8's own library */
	for (size_t i = 0; i < ARRAY_COUNT(scripts); i++) {
		struct str rest = s;
		if (!take(&rest, str_of(scripts[i])))
			continue;
		out->kind = FRAME_V8JS;
		parse_script(rest, out);
		return true;
	}
	for (size_t i = 0; i < ARRAY_COUNT(others) && !is_native; i++)
		if (str_starts(s, str_of(others[i])))
			out->kind = FRAME_V8JS;
	return out->kind == FRAME_V8JS;
}

/* ---- the others ---- */

/* "py::qualified.name:/path/file.py" */
static bool parse_cpython(struct str s, struct jit_name *out)
{
	if (!take(&s, STR("py::")))
		return false;
	size_t colon = find(s, STR(":/"));
	if (colon == s.len)
		colon = str_rindex(s, ':');
	out->kind = FRAME_CPYTHON;
	out->function = str_sub(s, 0, colon);
	if (colon < s.len)
		out->file = str_sub(s, colon + 1, s.len);
	return out->function.len > 0;
}

/* ".NET": "void [Assembly] Class::Method(int32)[Tier0]" */
static bool parse_dotnet(struct str s, struct jit_name *out)
{
	static const char *const tiers[] = { "[Tier0]", "[Tier1]", "[OptimizedTier1]",
		"[OptimizedTier1OSR]", "[QuickJitted]", "[Optimized]", "[MinOptJitted]", "[PreJIT]",
		"[ReadyToRun]", "[Instrumented]", "[InstrumentedTier0]", "[Tier-0 Instrumented]" };
	size_t from = find(s, STR("] "));
	bool has_assembly = from < s.len && str_index(s, '[') < from;
	bool has_tier = false;
	for (size_t i = 0; i < ARRAY_COUNT(tiers); i++) {
		if (!str_ends(s, str_of(tiers[i])))
			continue;
		s = str_sub(s, 0, s.len - strlen(tiers[i]));
		has_tier = true;
		break;
	}
	if (!has_assembly || (!has_tier && find(s, STR("::")) == s.len))
		return false;
	s = str_sub(s, from + 2, s.len);
	s = str_sub(s, 0, str_index(s, '('));
	out->kind = FRAME_DOTNET;
	out->function = s;
	return s.len > 0;
}

/* HotSpot: "int java.lang.String.indexOf(java.lang.String, int)". perf-map-agent:
 * "Ljava/lang/String;::indexOf". */
static bool parse_jvm(struct str s, struct jit_name *out)
{
	if (s.len && s.p[0] == 'L' && find(s, STR(";::")) < s.len) {
		out->kind = FRAME_JVM;
		out->function = str_sub(s, 1, s.len);
		return true;
	}
	size_t open = str_index(s, '(');
	struct str head = str_sub(s, 0, open);
	size_t blank = str_rindex(head, ' ');
	if (open == s.len || blank == head.len || !str_ends(s, STR(")")))
		return false;
	struct str name = str_sub(head, blank + 1, head.len);
	if (str_index(name, '.') == name.len || str_index(name, ':') < name.len)
		return false;
	out->kind = FRAME_JVM;
	out->function = name;
	return true;
}

/* BEAM: "$lists:foldl/3" in perf maps, "lists:foldl/3-CodeInfoPrologue" in jitdumps,
 * "global::call_bif_shared" for code common to all modules */
static bool parse_beam(struct str s, struct jit_name *out)
{
	size_t slash;
	uint64_t arity;
	struct str global = s;
	(void)take(&global, STR("$"));
	if (str_starts(global, STR("global::"))) {
		out->kind = FRAME_BEAM;
		out->function = global;
		return true;
	}
	bool is_beam = take(&s, STR("$")) || str_ends(s, STR("-CodeInfoPrologue")) ||
		       (str_index(s, '(') == s.len && str_index(s, ' ') == s.len);
	size_t colon = str_index(s, ':');
	if (!is_beam || colon == 0 || colon == s.len || find(s, STR("::")) < s.len)
		return false;
	slash = str_rindex(s, '/');
	if (slash < colon)
		return false;
	size_t digits = slash + 1;
	while (digits < s.len && s.p[digits] >= '0' && s.p[digits] <= '9')
		digits++;
	if (slash == s.len || !str_parse_u64(str_sub(s, slash + 1, digits - slash - 1), 10, &arity))
		return false;
	out->kind = FRAME_BEAM;
	out->function = str_sub(s, 0, digits); /* not "-CodeInfoPrologue" */
	return true;
}

/* LuaJIT: "TRACE_12::file.lua:34", with the line where the trace begins. */
static bool parse_luajit(struct str s, struct jit_name *out)
{
	if (!take(&s, STR("TRACE_")))
		return false;
	size_t colons = find(s, STR("::"));
	if (colons == s.len)
		return false;
	s = str_sub(s, colons + 2, s.len);
	out->kind = FRAME_LUAJIT;
	out->function = s;
	out->file = s;
	if (!take_number(&out->file, &out->line))
		out->file = STR("");
	return s.len > 0;
}

/* "JIT$Class::method:/file.php:12", and traces: "TRACE-12$method$34" */
static bool parse_php(struct str s, struct jit_name *out)
{
	if (str_starts(s, STR("JIT$$"))) { /* code common to all functions */
		out->kind = FRAME_PHP;
		return true;
	}
	if (take(&s, STR("TRACE-"))) {
		size_t dollar = str_index(s, '$');
		if (dollar == s.len)
			return false;
		s = str_sub(s, dollar + 1, s.len);
	} else if (!take(&s, STR("JIT$"))) {
		return false;
	}
	out->kind = FRAME_PHP;
	struct str place = s;
	if (take_number(&place, &out->line)) {
		size_t colon = find(place, STR(":/"));
		if (colon == place.len)
			colon = str_rindex(place, ':');
		s = str_sub(place, 0, colon);
		if (colon < place.len)
			out->file = str_sub(place, colon + 1, place.len);
	}
	out->function = s;
	return s.len > 0;
}

/* YJIT: "[JIT] Class#method", "YJIT ruby method entry" and such */
static bool parse_ruby(struct str s, struct jit_name *out)
{
	if (!take(&s, STR("[JIT] ")))
		return false;
	out->kind = FRAME_RUBY;
	out->function = s;
	return s.len > 0;
}

struct jit_name jit_name_parse(struct str name)
{
	static bool (*const forms[])(struct str, struct jit_name *) = { parse_v8, parse_cpython,
		parse_beam, parse_luajit, parse_php, parse_ruby, parse_dotnet, parse_jvm };
	const struct jit_name plain = { .function = name, .kind = FRAME_JIT };
	for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
		struct jit_name out = plain;
		if (forms[i](name, &out))
			return out;
	}
	return plain;
}
