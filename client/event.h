/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of this process: recorded in one stream, waited for in others or by threads. A handle is looked up and never followed. Any
 * thread. All return 0 or a negative errno with the text set; -EBADF: unknown handle, or its device was reset.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/session.h"

#define EVENTS_MAX 65536u /* of one process */

/* @has_time: it may be asked for times. @is_extended: a wait before the first record, and a question, find it complete. -ENOANO. */
int hccld_event_new(struct hccld_context *context, bool has_time, bool is_extended, void **ret_handle);
/* Queued records and waits of it stay, and are done. Waits for a record that nobody has queued end when the device does. */
int hccld_event_destroy(void *handle);
/* @stream: a handle; NULL: the default stream. */
int hccld_event_record(void *handle, void *stream);
/* Not complete until it is recorded again. */
int hccld_event_reset(void *handle, void *stream);
/*
 * The stream waits for the record that was queued last or, if there is none, for the next one. @timeout_ms from the moment at which it
 * begins to wait; 0: for ever; then it goes on, with an error.
 */
int hccld_event_wait(void *handle, void *stream, uint32_t timeout_ms);
/* What aclrtStreamWaitEvent takes, in ms; 0 at first: for ever. */
uint32_t hccld_event_wait_timeout(void);
void hccld_event_set_wait_timeout(uint32_t timeout_ms);
/* 1: recorded, and the streams have come to it; 0: not. */
int hccld_event_query(void *handle);
/* 1: nothing that was queued waits for it, and the record queued last is done; 0: not yet. */
int hccld_event_query_waits(void *handle);
/* @timeout_ms -1: for ever. -EALREADY. */
int hccld_event_synchronize(void *handle, int64_t timeout_ms);
/* -EL2NSYNC: no time, -EL3RST: the end is before the start. */
int hccld_event_elapsed(void *start, void *end, uint64_t *ret_ns);
/* CLOCK_MONOTONIC. */
int hccld_event_time(void *handle, uint64_t *ret_ns);
int hccld_event_id(void *handle, uint32_t *ret_id);
uint32_t hccld_event_room(void);

/* For device.c: its events have ended with it. */
void hccld_event_forget(struct hccld_context *context);
