/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first HCCL program: every rank sends to the next one and receives from the previous one, 100
 * rounds of HcclBatchSendRecv queued on a stream before the first wait. Every value that arrives is
 * checked.
 *
 *   ring                    one rank per device, all in this process, each in a thread of its own
 *   ring FILE               one rank per process: RANK_ID, RANK_SIZE and DEVICE_ID come from the
 *                           environment (hcclctl run sets them); rank 0 writes the communicator's
 *                           root info to FILE, which must not exist before
 *   ring -t SECONDS [FILE]  again and again, until rank 0 finds that the time is over
 *
 * cc ring.c -I$ASCEND_HOME_PATH/include -L$ASCEND_HOME_PATH/lib64 -lhccl -lascendcl -pthread
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define ROUNDS 100u
#define COUNT 1000u /* floats in a message */
#define BYTES (ROUNDS * COUNT * sizeof(float))

struct rank {
	HcclRootInfo root;
	uint32_t number, size;
	int32_t device;
	double seconds;
	float *send, *receive, *host, *token;
	HcclComm comm;
	aclrtStream stream;
	int result;
};

static int failed(const char *call, int code)
{
	const char *text = aclGetRecentErrMsg();

	fprintf(stderr, "%s: %d %s\n", call, code, text ? text : "");
	return 1;
}

/* Both APIs answer 0 for success. */
#define TRY(call)                                    \
	do {                                         \
		int code_ = (int)(call);             \
		if (code_)                           \
			return failed(#call, code_); \
	} while (0)

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Another value for every rank, place and pass; exact in a float. */
static float value(uint32_t rank, uint32_t place, uint32_t pass)
{
	return (float)((rank * 100003u + place + pass * 7u) % (1u << 24));
}

static int set_up(struct rank *rank)
{
	TRY(aclrtSetDevice(rank->device));
	TRY(aclrtCreateStream(&rank->stream));
	TRY(aclrtMalloc((void **)&rank->send, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(aclrtMalloc((void **)&rank->receive, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(aclrtMalloc((void **)&rank->token, sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(aclrtMallocHost((void **)&rank->host, BYTES));
	TRY(HcclCommInitRootInfo(rank->size, &rank->root, rank->number, &rank->comm));
	return 0;
}

static int tear_down(struct rank *rank)
{
	TRY(HcclCommDestroy(rank->comm));
	TRY(aclrtFreeHost(rank->host));
	TRY(aclrtFree(rank->token));
	TRY(aclrtFree(rank->receive));
	TRY(aclrtFree(rank->send));
	TRY(aclrtDestroyStream(rank->stream));
	TRY(aclrtResetDevice(rank->device));
	return 0;
}

/* All rounds once. Returns how many values are wrong, or 1 after an error. */
static int pass_data(struct rank *rank, uint32_t pass)
{
	uint32_t next = (rank->number + 1) % rank->size;
	uint32_t previous = (rank->number + rank->size - 1) % rank->size;
	int wrong = 0;

	for (uint32_t i = 0; i < ROUNDS * COUNT; i++)
		rank->host[i] = value(rank->number, i, pass);
	TRY(aclrtMemcpy(rank->send, BYTES, rank->host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
	TRY(aclrtMemset(rank->receive, BYTES, 0xff, BYTES));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		HcclSendRecvItem items[2] = {
			{ HCCL_SEND, rank->send + round * COUNT, COUNT, HCCL_DATA_TYPE_FP32, next },
			{ HCCL_RECV, rank->receive + round * COUNT, COUNT, HCCL_DATA_TYPE_FP32,
			  previous },
		};

		TRY(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	}
	TRY(aclrtSynchronizeStream(rank->stream));
	TRY(aclrtMemcpy(rank->host, BYTES, rank->receive, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	for (uint32_t i = 0; i < ROUNDS * COUNT; i++)
		wrong += rank->host[i] != value(previous, i, pass);
	return wrong;
}

/* Rank 0's decision goes around: 1 go on, 0 stop. */
static int agree(struct rank *rank, double end, float *ret_go_on)
{
	uint32_t next = (rank->number + 1) % rank->size;
	uint32_t previous = (rank->number + rank->size - 1) % rank->size;
	float go_on = now() < end;

	if (rank->size > 1 && rank->number > 0) {
		TRY(HcclRecv(rank->token, 1, HCCL_DATA_TYPE_FP32, previous, rank->comm,
			     rank->stream));
		TRY(aclrtSynchronizeStream(rank->stream));
		TRY(aclrtMemcpy(&go_on, sizeof(go_on), rank->token, sizeof(go_on),
				ACL_MEMCPY_DEVICE_TO_HOST));
	}
	if (rank->size > 1 && next != 0) {
		TRY(aclrtMemcpy(rank->token, sizeof(go_on), &go_on, sizeof(go_on),
				ACL_MEMCPY_HOST_TO_DEVICE));
		TRY(HcclSend(rank->token, 1, HCCL_DATA_TYPE_FP32, next, rank->comm, rank->stream));
		TRY(aclrtSynchronizeStream(rank->stream));
	}
	*ret_go_on = go_on;
	return 0;
}

static int run_rank(struct rank *rank)
{
	double start = now();
	uint32_t passes = 0;
	float go_on = 0;
	int wrong = 0;

	TRY(set_up(rank));
	do {
		wrong += pass_data(rank, passes++);
		if (wrong)
			break;
		if (rank->seconds > 0)
			TRY(agree(rank, start + rank->seconds, &go_on));
	} while (go_on != 0);
	printf("rank %u of %u on device %d: %u rounds of %zu bytes from rank %u: %s\n",
	       rank->number, rank->size, rank->device, passes * ROUNDS, COUNT * sizeof(float),
	       (rank->number + rank->size - 1) % rank->size, wrong ? "WRONG" : "ok");
	fflush(stdout);
	if (wrong)
		return 1;
	return tear_down(rank);
}

static void *run_thread(void *arg)
{
	struct rank *rank = arg;

	rank->result = run_rank(rank);
	if (rank->result)
		exit(1); /* the others would wait for it */
	return NULL;
}

static int run_threads(double seconds)
{
	struct rank *ranks;
	pthread_t *threads;
	HcclRootInfo root;
	uint32_t size;
	int wrong = 0;

	TRY(aclrtGetDeviceCount(&size));
	TRY(aclrtSetDevice(0));
	TRY(HcclGetRootInfo(&root));
	ranks = calloc(size, sizeof(*ranks));
	threads = calloc(size, sizeof(*threads));
	if (!ranks || !threads)
		return 1;
	for (uint32_t i = 0; i < size; i++) {
		ranks[i].root = root;
		ranks[i].number = i;
		ranks[i].size = size;
		ranks[i].device = (int32_t)i;
		ranks[i].seconds = seconds;
		if (pthread_create(&threads[i], NULL, run_thread, &ranks[i]))
			abort();
	}
	for (uint32_t i = 0; i < size; i++) {
		pthread_join(threads[i], NULL);
		wrong += ranks[i].result;
	}
	free(threads);
	free(ranks);
	return wrong != 0;
}

static int write_root(const HcclRootInfo *root, const char *path)
{
	char part[4096];
	FILE *file;

	snprintf(part, sizeof(part), "%s.part", path);
	file = fopen(part, "wb");
	if (!file || fwrite(root, sizeof(*root), 1, file) != 1 || fclose(file) ||
	    rename(part, path)) {
		perror(path);
		return 1;
	}
	return 0;
}

static int read_root(HcclRootInfo *root, const char *path)
{
	FILE *file = NULL;
	size_t read = 0;

	for (int tries = 0; !file && tries < 6000; tries++) {
		file = fopen(path, "rb");
		if (!file)
			usleep(10000);
	}
	if (file) {
		read = fread(root, sizeof(*root), 1, file);
		fclose(file);
	}
	if (read != 1)
		perror(path);
	return read != 1;
}

static int run_process(const char *path, double seconds)
{
	const char *number = getenv("RANK_ID"), *size = getenv("RANK_SIZE");
	const char *device = getenv("DEVICE_ID");
	struct rank rank = { .seconds = seconds };

	if (!number || !size || !device) {
		fputs("RANK_ID, RANK_SIZE, DEVICE_ID: start this program with hcclctl run\n",
		      stderr);
		return 2;
	}
	rank.number = (uint32_t)strtoul(number, NULL, 10);
	rank.size = (uint32_t)strtoul(size, NULL, 10);
	rank.device = (int32_t)strtol(device, NULL, 10);
	if (rank.number == 0) {
		TRY(aclrtSetDevice(rank.device));
		TRY(HcclGetRootInfo(&rank.root));
		TRY(write_root(&rank.root, path));
	} else {
		TRY(read_root(&rank.root, path));
	}
	return run_rank(&rank);
}

int main(int argc, char **argv)
{
	double seconds = 0;
	int option, result;

	while ((option = getopt(argc, argv, "t:")) == 't')
		seconds = strtod(optarg, NULL);
	if (option != -1)
		return 2;
	TRY(aclInit(NULL));
	result = optind < argc ? run_process(argv[optind], seconds) : run_threads(seconds);
	TRY(aclFinalize());
	return result;
}
