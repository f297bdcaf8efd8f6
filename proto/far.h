/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of pairs between two nodes; engine/far.h says what they mean. Numbers are least significant byte first, as on both kinds of machines. */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "proto/limits.h"

enum far_kind {
	FAR_OFFER = 1,
	FAR_PULL = 2,
	FAR_DATA = 3,
	FAR_END = 4,
	FAR_RECEIVED = 5,
	FAR_FAIL = 6,
	FAR_BARRIER = 7,
	FAR_MEMBER = 8,
	FAR_GONE = 9,
};

#define FAR_DATA_MAX 65536u	/* payload of one frame */

struct far_frame {
	uint8_t kind;		/* enum far_kind */
	uint8_t data_type;	/* FAR_OFFER */
	uint8_t has_payload;	/* FAR_OFFER: it is behind the frame */
	uint8_t reserved;
	uint32_t source, destination;
	uint32_t reserved2;
	uint64_t number;
	uint64_t bytes;		/* FAR_OFFER: of the message; FAR_PULL, FAR_DATA, FAR_END: which attempt; FAR_MEMBER: wait status */
	uint64_t offset;	/* FAR_DATA: of the payload in it */
};
static_assert(sizeof(struct far_frame) == 40, "no holes");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers go as they are");
