/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking objects away from clients and from the engine. The order is always the same: words that
 * others look at (member dead or left, segment retired), then the engine lets go, then the memory
 * goes, then records, descriptors and counts, then the reply. A session has one teardown at a time:
 * what is in a context is gone before the context goes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct context;
struct channel;
struct control;
struct notifies;
struct rank;
struct request;
struct segment;
struct session;
struct stream;
struct thread;

/* Each answers @request when the object is gone. -ENOMEM: nothing has happened. @channels: of one session, by channel->link. */
int teardown_stream(struct request *request, struct stream *stream);
int teardown_thread(struct request *request, struct thread *thread);
int teardown_segment(struct request *request, struct segment *segment);
int teardown_rank(struct request *request, struct rank *rank);
/* Imports are lost when it answers; the ids are free when no queued task names them (registry/notify.h). */
int teardown_notifies(struct request *request, struct notifies *notifies);
int teardown_context(struct request *request, struct context *context);
int teardown_channels(struct request *request, struct session *session, struct channel **channels,
		      size_t count);
/*
 * Nothing goes: the engine ends what the rank has in flight, or lets it run again; its words are
 * stored. In line with teardowns of the session, so that the rank stays for as long.
 */
int teardown_suspended(struct request *request, struct rank *rank);
int teardown_resumed(struct request *request, struct rank *rank);
/* Their process could not be told of them: they go again. */
void teardown_lost_segment(struct control *control, struct segment *segment);
void teardown_lost_rank(struct control *control, struct rank *rank);
void teardown_lost_notifies(struct control *control, struct notifies *notifies);
/* Answers @request when no copy touches @bytes at @offset of @segment, which stays. */
int teardown_settle(struct request *request, struct segment *segment, uint64_t offset,
		    uint64_t bytes);
/* After a restart: memory that its process has freed and nobody imports any more, buffers and threads whose rank has left. */
void teardown_orphans(struct control *control);
/*
 * For a request that comes again after a restart, whose object is gone or going: answers when all
 * that the session is taking down now is gone.
 */
int teardown_again(struct request *request);

/*
 * An administrator ends it: @exit says so. Its connection is the caller's to end, at once. Answers
 * @request when all is freed. -ENOMEM: nothing has happened.
 */
int teardown_session(struct request *request, struct session *session, int32_t exit);

/* It will be ended soon, whatever happens: what it holds will be free. May be said again. */
void session_going(struct control *control, struct session *session);
/* The session's process has ended with wait status @exit (-1: unknown), or is cut off. */
void session_end(struct control *control, struct session *session, int32_t exit);
