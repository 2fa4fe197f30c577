/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burner SECONDS: C++ without frame pointers, stripped, 40 calls deep, burning one CPU; measures
 * the share of CPU time of its functions itself, and prints at its end
 *
 *	{"functions":[{"name":"alpha","share":0.5,"begin":4660,"end":4800},…]}
 *
 * share: of the process' CPU time, with what the function calls; begin, end: link-time addresses.
 *
 * Each measured function lies in a section of its own, so that the linker gives its bounds also
 * where there are no symbols.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <signal.h>
#include <sys/prctl.h>

#ifdef __clang__ /* which knows no other word for it */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define MEASURED(section_name) NOINLINE __attribute__((section(section_name)))

extern "C" const char __ehdr_start[];
#define BOUNDS(fn) extern "C" const char __start_##fn[], __stop_##fn[];
BOUNDS(fn_alpha)
BOUNDS(fn_beta)
BOUNDS(fn_gamma)
BOUNDS(fn_delta)

namespace
{

constexpr int DEPTH = 40;
constexpr uint32_t UNIT_ROUNDS = 10000; /* some 20 us: measuring costs far less than 1 % */

volatile uint64_t sink;
uint64_t deadline_ns;

uint64_t now_ns(clockid_t clock)
{
	timespec t;
	clock_gettime(clock, &t);
	return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

struct Clock {
	uint64_t total_ns = 0;
};
Clock alpha_clock, beta_clock, gamma_clock, delta_clock;

/* Adds the CPU time of a scope to a clock. */
class Timer
{
      public:
	explicit Timer(Clock &c) : clock(c), begin(now_ns(CLOCK_THREAD_CPUTIME_ID))
	{
	}
	~Timer()
	{
		clock.total_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	}

      private:
	Clock &clock;
	uint64_t begin;
};

inline __attribute__((always_inline)) uint64_t spin(uint64_t x, uint32_t units)
{
	for (uint32_t i = 0; i < units * UNIT_ROUNDS; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		sink = x;
	}
	return x;
}

MEASURED("fn_alpha") uint64_t alpha(uint64_t x)
{
	return spin(x, 50);
}

MEASURED("fn_beta") uint64_t beta(uint64_t x)
{
	return spin(x, 30);
}

MEASURED("fn_gamma") uint64_t gamma_of(uint64_t x)
{
	return spin(x, 15);
}

/* 5 units of its own, and gamma's 15. */
MEASURED("fn_delta") uint64_t delta(uint64_t x)
{
	x = spin(x, 5);
	Timer timer(gamma_clock);
	return gamma_of(x) + 1;
}

struct Work {
	virtual ~Work() = default;
	virtual uint64_t run(uint64_t x) = 0;
};

struct Round final : Work {
	NOINLINE uint64_t run(uint64_t x) override
	{
		{
			Timer timer(alpha_clock);
			x = alpha(x);
		}
		{
			Timer timer(beta_clock);
			x = beta(x);
		}
		Timer timer(delta_clock);
		return delta(x) + 1;
	}
};

template <int N> struct Level {
	NOINLINE static uint64_t call(Work &work, uint64_t x)
	{
		volatile char room[8 + N % 5 * 16];
		room[x & 7] = char(N);
		uint64_t below = Level<N - 1>::call(work, x + N);
		return below + uint64_t(room[0]);
	}
};

template <> struct Level<0> {
	NOINLINE static uint64_t call(Work &work, uint64_t x)
	{
		while (now_ns(CLOCK_MONOTONIC) < deadline_ns)
			x = work.run(x) + 1;
		return x;
	}
};

void print_function(const char *name, const Clock &c, const char *begin, const char *end,
	double total_ns, const char *separator)
{
	printf("{\"name\":\"%s\",\"share\":%.6f,\"begin\":%lu,\"end\":%lu}%s", name,
		double(c.total_ns) / total_ns, (unsigned long)(begin - __ehdr_start),
		(unsigned long)(end - __ehdr_start), separator);
}

} // namespace

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	double seconds = argc > 1 ? strtod(argv[1], nullptr) : 1;
	deadline_ns = now_ns(CLOCK_MONOTONIC) + uint64_t(seconds * 1e9);
	std::unique_ptr<Work> work(new Round);
	sink = Level<DEPTH - 1>::call(*work, 1);
	double total = double(now_ns(CLOCK_PROCESS_CPUTIME_ID));
	printf("{\"functions\":[");
	print_function("alpha", alpha_clock, __start_fn_alpha, __stop_fn_alpha, total, ",");
	print_function("beta", beta_clock, __start_fn_beta, __stop_fn_beta, total, ",");
	print_function("gamma", gamma_clock, __start_fn_gamma, __stop_fn_gamma, total, ",");
	print_function("delta", delta_clock, __start_fn_delta, __stop_fn_delta, total, "");
	printf("]}\n");
	return 0;
}
