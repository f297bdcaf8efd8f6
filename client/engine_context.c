/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search tree per communicator, with its lock `making`, also while memory is asked for: of two that create the same one is refused. Those
 * with device memory are in a list of the process, too: aclrtFree is not to free it.
 */
#include "client/engine_context.h"

#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/buffer.h"
#include "client/comm.h"
#include "client/device.h"
#include "client/error.h"
#include "client/registration.h"
#include "client/share.h"
#include "client/strict.h"
#include "hcomm/hcomm_res_defs.h"
#include "proto/channel.h"
#include "proto/limits.h"

#define HOST_BYTES_MAX (UINT64_C(1) << 40) /* more no host has, and some allocators end the process for asking */

struct engine_context {
	struct hccld_engine_key key; /* first: a key finds it */
	bool is_device;
	uint64_t device_context; /* id of the context whose memory it is */
	struct hccld_context *on;
	void *memory;
	uint64_t bytes;
	struct engine_context *next, **at; /* `list_lock`; at NULL: not in the list */
	char tag[HCCLD_TAG_MAX];
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* taken with `making`, never the reverse */
static struct engine_context *device_list;
static _Atomic uint32_t device_count;

static void list_add(struct engine_context *context)
{
	pthread_mutex_lock(&list_lock);
	context->next = device_list;
	context->at = &device_list;
	if (context->next)
		context->next->at = &context->next;
	device_list = context;
	pthread_mutex_unlock(&list_lock);
	atomic_fetch_add(&device_count, 1);
}

static void list_remove(struct engine_context *context)
{
	if (!context->at)
		return;
	pthread_mutex_lock(&list_lock);
	*context->at = context->next;
	if (context->next)
		context->next->at = context->at;
	pthread_mutex_unlock(&list_lock);
	atomic_fetch_sub(&device_count, 1);
}

int hccld_engine_context_check_free(const char *function, const void *memory)
{
	const struct engine_context *context;
	int cancel, r = 0;

	/* those who have none do not pay for it */
	if (!atomic_load_explicit(&device_count, memory_order_relaxed))
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&list_lock);
	/* of a device that was reset: what lies there now is another one's */
	for (context = device_list; context && (context->memory != memory || !hccld_context_is_open(context->on, context->device_context));)
		context = context->next;
	if (context)
		r = hccld_error(CAUSE_ARGUMENT,
				"%s: %p is the context \"%s\" of engine %s of a communicator; expected HcclEngineCtxDestroy, or HcclCommDestroy, which frees it",
				function, memory, context->key.tag, channel_engine_name((uint32_t)context->key.engine));
	pthread_mutex_unlock(&list_lock);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct hccld_engine_key *one = a, *other = b;

	if (one->engine != other->engine)
		return one->engine < other->engine ? -1 : 1;
	return strcmp(one->tag, other->tag);
}

#define CREATE_IT "; create it with HcclEngineCtxCreate"

/* With `making`. */
static struct engine_context *find(struct hccld_comm *comm, const struct hccld_engine_key *key)
{
	void *node = tfind(key, &comm->engine_contexts, compare);

	return node ? *(struct engine_context **)node : NULL;
}

static int missing_error(const struct hccld_comm *comm, const struct hccld_engine_key *key, const char *advice)
{
	return hccld_error(CAUSE_ARGUMENT, "communicator %s has no context \"%s\" of engine %s%s", comm->name, key->tag,
			   channel_engine_name((uint32_t)key->engine), advice);
}

static bool is_of_device(int engine)
{
	return engine == COMM_ENGINE_AICPU || engine == COMM_ENGINE_AICPU_TS || engine == COMM_ENGINE_AIV;
}

static int memory_new(const struct hccld_comm *comm, struct engine_context *context)
{
	int r;

	if (!context->is_device) {
		context->memory = context->bytes < HOST_BYTES_MAX ? calloc(1, context->bytes) : NULL;
		if (context->memory)
			return 0;
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a context of %" PRIu64 " bytes", context->bytes);
	}
	r = hccld_comm_check_context(comm);
	if (r == 0)
		r = hccld_buffer_allocate(comm->on, HCCLD_MEMORY_DEVICE, context->bytes, 0, &context->memory);
	if (r == 0) {
		hccld_strict_open();
		memset(context->memory, 0, context->bytes); /* small ones may have been somebody's before */
		hccld_strict_close();
	}
	return r;
}

/* Device memory went with its context, and at its address may be somebody else's by now. */
static void context_drop(void *data)
{
	struct engine_context *context = data;

	list_remove(context);
	if (!context->is_device) {
		free(context->memory);
	} else if (hccld_context_is_open(context->on, context->device_context)) {
		hccld_share_freeing(context->memory);
		hccld_registration_freeing(context->memory);
		if (hccld_buffer_free(HCCLD_MEMORY_DEVICE, context->memory) < 0)
			hccld_error_forget();
	}
	free(context);
}

/* With `making`. */
static int context_make(struct hccld_comm *comm, const struct hccld_engine_key *key, uint64_t bytes, void **ret_memory)
{
	struct engine_context *context;
	int r;

	context = find(comm, key);
	if (context)
		return hccld_error(CAUSE_ARGUMENT,
				   "communicator %s has a context \"%s\" of engine %s already, of %" PRIu64
				   " bytes: get it with HcclEngineCtxGet, or destroy it first",
				   comm->name, key->tag, channel_engine_name((uint32_t)key->engine), context->bytes);
	context = calloc(1, sizeof(*context));
	if (!context)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a context");
	strcpy(context->tag, key->tag);
	context->key = (struct hccld_engine_key){ key->engine, context->tag };
	context->bytes = bytes;
	context->is_device = is_of_device(key->engine);
	context->on = comm->on;
	context->device_context = comm->context;
	r = memory_new(comm, context);
	if (r < 0) {
		free(context);
		return r;
	}
	if (!tsearch(context, &comm->engine_contexts, compare)) {
		context_drop(context);
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a context");
	}
	if (context->is_device)
		list_add(context);
	*ret_memory = context->memory;
	return 0;
}

/* Nobody is cancelled with the lock. */
static int lock(struct hccld_comm *comm)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&comm->making);
	return cancel;
}

static void unlock(struct hccld_comm *comm, int cancel)
{
	pthread_mutex_unlock(&comm->making);
	pthread_setcancelstate(cancel, NULL);
}

int hccld_engine_context_new(struct hccld_comm *comm, const struct hccld_engine_key *key, uint64_t bytes, void **ret_memory)
{
	int cancel = lock(comm);
	int r = context_make(comm, key, bytes, ret_memory);

	unlock(comm, cancel);
	return r;
}

int hccld_engine_context_get(struct hccld_comm *comm, const struct hccld_engine_key *key, void **ret_memory, uint64_t *ret_bytes)
{
	int cancel = lock(comm);
	const struct engine_context *context = find(comm, key);
	int r = context ? 0 : missing_error(comm, key, CREATE_IT);

	/* device memory went with its device, and at its address may be somebody else's */
	if (r == 0 && context->is_device)
		r = hccld_comm_check_context(comm);
	if (r == 0) {
		*ret_memory = context->memory;
		*ret_bytes = context->bytes;
	}
	unlock(comm, cancel);
	return r;
}

/* With `making`. */
static int context_write(struct hccld_comm *comm, const struct hccld_engine_key *key, uint64_t offset, const void *source, uint64_t bytes)
{
	struct engine_context *context = find(comm, key);
	int r;

	if (!context)
		return missing_error(comm, key, CREATE_IT);
	if (offset > context->bytes || bytes > context->bytes - offset)
		return hccld_error(CAUSE_ARGUMENT, "the context \"%s\" has %" PRIu64 " bytes: %" PRIu64 " bytes at %" PRIu64 " are not in it",
				   key->tag, context->bytes, bytes, offset);
	r = context->is_device ? hccld_comm_check_context(comm) : 0;
	if (r == 0) {
		hccld_strict_open();
		memcpy((char *)context->memory + offset, source, bytes);
		hccld_strict_close();
	}
	return r;
}

int hccld_engine_context_write(struct hccld_comm *comm, const struct hccld_engine_key *key, uint64_t offset, const void *source,
			       uint64_t bytes)
{
	int cancel = lock(comm);
	int r = context_write(comm, key, offset, source, bytes);

	unlock(comm, cancel);
	return r;
}

int hccld_engine_context_free(struct hccld_comm *comm, const struct hccld_engine_key *key)
{
	int cancel = lock(comm);
	struct engine_context *context = find(comm, key);

	if (context) {
		tdelete(&context->key, &comm->engine_contexts, compare);
		context_drop(context);
	}
	unlock(comm, cancel);
	return context ? 0 : missing_error(comm, key, ": it was destroyed, or never created; a context is found by its tag and its engine");
}

void hccld_engine_contexts_end(struct hccld_comm *comm)
{
	tdestroy(comm->engine_contexts, context_drop);
	comm->engine_contexts = NULL;
}
