/* SPDX-License-Identifier: Apache-2.0 */
/* A rig whose contexts threads of clients may take, and such a thread. */
#pragma once

#include "tests/support/rig.h"
#include "tests/support/test.h"

#define SEND(peer_, offset_, bytes_) { ITEM_SEND, peer_, offset_, bytes_, 7 }
#define RECEIVE(peer_, offset_, bytes_) { ITEM_RECEIVE, peer_, offset_, bytes_, 7 }

static inline struct rig *rig_shared(uint32_t ranks)
{
	struct rig *rig = rig_new(ranks, false);

	engine_set_direct(rig->engine, true);
	return rig;
}

static inline enum context_state kind_of(const struct rig *rig, uint32_t rank)
{
	return yard_kind(atomic_load(&rig->contexts[rank].words->state));
}

static inline bool has_bit(const struct rig *rig, uint32_t rank)
{
	return atomic_load(rig->contexts[rank].bit_word) & rig->contexts[rank].bit;
}

/* As a thread of the client: it takes the context, or leaves it. */
static inline void client_stores(struct rig *rig, uint32_t rank, enum context_state kind)
{
	struct view_context *context = &rig->contexts[rank];
	uint64_t state = atomic_load(&context->words->state);

	if (kind == CONTEXT_CLIENT) {
		check(yard_is_free(state));
		atomic_store(&context->words->asleep, 0);
	}
	if (kind == CONTEXT_SLEEP)
		atomic_store(&context->words->asleep, 1);
	atomic_store(&context->words->state, yard_next(state, kind));
	if (kind == CONTEXT_LEFT || kind == CONTEXT_PATIENT || kind == CONTEXT_HELD)
		atomic_fetch_or(context->bit_word, context->bit);
}

static inline void client_drives(struct rig *rig, uint32_t rank, enum context_state leaves_as)
{
	client_stores(rig, rank, CONTEXT_CLIENT);
	client_stores(rig, rank, leaves_as);
}
