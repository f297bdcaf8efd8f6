/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon is killed under its keeper, at the steps of a channel's life and at any moment: ends, notifies, registrations and imports are
 * there afterwards, none twice and none too many. The limits allow just what the two ranks have at a time.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"
#include "hccl/hccl_res.h"

#define AREA 8192u
#define NOTIFIES 3u
#define RUNS 8u
#define KILLS 2u /* a registry that ends the daemon more often within 10 s of its start is dropped */

static struct shared {
	HcclRootInfo root;
	_Atomic int step;
	_Atomic uint32_t met, rounds;
	_Atomic bool is_over, stops;
	pid_t keeper;
} *shared;

static const char *const options[] = { "--keeper", NULL };
static const char limits[] = "[limits]\nchannels_per_tenant = 2\nregistrations_per_tenant = 2\n[devices]\nnotifies_per_device = 6\n";

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

/* Both have come here. */
static void meet(uint32_t *number)
{
	uint32_t both = 2 * ++*number;

	atomic_fetch_add(&shared->met, 1);
	while (atomic_load(&shared->met) < both)
		usleep(50);
}

struct end {
	struct job_rank rank;
	char *area, *remote;
	HcclMemHandle handle;
	HcclChannelDesc desc;
	ChannelHandle channel;
};

static void end_begin(uint32_t index, struct end *end)
{
	CommMem mem;

	if (index == 0) {
		check_ok(aclrtSetDevice(0));
		check_ok(HcclGetRootInfo(&shared->root));
		atomic_store(&shared->step, 1);
	}
	await(1);
	end->rank = job_join(&shared->root, index, 2, 0);
	end->area = job_memory(AREA, (int)index + 1);
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, end->area, AREA };
	check_ok(HcclCommMemReg(end->rank.comm, "area", &mem, &end->handle));
	check_ok(HcclChannelDescInit(&end->desc, 1));
	end->desc.remoteRank = index ^ 1;
	end->desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	end->desc.notifyNum = NOTIFIES;
	end->desc.memHandles = &end->handle;
	end->desc.memHandleNum = 1;
}

static void end_acquire(struct end *end)
{
	uint32_t count;
	CommMem *mems;
	char **tags;

	check_ok(HcclChannelAcquire(end->rank.comm, COMM_ENGINE_AIV, &end->desc, 1, &end->channel));
	check_ok(HcclChannelGetRemoteMems(end->rank.comm, end->channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	check_eq_str(tags[0], "area");
	end->remote = mems[0].addr;
	check_eq_int(end->remote[AREA - 1], (int)(end->rank.rank ^ 1) + 1);
}

/* By a load and by a task. */
static void end_check(struct end *end)
{
	char *own = job_memory(AREA, 0);

	check_eq_int(end->remote[AREA - 1], (int)(end->rank.rank ^ 1) + 1);
	check_ok(aclrtMemcpyAsync(own, AREA, end->remote, AREA, ACL_MEMCPY_DEVICE_TO_DEVICE, end->rank.stream));
	check_ok(aclrtSynchronizeStream(end->rank.stream));
	check_eq_int(own[AREA - 1], (int)(end->rank.rank ^ 1) + 1);
	check_ok(aclrtFree(own));
}

/* @killer: NULL, or what the test itself does meanwhile. */
static void run(void (*body)(uint32_t index), void (*killer)(void), bool is_second_killed)
{
	struct private_daemon daemon;
	pid_t pids[2];
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	check_eq_int(private_daemon_start(&daemon, options, limits), 0);
	shared->keeper = daemon.pid;
	fflush(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		pids[i] = fork();
		check_ge_int(pids[i], 0);
		if (pids[i] == 0) {
			body(i);
			_exit(0);
		}
	}
	if (killer)
		killer();
	check_eq_int(waitpid(pids[0], &status, 0), pids[0]);
	if (status)
		kill(pids[1], SIGKILL);
	check_eq_int(status, 0);
	check_eq_int(waitpid(pids[1], &status, 0), pids[1]);
	check(is_second_killed ? WIFSIGNALED(status) : status == 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

/* ---- at each step ---- */

static void at_each_step(uint32_t index, bool is_early)
{
	struct end end;
	uint32_t met = 0;
	HcclMemHandle again;
	CommMem mem;

	end_begin(index, &end);
	meet(&met);
	if (index == 0 && is_early)
		worker_replace(shared->keeper);
	meet(&met);
	/* the registration is there: the same gives the same */
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, end.area, AREA };
	check_ok(HcclCommMemReg(end.rank.comm, "area", &mem, &again));
	check_eq_ptr(again, end.handle);
	/* one end is offered and waited for */
	if (index == 1) {
		usleep(100000);
		if (is_early)
			worker_replace(shared->keeper);
		usleep(100000);
	}
	end_acquire(&end);
	end_check(&end);
	meet(&met);
	if (index == 0 && !is_early)
		worker_replace(shared->keeper);
	meet(&met);
	/* complete; and again */
	end_check(&end);
	check_ok(HcclChannelAcquire(end.rank.comm, COMM_ENGINE_AIV, &end.desc, 1, &end.channel));
	meet(&met);
	check_ok(HcclChannelDestroy(end.rank.comm, &end.channel, 1));
	if (index == 0 && !is_early)
		worker_replace(shared->keeper);
	end_acquire(&end);
	end_check(&end);
	meet(&met);
	job_leave(&end.rank);
}

static void early(uint32_t index)
{
	at_each_step(index, true);
}

static void late(uint32_t index)
{
	at_each_step(index, false);
}

TEST_TIMEOUT(registrations_and_offers_survive_the_daemon, 60)
{
	run(early, NULL, false);
}

TEST_TIMEOUT(complete_channels_survive_the_daemon, 60)
{
	run(late, NULL, false);
}

/* ---- with the peer ---- */

static void dies_with_the_daemon(uint32_t index)
{
	struct end end;
	uint32_t met = 0;
	pid_t old;

	end_begin(index, &end);
	end_acquire(&end);
	meet(&met);
	if (index == 1) {
		old = worker_of(shared->keeper);
		kill(old, SIGSTOP);
		atomic_store(&shared->step, (int)old);
		kill(getpid(), SIGKILL);
	}
	while (atomic_load(&shared->step) <= 1)
		usleep(500);
	usleep(100000);
	kill(atomic_load(&shared->step), SIGKILL);
	/* the next daemon finds the peer dead */
	for (int i = 0; aclrtMemcpy(end.area, 1, end.remote, 1, ACL_MEMCPY_DEVICE_TO_DEVICE) == 0; i++) {
		check_lt_int(i, 20000);
		usleep(1000);
	}
	check_str_contains(aclGetRecentErrMsg(), ", killed by signal 9; it reads as zeros");
	for (int i = 0; end.remote[AREA - 1]; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	check_fails(HcclChannelAcquire(end.rank.comm, COMM_ENGINE_AIV, &end.desc, 1, &end.channel), HCCL_E_REMOTE, "rank 1, pid");
	worker_replace(shared->keeper);
	check_fails(HcclChannelAcquire(end.rank.comm, COMM_ENGINE_AIV, &end.desc, 1, &end.channel), HCCL_E_REMOTE, "rank 1, pid");
	check_ok(HcclChannelDestroy(end.rank.comm, &end.channel, 1));
	job_leave(&end.rank);
}

TEST_TIMEOUT(a_peer_that_dies_with_the_daemon_is_found_dead, 60)
{
	run(dies_with_the_daemon, NULL, true);
}

/* ---- at any moment ---- */

static void goes_round(uint32_t index)
{
	struct end end;
	uint32_t met = 0;

	end_begin(index, &end);
	meet(&met);
	atomic_store(&shared->step, 2);
	do {
		end_acquire(&end);
		atomic_fetch_add(&shared->rounds, 1);
		if (index == 0 && atomic_load(&shared->is_over))
			atomic_store(&shared->stops, true);
		meet(&met);
		check_ok(HcclChannelDestroy(end.rank.comm, &end.channel, 1));
		meet(&met);
	} while (!atomic_load(&shared->stops));
	end_acquire(&end);
	end_check(&end);
	meet(&met);
	job_leave(&end.rank);
}

static void kills_at_any_moment(void)
{
	static unsigned int seed;

	if (!seed)
		seed = (unsigned int)test_seed();
	await(2);
	for (uint32_t i = 0; i < KILLS; i++) {
		uint32_t rounds = atomic_load(&shared->rounds);

		usleep((unsigned int)rand_r(&seed) % 30000);
		worker_replace(shared->keeper);
		/* it works again */
		for (int k = 0; atomic_load(&shared->rounds) < rounds + 6; k++) {
			check_lt_int(k, 20000);
			usleep(1000);
		}
	}
	atomic_store(&shared->is_over, true);
}

TEST_TIMEOUT(channels_survive_the_daemon_at_any_moment, 120)
{
	for (uint32_t i = 0; i < RUNS; i++)
		run(goes_round, kills_at_any_moment, false);
}
