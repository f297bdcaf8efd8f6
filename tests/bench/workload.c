/* SPDX-License-Identifier: Apache-2.0 */
/* The common workload of the benchmarks. */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

#define ITERATIONS_MAX 50000u
#define REPETITIONS_MAX 15u

struct workload_case {
	char text[64];
	char pattern[16];
	size_t size;
	uint32_t items;
};

static int compare_uint(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int case_parse(const char *text, struct workload_case *ret_case)
{
	struct workload_case *c = ret_case;
	unsigned long long size;
	char unit[2] = "";
	int n;

	memset(c, 0, sizeof(*c));
	snprintf(c->text, sizeof(c->text), "%s", text);
	n = sscanf(text, "%15[a-z]:%llu", c->pattern, &size);
	if (n != 2 || !strchr(text, ':') || !strrchr(text, ':'))
		return -1;
	sscanf(strchr(text, ':') + 1, "%*u%1[km]", unit);
	c->size = (size_t)size << (unit[0] == 'k' ? 10 : unit[0] == 'm' ? 20 : 0);
	c->items = strrchr(text, ':') == strchr(text, ':') ? 1 : (uint32_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
	return c->size && c->items ? 0 : -1;
}

static size_t stride(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

static uint32_t peer_count(const struct workload_case *c, uint32_t size)
{
	return strcmp(c->pattern, "mesh") == 0 ? size - 1 : 1;
}

size_t workload_area(uint32_t size, int case_count, char **cases)
{
	size_t area = 4096;

	for (int i = 0; i < case_count; i++) {
		struct workload_case c;
		size_t need;

		if (case_parse(cases[i], &c) < 0)
			continue;
		need = stride(c.size) * c.items * peer_count(&c, size);
		area = need > area ? need : area;
	}
	return area;
}

/* Receives first, then sends; the n-th peer is at distance n. */
static uint32_t case_build(const struct workload *w, const struct workload_case *c, struct workload_item *items)
{
	const bool pair = strcmp(c->pattern, "pair") == 0;
	uint32_t peers = peer_count(c, w->size), n = 0;

	for (int sends = 0; sends < 2; sends++) {
		size_t offset = 0;

		for (uint32_t distance = 1; distance <= peers; distance++) {
			uint32_t peer = (w->rank + (sends ? distance : w->size - distance)) % w->size;

			for (uint32_t k = 0; k < c->items; k++, offset += stride(c->size))
				items[n++] = (struct workload_item){
					.peer = pair ? w->rank ^ 1 : peer, .sends = sends, .size = c->size,
					.buffer = w->areas[!sends] + offset,
				};
		}
	}
	return n;
}

static unsigned char byte_of(uint32_t source, uint32_t destination, uint32_t k, size_t size)
{
	return (unsigned char)(source * 31 + destination * 17 + k * 7 + size + 3);
}

static void case_fill(const struct workload *w, const struct workload_item *items, uint32_t count, uint32_t per_peer)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = i % per_peer;

		memset(items[i].buffer, items[i].sends ? byte_of(w->rank, items[i].peer, k, items[i].size) : 0, items[i].size);
	}
}

static uint64_t case_check(const struct workload *w, const struct workload_item *items, uint32_t count, uint32_t per_peer)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < count; i++) {
		unsigned char byte = byte_of(items[i].peer, w->rank, i % per_peer, items[i].size);

		for (size_t at = 0; !items[i].sends && at < items[i].size; at++)
			wrong += (unsigned char)items[i].buffer[at] != byte;
	}
	return wrong;
}

/* How many batches fill one repetition. */
static uint64_t calibrate(const struct workload *w)
{
	uint64_t elapsed = 1, count = 1, iterations;

	contender_barrier();
	contender_batch();
	contender_batch();
	for (;; count *= 4) {
		uint64_t start;

		contender_barrier();
		start = measure_now_ns();
		for (uint64_t i = 0; i < count; i++)
			contender_batch();
		elapsed = contender_broadcast(measure_now_ns() - start);
		if (elapsed > w->repetition_ns / 8 || count >= 20000)
			break;
	}
	iterations = w->repetition_ns * count / (elapsed ? elapsed : 1);
	return iterations < 5 ? 5 : iterations > ITERATIONS_MAX ? ITERATIONS_MAX : iterations;
}

static void report(const struct workload *w, const struct workload_case *c, uint64_t *latencies, uint64_t iterations, double *p50,
		   double *rate, uint64_t wrong)
{
	uint64_t all = iterations * w->repetitions;

	if (w->rank)
		return;
	qsort(latencies, all, sizeof(*latencies), compare_uint);
	qsort(p50, w->repetitions, sizeof(*p50), compare_double);
	qsort(rate, w->repetitions, sizeof(*rate), compare_double);
	printf("peer=%s np=%u case=%s iterations=%lu p50_us=%.2f p99_us=%.2f kmsgs=%.1f gbps=%.3f bad=%lu\n", w->name, w->size, c->text,
	       (unsigned long)iterations, p50[w->repetitions / 2] / 1e3, (double)latencies[(uint64_t)((double)(all - 1) * 0.99)] / 1e3,
	       rate[w->repetitions / 2] * 1e6, rate[w->repetitions / 2] * (double)c->size, (unsigned long)wrong);
	fflush(stdout);
}

static uint64_t case_run(const struct workload *w, const struct workload_case *c)
{
	uint32_t count = 2 * c->items * peer_count(c, w->size), sends = count / 2;
	struct workload_item *items = calloc(count, sizeof(*items));
	double p50[REPETITIONS_MAX], rate[REPETITIONS_MAX];
	uint64_t *latencies, iterations, wrong;

	case_build(w, c, items);
	case_fill(w, items, count, c->items);
	contender_prepare(items, count);
	iterations = calibrate(w);
	latencies = malloc(iterations * w->repetitions * sizeof(*latencies));
	for (uint32_t r = 0; r < w->repetitions; r++) {
		uint64_t *l = latencies + r * iterations, start, last, *sorted;

		contender_barrier();
		start = last = measure_now_ns();
		for (uint64_t i = 0; i < iterations; i++) {
			uint64_t now;

			contender_batch();
			now = measure_now_ns();
			l[i] = now - last;
			last = now;
		}
		rate[r] = (double)sends * w->size * (double)iterations / (double)contender_maximum(last - start);
		sorted = malloc(iterations * sizeof(*sorted));
		memcpy(sorted, l, iterations * sizeof(*sorted));
		qsort(sorted, iterations, sizeof(*sorted), compare_uint);
		p50[r] = (double)sorted[iterations / 2];
		free(sorted);
	}
	wrong = contender_maximum(case_check(w, items, count, c->items));
	report(w, c, latencies, iterations, p50, rate, wrong);
	free(latencies);
	free(items);
	return wrong;
}

int workload_run(const struct workload *workload, int case_count, char **cases)
{
	int bad = 0;

	for (int i = 0; i < case_count; i++) {
		struct workload_case c;

		if (case_parse(cases[i], &c) < 0) {
			if (!workload->rank)
				fprintf(stderr, "%s: expected PATTERN:SIZE:ITEMS\n", cases[i]);
			bad++;
			continue;
		}
		if (strcmp(c.pattern, "pair") == 0 && workload->size % 2)
			continue;
		bad += case_run(workload, &c) != 0;
	}
	return bad;
}
