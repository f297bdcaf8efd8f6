/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: what two ranks of a communicator have of each other. Each rank offers an end (engine, protocol, notifies, HCCL buffer,
 * registrations); when both ends are there the channel is complete, and each has imports of what the other offers. They go with the end
 * that they are for. An end that was complete never becomes so again with another one: once the other end has gone it is dead, its imports
 * are lost, and its rank closes it.
 *
 * What a restart finds. An end's record comes before what it brings; what is missing of that is made by completing once more, which makes
 * only what is not there. COMPLETE is stored when all imports of both ends are there: an end of which only one of the two has the word is
 * completed again. CLOSING is stored before anything of the end goes, DEAD at the other end after that: who finds COMPLETE without another
 * end is dead. So an end never meets a second one. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/status.h"

struct notifies;
struct rank;
struct registry;
struct segment;
struct session;

enum channel_state {
	CHANNEL_OFFERED = 0,
	CHANNEL_COMPLETE = 1,
	CHANNEL_DEAD = 2,    /* the other end has gone since it was complete, or it could not be completed */
	CHANNEL_CLOSING = 3, /* it is being taken down */
};

/* What an import of a channel is there. */
enum channel_position {
	CHANNEL_NOTIFIES = 0,
	CHANNEL_BUFFER = 1,
	CHANNEL_MEMORIES = 2, /* and further: registrations, in the order in which the peer has offered them */
};

struct channel {
	struct list link; /* rank->channels, or a teardown once it is closing */
	struct rank *rank;
	uint64_t id;
	uint32_t peer, engine, protocol;
	enum channel_state state;
	struct channel *other;	   /* the peer's end while it is complete */
	struct notifies *notifies; /* own; NULL: none */
	uint64_t buffer;	   /* own segment, id within the session; 0: none */
	uint64_t *registrations;   /* own, by id; some may be gone */
	uint32_t registration_count;
	struct list imports; /* of what the peer has offered; segment->channel_link */
	struct list waiters; /* control/channel_wait.h */
	uint64_t since_ns;   /* offered; of this process of the daemon */
	uint64_t awaited_ns; /* since when there are waiters */
	enum cause failure;  /* it could not be completed; CAUSE_NONE otherwise */
	char *failure_text;
	uint32_t record;
	bool is_chosen; /* by the request that is being handled */
};

struct channel_wish {
	uint32_t peer, engine, protocol, notify_count;
	uint64_t buffer;
	const uint64_t *registrations; /* HCCLD_CHANNEL_MEMORIES_MAX at most, of the rank */
	uint32_t registration_count;
};

/* -EUSERS: the tenant may not have more; -EDQUOT: the registry has no room; others as notifies_new(). */
int channel_new(struct rank *rank, const struct channel_wish *wish, struct channel **ret_channel);
/* Of a session; NULL: there is none, or it is closing. */
struct channel *channel_find(const struct session *session, uint64_t id);
/* The end of @rank for that peer, engine and protocol that is not closing, or NULL. */
struct channel *channel_at(const struct rank *rank, uint32_t peer, uint32_t engine,
			   uint32_t protocol);
/* The end that would complete @channel: offered, and not complete; NULL: it has not come. */
struct channel *channel_counterpart(const struct channel *channel);
/*
 * Makes the imports of both ends that are not there yet. -EDQUOT, -EUSERS: of the session *@ret_short; -ENOMEM. What was made by then
 * stays with the ends.
 */
int channel_complete(struct channel *channel, struct channel *other, struct session **ret_short);
/* It can never be completed. */
void channel_fail(struct channel *channel, enum cause cause, const char *text);
/* Its import at that place, or NULL. */
struct segment *channel_import(const struct channel *channel, uint32_t position);
/*
 * Both ends have met, though the other may have gone since. Acquiring it has succeeded then, at both: the peer, which heard of it first, may
 * have done its work and left before this rank asks, which is no fault of anybody. What it has brought is lost, and says so when used.
 */
bool channel_was_complete(const struct channel *channel);
/* Regions of registered memory that it has brought; some may be missing or lost. */
uint32_t channel_memory_count(const struct channel *channel);

/*
 * The words that others look at: it is closing, the other end dead. Its imports are still there: the caller takes them away, then lets the
 * engine make a pass, then calls channel_remove(). *@ret_other: the other end; NULL: there was none.
 */
void channel_close(struct channel *channel, struct channel **ret_other);
/* Out of records and counts, and freed. */
void channel_remove(struct channel *channel);
/* One that nobody has met yet, and that its process has not heard of. */
void channel_discard(struct channel *channel);
/* @registration is about to go: what peers have of it is lost. */
void channels_lose(const struct rank *rank, uint64_t registration);

/* After ranks and registrations. */
int channel_restore(struct registry *registry, uint32_t index);
/* After all of them: meets ends again, and takes away what belongs to none. */
void channels_restored(struct registry *registry);
/* Memory of this process only. */
void channels_free(struct rank *rank);
