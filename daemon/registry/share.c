/* SPDX-License-Identifier: Apache-2.0 */
/* Exports and imports of memory. */
#include "registry/share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "proto/cleanup.h"
#include "proto/notify.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/quota.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

/* The key of the registry's map: the first eight bytes. Zero stands for nothing there. */
static uint64_t key_id(const void *key)
{
	uint64_t id;

	memcpy(&id, key, sizeof(id));
	return id;
}

/* ---- exports ---- */

static struct registry *export_registry(const struct export *export)
{
	return export->segment->context->session->registry;
}

static struct record_export *export_record(const struct export *export)
{
	return records_get(export_registry(export)->records, RECORD_EXPORT, export->record);
}

static struct export *export_make(struct segment *segment, const struct record_export *record)
{
	struct export *export = calloc(1, sizeof(*export));

	if (!export)
		return NULL;
	list_init(&export->link);
	export->segment = segment;
	export->offset = record->offset;
	export->bytes = record->bytes;
	export->request = record->request;
	export->any_process = record->any_process;
	export->key_bytes = record->key_bytes;
	memcpy(export->key, record->key, sizeof(export->key));
	return export;
}

static int export_publish(struct export *export)
{
	int r = idmap_set(&export_registry(export)->export_keys, key_id(export->key), export);

	if (r < 0)
		return r;
	list_append(&export->segment->exports, &export->link);
	export->segment->context->session->export_count++;
	export->segment->context->session->quota->exports++;
	return 0;
}

/* A key that nobody has. */
static int key_new(const struct registry *registry, unsigned char *key, size_t bytes)
{
	do {
		if (getrandom(key, bytes, 0) != (ssize_t)bytes) {
			log_error("getrandom failed: %s", strerror(errno));
			return -ENOTRECOVERABLE;
		}
	} while (!key_id(key) || idmap_get(&registry->export_keys, key_id(key)));
	return 0;
}

int export_new(struct segment *segment, uint64_t offset, uint64_t bytes, uint32_t key_bytes,
	       bool any_process, uint64_t request, struct export **ret_export)
{
	CLEANUP(freep) struct export *export = NULL;
	struct session *session = segment->context->session;
	struct registry *registry = session->registry;
	struct record_export record = { .session = session->view.id,
					.segment = segment->id,
					.offset = offset,
					.bytes = bytes,
					.request = request,
					.key_bytes = key_bytes,
					.any_process = any_process };
	int r;

	if (session->export_count >= HCCLD_EXPORTS_PER_SESSION)
		return -EDQUOT;
	if (session->quota->exports >= HCCLD_EXPORTS_PER_USER)
		return -EUSERS;
	r = key_new(registry, record.key, key_bytes);
	if (r < 0)
		return r;
	export = export_make(segment, &record);
	if (!export)
		return -ENOMEM;
	r = records_add(registry->records, RECORD_EXPORT, &record, &export->record);
	if (r < 0)
		return r;
	r = export_publish(export);
	if (r < 0) {
		records_remove(registry->records, RECORD_EXPORT, export->record);
		return r;
	}
	*ret_export = take_ptr(&export);
	return 0;
}

struct export *export_find(const struct registry *registry, const void *key, size_t key_bytes)
{
	struct export *export;
	unsigned char difference = 0;

	if (key_bytes < sizeof(uint64_t) || key_bytes > HCCLD_KEY_BYTES_MAX || !key_id(key))
		return NULL;
	export = idmap_get(&registry->export_keys, key_id(key));
	if (!export || export->key_bytes != key_bytes)
		return NULL;
	/* how long it takes says nothing about the key */
	for (size_t i = 0; i < key_bytes; i++)
		difference |= export->key[i] ^ ((const unsigned char *)key)[i];
	return difference ? NULL : export;
}

bool export_allows(const struct export *export, int32_t pid)
{
	const struct record_export *record = export_record(export);

	if (export->any_process)
		return true;
	for (uint32_t i = 0; i < record->pid_count && i < HCCLD_EXPORT_PIDS_MAX; i++)
		if (record->pids[i] == pid)
			return true;
	return false;
}

int export_allow(struct export *export, const int32_t *pids, size_t count)
{
	struct record_export *record = export_record(export);
	uint32_t used = record->pid_count;

	for (size_t i = 0; i < count; i++) {
		uint32_t at = 0;

		while (at < used && record->pids[at] != pids[i])
			at++;
		if (at < used)
			continue;
		if (used == HCCLD_EXPORT_PIDS_MAX)
			return -EDQUOT;
		record->pids[used++] = pids[i];
	}
	/* the pids before their number: the next process finds all of them or none */
	atomic_store_explicit(&record->pid_count, used, memory_order_release);
	return 0;
}

void export_end(struct export *export)
{
	struct registry *registry = export_registry(export);

	records_remove(registry->records, RECORD_EXPORT, export->record);
	idmap_remove(&registry->export_keys, key_id(export->key));
	export->segment->context->session->export_count--;
	export->segment->context->session->quota->exports--;
	list_remove(&export->link);
	free(export);
}

/* The segment that a record names; NULL: it is gone or going. */
static struct segment *segment_find(struct registry *registry, uint64_t session_id, uint64_t id)
{
	struct session *session = idmap_get(&registry->session_ids, session_id);

	return session ? session_segment(session, id) : NULL;
}

int export_restore(struct registry *registry, uint32_t index)
{
	const struct record_export *record = records_get(registry->records, RECORD_EXPORT, index);
	CLEANUP(freep) struct export *export = NULL;
	struct segment *segment;
	int r;

	assert(record);
	segment = segment_find(registry, record->session, record->segment);
	if (!segment || segment->is_import)
		return -ENOENT;
	if (!key_id(record->key) || record->key_bytes > HCCLD_KEY_BYTES_MAX ||
	    record->bytes > segment->memory.bytes ||
	    record->offset > segment->memory.bytes - record->bytes)
		return -EPROTO;
	export = export_make(segment, record);
	if (!export)
		return -ENOMEM;
	export->record = index;
	r = export_publish(export);
	if (r < 0)
		return r;
	take_ptr(&export);
	return 0;
}

/* ---- imports ---- */

static struct segment *import_make(struct context *context, const struct record_import *record)
{
	struct segment *import = segment_alloc();

	if (!import)
		return NULL;
	import->context = context;
	import->id = record->id;
	import->kind = (enum segment_kind)(record->kind & ~IMPORT_OF_CHANNEL);
	import->is_import = true;
	import->offset = record->offset;
	if (record->kind & IMPORT_OF_CHANNEL) {
		import->channel = record->export_id;
		import->position = (uint32_t)record->request;
	} else {
		import->export_id = record->export_id;
		import->request = record->request;
	}
	import->memory = (struct segment_memory){ .fd = -1, .bytes = record->bytes };
	return import;
}

/* @record: how it came, and the part. */
static int import_add(struct context *context, struct segment *origin, struct record_import *record,
		      struct segment **ret_import)
{
	struct session *session = context->session;
	struct segment *import;
	uint32_t index;
	int r;

	if (session->quota->imports >= HCCLD_IMPORTS_PER_USER)
		return -EUSERS;
	if (slots_take(&session->segment_slots, &index) < 0)
		return -EDQUOT;
	record->session = session->view.id;
	record->context = context->id;
	record->origin_session = origin->context->session->view.id;
	record->origin = origin->id;
	record->id = session_next_id(session, index);
	import = import_make(context, record);
	r = import ? records_add(session->registry->records, RECORD_IMPORT, record,
				 &import->record) :
		     -ENOMEM;
	if (r < 0) {
		free(import);
		slots_give(&session->segment_slots, index);
		return r;
	}
	import->origin = origin;
	list_append(&origin->imports, &import->import_link);
	session->quota->imports++;
	segment_publish(import);
	*ret_import = import;
	return 0;
}

int import_new(struct context *context, struct export *export, uint64_t request,
	       struct segment **ret_import)
{
	struct record_import record = { .export_id = key_id(export->key),
					.offset = export->offset,
					.bytes = export->bytes,
					.request = request,
					.kind = export->segment->kind };

	return import_add(context, export->segment, &record, ret_import);
}

int import_new_of_channel(struct context *context, struct segment *origin, uint64_t offset,
			  uint64_t bytes, uint64_t channel, uint32_t position,
			  struct segment **ret_import)
{
	struct record_import record = { .export_id = channel,
					.offset = offset,
					.bytes = bytes,
					.request = position,
					.kind = origin->kind | IMPORT_OF_CHANNEL };

	return import_add(context, origin, &record, ret_import);
}

/* For tasks that find it lost; before the word that says so. */
static void import_say_loss(struct segment *import, enum loss loss)
{
	struct view_segment *view = &import->context->session->view.segments[VIEW_INDEX(import->id)];
	const struct session *owner = import->origin ? import->origin->context->session : NULL;

	/* one that was found lost after a restart is nobody's any more */
	import->loss = owner ? loss : LOSS_UNKNOWN;
	import->loss_pid = owner ? owner->view.pid : 0;
	import->loss_exit = owner && loss == LOSS_ENDED ? owner->exit : -1;
	view->loss = (uint8_t)import->loss;
	view->loss_pid = import->loss_pid;
	view->loss_exit = import->loss_exit;
}

/* Why what others have of @segment is lost: it goes. */
static enum loss loss_of(const struct segment *segment)
{
	const struct context *context = segment->context;

	if (context->session->is_ending)
		return LOSS_ENDED;
	if (context->session->contexts[context->device] != context)
		return LOSS_RESET;
	/* an HCCL buffer goes with its rank alone */
	return segment->rank ? LOSS_LEFT : LOSS_FREED;
}

void import_lose(struct segment *import, enum loss loss)
{
	struct session *session = import->context->session;
	struct session_region *region = session->view.region;

	import_say_loss(import, loss);
	import_unlink(import);
	import->is_lost = true;
	segment_retire_words(import);
	/* release: who sees the count finds the segment in the answer to ListLost */
	atomic_fetch_add_explicit(&region->lost_imports, 1, memory_order_release);
}

int import_restore(struct registry *registry, uint32_t index)
{
	const struct record_import *record = records_get(registry->records, RECORD_IMPORT, index);
	struct session *session;
	struct context *context;
	struct segment *origin, *import;
	uint32_t kind;

	assert(record);
	session = idmap_get(&registry->session_ids, record->session);
	context = session ? session_context(session, record->context) : NULL;
	if (!context || record->state == IMPORT_CLOSING)
		return -ENOENT;
	kind = record->kind & ~IMPORT_OF_CHANNEL;
	if ((kind > SEGMENT_HOST && kind != NOTIFY_SEGMENT_KIND) ||
	    VIEW_INDEX(record->id) >= HCCLD_SEGMENTS_PER_SESSION)
		return -EPROTO;
	origin = record->state == IMPORT_LOST ?
			 NULL :
			 segment_find(registry, record->origin_session, record->origin);
	if (origin && (origin->is_import || record->bytes > origin->memory.bytes ||
		       record->offset > origin->memory.bytes - record->bytes))
		return -EPROTO;
	import = import_make(context, record);
	if (!import)
		return -ENOMEM;
	if (slots_take_at(&session->segment_slots, VIEW_INDEX(record->id)) < 0) {
		free(import);
		return -EPROTO;
	}
	import->record = index;
	import->origin = origin;
	if (origin)
		list_append(&origin->imports, &import->import_link);
	session->quota->imports++;
	segment_publish(import);
	if (!origin)
		import_lose(import, LOSS_UNKNOWN);
	return 0;
}

void import_unlink(struct segment *import)
{
	import->origin = NULL;
	list_remove(&import->import_link);
}

void share_end(struct segment *segment)
{
	list_for_each(struct export, export, &segment->exports, link)
		export_end(export);
	list_for_each(struct segment, import, &segment->imports, import_link)
		import_lose(import, loss_of(segment));
}

void share_end_notifies(struct segment *segment)
{
	struct context *context = segment->context;

	/* each is of places of one range */
	list_for_each(struct export, export, &segment->exports, link)
		if (!notifies_of(context, (uint32_t)(export->offset / sizeof(struct notify_slot))))
			export_end(export);
	list_for_each(struct segment, import, &segment->imports, import_link)
		if (!notifies_of(context, (uint32_t)(import->offset / sizeof(struct notify_slot))))
			import_lose(import, loss_of(segment));
}

void share_lose(const struct export *export)
{
	list_for_each(struct segment, import, &export->segment->imports, import_link)
		if (!import->channel && import->export_id == key_id(export->key))
			import_lose(import, LOSS_FREED);
}
