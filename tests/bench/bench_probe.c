/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the first two processors are from each other at the moment: bench_probe. Two threads pass a cache line to and fro for 20 ms.
 * Prints the median round trip, and "near" if the two must share a cache, else "far". Virtual processors change places, and a comparison
 * counts in one state only. One processor: "alone".
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

#define PROBE_NS 20000000u
#define TURNS 64u	/* round trips of a sample: 6 to 30 us */
#define SAMPLES 8192u
#define NEAR_NS 250	/* 100 to 110 ns were seen with a shared cache, 460 to 510 without */

static _Alignas(128) _Atomic uint64_t there;
static _Alignas(128) _Atomic uint64_t back;

static void *answer(void *data)
{
	(void)data;
	measure_pin(1);
	for (uint64_t seen = 0; seen != UINT64_MAX;) {
		uint64_t next = atomic_load_explicit(&there, memory_order_acquire);

		if (next == seen)
			continue;
		seen = next;
		atomic_store_explicit(&back, seen, memory_order_release);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	static uint64_t samples[SAMPLES];
	uint64_t end_ns, start_ns, value = 0;
	uint32_t count = 0;
	pthread_t thread;
	double ns;

	if (measure_processors() < 2)
		return puts("probe ns=0 state=alone"), 0;
	if (pthread_create(&thread, NULL, answer, NULL))
		return 1;
	measure_pin(0);	/* not before: the other thread would inherit it */
	end_ns = measure_now_ns() + PROBE_NS;
	do {
		start_ns = measure_now_ns();
		for (uint32_t i = 0; i < TURNS; i++) {
			atomic_store_explicit(&there, ++value, memory_order_release);
			while (atomic_load_explicit(&back, memory_order_acquire) != value)
				;
		}
		samples[count++] = measure_now_ns() - start_ns;
	} while (count < SAMPLES && samples[count - 1] + start_ns < end_ns);
	atomic_store(&there, UINT64_MAX);
	pthread_join(thread, NULL);
	qsort(samples, count, sizeof(*samples), compare);
	ns = (double)samples[count / 2] / TURNS;
	printf("probe ns=%.0f state=%s\n", ns, ns < NEAR_NS ? "near" : "far");
	return 0;
}
