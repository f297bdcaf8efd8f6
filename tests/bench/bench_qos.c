/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What large messages of one communicator cost the small ones of another: bench_qos PATH TENANTS [ROUNDS [LIMIT]]. Two processes exchange 8 bytes
 * again and again, alone and beside two others that exchange 64 MiB, in turns. PATH: direct or engine (local_path); TENANTS: 1, or 2, which
 * needs root. Prints p50 and p99 of both, medians over the rounds. Data are checked. LIMIT: status 1 if the best p50 beside is more than
 * so many times the worst alone.
 */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"
#include "ranks.h"
#include "tests/support/private_daemon.h"

#define SMALL 8u
#define LARGE (64u << 20)
#define STRANGER 61001u
#define IDLE_NS 300000000u
#define BESIDE_NS 1000000000u
#define SETTLE_NS 100000000u
#define SAMPLES (1u << 20)
#define ROUNDS_MAX 100u

enum phase { PHASE_START, PHASE_IDLE, PHASE_BESIDE, PHASE_END };

static struct shared {
	HcclRootInfo roots[2];
	_Atomic uint32_t has_root[2], joined;
	_Atomic uint32_t phase;		/* enum phase; the first small rank's */
	_Atomic uint64_t large_sent;	/* exchanges of 64 MiB that the first large rank has begun */
	_Atomic uint32_t large_stops;
	_Atomic uint64_t large_bytes;
} *shared;

static uint64_t samples[SAMPLES];
static double p50s[PHASE_END][ROUNDS_MAX], p99s[PHASE_END][ROUNDS_MAX], rates[ROUNDS_MAX];

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static int compare_samples(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_figures(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *figures, uint32_t count)
{
	qsort(figures, count, sizeof(*figures), compare_figures);
	return figures[count / 2];
}

static struct rank join(uint32_t comm, uint32_t number)
{
	struct rank rank = { .rank = number, .size = 2 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(aclrtSetDevice((int32_t)number));
	if (number == 0) {
		MUST(HcclGetRootInfo(&shared->roots[comm]));
		atomic_store(&shared->has_root[comm], 1);
	}
	while (!atomic_load(&shared->has_root[comm]))
		nap();
	MUST(HcclCommInitRootInfo(2, &shared->roots[comm], number, &rank.comm));
	MUST(aclrtCreateStream(&rank.stream));
	atomic_fetch_add(&shared->joined, 1);
	while (atomic_load(&shared->joined) < 4)
		nap();
	return rank;
}

static void exchange(const struct rank *rank, char *data, uint64_t bytes)
{
	HcclSendRecvItem items[] = { { HCCL_SEND, data, bytes, HCCL_DATA_TYPE_INT8, 1 - rank->rank },
				     { HCCL_RECV, data + bytes, bytes, HCCL_DATA_TYPE_INT8, 1 - rank->rank } };

	MUST(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	MUST(aclrtSynchronizeStream(rank->stream));
}

static void check_data(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "%s: wrong data\n", what);
	exit(1);
}

/* ---- 64 MiB ---- */

static int large_rank(uint32_t number)
{
	struct rank rank = join(1, number);
	char *data = ranks_memory(2 * (uint64_t)LARGE);

	for (uint64_t i = 1;; i++) {
		/* the first says when */
		while (number == 0 && atomic_load(&shared->phase) != PHASE_BESIDE && atomic_load(&shared->phase) != PHASE_END)
			nap();
		if (number == 0 && atomic_load(&shared->phase) == PHASE_END)
			atomic_store(&shared->large_stops, 1);
		else if (number == 0)
			atomic_store(&shared->large_sent, i);
		while (atomic_load(&shared->large_sent) < i && !atomic_load(&shared->large_stops))
			nap();
		if (atomic_load(&shared->large_stops))
			return 0;
		data[0] = data[LARGE - 1] = (char)(i + number);
		exchange(&rank, data, LARGE);
		check_data(data[LARGE] == (char)(i + 1 - number) && data[2 * (uint64_t)LARGE - 1] == (char)(i + 1 - number), "64 MiB");
		atomic_fetch_add(&shared->large_bytes, LARGE);
	}
}

/* ---- 8 bytes ---- */

/* The first rank's data say what comes: a number that grows, the lowest bit is set in the last exchange. */
static uint32_t small_phase(const struct rank *rank, char *data, uint64_t *number, uint64_t for_ns)
{
	uint64_t end_ns = measure_now_ns() + for_ns, got = 0;
	uint32_t count = 0;

	do {
		uint64_t start_ns = measure_now_ns(), put;

		*number += 2;
		put = *number | (start_ns >= end_ns || count == SAMPLES - 1);
		memcpy(data, &put, SMALL);
		exchange(rank, data, SMALL);
		memcpy(&got, data + SMALL, SMALL);
		check_data(got >> 1 == *number >> 1, "8 bytes");
		samples[count++] = measure_now_ns() - start_ns;
		if (rank->rank == 0)
			got = put;
	} while (!(got & 1));
	return count;
}

static void small_keep(enum phase phase, uint32_t round, uint32_t count)
{
	qsort(samples, count, sizeof(*samples), compare_samples);
	p50s[phase][round] = (double)samples[count / 2] / 1000;
	p99s[phase][round] = (double)samples[count - 1 - count / 100] / 1000;
}

static int report(uint32_t rounds, double limit)
{
	/* sorts them */
	double idle = median(p50s[PHASE_IDLE], rounds), beside = median(p50s[PHASE_BESIDE], rounds);

	printf("qos idle p50=%.2f p99=%.1f beside p50=%.2f p99=%.1f us, ratio %.2f (%.2f to %.2f us); 64 MiB: %.1f GB/s\n", idle,
	       median(p99s[PHASE_IDLE], rounds), beside, median(p99s[PHASE_BESIDE], rounds), beside / idle, p50s[PHASE_BESIDE][0],
	       p50s[PHASE_BESIDE][rounds - 1], median(rates, rounds));
	return limit > 0 && p50s[PHASE_BESIDE][0] > limit * p50s[PHASE_IDLE][rounds - 1];
}

static int small_rank(uint32_t number, uint32_t rounds, double limit)
{
	struct rank rank = join(0, number);
	char *data = ranks_memory(4096);
	uint64_t count = 0;

	for (uint32_t round = 0; round < rounds; round++) {
		for (enum phase phase = PHASE_IDLE; phase <= PHASE_BESIDE; phase++) {
			uint64_t bytes, since_ns;

			/* both have to be at it before it counts */
			if (number == 0)
				atomic_store(&shared->phase, phase);
			small_phase(&rank, data, &count, SETTLE_NS);
			bytes = atomic_load(&shared->large_bytes);
			since_ns = measure_now_ns();
			small_keep(phase, round, small_phase(&rank, data, &count, phase == PHASE_IDLE ? IDLE_NS : BESIDE_NS));
			if (phase == PHASE_BESIDE)
				rates[round] = (double)(atomic_load(&shared->large_bytes) - bytes) / (double)(measure_now_ns() - since_ns);
		}
	}
	if (number != 0)
		return 0;
	atomic_store(&shared->phase, PHASE_END);
	return report(rounds, limit);
}

static void become_stranger(void)
{
	if (setgroups(0, NULL) == 0 && setresgid(STRANGER, STRANGER, STRANGER) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0)
		return;
	fprintf(stderr, "a second tenant needs root\n");
	_exit(77);
}

int main(int argc, char **argv)
{
	const char *options[] = { "--local-path", argc > 1 ? argv[1] : "", NULL };
	uint32_t tenants = argc > 2 ? (uint32_t)atoi(argv[2]) : 0, rounds = argc > 3 ? (uint32_t)atoi(argv[3]) : 5;
	struct private_daemon daemon;
	int failed = 0, status;

	if (argc < 3 || tenants < 1 || tenants > 2 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_qos direct|engine 1|2 [ROUNDS [LIMIT]]\n");
		return 2;
	}
	if (tenants == 2 && geteuid() != 0) {
		puts("a second tenant needs root");
		return 77;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || private_daemon_start(&daemon, options, NULL) < 0)
		return 1;
	chmod(daemon.directory, 0755);
	chmod(daemon.socket, 0666);
	for (uint32_t i = 0; i < 4; i++) {
		if (fork() != 0)
			continue;
		if (i >= 2 && tenants == 2)
			become_stranger();
		exit(i < 2 ? small_rank(i, rounds, argc > 4 ? atof(argv[4]) : 0) : large_rank(i - 2));
	}
	for (int left = 4; left > 0 && !failed; left--)
		failed = wait(&status) < 0 || status != 0;
	/* those that are left end with this process */
	return (private_daemon_stop(&daemon) != 0) | failed;
}
