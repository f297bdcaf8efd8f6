/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector cores of devices: a budget, counted in blocks of host kernels. They belong to streams, and go with them; those of a kernel that
 * runs on when its stream goes belong to that kernel (cores_keep()) until it ends, or its process. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct registry;
struct session;
struct stream;
struct text;

struct cores {
	struct list link; /* session->cores */
	struct session *session;
	struct stream *stream; /* NULL: it has gone, and a kernel of it runs on */
	uint32_t device, count, record;
	/* without a stream: */
	uint64_t holder;   /* the session's name for the kernel */
	uint64_t rank;	   /* that the stream belonged to; 0: none */
	uint64_t since_ns; /* when it went, CLOCK_MONOTONIC */
};

/*
 * The stream holds @count from now on, or what it holds already if that is more: asked again after a restart it is granted what it has.
 * -EXFULL: so many are not free; -ERANGE: the device has not so many at all; others from the records.
 */
int cores_take(struct stream *stream, uint32_t count);
/* Are there as many for it now? */
bool cores_have_room(const struct stream *stream, uint32_t count);
/* It holds none. */
void cores_give(struct stream *stream);
/*
 * The stream is about to go: a kernel of it, called @holder (not 0) by the session, keeps @count of its cores, and the rest is free.
 * -ERANGE: it holds fewer, nothing is done.
 */
int cores_keep(struct stream *stream, uint32_t count, uint64_t holder);
/* Those of a kernel without a stream, or NULL. */
struct cores *cores_find(const struct session *session, uint64_t holder);
void cores_free(struct cores *cores);
/* Of a session that goes. */
void cores_free_all(struct session *session);
/* Memory of this process only. */
void cores_forget(struct session *session);
/* From its record at @index. -EPROTO: it does not fit the rest; -ENOMEM. */
int cores_restore(struct registry *registry, uint32_t index);
/* How many the stream holds. */
uint32_t cores_count(const struct stream *stream);
/* Is @count as good as free: do streams hold so many that have no kernel queued, and are about to give them back? */
bool cores_will_come(const struct stream *stream, uint32_t count);
/* "has 48 vector cores, of which 44 are in use (pid 12 (program): 40, ...)": the three largest holders */
void cores_describe(const struct registry *registry, uint32_t device, struct text *text);
