/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Current device and context of a thread. Handles of contexts are looked up, never followed: a default context's is its struct in device.c,
 * another's its entry here. Entries are used round and round, and a thread remembers the serial number with the entry.
 */
#include "client/current.h"

#include <pthread.h>

#include "client/device.h"
#include "client/error.h"
#include "client/stream.h"
#include "client/table.h"

#define CONTEXTS 4096u

struct made {
	_Atomic uint64_t serial; /* 0: free, or not complete */
	struct hccld_context *context;
	uint64_t id; /* of the device's context */
	bool taken;
	_Atomic(struct hccld_stream *) default_stream;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of taking and giving entries */
static struct made entries[CONTEXTS] HCCLD_TABLE;
static uint32_t next_entry;
static uint64_t last_serial;

static _Thread_local int32_t current_device = -1; /* by aclrtSetDevice */
static _Thread_local struct made *current_made;	  /* goes before it */
static _Thread_local uint64_t current_serial;

static int no_context(void)
{
	return hccld_error(CAUSE_NO_CONTEXT, "%s", status_of(CAUSE_NO_CONTEXT)->text);
}

/* The entry that this thread works with, or NULL. */
static struct made *made_current(void)
{
	if (!current_made)
		return NULL;
	if (atomic_load_explicit(&current_made->serial, memory_order_acquire) != current_serial)
		current_made = NULL;
	return current_made;
}

static struct made *made_find(void *handle)
{
	uintptr_t distance = (uintptr_t)handle - (uintptr_t)entries;

	if (distance >= sizeof(entries) || distance % sizeof(entries[0]) ||
	    !atomic_load_explicit(&entries[distance / sizeof(entries[0])].serial,
				  memory_order_acquire))
		return NULL;
	return &entries[distance / sizeof(entries[0])];
}

int hccld_context_current(struct hccld_context **ret_context)
{
	struct hccld_context *context;
	struct made *made;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	made = made_current();
	if (made) {
		if (!hccld_context_is_open(made->context, made->id))
			return hccld_error(
				CAUSE_NO_CONTEXT,
				"the device of this thread's current context was reset, which ended the context");
		*ret_context = made->context;
		return 0;
	}
	if (current_device < 0)
		return no_context();
	context = hccld_device_slot(current_device);
	if (!atomic_load_explicit(&context->open, memory_order_acquire))
		return no_context();
	*ret_context = context;
	return 0;
}

/* ---- the current device ---- */

int hccld_device_set(int32_t logical)
{
	struct hccld_context *context;
	int r;

	r = hccld_context_acquire(logical, &context);
	if (r < 0)
		return r;
	current_device = logical;
	current_made = NULL;
	return 0;
}

int hccld_device_get(int32_t *ret_logical)
{
	struct hccld_context *context = NULL;
	int r;

	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	*ret_logical = context->logical;
	return 0;
}

/* ---- contexts of the program's ---- */

static struct made *entry_take(void)
{
	struct made *made = NULL;

	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < CONTEXTS && !made; i++) {
		if (!entries[next_entry].taken) {
			made = &entries[next_entry];
			made->taken = true;
		}
		next_entry = (next_entry + 1) % CONTEXTS;
	}
	pthread_mutex_unlock(&mutex);
	return made;
}

static void entry_give(struct made *made)
{
	pthread_mutex_lock(&mutex);
	made->taken = false;
	pthread_mutex_unlock(&mutex);
}

static void make_current(struct made *made)
{
	current_made = made;
	current_serial = atomic_load(&made->serial);
}

int hccld_context_create(int32_t logical, void **ret_handle)
{
	struct hccld_context *context;
	struct made *made;
	int r;

	r = hccld_context_acquire(logical, &context);
	if (r < 0)
		return r;
	made = entry_take();
	if (!made) {
		(void)hccld_context_release(context, context->id);
		return hccld_error(CAUSE_LIMIT,
				   "this process has made %u contexts, the most it can have",
				   CONTEXTS);
	}
	made->context = context;
	made->id = context->id;
	atomic_store(&made->default_stream, NULL);
	pthread_mutex_lock(&mutex);
	/* release: who finds the number finds the rest */
	atomic_store_explicit(&made->serial, ++last_serial, memory_order_release);
	pthread_mutex_unlock(&mutex);
	make_current(made);
	*ret_handle = made;
	return 0;
}

static int unknown_error(const char *function, void *handle)
{
	return hccld_error(CAUSE_NO_CONTEXT,
			   "%s: context is %p: that is no context of this process, or it has ended",
			   function, handle);
}

int hccld_context_destroy(void *handle)
{
	struct made *made;
	uint64_t serial;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	if (hccld_device_is_context(handle))
		return hccld_error(
			CAUSE_ARGUMENT,
			"aclrtDestroyContext: context is %p, the default context of device %d; aclrtResetDevice ends it",
			handle, ((struct hccld_context *)handle)->logical);
	made = made_find(handle);
	if (!made)
		return unknown_error("aclrtDestroyContext", handle);
	serial = atomic_load(&made->serial);
	/* one thread alone ends it */
	if (!serial || !atomic_compare_exchange_strong(&made->serial, &serial, 0))
		return unknown_error("aclrtDestroyContext", handle);
	if (hccld_context_is_open(made->context, made->id))
		hccld_stream_destroy_owned(made->context, serial);
	r = hccld_context_release(made->context, made->id);
	entry_give(made);
	return r;
}

int hccld_context_set_current(void *handle)
{
	struct hccld_context *context;
	struct made *made;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	if (hccld_device_is_context(handle)) {
		context = handle;
		if (!atomic_load_explicit(&context->open, memory_order_acquire))
			return unknown_error("aclrtSetCurrentContext", handle);
		current_device = context->logical;
		current_made = NULL;
		return 0;
	}
	made = made_find(handle);
	if (!made || !hccld_context_is_open(made->context, made->id))
		return unknown_error("aclrtSetCurrentContext", handle);
	make_current(made);
	return 0;
}

int hccld_context_get_current(void **ret_handle)
{
	struct hccld_context *context = NULL;
	int r;

	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	*ret_handle = current_made ? (void *)current_made : (void *)context;
	return 0;
}

_Atomic(struct hccld_stream *) *hccld_context_stream_slot(struct hccld_context *context)
{
	struct made *made = made_current();

	return made && made->context == context ? &made->default_stream : &context->default_stream;
}

uint64_t hccld_context_owner(const struct hccld_context *context)
{
	const struct made *made = made_current();

	return made && made->context == context ? current_serial : 0;
}
