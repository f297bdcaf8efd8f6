/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Primitives of the data plane: tasks in the stream of a thread. All checks are made before anything is queued; the text of an error names
 * @function. Handles, pointers and channels as the program gives them: handles that are 0 and pointers that are NULL are the caller's to
 * refuse. Time-outs in seconds, 0 or UINT32_MAX: none. Any OS thread.
 *
 * A thread's tasks run in order, and each is complete, its bytes where they belong, before the next begins. So what real hardware needs
 * fences, drains and batches for is so anyway: those look at their handles, and have nothing to do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hccld_stream;

/* ---- primitive.c ---- */

/* @bytes 0, or the same address twice: nothing is done. */
int hccld_primitive_copy(const char *function, uint64_t thread, void *to, const void *from, uint64_t bytes);
int hccld_primitive_reduce(const char *function, uint64_t thread, void *to, const void *from, uint64_t count, uint32_t type, uint32_t op);
/* -EINVAL: what the data plane does not reduce. */
int hccld_primitive_check_reduction(const char *function, uint32_t type, uint32_t op);
int hccld_primitive_record_thread(const char *function, uint64_t thread, uint64_t other, uint32_t index);
int hccld_primitive_wait_thread(const char *function, uint64_t thread, uint32_t index, uint32_t timeout_s);
/* A notify of aclrtCreateNotify, or an imported one, by its id. */
int hccld_primitive_record_id(const char *function, uint64_t thread, uint64_t id);
int hccld_primitive_wait_id(const char *function, uint64_t thread, uint64_t id, uint32_t timeout_s);
/* Is it a thread? */
int hccld_primitive_fence(const char *function, uint64_t thread);

/* The process's default for waits, in whole seconds, 0: none. That of HCCL until it is set: a thread of the CPU waits a little longer. */
int hccld_primitive_set_wait_timeout(const char *function, float seconds);
int hccld_primitive_wait_timeout(const char *function, uint64_t thread, uint32_t *ret_seconds);
/* Acquiring a thread does not wait here: the value is looked at, and that is all. */
int hccld_primitive_set_acquire_timeout(const char *function, float seconds);
uint32_t hccld_primitive_timeout_ms(uint32_t seconds);

/* ---- primitive_channel.c ---- */

/* One transfer: what HcommBatchTransferDesc says, and what each single function does. */
struct hccld_transfer {
	enum hccld_transfer_kind {
		HCCLD_TRANSFER_NONE, /* a notify alone */
		HCCLD_TRANSFER_WRITE,
		HCCLD_TRANSFER_READ,
	} kind;
	bool reduces, notifies;
	void *to;
	const void *from;
	uint64_t amount; /* bytes, or elements if it reduces */
	uint32_t type, op, notify;
};

/* @thread 0: what the library queues for the channel's communicator. All are checked before the first is queued. */
int hccld_primitive_transfer(const char *function, uint64_t thread, uint64_t channel, const struct hccld_transfer *transfers,
			     uint32_t count);
int hccld_primitive_wait_channel(const char *function, uint64_t thread, uint64_t channel, uint32_t index, uint32_t timeout_s);
/* The calling OS thread waits. -ETIME. */
int hccld_primitive_await_channel(const char *function, uint64_t channel, uint32_t index, uint32_t timeout_s);
/* Are they a thread, and a channel? */
int hccld_primitive_fence_channel(const char *function, uint64_t thread, uint64_t channel);
/* Until all that was queued without a thread is done. */
int hccld_primitive_drain(const char *function, uint64_t channel);

/* ---- locks of communicators, by name ---- */

int hccld_primitive_lock_comm(const char *function, const char *name);
int hccld_primitive_unlock_comm(const char *function, const char *name);
