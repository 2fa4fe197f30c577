/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array sorted by address, as offsets from the lowest kernel text symbol, and one block of
 * names, NUL after each. Modules are numbered in a small table. /proc/kallsyms is read in pieces,
 * so that its megabytes of text are never in memory at once. Of several symbols at one address the
 * best one stays: global before local before weak, then the first in the file.
 *
 * Beside them is a short list of the BPF programs that were loaded since, by address. An unloaded
 * program stays in the list, because samples of it may be on their way, until a program with an
 * overlapping address is loaded. The file has no lengths, so without that list a new program would
 * get the name of its neighbour.
 */
#include "agent/names/kallsyms.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "procfs/procfs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)
#define MODULES_BYTES_MAX ((size_t)1 << 20)
#define KERNEL_ADDRESS_MIN 0x8000000000000000ULL
/* The sizes of programs are exact. Trampolines are listed with a whole page. */
#define EXACT_PREFIX "bpf_prog_"

struct entry {
	uint64_t address;
	uint32_t name; /* offset in names */
	uint16_t module;
	uint8_t rank; /* less is better */
};

struct symbol {
	uint32_t offset; /* from base */
	uint32_t name;
};

/* A BPF program that was loaded after the file was read. */
struct later {
	uint64_t start;
	uint64_t end;
	uint64_t time;
	char *name;
	bool is_exact;
};

struct kallsyms {
	const char *symbols_path;
	const char *modules_path;
	uint64_t base;
	struct symbol *symbols;
	uint16_t *modules; /* of symbols[i]; NULL when there are no modules at all */
	uint32_t count;
	char *names;
	struct strtab module_names;
	uint64_t modules_hash;
	struct ksymbols *loaded; /* NULL: not known */
	VEC(struct later) later; /* by start */
	bool is_stale;           /* something was loaded without a notice */
	uint64_t unnamed;        /* the address that had no name last */
	int64_t read_ns;
	int64_t pause_ns;
};

struct load {
	VEC(struct entry) entries;
	VEC(char) names;
	struct strtab modules;
	enum status status;
	bool any_address;
	bool any_module;
};

static uint8_t rank_of(char type)
{
	switch (type) {
	case 'T':
		return 0;
	case 't':
		return 1;
	default:
		return 2;
	}
}

static bool add_symbol(void *ctx, const struct procfs_kallsym *s)
{
	struct load *l = ctx;
	if (s->address >= KERNEL_ADDRESS_MIN)
		l->any_address = true;
	bool text = s->type == 'T' || s->type == 't' || s->type == 'W' || s->type == 'w';
	if (!text || s->address < KERNEL_ADDRESS_MIN || s->name.len == 0)
		return true;
	if (l->entries.len >= KALLSYMS_SYMBOLS_MAX ||
		l->names.len + s->name.len + 1 > KALLSYMS_NAME_BYTES_MAX)
		return false;
	uint32_t module = 0;
	l->status = strtab_intern(&l->modules, s->module, &module);
	if (l->status != OK)
		return false;
	l->any_module |= module != 0;
	struct entry entry = { s->address, (uint32_t)l->names.len,
		(uint16_t)MIN(module, (uint32_t)UINT16_MAX), rank_of(s->type) };
	if (!VEC_PUSH(&l->entries, entry) ||
		!VEC_RESERVE(&l->names, l->names.len + s->name.len + 1)) {
		l->status = E_NOMEM;
		return false;
	}
	memcpy(l->names.v + l->names.len, s->name.p, s->name.len);
	l->names.v[l->names.len + s->name.len] = 0;
	l->names.len += s->name.len + 1;
	return true;
}

/* Whole lines of the file, a piece at a time. */
static enum status read_symbols(const char *path, struct load *l, struct err *e)
{
	/* Without privileges it opens too, but its addresses are hidden. */
	CLEANUP(fd_cleanup) int fd = os_open_by_broker(path);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "open %s", path);
	CLEANUP(free_cleanup) char *piece = malloc(READ_BYTES);
	if (!piece)
		return err_set(e, E_NOMEM, "%s", path);
	size_t kept = 0;
	for (;;) {
		ssize_t n = read(fd, piece + kept, READ_BYTES - kept);
		if (n < 0)
			return err_os(e, "read %s", path);
		size_t have = kept + (size_t)n;
		struct str text = str_make(piece, have);
		size_t lines = n ? MIN(str_rindex(text, '\n') + 1, have) : have;
		if (n && str_rindex(text, '\n') == have)
			return err_set(
				e, E_INVALID, "%s: a line of more than %zu bytes", path, have);
		enum status s = procfs_kallsyms_parse(str_sub(text, 0, lines), add_symbol, l, e);
		if (s != OK)
			return err_prefix(e, s, "%s", path);
		if (l->status != OK)
			return err_set(
				e, l->status, "%s: %u symbols", path, (unsigned)l->entries.len);
		kept = have - lines;
		memmove(piece, piece + lines, kept);
		if (n == 0)
			return OK;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Entries to the arrays of `k`; the best of each address first, the others dropped. */
static enum status arrange(struct kallsyms *k, struct load *l)
{
	size_t n = l->entries.len;
	if (n)
		qsort(l->entries.v, n, sizeof(*l->entries.v), by_address);
	struct symbol *symbols = calloc(MAX(n, (size_t)1), sizeof(*symbols));
	uint16_t *modules = l->any_module ? calloc(MAX(n, (size_t)1), sizeof(*modules)) : NULL;
	if (!symbols || (l->any_module && !modules)) {
		free(symbols);
		free(modules);
		return E_NOMEM;
	}
	uint64_t base = n ? l->entries.v[0].address : 0;
	uint32_t count = 0;
	for (size_t i = 0; i < n; i++) {
		const struct entry *s = &l->entries.v[i];
		if (i && s->address == l->entries.v[i - 1].address)
			continue;
		if (s->address - base > UINT32_MAX)
			break; /* further away than any kernel's text */
		symbols[count] = (struct symbol){ (uint32_t)(s->address - base), s->name };
		if (modules)
			modules[count] = s->module;
		count++;
	}
	free(k->symbols);
	free(k->modules);
	free(k->names);
	strtab_deinit(&k->module_names);
	k->symbols = symbols;
	k->modules = modules;
	k->count = count;
	k->base = base;
	k->names = STEAL_PTR(l->names.v);
	k->module_names = l->modules;
	l->modules = (struct strtab){ 0 };
	return OK;
}

static void load_deinit(struct load *l)
{
	VEC_FREE(&l->entries);
	VEC_FREE(&l->names);
	strtab_deinit(&l->modules);
}

static void later_clear(struct kallsyms *k)
{
	for (size_t i = 0; i < k->later.len; i++)
		free(k->later.v[i].name);
	k->later.len = 0;
}

static enum status load_all(struct kallsyms *k, struct err *e)
{
	kallsyms_take(k); /* is in the file; what is loaded meanwhile is told again */
	CLEANUP(load_deinit) struct load l = { 0 };
	enum status s = strtab_init(&l.modules, (size_t)1 << 20);
	if (s != OK)
		return err_set(e, s, "%s", k->symbols_path);
	s = read_symbols(k->symbols_path, &l, e);
	if (s != OK)
		return s;
	if (!l.any_address)
		return err_set(e, E_DENIED,
			"%s hides the kernel's addresses: grant CAP_SYSLOG or set "
			"kernel.kptr_restrict=0",
			k->symbols_path);
	s = arrange(k, &l);
	if (s != OK)
		return err_set(e, s, "%s", k->symbols_path);
	later_clear(k);
	k->is_stale = false;
	return OK;
}

/* Changes when a module comes, goes or has moved; 0 when the list cannot be read (a kernel without
 * modules). */
static uint64_t hash_of_modules(const char *path)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, MODULES_BYTES_MAX);
	if (os_read_file(path, &text, NULL) != OK)
		return 0;
	/* "name size refs users state address": the counts of users change all the time. */
	uint64_t hash = 0;
	struct str rest = buf_view(&text), line, field;
	while (str_split(&rest, '\n', &line))
		for (unsigned i = 0; str_split(&line, ' ', &field); i++)
			if (i < 2 || i == 5)
				hash = hash_u64(hash ^ hash64(field.p, field.len));
	return hash;
}

enum status kallsyms_new_from(
	const char *symbols_path, const char *modules_path, struct kallsyms **out, struct err *e)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, E_NOMEM, "kallsyms");
	k->symbols_path = symbols_path;
	k->modules_path = modules_path;
	k->modules_hash = hash_of_modules(modules_path);
	k->read_ns = clock_monotonic_ns();
	k->pause_ns = KALLSYMS_PAUSE_MIN_NS;
	enum status s = load_all(k, e);
	if (s != OK) {
		kallsyms_free(k);
		return s;
	}
	*out = k;
	return OK;
}

enum status kallsyms_new(struct kallsyms **out, struct err *e)
{
	return kallsyms_new_from("/proc/kallsyms", "/proc/modules", out, e);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k->modules);
	free(k->names);
	strtab_deinit(&k->module_names);
	later_clear(k);
	VEC_FREE(&k->later);
	free(k);
}

uint32_t kallsyms_count(const struct kallsyms *k)
{
	return k->count;
}

void kallsyms_watch(struct kallsyms *k, struct ksymbols *loaded)
{
	k->loaded = loaded;
}

/* How many symbols begin at or before the address. */
static size_t later_count(const struct kallsyms *k, uint64_t address)
{
	size_t low = 0, high = k->later.len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (k->later.v[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void kallsyms_add(void *ctx, const struct ksymbol *s)
{
	struct kallsyms *k = ctx;
	struct later new = { .start = s->start,
		.end = s->start + s->len,
		.time = s->time,
		.is_exact = str_starts(s->name, STR(EXACT_PREFIX)) };
	/* It and a symbol that it overlaps cannot both exist: the older one is gone. Notices of
	 * several CPUs come in any order. */
	uint64_t last = new.is_exact ? new.end - 1 : new.start;
	size_t end = later_count(k, last), first = end;
	while (first > 0) {
		const struct later *l = &k->later.v[first - 1];
		if (l->start < new.start && (!l->is_exact || l->end <= new.start))
			break;
		if (l->time > new.time)
			return;
		first--;
	}
	if (k->later.len - (end - first) < KALLSYMS_LATER_MAX &&
		VEC_RESERVE(&k->later, k->later.len + 1))
		new.name = strndup(s->name.p, s->name.len);
	if (!new.name) {
		k->is_stale = true;
		return;
	}
	for (size_t i = first; i < end; i++)
		free(k->later.v[i].name);
	memmove(k->later.v + first + 1, k->later.v + end,
		(k->later.len - end) * sizeof(k->later.v[0]));
	k->later.v[first] = new;
	k->later.len = k->later.len - (end - first) + 1;
}

void kallsyms_take(struct kallsyms *k)
{
	if (k->loaded && !ksymbols_take(k->loaded, kallsyms_add, k))
		k->is_stale = true;
}

/* The number of symbols of the file at or before it. */
static uint32_t symbol_count(const struct kallsyms *k, uint64_t address)
{
	if (address < k->base)
		return 0;
	uint64_t offset = address - k->base;
	uint32_t low = 0, high = k->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (k->symbols[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out)
{
	uint32_t count = symbol_count(k, address);
	const struct symbol *s = count ? &k->symbols[count - 1] : NULL;
	size_t after = later_count(k, address);
	const struct later *l = after ? &k->later.v[after - 1] : NULL;
	bool is_nearer = l && (!s || l->start >= k->base + s->offset);
	if (l && address < l->end && (l->is_exact || is_nearer)) {
		*out = (struct kallsyms_symbol){ str_of(l->name), STR("bpf"), l->start };
		return true;
	}
	if (!s || is_nearer || address - k->base - s->offset >= KALLSYMS_SPAN_MAX)
		return false;
	uint32_t module = k->modules ? k->modules[count - 1] : 0;
	out->name = str_of(k->names + s->name);
	out->module = module < k->module_names.len ? strtab_get(&k->module_names, module) : STR("");
	out->start = k->base + s->offset;
	return true;
}

/* Between two symbols of the kernel itself nothing is loaded. */
static bool is_kernels_own(const struct kallsyms *k, uint64_t address)
{
	uint32_t count = symbol_count(k, address);
	return count > 0 && count < k->count && (!k->modules || k->modules[count] == 0);
}

bool kallsyms_find(struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out)
{
	if (!is_kernels_own(k, address))
		kallsyms_take(k);
	if (find(k, address, out))
		return true;
	k->unnamed = address;
	return false;
}

bool kallsyms_refresh(struct kallsyms *k, int64_t now_ns, bool missed)
{
	uint64_t hash = hash_of_modules(k->modules_path);
	int64_t since_ns = now_ns - k->read_ns;
	bool due = (missed && since_ns >= k->pause_ns) ||
		   (k->is_stale && since_ns >= KALLSYMS_PAUSE_MIN_NS);
	if (hash == k->modules_hash && !due)
		return false;
	k->modules_hash = hash;
	k->read_ns = now_ns; /* also when it fails: the old names stay */
	bool is_read = load_all(k, NULL) == OK;
	struct kallsyms_symbol symbol;
	if (missed && is_read && find(k, k->unnamed, &symbol))
		k->pause_ns = KALLSYMS_PAUSE_MIN_NS;
	else if (due && missed)
		k->pause_ns = MIN(2 * k->pause_ns, KALLSYMS_PAUSE_MAX_NS);
	return is_read;
}
