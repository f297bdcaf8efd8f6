/* SPDX-License-Identifier: Apache-2.0 */
/* A session's use of one device, and its streams. Control thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "engine/view.h"
#include "registry/notify.h"

struct cores;
struct record_context;
struct record_stream;
struct session;

struct context {
	struct list link; /* in a teardown once it is closing */
	struct session *session;
	uint64_t id; /* within the session */
	uint32_t device;
	uint32_t record;
	struct list streams, segments, ranks;
	struct notify_table notifies;
	struct list threads; /* thread.h */
	struct view_context view;
};

struct stream {
	struct list link; /* context->streams, or a teardown once it is closing */
	struct context *context;
	uint32_t index; /* place in the session region */
	uint32_t record;
	uint32_t thread_count; /* threads that use it */
	bool is_closing;
	struct cores *cores; /* NULL: it holds none */
	struct stream_ring *ring;
};

/* -EDQUOT: the tenant has no place left in its yard, or the registry none; -EUSERS: the user has too many. */
int context_new(struct session *session, uint32_t device, struct context **ret_context);
/* -EPROTO: the record does not fit the rest. */
int context_restore(struct session *session, uint32_t index, struct context **ret_context);
/* Nothing new happens in it: a new context of the same device may be made. */
void context_close(struct context *context);
/* A thread of its process has it just now. */
bool context_is_driven(const struct context *context);
/* Clears the yard's entry: on the engine thread, after engine_context_detach(). */
void context_unpublish(struct context *context);
/* Out of records and counts, and freed; it is empty and unpublished. Record and place stay if its session leaves a remnant. */
void context_remove(struct context *context);
/* Memory of this process only, with what is in it. Takes NULL. */
struct context *context_free(struct context *context);

/* -ENOSR: no place left; -EUSERS: the tenant may not have more streams or memory; others from backing it. */
int stream_new(struct context *context, struct stream **ret_stream);
/* The same in two steps, of which the first leaves no record; undone by stream_unreserve(). */
int stream_reserve(struct context *context, uint32_t *ret_index);
void stream_unreserve(struct context *context, uint32_t index);
int stream_open(struct context *context, uint32_t index, struct stream **ret_stream);
int stream_restore(struct context *context, uint32_t index);
/* Frees the pages of its place; any thread. */
void stream_punch(struct stream *stream);
void stream_remove(struct stream *stream);
