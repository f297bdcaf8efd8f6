/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, contexts, reference counts. One context per device and process, at a fixed address: a thread whose current device was reset
 * by another thread finds it closed. `mutex` guards the counts; opening and closing happen outside of it, with `busy` set.
 */
#include "client/device.h"
#include "client/drive.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/buffer.h"
#include "client/channel.h"
#include "client/error.h"
#include "client/event.h"
#include "client/notify.h"
#include "client/share.h"
#include "client/stream.h"
#include "client/table.h"
#include "client/thread.h"
#include "client/virtual.h"

struct device {
	bool busy; /* a thread opens or closes the context */
	struct hccld_context context;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static struct device devices[HCCLD_DEVICES_MAX] HCCLD_TABLE; /* by the program's number */
static uint32_t visible[HCCLD_DEVICES_MAX];
static uint32_t visible_count;
static _Atomic bool visible_known;
static _Atomic uint64_t init_count;

uint32_t hccld_visible_devices(const char *list, uint32_t device_count,
			       uint32_t ret_devices[HCCLD_DEVICES_MAX])
{
	uint32_t count = 0;

	if (device_count > HCCLD_DEVICES_MAX)
		device_count = HCCLD_DEVICES_MAX;
	if (!list) {
		for (; count < device_count; count++)
			ret_devices[count] = count;
		return count;
	}
	while (isdigit((unsigned char)*list)) {
		uint32_t device = 0;

		for (; isdigit((unsigned char)*list); list++)
			device = device < HCCLD_DEVICES_MAX ? device * 10 + (uint32_t)(*list - '0')
							    : HCCLD_DEVICES_MAX;
		if ((*list != ',' && *list != '\0') || device >= device_count)
			break;
		for (uint32_t i = 0; i < count; i++)
			if (ret_devices[i] == device)
				return count;
		ret_devices[count++] = device;
		if (*list++ == '\0')
			break;
	}
	return count;
}

/* The session, and what of its devices the process sees. */
static int devices_get(struct hccld_session **ret_session)
{
	int r;

	r = hccld_session_get(ret_session);
	if (r < 0 || atomic_load_explicit(&visible_known, memory_order_acquire))
		return r;
	pthread_mutex_lock(&mutex);
	if (!atomic_load(&visible_known)) {
		visible_count = hccld_visible_devices(getenv("ASCEND_RT_VISIBLE_DEVICES"),
						      (*ret_session)->device_count, visible);
		atomic_store_explicit(&visible_known, true, memory_order_release);
	}
	pthread_mutex_unlock(&mutex);
	return 0;
}

static int device_check(int32_t logical, struct hccld_session **ret_session)
{
	const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
	int r;

	r = devices_get(ret_session);
	if (r < 0)
		return r;
	if (logical >= 0 && (uint32_t)logical < visible_count)
		return 0;
	return hccld_error(
		CAUSE_NO_DEVICE,
		"there is no device %d: hccld has %u, this process sees %u of them%s%.64s%s",
		logical, (*ret_session)->device_count, visible_count,
		list ? " (ASCEND_RT_VISIBLE_DEVICES is \"" : "", list ? list : "",
		list ? "\")" : "");
}

int hccld_device_count(uint32_t *ret_count)
{
	struct hccld_session *session;
	int r;

	r = devices_get(&session);
	if (r < 0)
		return r;
	*ret_count = visible_count;
	return 0;
}

int hccld_device_number(int32_t logical, uint32_t *ret_number)
{
	struct hccld_session *session;
	int r;

	r = device_check(logical, &session);
	if (r == 0)
		*ret_number = visible[logical];
	return r;
}

int hccld_device_exists(int32_t number)
{
	struct hccld_session *session;
	int r;

	r = devices_get(&session);
	if (r < 0)
		return r;
	if (number >= 0 && (uint32_t)number < session->device_count)
		return 0;
	return hccld_error(CAUSE_NO_DEVICE, "there is no device %d: hccld has %u", number,
			   session->device_count);
}

int hccld_device_logical(int32_t number, int32_t *ret_logical)
{
	int r;

	r = hccld_device_exists(number);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < visible_count; i++)
		if (visible[i] == (uint32_t)number) {
			*ret_logical = (int32_t)i;
			return 0;
		}
	return hccld_error(CAUSE_NO_DEVICE,
			   "device %d of hccld is not among those that ASCEND_RT_VISIBLE_DEVICES shows",
			   number);
}

int hccld_context_open_on(const char *function, int32_t logical, struct hccld_context **ret_context)
{
	struct hccld_session *session;
	int r;

	r = device_check(logical, &session);
	if (r < 0)
		return r;
	*ret_context = &devices[logical].context;
	if (atomic_load_explicit(&(*ret_context)->open, memory_order_acquire))
		return 0;
	return hccld_error(CAUSE_NO_CONTEXT,
			   "%s: this process does not use device %d; call aclrtSetDevice(%d) first",
			   function, logical, logical);
}

int hccld_device_describe(int32_t logical, struct hccld_device_state *ret_state)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DescribeDevice describe = HCCLD__CONTROL__DESCRIBE_DEVICE__INIT;
	struct hccld_session *session;
	struct hccld_call call;
	int r;

	r = device_check(logical, &session);
	if (r < 0)
		return r;
	describe.device = visible[logical];
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESCRIBE_DEVICE;
	request.describe_device = &describe;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && (call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_DESCRIBE_DEVICE ||
		       call.reply->describe_device->uuid.len != sizeof(ret_state->uuid)))
		r = hccld_error(CAUSE_PROTOCOL, "hccld's description of device %d is malformed",
				logical);
	if (r == 0) {
		const Hccld__Control__DescribeDeviceReply *reply = call.reply->describe_device;

		memcpy(ret_state->uuid, reply->uuid.data, sizeof(ret_state->uuid));
		ret_state->memory_used = reply->memory_used;
		ret_state->memory_total = reply->memory_total;
		ret_state->pid = (int32_t)reply->pid;
	}
	hccld_call_end(&call);
	return r;
}

const char *hccld_device_soc_name(void)
{
	struct hccld_session *session;

	return hccld_session_get(&session) < 0 ? NULL : session->soc_name;
}

/* ---- contexts ---- */

static int context_open(struct hccld_session *session, int32_t logical,
			struct hccld_context *context)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__OpenContext open = HCCLD__CONTROL__OPEN_CONTEXT__INIT;
	struct hccld_call call;
	uint32_t index;
	int r;

	open.device = visible[logical];
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &open;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && (call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT ||
		       call.reply->open_context->yard_index >= HCCLD_YARD_CONTEXTS))
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to opening device %d is malformed",
				logical);
	if (r == 0) {
		index = call.reply->open_context->yard_index;
		/* written once: threads whose device is reset under them may still read them, for a text */
		if (context->device != visible[logical])
			context->device = visible[logical];
		if (context->logical != logical)
			context->logical = logical;
		context->id = call.reply->open_context->context;
		context->words = &session->yard->contexts[index];
		context->bit_word = &session->yard->bits[index / 64];
		context->bit = UINT64_C(1) << index % 64;
		atomic_store_explicit(&context->default_stream, NULL, memory_order_relaxed);
		atomic_store_explicit(&context->inner_stream, NULL, memory_order_relaxed);
		hccld_drive_open(context, session);
		atomic_store_explicit(&context->open, true, memory_order_release);
	}
	hccld_call_end(&call);
	return r;
}

static int context_close(struct hccld_session *session, struct hccld_context *context, bool force)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CloseContext close = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;
	int r;

	/* errors in flight that nobody asked for end here, as the streams do */
	if (!force)
		(void)hccld_stream_wait_all(context, -1);
	/* before the daemon hears of any end: what stops a stream may ask for something */
	hccld_channels_revoke_context(context);
	hccld_share_revoke(context);
	hccld_virtual_revoke(context);
	hccld_stream_stop_all(context);
	hccld_drive_close(context);
	hccld_buffer_keep_host(context);
	close.context = context->id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
	request.close_context = &close;
	r = hccld_call_simple(session->connection, &request);
	hccld_stream_end_all(context);
	hccld_threads_forget(context);
	hccld_event_forget(context);
	hccld_notify_forget(context);
	hccld_buffer_forget(context);
	hccld_virtual_forget(context);
	hccld_share_forget(context);
	hccld_channels_forget_context(context);
	return r;
}

/* With `mutex`: until no other thread opens or closes the device. */
static void await_idle(struct device *device)
{
	while (device->busy)
		pthread_cond_wait(&idle, &mutex);
}

static void busy_end(struct device *device, uint32_t references)
{
	pthread_mutex_lock(&mutex);
	device->busy = false;
	device->context.references = references;
	pthread_cond_broadcast(&idle);
	pthread_mutex_unlock(&mutex);
}

/* Cancellation would leave `mutex` or `busy` behind: both are waited for. */
static int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

int hccld_context_acquire(int32_t logical, struct hccld_context **ret_context)
{
	struct hccld_session *session;
	struct device *device;
	int cancel, r;
	bool opens;

	r = device_check(logical, &session);
	if (r < 0)
		return r;
	device = &devices[logical];
	cancel = cancel_off();
	pthread_mutex_lock(&mutex);
	await_idle(device);
	device->busy = device->context.references == 0;
	opens = device->busy;
	if (!opens)
		device->context.references++;
	pthread_mutex_unlock(&mutex);
	if (opens) {
		r = context_open(session, logical, &device->context);
		busy_end(device, r == 0);
	}
	pthread_setcancelstate(cancel, NULL);
	if (r == 0)
		*ret_context = &device->context;
	return r;
}

/* Takes one reference, or all; the last one closes. @id: of the context that is meant; 0: whichever is there. */
static int device_release(struct hccld_session *session, struct device *device, uint64_t id,
			  bool force)
{
	int cancel = cancel_off(), r = 0;
	bool last = false;

	pthread_mutex_lock(&mutex);
	await_idle(device);
	if (id && (device->context.references == 0 || device->context.id != id)) {
		r = 0;
	} else if (device->context.references == 0) {
		r = hccld_error(
			CAUSE_NO_CONTEXT,
			"device %d is not in use by this process: aclrtSetDevice was not called, or as often undone",
			(int)(device - devices));
	} else {
		device->context.references = force ? 0 : device->context.references - 1;
		last = device->context.references == 0;
		if (last) {
			device->busy = true;
			atomic_store_explicit(&device->context.open, false, memory_order_release);
		}
	}
	pthread_mutex_unlock(&mutex);
	if (last) {
		r = context_close(session, &device->context, force);
		busy_end(device, 0);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_context_release(struct hccld_context *context, uint64_t id)
{
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	return device_release(session, &devices[context->logical], id, false);
}

bool hccld_context_is_open(const struct hccld_context *context, uint64_t id)
{
	return atomic_load_explicit(&context->open, memory_order_acquire) && context->id == id;
}

struct hccld_context *hccld_device_slot(int32_t logical)
{
	return &devices[logical].context;
}

int hccld_device_context(int32_t logical, struct hccld_context **ret_context)
{
	struct hccld_session *session;
	int r;

	r = device_check(logical, &session);
	if (r < 0)
		return r;
	if (!atomic_load_explicit(&devices[logical].context.open, memory_order_acquire))
		return hccld_error(CAUSE_NO_CONTEXT, "device %d is not in use by this process: call aclrtSetDevice first", logical);
	*ret_context = &devices[logical].context;
	return 0;
}

bool hccld_device_is_context(const void *pointer)
{
	uintptr_t distance = (uintptr_t)pointer - (uintptr_t)devices;

	return distance < sizeof(devices) &&
	       distance % sizeof(devices[0]) == offsetof(struct device, context);
}

/* ---- requests about a device ---- */

int hccld_device_reset(int32_t logical, bool force)
{
	struct hccld_session *session;
	int r;

	r = device_check(logical, &session);
	if (r < 0)
		return r;
	return device_release(session, &devices[logical], 0, force);
}

int hccld_device_synchronize(int64_t timeout_ms)
{
	struct hccld_context *context = NULL;
	int r;

	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	return hccld_stream_wait_all(context, timeout_ms);
}

int hccld_device_memory_info(uint64_t *ret_free, uint64_t *ret_total)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__MemoryInfo info = HCCLD__CONTROL__MEMORY_INFO__INIT;
	struct hccld_context *context = NULL;
	struct hccld_session *session;
	struct hccld_call call;
	int r;

	r = hccld_context_current(&context);
	if (r < 0)
		return r;
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	info.context = context->id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MEMORY_INFO;
	request.memory_info = &info;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_MEMORY_INFO)
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer about memory is malformed");
	if (r == 0) {
		*ret_total = call.reply->memory_info->total;
		*ret_free = call.reply->memory_info->free + hccld_buffer_idle(context);
		if (*ret_free > *ret_total)
			*ret_free = *ret_total;
	}
	hccld_call_end(&call);
	return r;
}

/* ---- aclInit ---- */

uint64_t hccld_init_add(void)
{
	return atomic_fetch_add(&init_count, 1);
}

uint64_t hccld_init_remove(bool all)
{
	uint64_t count = atomic_load(&init_count);

	while (count && !atomic_compare_exchange_weak(&init_count, &count, all ? 0 : count - 1))
		;
	return count;
}
