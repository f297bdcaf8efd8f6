/* SPDX-License-Identifier: Apache-2.0 */
/* Registered memory: a list, which `mutex` guards; it is not held during requests. */
#include "client/registration.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/buffer.h"
#include "client/channel_request.h"
#include "client/comm.h"
#include "client/error.h"
#include "client/share.h"
#include "proto/cleanup.h"

#define HANDLE_MARK 0x434dull /* top 16 bits: no address of a program looks like this */

struct registration {
	struct registration *next;
	uint64_t rank; /* handle of (communicator, rank), which is never used again */
	uint64_t id;   /* the daemon's */
	void *handle;
	const char *start;
	uint64_t bytes, segment;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct registration *registrations;
static _Atomic uint32_t registration_count;
static uint64_t next_number; /* `mutex` */

/* The place of the region. -EINVAL. */
static int registration_check(const CommMem *mem, struct hccld_place *ret_place)
{
	const bool is_device = mem->type == COMM_MEM_TYPE_DEVICE;
	char extra[HCCLD_EXTRA_TEXT];
	int r;

	if (hccld_share_find(mem->addr, ret_place) < 0) {
		r = hccld_buffer_freed_error(CAUSE_ARGUMENT, "HcclCommMemReg", mem->addr);
		return r < 0 ? r
			     : hccld_error(CAUSE_ARGUMENT,
					   "HcclCommMemReg: mem->addr is %p, which is no memory of hccld that other ranks could reach: use %s, not malloc",
					   mem->addr, is_device ? "aclrtMalloc" : "aclrtMallocHost");
	}
	if (ret_place->memory != (is_device ? HCCLD_MEMORY_DEVICE : HCCLD_MEMORY_HOST))
		return hccld_error(CAUSE_ARGUMENT, "HcclCommMemReg: mem->type is %d; expected %d: mem->addr is %p, %s memory", (int)mem->type,
				   is_device ? COMM_MEM_TYPE_HOST : COMM_MEM_TYPE_DEVICE, mem->addr, is_device ? "host" : "device");
	if (mem->size > ret_place->available)
		return hccld_error(CAUSE_ARGUMENT, "HcclCommMemReg: mem->size is %llu; the allocation has %llu bytes from mem->addr on%s",
				   (unsigned long long)mem->size, (unsigned long long)ret_place->available,
				   hccld_buffer_extra_text(mem->addr, extra));
	return 0;
}

/* With `mutex`. */
static struct registration *find_id(uint64_t id)
{
	struct registration *registration = registrations;

	while (registration && registration->id != id)
		registration = registration->next;
	return registration;
}

int hccld_registration_add(const struct hccld_comm *comm, const char *tag, const CommMem *mem, void **ret_handle)
{
	CLEANUP(freep) struct registration *made = calloc(1, sizeof(*made));
	struct registration *registration;
	struct hccld_place place;
	int r;

	if (!made)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to register memory");
	r = hccld_comm_check_context(comm);
	if (r == 0)
		r = registration_check(mem, &place);
	if (r == 0) {
		hccld_buffer_share(mem->addr);
		r = hccld_channel_request_register(comm->task_rank, tag, place.segment, place.offset, mem->size, &made->id);
		/* the daemon knows what was imported; the code of HCCL is that of any region that cannot be registered */
		if (status_cause(r) == CAUSE_PERMISSION)
			r = hccld_error(CAUSE_ARGUMENT,
					"HcclCommMemReg: mem->addr is %p, memory that was imported or came with a channel: only the rank that has allocated it can register it",
					mem->addr);
	}
	if (r < 0)
		return r;
	pthread_mutex_lock(&mutex);
	registration = find_id(made->id);
	if (!registration) {
		registration = take_ptr(&made);
		registration->rank = comm->task_rank;
		registration->handle = (void *)(uintptr_t)(HANDLE_MARK << 48 | ++next_number);
		registration->start = mem->addr;
		registration->bytes = mem->size;
		registration->segment = place.segment;
		registration->next = registrations;
		registrations = registration;
		atomic_fetch_add(&registration_count, 1);
	}
	*ret_handle = registration->handle;
	pthread_mutex_unlock(&mutex);
	return 0;
}

/* Of another device than its communicator's, it may have gone with that. */
static bool is_there(const struct registration *registration)
{
	struct hccld_place place;

	return hccld_buffer_find(registration->start, &place) == 0 && place.segment == registration->segment;
}

int hccld_registration_id(const char *function, const struct hccld_comm *comm, const void *handle, uint64_t *ret_id)
{
	uint64_t id = 0;

	pthread_mutex_lock(&mutex);
	for (const struct registration *registration = registrations; registration && !id; registration = registration->next)
		if (registration->handle == handle && registration->rank == comm->task_rank && is_there(registration))
			id = registration->id;
	pthread_mutex_unlock(&mutex);
	if (!id)
		return hccld_error(CAUSE_NOT_FOUND,
				   "%s: the memory handle is %p: rank %u of communicator %s has registered no such memory with HcclCommMemReg, or it was freed",
				   function, handle, comm->rank, comm->name);
	*ret_id = id;
	return 0;
}

/* Takes those out that @is_meant says. */
static struct registration *take_out(bool (*is_meant)(const struct registration *registration, const void *data), const void *data)
{
	struct registration *taken = NULL;

	pthread_mutex_lock(&mutex);
	for (struct registration **at = &registrations; *at;) {
		struct registration *registration = *at;

		if (!is_meant(registration, data)) {
			at = &registration->next;
			continue;
		}
		*at = registration->next;
		registration->next = taken;
		taken = registration;
		atomic_fetch_sub(&registration_count, 1);
	}
	pthread_mutex_unlock(&mutex);
	return taken;
}

struct range {
	const char *start;
	uint64_t bytes;
};

static bool is_in_range(const struct registration *registration, const void *data)
{
	const struct range *range = data;

	return registration->start < range->start + range->bytes && range->start < registration->start + registration->bytes;
}

static bool is_of_rank(const struct registration *registration, const void *data)
{
	return registration->rank == *(const uint64_t *)data;
}

void hccld_registration_withdraw(const void *start, uint64_t bytes)
{
	const struct range range = { start, bytes };
	struct registration *taken;

	if (!bytes || !atomic_load_explicit(&registration_count, memory_order_relaxed))
		return;
	taken = take_out(is_in_range, &range);
	while (taken) {
		struct registration *next = taken->next;

		/* one that the daemon has not, it has not any more */
		if (hccld_channel_request_unregister(taken->id) < 0)
			hccld_error_forget();
		free(taken);
		taken = next;
	}
}

void hccld_registration_freeing(void *start)
{
	struct hccld_place place;
	uint64_t bytes;
	int32_t device;
	void *begin;

	if (!atomic_load_explicit(&registration_count, memory_order_relaxed) || hccld_buffer_find(start, &place) < 0 || place.is_mapping ||
	    hccld_buffer_range(start, &begin, &bytes, &device) < 0 || begin != start)
		return;
	hccld_registration_withdraw(start, bytes);
}

void hccld_registrations_forget(const struct hccld_comm *comm)
{
	struct registration *taken = take_out(is_of_rank, &comm->task_rank);

	while (taken) {
		struct registration *next = taken->next;

		free(taken);
		taken = next;
	}
}
