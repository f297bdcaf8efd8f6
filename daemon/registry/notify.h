/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies (proto/notify.h): ranges of ids of a device's budget, handed out to contexts. Control thread.
 *
 * An id's place is in its context's segment of kind NOTIFY, at id * 64. So an id that goes from one context to another takes another
 * place, and what still names the old one cannot reach the new owner. What is left is an id that the same context gets again:
 *
 *   - Others reach a place by imports. Those are lost when the range is closed (`retired` of their entries), and the engine has made a
 *     pass before the range is settled: nobody is in the middle of a task with the old address.
 *   - Streams of the session itself may have tasks queued that name the place. They stay, and are done: a closed range is freed when no
 *     queued task of the session names an id of it. That is found out by looking at the rings, whenever the context or its device needs
 *     ids, so nothing has to be remembered over a restart. Rings that take long are not looked at each time. A client that queues more of them, or hides them in a side buffer, harms
 *     notifies of its own.
 *
 * Waits among them could be for ever: when a range of a thread or channel is closed its places say so (`failed`), and waits that find nothing
 * end. One of the program is looked at from time to time (control/notifies.h) until no record of it can come any more; then it says so, too.
 *
 * A place is zeroed when its id is handed out, before the record that says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/limits.h"
#include "proto/notify.h"
#include "proto/status.h"

struct context;
struct registry;
struct segment;
struct session;
struct text;

enum notify_purpose {
	NOTIFY_PLAIN = 0, /* as in control.proto */
	NOTIFY_COUNTING = 1,
	NOTIFY_OF_THREAD = 2,
	NOTIFY_OF_CHANNEL = 3,
};

/* Pages of places for the largest budget. */
#define NOTIFY_PAGES (HCCLD_NOTIFIES_MAX * sizeof(struct notify_slot) / NOTIFY_PAGE)

/* Of a context. */
struct notify_table {
	struct list ranges;
	struct segment *segment;   /* NULL: it never had any; not to be touched once the context is closed */
	struct notifies **owners;  /* [HCCLD_NOTIFIES_MAX] by id; sparse; with the segment */
	uint32_t settled_count;	   /* of ranges */
	uint32_t undecided_count;  /* of them, that may have waits for which no record can come */
	bool has_closed;	   /* a range since the last notifies_lose() */
	_Atomic uint64_t pages[NOTIFY_PAGES / 64]; /* of the segment, that are backed and charged: the engine touches no others */
};

/* Ids first, first + 1, ... that were handed out together. */
struct notifies {
	struct list link; /* context->notifies.ranges */
	struct context *context;
	uint32_t first, count;
	enum notify_purpose purpose;
	uint64_t request; /* id of the request that made it: it may come again */
	uint32_t part;	  /* of that request, which may make several */
	uint32_t record;
	bool is_closing; /* no one may begin to use it */
	bool is_settled; /* closing, and the engine has made a pass since */
	bool may_have_waits; /* settled, and not failed: somebody may wait for it for ever */
	uint64_t changes; /* of its values, before notifies_look() looks at the rings */
};

struct notifies_wish {
	uint32_t count; /* 1.. */
	enum notify_purpose purpose;
	uint64_t request; /* with `part`: what it has got already, before the daemon was restarted, it gets again */
	uint32_t part;
};

/*
 * With values 0. -ENOSPC: the device has no more in a row; -EUSERS: the tenant may not have more, or their memory; -EDQUOT: segments,
 * descriptors or records are used up; others from backing memory.
 */
int notifies_new(struct context *context, const struct notifies_wish *wish, struct notifies **ret_notifies);
/* The range that begins with @first, or NULL; one that is closing, too. */
struct notifies *notifies_find(struct context *context, uint32_t first);
/* The range that @id is in, if it is open, or NULL. */
struct notifies *notifies_of(struct context *context, uint32_t id);
/* Do [@offset, @offset + @bytes) of the context's notify segment hold places of one open range, and nothing else? */
bool notifies_are_at(struct context *context, uint64_t offset, uint64_t bytes);
/*
 * Once; then notifies_lose(), before the engine makes a pass. Waits for those of threads and channels end: who would record them goes, too.
 * Those of notifies of the program do so by notifies_collect().
 */
void notifies_close(struct notifies *notifies);
/* Imports and keys of all that are closed are void: one look at them, however many are closed. */
void notifies_lose(struct context *context);
/* The engine has made a pass since notifies_close(): notifies_collect() may free them. */
void notifies_free(struct notifies *notifies);
/*
 * Frees what the session has closed, on any device, and no queued task names any more; of what is, waits for which no record can come end: registry->failed_notifies
 * says that the engine is to ring who waits. A look that took long not long ago is left out.
 */
void notifies_collect(struct session *session);
/* The same in any case. */
void notifies_look(struct session *session);
/* Of a context that goes, after its memory. */
void notifies_drop_all(struct context *context);
/* Memory of this process only; with that of the table. */
void notifies_forget(struct context *context);
/* After a restart: @segment is the context's. *@ret_bytes: what is backed of it. -ENOMEM. */
int notifies_adopt(struct context *context, struct segment *segment, uint64_t *ret_bytes);
/* After segments and imports. -ENOENT: they were going with their context; -EPROTO: the record does not fit the rest. */
int notifies_restore(struct context *context, uint32_t index);

/* Nobody will record them any more: waits end with @cause. The caller has the engine ring who waits. */
void notifies_fail(const struct notifies *notifies, enum cause cause);
/* ---- for notify_look.c ---- */

struct notifies *notifies_owner(const struct context *context, uint32_t id); /* closing ones, too; NULL: none */
/* Nobody names it any more: out of records and counts, and freed. */
void notifies_end(struct notifies *notifies);
void notifies_set_decided(struct notifies *notifies);

/* Of @id, which is in a range. */
struct notify_slot *notify_slot_at(struct context *context, uint32_t id);

/* "device 0: 100 of 100 notifies used, 3 asked; most are held by pid 4711 train (60), ...; raise [devices] notifies_per_device; ..." */
void notifies_describe(const struct registry *registry, uint32_t device, uint32_t asked, struct text *text);
