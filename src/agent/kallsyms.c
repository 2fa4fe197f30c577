/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array sorted by address, as offsets from the lowest kernel text symbol, and one block of
 * names, NUL after each. Modules are numbered in a small table. /proc/kallsyms is read in pieces,
 * so that its megabytes of text are never in memory at once. Of several symbols at one address the
 * best one stays: global before local before weak, then the first in the file.
 */
#include "agent/kallsyms.h"

#include "base/clock.h"
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
#define MISSED_INTERVAL_NS (60 * NS_PER_SEC)

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
	int64_t read_ns;
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

static enum status load_all(struct kallsyms *k, struct err *e)
{
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
	k->read_ns = clock_monotonic_ns();
	return OK;
}

/* Changes when a module comes or goes; 0 when the list cannot be read (a kernel without modules).
 */
static uint64_t hash_of_modules(const char *path)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, MODULES_BYTES_MAX);
	if (os_read_file(path, &text, NULL) != OK)
		return 0;
	/* "name size refs users state address": the counts of users change all the time. */
	uint64_t hash = 0;
	struct str rest = buf_view(&text), line, name;
	while (str_split(&rest, '\n', &line))
		if (str_split(&line, ' ', &name))
			hash = hash_u64(hash ^ hash64(name.p, name.len));
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
	free(k);
}

uint32_t kallsyms_count(const struct kallsyms *k)
{
	return k->count;
}

bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out)
{
	if (address < k->base || address - k->base > UINT32_MAX)
		return false;
	uint32_t offset = (uint32_t)(address - k->base);
	/* The last symbol at or before it. */
	uint32_t low = 0, high = k->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (k->symbols[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || offset - k->symbols[low - 1].offset >= KALLSYMS_SPAN_MAX)
		return false;
	const struct symbol *s = &k->symbols[low - 1];
	uint32_t module = k->modules ? k->modules[low - 1] : 0;
	out->name = str_of(k->names + s->name);
	out->module = module < k->module_names.len ? strtab_get(&k->module_names, module) : STR("");
	out->start = k->base + s->offset;
	return true;
}

bool kallsyms_refresh(struct kallsyms *k, bool missed)
{
	uint64_t hash = hash_of_modules(k->modules_path);
	bool due = missed && clock_monotonic_ns() - k->read_ns >= MISSED_INTERVAL_NS;
	if (hash == k->modules_hash && !due)
		return false;
	k->modules_hash = hash;
	k->read_ns = clock_monotonic_ns(); /* also when it fails: the old names stay */
	return load_all(k, NULL) == OK;
}
