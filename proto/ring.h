/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams in shared memory. A session region holds HCCLD_STREAMS_PER_SESSION places at fixed offsets; a place is backed while its stream
 * exists. A stream is a ring of 64-byte slots. A task is one header slot and the slots of its items behind it (or a side buffer, a
 * segment that holds only items). Positions count slots, never wrap (64 bit) and are taken modulo the ring's size.
 *
 * Who writes what. Client threads: slots, then `tail` (release). Executor: what is marked [x], one owner at a time (yard.h).
 * Invariants:
 *   I1  completed <= tail; both only grow; a slot may be written again only when `completed` has passed it.
 *   I2  only the task at `completed` (the head) runs; `completed` += task.slot_count is its only commit.
 *   I3  item.number == 0: not issued; once set it is never changed. The submitter zeroes all [x] fields.
 *   I4  fault is written before fault_count (release), only while fault_seen == fault_count.
 *   I5  stopped and dropped are stored before the `completed` that passes what they are about: who sees that a host function is due
 *       sees whether it may still run.
 * The executor copies what it reads and judges the copy: a client can write everything here at any time.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "proto/limits.h"

#define STREAM_MAGIC 0x5354524du	/* "STRM" */
#define STREAM_VERSION 1u

enum task_kind {
	TASK_BATCH = 1,		/* items: send, receive, copy, fill */
	TASK_BARRIER = 2,	/* of the communicator `rank` belongs to; no items */
	/* feature `tasks`; no rank. TASK_HOST has no item, the others one, an ITEM_PLACE. Why they survive a restart: engine/meeting.c */
	TASK_RECORD = 3,	/* the event at the place gets the version `number` (proto/event.h) */
	TASK_WAIT_EVENT = 4,	/* until the event at the place has the version `number` */
	TASK_HOST = 5,		/* a function of the process, which keeps it itself; over when `host_done` has passed it */
	TASK_WRITE = 6,		/* the 64 bit word at the place becomes `number` */
	TASK_WAIT_VALUE = 7,	/* until the word at the place compares with `number` as `data_type` says (enum comparison) */
	/* feature `resources`; no rank, but a time-out. May not run twice: `number` of the task is what they are about to store (proto/notify.h) */
	TASK_NOTIFY_RECORD = 8,	/* the notify at the ITEM_PLACE changes: `data_type` is enum notify_change, `number` its operand (32 bit) */
	/* until the notify at the ITEM_PLACE compares: `data_type` is enum notify_compare, `number` operand (low) and mask (high 32 bit);
	 * with `peer` 1 its value becomes 0 in the same step */
	TASK_NOTIFY_WAIT = 9,
	TASK_REDUCE = 10,	/* two items: ITEM_REDUCE, ITEM_SOURCE */
};

#define TASK_NO_BLOCK 1u	/* flag of TASK_HOST: the stream goes on as soon as the function is due */
#define TASK_KERNEL 2u		/* flag of TASK_HOST: it is a host kernel, of `epoch` blocks; for tools */

enum comparison {
	COMPARE_GREATER_EQUAL = 0,	/* word - number, as a signed number, is not negative */
	COMPARE_EQUAL = 1,
	COMPARE_AND = 2,		/* word & number is not 0 */
	COMPARE_NOR = 3,		/* ~(word | number) is not 0 */
};

struct task {
	uint8_t kind;
	uint8_t flags;
	uint16_t slot_count;		/* this slot and the item slots in the ring */
	uint32_t item_count;
	uint64_t rank;			/* handle of (communicator, rank) in this session; 0: none (copy, fill) */
	uint64_t side;			/* segment with the items; 0: they follow this slot */
	uint32_t timeout_ms;		/* from the moment it becomes the head; 0: never */
	uint32_t first_lane;		/* index of the head item of the first lane, LANE_END if none */
	uint64_t submitted_ns;		/* CLOCK_MONOTONIC */
	_Atomic uint64_t number;	/* [x] barrier: its number, 0 = not issued. Host function: 1 = the process was told */
	_Atomic uint64_t outcome;	/* [x] barrier, waits: 1 = given up, the fault is recorded */
	uint32_t epoch;			/* of the rank (region.h) when it was submitted: another one by now, and the task fails as suspended */
	uint32_t thread;		/* that submitted it, for texts */
};
static_assert(sizeof(struct task) == 64, "one slot");

enum item_kind {
	ITEM_SEND = 1,
	ITEM_RECEIVE = 2,
	ITEM_COPY = 3,		/* to (segment, offset) from the place in the following item slot (ITEM_SOURCE) */
	ITEM_SOURCE = 4,
	ITEM_FILL = 5,		/* `peer` holds the byte value */
	ITEM_PLACE = 6,		/* of an event, a word, a notify: segment, offset (a multiple of 8); `number` is the client's */
	ITEM_REDUCE = 7,	/* (segment, offset) = (segment, offset) op source, elements of `data_type`; `peer` is HcclReduceOp */
};

#define LANE_END 0xffffffffu

/*
 * A lane is the list of items of one task with the same peer and direction, in list order, linked through `next` (indices grow). Lanes
 * are linked through `next_lane` of their head items (indices grow too). `issue` and `done` are the lane's cursors, in its head item:
 * the first item without number, the first item not finished. They may lag behind the facts (number, the pair's words), never lead.
 */
struct item {
	uint8_t kind;
	uint8_t data_type;		/* HcclDataType */
	_Atomic uint16_t state;		/* [x] ITEM_FAILED */
	uint32_t peer;			/* rank in the communicator */
	uint64_t bytes;
	uint64_t segment;		/* id within the owning session */
	uint64_t offset;
	_Atomic uint64_t number;	/* [x] pair_seq; 0 = not issued */
	uint32_t next;
	uint32_t next_lane;
	_Atomic uint32_t issue;		/* [x] head item of a lane only; the submitter sets both to the head's own index */
	_Atomic uint32_t done;		/* [x] */
	uint32_t list_index;		/* in the program's list: for texts */
	uint32_t reserved;
};
static_assert(sizeof(struct item) == 64, "one slot");

#define ITEM_FAILED 1u

/* Why something failed, in fixed words; readers make the text (status.h: fault_text). */
struct fault {
	uint32_t cause;			/* enum cause */
	uint32_t rank;			/* who reports */
	uint32_t peer;			/* the other end */
	uint32_t item;			/* list_index */
	int32_t peer_pid;
	int32_t peer_exit;		/* wait status; -1 unknown */
	uint8_t direction;		/* enum item_kind: of the item at `rank`; 0: a barrier */
	/* direction ITEM_PLACE, with CAUSE_EXEC_TIMEOUT: local_type is 1 + enum notify_compare, local_bytes what the value is compared with
	 * (mask << 32 | operand), remote_bytes the value; 0: not known */
	uint8_t local_type, remote_type;
	uint8_t loss;			/* enum loss, with CAUSE_PEER_MEMORY */
	uint8_t was_complete;		/* 1: a send whose stream had gone on when its receiver found this */
	uint8_t was_earlier;		/* 1: with CAUSE_MISMATCH, of an operation of the pair before this one: it stays failed */
	uint8_t reserved[2];
	uint64_t local_bytes, remote_bytes;
	uint64_t number;		/* of the pair */
	uint64_t waited_ms;		/* a wait for a notify or an event: the limit that was asked for */
	uint64_t comm;			/* id of the communicator */
	/* what had happened to the peer itself, when it left or gave up because of that; 0: nothing known */
	uint32_t first_cause;
	uint32_t first_rank;
	int32_t first_pid, first_exit;
};
static_assert(sizeof(struct fault) == 88, "layout");

union stream_slot {
	struct task task;
	struct item item;
};

struct stream_ring {
	uint32_t magic, version;
	uint32_t slot_count;
	uint32_t context;		/* index in the yard */
	/* client's line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t tail;
	_Atomic uint32_t fault_seen;	/* = fault_count when the fault has been reported to the program */
	_Atomic uint32_t stop_on_failure;	/* 1: nothing runs after an error */
	_Atomic uint64_t host_done;	/* end position of the newest host function that has returned; grows */
	_Atomic uint64_t host_begun;	/* of the newest that was called: for tools */
	/* executor's lines [x] */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t completed;
	_Atomic uint64_t head_since_ns;	/* when the task at `head_position` became the head */
	_Atomic uint64_t head_position;
	_Atomic uint32_t fault_count;
	_Atomic uint32_t fault_thread;	/* task.thread of the task that failed */
	_Atomic uint64_t fault_position;	/* of that task */
	_Atomic uint64_t stopped;	/* with stop_on_failure: 1 + position of the task that failed; tasks from here on are passed over */
	_Atomic uint64_t dropped;	/* tasks before this position were taken out of the ring (AbortTasks) */
	_Alignas(HCCLD_CACHE_LINE) struct fault fault;
	_Alignas(HCCLD_CACHE_LINE) union stream_slot slots[HCCLD_STREAM_SLOTS];
};
static_assert(sizeof(struct stream_ring) == (5 + HCCLD_STREAM_SLOTS) * 64, "no holes");

/*
 * Behind each ring, in its stride. Feature `resources`. [x] What a reduction needs to survive its executor at any store (engine/reduce.c,
 * tests/model/tasks.py): the result of one slice is here, and said to be, before the slice is written; its size is part of the contract.
 */
#define REDUCE_SLICE 3584u	/* bytes */

struct reduce_scratch {
	_Atomic uint64_t position;	/* 1 + that of the task that the rest is about; 0: none yet */
	_Atomic uint64_t step;		/* 2 * slices that are done, + 1: `result` holds that of the next one */
	uint64_t reserved[6];
	unsigned char result[REDUCE_SLICE];
};
static_assert(sizeof(struct reduce_scratch) == 64 + REDUCE_SLICE, "no holes");

#define SESSION_MAGIC 0x53455353u	/* "SESS" */
#define SESSION_VERSION 1u
#define SESSION_STREAM_OFFSET 4096u
#define SESSION_STREAM_STRIDE 69632u	/* 17 pages */
static_assert(sizeof(struct stream_ring) + sizeof(struct reduce_scratch) <= SESSION_STREAM_STRIDE, "fits");
#define SESSION_REGION_SIZE (SESSION_STREAM_OFFSET + (uint64_t)HCCLD_STREAMS_PER_SESSION * SESSION_STREAM_STRIDE)

struct session_region {
	uint32_t magic, version;
	uint32_t stream_count;		/* places */
	/* written by the control thread: grows when memory that this process has imported is gone (ListLost tells which) */
	_Atomic uint32_t lost_imports;
};
static_assert(sizeof(struct session_region) == 16, "layout");

/* In the same page. Feature `tasks`: host functions that have become due. */
#define SESSION_HOST_OFFSET 64u

struct session_host {
	_Atomic uint32_t news;		/* [x] futex word, grows */
	_Atomic uint32_t sleepers;	/* threads that sleep on it or are about to; written by the client */
};

static inline struct session_host *session_host(void *region)
{
	return (struct session_host *)((char *)region + SESSION_HOST_OFFSET);
}

static inline struct stream_ring *session_stream(void *region, uint32_t index)
{
	return (struct stream_ring *)((char *)region + SESSION_STREAM_OFFSET + (uint64_t)index * SESSION_STREAM_STRIDE);
}

static inline struct reduce_scratch *stream_scratch(struct stream_ring *ring)
{
	return (struct reduce_scratch *)(ring + 1);
}
