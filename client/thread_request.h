/* SPDX-License-Identifier: Apache-2.0 */
/* What thread.c asks the daemon. Stateless; any OS thread. All set the text of an error. */
#pragma once

#include <stdint.h>

#include "client/thread.h"

struct hccld_thread_wish {
	uint64_t context, rank; /* the daemon's; rank 0: none */
	uint32_t engine, notify_count;
	uint32_t stream; /* 1 + its place; 0: a new one */
};

/* *ret_place: of the stream. */
int hccld_thread_request_new(const struct hccld_thread_wish *wish, struct hccld_thread_part *ret_part, uint32_t *ret_place);
/* Errors are of no interest: what the daemon does not know has ended already. */
void hccld_thread_request_end(uint64_t id);
