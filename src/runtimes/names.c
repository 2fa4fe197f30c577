/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's BPF program sends a method as two names side by side, its class' and its own. Here
 * they become one name, joined as the language joins them ("#", "::"). Code without a name, such as
 * the outermost code of a file, comes with a form (RUNTIME_FORM_) and gets the word that the
 * language's own traces use. Many functions of a file may share that word, so the shown name has
 * their file and line, too.
 */
#include "runtimes/runtimes.h"

#include <stdio.h>

static const char anonymous[] = "(anonymous)";

#define LUA_FILE_MAX 128

static const struct words {
	const char *separator;
	const char *of_class; /* separator of RUNTIME_FORM_CLASS; NULL: the same as `separator` */
	const char *forms[RUNTIME_FORM_COUNT];
} words_of[RUNTIME_KIND_COUNT] = {
	[RUNTIME_PERL] = { .separator = "::",
		/* The first name is the one that Devel::NYTProf shows. */
		.forms = { [RUNTIME_FORM_MAIN] = "main::RUNTIME",
			[RUNTIME_FORM_EVAL] = "(eval)" } },
	[RUNTIME_RUBY] = { .separator = "#", .of_class = "." },
	[RUNTIME_PHP] = { .separator = "::",
		.forms = { [RUNTIME_FORM_MAIN] = "{main}",
			[RUNTIME_FORM_FILE] = "include",
			[RUNTIME_FORM_EVAL] = "eval" } },
};

/* Functions of Lua have no names, so they are called as Lua's tracebacks call them. */
void lua_name(struct buf *out, unsigned form, struct str file, uint32_t first_line)
{
	size_t from = file.len;
	while (from && file.p[from - 1] != '/')
		from--;
	if (form == RUNTIME_FORM_MAIN)
		buf_str(out, STR("main chunk"));
	if (form == RUNTIME_FORM_EVAL)
		buf_str(out, STR("main chunk of a string"));
	if (form == RUNTIME_FORM_MAIN || form == RUNTIME_FORM_EVAL)
		return;
	buf_str(out, STR("function <"));
	if (file.len)
		(void)runtimes_text(out, str_sub(file, from, MIN(file.len, from + LUA_FILE_MAX)),
			RUNTIME_TEXT_UTF8);
	else
		buf_str(out, STR("string"));
	buf_printf(out, ":%u>", first_line);
}

static struct str until_zero(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == 0)
			return str_make(s.p, i);
	}
	return s;
}

/* How many bytes of a label stand before the method's name: "rescue in block (2 levels) in f". */
static size_t ruby_prefix(struct str label)
{
	static const char *const begins[] = { "block in ", "rescue in ", "ensure in " };
	size_t at = 0;
	for (size_t i = 0; i < ARRAY_COUNT(begins);) {
		struct str rest = str_sub(label, at, label.len);
		struct str many = str_sub(rest, strlen("block (") + 1, rest.len);
		if (str_starts(rest, str_of(begins[i]))) {
			at += strlen(begins[i]);
			i = 0;
		} else if (str_starts(rest, STR("block (")) &&
			   str_starts(many, STR(" levels) in "))) {
			at += strlen("block (2 levels) in ");
			i = 0;
		} else {
			i++;
		}
	}
	return at;
}

/* A method's class stands before its name, within the label of a block. Code outside of methods,
 * and methods of a class without a name, have none: "<class:A>", "#<Class:0x00007f>". */
static bool ruby_has_owner(struct str owner, struct str name)
{
	return owner.len && !str_starts(owner, STR("#<")) && !str_starts(name, STR("<")) &&
	       !str_eq(name, STR("singleton class"));
}

static void put_word(struct buf *out, const char *word)
{
	if (word)
		buf_str(out, str_of(word));
}

void runtimes_name(struct buf *out, unsigned kind, unsigned form, size_t owner_bytes,
	struct str text, unsigned character_bytes)
{
	if (kind >= RUNTIME_KIND_COUNT || !words_of[kind].separator) {
		(void)runtimes_text(out, text, character_bytes);
		if (kind == RUNTIME_V8 && !text.len)
			buf_str(out, str_of(anonymous));
		return;
	}
	const struct words *w = &words_of[kind];
	size_t split = MIN(owner_bytes, text.len);
	struct str owner = until_zero(str_sub(text, 0, split));
	struct str name = until_zero(str_sub(text, split, text.len));
	if (kind == RUNTIME_RUBY) {
		size_t before = ruby_prefix(name);
		(void)runtimes_text(out, str_sub(name, 0, before), character_bytes);
		name = str_sub(name, before, name.len);
		if (!ruby_has_owner(owner, name))
			owner.len = 0;
	}
	(void)runtimes_text(out, owner, character_bytes);
	if (owner.len && name.len)
		put_word(out,
			form == RUNTIME_FORM_CLASS && w->of_class ? w->of_class : w->separator);
	(void)runtimes_text(out, name, character_bytes);
	if (!name.len && form < RUNTIME_FORM_COUNT)
		put_word(out, w->forms[form]);
}

/* Python: "f.<locals>.<lambda>", "<listcomp>"; of "<module>" a file has one. */
static bool is_shared(unsigned kind, struct str name)
{
	if (kind == RUNTIME_V8)
		return str_eq(name, str_of(anonymous));
	if (kind == RUNTIME_PHP) /* from 8.4 on PHP's own name has the line */
		return str_ends(name, STR("{closure}"));
	static const char *const ends[] = { "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>",
		"<setcomp>" };
	for (size_t i = 0; i < ARRAY_COUNT(ends) && kind == RUNTIME_CPYTHON; i++) {
		if (str_ends(name, str_of(ends[i])))
			return true;
	}
	return false;
}

struct str runtimes_name_placed(unsigned kind, struct str name, struct str file,
	uint32_t first_line, char out[RUNTIMES_NAME_PLACED_BYTES])
{
	if (!first_line || !is_shared(kind, name))
		return name;
	size_t from = file.len;
	while (from && file.p[from - 1] != '/')
		from--;
	struct str base = str_sub(file, from, file.len);
	int n = snprintf(out, RUNTIMES_NAME_PLACED_BYTES, "%.*s %.*s:%u", STR_ARG(name),
		STR_ARG(base), first_line);
	return n > 0 && n < RUNTIMES_NAME_PLACED_BYTES ? str_make(out, (size_t)n) : name;
}
