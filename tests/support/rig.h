/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks, streams and a communicator in plain memory of one process, driven by the executor alone: for tests of engine/ without daemon,
 * sockets or clients. Rank r has its own context and session with one segment of memory; several ranks may share a context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

#define RIG_RANKS_MAX 8u
#define RIG_STREAMS 2u
#define RIG_MEMORY (4u << 20)

struct rig_rank {
	struct view_session session;
	struct view_context *context;
	struct stream_ring *streams[RIG_STREAMS];
	unsigned char *memory;
	void *region;
	uint64_t segment, handle;
	uint64_t notifies; /* the same memory as one of notifies */
};

struct rig {
	uint32_t size;
	struct yard *yard;
	struct copy_table *copies;
	struct view_yard view;
	struct view_comm comm;
	struct view_context contexts[RIG_RANKS_MAX];
	struct rig_rank ranks[RIG_RANKS_MAX];
	struct engine *engine;
	uint32_t liars, type_mismatches, host_runs;
	/* room that the executor has asked for; `is_deaf`: it cannot ask */
	uint32_t rooms_asked, room_source, room_destination, room_pools;
	bool is_deaf;
	uint64_t shared_min, shared_chunk;	/* rig_share_copies() */
	bool lives_on;				/* no process of the rig has ended, whatever members' words say */
};

/* What one item of a test says; offsets are in the rank's memory. */
struct rig_item {
	enum item_kind kind;	/* ITEM_COPY: from offset `peer` */
	uint32_t peer;
	uint64_t offset, bytes;
	uint8_t type;
};

/* A task about the notify at @offset of @segment (0: the rank's `notifies`); @mode: enum notify_change or notify_compare. */
struct rig_notify {
	enum task_kind kind;
	uint8_t mode;
	bool clears;
	uint32_t timeout_ms;
	uint64_t segment, offset, number;
};

/* Offsets in the rank's memory, @from in @segment if that is not 0. */
struct rig_reduce {
	uint64_t to, from, bytes, segment, to_segment; /* of the source, of the destination; 0: the rank's own */
	uint8_t type;
	uint32_t op;
};

#define RIG_IMPORTS 200u	/* index of the first import in a session's segments */
#define RIG_NOTIFIES 300u
#define RIG_IMPORTED_NOTIFIES 400u

/* @shared: all ranks in the context of rank 0. */
struct rig *rig_new(uint32_t size, bool shared);
struct rig *rig_free(struct rig *rig);
/* Clients may drive, and help with copies of more than @min bytes, in chunks of @chunk. */
void rig_share_copies(struct rig *rig, uint64_t min, uint64_t chunk);
/* All pairs get rings as a daemon of release 0.3 has made them. */
void rig_make_first(struct rig *rig);
/*
 * From here on the executor asks for room: eager pools, wide rings. rig_answer() gives what it has asked for last, pools of @slots, and 0 refuses; then it looks
 * again. rig_give() gives it unasked.
 */
void rig_have_room(struct rig *rig);
void rig_give(struct rig *rig, uint32_t source, uint32_t destination, uint32_t slots);
void rig_answer(struct rig *rig, uint32_t slots);
/* A new executor in place of the old one, as after a crash: private state gone, contexts recovered. */
void rig_restart(struct rig *rig);
/* Overwrites what must be rebuilt from other words: the counters of pairs and the cursors of lanes. */
void rig_forget_counters(struct rig *rig);
/* Into the ring only; rig_submit() also tells the executor. */
void rig_put(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_item *items, uint32_t count, uint32_t timeout_ms);
void rig_submit(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_item *items, uint32_t count, uint32_t timeout_ms);
void rig_put_barrier(struct rig *rig, uint32_t rank, uint32_t stream);
void rig_submit_barrier(struct rig *rig, uint32_t rank, uint32_t stream);
/* A task of engine/meeting.c about the place at @offset of the rank's memory; put: into the ring only. */
void rig_put_meeting(struct rig *rig, uint32_t rank, uint32_t stream, enum task_kind kind, uint64_t offset, uint64_t number);
void rig_submit_meeting(struct rig *rig, uint32_t rank, uint32_t stream, enum task_kind kind, uint64_t offset, uint64_t number);
/* The memory of @owner in the session of @rank: the segment's id. */
uint64_t rig_import(struct rig *rig, uint32_t rank, uint32_t owner);
uint64_t rig_import_notifies(struct rig *rig, uint32_t rank, uint32_t owner);
void rig_put_notify(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_notify *notify);
void rig_submit_notify(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_notify *notify);
void rig_submit_reduce(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_reduce *reduce);
/* What the process does: runs one host function that is due, and tells. False: none is. */
bool rig_host(struct rig *rig);
/* Tells the executor as a client would (rule R5). */
void rig_notify(struct rig *rig, struct view_context *context);
/* Rounds over the set bits and slices until nothing moves. Returns the rounds. */
uint32_t rig_run(struct rig *rig);
bool rig_is_done(const struct rig *rig, uint32_t rank, uint32_t stream);
struct pair_ring *rig_pair(struct rig *rig, uint32_t source, uint32_t destination);
