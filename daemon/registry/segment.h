/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a session: a sealed memfd, backed in full, but for HCCL buffers (lazy.h) and notifies (notify.h). Control
 * thread, but what is said to be for any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/event.h"
#include "proto/notify.h"
#include "proto/status.h"

struct context;
struct rank;
struct registry;

enum segment_kind {
	SEGMENT_DEVICE = 0, /* as in control.proto */
	SEGMENT_HOST = 1,
	SEGMENT_SIDE = 2,
	SEGMENT_EVENT = EVENT_SEGMENT_KIND,
	SEGMENT_NOTIFY = NOTIFY_SEGMENT_KIND, /* of the daemon itself: notify.h */
};

struct segment_memory {
	int fd; /* -1: none */
	void *base;
	uint64_t bytes;
};

struct segment {
	struct list link; /* context->segments, or a teardown once it is closing */
	struct context *context;
	uint64_t id;	 /* within the session */
	uint64_t serial; /* names the descriptor in the store */
	enum segment_kind kind;
	uint32_t record;
	bool is_closing;
	bool is_mapped; /* by peers of ranks of its context, or it may be: segment_of_rank() */
	struct segment_memory memory;
	struct list imports, exports; /* share.h */
	bool is_orphan;		      /* freed by its process: it goes with the last import */
	/* of an import: memory.base and memory.fd are unset, the origin has them */
	bool is_import, is_lost;
	enum loss loss; /* once it is; of which process, and how that has ended */
	int32_t loss_pid, loss_exit;
	struct list import_link; /* origin->imports */
	struct segment *origin;	 /* NULL once it is lost */
	uint64_t offset;	 /* in the origin's memory */
	uint64_t export_id;	 /* of the key it came by */
	uint64_t request;	 /* id of the request that made it: it may come again */
	uint64_t charged;	 /* bytes on the accounts */
	/* of an HCCL buffer, lazy.h */
	uint64_t rank; /* handle of the rank whose buffer it is; 0: it is none */
	struct list lazy_link; /* registry->lazy until it is retired */
	uint32_t lazy_record;
	/* of one that came with a channel */
	uint64_t channel;	  /* id of the end that it is for; 0: it came by a key */
	uint32_t position;	  /* channel.h */
	char *tag;		  /* of registered memory; NULL: it is none */
	struct list channel_link; /* channel->imports */
};

/* Any thread. -ENOMEM: the node has no memory left. @bytes: whole pages. */
int segment_memory_new(uint64_t bytes, struct segment_memory *ret_memory);
/* Address space only: who uses it backs it before. */
int segment_memory_new_sparse(uint64_t bytes, struct segment_memory *ret_memory);
/* Any thread. The pages are free when it returns, whoever maps them. */
void segment_memory_release(struct segment_memory *memory);
/* The memory of @segment, any thread; of items that a process may still go through, whose session has ended, it unmaps its own part only. */
void segment_release(struct segment *segment);

/* Is @kind one of enum segment_kind that a process may ask for? */
bool segment_kind_is_known(uint32_t kind);

/* Whose account pays: a device, or HCCLD_DEVICES_MAX for host memory. */
uint32_t segment_device(const struct context *context, enum segment_kind kind);

/*
 * Makes @memory, which is charged already, known to store, registry and engine; taken on success.
 * -EDQUOT: too many segments; -EUSERS: the tenant may not have more descriptors.
 */
int segment_new(struct context *context, enum segment_kind kind, struct segment_memory *memory,
		struct segment **ret_segment);
/* The same for the HCCL buffer of @rank: @memory is not charged. By lazy_new(). */
int segment_new_lazy(struct rank *rank, struct segment_memory *memory, struct segment **ret_segment);
/* Charges it too. Takes @fd. */
int segment_restore(struct context *context, uint32_t index, int fd);
/* Into the tables of session and engine: the last step of making a segment of any kind. */
void segment_publish(struct segment *segment);
/* Zeroed, in no list; NULL: out of memory. */
struct segment *segment_alloc(void);
/*
 * The memory with @id that peers of the rank may map: of its context, that anybody can map, and backed. NULL: there is none.
 */
struct segment *segment_of_rank(const struct rank *rank, uint64_t id);
/* Its process needs it no more, but imports do: it stays, also after a restart, until they are gone. */
void segment_orphan(struct segment *segment);
/* The words of segment_retire() alone. */
void segment_retire_words(struct segment *segment);
/*
 * Its imports are lost, its keys void. No receive that pulls from it commits any more, also after a restart. Once, before
 * engine_segment_detach().
 */
void segment_retire(struct segment *segment);
/* Clears the view's entry: on the engine thread, after engine_segment_detach(). */
void segment_unpublish(struct segment *segment);
/* Out of store, records and accounts, and freed; its memory was released. */
void segment_remove(struct segment *segment);
/*
 * One that is not restored: its memory, of which @fd (taken) may be -1, its record and descriptor.
 */
void segment_drop(struct registry *registry, uint32_t index, int fd);
/* Memory of this process only. Takes NULL. */
struct segment *segment_free(struct segment *segment);
