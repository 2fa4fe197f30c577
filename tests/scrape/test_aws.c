/* SPDX-License-Identifier: Apache-2.0 */
#include "amazon.h"

static void write_file(char path[40], const char *text)
{
	snprintf(path, 40, "/tmp/firn-ec2-XXXXXX");
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !close(fd));
}

#define KEYS "region: eu-west-1\naccess_key: AKIAEXAMPLE\nsecret_key: " SECRET "\n"

static void finds_keys(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	char url[100], path[40];
	buf_init(&out, 1 << 20);
	struct net_server *server = start(url);
	/* the role of this instance, and its region */
	CHECK_OK(find(url, "", &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data), FIRST SECOND);
	/* the container's, and not those of the instance; the region is the instance's */
	char container[120];
	snprintf(container, sizeof(container), "%s/container", url);
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", container, 1);
	CHECK(find(url, "", &out, &e) == E_UNAVAILABLE);
	CHECK_STR(str_of(e.text), "EC2: keys of this container: HTTP status 401");
	write_file(path, "pod-token\n");
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path, 1);
	CHECK_OK(find(url, "", &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data), FIRST SECOND);
	unlink(path);
	unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	/* a profile of a file */
	write_file(path,
		"[default]\naws_access_key_id = x\n[ of-me ]\n# no\naws_access_key_id=AKIA\n"
		"aws_secret_access_key = " SECRET "\n");
	setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
	CHECK_OK(find(url, "profile: of-me", &out, &e), &e);
	CHECK(find(url, "profile: absent", &out, &e) == E_INVALID);
	CHECK(strstr(e.text, "profile \"absent\"") && strstr(e.text, "without its secret"));
	/* the environment, and a role taken with it */
	setenv("AWS_ACCESS_KEY_ID", "AKIA", 1);
	setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
	CHECK_OK(find(url, "role_arn: arn:aws:iam::1:role/r", &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data), FIRST SECOND);
	CHECK(find(url, "role_arn: arn:other", &out, &e) == E_DENIED);
	CHECK_STR(str_of(e.text), "EC2: role arn:other: HTTP status 403: AccessDenied");
	unsetenv("AWS_ACCESS_KEY_ID");
	unlink(path);
	/* a pod's token */
	write_file(path, "web.id\n");
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1);
	setenv("AWS_ROLE_ARN", "arn:pod", 1);
	CHECK_OK(find(url, "", &out, &e), &e);
	CHECK(atomic_load(&unsigned_asked) == 1);
	unlink(path);
	net_server_stop(server);
	CHECK(find(url, KEYS, &out, &e) == E_UNAVAILABLE);
}

TEST_MAIN(cmocka_unit_test(finds_keys))
