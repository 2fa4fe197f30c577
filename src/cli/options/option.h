/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option: one flag as a row of a table, and how a text becomes its value.
 *
 * Private to cli/.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define CLI_LIST_MAX 64 /* values of one repeated flag */
#define CLI_LIST_BYTES_MAX 8192

enum cli_kind {
	CLI_TEXT,     /* const char * */
	CLI_BOOL,     /* bool; --flag, --flag=false */
	CLI_NUMBER,   /* uint32_t, from least to most */
	CLI_SHARE,    /* double, 0 to 1 */
	CLI_DURATION, /* int64_t ns */
	CLI_SIZE,     /* uint64_t bytes */
	CLI_CHOICE,   /* const char *, one of `choices` */
	CLI_LIST      /* struct cli_list; repeated, or several with `separator` between */
};

struct cli_list {
	const char *v[CLI_LIST_MAX +
		      1]; /* point into `text`; NULL at the end. Do not copy the struct */
	uint32_t count;
	size_t used;
	char text[CLI_LIST_BYTES_MAX];
};

struct cli_option {
	const char *name; /* without the dashes */
	enum cli_kind kind;
	size_t at;             /* of the field, in the group's struct */
	const char *value;     /* name of the value in --help: "HOST:PORT" */
	const char *help;      /* sentences; the default is added */
	const char *otherwise; /* the default, read like a value; NULL: the field stays zero */
	const char *env;       /* environment variable that overrides the default; or NULL */
	const char *choices;   /* "json text" */
	char letter;           /* -o; 0: none */
	char separator;        /* of a list */
	uint32_t least, most;
	bool hidden; /* accepted, not shown */
	bool secret; /* `firn config show` hides its value */
	const char
		*gone; /* the flag does nothing, and this says why; or NULL. The field is not set */
};

struct cli_group {
	const char *title; /* "": the whole group is hidden */
	const struct cli_option *options;
	size_t count;
	size_t at; /* of its struct, in the verb's struct */
};

/* Sets `field` from a text, or says why not. */
NODISCARD enum status cli_set_value(
	const struct cli_option *o, const char *value, void *field, struct err *e);
