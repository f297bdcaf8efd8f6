/* SPDX-License-Identifier: Apache-2.0 */
/* Clock and memory of the benchmarks. */
#include "measure.h"

#include <stdio.h>
#include <time.h>

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
