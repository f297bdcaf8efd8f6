/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of channels. As with communicators (comm.c) a place is never given back, so looking at it is always safe:
 *   generation << 32 | ALIVE | pins
 * Whoever takes the last pin of a channel that is not ALIVE frees what it holds. The creator has a pin of its own until it is published.
 * `table_lock` guards the free places and the lists of communicators; it is never held during a request.
 */
#include "client/channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/channel_request.h"
#include "client/comm.h"
#include "client/device.h"
#include "client/error.h"
#include "client/revoke.h"
#include "client/share.h"
#include "client/table.h"
#include "proto/channel.h"
#include "proto/notify.h"

#define ALIVE (1ull << 31)
#define PINS (ALIVE - 1)
#define HANDLE_MARK 0x4348ull /* top 16 bits */
#define GENERATION_MASK 0xffffffffull
#define NO_PLACE 0xffffffffu

static struct hccld_channel channels[HCCLD_CHANNELS_PER_SESSION] HCCLD_TABLE;
static uint32_t next_free[HCCLD_CHANNELS_PER_SESSION] HCCLD_TABLE;
static uint32_t first_free = NO_PLACE, used_count; /* places from used_count on were never used */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t network_count; /* published, and not mapped */

/* ---- the table ---- */

int hccld_channel_get(const char *function, uint64_t handle, struct hccld_channel **ret_channel)
{
	const uint64_t generation = handle >> 16 & GENERATION_MASK;
	const uint32_t index = handle & 0xffff;
	struct hccld_channel *channel;
	uint64_t word;
	int r = hccld_session_check_fork();

	if (r < 0)
		return r;
	if (!handle)
		return hccld_error(CAUSE_NULL, "%s: channel is 0", function);
	channel = handle >> 48 == HANDLE_MARK && index < HCCLD_CHANNELS_PER_SESSION ? &channels[index] : NULL;
	word = channel ? atomic_load_explicit(&channel->word, memory_order_relaxed) : 0;
	do {
		if (!channel || word >> 32 != generation || !(word & ALIVE))
			return hccld_error(CAUSE_NOT_FOUND,
					   "%s: channel is %#llx: that is no channel of this process, or it was destroyed, or its communicator was",
					   function, (unsigned long long)handle);
		/* acquire: the fields are as they were when ALIVE was set */
	} while (!atomic_compare_exchange_weak_explicit(&channel->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	*ret_channel = channel;
	return 0;
}

static void memory_revoke(const struct hccld_channel *channel, const struct hccld_channel_memory *memory)
{
	if (!memory->base)
		return;
	hccld_buffer_remove(memory->start);
	if (channel->is_mapped)
		hccld_revoke(memory->base, memory->size, memory->memory == HCCLD_MEMORY_DEVICE);
}

/*
 * Nobody of this process reaches the peer's memory by the channel any more: calls do not find it, host kernels find zeros.
 *
 * The order at the end of a channel is always: this, then the daemon is told, then the addresses are unmapped. It is the daemon from whom
 * the peer learns that the channel has ended, and from then on the peer uses its memory as if nobody else had it. A host kernel of this
 * process may run all the while, and waiting for it could take for ever. So its last store that reaches the memory must come before the
 * daemon hears of the end. It does: when hccld_revoke() returns, no processor has the old pages in its translations, for any thread, and the
 * request is sent after that. What the kernel stores later goes to pages of this process; they stay until it has ended. (A system call
 * that has pinned the old pages, as a read() with O_DIRECT does, is not seen by this.)
 */
static void channel_revoke(const struct hccld_channel *channel)
{
	for (uint32_t i = 0; i < channel->memory_count; i++)
		memory_revoke(channel, &channel->memories[i]);
}

static void memory_end(struct hccld_channel_memory *memory)
{
	if (!memory->base)
		return;
	hccld_buffer_remove(memory->start);
	hccld_revoked_unmap(memory->base, memory->size);
}

/* No pins, not ALIVE: nobody else touches it. */
static void channel_free(struct hccld_channel *channel)
{
	const uint32_t index = (uint32_t)(channel - channels);
	const uint64_t generation = (atomic_load_explicit(&channel->word, memory_order_relaxed) >> 32) + 1;
	struct hccld_comm *comm = channel->comm;

	for (uint32_t i = 0; i < channel->memory_count; i++)
		memory_end(&channel->memories[i]);
	for (uint32_t i = 0; channel->tags && i + 1 < channel->memory_count; i++)
		free(channel->tags[i]);
	pthread_mutex_lock(&table_lock);
	free(channel->memories);
	free(channel->mems);
	free(channel->tags);
	channel->memories = NULL;
	channel->mems = NULL;
	channel->tags = NULL;
	channel->memory_count = 0;
	atomic_store_explicit(&channel->word, (generation & GENERATION_MASK) << 32, memory_order_release);
	next_free[index] = first_free;
	first_free = index;
	pthread_mutex_unlock(&table_lock);
	hccld_comm_put(comm);
}

void hccld_channel_put(struct hccld_channel *channel)
{
	/* release: our reads of the fields come before they are freed; acquire: whoever frees sees all others done */
	const uint64_t word = atomic_fetch_sub_explicit(&channel->word, 1, memory_order_acq_rel);

	if (!(word & ALIVE) && (word & PINS) == 1)
		channel_free(channel);
}

int hccld_channel_new(struct hccld_comm *comm, struct hccld_channel **ret_channel)
{
	struct hccld_channel *channel = NULL;
	struct hccld_comm *pinned;
	uint64_t generation;
	int r = hccld_comm_get(comm->handle, &pinned);

	if (r < 0)
		return r;
	pthread_mutex_lock(&table_lock);
	if (first_free != NO_PLACE) {
		channel = &channels[first_free];
		first_free = next_free[first_free];
	} else if (used_count < HCCLD_CHANNELS_PER_SESSION) {
		channel = &channels[used_count++];
	}
	pthread_mutex_unlock(&table_lock);
	if (!channel) {
		hccld_comm_put(pinned);
		return hccld_error(CAUSE_LIMIT, "this process has %u channels, the most it can have; end some with HcclChannelDestroy or HcclCommDestroy",
				   HCCLD_CHANNELS_PER_SESSION);
	}
	generation = atomic_load_explicit(&channel->word, memory_order_relaxed) >> 32;
	channel->handle = HANDLE_MARK << 48 | generation << 16 | (uint64_t)(channel - channels);
	channel->comm = pinned;
	channel->next = NULL;
	channel->notify_segment = channel->peer_notify_segment = 0;
	channel->notify_count = channel->peer_notify_count = 0;
	atomic_store_explicit(&channel->is_lost, false, memory_order_relaxed);
	atomic_store_explicit(&channel->is_told, false, memory_order_relaxed);
	atomic_store_explicit(&channel->word, generation << 32 | 1, memory_order_relaxed);
	*ret_channel = channel;
	return 0;
}

int hccld_channel_publish(struct hccld_channel *channel)
{
	struct hccld_comm *comm = channel->comm;
	int r;

	pthread_mutex_lock(&table_lock);
	/* a device that is reset is closed before its channels are forgotten: that has this one, or we see it closed */
	r = hccld_comm_check_context(comm);
	if (r == 0 && comm->channels_ended)
		r = hccld_error(CAUSE_BAD_HANDLE, "communicator %s was destroyed while channels of it were acquired", comm->name);
	if (r == 0) {
		channel->next = comm->channels;
		comm->channels = channel;
		atomic_fetch_add_explicit(&network_count, !channel->is_mapped, memory_order_relaxed);
		/* release: whoever gets the handle sees the fields. The creator's pin goes with it */
		atomic_store_explicit(&channel->word, (channel->handle >> 16 & GENERATION_MASK) << 32 | ALIVE, memory_order_release);
	}
	pthread_mutex_unlock(&table_lock);
	return r;
}

void hccld_channel_drop(struct hccld_channel *channel)
{
	hccld_channel_put(channel);
}

uint64_t hccld_channel_find(const struct hccld_comm *comm, uint32_t engine, uint32_t peer, uint32_t protocol)
{
	uint64_t handle = 0;

	pthread_mutex_lock(&table_lock);
	for (const struct hccld_channel *channel = comm->channels; channel && !handle; channel = channel->next)
		if (channel->engine == engine && channel->peer == peer && channel->protocol == protocol)
			handle = channel->handle;
	pthread_mutex_unlock(&table_lock);
	return handle;
}

/* With `table_lock`: out of its communicator's list and no longer ALIVE. The caller holds a pin afterwards. */
static void channel_retire(struct hccld_channel **at)
{
	struct hccld_channel *channel = *at;

	*at = channel->next;
	channel->next = NULL;
	atomic_fetch_sub_explicit(&network_count, !channel->is_mapped, memory_order_relaxed);
	/* in one step: others may pin it until then */
	atomic_fetch_sub_explicit(&channel->word, ALIVE - 1, memory_order_acq_rel);
}

int hccld_channel_destroy(const struct hccld_comm *comm, uint64_t handle)
{
	struct hccld_channel *found = NULL, **at;
	int r;

	pthread_mutex_lock(&table_lock);
	for (at = (struct hccld_channel **)&comm->channels; *at && (*at)->handle != handle;)
		at = &(*at)->next;
	found = *at;
	if (found)
		channel_retire(at);
	pthread_mutex_unlock(&table_lock);
	if (!found)
		return hccld_error(CAUSE_NOT_FOUND, "channel is %#llx: rank %u of communicator %s has no such channel, or it was destroyed",
				   (unsigned long long)handle, comm->rank, comm->name);
	channel_revoke(found);
	r = hccld_channel_request_close(&found->id, 1, false);
	hccld_channel_put(found);
	return r;
}

void hccld_channels_revoke(struct hccld_comm *comm)
{
	pthread_mutex_lock(&table_lock);
	comm->channels_ended = true;
	for (struct hccld_channel *channel = comm->channels; channel; channel = channel->next)
		channel_revoke(channel);
	pthread_mutex_unlock(&table_lock);
}

void hccld_channels_revoke_context(const struct hccld_context *context)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < used_count; i++)
		if ((atomic_load_explicit(&channels[i].word, memory_order_relaxed) & ALIVE) && channels[i].comm->on == context)
			channel_revoke(&channels[i]);
	pthread_mutex_unlock(&table_lock);
}

void hccld_channels_forget(struct hccld_comm *comm)
{
	pthread_mutex_lock(&table_lock);
	while (comm->channels) {
		struct hccld_channel *channel = comm->channels;

		channel_retire(&comm->channels);
		pthread_mutex_unlock(&table_lock);
		hccld_channel_put(channel);
		pthread_mutex_lock(&table_lock);
	}
	pthread_mutex_unlock(&table_lock);
}

/* With `table_lock`: a channel of the context, in its communicator's list; NULL: there is none. */
static struct hccld_channel **find_of_context(const struct hccld_context *context)
{
	for (uint32_t i = 0; i < used_count; i++) {
		struct hccld_channel *channel = &channels[i], **at;

		if (!(atomic_load_explicit(&channel->word, memory_order_relaxed) & ALIVE) || channel->comm->on != context ||
		    hccld_context_is_open(context, channel->comm->context))
			continue;
		at = &channel->comm->channels;
		while (*at != channel)
			at = &(*at)->next;
		return at;
	}
	return NULL;
}

void hccld_channels_forget_context(const struct hccld_context *context)
{
	struct hccld_channel **at;

	pthread_mutex_lock(&table_lock);
	while ((at = find_of_context(context))) {
		struct hccld_channel *channel = *at;

		channel_retire(at);
		pthread_mutex_unlock(&table_lock);
		hccld_channel_put(channel);
		pthread_mutex_lock(&table_lock);
	}
	pthread_mutex_unlock(&table_lock);
}

/* ---- what it has brought ---- */

static const struct hccld_channel_memory *memory_at(const struct hccld_channel *channel, const void *address, uint64_t bytes)
{
	for (uint32_t i = 0; i < channel->memory_count; i++) {
		const struct hccld_channel_memory *memory = &channel->memories[i];
		const uint64_t offset = (uintptr_t)address - (uintptr_t)memory->start;

		if (memory->base && offset <= memory->bytes && bytes <= memory->bytes - offset && (bytes || offset < memory->bytes))
			return memory;
	}
	return NULL;
}

bool hccld_channel_contains(const struct hccld_channel *channel, const void *address, uint64_t bytes)
{
	return memory_at(channel, address, bytes);
}

int hccld_channel_remote(const struct hccld_channel *channel, const char *function, const void *address, uint64_t bytes,
			 struct hccld_channel_place *ret_place)
{
	const struct hccld_channel_memory *memory = memory_at(channel, address, bytes);

	if (!memory)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: %llu bytes at %p are not in memory of rank %u that its channel to rank %u has brought: HcclChannelGetHcclBuffer and HcclChannelGetRemoteMems tell what it has",
				   function, (unsigned long long)bytes, address, channel->peer, channel->comm->rank);
	if (atomic_load_explicit(&memory->is_lost, memory_order_acquire))
		return hccld_share_lost_error(function, address);
	ret_place->segment = memory->segment;
	ret_place->offset = (uint64_t)((const char *)address - (const char *)memory->start);
	return 0;
}

int hccld_channel_own_notify(const struct hccld_channel *channel, const char *function, uint32_t index, struct hccld_channel_place *ret_place)
{
	if (index >= channel->notify_count)
		return hccld_error(CAUSE_ARGUMENT, "%s: the notify is %u; this end of the channel to rank %u has %u, counted from 0 (notifyNum in HcclChannelDesc)",
				   function, index, channel->peer, channel->notify_count);
	ret_place->segment = channel->notify_segment;
	ret_place->offset = ((uint64_t)channel->first_notify + index) * sizeof(struct notify_slot);
	return 0;
}

int hccld_channel_peer_notify(const struct hccld_channel *channel, const char *function, uint32_t index,
			      struct hccld_channel_place *ret_place)
{
	if (index >= channel->peer_notify_count)
		return hccld_error(CAUSE_ARGUMENT, "%s: the notify is %u; rank %u has %u at its end of the channel, counted from 0 (its notifyNum in HcclChannelDesc)",
				   function, index, channel->peer, channel->peer_notify_count);
	ret_place->segment = channel->peer_notify_segment;
	ret_place->offset = channel->peer_notify_offset + (uint64_t)index * sizeof(struct notify_slot);
	return 0;
}

/* What has become of the peer; LOSS_UNKNOWN: it is there, and has its end. */
static struct hccld_loss peer_loss(const struct hccld_channel *channel)
{
	const struct comm_member *member = &channel->comm->region->members[channel->peer];
	/* acquire: pid and wait status come before the word */
	const uint32_t word = atomic_load_explicit(&member->word, memory_order_acquire);

	if (word == MEMBER_DEAD)
		return (struct hccld_loss){ LOSS_ENDED, member->exit };
	if (word == MEMBER_ALIVE && !atomic_load_explicit(&channel->is_lost, memory_order_acquire))
		return (struct hccld_loss){ LOSS_UNKNOWN, -1 };
	return (struct hccld_loss){ word == MEMBER_ALIVE ? LOSS_CLOSED : LOSS_LEFT, -1 };
}

/* Why @memory, which is lost, is. */
static struct hccld_lost memory_lost(const struct hccld_channel *channel, const struct hccld_channel_memory *memory)
{
	struct hccld_lost lost = { memory->start, memory->bytes, (uint32_t)channel->comm->region->members[channel->peer].pid,
				   peer_loss(channel) };

	if (!lost.loss.kind)
		lost.loss.kind = LOSS_FREED;
	return lost;
}

/* For "rank 1, pid 4711, "; the cause of the error that says so. */
static enum cause loss_how(struct hccld_loss loss, char *buffer, size_t size)
{
	if (loss.kind == LOSS_ENDED)
		exit_text(loss.exit, buffer, size);
	else
		loss_text(loss.kind, loss.exit, "freed", buffer, size);
	return loss.kind == LOSS_ENDED ? CAUSE_PEER_DEAD : loss.kind == LOSS_FREED ? CAUSE_PEER_MEMORY : CAUSE_PEER_LEFT;
}

int hccld_channel_check(const struct hccld_channel *channel, const char *function)
{
	const struct hccld_comm *comm = channel->comm;
	struct hccld_loss loss;
	enum cause cause;
	char how[96];

	hccld_share_refresh();
	loss = peer_loss(channel);
	if (!loss.kind)
		return 0;
	cause = loss_how(loss, how, sizeof(how));
	if (loss.kind == LOSS_CLOSED)
		snprintf(how, sizeof(how), "has closed its end; end this one with HcclChannelDestroy before another is acquired");
	return hccld_error(cause, "%s: communicator %s: rank %u's channel to rank %u (engine %s, protocol %s): rank %u, pid %d, %s", function, comm->name,
			   comm->rank, channel->peer, channel_engine_name(channel->engine), channel_protocol_name(channel->protocol), channel->peer,
			   comm->region->members[channel->peer].pid, how);
}

/* " (pid 4711, killed by signal 9)" of the peer, nothing while it is there. */
static void peer_end_text(const struct hccld_channel *channel, char *buffer, size_t size)
{
	const struct comm_member *member = &channel->comm->region->members[channel->peer];
	/* acquire: pid and wait status come before the word */
	const uint32_t word = atomic_load_explicit(&member->word, memory_order_acquire);
	char how[64] = "it has destroyed the communicator";

	if (word == MEMBER_DEAD)
		exit_text(member->exit, how, sizeof(how));
	*buffer = 0;
	if (word != MEMBER_ALIVE)
		snprintf(buffer, size, " (pid %d, %s)", member->pid, how);
}

/* With `table_lock`. */
static const struct hccld_channel *find_by_notify(const struct hccld_context *context, uint64_t id)
{
	for (uint32_t i = 0; i < used_count; i++) {
		const struct hccld_channel *channel = &channels[i];

		if ((atomic_load_explicit(&channel->word, memory_order_acquire) & ALIVE) && channel->comm->on == context &&
		    id >= channel->first_notify && id - channel->first_notify < channel->notify_count)
			return channel;
	}
	return NULL;
}

bool hccld_channel_name_notify(const struct hccld_context *context, uint64_t id, char *buffer, size_t size)
{
	const struct hccld_channel *channel;
	char end[96];

	pthread_mutex_lock(&table_lock);
	channel = find_by_notify(context, id);
	if (channel) {
		peer_end_text(channel, end, sizeof(end));
		snprintf(buffer, size, "notify %llu of the channel to rank %u%s of communicator %s",
			 (unsigned long long)(id - channel->first_notify), channel->peer, end, channel->comm->name);
	}
	pthread_mutex_unlock(&table_lock);
	return channel;
}

uint64_t hccld_channel_rank_of_notify(const struct hccld_context *context, uint64_t id)
{
	const struct hccld_channel *channel;
	uint64_t rank;

	pthread_mutex_lock(&table_lock);
	channel = find_by_notify(context, id);
	rank = channel ? channel->comm->task_rank : 0;
	pthread_mutex_unlock(&table_lock);
	return rank;
}

bool hccld_channels_network_at(const void *address, uint64_t bytes)
{
	const uintptr_t start = (uintptr_t)address;
	bool is_there = false;

	/* those who have none do not pay for it */
	if (!atomic_load_explicit(&network_count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < used_count && !is_there; i++) {
		const struct hccld_channel *channel = &channels[i];

		if (!(atomic_load_explicit(&channel->word, memory_order_acquire) & ALIVE) || channel->is_mapped)
			continue;
		for (uint32_t k = 0; k < channel->memory_count && !is_there; k++) {
			const uintptr_t base = (uintptr_t)channel->memories[k].base;

			is_there = base && (base < start ? start - base < channel->memories[k].size : base - start < bytes);
		}
	}
	pthread_mutex_unlock(&table_lock);
	return is_there;
}

/* ---- memory that is gone ---- */

/* With `table_lock`. */
static void channel_lose(struct hccld_channel *channel, uint64_t segment)
{
	if (channel->peer_notify_segment == segment)
		atomic_store_explicit(&channel->is_lost, true, memory_order_release);
	for (uint32_t i = 0; i < channel->memory_count; i++) {
		struct hccld_channel_memory *memory = &channel->memories[i];

		if (memory->segment != segment || atomic_load_explicit(&memory->is_lost, memory_order_relaxed))
			continue;
		/* the buffer stays as long as the peer's end does */
		if (i == 0)
			atomic_store_explicit(&channel->is_lost, true, memory_order_release);
		atomic_store_explicit(&memory->is_lost, true, memory_order_release);
		/* also what is still there, but no longer meant for this process: the peer has closed its end, or taken the registration back */
		memory_revoke(channel, memory);
	}
}

void hccld_channels_lose(uint64_t segment)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < used_count; i++)
		if (atomic_load_explicit(&channels[i].word, memory_order_acquire) & ALIVE)
			channel_lose(&channels[i], segment);
	pthread_mutex_unlock(&table_lock);
}

/* With `table_lock`: the channel whose memory is at @address, and that memory; NULL: none. */
static const struct hccld_channel *find_by_address(const void *address, const struct hccld_channel_memory **ret_memory)
{
	for (uint32_t i = 0; i < used_count; i++) {
		*ret_memory = atomic_load_explicit(&channels[i].word, memory_order_acquire) & ALIVE ? memory_at(&channels[i], address, 1) : NULL;
		if (*ret_memory)
			return &channels[i];
	}
	return NULL;
}

/* With `table_lock`. False: there is no lost memory. */
static bool find_lost(const void *address, uint32_t *ret_peer, char *name, struct hccld_lost *ret_lost)
{
	const struct hccld_channel_memory *memory;
	const struct hccld_channel *channel = find_by_address(address, &memory);

	if (!channel || !atomic_load_explicit(&memory->is_lost, memory_order_acquire))
		return false;
	*ret_peer = channel->peer;
	*ret_lost = memory_lost(channel, memory);
	snprintf(name, HCCLD_COMM_NAME_MAX, "%s", channel->comm->name);
	return true;
}

int hccld_channels_lost_error(const char *function, const void *address)
{
	char how[96], name[HCCLD_COMM_NAME_MAX];
	struct hccld_lost lost;
	enum cause cause;
	uint32_t peer;
	bool is_lost;

	pthread_mutex_lock(&table_lock);
	is_lost = find_lost(address, &peer, name, &lost);
	pthread_mutex_unlock(&table_lock);
	if (!is_lost)
		return 0;
	cause = loss_how(lost.loss, how, sizeof(how));
	return hccld_error(cause, "%s: the memory at %p came with a channel of communicator %s: rank %u, pid %u, %s; it reads as zeros", function,
			   address, name, peer, lost.pid, how);
}

bool hccld_channel_look(const void *address, struct hccld_channel_owner *ret_owner)
{
	const struct hccld_channel_memory *memory;
	const struct hccld_channel *channel;

	/* the thread that the signal came to may hold it */
	if (pthread_mutex_trylock(&table_lock))
		return false;
	channel = find_by_address(address, &memory);
	if (channel && channel->is_mapped) {
		ret_owner->peer = channel->peer;
		ret_owner->tag = memory == channel->memories ? NULL : channel->tags[memory - channel->memories - 1];
		ret_owner->is_lost = atomic_load_explicit(&memory->is_lost, memory_order_acquire);
		ret_owner->lost = memory_lost(channel, memory);
	}
	pthread_mutex_unlock(&table_lock);
	return channel && channel->is_mapped;
}
