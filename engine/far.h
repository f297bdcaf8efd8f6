/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs whose ends are on two nodes. Each node has the ring; what the other node's executor would do in it, the far executor does: on the
 * source's node it reads offers as the receiver would, on the destination's it writes them as the sender would. Between the two go frames, which
 * arrive once and in order. For the executor's thread.
 *
 *   FAR_OFFER     source -> destination: offer `number`, with its payload if that is small
 *   FAR_PULL      destination -> source: the payload of offer `number`, which has a place now
 *   FAR_DATA      source -> destination: a part of it
 *   FAR_END       source -> destination: that was all, and the source was good until then
 *   FAR_RECEIVED  destination -> source: receives up to `number` are done
 *   FAR_FAIL      both ways: the pair has failed from `number` on; the payload is a struct fault
 *   FAR_BARRIER   rank `source` has entered so many barriers
 *   FAR_MEMBER    rank `source` has left or is dead: `number` is its word
 *   FAR_GONE      the communicator has no ranks at that node any more: what was not sent never will be
 *
 * Invariants, of one pair; s: on the source's node, d: on the destination's:
 *
 *   F1  received(s) <= received(d) <= tail(d) <= taken(s) <= tail(s), and taken(s) - received(s) <= HCCLD_PAIR_SLOTS: so offer number `taken` has a free
 *       slot at d.
 *   F2  received(s) is stored for FAR_RECEIVED only: until then the source's slot, pool and memory have what a FAR_PULL may ask for.
 *   F3  What d cannot keep (no room in a pool) it forgets, and pulls when the receive is there: an offer never waits for room, so no pair waits for
 *       another one's.
 *   F4  d commits a pulled receive at FAR_END. s sends that after it has found, behind its last read of the source, abort word, member, segment,
 *       `revoked` and `failed` clear (P4). What was taken away in the middle is FAR_FAIL.
 *       A receive that is pulled again, behind a new connection, is another attempt; what comes of an earlier one is passed over.
 *   F5  s stops what it sends of an offer before its memory goes: far_retire().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/view.h"
#include "proto/far.h"

struct engine;

/* The far executor's own, of a pair. All zeros at first. */
struct far_pair {
	uint64_t taken;		/* s: offers up to here were sent */
	uint64_t told;		/* d: receives up to here were told */
	uint64_t told_failed;	/* the number of the failure that both nodes know; 0: none */
	bool wants_pull;	/* d: the other node has no room for it yet */
	uint32_t attempts;	/* d: of pulls */
	/* s: what is being pulled */
	bool pushes, is_queued;
	uint64_t push_number, push_at, push_bytes, push_attempt;
	uint32_t source, destination;
	struct view_comm *comm;
	struct far_pair *next;	/* among those that push */
};

/* The same of a rank. */
struct far_rank {
	uint64_t told_barriers; /* here: as the other nodes know */
	uint32_t word;		/* here: it goes, and they are to know */
	int32_t exit;
};

/* Of a communicator with ranks on other nodes. */
struct view_far {
	uint64_t wire;		/* its name between nodes */
	struct view_comm *comm;
	void **nodes;		/* [size] the node of a rank, as engine_host.far_send knows it; NULL: this one */
	void **each;		/* [node_count] the same, once */
	uint32_t node_count;
	struct far_pair *pairs;	/* [size * size] */
	struct far_rank *ranks;	/* [size] */
	struct view_far *next, *next_wire; /* of the yard, and of all; the engine's thread */
};

/*
 * Rank @rank, which is here, may have offered, received or failed something: tells the other nodes. To be called when its executor rings one of
 * another node, and when a node has room again. False: some of it is left, as a node has no room.
 */
bool far_look(struct engine *engine, struct view_comm *comm, uint32_t rank);
/* A frame of @node. -EPROTO: it cannot be honest. */
int far_take(struct engine *engine, struct view_comm *comm, const void *node, const struct far_frame *frame, const void *payload, size_t size);
/*
 * The same for FAR_DATA whose payload comes in pieces: where it goes, until far_placed() or engine_host.far_forget(); NULL: nowhere. far_missed():
 * there is no memory.
 */
void *far_place(struct view_comm *comm, const void *node, const struct far_frame *frame, size_t size);
int far_placed(struct view_comm *comm, const void *node, const struct far_frame *frame, size_t size);
void far_missed(struct view_comm *comm, const void *node, const struct far_frame *frame);
/* There is a new connection to @node: what was on its way is asked for again. */
void far_again(struct engine *engine, const void *node);
/* @context (is_far) is rung: ranks of its yard have done something for other nodes. True: something was sent. */
bool far_context_look(struct engine *engine, struct view_context *context);
/* Rank @rank, which is here, goes: the other nodes hear of it behind what it has sent. Its word is stored, and engine_rank_detach() was. */
void far_leave(struct engine *engine, struct view_comm *comm, uint32_t rank, uint32_t word, int32_t exit);
/* The last rank here has gone, and the communicator goes. */
void far_go(struct engine *engine, struct view_comm *comm);
/* @node is lost: its ranks are dead. */
void far_lose(struct engine *engine, struct view_comm *comm, const void *node);
/* Sends more of what is pulled, about @bytes. False: there is nothing, or no node has room. */
bool far_push(struct engine *engine, uint64_t bytes);
/* F5, before memory or ranks of @session go: nothing of it is read from the return on; their words are stored. */
void far_retire(struct engine *engine, struct view_session *session);
/* The receive that runs (view_pair.transfer) has its place: asks for what it is to have. */
void far_pull(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination);
