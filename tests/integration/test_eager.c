/* SPDX-License-Identifier: Apache-2.0 */
/* Sends of up to 8 KiB complete without their receivers, a thousand of them, too, and reach them when the sender has long gone. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/job.h"

#define MESSAGES 1000u
#define LARGEST 8192u

static const uint32_t sizes[] = { 41, 1, 8, 40, 1000, 4096, LARGEST };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* HURRIES..: without a wait for what was sent */
static enum end { DESTROYS, KILLED, BATCH, PAUSES, HURRIES, HURRIES_TO_DIE } end;

static unsigned char value_of(uint32_t message, uint32_t at)
{
	return (unsigned char)(message * 7 + at * 3 + 1);
}

static void fill(unsigned char *memory, uint32_t message, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		memory[i] = value_of(message, i);
}

static void check_filled(const unsigned char *memory, uint32_t message, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		check_eq_uint(memory[i], value_of(message, i));
}

/* One place for all: what was sent is not needed any more. */
static void send_all(struct job_rank *rank, uint32_t size)
{
	unsigned char *memory = job_memory(LARGEST, 0);

	for (uint32_t i = 0; i < MESSAGES; i++) {
		fill(memory, i, size);
		check_ok(HcclSend(memory, size, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		/* long enough for the daemon to take it over */
		if (end == PAUSES && i % 16 == 0)
			usleep(3000);
		check_ok(aclrtSynchronizeStream(rank->stream));
	}
}

static void send_hurriedly(struct job_rank *rank, uint32_t size)
{
	unsigned char *memory = job_memory((uint64_t)MESSAGES * LARGEST, 0);

	for (uint32_t i = 0; i < MESSAGES; i++)
		fill(memory + (size_t)i * LARGEST, i, size);
	for (uint32_t i = 0; i < MESSAGES; i++)
		check_ok(HcclSend(memory + (size_t)i * LARGEST, size, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
	if (end == HURRIES_TO_DIE) {
		job_expect_kill();
		kill(getpid(), SIGKILL);
	}
	check_ok(HcclCommDestroy(rank->comm));
	job_meet();
	_exit(0);
}

static void send_batch(struct job_rank *rank, uint32_t size)
{
	unsigned char *memory = job_memory((uint64_t)MESSAGES * LARGEST, 0);
	HcclSendRecvItem *items = calloc(MESSAGES, sizeof(*items));

	for (uint32_t i = 0; i < MESSAGES; i++) {
		fill(memory + (size_t)i * LARGEST, i, size);
		items[i] = job_send(1, memory + (size_t)i * LARGEST, size);
	}
	check_ok(HcclBatchSendRecv(items, MESSAGES, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	free(items);
}

static void gone_body(uint32_t index, HcclRootInfo *shared)
{
	const uint32_t size = sizes[atoi(getenv("TEST_SIZE"))];
	HcclResult async = HCCL_SUCCESS;
	struct job_rank rank;
	unsigned char *memory;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 2, (int32_t)index);
	job_meet();
	if (index == 0) {
		if (end == BATCH)
			send_batch(&rank, size);
		else if (end == HURRIES || end == HURRIES_TO_DIE)
			send_hurriedly(&rank, size);
		else
			send_all(&rank, size);
		job_meet();
		if (end == KILLED) {
			job_expect_kill();
			kill(getpid(), SIGKILL);
		}
		check_ok(HcclCommDestroy(rank.comm));
		return;
	}
	if (end != HURRIES_TO_DIE)
		job_meet();
	while ((end == KILLED || end == HURRIES_TO_DIE) && async == HCCL_SUCCESS) {
		usleep(10000);
		check_ok(HcclGetCommAsyncError(rank.comm, &async));
	}
	usleep(200000);
	memory = job_memory(LARGEST, 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		memset(memory, 0, LARGEST);
		check_ok(HcclRecv(memory, size, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
		check_ok(aclrtSynchronizeStream(rank.stream));
		check_filled(memory, i, size);
	}
	/* there is no more */
	check_ok(HcclRecv(memory, size, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
	check_ne_int(aclrtSynchronizeStream(rank.stream), 0);
	aclGetRecentErrMsg();
	check_ok(HcclCommDestroy(rank.comm));
}

static void run_sizes(enum end how)
{
	end = how;
	for (uint32_t i = 0; i < SIZES; i++) {
		char text[8];

		snprintf(text, sizeof(text), "%u", i);
		setenv("TEST_SIZE", text, 1);
		job_run_processes(2, gone_body);
	}
}

TEST(a_sender_that_has_destroyed_its_communicator)
{
	run_sizes(DESTROYS);
}

TEST(a_sender_that_was_killed)
{
	run_sizes(KILLED);
}

TEST(a_sender_that_leaves_without_waiting)
{
	run_sizes(HURRIES);
}

TEST(a_sender_that_is_killed_without_waiting)
{
	run_sizes(HURRIES_TO_DIE);
}

TEST(a_sender_that_does_something_else_meanwhile)
{
	run_sizes(PAUSES);
}

TEST(a_batch_of_a_thousand)
{
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", 1);
	run_sizes(BATCH);
	unsetenv("HCCLD_ALLOW_DUPLICATE_ITEMS");
}

/* All send first, and receive when they have sent everything: nobody waits for anybody. Slots are used again and again. */
static void crossed_rank(struct job_rank *rank)
{
	unsigned char *out = job_memory(LARGEST, 0), *in = job_memory(LARGEST, 0);

	for (uint32_t round = 0; round < 20; round++) {
		const uint32_t size = sizes[round % SIZES];

		for (uint32_t i = 0; i < 100; i++)
			for (uint32_t to = 0; to < rank->size; to++) {
				if (to == rank->rank)
					continue;
				fill(out, round * 100 + i + rank->rank, size);
				check_ok(HcclSend(out, size, HCCL_DATA_TYPE_INT8, to, rank->comm, rank->stream));
				check_ok(aclrtSynchronizeStream(rank->stream));
			}
		for (uint32_t i = 0; i < 100; i++)
			for (uint32_t from = 0; from < rank->size; from++) {
				if (from == rank->rank)
					continue;
				check_ok(HcclRecv(in, size, HCCL_DATA_TYPE_INT8, from, rank->comm, rank->stream));
				check_ok(aclrtSynchronizeStream(rank->stream));
				check_filled(in, round * 100 + i + from, size);
			}
	}
}

static void crossed(void)
{
	job_ranks(3, 3, crossed_rank, NULL);
}

TEST(all_send_before_they_receive)
{
	job_run(crossed);
}

/* A receiver with other bytes: the sender, which is done, hears of it. */
static void mismatch_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(LARGEST, 0);

	if (rank->rank == 0) {
		check_ok(HcclSend(memory, 5000, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		*(volatile _Atomic int *)rank->data = 1;
		for (HcclResult async = HCCL_SUCCESS; async == HCCL_SUCCESS; usleep(1000))
			check_ok(HcclGetCommAsyncError(rank->comm, &async));
		check_fails(HcclSend(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream), HCCL_E_PARA, "5000");
		return;
	}
	while (!*(volatile _Atomic int *)rank->data)
		usleep(1000);
	check_ok(HcclRecv(memory, 4000, HCCL_DATA_TYPE_INT8, 0, rank->comm, rank->stream));
	check_ne_int(aclrtSynchronizeStream(rank->stream), 0);
	check_str_contains(aclGetRecentErrMsg(), "5000");
}

static void mismatched(void)
{
	_Atomic int sent = 0;

	job_ranks(2, 2, mismatch_rank, &sent);
}

TEST(bytes_that_differ_are_told_to_who_is_done)
{
	job_run(mismatched);
}

#define MANY 48u

/* Each to all others, before anybody receives: with their pools there are more extents than one process maps. */
static void many_rank(struct job_rank *rank)
{
	_Atomic uint32_t *sent = rank->data;
	unsigned char *memory = job_memory(LARGEST, 0);

	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t to = 0; to < rank->size; to++) {
			if (to == rank->rank)
				continue;
			fill(memory, i * 100 + rank->rank, 100);
			check_ok(HcclSend(memory, 100, HCCL_DATA_TYPE_INT8, to, rank->comm, rank->stream));
			check_ok(aclrtSynchronizeStreamWithTimeout(rank->stream, 60000));
		}
	atomic_fetch_add(sent, 1);
	while (atomic_load(sent) < rank->size)
		usleep(1000);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t from = 0; from < rank->size; from++) {
			if (from == rank->rank)
				continue;
			check_ok(HcclRecv(memory, 100, HCCL_DATA_TYPE_INT8, from, rank->comm, rank->stream));
			check_ok(aclrtSynchronizeStream(rank->stream));
			check_filled(memory, i * 100 + from, 100);
		}
}

static void many(void)
{
	_Atomic uint32_t sent = 0;

	job_ranks(MANY, 8, many_rank, &sent);
}

TEST(more_pools_than_a_process_maps)
{
	job_run(many);
}

/* ---- a limit ---- */

static volatile _Atomic pid_t *hog_pid;	/* of all processes of the case */

/* Takes all that the tenant may have, and is killed. */
static void hog_body(void)
{
	void *memory;

	check_ok(aclrtSetDevice(2));
	while (aclrtMalloc(&memory, 256 << 10, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS)
		;
	aclGetRecentErrMsg();
	atomic_store(hog_pid, getpid());
	job_expect_kill();
	job_meet();
	kill(getpid(), SIGKILL);
}

static bool is_gone(pid_t pid)
{
	char path[64], line[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return true;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return strstr(line, ") Z") != NULL;
}

static void limit_body(uint32_t index, HcclRootInfo *shared)
{
	unsigned char *memory;
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	if (index == 2) {
		job_meet();
		hog_body();
		return;
	}
	rank = job_join(shared, index, 2, (int32_t)index);
	memory = job_memory(LARGEST, 0);
	/* what else takes memory has it */
	if (index == 0)
		check_ok(HcclSend(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
	else
		check_ok(HcclRecv(memory, 8, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	job_meet();
	job_meet();
	while (!is_gone(atomic_load(hog_pid)))
		usleep(100);
	if (index == 0) {
		fill(memory, 1, 1000);
		check_ok(HcclSend(memory, 1000, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
		check_ok(aclrtSynchronizeStreamWithTimeout(rank.stream, 20000));
		atomic_store(hog_pid, 0);
	}
	while (atomic_load(hog_pid))
		usleep(1000);
}

/* Rank 1 takes all that the tenant may have, and gives it back: room that was refused is there then. */
static void refused_body(uint32_t index, HcclRootInfo *shared)
{
	void *taken[1024];
	uint32_t count = 0;
	unsigned char *memory;
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 2, (int32_t)index);
	memory = job_memory(LARGEST, 0);
	fill(memory, 1, 1000);
	if (index == 1)
		check_ok(HcclRecv(memory, 8, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
	else
		check_ok(HcclSend(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	while (index == 1 && count < 1024 && aclrtMalloc(&taken[count], 256 << 10, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS)
		count++;
	aclGetRecentErrMsg();
	job_meet();
	for (int i = 0; i < 2; i++) {
		if (index == 0) {
			check_ok(HcclSend(memory, 1000, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
			check_eq_int(aclrtSynchronizeStreamWithTimeout(rank.stream, i ? 20000 : 300), i ? 0 : 507046);
			aclGetRecentErrMsg();
		}
		job_meet();
		while (index == 1 && count)
			check_ok(aclrtFree(taken[--count]));
		if (index == 1)
			check_ok(HcclRecv(memory, 1000, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
		check_ok(aclrtSynchronizeStream(rank.stream));
		usleep(200000);
		job_meet();
	}
}

TEST(room_that_was_refused_and_is_free_again)
{
	static const char *const options[] = { "--memory-per-tenant", "128M", NULL };

	job_set_options(options);
	job_run_processes(2, refused_body);
}

static void run_limit(void)
{
	static const char *const options[] = { "--memory-per-tenant", "128M", NULL };

	hog_pid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(hog_pid != MAP_FAILED);
	job_set_options(options);
	job_run_processes(3, limit_body);
}

TEST(room_that_is_about_to_be_free)
{
	run_limit();
}
