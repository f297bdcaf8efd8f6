/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a job that exchanges data with every other rank, round after round, until it is told to stop, or a peer is killed.
 *   rank FILE ROUNDS EXPECT [K|held]   RANK_ID, RANK_SIZE, DEVICE_ID from the environment; rank 0 writes the root info to FILE
 * EXPECT: "ok": all rounds must pass with the right bytes (exit status 0). "held": the last one begins when standard input ends.
 *         "death K": some operation must fail with 507057 and name rank K within 2 s of the last success (exit status 0).
 *         "survives K POINT": rank K dies at POINT (tests/kill/points.c) if it gets there; the others are told as above, and go on without it in
 *         a communicator of their own. Rounds are of many kinds: with copies within the rank, naps, work that is left to the engine.
 *         "any": rounds may fail with a named error of ours; wrong bytes never (exit status 0, or 3 after an error).
 * Messages are of 8 B to 3 MiB (1 MiB with more than 4 ranks), those of "survives" and of RANK_LARGE=1 also such that the engine shares with
 * who waits; a byte of every page is checked, and the ends.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

static uint32_t rank, size;

static void fail(const char *what, int code)
{
	const char *text = aclGetRecentErrMsg();

	fprintf(stderr, "rank %u: %s: %d %s\n", rank, what, code, text ? text : "(no text)");
	exit(1);
}

#define CHECK(x)                               \
	do {                                   \
		int r_ = (int)(x);             \
		if (r_ != 0)                   \
			fail(#x, r_);          \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void root_info(const char *path, HcclRootInfo *root)
{
	char part[4096];
	FILE *f;

	if (rank == 0) {
		CHECK(HcclGetRootInfo(root));
		snprintf(part, sizeof(part), "%s.part", path);
		f = fopen(part, "wb");
		if (!f || fwrite(root, sizeof(*root), 1, f) != 1 || fclose(f) != 0 || rename(part, path) != 0)
			fail("root info", 0);
		return;
	}
	for (int tries = 0; !(f = fopen(path, "rb")); tries++) {
		if (tries == 5000)
			fail("no root info", 0);
		usleep(2000);
	}
	if (fread(root, sizeof(*root), 1, f) != 1)
		fail("root info", 0);
	fclose(f);
}

#define LARGE (5u << 20)	/* more than clients copy by themselves */
static const uint64_t sizes[] = { 8, 4096, 70000, 3u << 20, 40, 65536 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
static const uint64_t large_sizes[] = { LARGE, 8, LARGE + 4097 };
#define LARGE_SIZES (sizeof(large_sizes) / sizeof(large_sizes[0]))
static const uint64_t varied_sizes[] = { 8, 300, 40, 4096, 70000, 8, 40000, 8, 40, 300, 8, LARGE };
#define VARIED_SIZES (sizeof(varied_sizes) / sizeof(varied_sizes[0]))
#define RANKS_OF_LARGE 4u
#define MANY_MAX (1u << 20)	/* for more ranks: to give them memory takes longer than all else */
#define GO_ON_ROUNDS 20u
#define COPIED 1024u
#define AREA (is_varied || is_large ? 6u << 20 : size > RANKS_OF_LARGE ? MANY_MAX : 4u << 20)

static bool is_varied, is_large;

static unsigned char pattern(uint32_t source, uint32_t destination, uint64_t round, uint64_t at)
{
	return (unsigned char)(source * 37 + destination * 11 + round * 5 + (at >> 12) * 3 + at);
}

static uint64_t check_bytes(const unsigned char *data, uint64_t bytes, uint32_t source, uint64_t round)
{
	uint64_t bad = 0;

	for (uint64_t at = 0; at < bytes; at += at + 4096 < bytes ? 4096 : (at == bytes - 1 ? 1 : bytes - 1 - at))
		bad += data[at] != pattern(source, rank, round, at);
	return bad;
}

static void fill(unsigned char *data, uint64_t bytes, uint32_t destination, uint64_t round)
{
	for (uint64_t at = 0; at < bytes; at += at + 4096 < bytes ? 4096 : (at == bytes - 1 ? 1 : bytes - 1 - at))
		data[at] = pattern(rank, destination, round, at);
}

/* What makes threads sleep, and leave contexts to the engine. A result code. */
static int vary(aclrtStream stream, unsigned char *send, unsigned char *receive, bool is_submitted)
{
	uint32_t dice = (uint32_t)rand() % 16;
	unsigned char *from = send + rank * (uint64_t)AREA, *to = receive + rank * (uint64_t)AREA;

	if (!is_varied)
		return 0;
	if (dice < 4)
		usleep(is_submitted ? 1500 : dice * 100);
	return is_submitted ? 0 : (int)aclrtMemcpyAsync(to, COPIED, from, COPIED, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
}

/* One round; a result code of ours, 0 if all bytes are right. */
static int exchange(HcclComm comm, aclrtStream stream, unsigned char *send, unsigned char *receive, uint64_t round)
{
	HcclSendRecvItem items[64];
	uint64_t bytes = is_varied  ? varied_sizes[round % VARIED_SIZES]
			 : is_large ? large_sizes[round % LARGE_SIZES]
				    : sizes[round % SIZES];
	uint64_t bad = 0;
	uint32_t n = 0;
	int r;

	if (bytes > AREA)
		bytes = AREA;
	for (uint32_t d = 1; d < size; d++) {
		uint32_t to = (rank + d) % size, from = (rank + size - d) % size;

		fill(send + to * (uint64_t)AREA, bytes, to, round);
		items[n++] = (HcclSendRecvItem){ HCCL_SEND, send + to * (uint64_t)AREA, bytes, HCCL_DATA_TYPE_INT8, to };
		items[n++] = (HcclSendRecvItem){ HCCL_RECV, receive + from * (uint64_t)AREA, bytes, HCCL_DATA_TYPE_INT8, from };
	}
	memset(send + rank * (uint64_t)AREA, (int)round, COPIED);
	r = vary(stream, send, receive, false);
	if (r == 0)
		r = HcclBatchSendRecv(items, n, comm, stream);
	if (r == 0)
		r = vary(stream, send, receive, true);
	if (r)
		return r;
	r = aclrtSynchronizeStream(stream);
	if (r)
		return r;
	for (uint32_t from = 0; from < size; from++)
		if (from != rank)
			bad += check_bytes(receive + from * (uint64_t)AREA, bytes, from, round);
	if (is_varied)
		bad += memcmp(receive + rank * (uint64_t)AREA, send + rank * (uint64_t)AREA, COPIED) != 0;
	if (bad) {
		void *more;

		/* the memory of an ended session is zeros, which says nothing about the transfer */
		r = aclrtMalloc(&more, AREA, ACL_MEM_MALLOC_HUGE_FIRST);
		if (r)
			return r;
		fprintf(stderr, "rank %u: round %llu: %llu wrong bytes\n", rank, (unsigned long long)round, (unsigned long long)bad);
		exit(9);
	}
	return 0;
}

/* Who is left has a communicator of its own. */
static void go_on(const char *path, uint32_t dead, aclrtStream stream, unsigned char *send, unsigned char *receive)
{
	char next[4096];
	HcclRootInfo root;
	HcclComm comm = NULL;

	snprintf(next, sizeof(next), "%s.next", path);
	rank -= rank > dead;
	size--;
	root_info(next, &root);
	CHECK(HcclCommInitRootInfo(size, &root, rank, &comm));
	for (uint32_t round = 0; round < GO_ON_ROUNDS; round++)
		CHECK(exchange(comm, stream, send, receive, round));
	CHECK(HcclCommDestroy(comm));
}

static void read_to_end(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

/* The rounds have ended with @r, @ms after the last one: the exit status, 0 if that was expected, -1 if there is more to do. */
static int judge(int r, uint64_t round, double ms, const char *expect, const char *dead)
{
	const char *text = aclGetRecentErrMsg();
	char wanted[32];

	if (!r)
		return strcmp(expect, "death") == 0 ? 7 : 0;
	fprintf(stderr, "rank %u: round %llu: error %d after %.0f ms: %s\n", rank, (unsigned long long)round, r, ms,
		text ? text : "(no text)");
	if (!text)
		return 4;
	if (strcmp(expect, "any") == 0)
		return 3;
	if ((strcmp(expect, "death") != 0 && !is_varied) || !dead)
		return 5;
	snprintf(wanted, sizeof(wanted), "rank %s", dead);
	/* the first cause: the killed rank. A peer that gave up because of it may be reported too, never instead of it. */
	if (r != 507057 || ms > 2500 || !strstr(text, wanted))
		return 6;
	return is_varied ? -1 : 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds, round;
	void *send = NULL, *receive = NULL;
	HcclComm comm = NULL;
	aclrtStream stream = NULL;
	HcclRootInfo root;
	double last;
	int r = 0;

	if (argc < 4)
		return 2;
	/* here and not by who starts it: the user need not be able to read the libraries */
	if (getenv("RANK_USER") && (setuid((uid_t)atoi(getenv("RANK_USER"))) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
		return 2;
	rank = (uint32_t)atoi(getenv("RANK_ID"));
	size = (uint32_t)atoi(getenv("RANK_SIZE"));
	rounds = strtoull(argv[2], NULL, 10);
	is_large = getenv("RANK_LARGE") != NULL;
	is_varied = strcmp(argv[3], "survives") == 0 && argc > 5;
	srand(rank + (unsigned int)rounds);
	CHECK(aclInit(NULL));
	CHECK(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
	root_info(argv[1], &root);
	CHECK(HcclCommInitRootInfo(size, &root, rank, &comm));
	CHECK(aclrtCreateStream(&stream));
	CHECK(aclrtMalloc(&send, size * (size_t)AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	CHECK(aclrtMalloc(&receive, size * (size_t)AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	CHECK(HcclBarrier(comm, stream));
	CHECK(aclrtSynchronizeStream(stream));
	if (is_varied && rank == (uint32_t)atoi(argv[4]))
		setenv("HCCLD_CRASH_POINT", argv[5], 1);
	printf("ready\n");
	fflush(stdout);
	last = now();
	for (round = 0; round < rounds; round++) {
		if (round == rounds - 1 && argc > 4 && strcmp(argv[4], "held") == 0)
			read_to_end();
		r = exchange(comm, stream, send, receive, round);
		if (r)
			break;
		last = now();
	}
	r = judge(r, round, (now() - last) * 1000, argv[3], argc > 4 ? argv[4] : NULL);
	if (r > 0)
		return r;
	if (r < 0) {
		CHECK(HcclCommDestroy(comm));
		comm = NULL;
		go_on(argv[1], (uint32_t)atoi(argv[4]), stream, send, receive);
	}
	CHECK(aclrtDestroyStream(stream));
	if (comm)
		CHECK(HcclCommDestroy(comm));
	CHECK(aclrtFree(send));
	CHECK(aclrtFree(receive));
	CHECK(aclrtResetDevice(atoi(getenv("DEVICE_ID"))));
	return 0;
}
