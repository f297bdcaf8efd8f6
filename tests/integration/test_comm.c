/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: creation, queries, destruction; order of checks, codes and texts of hccl-api 2b. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"

/* ---- root info ---- */

static void root_info(void)
{
	HcclRootInfo a, b;
	HcclComm comm = NULL;

	check_fails(HcclGetRootInfo(NULL), HCCL_E_PTR, "EI0003");
	check_ok(HcclGetRootInfo(&a));
	check_ok(HcclGetRootInfo(&b));
	check(memcmp(&a, &b, sizeof(a)) != 0);
	for (size_t i = 1024; i < sizeof(a); i++)
		check_eq_int(a.internal[i], 0);
	check_ok(aclrtSetDevice(0));
	memset(&b, 0, sizeof(b));
	check_fails(HcclCommInitRootInfo(1, &b, 0, &comm), HCCL_E_PARA, "rootInfo is not what HcclGetRootInfo");
	memset(&b, 0xff, sizeof(b));
	check_fails(HcclCommInitRootInfo(1, &b, 0, &comm), HCCL_E_PARA, "rootInfo is not what HcclGetRootInfo");
	/* the secret */
	b = a;
	for (size_t i = 32; i < 64; i++)
		b.internal[i] ^= 1;
	check_fails(HcclCommInitRootInfo(1, &b, 0, &comm), HCCL_E_PARA, "");
	check_null(comm);
	check_ok(HcclCommInitRootInfo(1, &a, 0, &comm));
}

TEST(root_info_is_checked)
{
	job_run(root_info);
}

/* ---- order of the checks ---- */

static void init_order(void)
{
	HcclRootInfo root;
	HcclCommConfig config;
	HcclComm comm = NULL;

	check_ok(HcclGetRootInfo(&root));
	HcclCommConfigInit(&config);
	check_fails(HcclCommInitRootInfo(0, NULL, 0, NULL), HCCL_E_RUNTIME, "aclrtSetDevice");
	check_ok(aclrtSetDevice(0));
	check_fails(HcclCommInitRootInfo(0, NULL, 0, NULL), HCCL_E_PARA, "nRanks is 0");
	check_fails(HcclCommInitRootInfo(100000, NULL, 0, NULL), HCCL_E_PARA, "nRanks is 100000");
	check_fails(HcclCommInitRootInfo(2, NULL, 2, NULL), HCCL_E_PARA, "rank is 2, expected less than nRanks");
	check_fails(HcclCommInitRootInfo(2, NULL, 0, NULL), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclCommInitRootInfo(2, NULL, 0, &comm), HCCL_E_PTR, "rootInfo is NULL");
	check_fails(HcclCommInitRootInfoConfig(2, &root, 0, NULL, &comm), HCCL_E_PTR, "config is NULL");
	memset(config.reserved, 0, sizeof(config.reserved));
	check_fails(HcclCommInitRootInfoConfig(2, &root, 0, &config, &comm), HCCL_E_PARA, "magic word");
	check_null(comm);
}

TEST(init_checks_in_order)
{
	job_run(init_order);
}

/* ---- HcclCommConfig ---- */

static HcclCommConfig sized_config(size_t size, uint32_t version)
{
	HcclCommConfig config;
	uint32_t magic = HCCL_COMM_CONFIG_MAGIC_WORD;

	memset(&config, 0xee, sizeof(config));
	memset(config.reserved, 0, sizeof(config.reserved));
	memcpy(config.reserved, &size, sizeof(size));
	memcpy(config.reserved + 8, &magic, sizeof(magic));
	memcpy(config.reserved + 12, &version, sizeof(version));
	return config;
}

static HcclResult init_one(const HcclCommConfig *config, HcclComm *comm)
{
	HcclRootInfo root;

	check_ok(HcclGetRootInfo(&root));
	*comm = NULL;
	return HcclCommInitRootInfoConfig(1, &root, 0, config, comm);
}

#define REFUSED(field, value, part)                                                                                    \
	do {                                                                                                           \
		HcclCommConfigInit(&config);                                                                           \
		config.field = (value);                                                                                \
		check_fails(init_one(&config, &comm), HCCL_E_PARA, part);                                              \
	} while (0)
#define TAKEN(field, value)                                                                                            \
	do {                                                                                                           \
		HcclCommConfigInit(&config);                                                                           \
		config.field = (value);                                                                                \
		check_ok(init_one(&config, &comm));                                                                    \
		check_ok(HcclCommDestroy(comm));                                                                       \
	} while (0)

static void config_values(void)
{
	HcclCommConfig config;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	REFUSED(hcclBufferSize, 0, "hcclBufferSize is 0");
	REFUSED(hcclDeterministic, 3, "hcclDeterministic is 3");
	REFUSED(hcclDeterministic, 2, "hcclDeterministic is 2 (strict), which Ascend910_9391 does not have");
	REFUSED(hcclRdmaTrafficClass, 256, "hcclRdmaTrafficClass is 256");
	REFUSED(hcclRdmaTrafficClass, 6, "hcclRdmaTrafficClass is 6");
	REFUSED(hcclRdmaServiceLevel, 8, "hcclRdmaServiceLevel is 8");
	REFUSED(aclGraphZeroCopyEnable, 2, "aclGraphZeroCopyEnable is 2");
	TAKEN(hcclBufferSize, 1);
	TAKEN(hcclDeterministic, 1);
	TAKEN(hcclRdmaTrafficClass, 252);
	TAKEN(hcclRdmaServiceLevel, 7);
	TAKEN(aclGraphZeroCopyEnable, 1);
	TAKEN(hcclExecTimeOut, 0);
	TAKEN(hcclExecTimeOut, 0x7fffffff);
	TAKEN(hcclExecTimeOut, -7);
	TAKEN(hcclOpExpansionMode, 99);
	HcclCommConfigInit(&config);
	memset(config.hcclCommName, 'n', sizeof(config.hcclCommName));
	check_fails(init_one(&config, &comm), HCCL_E_PARA, "hcclCommName has no terminating NUL");
}

TEST(config_values_are_checked)
{
	job_run(config_values);
}

/* An older struct ends early, a newer one goes on: what this library does not know, or the caller did not write, does not count. */
static void config_versions(void)
{
	char name[COMM_NAME_MAX_LENGTH];
	HcclCommConfig config;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	config = sized_config(32, 1);
	config.hcclBufferSize = 200;
	config.hcclDeterministic = 0;
	check_ok(init_one(&config, &comm));
	check_ok(HcclCommDestroy(comm));
	/* 8.1: ends behind hcclRdmaServiceLevel */
	config = sized_config(304, 5);
	config.hcclBufferSize = 200;
	config.hcclDeterministic = 0;
	strcpy(config.hcclCommName, "old");
	config.hcclUdi[0] = '\0';
	config.hcclOpExpansionMode = 0;
	config.hcclRdmaTrafficClass = 132;
	config.hcclRdmaServiceLevel = 4;
	check_ok(init_one(&config, &comm));
	check_ok(HcclGetCommName(comm, name));
	check_eq_str(name, "old");
	check_ok(HcclCommDestroy(comm));
	/* 9.2: eight bytes more */
	HcclCommConfigInit(&config);
	*(size_t *)config.reserved = 2248;
	*(uint32_t *)(config.reserved + 12) = 11;
	check_ok(init_one(&config, &comm));
	check_ok(HcclCommDestroy(comm));
	config = sized_config(24, 1);
	check_fails(init_one(&config, &comm), HCCL_E_PARA, "its size is 24 bytes");
	config = sized_config(2240, 0);
	check_fails(init_one(&config, &comm), HCCL_E_PARA, "its version is 0");
}

TEST(config_of_other_versions)
{
	job_run(config_versions);
}

/* ---- names, ids ---- */

static void same_name_rank(struct job_rank *rank)
{
	const HcclRootInfo *roots = rank->data;
	HcclCommConfig config;
	HcclComm comms[2], found;
	HcclRootInfo root;
	char names[3][COMM_NAME_MAX_LENGTH];
	uint32_t value = 99;

	HcclCommConfigInit(&config);
	for (int i = 0; i < 2; i++) {
		strcpy(config.hcclCommName, i ? "pipeline" : "tensor_parallel");
		check_ok(HcclCommInitRootInfoConfig(rank->size, &roots[i], rank->rank, &config, &comms[i]));
		check_ok(HcclGetCommName(comms[i], names[i]));
		check_eq_str(names[i], i ? "pipeline" : "tensor_parallel");
		check_ok(HcclGetRankId(comms[i], &value));
		check_eq_uint(value, rank->rank);
		check_ok(HcclGetRankSize(comms[i], &value));
		check_eq_uint(value, rank->size);
		check_ok(HcclBarrier(comms[i], rank->stream));
	}
	check_ne_int((intptr_t)comms[0] == (intptr_t)comms[1], 1);
	check_ok(aclrtSynchronizeStream(rank->stream));
	/* the table of names is per device: one of these ranks has it */
	check_ok(HcclCommGetHandleWithName("pipeline", &found));
	check_ok(HcclGetCommName(found, names[2]));
	check_eq_str(names[2], "pipeline");
	check_fails(HcclCommGetHandleWithName("expert", &found), HCCL_E_PARA, "no communicator of that name");
	check_fails(HcclCommGetHandleWithName(NULL, NULL), HCCL_E_PTR, "commName is NULL");
	check_ok(HcclGetRootInfo(&root));
	check_fails(HcclCommInitRootInfoConfig(1, &root, 0, &config, &found), HCCL_E_PARA, "another communicator of this process has it");
	/* without a name it is the root info's */
	check_ok(HcclGetCommName(rank->comm, names[2]));
	check_ne_str(names[2], "");
	check_ne_str(names[2], "tensor_parallel");
	for (int i = 0; i < 2; i++)
		check_ok(HcclCommDestroy(comms[i]));
}

static void same_name(void)
{
	HcclRootInfo roots[2];

	check_ok(HcclGetRootInfo(&roots[0]));
	check_ok(HcclGetRootInfo(&roots[1]));
	job_ranks(4, 2, same_name_rank, roots);
}

TEST(ranks_of_a_communicator_share_its_name)
{
	job_run(same_name);
}

static void ring_rank(struct job_rank *rank)
{
	unsigned char *send = job_memory(4096, (int)rank->rank + 1), *receive = job_memory(4096, 0);
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	HcclSendRecvItem items[] = { job_send(next, send, 4096), job_receive(previous, receive, 4096) };

	for (int round = 0; round < 20; round++)
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; i < 4096; i++)
		check_eq_uint(receive[i], (unsigned char)(previous + 1));
}

static void many_per_device(void)
{
	job_ranks(16, 2, ring_rank, NULL);
}

TEST(several_ranks_of_a_communicator_on_a_device)
{
	job_run(many_per_device);
}

static void eight_threads(void)
{
	job_ranks(8, 8, ring_rank, NULL);
	/* and again, as another communicator */
	job_ranks(8, 8, ring_rank, NULL);
}

TEST(ring_of_threads)
{
	job_run(eight_threads);
}

static void one_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(200, 7);
	HcclSendRecvItem items[] = { job_send(0, memory, 100), job_receive(0, memory + 100, 100) };
	HcclResult async = HCCL_E_RESERVED;

	memset(memory + 100, 0, 100);
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	check_fails(HcclBatchSendRecv(items, 1, rank->comm, rank->stream), HCCL_E_PARA, "without a receive from it");
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(memory[100], 7u);
	check_eq_uint(memory[199], 7u);
	check_ok(HcclGetCommAsyncError(rank->comm, &async));
	check_eq_int(async, HCCL_SUCCESS);
}

static void communicator_of_one(void)
{
	job_ranks(1, 1, one_rank, NULL);
}

TEST(communicator_of_one_rank)
{
	job_run(communicator_of_one);
}

/* ---- HcclCommInitAll ---- */

static void init_all(void)
{
	int32_t devices[] = { 3, 1, 6 }, twice[] = { 1, 2, 1 }, outside[] = { 0, 100 }, current = -1;
	HcclComm comms[3] = { NULL };
	uint32_t value;

	check_fails(HcclCommInitAll(0, NULL, NULL), HCCL_E_PARA, "ndev is 0");
	check_fails(HcclCommInitAll(3, NULL, comms), HCCL_E_PTR, "devices is NULL");
	check_fails(HcclCommInitAll(3, devices, NULL), HCCL_E_PTR, "comms is NULL");
	check_fails(HcclCommInitAll(3, twice, comms), HCCL_E_PARA, "devices[2] is 1, as devices[0]");
	check_fails(HcclCommInitAll(2, outside, comms), HCCL_E_PARA, "devices[1] is 100, expected 0 to 7");
	check_null(comms[0]);
	check_ok(aclrtSetDevice(5));
	check_ok(HcclCommInitAll(3, devices, comms));
	check_ok(aclrtGetDevice(&current));
	check_eq_int(current, 5);
	for (uint32_t i = 0; i < 3; i++) {
		check_ok(HcclGetRankId(comms[i], &value));
		check_eq_uint(value, i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		unsigned char *memory;
		aclrtStream stream;

		check_ok(aclrtSetDevice(devices[i]));
		check_ok(aclrtCreateStream(&stream));
		memory = job_memory(8, (int)i);
		check_ok(HcclSend(memory, 4, HCCL_DATA_TYPE_INT8, (i + 1) % 3, comms[i], stream));
		check_ok(HcclRecv(memory + 4, 4, HCCL_DATA_TYPE_INT8, (i + 2) % 3, comms[i], stream));
		if (i == 2)
			check_ok(aclrtSynchronizeStream(stream));
	}
	for (uint32_t i = 0; i < 3; i++)
		check_ok(HcclCommDestroy(comms[i]));
}

TEST(init_all_in_one_thread)
{
	job_run(init_all);
}

/* ---- handles ---- */

static void refuse_handle(HcclComm comm, aclrtStream stream, int result, const char *part)
{
	HcclSendRecvItem item = job_send(0, &item, 1);
	char name[COMM_NAME_MAX_LENGTH];
	HcclResult async;
	uint32_t value;

	check_fails(HcclGetRankId(comm, &value), result, part);
	check_fails(HcclGetRankSize(comm, &value), result, part);
	check_fails(HcclGetCommName(comm, name), result, part);
	check_fails(HcclGetCommAsyncError(comm, &async), result, part);
	check_fails(HcclBarrier(comm, stream), result, part);
	check_fails(HcclSend(&item, 1, HCCL_DATA_TYPE_INT8, 0, comm, stream), result, part);
	check_fails(HcclRecv(&item, 1, HCCL_DATA_TYPE_INT8, 0, comm, stream), result, part);
	check_fails(HcclBatchSendRecv(&item, 1, comm, stream), result, part);
}

static void handles_rank(struct job_rank *rank)
{
	HcclComm wild[] = { (HcclComm)1, (HcclComm)-1, &wild, (char *)rank->comm + 1, (char *)rank->comm + (1 << 16) };
	aclrtStream other;

	check_fails(HcclGetRankId(rank->comm, NULL), HCCL_E_PTR, "rank is NULL");
	check_fails(HcclGetRankSize(rank->comm, NULL), HCCL_E_PTR, "rankSize is NULL");
	check_fails(HcclGetCommName(rank->comm, NULL), HCCL_E_PTR, "commName is NULL");
	check_fails(HcclGetCommAsyncError(rank->comm, NULL), HCCL_E_PTR, "asyncError is NULL");
	check_fails(HcclBarrier(rank->comm, NULL), HCCL_E_PTR, "stream is NULL");
	refuse_handle(NULL, rank->stream, HCCL_E_PTR, "comm is NULL");
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		refuse_handle(wild[i], rank->stream, HCCL_E_PARA, "no communicator of this process");
		check_fails(HcclCommDestroy(wild[i]), HCCL_E_PARA, "no communicator of this process");
	}
	check_fails(HcclBarrier(rank->comm, (aclrtStream)77), HCCL_E_PARA, "EI0003");
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&other));
	check_fails(HcclBarrier(rank->comm, other), HCCL_E_PARA, "a stream of device 1; expected one of device 0");
	check_ok(aclrtSetDevice(0));
}

static void handles(void)
{
	HcclRootInfo root;
	aclrtStream stream;
	HcclComm comm, next;

	check_ok(HcclCommDestroy(NULL));
	job_ranks(1, 1, handles_rank, NULL);
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	for (int i = 0; i < 3; i++) {
		check_ok(HcclGetRootInfo(&root));
		check_ok(HcclCommInitRootInfo(1, &root, 0, &comm));
		check_ok(HcclCommDestroy(comm));
		refuse_handle(comm, stream, HCCL_E_PARA, "or it was destroyed");
		check_fails(HcclCommDestroy(comm), HCCL_E_PARA, "or it was destroyed");
	}
	/* a root info makes one communicator */
	check_fails(HcclCommInitRootInfo(1, &root, 0, &next), HCCL_E_PARA, "");
}

static void reset_device(void)
{
	HcclResult async = HCCL_SUCCESS;
	aclrtStream stream;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(aclrtResetDevice(0));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_fails(HcclBarrier(comm, stream), HCCL_E_PARA, "ended when device 0 was reset");
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_E_UNAVAIL);
	check_ok(HcclCommDestroy(comm));
	check_null(aclGetRecentErrMsg());
}

TEST(communicator_ends_with_its_device)
{
	job_run(reset_device);
}

TEST(handles_are_looked_up)
{
	job_run(handles);
}

/* ---- what needs no daemon ---- */

TEST(error_strings)
{
	check_eq_str(HcclGetErrorString(HCCL_SUCCESS), "no error");
	check_eq_str(HcclGetErrorString(HCCL_E_PARA), "parameter error");
	check_eq_str(HcclGetErrorString(HCCL_E_TIMEOUT), "timeout");
	check_eq_str(HcclGetErrorString(HCCL_E_NETWORK), "call network api fail");
	check_eq_str(HcclGetErrorString(HCCL_E_REMOTE), "error cqe");
	check_eq_str(HcclGetErrorString(HCCL_E_OOM), "out of memory");
	check_eq_str(HcclGetErrorString((HcclResult)25), "unknown err");
	check_eq_str(HcclGetErrorString(HCCL_E_IN_STATUS), "unknown err");
	check_eq_str(HcclGetErrorString(HCCL_E_RESERVED), "unknown error");
	check_eq_str(HcclGetErrorString((HcclResult)-1), "unknown error");
	check_eq_uint(HcclGetCommConfigCapability(), 12u);
}

/* ---- joining goes wrong ---- */

static void *join_thread(void *data)
{
	const uint32_t rank = *(const uint32_t *)data;
	HcclComm comm = NULL;

	check_ok(aclrtSetDevice(0));
	check_fails(HcclCommInitRootInfo(4, (HcclRootInfo *)((uint32_t *)data + 1), rank, &comm), HCCL_E_TIMEOUT, "EI0015");
	check_null(comm);
	return NULL;
}

static void missing_ranks(void)
{
	struct {
		uint32_t rank;
		HcclRootInfo root;
	} other = { .rank = 2 };
	HcclComm comm = NULL;
	const char *text;
	pthread_t thread;
	int r;

	check_ok(HcclGetRootInfo(&other.root));
	check_ok(aclrtSetDevice(0));
	check_eq_int(pthread_create(&thread, NULL, join_thread, &other), 0);
	r = HcclCommInitRootInfo(4, &other.root, 0, &comm);
	text = aclGetRecentErrMsg();
	check_eq_int(r, HCCL_E_TIMEOUT);
	check_str_contains(text, "2 of 4 ranks are missing: ranks 1 and 3");
	check_str_contains(text, "; HCCLD_CONNECT_TIMEOUT_MS sets the limit\n        Solution: Look at what the processes of the missing");
	pthread_join(thread, NULL);
}

TEST(missing_ranks_are_named)
{
	job_run_with("HCCLD_CONNECT_TIMEOUT_MS", "400", missing_ranks);
}

static void bad_environment(void)
{
	HcclRootInfo root;
	HcclComm comm;

	check_fails(HcclGetRootInfo(&root), HCCL_E_PARA, "EI0001");
	check_ok(aclrtSetDevice(0));
	check_fails(HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_E_PARA, "HCCL_EXEC_TIMEOUT");
}

TEST(environment_is_checked_by_the_first_call)
{
	job_run_with("HCCL_EXEC_TIMEOUT", "soon", bad_environment);
}

static void disagreement_rank(struct job_rank *rank)
{
	static const struct {
		uint32_t rank, size;
	} joins[2][3] = { { { 0, 3 }, { 1, 4 }, { 2, 3 } }, { { 0, 3 }, { 1, 3 }, { 1, 3 } } };
	HcclRootInfo *roots = rank->data;
	HcclComm comm = NULL;

	/* the one that does not fit, those that wait, those that come later: all are told the same at once */
	for (int i = 0; i < 2; i++)
		check_fails(HcclCommInitRootInfo(joins[i][rank->rank].size, &roots[i], joins[i][rank->rank].rank, &comm), HCCL_E_PARA,
			    i ? "rank 1 is already taken" : "with a size of");
	check_null(comm);
}

static void disagreement(void)
{
	HcclRootInfo roots[2];

	check_ok(HcclGetRootInfo(&roots[0]));
	check_ok(HcclGetRootInfo(&roots[1]));
	job_ranks(3, 3, disagreement_rank, roots);
}

TEST(size_and_rank_must_fit)
{
	job_run(disagreement);
}

/* ---- fork, log ---- */

static void fork_rank(struct job_rank *rank)
{
	HcclRootInfo root;
	HcclComm comm;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		refuse_handle(rank->comm, rank->stream, HCCL_E_UNAVAIL, "fork");
		check_fails(HcclCommDestroy(rank->comm), HCCL_E_UNAVAIL, "fork");
		check_fails(HcclGetRootInfo(&root), HCCL_E_UNAVAIL, "fork");
		check_fails(HcclCommGetHandleWithName("x", &comm), HCCL_E_UNAVAIL, "fork");
		check_fails(HcclCommInitAll(1, (int32_t[]){ 0 }, &comm), HCCL_E_UNAVAIL, "fork");
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	one_rank(rank);
}

static void forked(void)
{
	job_ranks(1, 1, fork_rank, NULL);
}

TEST(child_of_a_fork_has_no_session)
{
	job_run(forked);
}

static void log_rank(struct job_rank *rank)
{
	const char *path = test_path("log");
	int out = dup(1), err = dup(2), fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	char text[4096] = "";

	check_ge_int(fd, 0);
	dup2(fd, 1);
	one_rank(rank);
	check_eq_int(lseek(fd, 0, SEEK_END), 0);
	dup2(fd, 2);
	one_rank(rank);
	dup2(out, 1);
	dup2(err, 2);
	check_gt_int(pread(fd, text, sizeof(text) - 1, 0), 0);
	check_str_contains(text, "HcclBatchSendRecv");
	check_str_contains(text, "rank 0 of 1, itemNum 2");
	check_str_contains(text, "HcclBarrier");
}

static void entry_log(void)
{
	job_ranks(1, 1, log_rank, NULL);
}

TEST(entry_log_goes_to_stderr)
{
	job_run_with("HCCL_ENTRY_LOG_ENABLE", "1", entry_log);
}
