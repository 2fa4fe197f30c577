/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child process that reads untrusted ELF, DWARF and code. It is this program, started again
 * with
 *
 * 	firn __symtab MEMORY_BYTES CPU_SECONDS OUTPUT_BYTES FILES
 *
 * and descriptors: 0 the ELF file, 1 the table to write, 2 a pipe for one error message, 3 the
 * debug file, 4 the alternative file (FILES has a bit for each that exists). The child closes all
 * other descriptors, gives up priority and privileges, sets limits, and only then reads a byte. Its
 * exit status is an `enum status`. For instructions (code.c) descriptor 0 is a piece of code and 1
 * its listing; it loads libcapstone before all that, since the sandbox opens no file.
 */
#include "debuginfo/symtab/child.h"
#include "base/sanitized.h"
#include "debuginfo/symtab/readers.h"
#include "debuginfo/symtab/symtab.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NICE 10
/* Address space of the program itself before it maps a file. */
#define OWN_BYTES_MAX ((uint64_t)512 << 20)
#define CPU_SECONDS_MAX 86400

struct child {
	struct debuginfo_limits limits;
	unsigned files; /* bits */
};

static bool child_ready; /* the program's main() has called debuginfo_child_main() */

bool debuginfo_child_is_ready(void)
{
	return child_ready;
}

static enum status limit(int which, uint64_t value, struct err *e)
{
	struct rlimit l = { value, value };
	return setrlimit(which, &l) == 0 ? OK : err_os(e, "setrlimit %d", which);
}

static enum status set_limits(const struct child *c, struct err *e)
{
	uint64_t memory = c->limits.memory_bytes + OWN_BYTES_MAX;
	static const int fds[] = { 0, DEBUGINFO_CHILD_DEBUG_FD, DEBUGINFO_CHILD_ALT_FD };
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
		struct stat st;
		if (fstat(fds[i], &st) == 0)
			memory += (uint64_t)st.st_size; /* mapped */
	}
	enum status s = limit(RLIMIT_CORE, 0, e);
	if (s == OK && !SANITIZED) /* a sanitizer's shadow is terabytes of address space */
		s = limit(RLIMIT_AS, memory, e);
	if (s == OK)
		s = limit(RLIMIT_CPU, c->limits.cpu_seconds, e);
	if (s == OK)
		s = limit(RLIMIT_FSIZE, c->limits.output_bytes, e);
	if (s == OK)
		s = limit(RLIMIT_NOFILE, DEBUGINFO_CHILD_ALT_FD + 1, e);
	return s;
}

/* clang-format off */
static const int allowed[] = {
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(pwrite64), SCMP_SYS(lseek),
	SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(close), SCMP_SYS(fcntl),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk),
	SCMP_SYS(futex), SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
	SCMP_SYS(sched_yield), SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sysinfo), SCMP_SYS(exit), SCMP_SYS(exit_group),
#if SANITIZED
	/* for the reports of sanitizers */
	SCMP_SYS(sigaltstack), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(gettid),
	SCMP_SYS(getpid), SCMP_SYS(prctl), SCMP_SYS(getrlimit), SCMP_SYS(prlimit64), SCMP_SYS(tgkill),
	SCMP_SYS(sched_getaffinity),
#endif
};
/* Libraries try these calls and can do without them: they get EPERM. Any other call ends the
 * process. */
static const int refused[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(stat), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(access), SCMP_SYS(ioctl), SCMP_SYS(statx),
};
/* clang-format on */

/* mmap and mprotect, but nothing executable. */
static int allow_data_memory(scmp_filter_ctx ctx)
{
	const uint64_t exec = PROT_EXEC;
	int rc = seccomp_rule_add(
		ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, exec, 0));
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, exec, 0));
	return rc;
}

static enum status lock_in(struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!ctx)
		return err_set(e, E_NOMEM, "seccomp filter");
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(allowed); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(refused); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	if (rc == 0)
		rc = allow_data_memory(ctx);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc != 0) {
		errno = -rc;
		return err_os(e, "seccomp");
	}
	return OK;
}

static enum status enter_sandbox(const struct child *c, struct err *e)
{
	if (close_range(DEBUGINFO_CHILD_ALT_FD + 1, ~0U, 0) != 0)
		return err_os(e, "close_range");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "firn-symtab");
	/* A server whose nice value is higher already keeps it: lowering it needs a privilege. */
	if (getpriority(PRIO_PROCESS, 0) < NICE && setpriority(PRIO_PROCESS, 0, NICE) != 0)
		return err_os(e, "setpriority");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_os(e, "no_new_privs");
	enum status s = set_limits(c, e);
	return s == OK ? lock_in(e) : s;
}

static bool is_there(const struct child *c, enum debuginfo_child_file bit)
{
	return c->files & bit;
}

/* Reads all names into the builder. The Elf handles stay open: symbols point into them. */
static enum status read_all(const struct child *c, struct debuginfo_builder *b, struct err *e)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(0, ELF_C_READ_MMAP, NULL);
	Elf *debug = is_there(c, DEBUGINFO_CHILD_DEBUG)
			     ? elf_begin(DEBUGINFO_CHILD_DEBUG_FD, ELF_C_READ_MMAP, NULL)
			     : NULL;
	Elf *alt = is_there(c, DEBUGINFO_CHILD_ALT)
			   ? elf_begin(DEBUGINFO_CHILD_ALT_FD, ELF_C_READ_MMAP, NULL)
			   : NULL;
	if (!elf)
		return err_set(e, E_INVALID, "not an ELF file: %s", elf_errmsg(-1));
	enum status s = debuginfo_read_headers(b, elf, e);
	if (s != OK)
		return s;
	Elf *mini = NULL;
	struct buf mini_bytes = { 0 };
	if (debug)
		s = debuginfo_read_symbols(b, debug, SYMTAB_SYMTAB);
	if (s == OK)
		s = debuginfo_read_symbols(b, elf, SYMTAB_SYMTAB);
	if (s == OK)
		s = debuginfo_read_minidebuginfo(b, elf, &mini_bytes, &mini);
	if (s == OK)
		s = debuginfo_read_plt(b, elf);
	if (s == OK && !(b->flags & SYMTAB_SYMTAB))
		s = debuginfo_read_ehframe(b, elf);
	if (s == OK)
		s = debuginfo_symbols_settle(b);
	if (s != OK)
		return err_set(e, s, "symbols");
	struct debuginfo_dwarf_limits limits = {
		.memory_bytes = c->limits.memory_bytes / 4 * 3,
		.cpu_ns = (int64_t)c->limits.cpu_seconds * 1000000000 / 4 * 3,
	};
	if (is_there(c, DEBUGINFO_CHILD_NO_DWARF)) {
		b->flags |= SYMTAB_DWARF_DAMAGED;
	} else {
		debuginfo_read_dwarf(b, elf, alt, &limits);
		if (debug && !(b->flags & SYMTAB_DWARF))
			debuginfo_read_dwarf(b, debug, alt, &limits);
	}
	if (!(b->flags & SYMTAB_DWARF))
		s = debuginfo_read_gopclntab(b, elf);
	if (s == OK)
		s = debuginfo_builder_settle(b);
	return s == OK ? OK : err_set(e, s, "merging");
}

static enum status run(const struct child *c, struct err *e)
{
	enum status s = is_there(c, DEBUGINFO_CHILD_CODE) ? debuginfo_code_load(e) : OK;
	if (s == OK)
		s = enter_sandbox(c, e);
	if (s != OK)
		return s;
	if (is_there(c, DEBUGINFO_CHILD_CODE))
		return debuginfo_list_code(0, 1, e);
	struct debuginfo_builder b;
	s = debuginfo_builder_init(&b, c->limits.memory_bytes);
	if (s != OK)
		return err_set(e, s, "builder");
	s = read_all(c, &b, e);
	if (s == OK)
		s = debuginfo_builder_write(&b, 1, c->limits.output_bytes, e);
	return s; /* nothing is freed, as the process ends */
}

static bool parse(int argc, char **argv, struct child *out)
{
	uint64_t memory, cpu, output, files;
	if (argc != 6 || !str_parse_u64(str_of(argv[2]), 10, &memory) ||
		!str_parse_u64(str_of(argv[3]), 10, &cpu) ||
		!str_parse_u64(str_of(argv[4]), 10, &output) ||
		!str_parse_u64(str_of(argv[5]), 10, &files) || cpu > CPU_SECONDS_MAX ||
		memory > UINT64_MAX / 4 || files > 15)
		return false;
	out->limits = (struct debuginfo_limits){ memory, (uint32_t)cpu, output };
	out->files = (unsigned)files;
	return true;
}

int debuginfo_child_main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], DEBUGINFO_CHILD_VERB) != 0) {
		child_ready = true;
		return -1;
	}
	struct child c = { 0 };
	struct err e = { 0 };
	enum status s = parse(argc, argv, &c)
				? run(&c, &e)
				: err_set(&e, E_INVALID, "this verb is not for people");
	if (s != OK) {
		const char *text = err_text(&e, s);
		(void)!write(STDERR_FILENO, text, strlen(text));
	}
	_exit((int)s);
}
