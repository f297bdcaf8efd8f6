/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of rank tables: who meets whom, names, when a table is free again; ending a creation from another thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

static char table_path[128];
static pthread_barrier_t barrier;

/* Ranks 0 to @count - 1 on the devices of their number. @version: "1.0", "1.2", "2.0", or "groups". */
static void write_table(const char *version, uint32_t count)
{
	FILE *file = fopen(table_path, "w");

	check_ptr(file);
	if (strcmp(version, "2.0") == 0)
		fprintf(file, "{\"version\":\"2.0\",\"rank_count\":%u,\"rank_list\":[", count);
	else if (strcmp(version, "groups") == 0)
		fprintf(file, "{\"status\":\"completed\",\"group_count\":\"1\",\"group_list\":[{\"instance_count\":\"1\",\"device_count\":\"%u\",\"instance_list\":[{\"server_id\":\"10.9.8.7\",\"devices\":[", count);
	else
		fprintf(file, "{\"status\":\"completed\",\"version\":\"%s\",\"server_count\":\"1\",\"server_list\":[{\"server_id\":\"10.9.8.7\",\"device\":[", version);
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(version, "2.0") == 0)
			fprintf(file, "%s{\"rank_id\":%u,\"local_id\":%u,\"device_id\":%u,\"level_list\":[{\"net_layer\":0,\"net_instance_id\":\"srv\",\"net_type\":\"TOPO_FILE_DESC\"}]}",
				i ? "," : "", i, i, i);
		else
			fprintf(file, "%s{\"device_id\":\"%u\",\"rank_id\":\"%u\",\"device_ip\":\"192.0.2.%u\"}", i ? "," : "", i, i, i + 1);
	}
	fprintf(file, strcmp(version, "2.0") == 0 ? "]}" : strcmp(version, "groups") == 0 ? "]}]}]}" : "]}]}");
	check_eq_int(fclose(file), 0);
}

/* Sends @value to the next rank and checks that the previous one has sent @value, too. */
static void ring(HcclComm comm, aclrtStream stream, unsigned char value)
{
	unsigned char *memory = job_memory(64, value);
	uint32_t rank, size;

	check_ok(HcclGetRankId(comm, &rank));
	check_ok(HcclGetRankSize(comm, &size));
	memset(memory + 32, 0, 32);
	HcclSendRecvItem items[] = { job_send((rank + 1) % size, memory, 32), job_receive((rank + size - 1) % size, memory + 32, 32) };

	check_ok(HcclBatchSendRecv(items, 2, comm, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(memory[32], value);
	check_eq_uint(memory[63], value);
	check_ok(aclrtFree(memory));
}

static void all_versions(uint32_t index, HcclRootInfo *shared)
{
	static const char *const versions[] = { "1.0", "1.2", "2.0", "groups" };
	char name[COMM_NAME_MAX_LENGTH];
	HcclCommConfig config;
	aclrtStream stream;
	HcclComm comm, found;
	uint32_t value;

	check_ok(aclrtSetDevice((int32_t)index));
	check_ok(aclrtCreateStream(&stream));
	HcclCommConfigInit(&config);
	for (int i = 0; i < 4; i++) {
		if (index == 0)
			write_table(versions[i], 4);
		job_meet();
		snprintf(config.hcclCommName, sizeof(config.hcclCommName), "world %d", i);
		if (i % 2)
			check_ok(HcclCommInitClusterInfoConfig(table_path, index, &config, &comm));
		else
			check_ok(HcclCommInitClusterInfo(table_path, index, &comm));
		check_ok(HcclGetCommName(comm, name));
		check_eq_str(name, i % 2 ? config.hcclCommName : "hccl_world_group");
		check_ok(HcclCommGetHandleWithName(name, &found));
		check(found == comm);
		check_ok(HcclGetRankId(comm, &value));
		check_eq_uint(value, index);
		check_ok(HcclGetRankSize(comm, &value));
		check_eq_uint(value, 4u);
		ring(comm, stream, (unsigned char)(i + 1));
		check_ok(HcclCommDestroy(comm));
		check_fails(HcclCommGetHandleWithName(name, &found), HCCL_E_PARA, "no communicator of that name");
		job_meet();
	}
}

TEST(processes_meet_by_tables_of_all_versions)
{
	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	job_run_processes(4, all_versions);
}

/* Two jobs of two processes each, with one table, at the same time. */
static void two_jobs(uint32_t index, HcclRootInfo *shared)
{
	aclrtStream stream;
	HcclComm comm;

	setenv("HCCLD_JOB", index / 2 ? "the second" : "the first", 1);
	if (index == 0)
		write_table("1.0", 2);
	job_meet();
	check_ok(aclrtSetDevice((int32_t)index % 2));
	check_ok(aclrtCreateStream(&stream));
	/* rank 0 of one job, then rank 1 of the other: they must not meet */
	usleep(index == 0 || index == 3 ? 0 : 100000);
	check_ok(HcclCommInitClusterInfo(table_path, index % 2, &comm));
	ring(comm, stream, (unsigned char)(index / 2 + 1));
	check_ok(HcclCommDestroy(comm));
}

TEST(jobs_with_one_table_do_not_meet)
{
	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	job_run_processes(4, two_jobs);
}

/* One after the other, while the first communicator lives; hcclJobID tells jobs, too. */
static void one_after_the_other(uint32_t index, HcclRootInfo *shared)
{
	HcclCommConfig config;
	aclrtStream stream;
	HcclComm comm;

	if (index == 0)
		write_table("1.0", 2);
	job_meet();
	check_ok(aclrtSetDevice((int32_t)index % 2));
	check_ok(aclrtCreateStream(&stream));
	if (index < 2)
		check_ok(HcclCommInitClusterInfo(table_path, index % 2, &comm));
	job_meet();
	if (index >= 2 && index < 4)
		check_ok(HcclCommInitClusterInfo(table_path, index % 2, &comm));
	job_meet();
	HcclCommConfigInit(&config);
	config.hcclJobID = 1 + index / 2;
	if (index >= 4)
		check_ok(HcclCommInitClusterInfoConfig(table_path, index % 2, &config, &comm));
	ring(comm, stream, (unsigned char)(index / 2 + 1));
	job_meet();
	check_ok(HcclCommDestroy(comm));
}

TEST(a_complete_communicator_frees_its_table)
{
	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	job_run_processes(8, one_after_the_other);
}

/* A process dies while the others wait; the job starts again at once. */
static void second_try(uint32_t index, HcclRootInfo *shared)
{
	aclrtStream stream;
	HcclComm comm = NULL;

	if (index == 0)
		write_table("1.0", 3);
	job_meet();
	/* the next job: its processes come later */
	usleep(index >= 3 ? 1500000 : 0);
	check_ok(aclrtSetDevice((int32_t)index % 3));
	check_ok(aclrtCreateStream(&stream));
	if (index == 0) {
		check_fails(HcclCommInitClusterInfo(table_path, 0, &comm), HCCL_E_REMOTE, "killed by signal 9");
	} else if (index == 1) {
		job_expect_kill();
		alarm(0);
		if (fork() == 0) {
			usleep(300000);
			kill(getppid(), SIGKILL);
			_exit(0);
		}
		HcclCommInitClusterInfo(table_path, 1, &comm);
		pause();
	} else if (index == 2) {
		/* it comes late, and is told why there is nothing to wait for */
		usleep(900000);
		check_fails(HcclCommInitClusterInfo(table_path, 2, &comm), HCCL_E_REMOTE, "killed by signal 9");
	} else {
		check_ok(HcclCommInitClusterInfo(table_path, index - 3, &comm));
		ring(comm, stream, 9);
		check_ok(HcclCommDestroy(comm));
	}
}

TEST(a_failed_creation_can_be_tried_again)
{
	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	job_run_processes(6, second_try);
}

/* Two jobs with one table at the same time, and nothing that tells them apart. */
static void same_job(uint32_t index, HcclRootInfo *shared)
{
	HcclComm comm = NULL;

	if (index == 0)
		write_table("1.0", 3);
	job_meet();
	check_ok(aclrtSetDevice((int32_t)index % 2));
	job_meet();
	check_fails(HcclCommInitClusterInfo(table_path, index % 2, &comm), HCCL_E_PARA, "need a different HCCLD_JOB each");
	check_null(comm);
}

TEST(jobs_that_cannot_be_told_apart_hear_of_it)
{
	snprintf(table_path, sizeof(table_path), "%s", test_path("table"));
	job_run_processes(4, same_job);
}

/* ---- ending a creation ---- */

struct stuck {
	HcclRootInfo root;
	HcclComm *parent;
	HcclComm comm;
	HcclResult result;
	char text[1024];
	uint32_t rank, size;
};

static void *stuck_main(void *data)
{
	struct stuck *stuck = data;
	const char *text;

	check_ok(aclrtSetDevice((int32_t)stuck->rank));
	if (stuck->parent) {
		uint32_t members[] = { 0, 1 };
		HcclCommConfig config;

		HcclCommConfigInit(&config);
		stuck->result = HcclCreateSubCommConfig(stuck->parent, 2, members, 3, stuck->rank, &config, &stuck->comm);
	} else {
		stuck->result = HcclCommInitRootInfo(stuck->size, &stuck->root, stuck->rank, &stuck->comm);
	}
	text = aclGetRecentErrMsg();
	snprintf(stuck->text, sizeof(stuck->text), "%s", text ? text : "");
	return NULL;
}

static HcclComm await_handle(struct stuck *stuck)
{
	HcclComm comm;

	while (!(comm = *(HcclComm volatile *)&stuck->comm))
		usleep(1000);
	return comm;
}

static void destroy_stuck(void)
{
	struct stuck stuck[2] = { { .rank = 0, .size = 3 }, { .rank = 2, .size = 3 } };
	pthread_t threads[2];
	HcclComm comm;
	uint32_t value;

	check_ok(HcclGetRootInfo(&stuck[0].root));
	stuck[1].root = stuck[0].root;
	check_eq_int(pthread_create(&threads[0], NULL, stuck_main, &stuck[0]), 0);
	check_eq_int(pthread_create(&threads[1], NULL, stuck_main, &stuck[1]), 0);
	comm = await_handle(&stuck[0]);
	await_handle(&stuck[1]);
	usleep(50000);
	/* the handle is good for nothing else yet */
	check_fails(HcclGetRankId(comm, &value), HCCL_E_PARA, "that communicator is being created");
	check_ok(HcclCommDestroy(comm));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	check_eq_int(stuck[0].result, HCCL_E_UNAVAIL);
	check_str_contains(stuck[0].text, "was destroyed with HcclCommDestroy while it was created; 1 of 3 ranks is missing: rank 1");
	/* who waited with it is told, too */
	check_eq_int(stuck[1].result, HCCL_E_REMOTE);
	check_str_contains(stuck[1].text, "rank 0 (pid ");
	check_null(stuck[0].comm);
	check_null(stuck[1].comm);
	check_fails(HcclCommDestroy(comm), HCCL_E_PARA, "no communicator of this process");
}

TEST(a_creation_is_ended_from_another_thread)
{
	job_run(destroy_stuck);
}

static void destroy_parent(struct job_rank *rank)
{
	static _Atomic int destroyed;

	struct stuck stuck = { .rank = rank->rank, .parent = &rank->comm };
	HcclComm comm = rank->comm;
	pthread_t thread;

	/* the whole must be there until its part is being made */
	while (rank->rank && !atomic_load(&destroyed))
		usleep(1000);
	if (rank->rank == 0) {
		check_eq_int(pthread_create(&thread, NULL, stuck_main, &stuck), 0);
		await_handle(&stuck);
		usleep(50000);
		check_ok(HcclCommDestroy(comm));
		atomic_store(&destroyed, 1);
		pthread_join(thread, NULL);
		check_eq_int(stuck.result, HCCL_E_UNAVAIL);
		check_str_contains(stuck.text, "destroyed the communicator it is a part of");
		rank->comm = NULL;
	}
	/* a member that leaves would end it, too */
	pthread_barrier_wait(&barrier);
}

static void destroy_parents(void)
{
	check_eq_int(pthread_barrier_init(&barrier, NULL, 2), 0);
	job_ranks(2, 2, destroy_parent, NULL);
}

TEST(a_part_is_not_waited_for_without_its_whole)
{
	job_run(destroy_parents);
}
