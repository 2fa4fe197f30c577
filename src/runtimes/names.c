/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A method is told as its class' name and its own, side by side: here they become one name, with
 * what stands between them in the language. Code without a name, the outermost one of a file, is
 * told by its form, and gets the word that the language has for it in its own traces.
 */
#include "runtimes/runtimes.h"

static const struct words {
	const char *separator;
	const char *of_class; /* separator of RUNTIME_FORM_CLASS; NULL: as the other */
	const char *forms[RUNTIME_FORM_COUNT];
} words_of[RUNTIME_KIND_COUNT] = {
	[RUNTIME_PERL] = { .separator = "::",
		.forms = { [RUNTIME_FORM_MAIN] = "main::RUNTIME", /* as Devel::NYTProf calls it */
			[RUNTIME_FORM_EVAL] = "(eval)" } },
	[RUNTIME_PHP] = { .separator = "::",
		.forms = { [RUNTIME_FORM_MAIN] = "{main}",
			[RUNTIME_FORM_FILE] = "include",
			[RUNTIME_FORM_EVAL] = "eval" } },
};

static struct str until_zero(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == 0)
			return str_make(s.p, i);
	}
	return s;
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
			buf_str(out, STR("(anonymous)"));
		return;
	}
	const struct words *w = &words_of[kind];
	size_t split = MIN(owner_bytes, text.len);
	struct str owner = until_zero(str_sub(text, 0, split));
	struct str name = until_zero(str_sub(text, split, text.len));
	(void)runtimes_text(out, owner, character_bytes);
	if (owner.len && name.len)
		put_word(out,
			form == RUNTIME_FORM_CLASS && w->of_class ? w->of_class : w->separator);
	(void)runtimes_text(out, name, character_bytes);
	if (!name.len && form < RUNTIME_FORM_COUNT)
		put_word(out, w->forms[form]);
}
