/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports and imports of this process. `mutex` guards the lists; it is held during requests that must not cross each other for one key
 * (import, close), which wait for nobody but the daemon.
 */
#include "client/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/buffer.h"
#include "client/channel.h"
#include "client/device.h"
#include "client/error.h"
#include "client/notify.h"
#include "client/revoke.h"
#include "client/segment.h"
#include "client/share_request.h"
#include "client/virtual.h"

struct export {
	struct export *next;
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct hccld_context *context;
	const char *start;
	uint64_t bytes;
};

struct import {
	struct import *next;
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct hccld_context *context;
	struct hccld_segment segment; /* base and size: of the mapping */
	enum hccld_memory memory;
	char *start;
	uint64_t bytes;
	uint32_t count; /* calls that gave this address */
	uint32_t pid;	/* of the exporter */
	bool is_lost;
	struct hccld_loss loss;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct export *exports;
static struct import *imports;
static _Atomic uint32_t export_count;
static _Atomic uint32_t lost_seen; /* of the daemon's count */

/* ---- keys as text ---- */

void hccld_share_key_format(const uint8_t *key, char text[HCCLD_KEY_TEXT])
{
	for (uint32_t i = 0; i < HCCLD_KEY_BYTES_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
}

static int hex(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int hccld_share_key_parse(const char *maker, const char *text, uint8_t *key)
{
	for (uint32_t i = 0; i < HCCLD_KEY_BYTES_MAX; i++, text += 2) {
		if (hex(text[0]) < 0 || hex(text[1]) < 0)
			return hccld_error(
				CAUSE_ARGUMENT,
				"the key is not one that %s has written: 64 hexadecimal digits", maker);
		key[i] = (uint8_t)(hex(text[0]) << 4 | hex(text[1]));
	}
	return 0;
}

/* ---- keys of allocations ---- */

/* With `mutex`: where the export or import hangs, or NULL. */
static struct export **export_find(const uint8_t *key)
{
	for (struct export **at = &exports; *at; at = &(*at)->next)
		if (memcmp((*at)->key, key, HCCLD_KEY_BYTES_MAX) == 0)
			return at;
	return NULL;
}

static struct import **import_find(const uint8_t *key)
{
	for (struct import **at = &imports; *at; at = &(*at)->next)
		if (memcmp((*at)->key, key, HCCLD_KEY_BYTES_MAX) == 0)
			return at;
	return NULL;
}

static int key_error(const char *key)
{
	return hccld_error(CAUSE_NOT_FOUND,
			   "the key %.8s... is neither an export nor an import of this process, or was closed",
			   key);
}

int hccld_share_export(const void *address, uint64_t bytes, bool any_process,
		       char ret_key[HCCLD_KEY_TEXT])
{
	struct hccld_context *context;
	char extra[HCCLD_EXTRA_TEXT];
	struct hccld_place place;
	struct export *export;
	int r;

	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	if (hccld_buffer_find(address, &place) < 0 || place.memory != HCCLD_MEMORY_DEVICE) {
		r = hccld_buffer_freed_error(CAUSE_NOT_DEVICE_MEMORY, "aclrtIpcMemGetExportKey", address);
		return r < 0 ? r
			     : hccld_error(CAUSE_NOT_DEVICE_MEMORY, "aclrtIpcMemGetExportKey: devPtr is %p, which is not device memory", address);
	}
	if (bytes == 0 || bytes > place.available)
		return hccld_error(CAUSE_ARGUMENT,
				   "aclrtIpcMemGetExportKey: size is %llu; the allocation has %llu bytes from devPtr on%s",
				   (unsigned long long)bytes, (unsigned long long)place.available, hccld_buffer_extra_text(address, extra));
	export = calloc(1, sizeof(*export));
	if (!export)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for an export");
	hccld_buffer_share(address);
	r = hccld_share_request_export(place.segment, place.offset, bytes, any_process, export->key,
			   HCCLD_KEY_BYTES_MAX);
	if (r < 0) {
		free(export);
		return r;
	}
	export->context = context;
	export->start = address;
	export->bytes = bytes;
	hccld_share_key_format(export->key, ret_key);
	pthread_mutex_lock(&mutex);
	export->next = exports;
	exports = export;
	atomic_fetch_add(&export_count, 1);
	pthread_mutex_unlock(&mutex);
	return 0;
}

/* With `mutex`. Before the daemon hears that it ends, as with what a channel has brought: channel_revoke() in client/channel.c says why. */
static void import_revoke(const struct import *import)
{
	hccld_buffer_remove(import->start);
	hccld_revoke(import->segment.base, import->segment.size, import->memory == HCCLD_MEMORY_DEVICE);
}

/* With `mutex`. */
static void import_end(struct import **at)
{
	struct import *import = *at;
	struct hccld_segment segment = import->segment;

	*at = import->next;
	import_revoke(import);
	segment.base = NULL; /* given back, but not unmapped */
	hccld_segment_free(&segment);
	hccld_revoked_unmap(import->segment.base, import->segment.size);
	free(import);
}

/* With `mutex`: a new one. */
static int import_make(const uint8_t *key, struct hccld_context *context)
{
	struct import *import = calloc(1, sizeof(*import));
	struct imported imported;
	int r;

	if (!import)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for an import");
	r = hccld_share_request_import(key, HCCLD_KEY_BYTES_MAX, context, &imported);
	if (r < 0) {
		free(import);
		return r;
	}
	*import = (struct import){ .next = imports,
				   .context = context,
				   .segment = imported.segment,
				   .memory = imported.memory,
				   .start = imported.start,
				   .bytes = imported.bytes,
				   .pid = imported.pid };
	memcpy(import->key, key, HCCLD_KEY_BYTES_MAX);
	imports = import;
	r = hccld_buffer_add(&(struct hccld_mapping){ import->start, import->bytes,
						      import->segment.id, 0, imported.memory,
						      context, false });
	if (r < 0)
		import_end(&imports);
	return r;
}

int hccld_share_import(const char *text, void **ret_address)
{
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct hccld_context *context;
	struct import **at;
	char how[96];
	int cancel, r;

	r = hccld_context_current(&context);
	if (r == 0)
		r = hccld_share_key_parse("aclrtIpcMemGetExportKey", text, key);
	if (r < 0)
		return r;
	hccld_share_refresh();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	at = import_find(key);
	if (at && (*at)->is_lost) {
		loss_text((*at)->loss.kind, (*at)->loss.exit, "freed", how, sizeof(how));
		r = hccld_error(CAUSE_NOT_FOUND,
				"the memory was imported before and is gone: pid %u %s; close the key",
				(*at)->pid, how);
	} else if (!at) {
		r = import_make(key, context);
	}
	if (r == 0) {
		at = at ? at : &imports;
		(*at)->count++;
		*ret_address = (*at)->start;
	}
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_share_close(const char *text)
{
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	struct export **export, *ended = NULL;
	struct import **import;
	int cancel, r;

	r = hccld_session_check_fork();
	if (r == 0)
		r = hccld_share_key_parse("aclrtIpcMemGetExportKey", text, key);
	if (r < 0)
		return r;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	import = import_find(key);
	export = import ? NULL : export_find(key);
	if (import && --(*import)->count == 0)
		import_end(import);
	if (export) {
		ended = *export;
		*export = ended->next;
		atomic_fetch_sub(&export_count, 1);
	}
	pthread_mutex_unlock(&mutex);
	if (ended)
		r = hccld_share_request_end(key, false);
	pthread_setcancelstate(cancel, NULL);
	free(ended);
	return import || ended ? r : key_error(text);
}

int hccld_share_check_key(const char *text)
{
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	bool known;
	int r;

	r = hccld_session_check_fork();
	if (r == 0)
		r = hccld_share_key_parse("aclrtIpcMemGetExportKey", text, key);
	if (r < 0)
		return r;
	pthread_mutex_lock(&mutex);
	known = import_find(key) || export_find(key);
	pthread_mutex_unlock(&mutex);
	return known ? 0 : key_error(text);
}

int hccld_share_allow(const char *text, const int32_t *pids, size_t count)
{
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	int r;

	r = hccld_session_check_fork();
	if (r == 0)
		r = hccld_share_key_parse("aclrtIpcMemGetExportKey", text, key);
	if (r < 0)
		return r;
	return hccld_share_allow_key(key, HCCLD_KEY_BYTES_MAX, pids, count);
}

void hccld_share_freeing(void *address)
{
	struct export *ended = NULL;
	struct hccld_place place;
	uint64_t bytes;
	int32_t device;
	void *start;

	/* what is mapped is not freed by its address: the call is going to fail, and must leave everything as it is */
	if (!atomic_load_explicit(&export_count, memory_order_relaxed) ||
	    hccld_buffer_find(address, &place) < 0 || place.is_mapping ||
	    hccld_buffer_range(address, &start, &bytes, &device) < 0 || start != address)
		return;
	pthread_mutex_lock(&mutex);
	for (struct export **at = &exports; *at;) {
		struct export *export = *at;

		if (export->start < (char *)start || export->start >= (char *)start + bytes) {
			at = &export->next;
			continue;
		}
		*at = export->next;
		export->next = ended;
		ended = export;
		atomic_fetch_sub(&export_count, 1);
	}
	pthread_mutex_unlock(&mutex);
	while (ended) {
		struct export *next = ended->next;

		(void)hccld_share_request_end(ended->key, true);
		free(ended);
		ended = next;
	}
}

/* ---- handles of physical memory ---- */

int hccld_share_export_physical(void *handle, bool any_process, uint8_t *ret_key,
				uint32_t key_bytes)
{
	struct hccld_segment segment;
	struct hccld_context *context;
	int r;

	r = hccld_session_check_fork();
	if (r == 0)
		r = hccld_physical_segment(handle, &segment, &context);
	if (r < 0)
		return r;
	return hccld_share_request_export(segment.id, 0, segment.size, any_process, ret_key, key_bytes);
}

int hccld_share_import_physical(const uint8_t *key, uint32_t key_bytes,
				struct hccld_context *context, void **ret_handle)
{
	struct imported imported;
	int r;

	r = hccld_share_request_import(key, key_bytes, context, &imported);
	if (r < 0)
		return r;
	return hccld_physical_import(context, imported.memory, &imported.segment, imported.pid,
				     ret_handle);
}

/* ---- memory that is gone ---- */

static void import_lose(uint64_t segment, struct hccld_loss loss)
{
	pthread_mutex_lock(&mutex);
	for (struct import *import = imports; import; import = import->next) {
		if (import->segment.id != segment || import->is_lost)
			continue;
		import->is_lost = true;
		import->loss = loss;
		hccld_buffer_remove(import->start);
	}
	pthread_mutex_unlock(&mutex);
}

/* One page of lost segments. *@after: the cursor; 0 afterwards: that was all. */
static int refresh_page(struct hccld_session *session, uint64_t *after)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__ListLost list = HCCLD__CONTROL__LIST_LOST__INIT;
	struct hccld_call call;
	int r;

	list.after = *after;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST_LOST;
	request.list_lost = &list;
	r = hccld_call_make(session->connection, &request, &call);
	*after = 0;
	if (r == 0 && call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_LIST_LOST) {
		const Hccld__Control__ListLostReply *reply = call.reply->list_lost;

		for (size_t i = 0; i < reply->n_segments; i++) {
			struct hccld_loss loss = { i < reply->n_losses ? reply->losses[i] : LOSS_UNKNOWN,
						   i < reply->n_exits ? reply->exits[i] : -1 };

			import_lose(reply->segments[i], loss);
			hccld_virtual_lose(reply->segments[i], loss);
			hccld_notify_lose(reply->segments[i], loss);
			hccld_channels_lose(reply->segments[i]);
		}
		*after = reply->next;
	}
	hccld_call_end(&call);
	return r;
}

uint32_t hccld_share_lost_count(void)
{
	struct hccld_session *session;

	/* acquire: the daemon lists what it has counted */
	return hccld_session_get(&session) < 0 ? 0 :
						 atomic_load_explicit(&((struct session_region *)session->region)->lost_imports,
								      memory_order_acquire);
}

void hccld_share_refresh_since(uint32_t count)
{
	if (hccld_share_lost_count() == count)
		return;
	atomic_store_explicit(&lost_seen, count, memory_order_release);
	hccld_share_refresh();
}

void hccld_share_refresh(void)
{
	struct hccld_session *session;
	uint64_t after = 0;
	uint32_t count;

	if (hccld_session_get(&session) < 0)
		return;
	count = hccld_share_lost_count();
	if (__builtin_expect(count == atomic_load_explicit(&lost_seen, memory_order_acquire), 1))
		return;
	do {
		if (refresh_page(session, &after) < 0) {
			hccld_error_forget();
			return;
		}
	} while (after);
	atomic_store_explicit(&lost_seen, count, memory_order_release);
}

int hccld_share_find(const void *address, struct hccld_place *ret_place)
{
	int r = hccld_buffer_find(address, ret_place);

	if (r < 0 || !ret_place->is_mapping)
		return r;
	hccld_share_refresh();
	return hccld_buffer_find(address, ret_place);
}

/* With `mutex`. */
static bool find_lost(const char *at, struct hccld_lost *ret_lost)
{
	for (const struct import *import = imports; import; import = import->next) {
		if (!import->is_lost || at < import->start || (uint64_t)(at - import->start) >= import->bytes)
			continue;
		*ret_lost = (struct hccld_lost){ import->start, import->bytes, import->pid, import->loss };
		return true;
	}
	return false;
}

int hccld_share_lost_error(const char *function, const void *address)
{
	struct hccld_lost lost;
	bool is_lost;
	char how[96];
	int r;

	pthread_mutex_lock(&mutex);
	is_lost = find_lost(address, &lost);
	pthread_mutex_unlock(&mutex);
	if (!is_lost && !hccld_virtual_is_lost(address, &lost)) {
		r = hccld_channels_lost_error(function, address);
		return r < 0 ? r : hccld_buffer_freed_error(CAUSE_NOT_DEVICE_MEMORY, function, address);
	}
	loss_text(lost.loss.kind, lost.loss.exit, "freed", how, sizeof(how));
	return hccld_error(CAUSE_PEER_MEMORY,
			   "%s: the memory at %p was imported from pid %u, which %s; it reads as zeros",
			   function, address, lost.pid, how);
}

bool hccld_share_look(const void *address, struct hccld_lost *ret_lost)
{
	bool is_lost;

	/* the thread that the signal came to may hold it */
	if (pthread_mutex_trylock(&mutex))
		return false;
	is_lost = find_lost(address, ret_lost);
	pthread_mutex_unlock(&mutex);
	return is_lost || hccld_virtual_look(address, ret_lost);
}

void hccld_share_revoke(const struct hccld_context *context)
{
	pthread_mutex_lock(&mutex);
	for (const struct import *import = imports; import; import = import->next)
		if (import->context == context)
			import_revoke(import);
	pthread_mutex_unlock(&mutex);
}

void hccld_share_forget(struct hccld_context *context)
{
	pthread_mutex_lock(&mutex);
	for (struct export **at = &exports; *at;) {
		struct export *export = *at;

		if (export->context != context) {
			at = &export->next;
			continue;
		}
		*at = export->next;
		atomic_fetch_sub(&export_count, 1);
		free(export);
	}
	for (struct import **at = &imports; *at;) {
		struct import *import = *at;

		if (import->context != context) {
			at = &import->next;
			continue;
		}
		*at = import->next;
		hccld_revoked_unmap(import->segment.base, import->segment.size);
		free(import);
	}
	pthread_mutex_unlock(&mutex);
}
