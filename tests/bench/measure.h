/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, memory and processors of the benchmarks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t measure_now_ns(void);
/* Proportional set size of a process in KiB; @pid 0: own. */
uint64_t measure_pss_kib(int pid);

/* Touches all of it, with huge pages if BENCH_HUGE is 1 and without if not, whatever the system's default is. */
void measure_populate(void *memory, size_t size);

/* Processors that this process may run on. */
uint32_t measure_processors(void);
/* Puts the calling thread, and what it starts, on the @rank-th of them; after the last comes the first. */
void measure_pin(uint32_t rank);
/* Pins if BENCH_PIN is 1. BENCH_FIRST: the session's priority is the highest, as that of tests/bench/run; launchers make sessions. */
void measure_place(uint32_t rank);
