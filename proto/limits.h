/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit of queues, messages, names and tables, in one place. Sizes in bytes unless the name says otherwise. */
#pragma once

#include <stdint.h>

#define HCCLD_CACHE_LINE 64u

/* control protocol */
#define HCCLD_MAGIC 0x48434c44u		/* "HCLD" */
#define HCCLD_VERSION_LOW 1u		/* oldest protocol this build speaks */
#define HCCLD_VERSION_HIGH 1u		/* newest */
#define HCCLD_PACKET_MAX 65536u		/* one message with its header */
#define HCCLD_PACKET_FDS_MAX 8u
#define HCCLD_TEXT_MAX 1024u		/* error text in a reply */
#define HCCLD_REQUEST_DEADLINE_MS 30000u	/* when a request names none */
#define HCCLD_SETTINGS_MAX 64u		/* settings of the daemon: they fit into one packet */
#define HCCLD_MONITORS_PER_USER 64u	/* connections that are sent events, of one user */
#define HCCLD_LIST_PAGE 128u		/* entries in one reply to a list request */

/* what one daemon, one session, one device may hold */
#define HCCLD_DEVICES_MAX 64u
#define HCCLD_SESSIONS_MAX 4096u
#define HCCLD_RESERVE 64u	/* of these, and of connections, for root and the daemon's user */
#define HCCLD_CONNECTIONS_MAX (HCCLD_SESSIONS_MAX + 256u)
#define HCCLD_YARD_CONTEXTS 4096u	/* contexts of one tenant */
#define HCCLD_STREAMS_PER_SESSION 1024u
#define HCCLD_SEGMENTS_PER_SESSION 32768u
#define HCCLD_EXPORTS_PER_SESSION 4096u	/* keys to memory of one process */
#define HCCLD_EXPORTS_PER_USER 32768u	/* of one user in all: half of what the daemon can hold, as below */
#define HCCLD_IMPORTS_PER_USER 131072u
#define HCCLD_CONTEXTS_PER_USER 16384u	/* in all user namespaces: a quarter of what the daemon can hold */
#define HCCLD_RANKS_PER_USER 65536u	/* also those that wait for others: a quarter of what the daemon can hold */
#define HCCLD_BUFFER_BYTES_PER_USER (1ull << 43)	/* address space of HCCL buffers: a sixteenth of what the daemon has */
#define HCCLD_TENANTS_PER_USER 256u	/* user namespaces of one user: a quarter of what the daemon can hold */
#define HCCLD_THREADS_PER_SESSION 4096u	/* of programs' own operators; several may be on one stream */
#define HCCLD_THREADS_PER_USER 65536u	/* a quarter of what the daemon can hold */
#define HCCLD_EXPORT_PIDS_MAX 128u	/* processes that may import by one key */
#define HCCLD_KEY_BYTES_MAX 32u		/* of a key; or 8, for handles that are one number */
#define HCCLD_RANKS_PER_SESSION 4096u	/* (communicator, rank) pairs that live in one process */
#define HCCLD_RANKS_MAX 4096u		/* size of a communicator on one node */
#define HCCLD_COMM_NAME_MAX 128u	/* with the terminating NUL: COMM_NAME_MAX_LENGTH */
#define HCCLD_UDI_MAX 128u
#define HCCLD_PROCESS_NAME_MAX 64u
#define HCCLD_SECRET_BYTES 32u
#define HCCLD_TAG_MAX 256u	/* of registered memory and of an engine context, with the NUL: HCCL_RES_TAG_MAX_LEN + 1 */
#define HCCLD_CHANNEL_MEMORIES_MAX 256u	/* registrations that one end of a channel exchanges */
#define HCCLD_OFFERS_MAX 256u	/* ends of channels in one request */
#define HCCLD_AWAITED_MAX 1024u	/* channels that one request waits for */
#define HCCLD_WAITERS_PER_SESSION 16384u	/* channels that requests of one process wait for at a time, each request counted */
#define HCCLD_CHANNELS_PER_SESSION 16384u	/* that one process can name */
#define HCCLD_CHANNELS_MAX 65536u	/* ends of all processes: limits may not be set higher */
#define HCCLD_REGISTRATIONS_MAX 65536u
#define HCCLD_NOTIFIES_MAX 65536u	/* of a device: the budget may not be set higher */
#define HCCLD_CGROUP_MAX 256u	/* the part of a cgroup's path that makes a tenant, with the NUL */
#define HCCLD_COUNT_MAX 0x7FFFFFFFFull	/* elements of one item: SYS_MAX_COUNT of HCCL */
#define HCCLD_BATCH_ITEMS_MAX (1u << 20)	/* items of one HcclBatchSendRecv */

/* shared memory */
#define HCCLD_STREAM_SLOTS 1024u	/* a power of two */
#define HCCLD_BATCH_SLOTS_MAX (HCCLD_STREAM_SLOTS / 4)	/* a task with more slots keeps its items in a side buffer */
#define HCCLD_PAIR_SLOTS 16u		/* offers in flight of one ordered pair; a power of two */
#define HCCLD_PAIR_SLOTS_NEAR 1u	/* of these, the first ones, that lie beside the pair's counters */
#define HCCLD_PAIR_SLOTS_FIRST 16u	/* the same of communicators that a daemon of release 0.3 or before has made */
#define HCCLD_INLINE_MAX 40u		/* payload inside an offer */
#define HCCLD_PACK_MAX 5u		/* offers of a few bytes each that share a slot */
#define HCCLD_PAIR_WIDE_SLOTS 1024u	/* the same of a pair whose receiver lags far behind; a power of two */
#define HCCLD_EAGER_MAX 8192u		/* payload in a slot of an eager pool */
#define HCCLD_EAGER_SLOTS 32u		/* of the first pool of a rank; each further one has twice as many as the one before */
#define HCCLD_EAGER_POOLS 7u		/* of a rank, at most: 4064 slots */

/* executor */
#define HCCLD_ROOM_AGAIN_NS 100000000u	/* after which room for small sends that was refused is asked for again */
#define HCCLD_SMALL_COPY 32768u		/* copied at once; more becomes a transfer in slices */
#define HCCLD_SLICE 262144u
#define HCCLD_COPIES 32u		/* large copies of one tenant that clients help with at a time */
#define HCCLD_COPY_CHUNKS 128u		/* of each, at most */
#define HCCLD_NON_TEMPORAL_PART 8	/* of the last cache: from so many bytes on, of one copy or of all that wait, stores pass it */
#define HCCLD_CACHE (16u << 20)		/* where the size of that cache is not known */
#define HCCLD_STREAM_MIN (256u << 10)	/* one copy of a batch that is larger than that cache: past it */
