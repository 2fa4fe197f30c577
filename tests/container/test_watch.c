/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "container/decode.h"
#include "container/labels.h"
#include "container/watch.h"

#include <stdatomic.h>
#include <stdio.h>

/* Longer than any test may take; what is waited for comes in milliseconds. */
#define PATIENCE_NS (60 * NS_PER_SEC)
#define EMPTY(version) "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[]}"
#define EVENT(type, uid, version)                                                             \
	"{\"type\":\"" type "\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p-" uid \
	"\",\"namespace\":\"shop\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version        \
	"\"},\"status\":{\"phase\":\"Running\"}}}\n"
#define GONE_EVENT                                                                    \
	"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\"," \
	"\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n"

#define ERROR_EVENT                                                                   \
	"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\"," \
	"\"message\":\"no leader\",\"code\":500}}\n"

#define FORBIDDEN                                                                              \
	"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"pods is forbidden:\\nUser " \
	"\\\"firn\\\" cannot watch\",\"reason\":\"Forbidden\",\"code\":403}"

static char token_file[] = "/tmp/firn-test-token-XXXXXX";

/* ---- cutting ---- */

static void cuts_objects(void **state)
{
	(void)state;
	static const char stream[] = "{\"a\":{\"b\":\"}\\\"{\\\\\"}}\n {}\r\n{\"c\":[{},{}]}";
	static const size_t ends[] = { 20, 24, 39 };
	/* However the bytes come. */
	for (size_t first = 0; first <= sizeof(stream) - 1; first++) {
		struct container_frames f = { 0 };
		size_t at = 0, found = 0;
		for (size_t have = first; found < ARRAY_COUNT(ends);) {
			size_t len;
			struct err e;
			CHECK_OK(container_frame_next(
					 &f, str_make(stream + at, have - at), &len, &e),
				&e);
			at += len;
			if (len)
				assert_int_equal(at, ends[found++]);
			else
				assert_int_equal(have++ < sizeof(stream) - 1, true);
		}
	}
	struct container_frames f = { 0 };
	struct err e;
	size_t len;
	assert_int_equal(container_frame_next(&f, STR("\n<html>"), &len, &e), E_INVALID);
	CHECK(strstr(e.text, "0x3c"));
	char deep[400];
	memset(deep, '{', sizeof(deep));
	f = (struct container_frames){ 0 };
	assert_int_equal(
		container_frame_next(&f, str_make(deep, sizeof(deep)), &len, &e), E_INVALID);
}

/* ---- watching ---- */

struct seen {
	struct api api;
	struct containers_config config;
	struct containers_metrics metrics;
	struct container_watch *watch;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char keys[4096]; /* " pod/u1 pod/u2" */
};

static void take(void *ctx, struct str key, const struct container_labels *l)
{
	struct seen *s = ctx;
	pthread_mutex_lock(&s->lock);
	size_t len = strlen(s->keys);
	snprintf(s->keys + len, sizeof(s->keys) - len, " %.*s", STR_ARG(key));
	CHECK(strstr(labels_text(l->v, l->count), "zone=eu-1"));
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void changed(void *ctx)
{
	struct seen *s = ctx;
	pthread_mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void wait_changed(struct seen *s)
{
	struct timespec at;
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += 20000000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	(void)pthread_cond_timedwait(&s->changed, &s->lock, &at);
}

static void wait_key(struct seen *s, const char *key)
{
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	pthread_mutex_lock(&s->lock);
	while (!strstr(s->keys, key) && clock_monotonic_ns() < until)
		wait_changed(s);
	bool found = strstr(s->keys, key);
	pthread_mutex_unlock(&s->lock);
	CHECK(found);
}

static void wait_state(struct seen *s, enum container_watch_state state)
{
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	pthread_mutex_lock(&s->lock);
	while (container_watch_state(s->watch) != state && clock_monotonic_ns() < until)
		wait_changed(s);
	pthread_mutex_unlock(&s->lock);
	assert_int_equal(container_watch_state(s->watch), state);
}

static void wait_problem(struct seen *s, const char *what)
{
	char problem[ERR_TEXT_MAX];
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	for (bool found = false; !found;) {
		container_watch_problem(s->watch, problem);
		found = what[0] ? strstr(problem, what) != NULL : !problem[0];
		CHECK(found || clock_monotonic_ns() < until);
		usleep(found ? 0 : 1000);
	}
}

/* Said again until it is heard: the first time may be to a connection that is just given up. */
static void say_until(struct seen *s, const char *event, const char *key)
{
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	for (bool found = false; !found && clock_monotonic_ns() < until;) {
		if (!api_look(&s->api).events[0])
			api_say(&s->api, event, API_GOES_ON);
		pthread_mutex_lock(&s->lock);
		wait_changed(s);
		found = strstr(s->keys, key);
		pthread_mutex_unlock(&s->lock);
	}
	wait_key(s, key);
}

static int64_t backoff_ns = NS_PER_MS;

static void begin_with(
	struct seen *s, const char *list, int watch_status, const char *refusal, const char *token)
{
	struct err e;
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	api_start(&s->api, list);
	s->api.refusal = refusal;
	s->api.token = token;
	api_set(&s->api, list, watch_status);
	s->config = (struct containers_config){
		.node = "node-1", .kubernetes_address = s->api.address, .token_file = token_file
	};
	const struct container_watch_config c = { .containers = &s->config,
		.sink = { take, s },
		.changed = changed,
		.metrics = &s->metrics,
		.backoff_min_ns = backoff_ns,
		.refused_min_ns = NS_PER_MS };
	CHECK_OK(container_watch_start(&c, &s->watch, &e), &e);
}

static void begin(struct seen *s, const char *list, int watch_status)
{
	begin_with(s, list, watch_status, "{}", NULL);
}

static void end(struct seen *s)
{
	api_say(&s->api, "", API_BREAKS);
	container_watch_stop(s->watch);
	api_stop(&s->api);
}

static bool path_has(struct seen *s, const char *what)
{
	struct api now = api_look(&s->api);
	return strstr(now.watch_path, what) != NULL;
}

static void lists_and_watches(void **state)
{
	(void)state;
	static struct seen s;
	begin(&s, PODS, 200);
	wait_key(&s, " pod/" UID);
	api_wait(&s.api, 1, 1);
	struct api now = api_look(&s.api);
	CHECK_STR(str_of(now.list_path),
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&resourceVersion=0");
	CHECK(path_has(&s, "watch=true&allowWatchBookmarks=true"));
	CHECK(path_has(&s, "fieldSelector=spec.nodeName%3Dnode-1&resourceVersion=77&"));
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	api_say(&s.api, EVENT("ADDED", "u8", "80") EVENT("MODIFIED", "u9", "81"), API_GOES_ON);
	wait_key(&s, " pod/u9");
	CHECK(strstr(s.keys, " pod/u8"));
	/* One that is too large for one read. */
	char large[20000] =
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":{\"x\":\"";
	memset(large + strlen(large), 'x', 15000);
	strcat(large, "\"},\"uid\":\"u10\",\"resourceVersion\":\"82\"}}}\n");
	api_say(&s.api, large, API_GOES_ON);
	wait_key(&s, " pod/u10");
	assert_int_equal(api_look(&s.api).lists, 1);
	CHECK(metric_get(&s.metrics.events) == 3 && metric_get(&s.metrics.watching) == 1);
	end(&s);
}

/* Where it was, without a list, however the watch ended. */
static void goes_on_where_it_was(void **state)
{
	(void)state;
	static struct seen s;
	begin(&s, EMPTY("5"), 200);
	api_wait(&s.api, 1, 1);
	api_say(&s.api, EVENT("ADDED", "u1", "6"), API_ENDS);
	wait_key(&s, " pod/u1");
	api_wait(&s.api, 1, 2);
	CHECK(path_has(&s, "&resourceVersion=6&"));
	api_say(&s.api, EVENT("BOOKMARK", "", "90") EVENT("DELETED", "u1", "91"), API_BREAKS);
	api_wait(&s.api, 1, 3);
	CHECK(path_has(&s, "&resourceVersion=91&"));
	/* In the middle of an event. */
	api_say(&s.api, "{\"type\":\"ADDED\",", API_BREAKS);
	api_wait(&s.api, 1, 4);
	api_say(&s.api, EVENT("ADDED", "u2", "92"), API_GOES_ON);
	wait_key(&s, " pod/u2");
	assert_int_equal(api_look(&s.api).lists, 1);
	/* A watch that is not begun for a while. */
	api_set(&s.api, EMPTY("5"), 500);
	api_say(&s.api, "", API_BREAKS);
	wait_state(&s, CONTAINER_WATCH_AWAY);
	wait_problem(&s, "watch: HTTP status 500");
	api_set(&s.api, EMPTY("5"), 200);
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	wait_problem(&s, "");
	api_say(&s.api, EVENT("ADDED", "u3", "93"), API_GOES_ON);
	wait_key(&s, " pod/u3");
	CHECK(path_has(&s, "&resourceVersion=92&"));
	end(&s);
}

static void lists_again_when_gone(void **state)
{
	(void)state;
	static struct seen s;
	begin(&s, EMPTY("5"), 200);
	api_wait(&s.api, 1, 1);
	api_set(&s.api, EMPTY("200"), 200);
	api_say(&s.api, GONE_EVENT, API_GOES_ON);
	api_wait(&s.api, 2, 2);
	struct api now = api_look(&s.api);
	CHECK_STR(str_of(now.list_path), "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1");
	CHECK(path_has(&s, "&resourceVersion=200&"));
	/* As the status of the answer, again and again. */
	api_set(&s.api, PODS, 410);
	api_say(&s.api, "", API_ENDS);
	api_wait(&s.api, 4, 4);
	wait_key(&s, " pod/" UID);
	api_set(&s.api, PODS, 200);
	say_until(&s, EVENT("ADDED", "u4", "302"), " pod/u4");
	/* What is no event at all. */
	int lists = api_look(&s.api).lists;
	api_say(&s.api, "<html>", API_GOES_ON);
	api_wait(&s.api, lists + 1, 0);
	say_until(&s, EVENT("ADDED", "u5", "303"), " pod/u5");
	end(&s);
}

/* Where the watch says nothing but errors, the version is given up in the end. */
static void gives_up_a_version(void **state)
{
	(void)state;
	static struct seen s;
	begin(&s, EMPTY("5"), 200);
	for (int i = 1; i <= 3; i++) {
		api_wait(&s.api, 1, i);
		CHECK(path_has(&s, "&resourceVersion=5&"));
		api_say(&s.api, ERROR_EVENT, API_ENDS);
	}
	api_wait(&s.api, 2, 4);
	struct api now = api_look(&s.api);
	CHECK_STR(str_of(now.list_path), "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1");
	say_until(&s, EVENT("ADDED", "u1", "6"), " pod/u1");
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	end(&s);
}

static void tells_when_it_may_not(void **state)
{
	(void)state;
	static struct seen s;
	begin(&s, PODS, 403);
	wait_state(&s, CONTAINER_WATCH_REFUSED);
	wait_problem(&s, "watch: HTTP status 403");
	CHECK(metric_get(&s.metrics.watching) == 0);
	end(&s);
	/* A server whose lists have no version. */
	begin(&s, "{\"items\":[]}", 200);
	wait_state(&s, CONTAINER_WATCH_REFUSED);
	end(&s);
	/* One that lets us do nothing, and then everything. */
	begin(&s, NULL, 200);
	wait_state(&s, CONTAINER_WATCH_AWAY);
	wait_problem(&s, "HTTP status 401 for /api/v1/pods");
	api_set(&s.api, PODS, 200);
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	end(&s);
	/* A token that was named and cannot be read is not left out. */
	static struct containers_config config;
	config = (struct containers_config){ .node = "n",
		.kubernetes_address = "http://127.0.0.1:1",
		.token_file = "/nonexistent/token" };
	const struct container_watch_config c = { .containers = &config,
		.sink = { take, &s },
		.changed = changed,
		.metrics = &s.metrics,
		.backoff_min_ns = NS_PER_MS };
	struct err e;
	CHECK_OK(container_watch_start(&c, &s.watch, &e), &e);
	wait_state(&s, CONTAINER_WATCH_AWAY);
	wait_problem(&s, "token: ");
	wait_problem(&s, "/nonexistent/token");
	container_watch_stop(s.watch);
}

/* In the server's words; and again and again, ever less often. */
static void says_why_it_may_not(void **state)
{
	(void)state;
	static struct seen s;
	begin_with(&s, PODS, 403, FORBIDDEN, NULL);
	wait_state(&s, CONTAINER_WATCH_REFUSED);
	wait_problem(&s, "watch: HTTP status 403: pods is forbidden: User \"firn\" cannot watch");
	api_wait(&s.api, 1, 4);
	CHECK(api_look(&s.api).lists == 1);
	api_set(&s.api, PODS, 200);
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	wait_problem(&s, "");
	end(&s);
	begin_with(&s, NULL, 200, "no JSON", NULL);
	wait_problem(&s, "HTTP status 401 for /api/v1/pods");
	end(&s);
}

static void write_token(const char *token)
{
	FILE *f = fopen(token_file, "we");
	CHECK(f && fputs(token, f) >= 0 && fclose(f) == 0);
}

/* Whatever it would rest otherwise. */
static void tries_a_new_token_at_once(void **state)
{
	(void)state;
	static struct seen s;
	backoff_ns = 3600 * NS_PER_SEC;
	begin_with(&s, PODS, 200, "{\"message\":\"Unauthorized\"}", "secret-2");
	wait_problem(&s, "HTTP status 401 for /api/v1/pods: Unauthorized");
	write_token("secret-2");
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	wait_key(&s, " pod/" UID);
	/* In the middle of it. */
	api_wait(&s.api, 1, 1);
	pthread_mutex_lock(&s.api.lock);
	s.api.token = "secret-3";
	pthread_mutex_unlock(&s.api.lock);
	api_say(&s.api, EVENT("ADDED", "u1", "80"), API_ENDS);
	wait_problem(&s, "HTTP status 401");
	write_token("secret-3");
	wait_state(&s, CONTAINER_WATCH_GOES_ON);
	wait_problem(&s, "");
	end(&s);
	backoff_ns = NS_PER_MS;
}

static void says_when_the_node_is_unknown(void **state)
{
	(void)state;
	static struct seen s;
	begin(&s, EMPTY("5"), 200);
	api_wait(&s.api, 1, 1);
	CHECK(!container_watch_node_is_unknown(s.watch));
	api_set_node(&s.api, 404);
	api_say(&s.api, "", API_ENDS);
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	while (!container_watch_node_is_unknown(s.watch) && clock_monotonic_ns() < until)
		usleep(1000);
	CHECK(container_watch_node_is_unknown(s.watch));
	end(&s);
}

static int make_token(void **state)
{
	(void)state;
	int fd = mkstemp(token_file);
	bool good = fd >= 0 && write(fd, "secret-1", 8) == 8;
	return good && close(fd) == 0 ? 0 : -1;
}

static int remove_token(void **state)
{
	(void)state;
	int rc = unlink(token_file);
	strcpy(strrchr(token_file, '-'), "-XXXXXX");
	return rc;
}

TEST_MAIN(cmocka_unit_test(cuts_objects),
	cmocka_unit_test_setup_teardown(lists_and_watches, make_token, remove_token),
	cmocka_unit_test_setup_teardown(goes_on_where_it_was, make_token, remove_token),
	cmocka_unit_test_setup_teardown(lists_again_when_gone, make_token, remove_token),
	cmocka_unit_test_setup_teardown(gives_up_a_version, make_token, remove_token),
	cmocka_unit_test_setup_teardown(tells_when_it_may_not, make_token, remove_token),
	cmocka_unit_test_setup_teardown(says_why_it_may_not, make_token, remove_token),
	cmocka_unit_test_setup_teardown(tries_a_new_token_at_once, make_token, remove_token),
	cmocka_unit_test_setup_teardown(says_when_the_node_is_unknown, make_token, remove_token))
