/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of this process: what it has of a peer rank's memory and notifies. Programs hold handles, which are looked up and never followed.
 * What a channel has brought is mapped for load and store if its protocol is one of memory (UB_MEM, HCCS, PCIE, SIO); otherwise its
 * addresses are reserved and nothing is behind them but for tasks. Either way tasks name it by hccld_channel_remote().
 *
 * Threads: everything here may be called from any thread. hccld_channel_get() pins a channel and with it its communicator; one that was
 * destroyed goes with its last pin.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/buffer.h"
#include "client/share.h"
#include "hcomm/hcomm_res_defs.h"
#include "proto/limits.h"

struct hccld_comm;
struct hccld_context;

/* Part of a peer's memory. */
struct hccld_channel_memory {
	void *start;		/* where this process has it */
	uint64_t bytes;
	uint64_t segment;	/* an import; `start` is its offset 0 */
	void *base;		/* of the mapping, whole pages; NULL: none */
	uint64_t size;
	enum hccld_memory memory;
	_Atomic bool is_lost;	/* its owner has freed it, left or ended */
};

/* All but the words are written before the handle is given out. */
struct hccld_channel {
	/* generation << 32 | alive << 31 | pins; see channel.c */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t word;
	_Alignas(HCCLD_CACHE_LINE) uint64_t handle;
	struct hccld_comm *comm;	/* pinned */
	struct hccld_channel *next;	/* of the communicator */
	uint64_t id;			/* the daemon's */
	uint32_t peer, engine, protocol;
	_Atomic bool is_told; /* the program has got the handle */
	bool is_mapped;
	uint64_t notify_segment, peer_notify_segment;	/* an import */
	uint64_t peer_notify_offset;
	uint32_t first_notify, notify_count, peer_notify_count;
	_Atomic bool is_lost;		/* the peer's notifies or buffer are: it has closed its end, left or ended */
	struct hccld_channel_memory *memories;	/* the buffer, then user memory in the order in which the peer has offered it */
	uint32_t memory_count;		/* with the buffer */
	CommMem *mems;			/* user memory, as the program sees it */
	char **tags;
};

/* A place that a task can name. */
struct hccld_channel_place {
	uint64_t segment, offset;
};

/* ---- for those who use a channel ---- */

/* Pins it. -EFAULT: @handle is 0; -ENOENT: unknown; -ECHILD; text set, with the name of the @function. */
int hccld_channel_get(const char *function, uint64_t handle, struct hccld_channel **ret_channel);
void hccld_channel_put(struct hccld_channel *channel);
/* For CLEANUP locals; NULL is fine. */
static inline void hccld_channel_putp(struct hccld_channel **channel)
{
	if (*channel)
		hccld_channel_put(*channel);
	*channel = NULL;
}

/* Are @bytes at @address in one piece of what the channel has brought? */
bool hccld_channel_contains(const struct hccld_channel *channel, const void *address, uint64_t bytes);
/* The place of such an address. -EINVAL: it is not; -ESTALE: that memory is gone; text set. */
int hccld_channel_remote(const struct hccld_channel *channel, const char *function, const void *address, uint64_t bytes,
			 struct hccld_channel_place *ret_place);
/* Notify @index of this end, which the peer records and this rank waits for; of the peer's end. -EINVAL: there are fewer; text set. */
int hccld_channel_own_notify(const struct hccld_channel *channel, const char *function, uint32_t index, struct hccld_channel_place *ret_place);
int hccld_channel_peer_notify(const struct hccld_channel *channel, const char *function, uint32_t index,
			      struct hccld_channel_place *ret_place);
/* 0 while the peer is there. -ECONNRESET: its process has ended; -ESHUTDOWN: it has left or closed its end; text set, names rank and pid. */
int hccld_channel_check(const struct hccld_channel *channel, const char *function);

/* "notify 1 of the channel to rank 2 of communicator x", for texts, of the own notify with @id of a device. False: it is no channel's. */
bool hccld_channel_name_notify(const struct hccld_context *context, uint64_t id, char *buffer, size_t size);
/* The daemon's handle of the rank whose channel has it; 0: it is no channel's. */
uint64_t hccld_channel_rank_of_notify(const struct hccld_context *context, uint64_t id);

/* ---- making and ending them ---- */

/* With the comm pinned. The channel of the communicator for that engine, peer and protocol; 0: there is none here. */
uint64_t hccld_channel_find(const struct hccld_comm *comm, uint32_t engine, uint32_t peer, uint32_t protocol);
/*
 * A place in the table that nobody sees yet. -EDQUOT; text set. hccld_channel_publish() makes the handle good, hccld_channel_drop() gives
 * the place back.
 */
int hccld_channel_new(struct hccld_comm *comm, struct hccld_channel **ret_channel);
/* -ENXIO: the device was reset, or the communicator destroyed; text set. */
int hccld_channel_publish(struct hccld_channel *channel);
void hccld_channel_drop(struct hccld_channel *channel);
/* Ends the channel of @comm with that handle. -ENOENT. */
int hccld_channel_destroy(const struct hccld_comm *comm, uint64_t handle);

/*
 * The communicator, or all of its context, is about to go: before the daemon hears of it. Nobody of this process reaches memory of peers by
 * its channels any more, and there are no new ones.
 */
void hccld_channels_revoke(struct hccld_comm *comm);
void hccld_channels_revoke_context(const struct hccld_context *context);
/* It is gone: the daemon has taken its ends away itself. */
void hccld_channels_forget(struct hccld_comm *comm);
void hccld_channels_forget_context(const struct hccld_context *context);

/* Do these bytes reach addresses that stand for memory behind a network? Nothing is mapped there. */
bool hccld_channels_network_at(const void *address, uint64_t bytes);

/* ---- memory that is gone (share.h) ---- */

void hccld_channels_lose(uint64_t segment);
/*
 * Whose mapped memory of a channel is at @address; for a signal handler of a program that is about to end: false also if it cannot be told
 * now.
 */
struct hccld_channel_owner {
	uint32_t peer;
	const char *tag;	/* of registered memory; NULL: the HCCL buffer */
	bool is_lost;
	struct hccld_lost lost;
};
bool hccld_channel_look(const void *address, struct hccld_channel_owner *ret_owner);
/*
 * The error of @function, which was given lost memory of a channel: text set, names rank, pid, and what has happened to them. -ESTALE: freed;
 * else as hccld_channel_check(). 0: it is none.
 */
int hccld_channels_lost_error(const char *function, const void *address);
