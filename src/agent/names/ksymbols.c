/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event that counts nothing on each CPU, with a small ring of its own, into which the kernel
 * writes a record for each symbol. Programs that go are not asked for: their memory keeps their
 * name until something else is loaded there.
 */
#include "agent/names/ksymbols.h"

#include "agent/broker/broker.h"
#include "agent/sample/sample.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#define ONLINE_PATH "/sys/devices/system/cpu/online"
#define ONLINE_TEXT_MAX 4096
#define RECORD_BYTES_MAX 1024 /* names have at most 512 bytes (KSYM_NAME_LEN) */

/* A record as it lies in the ring: its name is followed by the time. */
struct ksymbol_record {
	struct perf_event_header header;
	uint64_t start;
	uint32_t len;
	uint16_t type;
	uint16_t flags;
	char name[];
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* the data follow; NULL: none */
};

struct ksymbols {
	size_t page_bytes;
	int online_fd;
	char text[ONLINE_TEXT_MAX]; /* of the list that the rings are of */
	size_t text_len;
	bool *online;
	bool missed; /* something may have been */
	uint32_t count;
	struct ring rings[];
};

static size_t data_bytes(const struct ksymbols *k)
{
	return KSYMBOLS_RING_PAGES * k->page_bytes;
}

static enum status open_ring(const struct ksymbols *k, uint32_t cpu, struct ring *r, struct err *e)
{
	r->fd = broker_perf_event(cpu, 0);
	/* As in cpus.c: there is no broker, or root may more as long as it has its privileges. */
	int refused = errno;
	if (r->fd < 0 && (errno == ENOSYS || errno == EACCES || errno == EPERM)) {
		r->fd = privileged_open_ksymbols(cpu);
		if (r->fd < 0 && errno == ENOSYS)
			errno = refused;
	}
	if (r->fd < 0 && errno == ENODEV)
		return OK; /* offline */
	if (r->fd < 0)
		return err_os(e, "perf_event_open of symbols on CPU %u", cpu);
	void *at = mmap(
		NULL, k->page_bytes + data_bytes(k), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (at == MAP_FAILED) {
		enum status s = err_os(e, "ring of symbols on CPU %u", cpu);
		fd_cleanup(&r->fd);
		return s;
	}
	r->page = at;
	return OK;
}

static void close_ring(const struct ksymbols *k, struct ring *r)
{
	if (r->page)
		munmap(r->page, k->page_bytes + data_bytes(k));
	r->page = NULL;
	fd_cleanup(&r->fd);
}

static void ksymbols_cleanup(struct ksymbols **k)
{
	ksymbols_close(*k);
}

enum status ksymbols_open(struct ksymbols **out, struct err *e)
{
	int count = libbpf_num_possible_cpus();
	if (count <= 0 || count > CPUS_MAX)
		return err_set(e, E_LIMIT, "%d possible CPUs", count);
	CLEANUP(ksymbols_cleanup)
	struct ksymbols *k = calloc(1, sizeof(*k) + (size_t)count * sizeof(k->rings[0]));
	if (!k)
		return err_set(e, E_NOMEM, "rings of symbols");
	k->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	k->online_fd = open(ONLINE_PATH, O_RDONLY | O_CLOEXEC);
	if (k->online_fd < 0)
		return err_os(e, "open %s", ONLINE_PATH);
	k->online = calloc((size_t)count, sizeof(*k->online));
	if (!k->online)
		return err_set(e, E_NOMEM, "rings of symbols");
	for (; k->count < (uint32_t)count; k->count++)
		k->rings[k->count].fd = -1;
	enum status s = ksymbols_update(k, e);
	if (s != OK)
		return s;
	k->missed = false; /* there is no list yet */
	*out = STEAL_PTR(k);
	return OK;
}

void ksymbols_close(struct ksymbols *k)
{
	if (!k)
		return;
	for (uint32_t i = 0; i < k->count; i++)
		close_ring(k, &k->rings[i]);
	fd_cleanup(&k->online_fd);
	free(k->online);
	free(k);
}

enum status ksymbols_update(struct ksymbols *k, struct err *e)
{
	char text[ONLINE_TEXT_MAX];
	ssize_t n = pread(k->online_fd, text, sizeof(text), 0);
	return n < 0 ? err_os(e, "read %s", ONLINE_PATH)
		     : ksymbols_update_to(k, str_make(text, (size_t)n), e);
}

enum status ksymbols_renew(struct ksymbols *k, struct err *e)
{
	enum status s = OK;
	k->missed = true;
	for (uint32_t i = 0; i < k->count && s == OK; i++) {
		struct ring r = { .fd = -1 };
		if (!k->rings[i].page)
			continue;
		s = open_ring(k, i, &r, e);
		if (s != OK || !r.page)
			continue;
		close_ring(k, &k->rings[i]);
		k->rings[i] = r;
	}
	return s;
}

enum status ksymbols_update_to(struct ksymbols *k, struct str online, struct err *e)
{
	if (str_eq(online, str_make(k->text, k->text_len)))
		return OK;
	if (online.len > sizeof(k->text) || !cpus_parse(online, k->online, k->count))
		return err_set(
			e, E_INVALID, "%s: not a list of CPUs: %.*s", ONLINE_PATH, STR_ARG(online));
	/* An event that cannot be opened now cannot be opened at the next look either. */
	memcpy(k->text, online.p, online.len);
	k->text_len = online.len;
	k->missed = true;
	enum status s = OK;
	for (uint32_t i = 0; i < k->count; i++) {
		if (!k->online[i])
			close_ring(k, &k->rings[i]);
		else if (!k->rings[i].page && s == OK)
			s = open_ring(k, i, &k->rings[i], e);
	}
	return s;
}

static void tell(const struct ksymbol_record *r, ksymbol_fn *fn, void *ctx)
{
	struct ksymbol s = { .start = r->start, .len = r->len };
	size_t fixed = offsetof(struct ksymbol_record, name) + sizeof(s.time);
	if (r->type != PERF_RECORD_KSYMBOL_TYPE_BPF || r->header.size <= fixed || r->len == 0 ||
		r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return;
	size_t most = r->header.size - fixed;
	memcpy(&s.time, r->name + most, sizeof(s.time));
	s.name = str_make(r->name, strnlen(r->name, most));
	if (s.name.len)
		fn(ctx, &s);
}

/* Copies bytes from an offset that only grows; they may wrap around to the ring's start. */
static void copy_out(
	const struct ksymbols *k, const struct ring *r, uint64_t from, void *to, size_t len)
{
	const uint8_t *data = (const uint8_t *)r->page + k->page_bytes;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = data[(from + i) & (data_bytes(k) - 1)];
}

bool ksymbols_take(struct ksymbols *k, ksymbol_fn *fn, void *ctx)
{
	bool is_whole = !k->missed;
	k->missed = false;
	for (uint32_t i = 0; i < k->count; i++) {
		const struct ring *r = &k->rings[i];
		if (!r->page)
			continue;
		uint64_t tail = r->page->data_tail;
		uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
		while (tail < head) {
			union {
				struct ksymbol_record record;
				uint8_t bytes[RECORD_BYTES_MAX];
			} u;
			copy_out(k, r, tail, &u.record.header, sizeof(u.record.header));
			size_t len = u.record.header.size;
			if (len < sizeof(u.record.header))
				break; /* no kernel writes that */
			copy_out(k, r, tail, u.bytes, MIN(len, sizeof(u)));
			if (u.record.header.type == PERF_RECORD_KSYMBOL && len <= sizeof(u))
				tell(&u.record, fn, ctx);
			else
				is_whole = false; /* PERF_RECORD_LOST */
			tail += len;
		}
		if (head != r->page->data_tail)
			__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	}
	return is_whole;
}
