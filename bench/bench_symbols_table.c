/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol tables: building one, its size, and looking addresses up, against a plain binary search
 * over the same ranges in the same run, and against llvm-symbolizer where there is one.
 *
 * The file: $FIRN_BENCH_ELF (with DWARF, a vmlinux for example), else libc with its debug file from
 * libc6-dbg, else this program.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "debuginfo/debuginfo.h"
#include "debuginfo/symtab/format.h"
#include "objfile/objfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADDRESSES 200000
#define ROUNDS 7
#define LLVM_ADDRESSES 20000
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

struct bench {
	char elf[512], debug[512], table_path[64];
	struct debuginfo_table *table;
	struct debuginfo_table_info info;
	const struct symtab_header *header;
	uint64_t *starts; /* of all ranges, absolute addresses */
	size_t start_count;
	uint64_t addresses[ADDRESSES];
	int64_t build_ns;
};

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "bench_symbols_table: %s: %s\n", what, e ? e->text : "");
	exit(1);
}

static void choose_file(struct bench *b)
{
	const char *env = getenv("FIRN_BENCH_ELF");
	struct objfile *obj = NULL;
	b->debug[0] = '\0';
	if (env) {
		snprintf(b->elf, sizeof(b->elf), "%s", env);
		return;
	}
	snprintf(b->elf, sizeof(b->elf), "/proc/self/exe");
	if (objfile_open(LIBC, &obj, NULL) != OK)
		return;
	const char *id = objfile_build_id(obj);
	snprintf(b->debug, sizeof(b->debug), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	if (access(b->debug, R_OK) == 0)
		snprintf(b->elf, sizeof(b->elf), LIBC);
	else
		b->debug[0] = '\0';
	objfile_close(obj);
}

static void build(struct bench *b)
{
	struct err e = { 0 };
	struct debuginfo_limits limits;
	debuginfo_limits_default(&limits);
	snprintf(b->table_path, sizeof(b->table_path), "/tmp/firn-bench-%d.sym", getpid());
	int fd = open(b->elf, O_RDONLY | O_CLOEXEC);
	int debug = b->debug[0] ? open(b->debug, O_RDONLY | O_CLOEXEC) : -1;
	int64_t t = clock_monotonic_ns();
	if (fd < 0 || debuginfo_build(fd, debug, b->table_path, &limits, &e) != OK)
		die(b->elf, &e);
	b->build_ns = clock_monotonic_ns() - t;
	close(fd);
	if (debug >= 0)
		close(debug);
	if (debuginfo_table_open(b->table_path, &b->table, &e) != OK)
		die("open", &e);
	debuginfo_table_describe(b->table, &b->info);
}

/* Reads all starts as absolute addresses, as the format's document describes; chooses random
 * addresses in named ranges to look up. */
static void prepare(struct bench *b)
{
	int fd = open(b->table_path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		die("open", NULL);
	const char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		die("mmap", NULL);
	b->header = (const struct symtab_header *)p;
	const struct symtab_extent *x = b->header->sections;
	const struct symtab_region *regions =
		(const struct symtab_region *)(p + x[SYMTAB_REGIONS].offset);
	const uint32_t *starts = (const uint32_t *)(p + x[SYMTAB_STARTS].offset);
	const struct symtab_place *places =
		(const struct symtab_place *)(p + x[SYMTAB_PLACES].offset);
	b->start_count = x[SYMTAB_STARTS].count;
	b->starts = malloc(b->start_count * sizeof(uint64_t));
	if (!b->starts || b->start_count == 0)
		die("no ranges", NULL);
	for (uint64_t r = 0; r < x[SYMTAB_REGIONS].count; r++)
		for (uint32_t i = 0; i < regions[r].range_count; i++)
			b->starts[regions[r].first_range + i] =
				regions[r].base + starts[regions[r].first_range + i];
	uint64_t seed = 1;
	for (size_t n = 0; n < ADDRESSES;) {
		seed = hash_u64(seed + 1);
		size_t i = seed % b->start_count;
		if (places[i].node != 0)
			b->addresses[n++] = b->starts[i];
	}
}

static size_t binary_search(const uint64_t *v, size_t count, uint64_t at)
{
	const uint64_t *p = v;
	while (count > 1) {
		size_t half = count / 2;
		p += (p[half] <= at) * half;
		count -= half;
	}
	return (size_t)(p - v);
}

static double lookup_ns(const struct bench *b, uint64_t *out_frames)
{
	double best = 1e9;
	struct debuginfo_frame f[DEBUGINFO_FRAMES_MAX];
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t frames = 0;
		int64_t t = clock_monotonic_ns();
		for (size_t i = 0; i < ADDRESSES; i++)
			frames += debuginfo_table_find(
				b->table, b->addresses[i], f, DEBUGINFO_FRAMES_MAX);
		double ns = (double)(clock_monotonic_ns() - t) / ADDRESSES;
		best = ns < best ? ns : best;
		*out_frames = frames;
	}
	return best;
}

static double search_ns(const struct bench *b)
{
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t sum = 0;
		int64_t t = clock_monotonic_ns();
		for (size_t i = 0; i < ADDRESSES; i++)
			sum += binary_search(b->starts, b->start_count, b->addresses[i]);
		double ns = (double)(clock_monotonic_ns() - t) / ADDRESSES;
		best = ns < best ? ns : best;
		__asm__ volatile("" : : "r"(sum));
	}
	return best;
}

/* The nanoseconds that llvm-symbolizer takes for each address, its start included; 0: it is not
 * installed. */
static double llvm_ns(const struct bench *b)
{
	char in[64], command[1400];
	snprintf(in, sizeof(in), "/tmp/firn-bench-%d.in", getpid());
	FILE *f = fopen(in, "we");
	if (!f)
		return 0;
	for (size_t i = 0; i < LLVM_ADDRESSES; i++)
		fprintf(f, "0x%llx\n", (unsigned long long)b->addresses[i]);
	fclose(f);
	snprintf(command, sizeof(command),
		"command -v llvm-symbolizer >/dev/null && "
		"llvm-symbolizer -e %s -i --no-demangle <%s >/dev/null 2>&1",
		b->debug[0] ? b->debug : b->elf, in);
	int64_t t = clock_monotonic_ns();
	int rc = system(command); /* NOLINT */
	t = clock_monotonic_ns() - t;
	unlink(in);
	return rc == 0 ? (double)t / LLVM_ADDRESSES : 0;
}

int main(int argc, char **argv)
{
	int rc = debuginfo_child_main(argc, argv);
	if (rc >= 0)
		return rc;
	static struct bench b;
	choose_file(&b);
	build(&b);
	struct rusage usage;
	getrusage(RUSAGE_CHILDREN, &usage);
	prepare(&b);
	unlink(b.table_path);
	uint64_t frames;
	double ns = lookup_ns(&b, &frames), plain = search_ns(&b), llvm = llvm_ns(&b);
	printf("{\"name\":\"symbols.lookup_ns\",\"value\":%.1f,\"unit\":\"ns\","
	       "\"against\":\"plain binary search over the same ranges, without names\","
	       "\"ratio\":%.2f,\"note\":\"%s, %llu ranges, %.2f frames an address; search alone "
	       "%.1f ns\"}\n",
		ns, plain / ns, b.elf, (unsigned long long)b.info.ranges,
		(double)frames / ADDRESSES, plain);
	printf("{\"name\":\"symbols.build_peak_mib\",\"value\":%.1f,\"unit\":\"MiB\","
	       "\"against\":null,\"ratio\":null,\"note\":\"built in %.2f s, with the sandbox's "
	       "process\"}\n",
		(double)usage.ru_maxrss / 1024, (double)b.build_ns / 1e9);
	printf("{\"name\":\"symbols.bytes_per_range\",\"value\":%.1f,\"unit\":\"bytes\","
	       "\"against\":null,\"ratio\":null,\"note\":\"%llu bytes, %llu functions\"}\n",
		(double)b.info.bytes / (double)b.info.ranges, (unsigned long long)b.info.bytes,
		(unsigned long long)b.info.functions);
	if (llvm > 0)
		printf("{\"name\":\"symbols.llvm_ratio\",\"value\":%.0f,\"unit\":\"times\","
		       "\"against\":\"llvm-symbolizer, %d addresses, start included\","
		       "\"ratio\":%.0f,\"note\":\"%.0f ns against %.1f ns an address; building the "
		       "table once takes %.0f ms\"}\n",
			llvm / ns, LLVM_ADDRESSES, llvm / ns, llvm, ns, (double)b.build_ns / 1e6);
	debuginfo_table_close(b.table);
	free(b.starts);
	return 0;
}
