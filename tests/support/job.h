/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs under test in a test case: a daemon of their own, processes, ranks in threads. The client library keeps its descriptors until
 * the process ends, so what uses it runs in a child of the case.
 */
#pragma once

#include <stdint.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "tests/support/test.h"

/* Arguments of the daemons of this case, NULL-terminated; none unless it is called. */
void job_set_options(const char *const *options);
/* Starts a daemon, runs @body in a child process, stops the daemon. Fails the case if one of them does not end well. */
void job_run(void (*body)(void));
/* The same with an environment variable set for both. */
void job_run_with(const char *name, const char *value, void (*body)(void));
/* Runs body(0) .. body(count - 1) in processes of their own, with a daemon. Fails the case unless all exit with 0 or as body says. */
void job_run_processes(uint32_t count, void (*body)(uint32_t index, HcclRootInfo *shared));
/* In body of job_run_processes: this process is going to be killed, which is no failure. */
void job_expect_kill(void);
/* Blocks until all processes of the job have come here. At most 8 times. */
void job_meet(void);

struct job_rank {
	uint32_t rank, size;
	int32_t device;
	HcclComm comm;
	aclrtStream stream;
	void *data;
};

/*
 * Runs @body as each rank of a communicator, each in a thread with a current device (rank % device_count), a communicator and a stream,
 * which are taken down afterwards.
 */
void job_ranks(uint32_t size, uint32_t device_count, void (*body)(struct job_rank *rank), void *data);
/* The ranks of one process of job_run_processes: joins as @rank, or checks that it can. */
struct job_rank job_join(const HcclRootInfo *root, uint32_t rank, uint32_t size, int32_t device);
void job_leave(struct job_rank *rank);
/* A communicator that has no rank but this one, on the current device. */
HcclComm job_alone(void);

/* Device memory of the current device, filled with @value. Freed with the process. */
void *job_memory(uint64_t size, int value);
/* Bytes of the current device that nobody has. */
size_t job_free_memory(void);

/* The call must give @result; @part must be in the text of the error, which is taken. */
void job_check(const char *file, int line, const char *call, int got, int result, const char *part);
#define check_ok(call) job_check(__FILE__, __LINE__, #call, (int)(call), 0, NULL)
#define check_fails(call, result, part) job_check(__FILE__, __LINE__, #call, (int)(call), (int)(result), part)

static inline HcclSendRecvItem job_send(uint32_t peer, void *buffer, uint64_t count)
{
	return (HcclSendRecvItem){ HCCL_SEND, buffer, count, HCCL_DATA_TYPE_INT8, peer };
}

static inline HcclSendRecvItem job_receive(uint32_t peer, void *buffer, uint64_t count)
{
	return (HcclSendRecvItem){ HCCL_RECV, buffer, count, HCCL_DATA_TYPE_INT8, peer };
}
