/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and the tasks of acl, through the public functions. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

static void codes(void)
{
	aclrtStreamStatus status;
	aclrtStream stream, other;
	char *memory, host[8] = { 0 };

	check_ok(aclrtSetDevice(0));
	memory = job_memory(1000, 0);
	check_fails(aclrtCreateStream(NULL), ACL_ERROR_INVALID_PARAM, "stream");
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateStreamWithConfig(&other, 3,
					     ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
	check(stream != other);
	check_fails(aclrtStreamQuery(stream, NULL), ACL_ERROR_INVALID_PARAM, "status");
	check_ok(aclrtStreamQuery(stream, &status));
	check_eq_int(status, ACL_STREAM_STATUS_COMPLETE);
	check_ok(aclrtSynchronizeStreamWithTimeout(stream, 0));
	check_ok(aclrtSynchronizeStreamWithTimeout(stream, -1));
	check_fails(aclrtSynchronizeStreamWithTimeout(stream, -2), ACL_ERROR_RT_PARAM_INVALID,
		    "-2");
	check_fails(aclrtSynchronizeDeviceWithTimeout(-2), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtSynchronizeDeviceWithTimeout(1000));
	check_ok(aclrtSynchronizeStream(NULL));
	check_fails(aclrtSynchronizeStream(memory), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
	check_fails(aclrtStreamQuery(host, &status), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtMemcpyAsync(memory, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, host),
		    ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtMemcpyAsync(memory, 8, host, 9, ACL_MEMCPY_HOST_TO_DEVICE, stream),
		    ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtMemcpyAsync(memory, 8, memory + 4, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
		    ACL_ERROR_RT_PARAM_INVALID, "overlap");
	check_fails(aclrtMemsetAsync(NULL, 8, 0, 8, stream), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMemsetAsync(memory, 8, 0, 0, stream), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtMemsetAsync(memory, 8, 0, 9, stream), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtDestroyStream(NULL), ACL_ERROR_INVALID_PARAM, NULL);
	check_ok(aclrtDestroyStream(stream));
	check_fails(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
	check_fails(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclrtDestroyStreamForce(other));
}

TEST(acl_streams_have_the_codes_of_cann)
{
	job_run(codes);
}

/* All pairs of kinds of memory, with sizes around the limits of the implementation. */
static void directions_of(size_t size)
{
	unsigned char *places[4] = { job_memory(size, 0), job_memory(size, 0), NULL, malloc(size) };
	unsigned char *pattern = malloc(size);
	aclrtStream stream;

	check(places[3] && pattern);
	check_ok(aclrtMallocHost((void **)&places[2], size));
	check_ok(aclrtCreateStream(&stream));
	for (unsigned int from = 0; from < 4; from++) {
		for (unsigned int to = 0; to < 4; to++) {
			if (from == to)
				continue;
			for (size_t i = 0; i < size; i++)
				pattern[i] = (unsigned char)(i * 7 + i / 251 + from * 16 + to);
			memcpy(places[from], pattern, size);
			check_ok(aclrtMemsetAsync(places[to], size, 0xee, size, stream));
			check_ok(aclrtMemcpyAsync(places[to], size, places[from], size,
						  ACL_MEMCPY_DEFAULT, stream));
			check_ok(aclrtSynchronizeStream(stream));
			check_eq_mem(places[to], pattern, size);
		}
	}
	check_ok(aclrtDestroyStream(stream));
	check_ok(aclrtFree(places[0]));
	check_ok(aclrtFree(places[1]));
	check_ok(aclrtFreeHost(places[2]));
	free(places[3]);
	free(pattern);
}

static void directions(void)
{
	static const size_t sizes[] = { 1, 4096, 65536, 65537, 300000, (8 << 20) + 1, 20 << 20 };

	check_ok(aclrtSetDevice(0));
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		directions_of(sizes[i]);
}

TEST_TIMEOUT(acl_tasks_copy_in_every_direction, 60)
{
	job_run(directions);
}

static void order(void)
{
	enum { COUNT = 5000 };
	unsigned char *memory, host[64];
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(COUNT + 64, 0);
	for (unsigned int i = 0; i < COUNT; i++)
		check_ok(aclrtMemsetAsync(memory + i, 64, (int)i, 64, stream));
	check_ok(aclrtSynchronizeStream(stream));
	for (unsigned int i = 0; i < COUNT; i++)
		check_eq_int(memory[i], (unsigned char)i);
	/* a chain through memory of the program */
	for (unsigned int i = 0; i < 200; i++) {
		check_ok(aclrtMemsetAsync(memory, 64, (int)i, 64, stream));
		check_ok(aclrtMemcpyAsync(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
		check_ok(aclrtMemsetAsync(memory, 64, 0, 64, stream));
		check_ok(aclrtMemcpyAsync(memory + 64, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE,
					  stream));
		if (i % 10)
			continue;
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_int(memory[0], 0);
		check_eq_int(memory[64], (int)i);
		check_eq_int(memory[127], (int)i);
	}
	check_ok(aclrtDestroyStream(stream));
}

TEST(acl_tasks_of_a_stream_run_in_order)
{
	job_run(order);
}

struct shared_stream {
	aclrtStream stream;
	unsigned char *memory;
	unsigned int index;
};

static void *use_stream(void *arg)
{
	const struct shared_stream *mine = arg;
	unsigned char byte;

	check_ok(aclrtSetDevice(0));
	for (unsigned int i = 1; i <= 1500; i++) {
		check_ok(aclrtMemsetAsync(mine->memory, 1, (int)i, 1, mine->stream));
		if (i % 100)
			continue;
		check_ok(aclrtMemcpyAsync(&byte, 1, mine->memory, 1, ACL_MEMCPY_DEVICE_TO_HOST,
					  mine->stream));
		check_ok(aclrtSynchronizeStream(mine->stream));
		check_eq_int(byte, (unsigned char)i);
	}
	check_ok(aclrtResetDevice(0));
	return NULL;
}

static void threads(void)
{
	struct shared_stream shares[6];
	unsigned char *memory;
	pthread_t ids[6];
	aclrtStream streams[2];

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&streams[0]));
	check_ok(aclrtCreateStream(&streams[1]));
	memory = job_memory(6, 0);
	for (unsigned int i = 0; i < 6; i++) {
		shares[i] = (struct shared_stream){ streams[i / 3], memory + i, i };
		check_eq_int(pthread_create(&ids[i], NULL, use_stream, &shares[i]), 0);
	}
	for (unsigned int i = 0; i < 6; i++)
		pthread_join(ids[i], NULL);
	check_ok(aclrtSynchronizeDevice());
	for (unsigned int i = 0; i < 6; i++)
		check_eq_int(memory[i], (unsigned char)1500);
}

TEST_TIMEOUT(acl_streams_are_shared_by_threads, 60)
{
	job_run(threads);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The other rank stays, and does nothing. */
static void timeout_rank(struct job_rank *rank)
{
	static _Atomic int done;

	aclrtStreamStatus status;
	uint64_t start = now_ms();

	while (rank->rank && !atomic_load(&done))
		usleep(1000);
	if (rank->rank)
		return;
	/* a receive that nobody serves keeps the stream busy */
	check_ok(HcclRecv(job_memory(64, 0), 64, HCCL_DATA_TYPE_INT8, 1 - rank->rank, rank->comm,
			  rank->stream));
	check_fails(aclrtSynchronizeStreamWithTimeout(rank->stream, 50),
		    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "50 ms");
	check_ge_uint(now_ms() - start, 50);
	check_fails(aclrtSynchronizeStreamWithTimeout(rank->stream, 0),
		    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, NULL);
	check_fails(aclrtSynchronizeDeviceWithTimeout(20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, NULL);
	check_ok(aclrtStreamQuery(rank->stream, &status));
	check_eq_int(status, ACL_STREAM_STATUS_NOT_READY);
	/* another stream of the device goes on */
	check_ok(aclrtMemsetAsync(job_memory(64, 0), 64, 1, 64, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_ok(aclrtDestroyStreamForce(rank->stream));
	check_fails(aclrtSynchronizeStream(rank->stream), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclrtCreateStream(&rank->stream));
	/* the ring of the new one is clean */
	check_ok(aclrtSynchronizeStream(rank->stream));
	atomic_store(&done, 1);
}

static void timeouts(void)
{
	job_ranks(2, 2, timeout_rank, NULL);
}

TEST(acl_synchronize_ends_at_its_time)
{
	job_run(timeouts);
}

static void many_streams(void)
{
	enum { ROUNDS = 3, COUNT = 200 };
	aclrtStream streams[COUNT];
	unsigned char *memory;

	check_ok(aclrtSetDevice(0));
	memory = job_memory(COUNT, 0);
	for (int round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < COUNT; i++) {
			check_ok(aclrtCreateStream(&streams[i]));
			check_ok(aclrtMemsetAsync(memory + i, 1, i + round, 1, streams[i]));
		}
		check_ok(aclrtSynchronizeDevice());
		for (int i = 0; i < COUNT; i++) {
			check_eq_int(memory[i], (unsigned char)(i + round));
			check_ok(aclrtDestroyStream(streams[i]));
		}
	}
}

TEST(acl_has_many_streams)
{
	job_run(many_streams);
}

static void exhausted(void)
{
	aclrtStream stream;
	unsigned int count = 0;
	int r;

	check_ok(aclrtSetDevice(0));
	while ((r = aclrtCreateStream(&stream)) == 0)
		count++;
	check_eq_int(r, ACL_ERROR_RT_NO_STREAM_RESOURCE);
	check_str_contains(aclGetRecentErrMsg(), "EI0007");
	check_eq_uint(count, 1024);
	check_ok(aclrtDestroyStream(stream));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtResetDevice(0));
}

TEST_TIMEOUT(acl_streams_end_with_a_named_error, 60)
{
	job_run(exhausted);
}

static _Atomic int churned;

static void *churn(void *arg)
{
	check_ok(aclrtSetDevice(0));
	while (!atomic_load(&churned)) {
		aclrtStream stream;

		check_ok(aclrtCreateStream(&stream));
		check_ok(aclrtMemsetAsync(arg, 4 << 20, 1, 4 << 20, stream));
		check_ok(aclrtDestroyStream(stream));
	}
	return NULL;
}

/* Streams that end meanwhile are no error of the device. */
static void synchronize_beside_others(void)
{
	pthread_t threads[3];
	struct timespec now;
	time_t end;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 3; i++)
		check_eq_int(pthread_create(&threads[i], NULL, churn, job_memory(4 << 20, 0)), 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (end = now.tv_sec + 3; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now)) {
		check_ok(aclrtSynchronizeDevice());
		check_null(aclGetRecentErrMsg());
	}
	atomic_store(&churned, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

TEST(acl_device_is_synchronized_while_threads_destroy_streams)
{
	job_run(synchronize_beside_others);
}

/* A task whose memory was freed before its turn: the error names the function that queued it. */
static void freed_before_its_turn(void)
{
	enum { SIZE = 1 << 20 };
	static const char *const functions[] = { "aclrtMemcpyAsync of 1048576 bytes", "aclrtMemsetAsync of 1048576 bytes" };
	int32_t devices[] = { 0, 1 };
	aclrtStream streams[2];
	HcclComm comms[2];
	void *small[2];

	check_ok(HcclCommInitAll(2, devices, comms));
	for (int i = 1; i >= 0; i--) {
		check_ok(aclrtSetDevice(i));
		check_ok(aclrtCreateStream(&streams[i]));
		small[i] = job_memory(8, 1);
	}
	for (int fills = 0; fills < 2; fills++) {
		void *from = job_memory(SIZE, 1), *to = job_memory(SIZE, 1);

		/* holds the stream up */
		check_ok(HcclRecv(small[0], 8, HCCL_DATA_TYPE_INT8, 1, comms[0], streams[0]));
		if (fills)
			check_ok(aclrtMemsetAsync(to, SIZE, 1, SIZE, streams[0]));
		else
			check_ok(aclrtMemcpyAsync(to, SIZE, from, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[0]));
		check_ok(aclrtFree(to));
		check_ok(HcclSend(small[1], 8, HCCL_DATA_TYPE_INT8, 0, comms[1], streams[1]));
		check_fails(aclrtSynchronizeStream(streams[0]), ACL_ERROR_RT_PARAM_INVALID, functions[fills]);
	}
}

TEST(acl_task_whose_memory_was_freed)
{
	job_run(freed_before_its_turn);
}
