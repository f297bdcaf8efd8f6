/* SPDX-License-Identifier: Apache-2.0 */
/* What both examples need: checked calls, a communicator of the ranks that hcclctl run has started, channels to all others. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"

#define RANKS_MAX 16
#define SECONDS_MAX 60

#define TRY(call)                                                                              \
	do {                                                                                   \
		int code_ = (call);                                                            \
		if (code_) {                                                                   \
			const char *text_ = aclGetRecentErrMsg();                              \
			fprintf(stderr, "%s: %d %s\n", #call, code_, text_ ? text_ : "");      \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

struct job {
	uint32_t rank, size;
	HcclComm comm;
	aclrtStream stream;
	ChannelHandle channels[RANKS_MAX];	/* by rank; not the own */
	void *areas[RANKS_MAX];			/* by rank, the own too: memory that each has registered */
};

/* Rank 0 makes the root info; a file takes it to the others. */
static inline void job_share(HcclRootInfo *root, uint32_t rank, const char *path)
{
	char part[4096];
	FILE *file = NULL;

	snprintf(part, sizeof(part), "%s.part", path);
	if (rank == 0) {
		TRY(HcclGetRootInfo(root));
		file = fopen(part, "wb");
		if (!file || fwrite(root, sizeof(*root), 1, file) != 1 || fclose(file) || rename(part, path))
			exit(1);
		return;
	}
	while (!(file = fopen(path, "rb")))
		usleep(10000);
	if (fread(root, sizeof(*root), 1, file) != 1)
		exit(1);
	fclose(file);
}

static inline void job_begin(struct job *job, const char *path)
{
	HcclRootInfo root;

	job->rank = (uint32_t)atoi(getenv("RANK_ID"));
	job->size = (uint32_t)atoi(getenv("RANK_SIZE"));
	if (job->size > RANKS_MAX) {
		fprintf(stderr, "at most %d ranks\n", RANKS_MAX);
		exit(1);
	}
	TRY(aclInit(NULL));
	TRY(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
	job_share(&root, job->rank, path);
	TRY(HcclCommInitRootInfo(job->size, &root, job->rank, &job->comm));
	TRY(aclrtCreateStream(&job->stream));
}

/* Zeroed device memory that all ranks reach, and a channel with @notifies notifies at each end to every other rank. */
static inline void job_connect(struct job *job, CommEngine engine, size_t bytes, uint32_t notifies)
{
	HcclChannelDesc descs[RANKS_MAX];
	ChannelHandle channels[RANKS_MAX];
	uint32_t count = 0, memory_count, link_count;
	HcclMemHandle handle;
	CommMem *memories;
	CommLink *links;
	char **tags;

	TRY(aclrtMalloc(&job->areas[job->rank], bytes, ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(aclrtMemset(job->areas[job->rank], bytes, 0, bytes));
	CommMem memory = { COMM_MEM_TYPE_DEVICE, job->areas[job->rank], bytes };
	TRY(HcclCommMemReg(job->comm, "example", &memory, &handle));
	TRY(HcclChannelDescInit(descs, RANKS_MAX));
	for (uint32_t peer = 0; peer < job->size; peer++) {
		if (peer == job->rank)
			continue;
		TRY(HcclRankGraphGetLinks(job->comm, 0, job->rank, peer, &links, &link_count));
		TRY(link_count == 0);
		descs[count].remoteRank = peer;
		descs[count].channelProtocol = links->linkAttr.linkProtocol;
		descs[count].localEndpoint = links->srcEndpointDesc;
		descs[count].remoteEndpoint = links->dstEndpointDesc;
		descs[count].notifyNum = notifies;
		descs[count].memHandles = &handle;
		descs[count++].memHandleNum = 1;
	}
	if (!count)
		return;
	/* waits for the calls of the others */
	TRY(HcclChannelAcquire(job->comm, engine, descs, count, channels));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t peer = descs[i].remoteRank;

		job->channels[peer] = channels[i];
		TRY(HcclChannelGetRemoteMems(job->comm, channels[i], &memory_count, &memories, &tags));
		TRY(memory_count != 1);
		job->areas[peer] = memories[0].addr;
	}
}

/* Nobody takes memory away that another rank still uses: all have come here before the first goes on. */
static inline void job_end(struct job *job)
{
	TRY(HcclBarrier(job->comm, job->stream));
	TRY(aclrtSynchronizeStream(job->stream));
	TRY(HcclCommDestroy(job->comm));
	TRY(aclrtFree(job->areas[job->rank]));
	TRY(aclrtDestroyStream(job->stream));
	TRY(aclFinalize());
}
