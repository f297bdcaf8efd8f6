/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two ranks that exchange data while somebody else lies to the daemon. Every byte is looked at, and no round may take long.
 *   honest FILE MILLISECONDS   RANK_ID 0 or 1; rank 0 writes the root info to FILE, and decides when its standard input is closed that
 *                              it is enough; MILLISECONDS: the longest round that is allowed
 * Exit status 0: all was right.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define AREA (3u << 20)

static uint32_t rank;

static void fail(const char *what, int code)
{
	const char *text = aclGetRecentErrMsg();

	fprintf(stderr, "honest rank %u: %s: %d %s\n", rank, what, code, text ? text : "(no text)");
	exit(1);
}

#define CHECK(x)                     \
	do {                         \
		int r_ = (int)(x);   \
		if (r_ != 0)         \
			fail(#x, r_);\
	} while (0)

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void share(const char *path, HcclRootInfo *root)
{
	char part[4096];
	int fd;

	if (rank == 0) {
		CHECK(HcclGetRootInfo(root));
		snprintf(part, sizeof(part), "%s.part", path);
		fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (write(fd, root, sizeof(*root)) != sizeof(*root) || rename(part, path) != 0)
			fail("root info", 0);
		close(fd);
		return;
	}
	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		usleep(1000);
	if (read(fd, root, sizeof(*root)) != sizeof(*root))
		fail("root info", 0);
	close(fd);
}

/* A word that depends on everything; the first byte of all is the sender's wish to stop. */
static void fill(unsigned char *data, uint64_t bytes, uint64_t round, bool stop)
{
	uint64_t word = (round + 1) * 0x9e3779b97f4a7c15ull + rank;

	for (uint64_t at = 0; at < bytes; at += 8, word += 0x123456789abcdefull)
		memcpy(data + at, &word, 8);
	data[0] = stop;
}

static bool check(const unsigned char *data, uint64_t bytes, uint64_t round)
{
	uint64_t word = (round + 1) * 0x9e3779b97f4a7c15ull + (1 - rank);

	for (uint64_t at = 0; at < bytes; at += 8, word += 0x123456789abcdefull)
		if (memcmp(data + at + !at, (unsigned char *)&word + !at, 8 - !at) != 0) {
			fprintf(stderr, "honest rank %u: round %llu: wrong at byte %llu of %llu\n", rank, (unsigned long long)round,
				(unsigned long long)at, (unsigned long long)bytes);
			exit(9);
		}
	return data[0];
}

static bool input_is_closed(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, 0) == 1;
}

int main(int argc, char **argv)
{
	static const uint64_t sizes[] = { 8, 4096, 40, 100000, 65536, 1024, AREA };
	uint64_t slowest = 0, limit, round;
	unsigned char *send, *receive;
	bool stop = false;
	aclrtStream stream;
	HcclRootInfo root;
	HcclComm comm;

	if (argc != 3)
		return 2;
	rank = (uint32_t)atoi(getenv("RANK_ID"));
	limit = strtoull(argv[2], NULL, 10);
	CHECK(aclInit(NULL));
	CHECK(aclrtSetDevice((int32_t)rank));
	share(argv[1], &root);
	CHECK(HcclCommInitRootInfo(2, &root, rank, &comm));
	CHECK(aclrtCreateStream(&stream));
	CHECK(aclrtMalloc((void **)&send, AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	CHECK(aclrtMalloc((void **)&receive, AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	puts("ready");
	fflush(stdout);
	for (round = 0; !stop; round++) {
		uint64_t bytes = sizes[round % (sizeof(sizes) / sizeof(sizes[0]))], since = now_ms();
		bool wish = rank == 0 && input_is_closed();
		HcclSendRecvItem items[] = { { HCCL_SEND, send, bytes, HCCL_DATA_TYPE_INT8, 1 - rank },
					     { HCCL_RECV, receive, bytes, HCCL_DATA_TYPE_INT8, 1 - rank } };

		fill(send, bytes, round, wish);
		CHECK(HcclBatchSendRecv(items, 2, comm, stream));
		CHECK(aclrtSynchronizeStream(stream));
		stop = check(receive, bytes, round) | wish;
		if (now_ms() - since > slowest)
			slowest = now_ms() - since;
	}
	fprintf(stderr, "honest rank %u: %llu rounds, the slowest took %llu ms\n", rank, (unsigned long long)round,
		(unsigned long long)slowest);
	if (slowest > limit)
		return 8;
	CHECK(HcclCommDestroy(comm));
	CHECK(aclrtDestroyStream(stream));
	CHECK(aclrtFree(send));
	CHECK(aclrtFree(receive));
	CHECK(aclrtResetDevice((int32_t)rank));
	return 0;
}
