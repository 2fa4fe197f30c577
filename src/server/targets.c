/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.scrape.v1alpha1.ScrapeService: nothing is scraped, so there are no targets, as in a Parca
 * without scrape_configs. What is wrong with the request is said all the same.
 */
#include "pb/pb.h"
#include "server/internal.h"

void server_targets(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct reader reader = reader_over(r->body.p, r->body.len);
	struct pb_field f;
	struct err e;
	(void)ctx;
	while (pb_next(&reader, &f))
		if (f.number == 1 && f.wire != PB_VARINT) {
			net_fail(out, err_set(&e, E_INVALID, "state is not a number"), &e);
			return;
		}
	if (reader.failed)
		net_fail(out,
			err_set(&e, E_INVALID, "TargetsRequest: malformed at byte %zu",
				reader_offset(&reader)),
			&e);
}
