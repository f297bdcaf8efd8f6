/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flood by one tenant costs another: flood [KIND...]. The victim runs an ordinary job (two ranks, send and receive, then synchronize)
 * while a process of another user floods the daemon in one way. Windows with the flood stopped and with it running take turns, so that
 * both see the same machine. Printed are operations per second, what is kept of them, the 50th and 99th percentile of an operation, and how much of a
 * core the daemon uses for the flood alone.
 *
 * A victim that does nothing but communicate takes all of the engine that it can get; against a flood of copies or tasks its share is half.
 * One that computes half a millisecond between two operations ("paced") asks for less than its share, and keeps what it asks for.
 *
 * The flooder runs with SCHED_IDLE: what it takes of the cores by itself is the kernel's affair, what it makes the daemon do is ours. How much
 * that still is shows in the first row, "spin", whose flooder does nothing but spin.
 * FLOOD_NICE=0 leaves it at normal priority. FLOOD_MS: length of a window (300), FLOOD_WINDOWS: pairs of them (8), FLOOD_KEEP: percent that
 * the paced victim must keep, FLOOD_WORST_MS: how long no operation may take, else the exit status is 1. Needs root to be another user; otherwise flooder and victim are one tenant, which is said.
 */
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "proto/clock.h"
#include "proto/control.pb-c.h"
#include "proto/packet.h"
#include "proto/pause.h"
#include "tests/support/private_daemon.h"

#define FLOOD_UID 61003u
#define SAMPLES_MAX 400000u
#define PIPELINE 64

#define MUST(call)                                                                              \
	do {                                                                                    \
		int result_ = (int)(call);                                                      \
		if (result_) {                                                                  \
			const char *text_ = aclGetRecentErrMsg();                               \
			fprintf(stderr, "flood: %s: %d %s\n", #call, result_, text_ ? text_ : ""); \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

static struct private_daemon private_daemon;
static _Atomic bool *flooding; /* shared: the flood has begun */

static unsigned number_of(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : otherwise;
}

/* ---- floods; none of them returns ---- */

static int flood_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, private_daemon.socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		exit(1);
	return fd;
}

static int flood_hello(Hccld__Control__Hello__Role role)
{
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	static struct packet packet;
	int fd = flood_connect();

	hello.magic = HCCLD_MAGIC;
	hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
	hello.role = role;
	request.id = 1;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	if (packet_send(fd, &request.base, NULL, 0, 0) < 0 || packet_receive(fd, &packet, 0) < 0)
		exit(1);
	packet_close(&packet);
	return fd;
}

static void flood_spin(void)
{
	for (;;)
		cpu_pause();
}

static void flood_connects(void)
{
	for (;;)
		close(flood_connect());
}

static void flood_sessions(void)
{
	for (;;)
		close(flood_hello(HCCLD__CONTROL__HELLO__ROLE__CLIENT));
}

/* Many connections, each with many requests on the way. */
static void flood_requests(void)
{
	Hccld__Control__Status status = HCCLD__CONTROL__STATUS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	static struct packet packet;
	struct pollfd polled[32];

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	for (int i = 0; i < 32; i++) {
		polled[i] = (struct pollfd){ .fd = flood_hello(HCCLD__CONTROL__HELLO__ROLE__TOOL), .events = POLLIN };
		for (int n = 0; n < PIPELINE; n++)
			packet_send(polled[i].fd, &request.base, NULL, 0, MSG_DONTWAIT);
	}
	for (;;) {
		/* one that spins costs the cores what "spin" does */
		poll(polled, 32, -1);
		for (int i = 0; i < 32; i++) {
			while (packet_receive(polled[i].fd, &packet, MSG_DONTWAIT) == 0)
				packet_send(polled[i].fd, &request.base, NULL, 0, MSG_DONTWAIT);
		}
	}
}

static void flood_allocations(void)
{
	void *memory;

	MUST(aclrtSetDevice(0));
	for (size_t i = 0;; i++) {
		MUST(aclrtMalloc(&memory, (size_t)4 << (18 + i % 6), ACL_MEM_MALLOC_HUGE_FIRST));
		MUST(aclrtFree(memory));
	}
}

static aclError queue_copy(void *to, const void *from, size_t bytes, aclrtStream stream)
{
	return aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
}

static aclError queue_reduction(void *to, const void *from, size_t bytes, aclrtStream stream)
{
	return aclrtReduceAsync(to, from, bytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT16, stream, NULL);
}

/* @depth times @bytes on each of @count streams, then again: what is queued is done soon when the flooder is stopped. */
static void flood_memory(aclError (*queue)(void *to, const void *from, size_t bytes, aclrtStream stream), int count, size_t bytes, int depth)
{
	aclrtStream streams[64];
	void *from, *to;

	MUST(aclrtSetDevice(0));
	MUST(aclrtMalloc(&from, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	MUST(aclrtMalloc(&to, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	for (int i = 0; i < count; i++)
		MUST(aclrtCreateStream(&streams[i]));
	for (;;) {
		for (int i = 0; i < count * depth; i++)
			MUST(queue(to, from, bytes, streams[i % count]));
		for (int i = 0; i < count; i++)
			MUST(aclrtSynchronizeStream(streams[i]));
	}
}

static void flood_tiny_tasks(void)
{
	flood_memory(queue_copy, 16, 8, 200);
}

static void flood_large_copies(void)
{
	flood_memory(queue_copy, 32, 16 << 20, 1);
}

static void flood_reductions(void)
{
	flood_memory(queue_reduction, 32, 16 << 20, 1);
}

/* Batches of thousands of items between two ranks of one process. */
static void flood_batches(void)
{
	enum { ITEMS = 16384 };
	static HcclSendRecvItem items[2][ITEMS];
	int32_t devices[2] = { 0, 1 };
	aclrtStream streams[2];
	HcclComm comms[2];

	MUST(aclInit(NULL));
	MUST(HcclCommInitAll(2, devices, comms));
	for (uint32_t rank = 0; rank < 2; rank++) {
		char *memory;

		MUST(aclrtSetDevice(devices[rank]));
		MUST(aclrtCreateStream(&streams[rank]));
		MUST(aclrtMalloc((void **)&memory, ITEMS * 1024u, ACL_MEM_MALLOC_HUGE_FIRST));
		for (size_t i = 0; i < ITEMS; i++)
			items[rank][i] = (HcclSendRecvItem){ rank ? HCCL_RECV : HCCL_SEND, memory + i * 1024, 1024,
							     HCCL_DATA_TYPE_INT8, 1 - rank };
	}
	for (;;) {
		for (uint32_t rank = 0; rank < 2; rank++) {
			MUST(aclrtSetDevice(devices[rank]));
			MUST(HcclBatchSendRecv(items[rank], ITEMS, comms[rank], streams[rank]));
		}
		MUST(aclrtSynchronizeStream(streams[1]));
	}
}

static const struct flood {
	const char *name, *what;
	void (*run)(void);
} floods[] = {
	{ "spin", "nothing of the daemon's: what a busy core alone costs", flood_spin },
	{ "connects", "connections that never say anything", flood_connects },
	{ "sessions", "processes that come and go", flood_sessions },
	{ "requests", "32 connections with 64 requests each on the way", flood_requests },
	{ "allocations", "1 to 32 MiB allocated and freed", flood_allocations },
	{ "tiny-tasks", "copies of 8 bytes on 16 streams", flood_tiny_tasks },
	{ "batches", "batches of 16384 items of 1 KiB", flood_batches },
	{ "large-copies", "copies of 16 MiB on 32 streams", flood_large_copies },
	{ "reductions", "sums of 16 MiB of fp16 on 32 streams", flood_reductions },
};
#define FLOOD_COUNT (sizeof(floods) / sizeof(floods[0]))

static pid_t flood_start(const struct flood *flood)
{
	struct sched_param idle = { 0 };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (geteuid() == 0 && (setresgid(FLOOD_UID, FLOOD_UID, FLOOD_UID) < 0 || setresuid(FLOOD_UID, FLOOD_UID, FLOOD_UID) < 0))
		exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", 1);
	if (number_of("FLOOD_NICE", 1))
		sched_setscheduler(0, SCHED_IDLE, &idle);
	atomic_store(flooding, true);
	flood->run();
	exit(1);
}

/* ---- the victim ---- */

struct job {
	HcclComm comms[2];
	aclrtStream streams[2];
	void *memory[2];
	uint64_t bytes;
	unsigned pace_us; /* computes between two operations */
};

struct result {
	double seconds;
	uint32_t count;
	uint64_t *samples; /* ns */
};

static void job_start(struct job *job, uint64_t bytes, unsigned pace_us)
{
	int32_t devices[2] = { 2, 3 };

	job->bytes = bytes;
	job->pace_us = pace_us;
	MUST(HcclCommInitAll(2, devices, job->comms));
	for (uint32_t rank = 0; rank < 2; rank++) {
		MUST(aclrtSetDevice(devices[rank]));
		MUST(aclrtCreateStream(&job->streams[rank]));
		MUST(aclrtMalloc(&job->memory[rank], bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	}
}

static void job_step(struct job *job)
{
	MUST(aclrtSetDevice(2));
	MUST(HcclSend(job->memory[0], job->bytes, HCCL_DATA_TYPE_INT8, 1, job->comms[0], job->streams[0]));
	MUST(aclrtSetDevice(3));
	MUST(HcclRecv(job->memory[1], job->bytes, HCCL_DATA_TYPE_INT8, 0, job->comms[1], job->streams[1]));
	MUST(aclrtSynchronizeStream(job->streams[1]));
	MUST(aclrtSetDevice(2));
	MUST(aclrtSynchronizeStream(job->streams[0]));
}

static void job_measure(struct job *job, unsigned ms, struct result *result)
{
	uint64_t start = clock_now_ns(), before = start, now;

	do {
		job_step(job);
		now = clock_now_ns();
		if (result->count < SAMPLES_MAX)
			result->samples[result->count] = now - before;
		result->count++;
		for (before = now; now - before < job->pace_us * 1000ull;)
			now = clock_now_ns();
		before = now;
	} while (now - start < ms * 1000000ull);
	result->seconds += (double)(now - start) / 1e9;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double percentile(struct result *result, double part)
{
	uint32_t count = result->count < SAMPLES_MAX ? result->count : SAMPLES_MAX;

	qsort(result->samples, count, sizeof(*result->samples), compare);
	return count ? (double)result->samples[(uint32_t)(part * (count - 1))] / 1000 : 0;
}

/* CPU time of the daemon's threads together, in ms. */
static double daemon_cpu_ms(void)
{
	unsigned long user = 0, system = 0;
	char path[64], line[1024];
	FILE *file;
	char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", private_daemon.pid);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file) || !(end = strrchr(line, ')')) ||
	    sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		exit(1);
	fclose(file);
	return (double)(user + system) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

/* Windows in turn; false: less than @keep percent is kept. */
static bool flood_measure(struct job *job, const struct flood *flood, pid_t pid, unsigned keep)
{
	const unsigned ms = number_of("FLOOD_MS", 300), windows = number_of("FLOOD_WINDOWS", 8), worst_ms = number_of("FLOOD_WORST_MS", 60000);
	static uint64_t quiet_samples[SAMPLES_MAX], loud_samples[SAMPLES_MAX];
	struct result quiet = { .samples = quiet_samples }, loud = { .samples = loud_samples };
	double off, on, cpu;
	int status;

	for (unsigned i = 0; i < windows; i++) {
		kill(pid, SIGSTOP);
		/* what it has left in the queues is done */
		usleep(200000);
		job_measure(job, ms, &quiet);
		kill(pid, SIGCONT);
		usleep(50000);
		job_measure(job, ms, &loud);
	}
	if (waitpid(pid, &status, WNOHANG) == pid) {
		fprintf(stderr, "flood: the flooder (%s) has ended by itself\n", flood->name);
		return false;
	}
	/* what the flood alone makes the daemon do */
	cpu = daemon_cpu_ms();
	usleep(500000);
	cpu = (daemon_cpu_ms() - cpu) / 5;
	off = quiet.count / quiet.seconds;
	on = loud.count / loud.seconds;
	printf("%-13s %7" PRIu64 " B%s %9.0f %9.0f %6.1f %% %8.1f %8.1f %8.1f %8.1f %7.0f %%\n", flood->name, job->bytes, job->pace_us ? ", paced" : "       ", off, on,
	       on * 100 / off, percentile(&quiet, 0.5), percentile(&loud, 0.5), percentile(&quiet, 0.99), percentile(&loud, 0.99), cpu);
	fflush(stdout);
	if (percentile(&loud, 1) > worst_ms * 1000.0) {
		printf("flood: %s: an operation took %.0f ms\n", flood->name, percentile(&loud, 1) / 1000);
		return false;
	}
	if (on * 100 >= off * keep)
		return true;
	printf("flood: %s: less than %u %% is kept\n", flood->name, keep);
	return false;
}

/* In a process of its own. The flooder is forked before there is a session. */
static bool flood_run(const struct flood *flood, unsigned keep)
{
	pid_t pid = flood_start(flood);
	static const struct {
		uint64_t bytes;
		unsigned pace_us;
	} kinds[] = { { 1024, 0 }, { 1 << 20, 0 }, { 1 << 20, 500 } };
	struct job jobs[3];
	bool good = true;

	MUST(aclInit(NULL));
	for (int i = 0; i < 3; i++)
		job_start(&jobs[i], kinds[i].bytes, kinds[i].pace_us);
	while (!atomic_load(flooding))
		usleep(1000);
	/* its burst of requests is over by then */
	usleep(1000000);
	for (int i = 0; i < 3; i++)
		good &= flood_measure(&jobs[i], flood, pid, jobs[i].pace_us ? keep : 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return good;
}

static bool is_chosen(const struct flood *flood, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], flood->name) == 0)
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	static const char *const options[] = { "--log-level", "error", "--device-memory", "512M", NULL };
	const unsigned keep = number_of("FLOOD_KEEP", 0);
	bool good = true;

	flooding = mmap(NULL, sizeof(*flooding), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (flooding == MAP_FAILED || private_daemon_start(&private_daemon, options, NULL) < 0)
		return 1;
	chmod(private_daemon.directory, 0755);
	chmod(private_daemon.socket, 0666);
	if (geteuid() != 0)
		puts("not root: flooder and victim are one tenant");
	printf("%-13s %16s %9s %9s %8s %8s %8s %8s %8s %9s\n", "flood", "victim", "quiet/s", "flood/s", "kept", "p50 us", "flood",
	       "p99 us", "flood", "daemon");
	fflush(stdout);
	for (size_t i = 0; i < FLOOD_COUNT; i++) {
		int status = 1;
		pid_t pid;

		if (!is_chosen(&floods[i], argc, argv))
			continue;
		atomic_store(flooding, false);
		pid = fork();
		if (pid == 0)
			exit(!flood_run(&floods[i], keep));
		waitpid(pid, &status, 0);
		good &= status == 0;
	}
	private_daemon_stop(&private_daemon);
	return !good;
}
