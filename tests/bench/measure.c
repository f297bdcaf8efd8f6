/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, memory and processors of the benchmarks. */
#include "measure.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t measure_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t measure_pss_kib(int pid)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *file;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/smaps_rollup");
	file = fopen(path, "r");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %lu", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

static bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && strcmp(text, "1") == 0;
}

void measure_populate(void *memory, size_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)memory + page - 1) & ~(page - 1), end = ((uintptr_t)memory + size) & ~(page - 1);

	if (end > first)
		madvise((void *)first, end - first, is_set("BENCH_HUGE") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(memory, 0, size);
}

uint32_t measure_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (uint32_t)CPU_COUNT(&set);
}

void measure_place(uint32_t rank)
{
	FILE *file = is_set("BENCH_FIRST") ? fopen("/proc/self/autogroup", "w") : NULL;

	if (file) {
		fputs("-20", file);
		fclose(file);
	}
	if (is_set("BENCH_PIN"))
		measure_pin(rank);
}

void measure_pin(uint32_t rank)
{
	cpu_set_t set, one;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	rank %= (uint32_t)CPU_COUNT(&set);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set) || rank-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}
