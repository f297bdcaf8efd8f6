/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its reply. A handler checks the request, does it, fills the reply and returns 0
 * or a negative errno; or it returns REQUEST_LATER, and request_finish() is called some time
 * afterwards, exactly once. The client may be gone by then: `connection` is NULL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/control.pb-c.h"
#include "proto/limits.h"
#include "proto/status.h"

struct connection;
struct control;
struct session;
struct user;

#define REQUEST_LATER 1

struct request {
	struct list link; /* connection->requests or connection->outgoing */
	struct list held; /* retry.h; of control */
	uint64_t held_until_ns; /* 0: it was never held */
	uint64_t again_ns;	/* when it is done again, if nothing tells before */
	struct control *control;
	struct user *user; /* in whose requests it counts, also when the connection is gone */
	struct connection *connection; /* NULL: nobody waits for the reply any more */
	Hccld__Control__Request *message;
	size_t unpacked; /* bytes of it */
	Hccld__Control__Reply reply;
	union {
		Hccld__Control__HelloReply hello;
		Hccld__Control__OpenContextReply open_context;
		Hccld__Control__CreateStreamReply create_stream;
		Hccld__Control__AllocateSegmentReply allocate_segment;
		Hccld__Control__MemoryInfoReply memory_info;
		Hccld__Control__GetRootInfoReply get_root_info;
		Hccld__Control__JoinCommReply join_comm;
		Hccld__Control__OpenPairsReply open_pairs;
		Hccld__Control__MapPeerReply map_peer;
		Hccld__Control__GrowCommReply grow_comm;
		Hccld__Control__ExportMemoryReply export_memory;
		Hccld__Control__ImportMemoryReply import_memory;
		Hccld__Control__ListLostReply list_lost;
		Hccld__Control__DescribeDeviceReply describe_device;
		Hccld__Control__CreateNotifiesReply create_notifies;
		Hccld__Control__RegisterMemoryReply register_memory;
		Hccld__Control__OfferChannelsReply offer_channels;
		Hccld__Control__DescribeChannelReply describe_channel;
		Hccld__Control__CreateThreadReply create_thread;
		Hccld__Control__StatusReply status;
		Hccld__Control__ListReply list;
		Hccld__Control__ConfigReply config;
		Hccld__Control__KillSessionReply kill_session;
		Hccld__Control__DrainReply drain;
		Hccld__Control__PingReply ping;
		Hccld__Control__MonitorReply monitor;
	} body;
	int fds[HCCLD_PACKET_FDS_MAX]; /* of the reply; owned */
	uint32_t fd_count;
	char text[HCCLD_TEXT_MAX]; /* of an error */
	struct request_memory *memory;
};

/* Takes @message, of @unpacked bytes. NULL: out of memory. */
struct request *request_new(struct connection *connection, Hccld__Control__Request *message,
			    size_t unpacked);
struct request *request_free(struct request *request);

/* The session of the client that asks. */
struct session *request_session(const struct request *request);
/* A copy of @fd goes with the reply. -EDQUOT: out of descriptors. */
int request_add_fd(struct request *request, int fd);
/* Zeroed memory that lives as long as the request. NULL: out of memory. */
void *request_alloc(struct request *request, size_t size);
char *request_string(struct request *request, const char *string);
/* Says why, and returns the negative errno of @cause for the handler to return. */
int request_fail(struct request *request, enum cause cause, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* What a handler has left in it that failed: it may be handled again. */
void request_forget(struct request *request);
/*
 * Sends the reply: @r 0, or a negative errno with or without words by request_fail(). Frees the
 * request.
 */
void request_finish(struct request *request, int r);
