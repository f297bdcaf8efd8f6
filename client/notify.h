/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies of this process: its own, plain or counting, and plain ones that other processes have shared. Streams record them and wait for
 * them (notify_task.h). A handle is looked up and never followed. Any thread. All return 0 or a negative errno with the text set; -EBADF:
 * unknown handle, one of the other kind, or its device was reset.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/notify_task.h"
#include "client/session.h"
#include "client/share.h"

#define NOTIFIES_MAX 65536u /* handles of one process */

/* A notify as the program passes it. */
struct hccld_notify_handle {
	void *handle;
	bool is_counting; /* what it has to be */
};

/* -ENOSPC: the device has no more, or the user may not have more. */
int hccld_notify_new(struct hccld_context *context, bool is_counting, void **ret_handle);
/* Queued tasks that name it stay, and are done; waits for which no record is left end with CAUSE_ABORTED, those of other processes at once. */
int hccld_notify_destroy(struct hccld_notify_handle notify);
/* @stream: a handle; NULL: the default stream. -ESTALE: it was shared by a process that has destroyed it or ended. */
int hccld_notify_record(struct hccld_notify_handle notify, void *stream, enum notify_change change, uint32_t value);

struct hccld_notify_condition {
	enum notify_compare compare;
	uint32_t operand, mask;
	bool clears;	    /* it is 0 afterwards */
	uint32_t timeout_s; /* 0 or UINT32_MAX: for ever */
};
int hccld_notify_wait(struct hccld_notify_handle notify, void *stream, const struct hccld_notify_condition *condition);
/* Of a notify that was shared it is what its owner sees. */
int hccld_notify_id(struct hccld_notify_handle notify, uint32_t *ret_id);
/* All or none: plain ones of this process. Their values are 0 when it returns. */
int hccld_notify_reset(void *const *handles, size_t count);

/* ---- shared with other processes ---- */

/* The same key for every call that asks for the same. */
int hccld_notify_export(void *handle, bool any_process, char ret_key[HCCLD_KEY_TEXT]);
int hccld_notify_allow(void *handle, const int32_t *pids, size_t count);
/* -ENOENT, -EACCES. */
int hccld_notify_import(const char *key, void **ret_handle);

/* The plain notify of the context's device with that id which this process has, its own or shared. -ENOENT: none; no text. */
int hccld_notify_place_by_id(struct hccld_context *context, uint32_t id, struct hccld_notify_place *ret_place);

/* For share.c: the import is lost. */
void hccld_notify_lose(uint64_t segment, struct hccld_loss loss);
/* For device.c: its notifies have ended with it. */
void hccld_notify_forget(struct hccld_context *context);
