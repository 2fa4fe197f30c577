/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdlib.h>
#include <unistd.h>

struct status_info {
	const char *name;
	const char *text;
	int http;
	int grpc;
};

static const struct status_info infos[STATUS_COUNT] = { [OK] = { "OK", "success", 200, 0 },
#define STATUS_INFO(n, h, g, t) [E_##n] = { #n, t, h, g },
	STATUS_LIST(STATUS_INFO)
#undef STATUS_INFO
};

static const struct status_info *info_of(enum status s)
{
	assert(s >= OK && s < STATUS_COUNT);
	return &infos[s];
}

const char *status_name(enum status s)
{
	return info_of(s)->name;
}

const char *status_text(enum status s)
{
	return info_of(s)->text;
}

int status_http(enum status s)
{
	return info_of(s)->http;
}

int status_grpc(enum status s)
{
	return info_of(s)->grpc;
}

void free_cleanup(void *ptr_to_ptr)
{
	void **p = ptr_to_ptr;
	free(*p);
	*p = NULL;
}

void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
