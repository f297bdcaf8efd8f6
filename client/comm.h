/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators of this process: one struct hccld_comm is one rank of one communicator. Programs hold handles, which are looked up and
 * never followed, so that a wrong or destroyed one is answered instead of crashing.
 *
 * Threads: everything here may be called from any thread. hccld_comm_get() pins a communicator; a destroyed one goes away with its last
 * pin, so that HcclCommDestroy never waits for a call that is stuck.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/session.h"
#include "hccl/hccl_types.h"
#include "proto/digest.h"
#include "proto/limits.h"
#include "proto/region.h"

struct hccld_drive_rank;
struct hccld_rank_graph;

/* Settings of one communicator after HcclCommConfig and the environment. */
struct hccld_comm_config {
	char name[HCCLD_COMM_NAME_MAX];	/* empty: that of the root info */
	char udi[HCCLD_UDI_MAX];
	uint32_t timeout_ms;		/* of an operation; 0: never */
	struct comm_settings settings;	/* shown by hcclctl comms */
	uint64_t job;			/* hcclJobID */
};

struct hccld_channel;

struct hccld_comm {
	/* generation << 32 | alive << 31 | pins; see comm.c */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t word;
	_Alignas(HCCLD_CACHE_LINE) uint32_t rank;
	uint32_t size;
	uint32_t timeout_ms;
	bool allow_duplicate_items;
	_Atomic bool async_reported;	/* the asynchronous error has been returned by a call */
	_Atomic bool is_acquired;	/* HcommAcquireComm */
	_Atomic uint32_t call_failed;	/* enum cause: a call by a channel whose other end has gone; none again after HcclCommResume */
	_Atomic uint64_t *dead_known;	/* bit per rank: it was dead when HcclCommResume was called last, and the program has been told */
	bool is_taken, is_table;	/* `table_lock`: the place is in use; of a rank table */
	unsigned char meeting[DIGEST_BYTES];	/* `table_lock`: ranks of one communicator have the same */
	_Atomic uint64_t request;	/* while it is created: of the join */
	struct comm_settings settings;
	void *handle;
	uint64_t task_rank;		/* the daemon's handle of (communicator, rank) */
	uint64_t context;		/* id: the context may be gone before the communicator */
	int32_t device;			/* as the program numbers it */
	uint64_t comm;			/* the daemon's id of the communicator */
	const struct comm_region *region;	/* read-only */
	uint64_t region_size;
	_Atomic uint64_t *open[2];	/* bit per peer: pairs that exist; [0] to the peer, [1] from it */
	pthread_mutex_t opening;	/* held while pairs are made */
	pthread_mutex_t making;		/* held while one of the following is made */
	_Atomic(void *) buffer;		/* HCCL buffer, comm_buffer.h; NULL: not made yet */
	uint64_t buffer_bytes, buffer_segment;
	void *engine_contexts;		/* engine_context.h */
	_Atomic(struct hccld_rank_graph *) graph;	/* rank_graph.h; NULL: not made yet */
	struct hccld_channel *channels;	/* channel.c's lock; newest first */
	bool channels_ended;		/* channel.c's lock: none may be added */
	struct hccld_drive_rank *drive;	/* drive.h; NULL: the engine does it all */
	struct hccld_context *on;	/* what `context` is the id of, while that is open */
	struct hccld_context *held;	/* context that HcclCommInitAll opened for this rank, or NULL */
	char name[HCCLD_COMM_NAME_MAX];
};

/* What HcclGetRootInfo hands out. The rest of the 4108 bytes is zero. */
#define HCCLD_ROOT_INFO_MAGIC 0x52444c43484f4f54ull
#define HCCLD_ROOT_INFO_VERSION 1u
struct hccld_root_info {
	uint64_t magic;
	uint32_t version;
	uint32_t size;			/* of this struct, in bytes */
	uint64_t key;
	uint32_t secret_size;		/* bytes used of `secret` */
	uint32_t name_size;		/* bytes of `name` before its NUL */
	unsigned char secret[HCCLD_SECRET_BYTES];
	char name[HCCLD_COMM_NAME_MAX];
};
static_assert(sizeof(struct hccld_root_info) <= sizeof(HcclRootInfo), "fits");

/* ---- comm_config.c ---- */

/* The environment's settings alone. */
int hccld_comm_config_default(struct hccld_comm_config *ret_config);
/* Checks @given, of any version and size, and lays it over the environment's settings. -EINVAL with text. */
int hccld_comm_config_read(const HcclCommConfig *given, struct hccld_comm_config *ret_config);

/* ---- comm.c ---- */

int hccld_root_info_new(HcclRootInfo *ret_root);

/* How ranks meet that have no root info. */
struct hccld_meeting {
	unsigned char digest[DIGEST_BYTES];	/* of a rank table and the job */
	uint64_t parent;		/* a part: the daemon's handle of (communicator, rank), 0: a rank table */
	uint64_t part;			/* subCommId */
	const uint32_t *members;	/* ranks in the whole, by rank in the part */
};

struct hccld_comm_join {
	const HcclRootInfo *root;	/* or */
	const struct hccld_meeting *meeting;
	const char *name;		/* without a root info, if the configuration has none */
	uint32_t rank, size;
	struct hccld_context *context;
	uint64_t context_id;		/* when the call began: the device may be reset before all have joined */
	bool hold_context;		/* the communicator takes over the caller's reference to it on success */
	struct hccld_comm_config config;
	void **ret_handle;		/* written before all have joined, so that HcclCommDestroy can end that; as before if it fails */
};

/* Joins @count ranks at once and returns when each is in its communicator; else none is. Blocks up to HCCL_CONNECT_TIMEOUT. */
int hccld_comm_join(struct hccld_comm_join *joins, uint32_t count);
/* HcclCommDestroy; also of one whose creation another thread waits for. -EBADF: unknown handle. */
int hccld_comm_leave(void *handle);

/* Pins the communicator of a handle until hccld_comm_put(). -EBADF, -ECHILD; text set. */
int hccld_comm_get(void *handle, struct hccld_comm **ret_comm);
void hccld_comm_put(struct hccld_comm *comm);
/* Of one that is pinned: nobody leaves it yet. */
bool hccld_comm_is_alive(const struct hccld_comm *comm);
/* For CLEANUP locals; NULL is fine. */
static inline void hccld_comm_putp(struct hccld_comm **comm)
{
	if (*comm)
		hccld_comm_put(*comm);
	*comm = NULL;
}

/* The handle of the communicator that is called @name, of the current device if there are several. -EINVAL. */
int hccld_comm_by_name(const char *name, void **ret_handle);
/* Has this process a communicator of a rank table on the device, or is it being created? */
bool hccld_comm_has_table(int32_t device);
/* -EBUSY while the rank is suspended; *ret_epoch is for the task (struct task). */
int hccld_comm_check_running(const struct hccld_comm *comm, uint32_t *ret_epoch);
/* HcclCommSuspend, HcclCommResume. */
int hccld_comm_set_suspended(struct hccld_comm *comm, bool suspended);

/* The cause of the rank's asynchronous error, CAUSE_NONE if there is none. @ret_fault may be NULL. */
enum cause hccld_comm_async(const struct hccld_comm *comm, struct fault *ret_fault);
/*
 * Its HcclResult: what HcclGetCommAsyncError reports. A text is set if a rank has died and nothing that was queued has failed; it goes with
 * HcclCommResume, or the next call that finds nothing.
 */
int hccld_comm_async_result(const struct hccld_comm *comm);
/*
 * An asynchronous error that no stream reports: a send that was complete before its receiver found that the byte counts differ. Returned
 * once, by the first operator called after it, with its text.
 */
int hccld_comm_check_async(struct hccld_comm *comm);

static inline bool hccld_comm_is_open(const struct hccld_comm *comm, unsigned int direction, uint32_t peer)
{
	return atomic_load_explicit(&comm->open[direction][peer / 64], memory_order_acquire) >> peer % 64 & 1;
}

/* Makes the pairs that do not exist yet. @send_to and @receive_from may name open ones. Waits for other threads that do the same. */
int hccld_comm_open_pairs(struct hccld_comm *comm, const uint32_t *send_to, uint32_t send_count, const uint32_t *receive_from,
			  uint32_t receive_count);

/* Is its device still in use as it was when the communicator was made? -EBADF: it was reset; text set. */
int hccld_comm_check_context(const struct hccld_comm *comm);
/* The stream of a handle, if it is of the communicator's device. -EBADF, -EINVAL; text set, with the name of the operator. */
int hccld_comm_stream(const struct hccld_comm *comm, const char *operator_name, void *handle, struct hccld_stream **ret_stream);
/* Queues a barrier on the stream. */
int hccld_comm_barrier(void *handle, void *stream);
