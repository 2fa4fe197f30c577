/* SPDX-License-Identifier: Apache-2.0 */
/* The uploader against a server on a Unix socket that comes, goes, refuses, hangs and forgets. */
#include "hanging_mount.h"
#include "temp_dir.h"
#include "test.h"

#include "agent/broker/broker.h"
#include "agent/uploader/uploader.h"
#include "gen/elf.h"
#include "net/net.h"
#include "os/os.h"
#include "pb/pb.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Generous: the machine may be loaded. */
#define WAIT_NS (60 * NS_PER_SEC)
#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define GOES_ON                                                                                \
	"A previous upload is still in-progress and not stale yet (only stale uploads can be " \
	"retried)."

static struct temp_dir dir;
static char address[128];
static struct net_server *server;
static _Atomic int asked, forced, begun, finished, hanging;
static _Atomic uint64_t bytes_came;
static _Atomic int64_t first_bytes_ns;
static _Atomic int answers;     /* enum status, to the first question */
static _Atomic int in_progress; /* so many times */
static atomic_bool has_all;     /* the server wants nothing */
static atomic_bool hangs;       /* in the middle of the bytes */
static _Atomic int begin_fails; /* enum status */
static _Atomic int begin_fails_times;

#define WAIT_FOR(condition)                                         \
	do {                                                        \
		int64_t end_ = clock_monotonic_ns() + WAIT_NS;      \
		while (!(condition) && clock_monotonic_ns() < end_) \
			usleep(1000);                               \
		CHECK(condition);                                   \
	} while (0)

static uint64_t number_of(struct str message, uint32_t field)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	uint64_t out = 0;
	while (pb_next(&r, &f))
		if (f.number == field && f.wire == PB_VARINT)
			out = f.u64;
	return out;
}

static void refuse(struct net_response *out, enum status s)
{
	struct err e = { 0 };
	net_fail(out, err_set(&e, s, "not now"), &e);
}

static void serve_ask(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	asked++;
	bool force = number_of(r->body, 3);
	forced += force;
	if (answers != OK) {
		refuse(out, (enum status)answers);
		return;
	}
	bool goes_on = in_progress > 0 && !force;
	in_progress -= goes_on;
	pb_put_bool(&out->body, 1, !goes_on && !has_all);
	pb_put_str(&out->body, 2, goes_on ? STR(GOES_ON) : STR("because"));
}

static void serve_begin(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	if (begin_fails != OK && begin_fails_times > 0) {
		begin_fails_times--;
		refuse(out, (enum status)begin_fails);
		return;
	}
	begun++;
	size_t at = pb_begin(&out->body, 1);
	pb_put_str(&out->body, 2, STR("upload-1"));
	pb_put_u64(&out->body, 3, 1);
	pb_end(&out->body, at);
}

static void serve_bytes(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct str message;
	struct err e = { 0 };
	bool end = false;
	enum status s;
	(void)ctx;
	(void)r;
	while ((s = net_stream_receive(stream, &message, &end, &e)) == OK && !end) {
		if (bytes_came == 0)
			first_bytes_ns = clock_monotonic_ns();
		bytes_came += message.len;
		hanging++;
		while (hangs && s == OK)
			s = net_stream_wait(stream, clock_monotonic_ns() + NS_PER_MS, &e);
		hanging--;
		if (s != OK)
			break;
	}
	if (s != OK)
		net_fail(out, s, &e);
}

static void serve_finish(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	(void)out;
	finished++;
}

static const struct pb_member members[] = { PB_FIELD("a", 1, STRING) };
static const struct pb_desc desc = PB_DESC("t.A", members);
static const struct pb_method upload_method = { "Upload", &desc, &desc, true, false };

static void server_start(bool knows_debug_files)
{
	const struct net_route routes[] = {
		{ .method = "POST",
			.path = SERVICE "ShouldInitiateUpload",
			.fn = serve_ask,
			.is_rpc = true },
		{ .method = "POST",
			.path = SERVICE "InitiateUpload",
			.fn = serve_begin,
			.is_rpc = true },
		{ .method = "POST",
			.path = SERVICE "Upload",
			.stream_fn = serve_bytes,
			.is_rpc = true,
			.rpc = &upload_method },
		{ .method = "POST",
			.path = SERVICE "MarkUploadFinished",
			.fn = serve_finish,
			.is_rpc = true },
	};
	struct net_server_config c;
	struct err e = { 0 };
	net_server_config_default(&c);
	c.address = address;
	c.workers = 2;
	c.drain_timeout_ns = 100 * NS_PER_MS;
	CHECK_OK(net_server_start(
			 &c, routes, knows_debug_files ? ARRAY_COUNT(routes) : 0, &server, &e),
		&e);
}

static void server_stop(void)
{
	if (server)
		net_server_stop(server);
	server = NULL;
}

static int setup(void **state)
{
	(void)state;
	asked = forced = begun = finished = in_progress = answers = 0;
	bytes_came = 0;
	has_all = hangs = false;
	begin_fails = OK;
	begin_fails_times = INT_MAX;
	temp_dir_init(&dir);
	snprintf(address, sizeof(address), "unix:%s/socket", dir.path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hangs = false;
	server_stop();
	temp_dir_deinit(&dir);
	return 0;
}

static bool no_key(void *ctx, uint32_t file_id, struct file_key *out)
{
	(void)ctx;
	(void)file_id;
	(void)out;
	return false;
}

static struct uploader *make(void (*change)(struct uploader_config *c))
{
	struct uploader_config c;
	struct uploader *u = NULL;
	struct err e = { 0 };
	uploader_config_default(&c);
	c.remote.address = address;
	c.find_key = no_key;
	c.backoff_min_ns = NS_PER_MS;
	c.backoff_max_ns = 20 * NS_PER_MS;
	c.call_ns = WAIT_NS;
	c.times.retry_ns = c.times.in_progress_ns = 5 * NS_PER_MS;
	c.times.refused_ns = 5 * NS_PER_MS;
	if (change)
		change(&c);
	CHECK_OK(uploader_new(&c, &u, &e), &e);
	return u;
}

/* A program with the build id "ab…NN", and `size` bytes of symbols; the caller's. */
static void make_bytes(uint8_t n, size_t size, struct buf *out)
{
	struct gen_elf g;
	struct buf notes, symbols;
	uint8_t bytes[20] = { 0xab, n };
	gen_elf_init(&g);
	buf_init(&notes, 4096);
	buf_init(&symbols, size);
	buf_zero(&symbols, size);
	gen_note(&notes, "GNU", 3, bytes, sizeof(bytes));
	gen_section(&g, ".note.gnu.build-id", SHT_NOTE, 0, 0, notes.data, notes.len);
	if (size)
		gen_section(&g, ".symtab", SHT_SYMTAB, 0, 0, symbols.data, symbols.len);
	gen_elf_finish(&g);
	buf_init(out, g.file.len);
	buf_put(out, g.file.data, g.file.len);
	gen_elf_deinit(&g);
	buf_deinit(&notes);
	buf_deinit(&symbols);
}

static int make_file(uint8_t n, size_t size, char id[41])
{
	CLEANUP(buf_deinit) struct buf bytes;
	make_bytes(n, size, &bytes);
	int fd = memfd_create("app", MFD_CLOEXEC);
	CHECK(fd >= 0 && os_write_full(fd, bytes.data, bytes.len, "app", NULL) == OK);
	snprintf(id, 41, "ab%02x%036d", n, 0);
	return fd;
}

static int meet(struct uploader *u, uint8_t n, size_t size)
{
	char id[41];
	int fd = make_file(n, size, id);
	uploader_seen(u, id, "/opt/app", fd);
	uploader_met(u, 7, id, "/opt/app", 0);
	return fd;
}

static uint64_t get(struct uploader *u, size_t offset)
{
	return metric_get((const metric_value *)((const char *)uploader_metrics(u) + offset));
}

#define METRIC(u, field) get(u, offsetof(struct uploader_metrics, field))

static uint64_t waiting(struct uploader *u)
{
	char why[ERR_TEXT_MAX];
	return uploader_waiting(u, why, sizeof(why));
}

/* The uploader's threads of this process. */
static int threads_there(void)
{
	int count = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *f; d && (f = readdir(d));) {
		char path[300], name[32] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", f->d_name);
		FILE *comm = f->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (comm && fgets(name, sizeof(name), comm))
			count += strcmp(name, "firn-names\n") == 0;
		if (comm)
			fclose(comm);
	}
	closedir(d);
	return count;
}

/* Also where a thread got no time to end while it was waited for: it looks at the uploader until
 * it is gone. */
static void end_uploader(struct uploader *u)
{
	uploader_stop(u);
	WAIT_FOR(METRIC(u, threads) == 0 && threads_there() == 0);
	uploader_free(u);
}

static void sends_what_the_server_lacks(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(NULL);
	CHECK(METRIC(u, threads) == 0); /* nothing to do */
	for (uint8_t n = 0; n < 5; n++)
		close(meet(u, n, 200000));
	close(meet(u, 9, 0)); /* nothing in it */
	WAIT_FOR(waiting(u) == 0);
	CHECK(asked == 6 && begun == 5 && finished == 5 && forced == 0);
	CHECK(METRIC(u, sent) == 5 && METRIC(u, nothing) == 1 && METRIC(u, asked) == 6);
	CHECK(METRIC(u, bytes) >= 1000000 && bytes_came >= 1000000);
	has_all = true;
	close(meet(u, 10, 100));
	WAIT_FOR(METRIC(u, there) == 1 && waiting(u) == 0);
	CHECK(begun == 5);
	begin_fails = E_EXISTS; /* it has this one, and calls it invalid */
	has_all = false;
	close(meet(u, 11, 100));
	WAIT_FOR(METRIC(u, there) == 2 && waiting(u) == 0);
	close(meet(u, 1, 100)); /* it is there: not asked again */
	CHECK(asked == 8);
	uploader_met(u, 7, "abcdef", "/opt/gone", 0);
	WAIT_FOR(METRIC(u, no_file) == 1);
	struct buf text;
	buf_init(&text, 65536);
	uploader_write_metrics(u, &text);
	CHECK(memmem(text.data, text.len, "debuginfo_failed_total{reason=\"file\"} 1", 39));
	CHECK(memmem(text.data, text.len, "firn_agent_debuginfo_files 9", 28));
	buf_deinit(&text);
	end_uploader(u);
}

#define SLOW_BYTES_PER_SECOND 500000

static void slow(struct uploader_config *c)
{
	c->bytes_per_second = SLOW_BYTES_PER_SECOND;
}

/* Before a file goes, and not in its middle: servers end calls that last. */
static void waits_before_it_sends(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(slow);
	int64_t begin = clock_monotonic_ns();
	close(meet(u, 1, SLOW_BYTES_PER_SECOND / 2));
	WAIT_FOR(finished == 1);
	/* 64 KiB of four times that were the first to come, and all of it was paid for by then. */
	CHECK(first_bytes_ns - begin >= NS_PER_SEC / 2);
	end_uploader(u);
}

static void quick_to_end(struct uploader_config *c)
{
	c->idle_ns = 10 * NS_PER_MS;
}

static void ends_threads_that_have_nothing_to_do(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(quick_to_end);
	for (uint8_t round = 0; round < 3; round++) {
		close(meet(u, round, 100));
		WAIT_FOR(METRIC(u, sent) == round + 1u && METRIC(u, threads) == 0);
	}
	end_uploader(u);
}

/* It keeps the descriptor, and so the file, although it is gone. */
static void waits_for_a_server_that_is_away(void **state)
{
	(void)state;
	char why[ERR_TEXT_MAX] = "";
	struct uploader *u = make(quick_to_end);
	close(meet(u, 1, 1000));
	WAIT_FOR(METRIC(u, away) >= 3);
	CHECK(uploader_waiting(u, why, sizeof(why)) == 1 && strstr(why, "socket"));
	CHECK(METRIC(u, threads) == 1);
	answers = E_DENIED;
	server_start(true);
	WAIT_FOR(METRIC(u, denied) >= 3);
	answers = OK;
	WAIT_FOR(finished == 1);
	WAIT_FOR(uploader_waiting(u, why, sizeof(why)) == 0 && !why[0]);
	end_uploader(u);
}

/* It is the server who says so, and not we who end. */
static void is_not_driven_by_canceled_calls(void **state)
{
	(void)state;
	char why[ERR_TEXT_MAX];
	server_start(true);
	answers = E_CANCELED;
	struct uploader *u = make(NULL);
	close(meet(u, 1, 1000));
	WAIT_FOR(METRIC(u, away) >= 3);
	int asked_so_far = asked;
	CHECK(asked_so_far <= (int)METRIC(u, away) + 1); /* each is counted, and waits longer */
	CHECK(uploader_waiting(u, why, sizeof(why)) == 1 && strstr(why, "not now"));
	answers = OK;
	WAIT_FOR(finished == 1);
	end_uploader(u);
}

/* Another agent was quicker; or the server does not want it at all. */
static void is_not_let_begin(void **state)
{
	(void)state;
	server_start(true);
	begin_fails = E_PRECONDITION;
	begin_fails_times = 2;
	struct uploader *u = make(NULL);
	close(meet(u, 1, 1000));
	WAIT_FOR(finished == 1);
	CHECK(METRIC(u, in_progress) == 1 && METRIC(u, refused) == 1);
	end_uploader(u);
}

static void leaves_a_server_alone_that_takes_none(void **state)
{
	(void)state;
	server_start(false);
	struct uploader *u = make(NULL);
	close(meet(u, 1, 1000));
	WAIT_FOR(METRIC(u, unsupported) == 1);
	for (uint8_t n = 2; n < 20; n++)
		close(meet(u, n, 1000));
	uploader_reconnected(u);
	uploader_reconnected(u);
	usleep(20000); /* a moment in which it would go wrong */
	CHECK(METRIC(u, asked) == 1 && METRIC(u, unsupported) == 1 && waiting(u) == 19);
	end_uploader(u);
}

static void asks_later_where_somebody_else_sends_it(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(NULL);
	in_progress = 2;
	close(meet(u, 1, 1000));
	WAIT_FOR(finished == 1);
	CHECK(asked == 3 && forced == 0 && METRIC(u, in_progress) == 2);
	end_uploader(u);
}

/* The server ends in the middle, and says afterwards that the upload goes on: it is ours. */
static void begins_anew_what_broke_off(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(NULL);
	hangs = true;
	close(meet(u, 1, 5000000));
	WAIT_FOR(hanging > 0);
	server_stop();
	hangs = false;
	in_progress = 1;
	server_start(true);
	WAIT_FOR(finished == 1 && waiting(u) == 0);
	CHECK(begun == 2 && forced == 1 && METRIC(u, broken) >= 1 && METRIC(u, sent) == 1);
	end_uploader(u);
}

static void impatient(struct uploader_config *c)
{
	c->patience_ns = NS_PER_SEC;
}

static void gives_up_where_the_server_hangs(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(impatient);
	hangs = true;
	close(meet(u, 1, 5000000));
	WAIT_FOR(METRIC(u, broken) >= 1);
	hangs = false;
	WAIT_FOR(finished == 1);
	end_uploader(u);
}

static void with_token_file(struct uploader_config *c)
{
	static char path[160];
	snprintf(path, sizeof(path), "%s/token", dir.path);
	c->remote.token_file = path;
}

/* It is no fault of the file's, and nothing is asked without it. */
static void waits_for_its_token(void **state)
{
	(void)state;
	char why[ERR_TEXT_MAX] = "", path[160];
	server_start(true);
	struct uploader *u = make(with_token_file);
	close(meet(u, 1, 1000));
	WAIT_FOR(METRIC(u, away) >= 2);
	CHECK(asked == 0 && uploader_waiting(u, why, sizeof(why)) == 1);
	CHECK(strstr(why, "token file") != NULL);
	snprintf(path, sizeof(path), "%s/token", dir.path);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "secret\n", 7) == 7);
	close(fd);
	WAIT_FOR(finished == 1);
	end_uploader(u);
}

/* Until its time of change is another: the clock of files has ticks of some milliseconds. */
static void write_another(int fd)
{
	struct stat before, now;
	CHECK(fstat(fd, &before) == 0);
	do {
		CHECK(pwrite(fd, "another", 7, 2000000) == 7 && fstat(fd, &now) == 0);
		usleep(1000);
	} while (now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
		 now.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
}

/* Never a mix under one build id. */
static void does_not_finish_what_changed(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(NULL);
	hangs = true;
	int fd = meet(u, 1, 3000000);
	WAIT_FOR(hanging > 0);
	write_another(fd);
	hangs = false;
	WAIT_FOR(METRIC(u, changed) == 1);
	WAIT_FOR(finished == 1); /* as it is by now */
	CHECK(begun == 2);
	WAIT_FOR(METRIC(u, sent) == 1);
	hangs = true;
	close(fd);
	fd = meet(u, 2, 3000000);
	WAIT_FOR(hanging > 0);
	CHECK(ftruncate(fd, 1000000) == 0);
	hangs = false;
	WAIT_FOR(METRIC(u, changed) == 2);
	CHECK(finished == 1 && METRIC(u, sent) == 1);
	close(fd);
	end_uploader(u);
}

/* After a new connection one file is asked for, and all if that is missing. */
static void asks_again_a_server_that_forgot(void **state)
{
	(void)state;
	server_start(true);
	struct uploader *u = make(NULL);
	int fds[4];
	uploader_reconnected(u); /* the first one */
	for (uint8_t n = 0; n < 4; n++)
		fds[n] = meet(u, n, 1000);
	WAIT_FOR(finished == 4 && waiting(u) == 0);
	has_all = true;
	uploader_reconnected(u);
	WAIT_FOR(METRIC(u, there) == 1 && waiting(u) == 0);
	CHECK(asked == 5);
	has_all = false;
	uploader_reconnected(u);
	WAIT_FOR(asked == 9); /* the files themselves are gone by now */
	for (uint8_t n = 0; n < 4; n++)
		close(fds[n]);
	end_uploader(u);
}

static void ends_in_the_middle(void **state)
{
	(void)state;
	server_start(true);
	hangs = true;
	struct uploader *u = make(NULL);
	close(meet(u, 1, 5000000));
	close(meet(u, 2, 5000000));
	WAIT_FOR(hanging > 0);
	int64_t begin = clock_monotonic_ns();
	uploader_stop(u);
	CHECK(clock_monotonic_ns() - begin < UPLOADER_PATIENCE_NS);
	close(meet(u, 3, 100)); /* nothing happens any more */
	uploader_reconnected(u);
	WAIT_FOR(METRIC(u, threads) == 0); /* one that gets no time is left to itself */
	CHECK(finished == 0);
	end_uploader(u);
	uploader_free(NULL);
}

static struct uploader *left; /* not lost, for whoever looks for leaks */

/* As one that waits for a name server that does not answer: its token is a pipe that nobody writes
 * to. */
static void does_not_wait_for_a_thread_that_hangs(void **state)
{
	(void)state;
	char path[160];
	server_start(true);
	snprintf(path, sizeof(path), "%s/token", dir.path);
	CHECK(mkfifo(path, 0600) == 0);
	left = make(with_token_file);
	uploader_met(left, 7, "abcdef", "/opt/gone", getpid());
	/* Opened for writing by somebody else there is a reader: it hangs in read(). */
	int fd = -1;
	WAIT_FOR(fd >= 0 || (fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
	uploader_stop(left);
	uploader_free(left); /* it is there still */
	CHECK(METRIC(left, threads) == 1);
	CHECK(write(fd, "secret\n", 7) == 7 && close(fd) == 0);
	WAIT_FOR(METRIC(left, threads) == 0);
	CHECK(METRIC(left, away) == 0); /* the end is no failure */
	end_uploader(left);
	left = NULL;
}

static const char *debug_folders[2];

static void with_debug_folder(struct uploader_config *c)
{
	c->source.debug_folders = debug_folders;
}

/* In the place of a program that was stripped of everything. */
static void sends_the_separate_debug_file(void **state)
{
	(void)state;
	struct err e = { 0 };
	char folder[128], path[256], command[160];
	snprintf(folder, sizeof(folder), "%s/debug/.build-id/ab", dir.path);
	CHECK_OK(os_make_dirs(folder, &e), &e);
	snprintf(path, sizeof(path), "%s/01%036d.debug", folder, 0);
	CLEANUP(buf_deinit) struct buf bytes;
	make_bytes(1, 300000, &bytes);
	CHECK_OK(os_replace_file(path, bytes.data, bytes.len, 0644, &e), &e);
	snprintf(folder, sizeof(folder), "%s/debug", dir.path);
	debug_folders[0] = folder;
	server_start(true);
	struct uploader *u = make(with_debug_folder);
	close(meet(u, 1, 0));
	close(meet(u, 2, 0)); /* this one has none */
	WAIT_FOR(waiting(u) == 0);
	CHECK(finished == 1 && METRIC(u, sent) == 1 && METRIC(u, nothing) == 1);
	CHECK(bytes_came >= 300000);
	uploader_free(u);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(system(command) == 0);
}

/* A program on a file system that hangs when it is read: NULL, or why there is none. */
static const char *make_hanging(struct hanging_mount *m, struct buf *content)
{
	const struct broker_config c = { .own_files = { NULL } };
	struct err e = { 0 };
	make_bytes(1, 3000, content);
	const char *why_not = hanging_mount_init(m, dir.path, HANGS_READ, buf_view(content));
	if (why_not)
		return why_not;
	CHECK_OK(broker_start(&c, &e), &e);           /* before there are other threads */
	int fd = open(m->path, O_RDONLY | O_CLOEXEC); /* the first is not kept waiting */
	CHECK(fd >= 0 && close(fd) == 0);
	return NULL;
}

static void meet_hanging(struct uploader *u, const struct hanging_mount *m)
{
	char id[41];
	snprintf(id, sizeof(id), "ab01%036d", 0);
	uploader_met(u, 7, id, m->path, 0);
}

static void goes_on_beside_a_file_system_that_hangs(void **state)
{
	(void)state;
	struct hanging_mount m;
	CLEANUP(buf_deinit) struct buf content;
	const char *why_not = make_hanging(&m, &content);
	if (why_not)
		SKIP("%s", why_not);
	server_start(true);
	struct uploader *u = make(NULL);
	meet_hanging(u, &m);
	WAIT_FOR(asked == 1);
	for (uint8_t n = 2; n < 6; n++)
		close(meet(u, n, 1000));
	WAIT_FOR(finished == 4);
	WAIT_FOR(METRIC(u, no_file) >= 1);
	WAIT_FOR(METRIC(u, sent) == 4);
	CHECK(METRIC(u, changed) == 0 && METRIC(u, broken) == 0);
	uploader_free(u);
	server_stop();
	hanging_mount_let_go(&m);
	broker_stop();
	hanging_mount_deinit(&m);
}

static void ends_while_a_file_system_hangs(void **state)
{
	(void)state;
	struct hanging_mount m;
	CLEANUP(buf_deinit) struct buf content;
	const char *why_not = make_hanging(&m, &content);
	if (why_not)
		SKIP("%s", why_not);
	server_start(true);
	struct uploader *u = make(NULL);
	meet_hanging(u, &m);
	WAIT_FOR(asked == 1);
	usleep(200000); /* a moment in which it comes to where it hangs */
	int64_t begin = clock_monotonic_ns();
	broker_hang_up(); /* as the agent does */
	uploader_stop(u);
	/* Much less than what a file system is waited for, also on a busy machine. */
	CHECK(clock_monotonic_ns() - begin < UPLOADER_STOP_NS + BROKER_PATIENCE_NS / 2);
	WAIT_FOR(METRIC(u, threads) == 0);
	CHECK(METRIC(u, sent) == 0 && finished == 0);
	uploader_free(u);
	server_stop();
	hanging_mount_let_go(&m);
	broker_stop();
	hanging_mount_deinit(&m);
}

static void refuses_what_is_no_address(void **state)
{
	(void)state;
	struct uploader_config c;
	struct uploader *u = NULL;
	struct err e = { 0 };
	uploader_config_default(&c);
	c.remote.address = "unix:";
	c.find_key = no_key;
	CHECK(uploader_new(&c, &u, &e) == E_INVALID && !u);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { TEST(sends_what_the_server_lacks),
		TEST(waits_before_it_sends), TEST(ends_threads_that_have_nothing_to_do),
		TEST(waits_for_a_server_that_is_away), TEST(leaves_a_server_alone_that_takes_none),
		TEST(asks_later_where_somebody_else_sends_it), TEST(begins_anew_what_broke_off),
		TEST(gives_up_where_the_server_hangs), TEST(does_not_finish_what_changed),
		TEST(asks_again_a_server_that_forgot), TEST(ends_in_the_middle),
		TEST(refuses_what_is_no_address), TEST(waits_for_its_token),
		TEST(is_not_driven_by_canceled_calls), TEST(is_not_let_begin),
		TEST(sends_the_separate_debug_file), TEST(goes_on_beside_a_file_system_that_hangs),
		TEST(ends_while_a_file_system_hangs), TEST(does_not_wait_for_a_thread_that_hangs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
