/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies: ids, their places, and what keeps an id. */
#include "registry/notify.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/memfd.h"
#include "base/text.h"
#include "proto/cleanup.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/share.h"

#define PAGE NOTIFY_PAGE
#define PLACE sizeof(struct notify_slot)
#define OWNERS_BYTES (HCCLD_NOTIFIES_MAX * sizeof(struct notifies *))
#define TOP 3
#define COLLECT_NS 20000000u /* for contexts of others: those that take long are left out the next time */

static struct device *device_of(const struct context *context)
{
	return &context->session->registry->devices[context->device];
}

/* ---- ids ---- */

/* The lowest @count ids in a row below @limit that nobody has. -ENOSPC. */
static int ids_find(const struct device *device, uint32_t limit, uint32_t count, uint32_t *ret_first)
{
	uint32_t run = 0;

	for (uint32_t id = 0; id < limit; id++) {
		if (id % 64 == 0 && device->notify_bits[id / 64] == UINT64_MAX) {
			run = 0;
			id += 63;
			continue;
		}
		run = bits_get(device->notify_bits, id) ? 0 : run + 1;
		if (run == count) {
			*ret_first = id + 1 - count;
			return 0;
		}
	}
	return -ENOSPC;
}

static void ids_take(struct device *device, uint32_t first, uint32_t count)
{
	for (uint32_t id = first; id < first + count; id++)
		bits_set(device->notify_bits, id);
	device->notifies += count;
}

static void ids_give(struct device *device, uint32_t first, uint32_t count)
{
	for (uint32_t id = first; id < first + count; id++)
		bits_clear(device->notify_bits, id);
	device->notifies -= count;
}

/* ---- places ---- */

struct notify_slot *notify_slot_at(struct context *context, uint32_t id)
{
	return (struct notify_slot *)context->notifies.segment->memory.base + id;
}

/* -ENOMEM */
static int owners_make(struct context *context)
{
	void *base;
	int r = sparse_new(OWNERS_BYTES, &base);

	if (r == 0)
		context->notifies.owners = base;
	return r;
}

/* As large as the device's budget. -EUSERS, -EDQUOT as of segment_new(). */
static int segment_make(struct context *context)
{
	uint64_t bytes = context->session->registry->notifies_per_device * PLACE;
	struct segment_memory memory;
	int r;

	r = context->notifies.owners ? 0 : owners_make(context);
	if (r < 0)
		return r;
	r = segment_memory_new_sparse((bytes + PAGE - 1) / PAGE * PAGE, &memory);
	if (r < 0)
		return r;
	r = segment_new(context, SEGMENT_NOTIFY, &memory, &context->notifies.segment);
	if (r < 0)
		segment_memory_release(&memory);
	return r;
}

static bool page_is_backed(const struct context *context, uint32_t page)
{
	return atomic_load_explicit(&context->notifies.pages[page / 64], memory_order_relaxed) >> (page % 64) & 1;
}

static void page_set_backed(struct context *context, uint64_t page)
{
	/* release: the engine finds it backed */
	atomic_fetch_or_explicit(&context->notifies.pages[page / 64], 1ull << (page % 64), memory_order_release);
}

/* The page is backed, and charged. */
static int page_back(struct context *context, uint32_t page)
{
	struct segment *segment = context->notifies.segment;
	uint32_t device = segment_device(context, SEGMENT_NOTIFY);
	int r;

	if (page_is_backed(context, page))
		return 0;
	r = session_charge(context->session, device, PAGE);
	if (r < 0)
		return r == -EDQUOT ? -ENOBUFS : r;
	r = memfd_back(segment->memory.fd, (uint64_t)page * PAGE, PAGE);
	if (r < 0) {
		session_refund(context->session, device, PAGE);
		return r;
	}
	segment->charged += PAGE;
	page_set_backed(context, page);
	return 0;
}

static int places_prepare(struct context *context, uint32_t first, uint32_t count)
{
	uint32_t last_page = (uint32_t)((first + count - 1) * PLACE / PAGE);
	int r;

	for (uint32_t page = (uint32_t)(first * PLACE / PAGE); page <= last_page; page++) {
		r = page_back(context, page);
		if (r < 0)
			return r;
	}
	memset(notify_slot_at(context, first), 0, count * PLACE);
	return 0;
}

/* ---- ranges ---- */

static struct notifies *notifies_make(struct context *context, const struct record_notifies *record, uint32_t index)
{
	struct notifies *notifies = calloc(1, sizeof(*notifies));

	if (!notifies)
		return NULL;
	list_init(&notifies->link);
	notifies->context = context;
	notifies->first = record->first;
	notifies->count = record->count;
	notifies->purpose = (enum notify_purpose)record->purpose;
	notifies->request = record->request;
	notifies->part = record->part;
	notifies->record = index;
	notifies->is_closing = notifies->is_settled = record->is_closing;
	return notifies;
}

static void set_settled(struct notifies *notifies)
{
	struct context *context = notifies->context;

	context->notifies.settled_count++;
	/* waits for others have ended when they were closed */
	notifies->may_have_waits = notifies->purpose <= NOTIFY_COUNTING;
	context->notifies.undecided_count += notifies->may_have_waits;
	context->session->registry->undecided_notifies += notifies->may_have_waits;
}

void notifies_set_decided(struct notifies *notifies)
{
	struct context *context = notifies->context;

	notifies->may_have_waits = false;
	context->notifies.undecided_count--;
	context->session->registry->undecided_notifies--;
}

static void notifies_publish(struct notifies *notifies)
{
	ids_take(device_of(notifies->context), notifies->first, notifies->count);
	for (uint32_t i = 0; i < notifies->count; i++)
		notifies->context->notifies.owners[notifies->first + i] = notifies;
	if (notifies->is_settled)
		set_settled(notifies);
	list_append(&notifies->context->notifies.ranges, &notifies->link);
}

/* What the request has got already, before the daemon was restarted. */
static struct notifies *notifies_again(struct context *context, const struct notifies_wish *wish)
{
	if (!context->session->is_restored)
		return NULL;
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		if (notifies->request == wish->request && notifies->part == wish->part && notifies->count == wish->count &&
		    notifies->purpose == wish->purpose && !notifies->is_closing)
			return notifies;
	return NULL;
}

/* Of all contexts, or as many as there is time for. */
static void collect_device(struct registry *registry, uint32_t device)
{
	uint64_t begin_ns = look_begin();

	list_for_each(struct session, session, &registry->sessions, link) {
		if (!session->contexts[device] || !session->contexts[device]->notifies.settled_count)
			continue;
		notifies_collect(session);
		if (look_begin() - begin_ns > COLLECT_NS)
			return;
	}
}

/* -ENOSPC. The segment of a context that is older than a restart may be smaller than the budget is now. */
static int ids_choose(struct context *context, uint32_t count, uint32_t *ret_first)
{
	struct registry *registry = context->session->registry;
	uint64_t places = context->notifies.segment->memory.bytes / PLACE;
	uint32_t limit = registry->notifies_per_device;

	if (places < limit)
		limit = (uint32_t)places;
	notifies_collect(context->session);
	if (ids_find(device_of(context), limit, count, ret_first) == 0)
		return 0;
	/* before a refusal, however long it takes: the turn is this user's */
	if (context->notifies.settled_count)
		notifies_look(context->session);
	collect_device(registry, context->device);
	return ids_find(device_of(context), limit, count, ret_first);
}

/* Counted for the tenant already. */
static int notifies_add(struct context *context, const struct notifies_wish *wish, struct notifies **ret_notifies)
{
	struct records *records = context->session->registry->records;
	struct record_notifies record = { .session = context->session->view.id,
					  .context = context->id,
					  .request = wish->request,
					  .count = wish->count,
					  .purpose = wish->purpose,
					  .part = wish->part };
	CLEANUP(freep) struct notifies *notifies = NULL;
	int r;

	if (!context->notifies.segment) {
		r = segment_make(context);
		if (r < 0)
			return r;
	}
	r = ids_choose(context, wish->count, &record.first);
	if (r == 0)
		r = places_prepare(context, record.first, record.count);
	if (r < 0)
		return r;
	notifies = notifies_make(context, &record, 0);
	if (!notifies)
		return -ENOMEM;
	r = records_add(records, RECORD_NOTIFIES, &record, &notifies->record);
	if (r < 0)
		return r;
	notifies_publish(notifies);
	*ret_notifies = take_ptr(&notifies);
	return 0;
}

int notifies_new(struct context *context, const struct notifies_wish *wish, struct notifies **ret_notifies)
{
	struct notifies *notifies = notifies_again(context, wish);
	int r;

	assert(wish->count);
	if (notifies) {
		*ret_notifies = notifies;
		return 0;
	}
	if (wish->count > context->session->registry->notifies_per_device)
		return -ENOSPC;
	/* what is closed may count no more */
	if (quota_is_short(context->session->quota, QUOTA_NOTIFIES, wish->count))
		for (uint32_t device = 0; device < context->session->registry->device_count; device++)
			collect_device(context->session->registry, device);
	if (session_take(context->session, QUOTA_NOTIFIES, wish->count) < 0)
		return -EUSERS;
	r = notifies_add(context, wish, ret_notifies);
	if (r < 0)
		session_give(context->session, QUOTA_NOTIFIES, wish->count);
	return r;
}

struct notifies *notifies_owner(const struct context *context, uint32_t id)
{
	return context->notifies.owners && id < HCCLD_NOTIFIES_MAX ? context->notifies.owners[id] : NULL;
}

struct notifies *notifies_find(struct context *context, uint32_t first)
{
	struct notifies *notifies = notifies_owner(context, first);

	return notifies && notifies->first == first ? notifies : NULL;
}

struct notifies *notifies_of(struct context *context, uint32_t id)
{
	struct notifies *notifies = notifies_owner(context, id);

	return notifies && !notifies->is_closing ? notifies : NULL;
}

bool notifies_are_at(struct context *context, uint64_t offset, uint64_t bytes)
{
	const struct notifies *notifies;

	if (!bytes || offset % PLACE || bytes % PLACE || offset / PLACE >= HCCLD_NOTIFIES_MAX)
		return false;
	notifies = notifies_of(context, (uint32_t)(offset / PLACE));
	return notifies && bytes / PLACE <= notifies->first + notifies->count - offset / PLACE;
}

/* ---- given back ---- */

void notifies_close(struct notifies *notifies)
{
	struct context *context = notifies->context;
	struct record_notifies *record =
		records_get(context->session->registry->records, RECORD_NOTIFIES, notifies->record);

	/* before the record: who finds it closed finds waits ended. With the context all that may wait goes, too */
	if (notifies->purpose > NOTIFY_COUNTING && context->session->contexts[context->device] == context)
		notifies_fail(notifies, CAUSE_ABORTED);
	notifies->is_closing = true;
	/* the next process finds it closed, and takes the imports away that this one has not */
	atomic_store_explicit(&record->is_closing, 1, memory_order_release);
	context->notifies.has_closed = true;
}

void notifies_lose(struct context *context)
{
	if (!context->notifies.has_closed)
		return;
	context->notifies.has_closed = false;
	share_end_notifies(context->notifies.segment);
}

/* Its record is gone, or never was. */
static void notifies_remove(struct notifies *notifies)
{
	ids_give(device_of(notifies->context), notifies->first, notifies->count);
	for (uint32_t i = 0; i < notifies->count; i++)
		notifies->context->notifies.owners[notifies->first + i] = NULL;
	notifies->context->notifies.settled_count -= notifies->is_settled;
	if (notifies->may_have_waits)
		notifies_set_decided(notifies);
	list_remove(&notifies->link);
	free(notifies);
}

void notifies_end(struct notifies *notifies)
{
	struct session *session = notifies->context->session;

	records_remove(session->registry->records, RECORD_NOTIFIES, notifies->record);
	session_give(session, QUOTA_NOTIFIES, notifies->count);
	notifies_remove(notifies);
}

void notifies_free(struct notifies *notifies)
{
	assert(notifies->is_closing);
	notifies->is_settled = true;
	set_settled(notifies);
}

void notifies_drop_all(struct context *context)
{
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		notifies_end(notifies);
	sparse_free(context->notifies.owners, OWNERS_BYTES);
}

void notifies_forget(struct context *context)
{
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		notifies_remove(notifies);
	sparse_free(context->notifies.owners, OWNERS_BYTES);
}

/* ---- after a restart ---- */

int notifies_adopt(struct context *context, struct segment *segment, uint64_t *ret_bytes)
{
	int fd = segment->memory.fd;
	off_t begin = 0, end = 0;
	uint64_t bytes = 0;
	int r;

	r = owners_make(context);
	if (r < 0)
		return r;
	context->notifies.segment = segment;
	/* one that was backed and not zeroed yet counts as a hole: it is backed again, and charged, when it is needed */
	while ((begin = lseek(fd, end, SEEK_DATA)) >= 0 && (end = lseek(fd, begin, SEEK_HOLE)) > begin)
		for (uint64_t page = (uint64_t)begin / PAGE; page < (uint64_t)end / PAGE && page < NOTIFY_PAGES; page++) {
			page_set_backed(context, page);
			bytes += PAGE;
		}
	*ret_bytes = bytes;
	return 0;
}

static bool record_fits(const struct context *context, const struct record_notifies *record)
{
	uint64_t places = context->notifies.segment->memory.bytes / PLACE;
	uint64_t end = (uint64_t)record->first + record->count;

	if (!record->count || end > places || end > HCCLD_NOTIFIES_MAX)
		return false;
	for (uint64_t id = record->first; id < end; id++)
		if (bits_get(device_of(context)->notify_bits, (uint32_t)id))
			return false;
	return true;
}

int notifies_restore(struct context *context, uint32_t index)
{
	const struct record_notifies *record =
		records_get(context->session->registry->records, RECORD_NOTIFIES, index);
	struct notifies *notifies;

	assert(record);
	if (!context->notifies.segment)
		return -ENOENT;
	if (!record_fits(context, record))
		return -EPROTO;
	notifies = notifies_make(context, record, index);
	if (!notifies)
		return -ENOMEM;
	session_take_back(context->session, QUOTA_NOTIFIES, notifies->count);
	notifies_publish(notifies);
	if (notifies->is_closing)
		notifies_close(notifies);
	return 0;
}

void notifies_fail(const struct notifies *notifies, enum cause cause)
{
	for (uint32_t i = 0; i < notifies->count; i++) {
		uint32_t none = CAUSE_NONE;

		/* the first cause is what helps */
		atomic_compare_exchange_strong_explicit(&notify_slot_at(notifies->context, notifies->first + i)->failed, &none, cause,
							memory_order_release, memory_order_relaxed);
	}
}

/* ---- words ---- */

/* How many of the device it has. */
static uint32_t notifies_held(const struct session *session, uint32_t device)
{
	uint32_t count = 0;

	if (session->contexts[device])
		list_for_each(struct notifies, notifies, &session->contexts[device]->notifies.ranges, link)
			count += notifies->count;
	return count;
}

void notifies_describe(const struct registry *registry, uint32_t device, uint32_t asked, struct text *text)
{
	const struct session *top[TOP] = { NULL };
	uint32_t held[TOP] = { 0 };

	list_for_each(struct session, session, &registry->sessions, link) {
		uint32_t count = notifies_held(session, device), at = TOP;

		while (at > 0 && count > held[at - 1])
			at--;
		for (uint32_t i = TOP - 1; count && i > at; i--) {
			top[i] = top[i - 1];
			held[i] = held[i - 1];
		}
		if (count && at < TOP) {
			top[at] = session;
			held[at] = count;
		}
	}
	text_add(text, "device %" PRIu32 ": %" PRIu32 " of %" PRIu32 " notifies used, %" PRIu32 " %s%s; ", device,
		 registry->devices[device].notifies, registry->notifies_per_device, asked,
		 asked > 1 ? "in a row asked" : "asked",
		 asked > registry->notifies_per_device ? ", which can never fit" : "");
	for (uint32_t i = 0; i < TOP && top[i]; i++)
		text_add(text, "%spid %d %s (%" PRIu32 ")", i ? ", " : "most are held by ", top[i]->view.pid, top[i]->process,
			 held[i]);
	text_add(text, "%sraise [devices] notifies_per_device; hcclctl notifies shows who holds them, hcclctl config where it is set",
		 top[0] ? "; " : "");
}
