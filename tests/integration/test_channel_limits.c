/* SPDX-License-Identifier: Apache-2.0 */
/* More channels and registrations than there may be, by 20 processes; and very many of them, one after the other. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "hccl/hccl_res.h"

#define PROCESSES 20u
#define ROUNDS 10000u
#define REGIONS 5u
#ifdef __SANITIZE_ADDRESS__
#define KEPT_KIB (300 << 10) /* what was freed is kept for a while */
#else
#define KEPT_KIB 0
#endif

static _Atomic uint32_t *refused; /* of all processes */

static HcclChannelDesc desc_of(uint32_t peer)
{
	HcclChannelDesc desc;

	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = peer;
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	return desc;
}

/* 380 ends are wanted, 60 may be: whoever does not get his is told who has them, and all is back afterwards. */
static void wants_channels(struct job_rank *rank)
{
	HcclChannelDesc descs[PROCESSES], pair = desc_of(rank->rank ^ 1);
	ChannelHandle channels[PROCESSES];
	uint32_t count = 0;
	const char *text;
	int r;

	for (uint32_t peer = 0; peer < PROCESSES; peer++)
		if (peer != rank->rank)
			descs[count++] = desc_of(peer);
	r = HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, count, channels);
	text = aclGetRecentErrMsg();
	if (r == HCCL_E_UNAVAIL) {
		atomic_fetch_add(refused, 1);
		check_str_contains(text, "EI0007");
		check_str_contains(text, "channels of uid ");
		check_str_contains(text, "of 60 used, 1 asked");
		check_str_contains(text, "pid ");
		check_str_contains(text, "raise [limits] channels_per_tenant; hcclctl config says where it is set");
	} else {
		/* those who got theirs wait in vain for the rest */
		check_eq_int(r, HCCL_E_TIMEOUT);
	}
	job_meet();
	check_ge_uint(atomic_load(refused), PROCESSES - 3);
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &pair, 1, channels));
	job_meet();
	check_ok(HcclChannelDestroy(rank->comm, channels, 1));
}

/* 100 are wanted, 50 may be. */
static void wants_registrations(struct job_rank *rank)
{
	char *memory = job_memory(REGIONS * 1024, 0), tag[16];
	HcclMemHandle handle;
	CommMem mem = { COMM_MEM_TYPE_DEVICE, NULL, 1024 };

	atomic_store(refused, 0);
	job_meet();
	for (uint32_t i = 0; i < REGIONS; i++) {
		const char *text;
		int r;

		mem.addr = memory + i * 1024;
		snprintf(tag, sizeof(tag), "%u", i);
		r = HcclCommMemReg(rank->comm, tag, &mem, &handle);
		if (r == HCCL_SUCCESS)
			continue;
		text = aclGetRecentErrMsg();
		check_eq_int(r, HCCL_E_UNAVAIL);
		check_str_contains(text, "registrations of uid ");
		check_str_contains(text, "50 of 50 used, 1 asked");
		check_str_contains(text, "raise [limits] registrations_per_tenant");
		atomic_fetch_add(refused, 1);
	}
	job_meet();
	check_eq_uint(atomic_load(refused), 50);
	/* they go with their memory */
	check_ok(aclrtFree(memory));
	job_meet();
	mem.addr = job_memory(1024, 0);
	check_ok(HcclCommMemReg(rank->comm, "again", &mem, &handle));
}

static void wants_more(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	rank = job_join(root, index, PROCESSES, (int32_t)index % 8);
	wants_channels(&rank);
	wants_registrations(&rank);
	job_meet();
	job_leave(&rank);
}

TEST_TIMEOUT(limits_are_told_and_all_is_back, 60)
{
	const char *options[] = { "--channels-per-tenant", "60", "--registrations-per-tenant", "50", NULL };

	refused = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check((void *)refused != MAP_FAILED);
	setenv("HCCLD_CONNECT_TIMEOUT_MS", "3000", 1);
	job_set_options(options);
	job_run_processes(PROCESSES, wants_more);
}

/* ---- very many ---- */

static uint32_t mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint32_t count = 0;
	int c;

	check_ptr(file);
	while ((c = fgetc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

static long resident(const char *path)
{
	FILE *file = fopen(path, "r");
	long size, pages;

	check_ptr(file);
	check_eq_int(fscanf(file, "%ld %ld", &size, &pages), 2);
	fclose(file);
	return pages * 4;
}

static char daemon_statm[64];

static void goes_round(struct job_rank *rank)
{
	uint32_t rounds = ROUNDS / test_timeout_scale(), mapped = 0;
	HcclChannelDesc desc = desc_of(rank->rank ^ 1);
	char *area = job_memory(4096, 0);
	CommMem mem = { COMM_MEM_TYPE_DEVICE, area, 4096 };
	long own = 0, of_daemon = 0;
	HcclMemHandle handle;
	ChannelHandle channel;

	check_ok(HcclCommMemReg(rank->comm, "area", &mem, &handle));
	desc.memHandles = &handle;
	desc.memHandleNum = 1;
	desc.notifyNum = 2;
	for (uint32_t i = 0; i < rounds; i++) {
		check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel));
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		if (rank->rank == 0 && i == rounds / 4) {
			mapped = mappings();
			own = resident("/proc/self/statm");
			of_daemon = resident(daemon_statm);
		}
		if (rank->rank == 0 && i == rounds - 1) {
			check_le_int((int)mappings() - (int)mapped, 8);
			check_lt_int(resident("/proc/self/statm") - own, 2048 + KEPT_KIB);
			check_lt_int(resident(daemon_statm) - of_daemon, 4096 + KEPT_KIB);
		}
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_ok(HcclChannelDestroy(rank->comm, &channel, 1));
	}
}

/* The daemon is the other child of the case. */
static void many_rounds(void)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getppid(), (int)getppid());
	file = fopen(path, "r");
	check_ptr(file);
	while (fscanf(file, "%d", &pid) == 1)
		if (pid != getpid())
			snprintf(daemon_statm, sizeof(daemon_statm), "/proc/%d/statm", pid);
	fclose(file);
	job_ranks(2, 2, goes_round, NULL);
}

TEST_TIMEOUT(ten_thousand_rounds_take_nothing, 120)
{
	const char *options[] = { "--channels-per-tenant", "2", NULL };

	job_set_options(options);
	job_run(many_rounds);
}
