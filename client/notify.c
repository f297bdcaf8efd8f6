/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies. An entry that is destroyed while another thread queues a task with it goes when that is done (`users`): its number may be
 * somebody else's then. What queued tasks name the daemon holds back itself (daemon/registry/notify.h); but an import is an entry of ours
 * in its tables, which those tasks need: it is given back when they are done.
 */
#include "client/notify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/device.h"
#include "client/error.h"
#include "client/notify_request.h"
#include "client/share_request.h"
#include "client/stream.h"
#include "client/stream_state.h"
#include "client/table.h"
#include "proto/feature.h"

#define HANDLES_SPARE 256u /* free entries that a destroyed handle stays unknown for */
#define RESET_MAX 4096u	   /* notifies in one request */

struct hccld_notify {
	bool is_alive, is_counting, is_import, is_lost;
	uint32_t users;	 /* threads that queue a task with it */
	uint32_t id;	 /* on `device` */
	uint32_t device; /* the daemon's number; of an import its owner's */
	uint32_t pid;	 /* of an import: its owner's */
	struct hccld_loss loss;
	struct hccld_context *context; /* NULL: it has ended */
	uint64_t context_id;
	struct hccld_notify_place place;
	bool has_key[2]; /* for processes that are named; for any */
	uint8_t keys[2][HCCLD_KEY_BYTES_MAX];
	struct hccld_notify *next; /* free entries; or `leaving` */
};

static struct hccld_notify notifies[NOTIFIES_MAX] HCCLD_TABLE;
/* Of all that follows. Lock order: a stream's `submitting` is not taken with it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hccld_notify *free_first, *free_last;
static uint32_t limit, free_count; /* entries below `limit` have been used */
/* Plain ones by their device's number and their id: 1 + index. */
static uint32_t *by_id[HCCLD_DEVICES_MAX];
static struct hccld_notify *leaving; /* imports that were destroyed and that queued tasks name */

/* ---- entries; all with `mutex` ---- */

static struct hccld_notify *entry_take(void)
{
	struct hccld_notify *notify;

	if ((free_count < HANDLES_SPARE && limit < NOTIFIES_MAX) || !free_first)
		return limit == NOTIFIES_MAX ? NULL : &notifies[limit++];
	notify = free_first;
	free_first = notify->next;
	if (!free_first)
		free_last = NULL;
	free_count--;
	return notify;
}

static void entry_give(struct hccld_notify *notify)
{
	notify->next = NULL;
	if (free_last)
		free_last->next = notify;
	else
		free_first = notify;
	free_last = notify;
	free_count++;
}

static bool is_open(const struct hccld_notify *notify)
{
	return notify->context && hccld_context_is_open(notify->context, notify->context_id);
}

/* Without memory it is not found by its id: nothing else depends on it. */
static void id_set(const struct hccld_notify *notify)
{
	uint32_t **table = &by_id[notify->device];

	if (notify->is_counting)
		return;
	if (!*table)
		*table = calloc(HCCLD_NOTIFIES_MAX, sizeof(**table));
	if (*table)
		(*table)[notify->id] = 1 + (uint32_t)(notify - notifies);
}

static void id_clear(const struct hccld_notify *notify)
{
	uint32_t *table = by_id[notify->device];

	if (table && table[notify->id] == 1 + (uint32_t)(notify - notifies))
		table[notify->id] = 0;
}

/* Locks `mutex` if it returns 0. */
static int notify_lock(struct hccld_notify_handle which, struct hccld_notify **ret_notify)
{
	const char *kind = which.is_counting ? "counting notify" : "notify";
	uintptr_t distance = (uintptr_t)which.handle - (uintptr_t)notifies;
	struct hccld_notify *notify;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	if (distance >= sizeof(notifies) || distance % sizeof(notifies[0]))
		return hccld_error(CAUSE_BAD_HANDLE, "%s is %p: that is no %s of this process", kind, which.handle, kind);
	notify = &notifies[distance / sizeof(notifies[0])];
	pthread_mutex_lock(&mutex);
	if (notify->is_alive && notify->is_counting == which.is_counting) {
		*ret_notify = notify;
		return 0;
	}
	r = notify->is_alive;
	pthread_mutex_unlock(&mutex);
	return hccld_error(CAUSE_BAD_HANDLE,
			   !r ? "%s is %p: it was destroyed, or never was one"
			   : which.is_counting
				   ? "%s is %p: that is a notify of the other kind, of aclrtCreateNotify; expected one of aclrtCntNotifyCreate"
				   : "%s is %p: that is a notify of the other kind, of aclrtCntNotifyCreate; expected one of aclrtCreateNotify",
			   kind, which.handle);
}

static int lost_error(const struct hccld_notify *notify)
{
	char how[96];

	loss_text(notify->loss.kind, notify->loss.exit, "destroyed", how, sizeof(how));
	return hccld_error(CAUSE_PEER_MEMORY, "the notify was imported from pid %u, which %s", notify->pid, how);
}

/* The same for one that can be used. */
static int notify_lock_open(struct hccld_notify_handle which, struct hccld_notify **ret_notify)
{
	struct hccld_notify *notify = NULL;
	int r;

	hccld_share_refresh();
	r = notify_lock(which, &notify);
	if (r < 0)
		return r;
	if (!is_open(notify))
		r = hccld_error(CAUSE_BAD_HANDLE, "the notify has ended with its device, which was reset");
	else if (notify->is_lost)
		r = lost_error(notify);
	if (r < 0)
		pthread_mutex_unlock(&mutex);
	else
		*ret_notify = notify;
	return r;
}

static int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/* ---- imports that queued tasks name ---- */

/* Takes one out of the list that is not named any more; NULL: none. */
static struct hccld_notify *leaving_take(void)
{
	struct hccld_notify **at = &leaving, *notify;

	pthread_mutex_lock(&mutex);
	while (*at && is_open(*at) && hccld_notify_is_queued((*at)->place.segment))
		at = &(*at)->next;
	notify = *at;
	if (notify)
		*at = notify->next;
	pthread_mutex_unlock(&mutex);
	return notify;
}

static void leaving_settle(void)
{
	struct hccld_notify *notify;

	while ((notify = leaving_take())) {
		if (is_open(notify))
			hccld_notify_request_give_back(notify->place.segment);
		pthread_mutex_lock(&mutex);
		entry_give(notify);
		pthread_mutex_unlock(&mutex);
	}
}

/* ---- made and destroyed ---- */

/* Takes an entry for what the daemon has granted. NULL: none is left. */
static struct hccld_notify *notify_enter(const struct hccld_notify *content)
{
	struct hccld_notify *notify;

	pthread_mutex_lock(&mutex);
	notify = entry_take();
	if (notify) {
		*notify = *content;
		notify->is_alive = true;
		id_set(notify);
	}
	pthread_mutex_unlock(&mutex);
	return notify;
}

static int too_many(void)
{
	return hccld_error(CAUSE_NOTIFIES, "this process has %u notifies, the most it can have", NOTIFIES_MAX);
}

int hccld_notify_new(struct hccld_context *context, bool is_counting, void **ret_handle)
{
	struct hccld_notify notify = { .is_counting = is_counting, .device = context->device, .context = context };
	struct hccld_session *session;
	int cancel, r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "notifies", &session);
	if (r < 0)
		return r;
	cancel = cancel_off();
	leaving_settle();
	notify.context_id = context->id;
	r = hccld_notify_request_new(context, is_counting, &notify.place.segment, &notify.id);
	if (r == 0 && notify.id >= HCCLD_NOTIFIES_MAX)
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to a request for notifies is malformed");
	if (r == 0) {
		notify.place.offset = notify.id * sizeof(struct notify_slot);
		*ret_handle = notify_enter(&notify);
		if (!*ret_handle) {
			(void)hccld_notify_request_free(notify.context_id, notify.id);
			r = too_many();
		}
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

/* It is no longer alive, and nobody queues tasks with it. */
static int notify_finish(struct hccld_notify *notify)
{
	int r = 0;

	if (notify->is_import) {
		pthread_mutex_lock(&mutex);
		notify->next = leaving;
		leaving = notify;
		pthread_mutex_unlock(&mutex);
		leaving_settle();
		return 0;
	}
	if (is_open(notify))
		r = hccld_notify_request_free(notify->context_id, notify->id);
	/* the device was reset meanwhile, and took it along */
	if (r < 0 && !is_open(notify)) {
		hccld_error_forget();
		r = 0;
	}
	pthread_mutex_lock(&mutex);
	entry_give(notify);
	pthread_mutex_unlock(&mutex);
	return r;
}

int hccld_notify_destroy(struct hccld_notify_handle which)
{
	struct hccld_notify *notify = NULL;
	bool is_used;
	int cancel, r;

	r = notify_lock(which, &notify);
	if (r < 0)
		return r;
	notify->is_alive = false;
	id_clear(notify);
	is_used = notify->users > 0;
	pthread_mutex_unlock(&mutex);
	if (is_used)
		return 0;
	cancel = cancel_off();
	r = notify_finish(notify);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

void hccld_notify_forget(struct hccld_context *context)
{
	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < limit; i++) {
		if (notifies[i].context != context)
			continue;
		id_clear(&notifies[i]);
		notifies[i].context = NULL;
	}
	pthread_mutex_unlock(&mutex);
}

void hccld_notify_lose(uint64_t segment, struct hccld_loss loss)
{
	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < limit; i++) {
		struct hccld_notify *notify = &notifies[i];

		if (!notify->is_alive || !notify->is_import || notify->is_lost || notify->place.segment != segment)
			continue;
		notify->is_lost = true;
		notify->loss = loss;
	}
	pthread_mutex_unlock(&mutex);
}

/* ---- tasks ---- */

/* Ends with use_end(). */
static int use_begin(struct hccld_notify_handle which, struct hccld_notify **ret_notify, struct hccld_notify_place *ret_place)
{
	int r = notify_lock_open(which, ret_notify);

	if (r < 0)
		return r;
	(*ret_notify)->users++;
	*ret_place = (*ret_notify)->place;
	pthread_mutex_unlock(&mutex);
	return 0;
}

static void use_end(struct hccld_notify *notify)
{
	bool is_last;

	pthread_mutex_lock(&mutex);
	is_last = --notify->users == 0 && !notify->is_alive;
	pthread_mutex_unlock(&mutex);
	if (is_last)
		(void)notify_finish(notify);
}

int hccld_notify_record(struct hccld_notify_handle which, void *stream_handle, enum notify_change change, uint32_t value)
{
	struct hccld_notify_place place;
	struct hccld_notify *notify = NULL;
	struct hccld_stream *stream;
	int cancel, r;

	cancel = cancel_off();
	r = use_begin(which, &notify, &place);
	if (r == 0) {
		r = hccld_stream_get(stream_handle, &stream);
		if (r == 0)
			r = hccld_notify_submit_record(stream, &place, change, value);
		use_end(notify);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

static uint32_t timeout_ms(uint32_t seconds)
{
	if (seconds == UINT32_MAX)
		return 0;
	return seconds > UINT32_MAX / 1000 ? UINT32_MAX : seconds * 1000;
}

int hccld_notify_wait(struct hccld_notify_handle which, void *stream_handle, const struct hccld_notify_condition *condition)
{
	struct hccld_notify_place place;
	struct hccld_notify *notify = NULL;
	struct hccld_stream *stream;
	int cancel, r;

	cancel = cancel_off();
	r = use_begin(which, &notify, &place);
	if (r == 0) {
		r = hccld_stream_get(stream_handle, &stream);
		if (r == 0)
			r = hccld_notify_submit_wait(stream, &place, condition->compare, condition->operand, condition->mask,
						     condition->clears, timeout_ms(condition->timeout_s));
		use_end(notify);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_notify_id(struct hccld_notify_handle which, uint32_t *ret_id)
{
	struct hccld_notify *notify = NULL;
	int r = notify_lock(which, &notify);

	if (r < 0)
		return r;
	*ret_id = notify->id;
	pthread_mutex_unlock(&mutex);
	return 0;
}

int hccld_notify_place_by_id(struct hccld_context *context, uint32_t id, struct hccld_notify_place *ret_place)
{
	const uint32_t *table;
	const struct hccld_notify *notify;
	int r = -ENOENT;

	hccld_share_refresh();
	pthread_mutex_lock(&mutex);
	table = by_id[context->device];
	if (table && id < HCCLD_NOTIFIES_MAX && table[id]) {
		notify = &notifies[table[id] - 1];
		r = notify->is_lost ? lost_error(notify) : 0;
		*ret_place = notify->place;
	}
	pthread_mutex_unlock(&mutex);
	return r;
}

/* ---- values ---- */

static int reset_check(void *handle, struct hccld_notify **ret_notify)
{
	int r = notify_lock_open((struct hccld_notify_handle){ handle, false }, ret_notify);

	if (r < 0)
		return r;
	r = (*ret_notify)->is_import;
	pthread_mutex_unlock(&mutex);
	return r ? hccld_error(CAUSE_ARGUMENT, "a notify that was imported can be reset only by the process that made it") : 0;
}

/* Those of @found from *@at on that are in one context. */
static int reset_some(struct hccld_notify *const *found, size_t count, size_t *at, uint32_t *ids)
{
	const uint64_t context = found[*at]->context_id;
	size_t some = 0;

	for (; *at < count && some < RESET_MAX && found[*at]->context_id == context; (*at)++)
		ids[some++] = found[*at]->id;
	return hccld_notify_request_reset(context, ids, some);
}

int hccld_notify_reset(void *const *handles, size_t count)
{
	struct hccld_notify **found = calloc(count, sizeof(struct hccld_notify *));
	uint32_t *ids = calloc(RESET_MAX, sizeof(*ids));
	int cancel = cancel_off(), r = 0;

	if (!found || !ids)
		r = hccld_error(CAUSE_HOST_MEMORY, "no memory to reset %zu notifies", count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = reset_check(handles[i], &found[i]);
	for (size_t i = 0; r == 0 && i < count;)
		r = reset_some(found, count, &i, ids);
	free(found);
	free(ids);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

/* ---- shared with other processes ---- */

/* The key that another thread has got meanwhile, or this one. */
static void key_keep(struct hccld_notify *notify, bool any_process, uint8_t *key)
{
	pthread_mutex_lock(&mutex);
	if (notify->has_key[any_process]) {
		memcpy(key, notify->keys[any_process], HCCLD_KEY_BYTES_MAX);
	} else {
		memcpy(notify->keys[any_process], key, HCCLD_KEY_BYTES_MAX);
		notify->has_key[any_process] = true;
	}
	pthread_mutex_unlock(&mutex);
}

int hccld_notify_export(void *handle, bool any_process, char ret_key[HCCLD_KEY_TEXT])
{
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct hccld_notify_place place;
	struct hccld_notify *notify = NULL;
	bool has_key, is_import;
	int cancel = cancel_off(), r;

	r = use_begin((struct hccld_notify_handle){ handle, false }, &notify, &place);
	if (r == 0) {
		pthread_mutex_lock(&mutex);
		has_key = notify->has_key[any_process];
		is_import = notify->is_import;
		memcpy(key, notify->keys[any_process], sizeof(key));
		pthread_mutex_unlock(&mutex);
		if (is_import)
			r = hccld_error(CAUSE_ARGUMENT, "a notify that was imported can be exported only by the process that made it");
		else if (!has_key)
			r = hccld_share_request_export(place.segment, place.offset, sizeof(struct notify_slot), any_process, key,
						       sizeof(key));
		if (r == 0) {
			key_keep(notify, any_process, key);
			hccld_share_key_format(key, ret_key);
		}
		use_end(notify);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_notify_allow(void *handle, const int32_t *pids, size_t count)
{
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct hccld_notify *notify = NULL;
	bool has_key;
	int r;

	r = notify_lock_open((struct hccld_notify_handle){ handle, false }, &notify);
	if (r < 0)
		return r;
	has_key = notify->has_key[0];
	memcpy(key, notify->keys[0], sizeof(key));
	pthread_mutex_unlock(&mutex);
	if (!has_key)
		return hccld_error(CAUSE_ARGUMENT,
				   "the notify has no key whose importers are named: call aclrtNotifyGetExportKey with ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT before");
	return hccld_share_allow_key(key, sizeof(key), pids, count);
}

int hccld_notify_import(const char *text, void **ret_handle)
{
	struct hccld_notify notify = { .is_import = true };
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct hccld_notify_import import;
	struct hccld_session *session;
	int cancel, r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "notifies", &session);
	if (r == 0)
		r = hccld_context_current(&notify.context);
	if (r == 0)
		r = hccld_share_key_parse("aclrtNotifyGetExportKey", text, key);
	if (r < 0)
		return r;
	cancel = cancel_off();
	leaving_settle();
	notify.context_id = notify.context->id;
	r = hccld_notify_request_import(notify.context, key, &import);
	if (r == 0) {
		notify.id = (uint32_t)(import.offset / sizeof(struct notify_slot)) % HCCLD_NOTIFIES_MAX;
		notify.device = import.device % HCCLD_DEVICES_MAX;
		notify.pid = import.pid;
		notify.place.segment = import.segment;
		*ret_handle = notify_enter(&notify);
		if (!*ret_handle) {
			hccld_notify_request_give_back(import.segment);
			r = too_many();
		}
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}
