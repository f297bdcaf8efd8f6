/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals FILE OPERATIONS...: rank i has a channel with two notifies to each other rank, and does what argument i says, separated by
 * commas, on one of two threads (0 unless it ends with :THREAD).
 *   wPEER:INDEX nPEER:INDEX   waits for a notify of the channel to PEER; records one of its
 *   tINDEX                    waits for a notify of the thread
 *   e i                       waits for an acl notify, which it exports; imports that
 *   x                         waits for the imported one
 *   rPEER                     receives 8 bytes
 *   kMS                       a host kernel that runs so long
 *   pMS                       pauses
 *   fNUMBER                   goes on when there is FILE.stepNUMBER
 * Says "waiting" once the channels are there, and stays until it is killed.
 */
#include <string.h>

#include "hccl/hccl_res.h"
#include "hccld/host_kernel.h"
#include "hcomm/hcomm_primitives.h"
#include "tests/hcclctl/program.h"

#define RANKS 4
static ChannelHandle channels[RANKS];
static ThreadHandle handles[2];
static aclrtStream streams[2];
static HcclComm comm;
static aclrtNotify notify;
static char key_path[4000];
static void *data;

static void spin(uint32_t block, uint32_t count, void *ms)
{
	usleep((useconds_t) * (unsigned long *)ms * 1000);
}

static void export_notify(void)
{
	char key[256] = { 0 }, part[4096];
	FILE *file;

	TRY(aclrtCreateNotify(&notify, 0));
	TRY(aclrtNotifyGetExportKey(notify, key, sizeof(key), ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	snprintf(part, sizeof(part), "%s.part", key_path);
	file = fopen(part, "wb");
	if (!file || fwrite(key, sizeof(key), 1, file) != 1 || fclose(file) || rename(part, key_path))
		exit(1);
}

static void import_notify(void)
{
	char key[256];
	FILE *file;

	while (!(file = fopen(key_path, "rb")))
		usleep(10000);
	if (fread(key, sizeof(key), 1, file) != 1)
		exit(1);
	fclose(file);
	TRY(aclrtNotifyImportByKey(&notify, key, 0));
}

static void run(const char *operation)
{
	unsigned long first = 0, second = 0, third = 0;

	sscanf(operation + 1, "%lu:%lu:%lu", &first, &second, &third);
	switch (operation[0]) {
	case 'w':
		TRY(HcommChannelNotifyWaitOnThread(handles[third % 2], channels[first % RANKS], (uint32_t)second, 0));
		return;
	case 'n':
		TRY(HcommChannelNotifyRecordOnThread(handles[third % 2], channels[first % RANKS], (uint32_t)second));
		return;
	case 't':
		TRY(HcommThreadNotifyWaitOnThread(handles[0], (uint32_t)first, 0));
		return;
	case 'r':
		TRY(HcclRecv(data, 8, HCCL_DATA_TYPE_INT8, (uint32_t)first, comm, streams[0]));
		return;
	case 'e':
		export_notify();
		TRY(aclrtWaitAndResetNotify(notify, streams[0], 0));
		return;
	case 'i':
		import_notify();
		return;
	case 'x':
		TRY(aclrtWaitAndResetNotify(notify, streams[0], 0));
		return;
	case 'k':
		TRY(HccldLaunchHostKernel(spin, 2, &first, sizeof(first), streams[0]));
		return;
	case 'p':
		usleep((useconds_t)first * 1000);
		return;
	case 'f':
		wait_for_step(first);
		return;
	default:
		exit(2);
	}
}

static void meet(uint32_t rank, uint32_t size)
{
	HcclChannelDesc descs[RANKS];
	ChannelHandle found[RANKS];
	uint32_t count = 0;

	TRY(HcclChannelDescInit(descs, size - 1));
	for (uint32_t peer = 0; peer < size; peer++) {
		if (peer == rank)
			continue;
		descs[count].remoteRank = peer;
		descs[count].channelProtocol = COMM_PROTOCOL_UB_MEM;
		descs[count++].notifyNum = 2;
	}
	TRY(HcclChannelAcquire(comm, COMM_ENGINE_CPU_TS, descs, count, found));
	for (uint32_t peer = 0, i = 0; peer < size; peer++)
		if (peer != rank)
			channels[peer] = found[i++];
}

int main(int argc, char **argv)
{
	uint32_t rank = (uint32_t)atoi(getenv("RANK_ID")), size = (uint32_t)atoi(getenv("RANK_SIZE"));
	HcclRootInfo root;

	if (argc < 2 + (int)size || size > RANKS)
		return 2;
	step_path = argv[1];
	TRY(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
	snprintf(key_path, sizeof(key_path), "%s.key", argv[1]);
	share(&root, rank, argv[1]);
	TRY(HcclCommInitRootInfo(size, &root, rank, &comm));
	TRY(aclrtMalloc(&data, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	for (int i = 0; i < 2; i++) {
		TRY(aclrtCreateStream(&streams[i]));
		TRY(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, streams[i], 2, &handles[i]));
	}
	meet(rank, size);
	printf("waiting\n");
	fflush(stdout);
	for (const char *operation = strtok(argv[2 + rank], ","); operation; operation = strtok(NULL, ","))
		run(operation);
	for (;;)
		pause();
}
