/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reduction over a full mesh by host kernels: each rank registers its input and a page of flags, and a block for each peer reads the
 * peer's input by load, once flags in each other's memory say that it may. What hcclctl resources says meanwhile. Host code touches device
 * memory by copies only: another entry runs it with HCCLD_STRICT_DEVICE.
 */
#include <cjson/cJSON.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hccl/hccl_channel.h"
#include "hccl/hccl_res.h"
#include "hccld/host_kernel.h"
#include "tests/support/hcclctl.h"
#include "tests/support/job.h"

enum { SIZE = 4, COUNT = 3000, EPOCHS = 15, NOTIFIES = 2 };

/* In device memory, a line each. */
struct flag {
	_Alignas(64) _Atomic uint64_t epoch;
};

struct flags {
	struct flag readable[SIZE], read[SIZE], blocks;
};

struct mesh {
	uint32_t rank;
	struct flags *flags, *peer_flags[SIZE];
	float *input, *peer_input[SIZE];
	float *parts; /* SIZE x COUNT */
	float *output;
};

struct step {
	struct mesh mesh;
	uint64_t epoch;
	_Atomic uint32_t *gate; /* NULL: none */
};

static void await(const struct flag *flag, uint64_t epoch)
{
	while (atomic_load_explicit(&flag->epoch, memory_order_acquire) < epoch)
		sched_yield();
}

static void tell(struct flag *flag, uint64_t epoch)
{
	atomic_store_explicit(&flag->epoch, epoch, memory_order_release);
}

static void reduce(uint32_t block, uint32_t blocks, void *args)
{
	const struct step *step = args;
	const struct mesh *mesh = &step->mesh;

	while (step->gate && !atomic_load(step->gate))
		usleep(1000);
	if (block != mesh->rank) {
		tell(&mesh->peer_flags[block]->readable[mesh->rank], step->epoch);
		await(&mesh->flags->readable[block], step->epoch);
		memcpy(mesh->parts + block * COUNT, mesh->peer_input[block], COUNT * sizeof(float));
		/* nobody changes his input before all have read it */
		tell(&mesh->peer_flags[block]->read[mesh->rank], step->epoch);
		await(&mesh->flags->read[block], step->epoch);
	} else {
		memcpy(mesh->parts + block * COUNT, mesh->input, COUNT * sizeof(float));
	}
	atomic_fetch_add(&mesh->flags->blocks.epoch, 1);
	if (block != 0)
		return;
	await(&mesh->flags->blocks, step->epoch * blocks);
	for (uint32_t i = 0; i < COUNT; i++) {
		mesh->output[i] = 0;
		for (uint32_t part = 0; part < SIZE; part++)
			mesh->output[i] += mesh->parts[part * COUNT + i];
	}
}

static void mesh_connect(const struct job_rank *rank, struct mesh *mesh)
{
	const CommMem inputs = { COMM_MEM_TYPE_DEVICE, mesh->input, COUNT * sizeof(float) };
	const CommMem flags = { COMM_MEM_TYPE_DEVICE, mesh->flags, sizeof(*mesh->flags) };
	HcclChannelDesc descs[SIZE - 1];
	ChannelHandle channels[SIZE - 1];
	HcclMemHandle handles[2];
	uint32_t count = 0;

	check_ok(HcclCommMemReg(rank->comm, "input", &inputs, &handles[0]));
	check_ok(HcclCommMemReg(rank->comm, "flags", &flags, &handles[1]));
	check_ok(HcclChannelDescInit(descs, SIZE - 1));
	for (uint32_t peer = 0; peer < SIZE; peer++) {
		if (peer == rank->rank)
			continue;
		descs[count].remoteRank = peer;
		descs[count].channelProtocol = COMM_PROTOCOL_UB_MEM;
		descs[count].memHandles = handles;
		descs[count].notifyNum = NOTIFIES;
		descs[count++].memHandleNum = 2;
	}
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, count, channels));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t peer = descs[i].remoteRank, memory_count = 0;
		CommMem *memories = NULL;
		char **tags = NULL;

		check_ok(HcclChannelGetRemoteMems(rank->comm, channels[i], &memory_count, &memories, &tags));
		check_eq_uint(memory_count, 2);
		check_eq_str(tags[0], "input");
		check_eq_str(tags[1], "flags");
		check_eq_uint(memories[0].size, COUNT * sizeof(float));
		mesh->peer_input[peer] = memories[0].addr;
		mesh->peer_flags[peer] = memories[1].addr;
	}
}

static float value_of(uint32_t rank, uint64_t epoch, uint32_t i)
{
	return (float)(rank * 100 + epoch * 10 + i % 10);
}

static void mesh_run(const struct job_rank *rank, struct mesh *mesh, _Atomic uint32_t *gate)
{
	float *host = calloc(COUNT, sizeof(*host));

	for (uint64_t epoch = 1; epoch <= EPOCHS; epoch++) {
		struct step step = { *mesh, epoch, epoch == EPOCHS ? gate : NULL };

		for (uint32_t i = 0; i < COUNT; i++)
			host[i] = value_of(rank->rank, epoch, i);
		check_ok(aclrtMemcpy(mesh->input, COUNT * sizeof(float), host, COUNT * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE));
		check_ok(HccldLaunchHostKernel(reduce, SIZE, &step, sizeof(step), rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_ok(aclrtMemcpy(host, COUNT * sizeof(float), mesh->output, COUNT * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
		for (uint32_t i = 0; i < COUNT; i++) {
			float sum = 0;

			for (uint32_t part = 0; part < SIZE; part++)
				sum += value_of(part, epoch, i);
			check(host[i] == sum);
		}
	}
	free(host);
}

static void mesh_make(const struct job_rank *rank, struct mesh *mesh)
{
	mesh->flags = job_memory(sizeof(struct flags), 0);
	mesh->input = job_memory(COUNT * sizeof(float), 0);
	mesh->parts = job_memory(SIZE * COUNT * sizeof(float), 0);
	mesh->output = job_memory(COUNT * sizeof(float), 0);
	mesh_connect(rank, mesh);
}

static void body_of(struct job_rank *rank, _Atomic uint32_t *gate)
{
	struct mesh mesh = { .rank = rank->rank };

	mesh_make(rank, &mesh);
	mesh_run(rank, &mesh, gate);
}

/* ---- ranks as threads, looked at ---- */

static _Atomic uint32_t gate;

static uint32_t devices_used;
static bool has_threads; /* streams are threads of their ranks */

static void body(struct job_rank *rank)
{
	ThreadHandle thread;

	if (has_threads)
		check_ok(HcclThreadAcquireWithStream(rank->comm, COMM_ENGINE_CPU_TS, rank->stream, 0, &thread));
	body_of(rank, &gate);
}

static cJSON *resources(void)
{
	char command[512], text[65536];
	FILE *pipe;
	size_t size;
	cJSON *root;

	check_ptr(getenv("HCCLCTL_BINARY"));
	snprintf(command, sizeof(command), "%s --json resources", getenv("HCCLCTL_BINARY"));
	pipe = popen(command, "r");
	check_ptr(pipe);
	size = fread(text, 1, sizeof(text) - 1, pipe);
	text[size] = '\0';
	check_eq_int(pclose(pipe), 0);
	root = cJSON_Parse(text);
	check_ptr(root);
	return root;
}

static uint32_t number_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	check_msg(cJSON_IsNumber(item), "no number %s in the output", name);
	return (uint32_t)item->valueint;
}

static bool is_held(const cJSON *object, uint32_t channels, uint32_t notifies, uint32_t cores)
{
	return number_of(object, "channels") == channels && number_of(object, "notifies") == notifies &&
	       number_of(object, "vector_cores") == cores;
}

/* Do all ranks hold what they do while the last kernel waits? On one device it is known whose the streams are only if they are threads. */
static bool shows_all(void)
{
	cJSON *root = resources();
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "ranks"), *item;
	const uint32_t devices = devices_used, ranks = SIZE / devices;
	const bool is_known = ranks == 1 || has_threads;
	bool shows = cJSON_GetArraySize(list) == SIZE;

	cJSON_ArrayForEach(item, list)
		shows = shows && is_held(item, SIZE - 1, (SIZE - 1) * NOTIFIES, is_known ? SIZE : 0) &&
			number_of(item, "pid") == (uint32_t)getpid();
	list = cJSON_GetObjectItemCaseSensitive(root, "processes");
	shows = shows && cJSON_GetArraySize(list) == (is_known ? 0 : 1);
	cJSON_ArrayForEach(item, list)
		shows = shows && is_held(item, 0, 0, SIZE * SIZE);
	list = cJSON_GetObjectItemCaseSensitive(root, "devices");
	for (uint32_t i = 0; shows && i < devices; i++)
		shows = is_held(cJSON_GetArrayItem(list, (int)i), ranks * (SIZE - 1), ranks * (SIZE - 1) * NOTIFIES, ranks * SIZE);
	cJSON_Delete(root);
	return shows;
}

static void *look(void *arg)
{
	for (int i = 0; !shows_all(); i++) {
		check_lt_int(i, 1000);
		usleep(20000);
	}
	atomic_store(&gate, 1);
	return NULL;
}

static void threads_on(uint32_t device_count)
{
	pthread_t thread;
	cJSON *root;

	devices_used = device_count;
	check_ok(aclrtSetDevice(0));
	check_eq_int(pthread_create(&thread, NULL, look, NULL), 0);
	job_ranks(SIZE, device_count, body, NULL);
	pthread_join(thread, NULL);
	/* all is given back */
	for (int i = 0; i < 500; i++) {
		const cJSON *devices;
		uint32_t held = 0;

		root = resources();
		devices = cJSON_GetObjectItemCaseSensitive(root, "devices");
		for (int d = 0; d < SIZE; d++)
			held += number_of(cJSON_GetArrayItem(devices, d), "channels") +
				number_of(cJSON_GetArrayItem(devices, d), "vector_cores");
		check_eq_int(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "ranks")), 0);
		cJSON_Delete(root);
		if (!held)
			return;
		usleep(10000);
	}
	check_msg(false, "something is still held");
}

static void on_a_device_each(void)
{
	threads_on(SIZE);
}

TEST_TIMEOUT(host_kernels_over_a_mesh_of_threads, 120)
{
	job_run(on_a_device_each);
}

static void on_one_device(void)
{
	threads_on(1);
}

TEST_TIMEOUT(host_kernels_over_a_mesh_on_one_device, 120)
{
	job_run(on_one_device);
}

static void on_one_device_with_threads(void)
{
	has_threads = true;
	threads_on(1);
}

TEST_TIMEOUT(host_kernels_over_a_mesh_on_streams_of_ranks, 120)
{
	job_run(on_one_device_with_threads);
}

static void process(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;

	check_ok(aclrtSetDevice((int32_t)index));
	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, SIZE, (int32_t)index);
	body_of(&rank, NULL);
	job_leave(&rank);
}

TEST_TIMEOUT(host_kernels_over_a_mesh_of_processes, 120)
{
	job_run_processes(SIZE, process);
}

/* ---- one that waits for a rank which has been killed ---- */

static _Atomic uint32_t *is_seen; /* shared by the processes */

static void die_in_the_middle(uint32_t index, HcclRootInfo *shared)
{
	struct step step = { .mesh = { .rank = index }, .epoch = 1 };
	struct job_rank rank;
	char text[200];

	check_ok(aclrtSetDevice((int32_t)index));
	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, SIZE, (int32_t)index);
	mesh_make(&rank, &step.mesh);
	job_meet();
	if (index == 2) {
		job_expect_kill();
		raise(SIGKILL);
	}
	check_ok(HccldLaunchHostKernel(reduce, SIZE, &step, sizeof(step), rank.stream));
	if (index == 0) {
		snprintf(text, sizeof(text), "of pid %d waits for a host kernel of 4 blocks of rank 0 of communicator ", (int)getpid());
		hcclctl_expect("waiting --json", text);
		hcclctl_expect("waiting --json", ", and may wait for rank 2 (pid ");
		hcclctl_expect("status", "stuck: stream ");
		hcclctl_expect("status", "whose process has ended");
		atomic_store(is_seen, 1);
	}
	while (!atomic_load(is_seen))
		usleep(1000);
	/* it ends with its process */
}

TEST_TIMEOUT(a_host_kernel_that_waits_for_a_dead_rank_is_explained, 120)
{
	is_seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(is_seen != MAP_FAILED);
	job_run_processes(SIZE, die_in_the_middle);
}
