/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random test of primitives: ranks copy, reduce, write, read, send, notify and run kernels as steps.h draws it, and compare all their memory with the model
 * after each window. Everything but timing follows from the seed, which is printed first.
 *
 *	primitives --windows N [--seed S] [--ranks 2..6] [--threads]
 *
 * Ranks are processes, with --threads threads of this one. Uses the daemon of HCCLD_SOCKET, else one of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_res.h"
#include "hccld/host_kernel.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "steps.h"
#include "tests/support/private_daemon.h"

#define WAIT_S 120u

/* In memory that all ranks share. */
struct shared {
	_Atomic uint32_t failed, met, root_ready;
	HcclRootInfo root;
};

struct job {
	uint64_t seed, windows;
	uint32_t ranks;
	bool threads;
	struct shared *shared;
};

struct rank {
	const struct job *job;
	uint32_t rank, window, step, meetings;
	struct plan_random random;
	HcclComm comm;
	ThreadHandle threads[STEPS_THREADS];
	aclrtStream streams[STEPS_THREADS];
	aclrtEvent events[STEPS_EVENTS];
	ChannelHandle channels[STEPS_RANKS];
	unsigned char *areas[STEPS_RANKS][STEPS_AREAS]; /* those of peers as their channels have brought them */
	unsigned char *model, *copy;
	struct steps steps;
};

static void die(const struct rank *rank, const char *what, int result)
{
	const char *text = aclGetRecentErrMsg();

	if (!atomic_exchange(&rank->job->shared->failed, 1))
		fprintf(stderr, "seed %lu, window %u, step %u, rank %u of %u: %s: %d %s\n", (unsigned long)rank->job->seed, rank->window,
			rank->step, rank->rank, rank->job->ranks, what, result, text ? text : "");
	_exit(1);
}

#define MUST(call) do { int result_ = (int)(call); if (result_) die(rank, #call, result_); } while (0)

struct addition {
	unsigned char *to;
	uint64_t bytes;
	unsigned char value;
};

static void meet(struct rank *rank)
{
	struct shared *shared = rank->job->shared;
	const uint32_t wanted = ++rank->meetings * rank->job->ranks;

	atomic_fetch_add(&shared->met, 1);
	while (atomic_load(&shared->met) < wanted) {
		if (atomic_load(&shared->failed))
			_exit(1);
		usleep(50);
	}
}

/* ---- steps ---- */

static unsigned char *at(const struct rank *rank, const struct step_place *place)
{
	return rank->areas[place->rank][place->area] + place->offset;
}

static HcommBatchTransferDesc transfer_of(const struct rank *rank, const struct step *step)
{
	HcommBatchTransferDesc desc = { .transType = HCOMM_TRANSFER_TYPE_READ };
	const bool writes = step->to.rank != rank->rank;
	const uint64_t count = step->bytes / (step->type == HCOMM_DATA_TYPE_INT8 ? 1 : step->type == HCOMM_DATA_TYPE_INT16 ? 2 : 4);
	void *to = at(rank, &step->to), *from = at(rank, &step->from);

	if (step->reduces && step->notifies) {
		desc.transType = HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY;
		desc.transferInfo.writeReduceWithNotify.count = count;
		desc.transferInfo.writeReduceWithNotify.dst = to;
		desc.transferInfo.writeReduceWithNotify.src = from;
		desc.transferInfo.writeReduceWithNotify.reduceOp = (HcommReduceOp)step->op;
		desc.transferInfo.writeReduceWithNotify.dataType = (HcommDataType)step->type;
		desc.transferInfo.writeReduceWithNotify.notifyIdx = step->index;
	} else if (step->reduces) {
		desc.transType = writes ? HCOMM_TRANSFER_TYPE_WRITE_REDUCE : HCOMM_TRANSFER_TYPE_READ_REDUCE;
		desc.transferInfo.reduce.count = count;
		desc.transferInfo.reduce.dst = to;
		desc.transferInfo.reduce.src = from;
		desc.transferInfo.reduce.reduceOp = (HcommReduceOp)step->op;
		desc.transferInfo.reduce.dataType = (HcommDataType)step->type;
	} else if (step->notifies) {
		desc.transType = HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY;
		desc.transferInfo.writeWithNotify.len = step->bytes;
		desc.transferInfo.writeWithNotify.dst = to;
		desc.transferInfo.writeWithNotify.src = from;
		desc.transferInfo.writeWithNotify.notifyIdx = step->index;
	} else {
		desc.transType = writes ? HCOMM_TRANSFER_TYPE_WRITE : HCOMM_TRANSFER_TYPE_READ;
		desc.transferInfo.write.len = step->bytes;
		desc.transferInfo.write.dst = to;
		desc.transferInfo.write.src = from;
	}
	return desc;
}

/* The call for one transfer that is not in a batch. */
static int transfer(const struct rank *rank, const struct step *step, const HcommBatchTransferDesc *desc)
{
	const ThreadHandle thread = step->line < STEPS_THREADS ? rank->threads[step->line] : 0;
	const ChannelHandle channel = rank->channels[step->other_rank];
	void *to = at(rank, &step->to), *from = at(rank, &step->from);
	const uint64_t count = desc->transferInfo.reduce.count, bytes = step->bytes;
	const HcommDataType type = (HcommDataType)step->type;
	const HcommReduceOp op = (HcommReduceOp)step->op;

	switch (desc->transType) {
	case HCOMM_TRANSFER_TYPE_WRITE:
		return thread ? HcommWriteOnThread(thread, channel, to, from, bytes) : HcommWriteNbi(channel, to, from, bytes);
	case HCOMM_TRANSFER_TYPE_READ:
		return thread ? HcommReadOnThread(thread, channel, to, from, bytes) : HcommReadNbi(channel, to, from, bytes);
	case HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY:
		return thread ? HcommWriteWithNotifyOnThread(thread, channel, to, from, bytes, step->index)
			      : HcommWriteWithNotifyNbi(channel, to, from, bytes, step->index);
	case HCOMM_TRANSFER_TYPE_WRITE_REDUCE:
		return HcommWriteReduceOnThread(thread, channel, to, from, count, type, op);
	case HCOMM_TRANSFER_TYPE_READ_REDUCE:
		return HcommReadReduceOnThread(thread, channel, to, from, count, type, op);
	default:
		return HcommWriteReduceWithNotifyOnThread(thread, channel, to, from, count, type, op, step->index);
	}
}

/* Returns how many steps that were. */
static uint32_t move(struct rank *rank, const struct step *step)
{
	const ThreadHandle thread = step->line < STEPS_THREADS ? rank->threads[step->line] : 0;
	void *to = at(rank, &step->to), *from = at(rank, &step->from);
	HcommBatchTransferDesc descs[8];
	uint32_t count = 0;

	if (step->other_rank == rank->rank) {
		if (step->reduces)
			MUST(HcommLocalReduceOnThread(thread, to, from, transfer_of(rank, step).transferInfo.reduce.count,
						      (HcommDataType)step->type, (HcommReduceOp)step->op));
		else if (step->by_stream)
			MUST(aclrtMemcpyAsync(to, step->bytes, from, step->bytes, ACL_MEMCPY_DEFAULT, rank->streams[step->line]));
		else
			MUST(HcommLocalCopyOnThread(thread, to, from, step->bytes));
		return 1;
	}
	do
		descs[count] = transfer_of(rank, &step[count]);
	while (step[count++].more);
	if (count == 1)
		MUST(transfer(rank, step, descs));
	else
		MUST(HcommBatchTransferOnThread(thread, rank->channels[step->other_rank], descs, count));
	return count;
}

static void record(const struct rank *rank, const struct step *step)
{
	const bool has_thread = step->line < STEPS_THREADS;

	if (step->other_rank == rank->rank)
		MUST(HcommThreadNotifyRecordOnThread(rank->threads[step->line], rank->threads[step->other_line], step->index));
	else if (has_thread)
		MUST(HcommChannelNotifyRecordOnThread(rank->threads[step->line], rank->channels[step->other_rank], step->index));
	else
		MUST(HcommChannelNotifyRecord(rank->channels[step->other_rank], step->index));
}

static void await(const struct rank *rank, const struct step *step)
{
	const bool has_thread = step->line < STEPS_THREADS;

	if (step->other_rank == rank->rank)
		MUST(HcommThreadNotifyWaitOnThread(rank->threads[step->line], step->index, WAIT_S));
	else if (has_thread)
		MUST(HcommChannelNotifyWaitOnThread(rank->threads[step->line], rank->channels[step->other_rank], step->index, WAIT_S));
	else
		MUST(HcommChannelNotifyWait(rank->channels[step->other_rank], step->index, WAIT_S));
}

static void finish(const struct rank *rank, uint32_t line)
{
	if (line < STEPS_THREADS)
		MUST(aclrtSynchronizeStreamWithTimeout(rank->streams[line], (int32_t)WAIT_S * 1000));
	else
		MUST(HcommChannelFence(rank->channels[rank->rank ? 0 : 1]));
}

/* Each block its part. */
static void add_value(uint32_t block, uint32_t blocks, void *args)
{
	const struct addition *addition = args;

	for (uint64_t i = block; i < addition->bytes; i += blocks)
		addition->to[i] += addition->value;
}

static void launch(const struct rank *rank, const struct step *step)
{
	struct addition addition = { at(rank, &step->to), step->bytes, step->value };

	MUST(HccldLaunchHostKernel(add_value, step->index, &addition, sizeof(addition), rank->streams[step->line]));
}

static uint32_t step_do(struct rank *rank, const struct step *step)
{
	switch (step->kind) {
	case STEP_MOVE:
		return move(rank, step);
	case STEP_SET:
		MUST(aclrtMemsetAsync(at(rank, &step->to), step->bytes, step->value, step->bytes, rank->streams[step->line]));
		break;
	case STEP_KERNEL:
		launch(rank, step);
		break;
	case STEP_SEND:
		MUST(HcclSend(at(rank, &step->from), step->bytes, HCCL_DATA_TYPE_INT8, step->other_rank, rank->comm, rank->streams[0]));
		break;
	case STEP_RECEIVE:
		MUST(HcclRecv(at(rank, &step->to), step->bytes, HCCL_DATA_TYPE_INT8, step->other_rank, rank->comm, rank->streams[0]));
		break;
	case STEP_RECORD:
		record(rank, step);
		break;
	case STEP_WAIT:
		await(rank, step);
		break;
	case STEP_EVENT_RECORD:
		MUST(aclrtRecordEvent(rank->events[step->index], rank->streams[step->line]));
		break;
	case STEP_EVENT_WAIT:
		MUST(aclrtStreamWaitEvent(rank->streams[step->line], rank->events[step->index]));
		break;
	case STEP_HOST:
		finish(rank, step->line);
	}
	return 1;
}

static void compare(const struct rank *rank)
{
	for (uint32_t area = 0; area < STEPS_AREAS; area++) {
		const unsigned char *is = rank->copy, *should = steps_at(rank->model, rank->rank, area);
		char text[120];

		MUST(aclrtMemcpy(rank->copy, STEPS_AREA, rank->areas[rank->rank][area], STEPS_AREA, ACL_MEMCPY_DEFAULT));
		for (uint32_t i = 0; i < STEPS_AREA && memcmp(is, should, STEPS_AREA) != 0; i++) {
			if (is[i] == should[i])
				continue;
			snprintf(text, sizeof(text), "area %u is wrong at byte %u: is %#x, should be %#x", area, i, is[i], should[i]);
			die(rank, text, 0);
		}
	}
}

static void window_run(struct rank *rank)
{
	steps_plan(rank->job->seed, rank->window, rank->job->ranks, &rank->steps);
	for (rank->step = 0; rank->step < rank->steps.count;) {
		const struct step *step = &rank->steps.steps[rank->step];

		if (step->rank == rank->rank && plan_chance(&rank->random, 2))
			usleep(plan_below(&rank->random, 300));
		rank->step += step->rank == rank->rank ? step_do(rank, step) : 1;
	}
	for (uint32_t i = 0; i < STEPS_LINES; i++)
		finish(rank, i);
	steps_apply(&rank->steps, rank->model);
	/* peers write here until all have finished, and again after all have compared */
	meet(rank);
	compare(rank);
	meet(rank);
}

/* ---- life of a rank ---- */

static void join(struct rank *rank)
{
	struct shared *shared = rank->job->shared;

	if (rank->rank == 0) {
		MUST(HcclGetRootInfo(&shared->root));
		atomic_store(&shared->root_ready, 1);
	}
	while (!atomic_load(&shared->root_ready))
		usleep(200);
	MUST(HcclCommInitRootInfo(rank->job->ranks, &shared->root, rank->rank, &rank->comm));
}

static void memory_new(struct rank *rank, HcclMemHandle handles[2])
{
	unsigned char **areas = rank->areas[rank->rank];
	uint64_t bytes;

	MUST(HcclGetHcclBuffer(rank->comm, (void **)&areas[0], &bytes));
	MUST(bytes < STEPS_AREA);
	MUST(aclrtMalloc((void **)&areas[1], STEPS_AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	MUST(aclrtMallocHost((void **)&areas[2], STEPS_AREA));
	MUST(aclrtMalloc((void **)&areas[3], STEPS_AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	for (uint32_t i = 0; i < 2; i++) {
		CommMem mem = { i ? COMM_MEM_TYPE_HOST : COMM_MEM_TYPE_DEVICE, areas[1 + i], STEPS_AREA };

		MUST(HcclCommMemReg(rank->comm, i ? "host" : "device", &mem, &handles[i]));
	}
	for (uint32_t i = 0; i < STEPS_AREAS; i++)
		MUST(aclrtMemcpy(areas[i], STEPS_AREA, steps_at(rank->model, rank->rank, i), STEPS_AREA, ACL_MEMCPY_DEFAULT));
}

static void connect_all(struct rank *rank, HcclMemHandle handles[2])
{
	HcclChannelDesc descs[STEPS_RANKS];
	ChannelHandle made[STEPS_RANKS];
	uint32_t count = 0;

	MUST(HcclChannelDescInit(descs, STEPS_RANKS));
	for (uint32_t peer = 0; peer < rank->job->ranks; peer++) {
		if (peer == rank->rank)
			continue;
		descs[count].remoteRank = peer;
		descs[count].channelProtocol = COMM_PROTOCOL_HCCS;
		descs[count].notifyNum = STEPS_NOTIFIES;
		descs[count].memHandles = handles;
		descs[count++].memHandleNum = 2;
	}
	MUST(HcclChannelAcquire(rank->comm, COMM_ENGINE_AICPU_TS, descs, count, made));
	for (uint32_t peer = 0, i = 0; peer < rank->job->ranks; peer++) {
		CommMem *mems;
		uint64_t bytes;
		char **tags;

		if (peer == rank->rank)
			continue;
		rank->channels[peer] = made[i++];
		MUST(HcclChannelGetHcclBuffer(rank->comm, rank->channels[peer], (void **)&rank->areas[peer][0], &bytes));
		MUST(HcclChannelGetRemoteMems(rank->comm, rank->channels[peer], &count, &mems, &tags));
		MUST(count != 2);
		for (uint32_t k = 0; k < 2; k++)
			rank->areas[peer][strcmp(tags[k], "host") == 0 ? 2 : 1] = mems[k].addr;
	}
}

static void rank_open(struct rank *rank)
{
	struct plan_random random = plan_random_of(rank->job->seed, 12, 0, 0);
	HcclMemHandle handles[2];

	rank->random = plan_random_of(rank->job->seed, 13, rank->rank, 0);
	rank->model = malloc((uint64_t)STEPS_RANKS * STEPS_AREAS * STEPS_AREA);
	rank->copy = malloc(STEPS_AREA);
	MUST(!rank->model || !rank->copy);
	for (uint64_t i = 0; i < (uint64_t)STEPS_RANKS * STEPS_AREAS * STEPS_AREA; i += 8) {
		uint64_t word = plan_next(&random);

		memcpy(rank->model + i, &word, 8);
	}
	MUST(aclrtSetDevice((int32_t)(rank->rank * (rank->job->seed % 3 + 1) / 2 % 8)));
	join(rank);
	memory_new(rank, handles);
	connect_all(rank, handles);
	MUST(HcclThreadAcquire(rank->comm, COMM_ENGINE_AICPU_TS, STEPS_THREADS, STEPS_NOTIFIES, rank->threads));
	for (uint32_t i = 0; i < STEPS_THREADS; i++)
		MUST(HcommThreadResGetInfo(rank->threads[i], THREAD_RES_TYPE_STREAM, sizeof(rank->streams[i]), &rank->streams[i]));
	for (uint32_t i = 0; i < STEPS_EVENTS; i++)
		MUST(aclrtCreateEvent(&rank->events[i]));
}

static void *rank_run(void *data)
{
	struct rank *rank = data;

	rank_open(rank);
	meet(rank);
	for (rank->window = 0; rank->window < rank->job->windows; rank->window++)
		window_run(rank);
	MUST(HcclCommDestroy(rank->comm));
	free(rank->model);
	free(rank->copy);
	return NULL;
}

/* ---- the program ---- */

static int run_threads(struct rank *ranks, uint32_t count)
{
	pthread_t ids[STEPS_RANKS];

	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&ids[i], NULL, rank_run, &ranks[i]) != 0)
			return 1;
	for (uint32_t i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static int run_processes(struct rank *ranks, uint32_t count)
{
	int failed = 0;

	for (uint32_t i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rank_run(&ranks[i]);
		_exit(0);
	}
	for (uint32_t i = 0; i < count; i++) {
		int status;

		wait(&status);
		if (WIFSIGNALED(status)) {
			fprintf(stderr, "a rank was ended by signal %d\n", WTERMSIG(status));
			atomic_store(&ranks->job->shared->failed, 1);
		}
		failed |= status;
	}
	return failed != 0;
}

static int run(struct job *job)
{
	struct rank *ranks = calloc(STEPS_RANKS, sizeof(*ranks));
	int r;

	job->shared = mmap(NULL, sizeof(*job->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!ranks || job->shared == MAP_FAILED)
		return 1;
	for (uint32_t i = 0; i < job->ranks; i++) {
		ranks[i].job = job;
		ranks[i].rank = i;
	}
	fflush(NULL);
	r = job->threads ? run_threads(ranks, job->ranks) : run_processes(ranks, job->ranks);
	printf("%s: %u ranks, %lu windows, seed %lu\n", r ? "failed" : "ok", job->ranks, (unsigned long)job->windows,
	       (unsigned long)job->seed);
	free(ranks);
	return r;
}

static int parse(int argc, char **argv, struct job *job)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--threads") == 0)
			job->threads = true;
		else if (i + 1 < argc && strcmp(argv[i], "--windows") == 0)
			job->windows = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			job->seed = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--ranks") == 0)
			job->ranks = (uint32_t)strtoul(argv[++i], NULL, 0);
		else
			return -EINVAL;
	}
	if (!job->ranks)
		job->ranks = 2 + (uint32_t)(job->seed % (STEPS_RANKS - 1));
	return job->ranks < 2 || job->ranks > STEPS_RANKS ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	struct job job = { .windows = 100 };
	struct private_daemon daemon;
	bool own_daemon = !getenv("HCCLD_SOCKET");
	int r;

	if (getrandom(&job.seed, sizeof(job.seed), 0) != sizeof(job.seed) || parse(argc, argv, &job) < 0) {
		fprintf(stderr, "usage: primitives --windows N [--seed S] [--ranks 2..%u] [--threads]\n", STEPS_RANKS);
		return 2;
	}
	printf("seed %lu\n", (unsigned long)job.seed);
	fflush(stdout);
	if (own_daemon && private_daemon_start(&daemon, NULL, NULL) < 0)
		return 1;
	r = run(&job);
	if (own_daemon && private_daemon_stop(&daemon) != 0) {
		fprintf(stderr, "the daemon did not end well\n");
		r = 1;
	}
	return r;
}
