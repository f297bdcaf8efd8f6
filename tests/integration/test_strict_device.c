/* SPDX-License-Identifier: Apache-2.0 */
/* HCCLD_STRICT_DEVICE: host code that touches device memory ends at that line, and is told where. Set by who starts this, to 1 or 2. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccl/hccl_res.h"
#include "hccld/host_kernel.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

/* What the child that ran @body has written to standard error, and how it has ended. */
static int run_child(void (*body)(void), char *text, size_t size)
{
	struct private_daemon daemon;
	size_t length = 0;
	int pipe_fds[2], status;
	ssize_t n;
	pid_t pid;

	check_ptr(getenv("HCCLD_STRICT_DEVICE"));
	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	check_eq_int(pipe(pipe_fds), 0);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		dup2(pipe_fds[1], STDERR_FILENO);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		body();
		exit(0);
	}
	close(pipe_fds[1]);
	while ((n = read(pipe_fds[0], text + length, size - 1 - length)) > 0)
		length += (size_t)n;
	text[length] = '\0';
	close(pipe_fds[0]);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(private_daemon_stop(&daemon), 0);
	return status;
}

static void check_ends_so(void (*body)(void), const char *part, const char *last)
{
	char text[16384];
	int status = run_child(body, text, sizeof(text));

	check_str_contains(text, part);
	check_str_contains(text, last);
#ifdef __SANITIZE_ADDRESS__
	check_ne_int(status, 0); /* its handler comes next */
#else
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
#endif
}

static void check_ends(void (*body)(void), const char *part)
{
	check_ends_so(body, part, "HCCLD_STRICT_DEVICE forbids that to host code: copy with aclrtMemcpy, or touch it in a host kernel\n");
}

/* Nothing is there, for nobody. */
static void check_ends_beside(void (*body)(void), const char *part)
{
	check_ends_so(body, part, "; nothing is there, neither for host code nor for host kernels\n");
}

static unsigned char *device_make(int32_t device, size_t size)
{
	void *memory;

	check_ok(aclrtSetDevice(device));
	check_ok(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
	return memory;
}

static void touch(volatile unsigned char *memory)
{
	memory[0]++;
}

static void touch_large(void)
{
	touch(device_make(3, 10 << 20) + 5000);
}

static void touch_small(void)
{
	device_make(0, 64);
	touch(device_make(0, 100) + 99);
}

static void touch_behind(void)
{
	touch(device_make(0, 100) + 130);
}

static void touch_freed(void)
{
	unsigned char *memory = device_make(0, 64);

	device_make(0, 64);
	check_ok(aclrtFree(memory));
	touch(memory);
}

static void touch_in_function(void *arg)
{
	touch(arg);
}

static void touch_in_host_function(void)
{
	check_ok(aclrtLaunchHostFunc(NULL, touch_in_function, device_make(1, 4 << 20)));
	aclrtSynchronizeStream(NULL);
}

static void *touch_in_thread(void *arg)
{
	touch(arg);
	return NULL;
}

/* One that was there before. */
static void *touch_when_told(void *arg)
{
	int fd = *(int *)arg;
	unsigned char *memory;

	check_eq_int(read(fd, &memory, sizeof(memory)), sizeof(memory));
	return touch_in_thread(memory);
}

static void touch_in_earlier_thread(void)
{
	unsigned char *memory;
	pthread_t thread;
	int fds[2];

	check_eq_int(pipe(fds), 0);
	check_eq_int(pthread_create(&thread, NULL, touch_when_told, &fds[0]), 0);
	memory = device_make(1, 4096) + 96;
	check_eq_int(write(fds[1], &memory, sizeof(memory)), sizeof(memory));
	pthread_join(thread, NULL);
}

static void touch_mapped(void)
{
	const aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE, .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };
	aclrtDrvMemHandle handle;
	void *address;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtReserveMemAddress(&address, 4 << 20, 0, NULL, 0));
	check_ok(aclrtMallocPhysical(&handle, 4 << 20, &prop, 0));
	check_ok(aclrtMapMem(address, 4 << 20, 0, handle, 0));
	touch((unsigned char *)address + 77);
}

static void write_after_kernel(uint32_t block, uint32_t blocks, void *args)
{
	(*(unsigned char **)args)[block] = 9;
}

static void touch_after_kernel(void)
{
	unsigned char *memory = device_make(0, 200);

	check_ok(HccldLaunchHostKernel(write_after_kernel, 4, &memory, sizeof(memory), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	touch(memory + 3);
}

static void touch_end(uint32_t block, uint32_t blocks, void *args)
{
	touch(*(unsigned char **)args);
}

static void kernel_touches_behind(void)
{
	unsigned char *memory = device_make(2, 4 << 20) + (4 << 20) + 5000;

	check_ok(HccldLaunchHostKernel(touch_end, 1, &memory, sizeof(memory), NULL));
	aclrtSynchronizeStream(NULL);
}

static void touch_behind_large(void)
{
	touch(device_make(1, 4 << 20) + (4 << 20) + 65536);
}

static void touch_before_large(void)
{
	touch(device_make(1, 4 << 20) - 65536);
}

/* ---- memory of a peer ---- */

static HcclComm comms[2];
static bool touches_buffer, touches_end;
/* What rank 1 does before rank 0 touches its memory; NULL: nothing. */
static void (*end_it)(uint32_t rank, ChannelHandle channel, void *memory);
static _Atomic bool is_acquired, has_ended;

static void await(_Atomic bool *flag)
{
	while (!atomic_load(flag))
		usleep(500);
}

static void *acquire_and_touch(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	CommMem mem = { COMM_MEM_TYPE_DEVICE, device_make((int32_t)rank, 4096), 4096 }, *mems;
	HcclMemHandle handle;
	HcclChannelDesc desc;
	ChannelHandle channel;
	uint32_t count;
	uint64_t size;
	void *buffer;
	char **tags;

	check_ok(HcclCommMemReg(comms[rank], "area", &mem, &handle));
	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = rank ^ 1;
	desc.channelProtocol = COMM_PROTOCOL_HCCS;
	desc.memHandles = &handle;
	desc.memHandleNum = 1;
	check_ok(HcclChannelAcquire(comms[rank], COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(comms[rank], channel, &count, &mems, &tags));
	check_ok(HcclChannelGetHcclBuffer(comms[rank], channel, &buffer, &size));
	if (rank == 1) {
		await(&is_acquired);
		if (end_it)
			end_it(rank, channel, mem.addr);
		atomic_store(&has_ended, true);
		pause();
	}
	atomic_store(&is_acquired, true);
	await(&has_ended);
	/* the first call that hears of it */
	if (end_it)
		check_ne_int(aclrtMemset(mems[0].addr, 1, 0, 1), 0);
	if (touches_end)
		touch((unsigned char *)buffer + size + 9);
	touch(touches_buffer ? (unsigned char *)buffer + 7 : (unsigned char *)mems[0].addr + 6);
	pause();
	return NULL;
}

static void touch_peer(void)
{
	int32_t devices[] = { 0, 1 };
	pthread_t threads[2];

	check_ok(HcclCommInitAll(2, devices, comms));
	for (uintptr_t i = 0; i < 2; i++)
		check_eq_int(pthread_create(&threads[i], NULL, acquire_and_touch, (void *)i), 0);
	pthread_join(threads[0], NULL);
}

TEST_TIMEOUT(memory_of_a_peer_is_named, 60)
{
	check_ends(touch_peer, ", byte 6 of 4096 mapped at 0x");
	check_ends(touch_peer, " of registered memory \"area\" of rank 1, which a channel has brought; ");
	touches_buffer = true;
	check_ends(touch_peer, " of the HCCL buffer of rank 1, which a channel has brought; ");
	touches_end = true;
	check_ends_beside(touch_peer, ", 9 bytes behind the end of device memory of ");
	check_ends_beside(touch_peer, " of the HCCL buffer of rank 1, which a channel has brought; nothing");
}

static void destroy_channel(uint32_t rank, ChannelHandle channel, void *memory)
{
	check_ok(HcclChannelDestroy(comms[rank], &channel, 1));
}

static void destroy_communicator(uint32_t rank, ChannelHandle channel, void *memory)
{
	check_ok(HcclCommDestroy(comms[rank]));
}

static void free_memory(uint32_t rank, ChannelHandle channel, void *memory)
{
	check_ok(aclrtFree(memory));
}

static void touch_lost_import(void)
{
	unsigned char *memory = device_make(0, 5000), *import;
	char key[65];

	check_ok(aclrtIpcMemGetExportKey(memory, 5000, key, 65, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	check_ok(aclrtIpcMemImportByKey((void **)&import, key, 0));
	check_ok(aclrtFree(memory));
	check_fails(aclrtMemset(import, 1, 0, 1), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, "has freed it");
	touch(import + 4999);
}

TEST_TIMEOUT(lost_memory_of_a_peer_is_named, 60)
{
	const char *brought = " of registered memory \"area\" of rank 1, which a channel has brought; it is lost: rank 1, pid ";

	end_it = destroy_channel;
	check_ends(touch_peer, ", byte 6 of 4096 mapped at 0x");
	check_ends(touch_peer, brought);
	check_ends(touch_peer, ", has closed its end of the channel; HCCLD_STRICT_DEVICE");
	touches_buffer = true;
	check_ends(touch_peer, " of the HCCL buffer of rank 1, which a channel has brought; it is lost: rank 1, pid ");
	touches_buffer = false;
	end_it = destroy_communicator;
	check_ends(touch_peer, ", has destroyed the communicator; HCCLD_STRICT_DEVICE");
	end_it = free_memory;
	check_ends(touch_peer, ", has freed it; HCCLD_STRICT_DEVICE");
	check_ends(touch_lost_import, ", byte 4999 of 5000 mapped at 0x");
	check_ends(touch_lost_import, " of memory that was imported from pid ");
	check_ends(touch_lost_import, " has freed it; HCCLD_STRICT_DEVICE");
}

TEST_TIMEOUT(touching_device_memory_ends_the_program_with_a_line, 60)
{
	check_ends(touch_large, ", byte 5000 of 10485760 allocated at 0x");
	check_ends(touch_large, " on device 3; ");
	check_ends(touch_small, ", byte 99 of 100 allocated at 0x");
	/* aclrtMalloc() rounds up, and adds 32 bytes */
	check_ends(touch_behind, ", byte 130 of 100 (behind its end; 160 with the room behind it) allocated at 0x");
	check_ends(touch_freed, ", which is not allocated (freed, or behind the end of an allocation), on device 0; ");
	check_ends(touch_in_host_function, ", byte 0 of 4194304 allocated at 0x");
	check_ends(touch_in_earlier_thread, ", byte 96 of 4096 allocated at 0x");
	check_ends(touch_mapped, ", byte 77 of 4194304 allocated at 0x");
	check_ends(touch_after_kernel, ", byte 3 of 200 allocated at 0x");
}

TEST_TIMEOUT(an_address_beside_device_memory_is_told, 60)
{
	check_ends_beside(touch_behind_large, ", 65536 bytes behind the end of the allocation of 4194304 bytes by aclrtMalloc at 0x");
	check_ends_beside(touch_behind_large, " on device 1; nothing");
	check_ends_beside(touch_before_large, ", 65536 bytes before the start of the allocation of 4194304 bytes by aclrtMalloc at 0x");
	check_ends_beside(kernel_touches_behind, ", 5000 bytes behind the end of the allocation of 4194304 bytes by aclrtMalloc at 0x");
}

/* ---- a program with a handler of its own ---- */

static volatile unsigned char *expected;

static void own_handler(int number, siginfo_t *info, void *context)
{
	(void)!write(STDERR_FILENO, "own handler\n", 12);
	_exit(info->si_addr == expected ? 17 : 18);
}

static void own_handler_set(void)
{
	struct sigaction action = { .sa_sigaction = own_handler, .sa_flags = SA_SIGINFO };

	check_eq_int(sigaction(SIGSEGV, &action, NULL), 0);
}

static void touch_with_handler(void)
{
	own_handler_set();
	expected = device_make(0, 4096) + 1;
	touch(expected);
}

static void touch_other_with_handler(void)
{
	own_handler_set();
	device_make(0, 4096);
	expected = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(expected != MAP_FAILED);
	touch(expected);
}

TEST_TIMEOUT(the_handler_of_the_program_comes_next, 60)
{
	char text[4096];
	int status = run_child(touch_with_handler, text, sizeof(text));

	check(WIFEXITED(status) && WEXITSTATUS(status) == 17);
	check_str_contains(text, "byte 1 of 4096");
	check_str_contains(text, "own handler");
	status = run_child(touch_other_with_handler, text, sizeof(text));
	check(WIFEXITED(status) && WEXITSTATUS(status) == 17);
	check_str_lacks(text, "device memory");
	check_str_contains(text, "own handler");
}

/* ---- what may ---- */

static void add(uint32_t block, uint32_t blocks, void *args)
{
	uint32_t *words = *(uint32_t **)args;

	for (uint32_t i = block; i < 1000; i += blocks)
		words[i] += i;
}

static void nested(uint32_t block, uint32_t blocks, void *args)
{
	uint32_t *words = *(uint32_t **)args, own[10];

	/* a copy in a kernel, too */
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtMemcpy(own, sizeof(own), words, sizeof(own), ACL_MEMCPY_DEVICE_TO_HOST));
	check_eq_uint(own[9], words[9]);
	check_ok(aclrtMemcpy(words + 1000, 4, words + 9, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
}

static void kernels(void)
{
	uint32_t *device = (uint32_t *)device_make(0, 1001 * sizeof(*device)), host[1001], *pinned;

	check_ok(aclrtMallocHost((void **)&pinned, 4096));
	pinned[0] = 1;
	check_ok(aclrtMemset(device, sizeof(host), 0, sizeof(host)));
	for (int i = 0; i < 50; i++)
		check_ok(HccldLaunchHostKernel(add, 7, &device, sizeof(device), NULL));
	check_ok(HccldLaunchHostKernel(nested, 1, &device, sizeof(device), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_ok(aclrtMemcpy(host, sizeof(host), device, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST));
	for (uint32_t i = 0; i < 1000; i++)
		check_eq_uint(host[i], 50 * i);
	check_eq_uint(host[1000], 450);
	check_ok(aclrtFreeHost(pinned));
	check_ok(aclrtFree(device));
	check_ok(aclrtResetDevice(0));
}

TEST(host_kernels_may_touch_device_memory)
{
	job_run(kernels);
}

static void wrong(void)
{
	void *memory;

	check_ok(aclrtSetDevice(0));
	check_fails(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_PARAM_INVALID, "HCCLD_STRICT_DEVICE is \"yes\"; expected 0, 1, or 2");
	check_ok(aclrtMallocHost(&memory, 64));
}

TEST(a_wrong_value_is_told)
{
	job_run_with("HCCLD_STRICT_DEVICE", "yes", wrong);
}
