/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed under its keeper while ranks meet by a rank table, make parts, are suspended and resumed. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"

#define RANKS 4u

static char table_path[128];
static _Atomic int stop;
static pthread_barrier_t barrier;
static time_t end;

static void meet(void)
{
	pthread_barrier_wait(&barrier);
}

static void write_table(void)
{
	FILE *file = fopen(table_path, "w");

	check_ptr(file);
	fprintf(file, "{\"status\":\"completed\",\"version\":\"1.0\",\"server_count\":\"1\",\"server_list\":[{\"server_id\":\"x\",\"device\":[");
	for (uint32_t i = 0; i < RANKS; i++)
		fprintf(file, "%s{\"device_id\":\"%u\",\"rank_id\":\"%u\"}", i ? "," : "", i, i);
	fprintf(file, "]}]}");
	check_eq_int(fclose(file), 0);
}

static void ring(HcclComm comm, aclrtStream stream, unsigned char *memory)
{
	uint32_t rank, size;

	check_ok(HcclGetRankId(comm, &rank));
	check_ok(HcclGetRankSize(comm, &size));
	HcclSendRecvItem items[] = { job_send((rank + 1) % size, memory, 1000),
				     job_receive((rank + size - 1) % size, memory + 1000, 1000) };

	memset(memory, (int)rank + 1, 1000);
	memset(memory + 1000, 0, 1000);
	check_ok(HcclBatchSendRecv(items, 2, comm, stream));
	check_ok(HcclBarrier(comm, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(memory[1999], (rank + size - 1) % size + 1);
}

/* One round; rank 0 comes last, so that the others wait while the daemon dies. */
static void round_of(uint32_t rank, aclrtStream stream, unsigned char *memory)
{
	uint32_t members[] = { 1, 0, 3, 2 };
	HcclComm comm, part;
	HcclCommConfig config;

	usleep(rank == 0 ? 300000 : 0);
	check_ok(HcclCommInitClusterInfo(table_path, rank, &comm));
	ring(comm, stream, memory);
	HcclCommConfigInit(&config);
	usleep(rank == 1 ? 300000 : 0);
	check_ok(HcclCreateSubCommConfig(&comm, RANKS, members, 6, rank ^ 1, &config, &part));
	ring(part, stream, memory);
	meet();
	check_ok(HcclCommSuspend(part));
	check_fails(HcclBarrier(part, stream), HCCL_E_SUSPENDING, "is suspended");
	meet();
	usleep(rank == 2 ? 100000 : 0);
	check_ok(HcclCommResume(part));
	ring(part, stream, memory);
	ring(comm, stream, memory);
	check_ok(HcclCommDestroy(part));
	check_ok(HcclCommDestroy(comm));
	meet();
}

static void *work(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	unsigned char *memory;
	aclrtStream stream;

	check_ok(aclrtSetDevice((int32_t)rank));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(2000, 0);
	for (;;) {
		/* all look between the same two meetings, in which nobody writes */
		if (rank == 0 && time(NULL) >= end)
			atomic_store(&stop, 1);
		meet();
		if (atomic_load(&stop))
			return NULL;
		meet();
		round_of(rank, stream, memory);
	}
}

static void program(void)
{
	pthread_t threads[RANKS];

	write_table();
	end = time(NULL) + 4;
	check_eq_int(pthread_barrier_init(&barrier, NULL, RANKS), 0);
	for (uintptr_t i = 0; i < RANKS; i++)
		check_eq_int(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

TEST_TIMEOUT(joins_and_recoveries_survive_restarts_of_the_daemon, 60)
{
	const char *options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		program();
		_exit(0);
	}
	/* two: three in ten seconds are a registry that ends the daemon */
	usleep(450000 + (useconds_t)(test_seed() % 500000));
	worker_kill(daemon.pid);
	usleep(1100000 + (useconds_t)(test_seed() % 700000));
	worker_kill(daemon.pid);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}
