/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "self/objects.h"
#include "self/self.h"

static void finds_its_files(void **state)
{
	(void)state;
	static struct objects o;
	struct profile p;
	struct err e = { 0 };
	char exe[4096] = "";
	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	CHECK_OK(profile_init(&p, SELF_BYTES_MAX), &e);
	CHECK_OK(objects_find(&o, &p, &e), &e);
	const struct object *own = objects_of(&o, (uintptr_t)finds_its_files);
	const struct object *data = objects_of(&o, (uintptr_t)&o);
	CHECK(own && !data); /* data is no code */
	const struct profile_mapping *m = &p.mappings.v[own->mapping];
	CHECK_STR(profile_str(&p, m->filename), exe);
	CHECK(m->start <= (uintptr_t)finds_its_files && m->limit > (uintptr_t)finds_its_files);
	CHECK(m->start % 4096 == 0 && m->limit % 4096 == 0 && m->offset % 4096 == 0);
	CHECK(o.count > 1 && !objects_of(&o, 0));
	bool some = false;
	for (uint32_t i = 0; i < o.count; i++)
		some |= profile_str(&p, p.mappings.v[o.v[i].mapping].build_id).len >= 40;
	CHECK(some);
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(finds_its_files))
