/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs may rely on while threads drive their own contexts (ARCHITECTURE.md, section 7): what is submitted ends without a further
 * call, within a millisecond; to submit takes as long for many bytes as for few; submit and wait, again and again, with a peer that does the same makes no system call; who waits long sleeps,
 * and so does a daemon that has nothing to do.
 */
#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/feature.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"

#define BYTES 8u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of both ranks, and of who traces one. */
struct shared {
	_Atomic uint32_t posted, got, traced, stops, over;
	_Atomic uint64_t sent_ns;
};
static struct shared *shared;

static void run(void (*body)(uint32_t index, HcclRootInfo *root))
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	job_run_processes(2, body);
	munmap(shared, sizeof(*shared));
}

static struct job_rank join(uint32_t index, HcclRootInfo *root)
{
	check_ok(aclrtSetDevice((int32_t)index));
	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	return job_join(root, index, 2, (int32_t)index);
}

/* ---- (b) ---- */

#define SUBMITS 100u
#define LIMIT_NS 20000000u	/* twenty times what it may take */

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void submits_body(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = join(index, root);
	volatile unsigned char *in = job_memory(BYTES, 0), *out = job_memory(BYTES, 0);
	uint64_t took_ns[SUBMITS];

	for (uint32_t i = 1; i <= SUBMITS; i++) {
		if (index == 0) {
			while (atomic_load(&shared->posted) != i)
				usleep(100);
			/* every other time the engine sleeps, and has given up its patience */
			usleep(i % 2 ? 1000 : 15000);
			memset((void *)out, (int)i, BYTES);
			atomic_store(&shared->sent_ns, now_ns());
			check_ok(HcclSend((void *)out, BYTES, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
			while (atomic_load(&shared->got) != i)
				usleep(100);
		} else {
			check_ok(HcclRecv((void *)in, BYTES, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
			atomic_store(&shared->posted, i);
			while (in[0] != i || in[BYTES - 1] != i)
				usleep(20);
			took_ns[i - 1] = now_ns() - atomic_load(&shared->sent_ns);
			atomic_store(&shared->got, i);
		}
		check_ok(aclrtSynchronizeStream(rank.stream));
	}
	if (index == 1) {
		qsort(took_ns, SUBMITS, sizeof(took_ns[0]), by_size);
		printf("submitted, received without a call: p50 %.0f us, p99 %.0f us\n", (double)took_ns[SUBMITS / 2] / 1000,
		       (double)took_ns[SUBMITS * 99 / 100] / 1000);
		fflush(stdout);
		check_lt_uint(took_ns[SUBMITS / 2], LIMIT_NS * test_timeout_scale());
	}
	job_leave(&rank);
}

TEST_TIMEOUT(what_is_submitted_ends_without_a_call, 60)
{
	run(submits_body);
}

/* ---- large messages ---- */

#define POSTS 40u
#define SMALL (64u << 10)
#define LARGE (256u << 20)
#define LARGE_POSTS 3u

/* HcclBatchSendRecv of @bytes whose other end is posted: the median of what the call takes at rank 0. */
static uint64_t post_ns(struct job_rank *rank, uint32_t index, void *memory, uint64_t bytes, uint32_t count)
{
	HcclSendRecvItem item = index == 0 ? job_send(1, memory, bytes) : job_receive(0, memory, bytes);
	uint64_t took_ns[POSTS];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin_ns;

		if (index == 1)
			check_ok(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
		job_meet();
		begin_ns = now_ns();
		if (index == 0)
			check_ok(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
		took_ns[i] = now_ns() - begin_ns;
		check_ok(aclrtSynchronizeStream(rank->stream));
		job_meet();
	}
	qsort(took_ns, count, sizeof(took_ns[0]), by_size);
	return took_ns[count / 2];
}

static void large_body(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = join(index, root);
	unsigned char *memory = job_memory(LARGE, index == 0 ? 7 : 0);
	uint64_t small_ns = post_ns(&rank, index, memory, SMALL, POSTS), large_ns = post_ns(&rank, index, memory, LARGE, LARGE_POSTS);

	check_eq_uint(memory[0], 7);
	check_eq_uint(memory[LARGE - 1], 7);
	if (index == 0) {
		printf("HcclBatchSendRecv returns after %.1f us for 64 KiB, after %.1f us for 256 MiB\n", (double)small_ns / 1000,
		       (double)large_ns / 1000);
		fflush(stdout);
		/* the copy takes 10 ms and more */
		check_lt_uint(large_ns, 20 * small_ns + 200000);
	}
	job_leave(&rank);
}

TEST_TIMEOUT(the_call_takes_as_long_for_many_bytes_as_for_few, 60)
{
	run(large_body);
}

/* ---- (c) ---- */

#define EXCHANGES 10000u
#define CLEAN_MIN 100u	/* exchanges: in others the peer may have lost its core */
#define BLOCKS_MAX 30u	/* of EXCHANGES: a machine may be busy with other things for a while */

/* Counts the stops at system calls of @pid until it is over. */
static _Noreturn void trace(pid_t pid)
{
	int status, sig;

	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESYSGOOD) != 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0)
		_exit(1);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		sig = WSTOPSIG(status);
		if (sig == (SIGTRAP | 0x80))
			atomic_fetch_add(&shared->stops, 1);
		if (sig == (SIGTRAP | 0x80) || status >> 16)
			sig = 0;
		if (atomic_load(&shared->over)) {
			ptrace(PTRACE_DETACH, pid, NULL, sig);
			_exit(0);
		}
		atomic_store(&shared->traced, 1);
		ptrace(PTRACE_SYSCALL, pid, NULL, sig);
	}
	_exit(1);
}

static pid_t trace_me(void)
{
	pid_t tracer = fork();

	check_ge_int(tracer, 0);
	if (tracer == 0) {
		/* until it may */
		while (!atomic_load(&shared->posted))
			usleep(1000);
		trace(getppid());
	}
	prctl(PR_SET_PTRACER, tracer);
	atomic_store(&shared->posted, 1);
	while (!atomic_load(&shared->traced))
		usleep(1000);
	return tracer;
}

static void exchange(struct job_rank *rank, unsigned char *out, unsigned char *in, uint32_t number)
{
	HcclSendRecvItem items[] = { job_send(!rank->rank, out, BYTES), job_receive(!rank->rank, in, BYTES) };

	memset(out, (int)number, BYTES);
	check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_int(in[BYTES - 1], (unsigned char)number);
}

static bool is_clean(struct job_rank *rank, unsigned char *out, unsigned char *in, uint32_t number)
{
	uint32_t before = atomic_load(&shared->stops);

	exchange(rank, out, in, number);
	return atomic_load(&shared->stops) == before;
}

/* A core for each rank. */
static void pin(uint32_t index)
{
	cpu_set_t all, one;
	int cpu = -1;

	check_eq_int(sched_getaffinity(0, sizeof(all), &all), 0);
	for (uint32_t i = 0; i <= index; i++)
		do
			cpu++;
		while (!CPU_ISSET(cpu, &all));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	check_eq_int(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void steady_body(uint32_t index, HcclRootInfo *root)
{
	pid_t tracer = index == 0 ? trace_me() : 0;
	struct job_rank rank = join(index, root);
	unsigned char *in = job_memory(BYTES, 0), *out = job_memory(BYTES, 0);
	uint32_t clean = 0, status = 0, blocks = 0;

	/* behind the first wait, which looks how many cores there are */
	exchange(&rank, out, in, 1);
	pin(index);
	do {
		for (uint32_t i = 0; i < EXCHANGES; i++)
			clean += is_clean(&rank, out, in, i);
		if (index == 0)
			atomic_store(&shared->got, clean >= CLEAN_MIN || ++blocks == BLOCKS_MAX);
		/* one more tells the other one */
		exchange(&rank, out, in, 2);
	} while (!atomic_load(&shared->got));
	if (index == 0) {
		printf("of %u exchanges %u were without a system call\n", (blocks + 1) * EXCHANGES, clean);
		fflush(stdout);
		atomic_store(&shared->over, 1);
		usleep(1);
		check_eq_int(waitpid(tracer, (int *)&status, 0), tracer);
		check_eq_int(status, 0);
		check_ge_uint(clean, CLEAN_MIN);
	}
	job_leave(&rank);
}

TEST_TIMEOUT(the_steady_pattern_makes_no_system_call, 60)
{
	cpu_set_t set;

	check_eq_int(sched_getaffinity(0, sizeof(set), &set), 0);
	/* nobody spins for a peer that has no core */
	if (CPU_COUNT(&set) > 1)
		run(steady_body);
}

/* ---- (d) ---- */

#define SLEEP_US 1000000u
#define SLEEP_LIMIT_NS 20000000u	/* of the processor; it takes some 100 us before it sleeps */

static uint64_t thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void sleeps_body(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = join(index, root);
	unsigned char *memory = job_memory(BYTES, 0);
	uint64_t before, used_ns;

	job_meet();
	if (index == 0) {
		usleep(SLEEP_US);
		check_ok(HcclSend(memory, BYTES, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
		check_ok(aclrtSynchronizeStream(rank.stream));
	} else {
		check_ok(HcclRecv(memory, BYTES, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
		before = thread_ns();
		check_ok(aclrtSynchronizeStream(rank.stream));
		used_ns = thread_ns() - before;
		printf("a second of waiting took %.0f us of the processor\n", (double)used_ns / 1000);
		fflush(stdout);
		check_lt_uint(used_ns, SLEEP_LIMIT_NS);
	}
	job_leave(&rank);
}

TEST(who_waits_long_sleeps)
{
	run(sleeps_body);
}

#define SESSIONS 100u
#define IDLE_US 2000000u
#define IDLE_LIMIT 0.1	/* of a core: twenty times what it may take */

/* What all threads of @pid have run, in ns. */
static uint64_t process_ns(pid_t pid)
{
	char path[64], name[128];
	struct dirent *entry;
	uint64_t sum = 0, ns;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	check_ptr(tasks);
	while ((entry = readdir(tasks))) {
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%.16s/schedstat", path, entry->d_name);
		file = fopen(name, "r");
		if (!file)
			continue;
		if (fscanf(file, "%" SCNu64, &ns) == 1)
			sum += ns;
		fclose(file);
	}
	closedir(tasks);
	return sum;
}

TEST_TIMEOUT(a_daemon_with_nothing_to_do_sleeps, 60)
{
	struct raw_client *clients = calloc(SESSIONS, sizeof(*clients));
	struct private_daemon daemon;
	uint64_t before, start;
	double share;

	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	for (uint32_t i = 0; i < SESSIONS; i++) {
		raw_client_start_with(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURE_DIRECT);
		raw_create_stream(&clients[i], raw_open_context(&clients[i], i % clients[i].device_count));
	}
	usleep(200000);
	start = now_ns();
	before = process_ns(daemon.pid);
	check_ne_uint(before, 0);
	usleep(IDLE_US);
	share = (double)(process_ns(daemon.pid) - before) / (double)(now_ns() - start);
	printf("an idle daemon with %u sessions takes %.2f %% of a core\n", SESSIONS, share * 100);
	fflush(stdout);
	check_msg(share < IDLE_LIMIT, "an idle daemon takes %.1f %% of a core", share * 100);
	for (uint32_t i = 0; i < SESSIONS; i++)
		raw_client_stop(&clients[i]);
	free(clients);
	check_eq_int(private_daemon_stop(&daemon), 0);
}
