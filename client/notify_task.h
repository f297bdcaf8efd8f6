/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of streams that record notifies and wait for them (proto/notify.h). Whose notify it is, and where, is the caller's. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/notify.h"

struct hccld_stream;

/* Where a notify is, by an entry of this process: its own segment of kind NOTIFY, or an import of somebody else's. */
struct hccld_notify_place {
	uint64_t segment, offset;
};

/*
 * In stream order: the notify changes once, whatever happens to the daemon. A plain notify is set to 1 (NOTIFY_SET, 1). A record that is
 * taken out of its stream (aclrtStreamAbort, an error with ACL_STOP_ON_FAILURE before it) does not happen. -EOPNOTSUPP: the daemon is older.
 */
int hccld_notify_submit_record(struct hccld_stream *stream, const struct hccld_notify_place *place, enum notify_change change,
			       uint32_t value);
/*
 * In stream order: until the notify's value compares with @operand (@mask: of NOTIFY_EQUAL_MASKED only); @clears: the value becomes 0 in
 * the same step. A plain notify is waited for by (NOTIFY_EQUAL, 1, 0, true). @timeout_ms 0: never; it counts from when the task becomes
 * the head of its stream, and ends the wait with CAUSE_EXEC_TIMEOUT.
 */
int hccld_notify_submit_wait(struct hccld_stream *stream, const struct hccld_notify_place *place, enum notify_compare compare,
			     uint32_t operand, uint32_t mask, bool clears, uint32_t timeout_ms);

/* Is a task queued on a stream of this process that names @segment, an import? */
bool hccld_notify_is_queued(uint64_t segment);
