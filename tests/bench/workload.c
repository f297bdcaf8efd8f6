/* SPDX-License-Identifier: Apache-2.0 */
/* The common workload of the benchmarks. */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

#define ITERATIONS_MAX 50000u
#define REPETITIONS_MAX 15u
#define LINE 64u	/* bytes of a cache line */

enum pattern { PP, UNI, PAIR, RING, MESH, PATTERNS };

static const char *const pattern_names[PATTERNS] = { "pp", "uni", "pair", "ring", "mesh" };

struct workload_case {
	char text[64];
	enum pattern pattern;
	bool is_fresh;
	size_t size;
	uint32_t items;
};

/* A case while it runs. */
struct course {
	const struct workload *workload;
	struct workload_case spec;
	struct workload_item *items;
	uint32_t count;
	uint64_t batches;	/* so far; the same number at all ranks between repetitions */
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

/* PATTERN[!]:SIZE[k|m][:ITEMS] */
static int case_parse(const char *text, struct workload_case *ret_case)
{
	struct workload_case c = { .items = 1 };
	size_t length = strcspn(text, ":");
	char *end;

	if (!text[length])
		return -1;
	snprintf(c.text, sizeof(c.text), "%s", text);
	c.size = strtoull(text + length + 1, &end, 10);
	if (*end == 'k' || *end == 'm')
		c.size <<= *end++ == 'k' ? 10 : 20;
	if (*end == ':')
		c.items = (uint32_t)strtoul(end + 1, &end, 10);
	c.is_fresh = length > 0 && text[length - 1] == '!';
	length -= c.is_fresh;
	while (c.pattern < PATTERNS && (strlen(pattern_names[c.pattern]) != length || strncmp(text, pattern_names[c.pattern], length) != 0))
		c.pattern++;
	if (*end || !c.size || !c.items || c.pattern == PATTERNS)
		return -1;
	*ret_case = c;
	return 0;
}

static size_t stride(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

static uint32_t peer_count(const struct workload_case *c, uint32_t size)
{
	return c->pattern == MESH ? size - 1 : 1;
}

static size_t area_of(uint32_t size, int case_count, char **cases)
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

/* Receives, then sends, but for pp's even ranks; the n-th peer is at distance n. */
static void course_build(struct course *course)
{
	const struct workload *w = course->workload;
	const struct workload_case *c = &course->spec;
	const bool is_even = w->rank % 2 == 0;
	uint32_t peers = peer_count(c, w->size);

	for (int turn = 0; turn < 2; turn++) {
		bool sends = c->pattern == PP && is_even ? !turn : turn;
		size_t offset = 0;

		if (c->pattern == UNI && sends != is_even)
			continue;
		for (uint32_t distance = 1; distance <= peers; distance++) {
			uint32_t peer = (w->rank + (sends ? distance : w->size - distance)) % w->size;

			for (uint32_t k = 0; k < c->items; k++, offset += stride(c->size))
				course->items[course->count++] = (struct workload_item){
					.peer = c->pattern <= PAIR ? w->rank ^ 1 : peer, .sends = sends, .size = c->size,
					.buffer = w->areas[!sends] + offset,
				};
		}
	}
}

static unsigned char byte_of(uint32_t source, uint32_t destination, uint32_t k, size_t size, uint32_t salt)
{
	return (unsigned char)(source * 31 + destination * 17 + k * 7 + size + 3 + salt);
}

static void course_fill(struct course *course, uint32_t salt)
{
	for (uint32_t i = 0; i < course->count; i++) {
		struct workload_item *item = &course->items[i];
		unsigned char byte = byte_of(course->workload->rank, item->peer, i % course->spec.items, item->size, salt);

		memset(item->buffer, item->sends ? byte : 0, item->size);
	}
}

/* The sender's cores have every line of the data afterwards, the receivers' none. First and last line stay as filled. */
static void course_renew(struct course *course)
{
	for (uint32_t i = 0; i < course->count; i++)
		for (size_t at = LINE; course->items[i].sends && at + LINE < course->items[i].size; at += LINE)
			course->items[i].buffer[at] = (char)course->batches;
}

/* Every byte that was received: as filled or, if data are fresh, as of the last batch. */
static uint64_t course_check(const struct course *course, uint32_t salt)
{
	const struct workload *w = course->workload;
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < course->count; i++) {
		const struct workload_item *item = &course->items[i];
		unsigned char byte = byte_of(item->peer, w->rank, i % course->spec.items, item->size, salt);

		for (size_t at = 0; !item->sends && at < item->size; at++) {
			bool is_renewed = course->spec.is_fresh && at % LINE == 0 && at > 0 && at + LINE < item->size;

			wrong += (unsigned char)item->buffer[at] != (is_renewed ? (unsigned char)course->batches : byte);
		}
	}
	return wrong;
}

/* One batch; pp: there and back. Returns when it began. */
static uint64_t course_step(struct course *course)
{
	uint32_t first = course->spec.pattern == PP ? course->count / 2 : course->count;
	uint64_t start_ns = 0;

	course->batches++;
	if (course->spec.is_fresh) {
		course_renew(course);
		start_ns = measure_now_ns();
	}
	contender_batch(0, first);
	if (first < course->count)
		contender_batch(first, course->count - first);
	return start_ns;
}

/* The time of @count batches, at rank 0. */
static uint64_t course_time(struct course *course, uint64_t count)
{
	uint64_t start;

	contender_barrier();
	start = measure_now_ns();
	for (uint64_t i = 0; i < count; i++)
		course_step(course);
	return contender_broadcast(measure_now_ns() - start) + 1;
}

static uint64_t iterations_in(uint64_t ns, uint64_t count, uint64_t elapsed)
{
	uint64_t iterations = ns * count / elapsed;

	return iterations < 5 ? 5 : iterations > ITERATIONS_MAX ? ITERATIONS_MAX : iterations;
}

/* How many batches fill one repetition, when so many have been done before: whatever a contender sets up or learns in use is there then. */
static uint64_t course_calibrate(struct course *course)
{
	const uint64_t repetition_ns = course->workload->repetition_ns;
	uint64_t elapsed, count = 1;

	course_time(course, 2);
	for (;; count *= 4) {
		elapsed = course_time(course, count);
		if (elapsed > repetition_ns / 8 || count >= 20000)
			break;
	}
	count = iterations_in(repetition_ns, count, elapsed);
	return iterations_in(repetition_ns, count, course_time(course, count));
}

/* Returns the time of all batches, which is not that of writing fresh data. */
static uint64_t course_repeat(struct course *course, uint64_t *latencies, uint64_t iterations)
{
	uint64_t last, now, sum = 0;

	contender_barrier();
	last = measure_now_ns();
	for (uint64_t i = 0; i < iterations; i++) {
		uint64_t start = course_step(course);

		now = measure_now_ns();
		latencies[i] = now - (start ? start : last);
		last = now;
		sum += latencies[i];
	}
	return sum;
}

/* What has arrived in the end, and a batch more, whose data cannot be an older one's. */
static uint64_t course_verify(struct course *course)
{
	uint64_t wrong = course_check(course, 0);

	course_fill(course, 1);
	contender_barrier();
	course_step(course);
	return contender_maximum(wrong + course_check(course, 1));
}

static double median_ns(const uint64_t *values, uint64_t count)
{
	uint64_t *sorted = malloc(count * sizeof(*sorted)), median;

	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_uint);
	median = sorted[count / 2];
	free(sorted);
	return (double)median;
}

/* @p50, @mean: ns of each repetition, rank 0's and the slowest rank's. */
static void report(const struct course *course, uint64_t *latencies, uint64_t iterations, double *p50, double *mean, uint64_t wrong)
{
	const struct workload *w = course->workload;
	const struct workload_case *c = &course->spec;
	uint64_t all = iterations * w->repetitions;
	double messages = (double)c->items * peer_count(c, w->size) * w->size / (c->pattern == UNI ? 2 : 1), rate;

	if (w->rank)
		return;
	qsort(latencies, all, sizeof(*latencies), compare_uint);
	qsort(p50, w->repetitions, sizeof(*p50), compare_double);
	qsort(mean, w->repetitions, sizeof(*mean), compare_double);
	rate = messages / mean[w->repetitions / 2];
	printf("peer=%s np=%u case=%s iterations=%lu p50_us=%.3f p99_us=%.3f mean_us=%.3f kmsgs=%.1f gbps=%.3f bad=%lu\n", w->name, w->size,
	       c->text, (unsigned long)iterations, p50[w->repetitions / 2] / 1e3,
	       (double)latencies[(uint64_t)((double)(all - 1) * 0.99)] / 1e3, mean[w->repetitions / 2] / 1e3, rate * 1e6,
	       rate * (double)c->size, (unsigned long)wrong);
	fflush(stdout);
}

/* Returns the number of wrong bytes of the rank that has most of them. */
static uint64_t case_run(const struct workload *w, const struct workload_case *c)
{
	struct course course = { .workload = w, .spec = *c };
	double p50[REPETITIONS_MAX], mean[REPETITIONS_MAX];
	uint64_t *latencies, iterations, wrong;

	course.items = calloc(2 * (size_t)c->items * peer_count(c, w->size), sizeof(*course.items));
	course_build(&course);
	course_fill(&course, 0);
	contender_prepare(course.items, course.count);
	iterations = course_calibrate(&course);
	latencies = malloc(iterations * w->repetitions * sizeof(*latencies));
	for (uint32_t r = 0; r < w->repetitions; r++) {
		uint64_t elapsed = course_repeat(&course, latencies + r * iterations, iterations);

		mean[r] = (double)contender_maximum(elapsed) / (double)iterations;
		p50[r] = median_ns(latencies + r * iterations, iterations);
	}
	wrong = course_verify(&course);
	report(&course, latencies, iterations, p50, mean, wrong);
	free(latencies);
	free(course.items);
	return wrong;
}

void workload_init(struct workload *workload, const char *name, uint32_t rank, uint32_t size, int case_count, char **cases)
{
	const char *other_name = getenv("BENCH_NAME"), *ms = getenv("BENCH_MS");

	*workload = (struct workload){
		.name = other_name ? other_name : name, .rank = rank, .size = size, .area = area_of(size, case_count, cases),
		.repetition_ns = (ms ? strtoul(ms, NULL, 10) : 40) * 1000000ul, .repetitions = 3,
	};
}

int workload_run(const struct workload *workload, int case_count, char **cases)
{
	int bad = 0;

	for (int i = 0; i < case_count; i++) {
		struct workload_case c;

		if (case_parse(cases[i], &c) < 0) {
			if (!workload->rank)
				fprintf(stderr, "%s: expected PATTERN[!]:SIZE[:ITEMS]\n", cases[i]);
			bad++;
			continue;
		}
		if (c.pattern <= PAIR && workload->size % 2)
			continue;
		bad += case_run(workload, &c) != 0;
	}
	return bad;
}
