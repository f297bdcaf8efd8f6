/* SPDX-License-Identifier: Apache-2.0 */
/* A full mesh of 4 ranks that moves all its data by primitives on threads: by threads of a process, by processes, through deaths and restarts. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hccl/hccl_res.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"
#include "tests/support/thread.h"
#include "tests/support/worker.h"

#define SIZE 4u
#define COUNT 20000u /* elements of a block */
#define BLOCK (COUNT * sizeof(float))
#define EPOCHS 200u
#define READY 0u /* notifies of each end of a channel */
#define DONE 1u

/* What a rank has for its operators: a thread that leads, one for each peer, and a channel to it. */
struct mesh {
	const struct job_rank *rank;
	ThreadHandle leader, workers[SIZE];
	ChannelHandle channels[SIZE];
	char *buffer, *peer_buffers[SIZE];
	float *input, *peer_inputs[SIZE]; /* registered: a block for each rank */
	float *output;
};

static void *remote_memory(HcclComm comm, ChannelHandle channel, uint64_t bytes)
{
	CommMem *mems = NULL;
	uint32_t count = 0;
	char **tags;

	check_ok(HcclChannelGetRemoteMems(comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	check_eq_uint(mems[0].size, bytes);
	return mems[0].addr;
}

/* 6 notifies for each rank of 4: ready and done for each peer. */
static void connect_all(struct mesh *mesh, CommProtocol protocol)
{
	const struct job_rank *rank = mesh->rank;
	CommMem mem = { COMM_MEM_TYPE_DEVICE, mesh->input, SIZE * BLOCK };
	HcclChannelDesc descs[SIZE];
	ChannelHandle made[SIZE];
	HcclMemHandle handle;
	uint32_t count = 0;
	uint64_t size;

	check_ok(HcclCommMemReg(rank->comm, "input", &mem, &handle));
	check_ok(HcclChannelDescInit(descs, SIZE));
	for (uint32_t peer = 0; peer < rank->size; peer++) {
		if (peer == rank->rank)
			continue;
		descs[count].remoteRank = peer;
		descs[count].channelProtocol = protocol;
		descs[count].notifyNum = 2;
		descs[count].memHandles = &handle;
		descs[count++].memHandleNum = 1;
	}
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AICPU_TS, descs, count, made));
	count = 0;
	for (uint32_t peer = 0; peer < rank->size; peer++) {
		if (peer == rank->rank)
			continue;
		mesh->channels[peer] = made[count++];
		check_ok(HcclChannelGetHcclBuffer(rank->comm, mesh->channels[peer], (void **)&mesh->peer_buffers[peer], &size));
		check_ge_uint(size, SIZE * BLOCK);
		mesh->peer_inputs[peer] = remote_memory(rank->comm, mesh->channels[peer], SIZE * BLOCK);
	}
	check_ok(HcclGetHcclBuffer(rank->comm, (void **)&mesh->buffer, &size));
}

static void mesh_open(struct mesh *mesh, const struct job_rank *rank, CommProtocol protocol)
{
	*mesh = (struct mesh){ .rank = rank, .input = job_memory(SIZE * BLOCK, 0), .output = job_memory(SIZE * BLOCK, 0) };
	check_ok(HcclThreadAcquire(rank->comm, COMM_ENGINE_AICPU_TS, 1, SIZE, &mesh->leader));
	check_ok(HcclThreadAcquire(rank->comm, COMM_ENGINE_AICPU_TS, SIZE, 1, mesh->workers));
	connect_all(mesh, protocol);
}

/* The leader lets the workers of all peers begin, and goes on when they are done. */
static void fork_workers(struct mesh *mesh)
{
	for (uint32_t peer = 0; peer < SIZE; peer++) {
		if (peer == mesh->rank->rank)
			continue;
		check_ok(HcommThreadNotifyRecordOnThread(mesh->leader, mesh->workers[peer], 0));
		check_ok(HcommThreadNotifyWaitOnThread(mesh->workers[peer], 0, 60));
	}
}

static void join_workers(struct mesh *mesh)
{
	for (uint32_t peer = 0; peer < SIZE; peer++)
		if (peer != mesh->rank->rank)
			check_ok(HcommThreadNotifyRecordOnThread(mesh->workers[peer], mesh->leader, peer));
	for (uint32_t peer = 0; peer < SIZE; peer++)
		if (peer != mesh->rank->rank)
			check_ok(HcommThreadNotifyWaitOnThread(mesh->leader, peer, 60));
}

/* Into the peers' HCCL buffers, from there into the output. */
static void allgather(struct mesh *mesh)
{
	uint32_t me = mesh->rank->rank;

	fork_workers(mesh);
	for (uint32_t peer = 0; peer < SIZE; peer++) {
		ThreadHandle worker = mesh->workers[peer];
		ChannelHandle channel = mesh->channels[peer];

		if (peer == me)
			continue;
		check_ok(HcommWriteWithNotifyOnThread(worker, channel, mesh->peer_buffers[peer] + me * BLOCK, mesh->input, BLOCK, READY));
		check_ok(HcommChannelNotifyWaitOnThread(worker, channel, READY, 60));
		check_ok(HcommLocalCopyOnThread(worker, mesh->output + peer * COUNT, mesh->buffer + peer * BLOCK, BLOCK));
		/* the peer may write the next one */
		check_ok(HcommChannelNotifyRecordOnThread(worker, channel, DONE));
		check_ok(HcommChannelNotifyWaitOnThread(worker, channel, DONE, 60));
	}
	check_ok(HcommLocalCopyOnThread(mesh->leader, mesh->output + me * COUNT, mesh->input, BLOCK));
	join_workers(mesh);
}

/* What the peers have for this rank is read from their inputs, one after the other: the sum has one writer. */
static void reduce_scatter(struct mesh *mesh)
{
	uint32_t me = mesh->rank->rank;

	check_ok(HcommLocalCopyOnThread(mesh->leader, mesh->output, mesh->input + me * COUNT, BLOCK));
	for (uint32_t peer = 0; peer < SIZE; peer++)
		if (peer != me)
			check_ok(HcommChannelNotifyRecordOnThread(mesh->leader, mesh->channels[peer], READY));
	for (uint32_t peer = 0; peer < SIZE; peer++) {
		if (peer == me)
			continue;
		check_ok(HcommChannelNotifyWaitOnThread(mesh->leader, mesh->channels[peer], READY, 60));
		check_ok(HcommReadReduceOnThread(mesh->leader, mesh->channels[peer], mesh->output, mesh->peer_inputs[peer] + me * COUNT, COUNT,
						 HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_SUM));
		check_ok(HcommChannelNotifyRecordOnThread(mesh->leader, mesh->channels[peer], DONE));
	}
	for (uint32_t peer = 0; peer < SIZE; peer++)
		if (peer != me)
			check_ok(HcommChannelNotifyWaitOnThread(mesh->leader, mesh->channels[peer], DONE, 60));
}

/* The peers add theirs to what this rank has in its HCCL buffer, at the same time. */
static void reduce_scatter_written(struct mesh *mesh)
{
	uint32_t me = mesh->rank->rank;
	float *sum = (float *)mesh->buffer;

	check_ok(HcommLocalCopyOnThread(mesh->leader, sum, mesh->input + me * COUNT, BLOCK));
	fork_workers(mesh);
	for (uint32_t peer = 0; peer < SIZE; peer++) {
		ThreadHandle worker = mesh->workers[peer];
		ChannelHandle channel = mesh->channels[peer];

		if (peer == me)
			continue;
		check_ok(HcommChannelNotifyRecordOnThread(worker, channel, READY));
		check_ok(HcommChannelNotifyWaitOnThread(worker, channel, READY, 60));
		check_ok(HcommWriteReduceWithNotifyOnThread(worker, channel, mesh->peer_buffers[peer], mesh->input + peer * COUNT, COUNT,
							    HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_SUM, DONE));
		check_ok(HcommChannelNotifyWaitOnThread(worker, channel, DONE, 60));
	}
	join_workers(mesh);
	check_ok(HcommLocalCopyOnThread(mesh->leader, mesh->output, sum, BLOCK));
}

static float value(uint32_t epoch, uint32_t rank, uint32_t block, uint32_t i)
{
	return (float)(epoch % 100 * 1000 + rank * 100 + block * 10 + i % 7);
}

static void fill(struct mesh *mesh, uint32_t epoch)
{
	for (uint32_t block = 0; block < SIZE; block++)
		for (uint32_t i = 0; i < COUNT; i++)
			mesh->input[block * COUNT + i] = value(epoch, mesh->rank->rank, block, i);
}

static void check_gathered(const struct mesh *mesh, uint32_t epoch)
{
	for (uint32_t rank = 0; rank < SIZE; rank++)
		for (uint32_t i = 0; i < COUNT; i++)
			if (mesh->output[rank * COUNT + i] != value(epoch, rank, 0, i))
				test_fail(__FILE__, __LINE__, "rank %u, epoch %u: element %u of rank %u is %f, not %f", mesh->rank->rank, epoch, i,
					  rank, (double)mesh->output[rank * COUNT + i], (double)value(epoch, rank, 0, i));
}

static void check_reduced(const struct mesh *mesh, uint32_t epoch)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		float sum = 0;

		for (uint32_t rank = 0; rank < SIZE; rank++)
			sum += value(epoch, rank, mesh->rank->rank, i);
		if (mesh->output[i] != sum)
			test_fail(__FILE__, __LINE__, "rank %u, epoch %u: element %u is %f, not %f", mesh->rank->rank, epoch, i,
				  (double)mesh->output[i], (double)sum);
	}
}

static void run_mesh(struct job_rank *rank, CommProtocol protocol, uint32_t epochs)
{
	struct mesh mesh;

	mesh_open(&mesh, rank, protocol);
	for (uint32_t epoch = 1; epoch <= epochs; epoch++) {
		fill(&mesh, epoch);
		memset(mesh.output, 0xff, SIZE * BLOCK);
		switch (epoch % 3) {
		case 0:
			allgather(&mesh);
			break;
		case 1:
			reduce_scatter(&mesh);
			break;
		default:
			reduce_scatter_written(&mesh);
		}
		thread_finish(mesh.leader);
		if (epoch % 3)
			check_reduced(&mesh, epoch);
		else
			check_gathered(&mesh, epoch);
		/* the input is written anew: a barrier as operators of HCCL have it */
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
	}
}

static void mesh_of_thread(struct job_rank *rank)
{
	run_mesh(rank, COMM_PROTOCOL_HCCS, EPOCHS);
}

static void threads_of_a_process(void)
{
	job_ranks(SIZE, SIZE, mesh_of_thread, NULL);
}

TEST_TIMEOUT(a_mesh_of_threads_by_primitives_alone, 120)
{
	job_run(threads_of_a_process);
}

static void mesh_of_process(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;

	if (index == 0) {
		check_ok(aclrtSetDevice(0));
		check_ok(HcclGetRootInfo(shared));
	}
	job_meet();
	rank = job_join(shared, index, SIZE, (int32_t)index % 3);
	/* what is not mapped for load and store is as good for tasks */
	run_mesh(&rank, COMM_PROTOCOL_ROCE, EPOCHS);
	job_leave(&rank);
}

TEST_TIMEOUT(a_mesh_of_processes_by_primitives_alone, 120)
{
	job_run_processes(SIZE, mesh_of_process);
}

/* ---- a peer that goes while others wait for it ---- */

static struct death {
	_Atomic uint32_t waiting; /* ranks that wait for rank 0 */
	_Atomic uint64_t killed_us;
	pid_t pid;
} *death;

static uint64_t now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void check_told(const char *text)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "pid %d", (int)death->pid);
	check_ptr(text);
	check_str_contains(text, "EI0009");
	check_str_contains(text, "rank 0");
	check_str_contains(text, pid);
	check_str_contains(text, "killed by signal 9");
}

/* Records what is good, and dies when the others wait for the rest. */
static void die(struct mesh *mesh)
{
	for (uint32_t peer = 1; peer < SIZE; peer++)
		check_ok(HcommWriteWithNotifyOnThread(mesh->leader, mesh->channels[peer], mesh->peer_buffers[peer], mesh->input, 64, READY));
	thread_finish(mesh->leader);
	while (atomic_load(&death->waiting) < SIZE - 1)
		usleep(1000);
	usleep(50000);
	job_expect_kill();
	atomic_store(&death->killed_us, now_us());
	raise(SIGKILL);
}

/* Ranks 1 and further with each other. */
static void go_on(struct mesh *mesh, uint32_t index)
{
	ThreadHandle thread = mesh->workers[(index + 1) % SIZE];

	for (uint32_t peer = 1; peer < SIZE; peer++)
		if (peer != index)
			check_ok(HcommWriteWithNotifyOnThread(thread, mesh->channels[peer], mesh->peer_buffers[peer] + index * 64, mesh->input, 64,
							      DONE));
	for (uint32_t peer = 1; peer < SIZE; peer++)
		if (peer != index)
			check_ok(HcommChannelNotifyWaitOnThread(thread, mesh->channels[peer], DONE, 20));
	thread_finish(thread);
	atomic_fetch_add(&death->waiting, 1);
	while (atomic_load(&death->waiting) < 2 * (SIZE - 1))
		usleep(1000);
}

static void survive_death(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;
	ThreadHandle waiter;
	struct mesh mesh;
	HcclResult async;
	uint64_t end;

	if (index == 0) {
		check_ok(aclrtSetDevice(0));
		check_ok(HcclGetRootInfo(shared));
		death->pid = getpid();
	}
	job_meet();
	rank = job_join(shared, index, SIZE, 0);
	mesh_open(&mesh, &rank, COMM_PROTOCOL_HCCS);
	job_meet();
	if (index == 0)
		die(&mesh);
	waiter = mesh.workers[0];
	check_ok(HcommChannelNotifyWaitOnThread(waiter, mesh.channels[0], DONE, 0));
	check_ok(HcommThreadNotifyRecordOnThread(waiter, mesh.leader, 0));
	atomic_fetch_add(&death->waiting, 1);
	check_eq_int(aclrtSynchronizeStreamWithTimeout(thread_stream(waiter), 20000), 507057);
	end = now_us();
	check_told(aclGetRecentErrMsg());
	check_lt_uint(end - death->killed_us, 2000000);
	check_ok(HcclGetCommAsyncError(rank.comm, &async));
	check_eq_int(async, HCCL_E_REMOTE);
	/* those that come later are told at once; what had come before is there */
	check_ok(HcommChannelNotifyWaitOnThread(waiter, mesh.channels[0], READY, 0));
	thread_finish(waiter);
	check_eq_int(HcommChannelNotifyWait(mesh.channels[0], DONE, 0), HCCL_E_REMOTE);
	check_told(aclGetRecentErrMsg());
	check_eq_int(HcommWriteOnThread(waiter, mesh.channels[0], mesh.peer_buffers[0], mesh.input, 64), HCCL_E_REMOTE);
	check_told(aclGetRecentErrMsg());
	check_eq_int(HcommChannelNotifyRecordOnThread(waiter, mesh.channels[0], READY), HCCL_E_REMOTE);
	check_eq_int(HcommReadOnThread(waiter, mesh.channels[0], mesh.output, mesh.peer_inputs[0], 64), HCCL_E_REMOTE);
	go_on(&mesh, index);
	job_leave(&rank);
}

TEST_TIMEOUT(who_waits_for_a_rank_that_dies_is_told, 60)
{
	death = mmap(NULL, sizeof(*death), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(death != MAP_FAILED);
	job_run_processes(SIZE, survive_death);
}

/* ---- the daemon is killed meanwhile ---- */

#define EPOCHS_KILLED 500u

/* A child of @parent that is an hccld; 0: none now. */
static pid_t hccld_of(pid_t parent)
{
	char path[64], name[32];
	int pid, found = 0;
	FILE *children, *comm;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	children = fopen(path, "r");
	while (children && !found && fscanf(children, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = fopen(path, "r");
		if (comm && fgets(name, sizeof(name), comm) && strncmp(name, "hccld", 5) == 0)
			found = pid;
		if (comm)
			fclose(comm);
	}
	if (children)
		fclose(children);
	return found;
}

/* Two times: after a third within 10 s the daemon would take what it keeps for the cause. */
static void *killer(void *arg)
{
	const uint32_t *delay_us = arg;
	pid_t keeper = hccld_of(getppid());

	check_gt_int(keeper, 0);
	for (int i = 0; i < 2; i++) {
		usleep(*delay_us);
		worker_kill(keeper);
	}
	return NULL;
}

static uint32_t kill_delay_us;

static void mesh_under_kills(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;
	pthread_t thread;

	if (index == 0) {
		check_ok(aclrtSetDevice(0));
		check_ok(HcclGetRootInfo(shared));
	}
	job_meet();
	rank = job_join(shared, index, SIZE, (int32_t)index % 2);
	if (index == 0)
		check_eq_int(pthread_create(&thread, NULL, killer, &kill_delay_us), 0);
	run_mesh(&rank, COMM_PROTOCOL_HCCS, EPOCHS_KILLED);
	if (index == 0)
		pthread_join(thread, NULL);
	job_leave(&rank);
}

TEST_TIMEOUT(a_mesh_survives_restarts_of_the_daemon, 120)
{
	static const char *const options[] = { "--keeper", "--log-level", "warning", NULL };

	job_set_options(options);
	for (uint32_t i = 0; i < 4; i++) {
		kill_delay_us = 100000 + i * 37013;
		job_run_processes(SIZE, mesh_under_kills);
	}
}
