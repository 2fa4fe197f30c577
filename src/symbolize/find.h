/* SPDX-License-Identifier: Apache-2.0 */
/* find: the files of a build id. */
#pragma once

#include "objfile/objfile.h"
#include "symbolize/symbolize.h"

/* Hex digits of a build id. */
#define SYMBOLIZE_ID_MAX 128
#define SYMBOLIZE_PATH_MAX 4096

/* ---- find.c: files for a build id ---- */

/* Whether it is made of hex digits only (content ids begin with 'x'), and long enough to name a
 * file. */
bool symbolize_id_is_valid(struct str build_id);

struct symbolize_request {
	const char *build_id;
	const char *path;                  /* of the mapping, as its process saw it; may be "" */
	int fd;                            /* offered, or -1; stays the caller's */
	const char *debug_dirs;            /* colon separated */
	bool local_files;                  /* may `path` be opened on this host? */
	struct debuginfo_uploads *uploads; /* NULL: none */
};

/* The files of a build id; each was checked to carry it. The descriptors are the caller's. */
struct symbolize_files {
	struct debuginfo_files files;
	bool has_dwarf; /* one of them has .debug_info */
	bool uploaded;  /* one of them was */
	/* Whether files.fd, and files.debug_fd, is a program's own file on this host, or lies next
	 * to one. */
	bool fd_of_host, debug_of_host;
	/* Build id of the file that the debug file shares with others, if that file is not here. */
	char alt_wanted[SYMBOLIZE_ID_MAX + 1];
};
void symbolize_files_deinit(struct symbolize_files *f);
/* E_NOTFOUND when there is nothing at all; E_INVALID when the offered file is not what it is said
 * to be. */
NODISCARD enum status symbolize_files_find(
	const struct symbolize_request *r, struct symbolize_files *out, struct err *e);

/* The file at `path` if it carries the id, else -1. */
int symbolize_file_open(const char *path, const char *build_id);
