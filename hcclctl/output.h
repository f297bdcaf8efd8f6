/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks print, on its way to our own outputs: a source is the reading end of a rank's pipe, a sink one of our two outputs. Lines stay
 * whole. Nothing here blocks: a slow reader of ours slows the ranks down, as it would without us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A queue of bytes for a descriptor that is not ours. */
struct sink {
	int fd;
	int error;	   /* errno of the write that failed; nothing is taken any more */
	bool always_ready; /* a file or the like: writing does not wait for a reader */
	char *data;
	size_t start, end, capacity;
};

/* @fd stays the caller's. */
void sink_init(struct sink *sink, int fd);
void sink_deinit(struct sink *sink);
bool sink_is_empty(const struct sink *sink);
/* Enough is queued: read no more for it. */
bool sink_is_full(const struct sink *sink);
/* Queues bytes; drops them when the sink has failed. -ENOMEM. */
int sink_add(struct sink *sink, const void *data, size_t size);
/* Writes what can be written without waiting. Errors go to sink->error. */
void sink_write(struct sink *sink);

struct source {
	int fd; /* -1: closed */
	struct sink *sink;
	char prefix[16]; /* before each line */
	size_t prefix_size;
	char *line; /* begin of a line whose end has not come */
	size_t size, capacity;
};

/* Takes @fd, makes it non-blocking. */
void source_init(struct source *source, int fd, struct sink *sink, const char *prefix);
/* Reads what is there and queues the whole lines. At the end of the stream the last line goes out too and the source closes. */
void source_read(struct source *source);
/* Closes; a line without end is completed. */
void source_close(struct source *source);
