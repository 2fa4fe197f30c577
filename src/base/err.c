/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status err_set(struct err *e, enum status s, const char *fmt, ...)
{
	if (!e)
		return s;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	e->status = s;
	return s;
}

static enum status status_of_errno(int number)
{
	switch (number) {
	case ENOMEM:
		return E_NOMEM;
	case ENOENT:
		return E_NOTFOUND;
	case EEXIST:
		return E_EXISTS;
	case EACCES:
	case EPERM:
		return E_DENIED;
	case ENOSPC:
	case EDQUOT:
		return E_NOSPACE;
	case EMFILE:
	case ENFILE:
		return E_UNAVAILABLE;
	default:
		return E_IO;
	}
}

enum status err_os(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	enum status s = status_of_errno(saved);
	if (!e)
		return s;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text)) {
		char text[128];
		/* GNU strerror_r: the answer is the return value, not necessarily `text`. */
		const char *reason = strerror_r(saved, text, sizeof(text));
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", reason);
	}
	e->status = s;
	errno = saved;
	return s;
}

/* The end of the reason is its most specific part. If it does not fit, its beginning is cut. */
static void append_reason(char *to, size_t room, const char *reason)
{
	static const char plain[] = ": ", cut[] = ": …";
	size_t len = strlen(reason), lead = sizeof(plain) - 1;
	if (sizeof(plain) + len > room && room > sizeof(cut)) {
		lead = sizeof(cut) - 1;
		reason += len - (room - sizeof(cut));
		while (((unsigned char)*reason & 0xC0) == 0x80) /* within a character */
			reason++;
	}
	if (room <= lead)
		return;
	memcpy(to, lead == sizeof(plain) - 1 ? plain : cut, lead);
	len = MIN(strlen(reason), room - lead - 1);
	memcpy(to + lead, reason, len);
	to[lead + len] = 0;
}

enum status err_prefix(struct err *e, enum status s, const char *fmt, ...)
{
	if (!e)
		return s;
	char old[ERR_TEXT_MAX];
	snprintf(old, sizeof(old), "%s", err_text(e, s));
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		append_reason(e->text + n, sizeof(e->text) - (size_t)n, old);
	e->status = s;
	return s;
}

const char *err_text(const struct err *e, enum status s)
{
	if (e && e->status == s && e->text[0])
		return e->text;
	return status_text(s);
}
