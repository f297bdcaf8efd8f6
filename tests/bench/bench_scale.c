/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long N processes need until each has sent 8 bytes to every other, and what memory they have then: bench_scale N, with the daemon of
 * HCCLD_SOCKET (its memory counts if HCCLD_PID says who it is), else one of its own. Each process is started as a program of its own.
 * SCALE_START_NS: CLOCK_MONOTONIC at which time starts; default: when this program starts.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "measure.h"
#include "tests/support/private_daemon.h"

#define DEVICES 8

struct meeting {
	HcclRootInfo root;
	_Atomic uint32_t root_ready, up, measured;
	_Atomic uint64_t pss_kib, up_ns;
};

#define MUST(call)                                                                                                                     \
	do {                                                                                                                           \
		int result_ = (int)(call);                                                                                             \
		if (result_) {                                                                                                         \
			const char *text_ = aclGetRecentErrMsg();                                                                      \
			fprintf(stderr, "rank %u: %s: %d %s\n", rank, #call, result_, text_ ? text_ : "");                             \
			return 1;                                                                                                      \
		}                                                                                                                      \
	} while (0)

static struct meeting *meeting_map(int fd)
{
	struct meeting *meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return meeting == MAP_FAILED ? NULL : meeting;
}

static int run_rank(struct meeting *meeting, uint32_t rank, uint32_t size)
{
	HcclSendRecvItem *items = calloc(2 * (size_t)size, sizeof(*items));
	uint32_t count = 0, up, all;
	aclrtStream stream;
	HcclComm comm;
	char *memory;

	measure_place(rank);
	MUST(aclrtSetDevice((int32_t)(rank % DEVICES)));
	if (rank == 0) {
		MUST(HcclGetRootInfo(&meeting->root));
		atomic_store(&meeting->root_ready, 1);
	}
	while (!atomic_load(&meeting->root_ready))
		usleep(500);
	MUST(HcclCommInitRootInfo(size, &meeting->root, rank, &comm));
	MUST(aclrtCreateStream(&stream));
	MUST(aclrtMalloc((void **)&memory, 2 * 8 * (size_t)size, ACL_MEM_MALLOC_HUGE_FIRST));
	for (uint32_t d = 1; d < size; d++) {
		uint32_t to = (rank + d) % size, from = (rank + size - d) % size;
		uint64_t value = (uint64_t)rank << 32 | to;

		memcpy(memory + 8 * to, &value, 8);
		items[count++] = (HcclSendRecvItem){ HCCL_SEND, memory + 8 * to, 8, HCCL_DATA_TYPE_INT8, to };
		items[count++] = (HcclSendRecvItem){ HCCL_RECV, memory + 8 * (size + from), 8, HCCL_DATA_TYPE_INT8, from };
	}
	MUST(HcclBatchSendRecv(items, count, comm, stream));
	free(items);
	MUST(aclrtSynchronizeStream(stream));
	up = atomic_fetch_add(&meeting->up, 1) + 1;
	if (up == size)
		atomic_store(&meeting->up_ns, measure_now_ns());
	for (uint32_t from = 0; from < size; from++) {
		uint64_t value = (uint64_t)from << 32 | rank;

		if (from != rank && memcmp(memory + 8 * (size + from), &value, 8) != 0)
			return fprintf(stderr, "rank %u: wrong bytes from rank %u\n", rank, from), 1;
	}
	while (atomic_load(&meeting->up) < size)
		usleep(2000);
	atomic_fetch_add(&meeting->pss_kib, measure_pss_kib(0));
	all = atomic_fetch_add(&meeting->measured, 1) + 1;
	/* stay until all are measured: whoever goes hands its share of shared pages to the others; size + 1: the daemon too */
	while (all <= size) {
		usleep(2000);
		all = atomic_load(&meeting->measured);
	}
	return 0;
}

static void start(int fd, uint32_t rank, uint32_t size)
{
	char texts[3][16];

	snprintf(texts[0], sizeof(texts[0]), "%d", fd);
	snprintf(texts[1], sizeof(texts[1]), "%u", rank);
	snprintf(texts[2], sizeof(texts[2]), "%u", size);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl("/proc/self/exe", "bench_scale", "--rank", texts[0], texts[1], texts[2], (char *)NULL);
	_exit(127);
}

/* The daemon's memory, once all ranks are measured, and before they go. */
static int watch(struct meeting *meeting, uint32_t size, pid_t daemon)
{
	while (atomic_load(&meeting->measured) < size) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0 && pid != daemon)
			return 1;
		usleep(1000);
	}
	if (daemon)
		atomic_fetch_add(&meeting->pss_kib, measure_pss_kib(daemon));
	atomic_fetch_add(&meeting->measured, 1);
	return 0;
}

int main(int argc, char **argv)
{
	const char *start_text = getenv("SCALE_START_NS"), *pid_text = getenv("HCCLD_PID"), *name = getenv("BENCH_NAME");
	struct private_daemon daemon = { .pid = pid_text ? atoi(pid_text) : 0 };
	bool own_daemon = !getenv("HCCLD_SOCKET");
	struct meeting *meeting;
	uint64_t start_ns;
	uint32_t size;
	int fd, failed;

	if (argc == 5 && strcmp(argv[1], "--rank") == 0) {
		meeting = meeting_map(atoi(argv[2]));
		return meeting ? run_rank(meeting, (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4])) : 1;
	}
	size = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	if (size < 2)
		return fprintf(stderr, "usage: bench_scale N\n"), 2;
	fd = memfd_create("meeting", 0);
	if (fd < 0 || ftruncate(fd, sizeof(*meeting)) < 0 || !(meeting = meeting_map(fd)))
		return 1;
	if (own_daemon && private_daemon_start(&daemon, NULL, NULL) < 0)
		return 1;
	start_ns = start_text ? strtoull(start_text, NULL, 10) : measure_now_ns();
	for (uint32_t rank = 0; rank < size; rank++)
		if (fork() == 0)
			start(fd, rank, size);
	failed = watch(meeting, size, daemon.pid);
	if (!failed)
		printf("scale peer=%s np=%u up_ms=%.1f pss_mib=%.1f\n", name ? name : "hccld", size,
		       (double)(atomic_load(&meeting->up_ns) - start_ns) / 1e6, (double)atomic_load(&meeting->pss_kib) / 1024);
	/* they go by themselves now, which is no loss that a daemon reports */
	for (uint32_t rank = 0; !failed && rank < size; rank++)
		wait(NULL);
	if (own_daemon)
		private_daemon_stop(&daemon);
	return failed;
}
