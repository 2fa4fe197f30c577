/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent unwinder, elfutils' libdw, at random program counters of installed executables and
 * libraries: both find the CFA, the return address and the caller's frame pointer over the same
 * made registers and memory, so that what is compared is what the rules mean and not how they are
 * written. Every kind of difference has a name and is counted.
 *
 *	UNWIND_SEED=N    the same choice again
 *	UNWIND_FILES=N   so many files (24)
 *	UNWIND_POINTS=N  so many program counters a file (400)
 *	UNWIND_PATHS=A:B these files (and all their points are spread over them)
 */
#include "test.h"

#include "base/hash.h"
#include "unwind/unwind.h"

#include <dirent.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHOWN_MAX 25
#define PATHS_MAX 20000
#define EVAL_DEPTH_MAX 16

/* How the two compare at one point. The first ones agree. */
/* clang-format off */
#define OUTCOMES(X)                                                                               \
	X(SAME, true, "the same CFA, return address and frame pointer")                           \
	X(SAME_LEAF, true, "the same, by a register that is known in the interrupted frame")      \
	X(SAME_ROOT, true, "both: outermost frame")                                               \
	X(SAME_NOTHING, true, "neither knows anything (data, padding, code without information)") \
	X(CODE, true, "libdw knows nothing; we, from the code (PLT, entry, signal return, Go)")   \
	X(PADDING, true, "libdw knows nothing; padding behind a function goes on as the function")\
	X(ENTRY, true, "we: a program's entry is the root, whatever is said there")               \
	X(GO_FP, true, "Go: the same frame; its DWARF does not say that the frame pointer is saved")  \
	X(GO_SWITCH, true, "Go: on another stack, which its DWARF cannot say")                     \
	X(EXCEPTION, true, "libgcc leaves for who catches: its frame, which libdw follows, is gone") \
	X(FP_LOST, false, "the same frame; the caller's frame pointer is where no rule can say")  \
	X(UNSUPPORTED, false, "libdw knows the frame, no rule of ours can say it")                \
	X(NOTHING, false, "libdw knows the frame, we do not")                                     \
	X(DIFFERENT, false, "another frame")                                                      \
	X(NOT_COMPARED, false, "libdw gives an expression that this test does not evaluate")
/* clang-format on */
enum outcome {
#define OUTCOME_ENUM(name, good, text) name,
	OUTCOMES(OUTCOME_ENUM)
#undef OUTCOME_ENUM
		OUTCOME_COUNT
};
static const struct {
	const char *name;
	bool good;
	const char *text;
} outcomes[] = {
#define OUTCOME_ROW(name, good, text) { #name, good, text },
	OUTCOMES(OUTCOME_ROW)
#undef OUTCOME_ROW
};

static uint64_t totals[OUTCOME_COUNT];
static uint64_t shown;

/* ---- the made frame ---- */

/* The stack pointer (of either machine) is below all others, as it is below the frame pointer. */
static uint64_t made_register(unsigned i)
{
	bool is_sp = i == 7 || i == 31;
	return is_sp ? 0x10000 : 0x100000000000 + (uint64_t)i * 0x10000000000;
}

static bool made_memory(void *ctx, uint64_t address, uint64_t *out)
{
	(void)ctx;
	*out = (hash_u64(address) & 0x00007ffffffffff8) + 0x10000;
	return true;
}

/* ---- libdw's side ---- */

struct oracle {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *eh;    /* NULL: none */
	Dwarf_CFI *debug; /* NULL: none */
	uint16_t machine;
};

struct found {
	bool is_root;
	bool is_signal;
	bool fp_known;
	uint64_t cfa, ra, fp;
};

struct stack {
	uint64_t v[EVAL_DEPTH_MAX];
	int n;
	bool failed;
};

static void push(struct stack *s, uint64_t v)
{
	if (s->n == EVAL_DEPTH_MAX)
		s->failed = true;
	else
		s->v[s->n++] = v;
}

static uint64_t pop(struct stack *s)
{
	if (s->n == 0) {
		s->failed = true;
		return 0;
	}
	return s->v[--s->n];
}

static void eval_two(struct stack *s, unsigned op)
{
	uint64_t b = pop(s), a = pop(s);
	switch (op) {
	case DW_OP_plus:
		push(s, a + b);
		break;
	case DW_OP_minus:
		push(s, a - b);
		break;
	case DW_OP_and:
		push(s, a & b);
		break;
	case DW_OP_shl:
		push(s, b < 64 ? a << b : 0);
		break;
	case DW_OP_mul:
		push(s, a * b);
		break;
	case DW_OP_ge:
		push(s, (int64_t)a >= (int64_t)b);
		break;
	default:
		s->failed = true;
	}
}

/* False: an operation that is not known here. *is_value: the result is the value, not where it is.
 */
static bool eval(const Dwarf_Op *ops, size_t count, uint64_t pc, unsigned ra_register, uint64_t cfa,
	uint64_t *out, bool *is_value)
{
	struct stack s = { .n = 0 };
	*is_value = false;
	for (size_t i = 0; i < count && !s.failed; i++) {
		unsigned op = ops[i].atom;
		uint64_t n = ops[i].number;
		uint64_t v = 0;
		if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
			push(&s, (op - DW_OP_breg0 == ra_register && ra_register == 16
						 ? pc
						 : made_register(op - DW_OP_breg0)) +
					 n);
		else if (op == DW_OP_bregx)
			push(&s, made_register((unsigned)n) + ops[i].number2);
		else if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
			v = made_register(op - DW_OP_reg0), push(&s, v), *is_value = true;
		else if (op == DW_OP_regx)
			v = made_register((unsigned)n), push(&s, v), *is_value = true;
		else if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
			push(&s, op - DW_OP_lit0);
		else if (op >= DW_OP_const1u && op <= DW_OP_consts)
			push(&s, n);
		else if (op == DW_OP_call_frame_cfa)
			push(&s, cfa);
		else if (op == DW_OP_plus_uconst)
			push(&s, pop(&s) + n);
		else if (op == DW_OP_stack_value)
			*is_value = true;
		else if (op == DW_OP_deref)
			(void)made_memory(NULL, pop(&s), &v), push(&s, v);
		else
			eval_two(&s, op);
	}
	*out = pop(&s);
	return !s.failed;
}

/* A register of the caller. False: not evaluated. *known false: undefined. */
static bool oracle_register(Dwarf_Frame *frame, const struct oracle *o, int reg, uint64_t pc,
	unsigned ra_register, uint64_t cfa, uint64_t *out, bool *known)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops = NULL;
	size_t count = 0;
	bool is_value;
	(void)o;
	if (dwarf_frame_register(frame, reg, memory, &ops, &count) != 0)
		return false;
	*known = !(count == 0 && ops == memory);
	if (count == 0) {
		*out = made_register((unsigned)reg);
		return true;
	}
	if (!eval(ops, count, pc, ra_register, cfa, out, &is_value))
		return false;
	if (!is_value)
		made_memory(NULL, *out, out);
	return true;
}

/* -1: nothing known at pc; 0: not evaluated; 1: found. */
static int oracle_find(const struct oracle *o, uint64_t pc, struct found *out)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops = NULL;
	size_t count = 0;
	bool is_value, ra_known;
	*out = (struct found){ 0 };
	if (!(o->eh && dwarf_cfi_addrframe(o->eh, pc, &frame) == 0) &&
		!(o->debug && dwarf_cfi_addrframe(o->debug, pc, &frame) == 0))
		return -1;
	Dwarf_Addr start, end;
	int ra = dwarf_frame_info(frame, &start, &end, &out->is_signal);
	int fp = o->machine == EM_AARCH64 ? 29 : 6;
	int result = 0;
	if (dwarf_frame_cfa(frame, &ops, &count) == 0 && count > 0 &&
		eval(ops, count, pc, (unsigned)ra, 0, &out->cfa, &is_value) &&
		oracle_register(frame, o, ra, pc, (unsigned)ra, out->cfa, &out->ra, &ra_known) &&
		oracle_register(
			frame, o, fp, pc, (unsigned)ra, out->cfa, &out->fp, &out->fp_known)) {
		out->is_root = !ra_known;
		result = 1;
	}
	free(frame);
	return result;
}

/* ---- ours ---- */

static enum unwind_step our_find(
	const struct oracle *o, struct unwind_rule rule, uint64_t pc, struct unwind_frame *f)
{
	*f = (struct unwind_frame){ .pc = pc, .is_exact = true, .known = UINT32_MAX };
	for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
		f->registers[i] = made_register(i);
	return unwind_step(o->machine, &rule, f, made_memory, NULL);
}

static bool is_leaf_rule(const struct unwind_rule *r)
{
	return r->cfa == UNWIND_CFA_REGISTER || r->cfa == UNWIND_CFA_RA_REGISTER;
}

struct point {
	const struct oracle *o;
	const struct objfile *obj;
	const struct unwind_table *table;
	uint64_t pc;
	uint64_t offset;
	bool is_go;
};

static bool is_known_at(const struct point *p, uint64_t pc)
{
	struct found f;
	return oracle_find(p->o, pc, &f) >= 0;
}

/* libdw knows nothing at the point. */
static enum outcome without_oracle(const struct point *p, const struct unwind_rule *rule)
{
	if (rule->cfa == UNWIND_CFA_NONE)
		return SAME_NOTHING;
	if (rule->cfa == UNWIND_CFA_SIGNAL)
		return CODE;
	for (uint64_t back = 1; back <= 15; back++) {
		if (!is_known_at(p, p->pc - back))
			continue;
		struct unwind_rule before = unwind_table_find(p->table, p->offset - back);
		return memcmp(&before, rule, sizeof(before)) == 0 ? PADDING : CODE;
	}
	return CODE;
}

static enum outcome compare(const struct point *p, const struct unwind_rule *rule)
{
	struct found theirs;
	struct unwind_frame ours;
	int found = oracle_find(p->o, p->pc, &theirs);
	if (found < 0)
		return without_oracle(p, rule);
	if (found == 0)
		return NOT_COMPARED;
	enum unwind_step step = our_find(p->o, *rule, p->pc, &ours);
	if (rule->cfa == UNWIND_CFA_NONE)
		return NOTHING;
	if (rule->cfa == UNWIND_CFA_STOP)
		return theirs.is_root ? SAME_ROOT : ENTRY;
	if (step == UNWIND_STEP_UNSUPPORTED)
		return UNSUPPORTED;
	if (rule->cfa == UNWIND_CFA_SWITCH || rule->cfa == UNWIND_CFA_GO_MORESTACK)
		return GO_SWITCH;
	if (rule->cfa == UNWIND_CFA_CONTEXT)
		return EXCEPTION;
	/* A signal frame gives all registers back, and its CFA is no more than its stack pointer.
	 * One byte early the function before it still says something else. */
	if (rule->cfa == UNWIND_CFA_SIGNAL && !theirs.is_signal)
		return is_known_at(p, p->pc + 1) ? CODE : DIFFERENT;
	unsigned sp = p->o->machine == EM_AARCH64 ? 31 : 7;
	unsigned fp = p->o->machine == EM_AARCH64 ? 29 : 6;
	if (step != UNWIND_STEP_ON || ours.pc != theirs.ra || ours.registers[sp] != theirs.cfa)
		return DIFFERENT;
	if (theirs.fp_known && !(ours.known >> fp & 1))
		return FP_LOST;
	if (theirs.fp_known && ours.registers[fp] != theirs.fp)
		return p->is_go && rule->fp == UNWIND_FP_SAVED && rule->fp_off == -16 &&
				       theirs.fp == made_register(fp)
			       ? GO_FP
			       : DIFFERENT;
	return is_leaf_rule(rule) ? SAME_LEAF : SAME;
}

static void show(const struct point *p, const struct unwind_rule *rule, enum outcome outcome)
{
	struct found theirs;
	if (outcomes[outcome].good || shown++ >= SHOWN_MAX)
		return;
	int found = oracle_find(p->o, p->pc, &theirs);
	print_message("  %s %s+%llx: ours cfa %u%+d fp %u%+d ra %+d; libdw %d cfa %llx ra %llx fp "
		      "%llx%s%s\n",
		outcomes[outcome].name, objfile_name(p->obj), (unsigned long long)p->pc, rule->cfa,
		rule->cfa_off, rule->fp, rule->fp_off, rule->ra_off, found,
		(unsigned long long)theirs.cfa, (unsigned long long)theirs.ra,
		(unsigned long long)theirs.fp, theirs.is_root ? " root" : "",
		theirs.is_signal ? " signal" : "");
}

/* ---- files ---- */

static bool oracle_open(struct oracle *o, const char *path)
{
	*o = (struct oracle){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	o->elf = o->fd >= 0 ? elf_begin(o->fd, ELF_C_READ, NULL) : NULL;
	if (!o->elf)
		return false;
	o->eh = dwarf_getcfi_elf(o->elf);
	o->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
	o->debug = o->dwarf ? dwarf_getcfi(o->dwarf) : NULL;
	return true;
}

static void oracle_close(struct oracle *o)
{
	if (o->eh)
		dwarf_cfi_end(o->eh);
	if (o->dwarf)
		dwarf_end(o->dwarf);
	if (o->elf)
		elf_end(o->elf);
	if (o->fd >= 0)
		close(o->fd);
}

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state = hash_u64(random_state + 0x9e3779b97f4a7c15);
	return limit ? random_state % limit : 0;
}

/* A byte of the executable segments, all with the same chance. */
static bool random_point(const struct objfile *obj, uint64_t *out_pc, uint64_t *out_offset)
{
	uint32_t count;
	const struct objfile_segment *g = objfile_segments(obj, &count);
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < count; i++)
		bytes += g[i].flags & PF_X ? g[i].file_size : 0;
	if (bytes == 0)
		return false;
	uint64_t n = random_below(bytes);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t size = g[i].flags & PF_X ? g[i].file_size : 0;
		if (n < size) {
			*out_pc = g[i].vaddr + n;
			*out_offset = g[i].offset + n;
			return true;
		}
		n -= size;
	}
	return false;
}

/* False: no file for us (a script, another machine, without information). */
static bool compare_file(const char *path, uint64_t points)
{
	struct oracle o;
	struct objfile *obj = NULL;
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	if (objfile_open(path, &obj, &e) != OK)
		return false;
	enum status s = unwind_table_build(obj, &t, &e);
	if (s != OK || !oracle_open(&o, path)) {
		if (s != OK)
			print_message("%s: no table: %s\n", path, e.text);
		objfile_close(obj);
		unwind_table_free(t);
		return false;
	}
	CHECK_OK(unwind_table_check(t, &e), &e);
	o.machine = objfile_machine(obj);
	uint64_t of[OUTCOME_COUNT] = { 0 };
	uint64_t bad = 0;
	for (uint64_t i = 0; i < points; i++) {
		struct point p = { &o, obj, t, 0, 0, objfile_section(obj, ".gopclntab") != NULL };
		if (!random_point(obj, &p.pc, &p.offset))
			break;
		struct unwind_rule rule = unwind_table_find(t, p.offset);
		enum outcome outcome = compare(&p, &rule);
		show(&p, &rule, outcome);
		of[outcome]++;
		totals[outcome]++;
		bad += !outcomes[outcome].good;
	}
	if (bad * 100 > points)
		print_message("%s: %llu of %llu differ\n", path, (unsigned long long)bad,
			(unsigned long long)points);
	oracle_close(&o);
	unwind_table_free(t);
	objfile_close(obj);
	return true;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 10) : otherwise;
}

static size_t list_folder(const char *folder, char **paths, size_t count)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	while (d && count < PATHS_MAX && (entry = readdir(d))) {
		char path[4096];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		/* Links would count their file twice. */
		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 4096)
			paths[count++] = strdup(path);
	}
	if (d)
		closedir(d);
	return count;
}

static void compare_random_files(
	uint64_t wanted, uint64_t points, const char *const *first, size_t first_count)
{
	static char *paths[PATHS_MAX];
	size_t count = list_folder("/usr/bin", paths, 0);
	count = list_folder("/usr/lib/x86_64-linux-gnu", paths, count);
	count = list_folder("/usr/sbin", paths, count);
	count = list_folder("/usr/libexec/gcc/x86_64-linux-gnu/12", paths, count);
	count = list_folder("/usr/lib/gcc/x86_64-linux-gnu/12", paths, count);
	uint64_t done = 0;
	for (size_t i = 0; i < first_count && done < wanted; i++)
		done += compare_file(first[i], points);
	for (size_t left = count; left > 0 && done < wanted; left--) {
		size_t pick = random_below(left);
		done += compare_file(paths[pick], points);
		char *path = paths[pick];
		paths[pick] = paths[left - 1];
		paths[left - 1] = path;
	}
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	print_message("%llu files\n", (unsigned long long)done);
}

static void agrees_with_libdw(void **state)
{
	(void)state;
	random_state = number_of("UNWIND_SEED", (uint64_t)time(NULL));
	uint64_t wanted = number_of("UNWIND_FILES", 24);
	uint64_t points = number_of("UNWIND_POINTS", 400);
	print_message("UNWIND_SEED=%llu\n", (unsigned long long)random_state);
	elf_version(EV_CURRENT);
	/* Always there: what nearly every stack goes through. */
	const char *const first[] = { "/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libcrypto.so.3" };
	const char *given = getenv("UNWIND_PATHS");
	if (given) {
		char *list = strdup(given);
		char *save = NULL;
		for (char *p = strtok_r(list, ":", &save); p; p = strtok_r(NULL, ":", &save))
			(void)compare_file(p, points);
		free(list);
	} else {
		compare_random_files(wanted, points, first, ARRAY_COUNT(first));
	}
	uint64_t all = 0, good = 0;
	for (int i = 0; i < OUTCOME_COUNT; i++) {
		all += totals[i];
		good += outcomes[i].good ? totals[i] : 0;
	}
	if (all == 0)
		SKIP("no file with call frame information");
	for (int i = 0; i < OUTCOME_COUNT; i++)
		print_message("%9.4f %% %-13s %s\n", 100.0 * (double)totals[i] / (double)all,
			outcomes[i].name, outcomes[i].text);
	print_message("%9.4f %% of %llu program counters agree\n",
		100.0 * (double)good / (double)all, (unsigned long long)all);
	CHECK((double)good >= 0.99 * (double)all);
	CHECK((double)totals[DIFFERENT] <= 0.001 * (double)all);
}

TEST_MAIN(cmocka_unit_test(agrees_with_libdw))
