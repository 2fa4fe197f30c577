/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws: requests to Amazon's services: where the keys come from, and a signed call.
 *
 * Layer 6, of discover. A session is for one run and one thread. The keys come from the first of
 * these that has any, as in Amazon's SDKs: the configuration; AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN; a
 * profile of the file of credentials (AWS_SHARED_CREDENTIALS_FILE, ~/.aws/credentials); the
 * container (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, of ECS, or _FULL_URI, with its token); the
 * role of the instance that this runs on (its metadata service, version 2). They are looked for in
 * each run, since most last an hour. Source: docs.aws.amazon.com: sdkref/latest/guide,
 * STS/latest/APIReference, AWSEC2/latest/UserGuide/instancedata-data-retrieval.html.
 */
#pragma once

#include "scrape/discover/discover.h"

#define AWS_KEY_BYTES 256
#define AWS_TOKEN_BYTES ((size_t)16 << 10)
#define AWS_REGION_BYTES 64
#define AWS_URL_BYTES 200
#define AWS_METADATA_TIMEOUT_NS ((int64_t)5 * 1000000000)
#define AWS_METADATA_BYTES_MAX ((size_t)64 << 10)
#define AWS_FILE_BYTES_MAX ((size_t)256 << 10) /* of credentials */

struct aws_config {
	const char *region;                  /* NULL: AWS_REGION, or that of this instance */
	const char *access_key, *secret_key; /* NULL */
	const char *profile;                 /* NULL: AWS_PROFILE, or "default" */
	const char *role_arn, *external_id;  /* a role to take with the keys; NULL */
};

struct aws_session {
	const struct aws_config *config;
	const struct discover_run *run;
	struct fetch *fetch; /* for the services */
	char region[AWS_REGION_BYTES];
	char key_id[AWS_KEY_BYTES], secret[AWS_KEY_BYTES], token[AWS_TOKEN_BYTES];
	struct fetch *metadata; /* opened when it is needed */
};

/* `client`: how to talk to the services. */
NODISCARD enum status aws_session_open(const struct aws_config *c,
	const struct client_config *client, const struct discover_run *run, struct aws_session *out,
	struct err *e);
void aws_session_close(struct aws_session *x); /* wipes the keys; also one that did not open */
/* The URL of a service in the session's region. */
void aws_url(const struct aws_session *x, const char *service, char out[AWS_URL_BYTES]);
/* POSTs a form to `url`, signed for `service` ("ec2"); the answer's tree lies in `a`. Any HTTP
 * status but 200 is an error with the service's own code and message. */
NODISCARD enum status aws_ask(struct aws_session *x, const char *service, const char *url,
	struct str form, struct arena *a, const struct conf_node **out, struct err *e);
