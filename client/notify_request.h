/* SPDX-License-Identifier: Apache-2.0 */
/* What notify.c asks the daemon. Stateless; any thread. All set the text of an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"

int hccld_notify_request_new(struct hccld_context *context, bool is_counting, uint64_t *ret_segment, uint32_t *ret_id);
int hccld_notify_request_free(uint64_t context, uint32_t id);
int hccld_notify_request_reset(uint64_t context, const uint32_t *ids, size_t count);

/* What came with an import. */
struct hccld_notify_import {
	uint64_t segment, offset; /* offset: in its owner's segment */
	uint32_t pid, device;	  /* of its owner; the daemon's number */
};
/* @key: HCCLD_KEY_BYTES_MAX bytes. -EINVAL: it is one of memory. */
int hccld_notify_request_import(struct hccld_context *context, const uint8_t *key, struct hccld_notify_import *ret_import);
/* Errors are of no interest: what the daemon does not know it has freed already. */
void hccld_notify_request_give_back(uint64_t segment);
