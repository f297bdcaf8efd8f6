/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the executor in this process, and who drives. */
#include "client/drive_state.h"

#include <pthread.h>
#include <stdlib.h>

#include "client/error.h"
#include "client/handover.h"
#include "client/mapping.h"
#include "client/stream.h"
#include "client/strict.h"
#include "client/table.h"
#include "engine/view.h"
#include "proto/feature.h"

#define SUBMIT_BUDGET 65536u	/* bytes that a submit copies itself: some microseconds */
#define SUBMIT_ROUNDS 16

struct direct_process hccld_drive_process HCCLD_TABLE;
pthread_mutex_t hccld_drive_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hccld_context *contexts[HCCLD_DEVICES_MAX]; /* with hccld_drive_mutex; open ones, by logical device */

static bool is_on(const struct hccld_session *session)
{
	return (session->features & HCCLD_FEATURE_DIRECT) && !hccld_strict_is_closed();
}

/* ---- contexts ---- */

void hccld_drive_open(struct hccld_context *context, const struct hccld_session *session)
{
	struct direct_context *direct = &context->direct;

	context->drives = is_on(session);
	if (!context->drives)
		return;
	/* the first time nobody can be there; later all have been kept out since it was closed */
	direct->bell.words = context->words;
	direct->bell.bit_word = context->bit_word;
	direct->bell.bit = context->bit;
	direct->beacon = session->beacon;
	direct->event_fd = session->event_fd;
	direct->process = &hccld_drive_process;
	direct->copies = session->yard_bytes == sizeof(struct yard_region) ? &((struct yard_region *)session->yard)->copies : NULL;
	direct->index = (uint32_t)(context->words - session->yard->contexts);
	for (uint32_t i = 0; i < atomic_load(&direct->ring_limit); i++)
		atomic_store(&direct->rings[i], NULL);
	pthread_mutex_lock(&hccld_drive_mutex);
	contexts[context->logical] = context;
	pthread_mutex_unlock(&hccld_drive_mutex);
	if (context->was_driven)
		direct_retreat(direct);
	context->was_driven = true;
}

void hccld_drive_close(struct hccld_context *context)
{
	if (!context->drives)
		return;
	pthread_mutex_lock(&hccld_drive_mutex);
	contexts[context->logical] = NULL;
	pthread_mutex_unlock(&hccld_drive_mutex);
	direct_intrude(&context->direct);
}

void hccld_drive_pause(struct hccld_context *context)
{
	if (context->drives)
		direct_intrude(&context->direct);
}

void hccld_drive_resume(struct hccld_context *context)
{
	if (context->drives)
		direct_retreat(&context->direct);
}

void hccld_drive_add_stream(struct hccld_context *context, struct stream_ring *ring)
{
	if (!context->drives)
		return;
	pthread_mutex_lock(&hccld_drive_mutex);
	direct_intrude(&context->direct);
	direct_add_ring(&context->direct, ring);
	direct_retreat(&context->direct);
	pthread_mutex_unlock(&hccld_drive_mutex);
}

void hccld_drive_remove_stream(struct hccld_context *context, struct stream_ring *ring)
{
	if (!context->drives)
		return;
	pthread_mutex_lock(&hccld_drive_mutex);
	direct_intrude(&context->direct);
	direct_remove_ring(&context->direct, ring);
	direct_retreat(&context->direct);
	pthread_mutex_unlock(&hccld_drive_mutex);
}

/* With hccld_drive_mutex: no pass that began before is under way. */
static void await_passes(void)
{
	for (uint32_t i = 0; i < HCCLD_DEVICES_MAX; i++) {
		if (!contexts[i])
			continue;
		direct_intrude(&contexts[i]->direct);
		direct_retreat(&contexts[i]->direct);
	}
}

/* ---- own memory ---- */

void hccld_drive_add_segment(const struct hccld_segment *segment)
{
	struct direct_segment *entry = &hccld_drive_process.places[VIEW_INDEX(segment->id) % HCCLD_SEGMENTS_PER_SESSION].segment;

	pthread_mutex_lock(&hccld_drive_mutex);
	atomic_store(&entry->id, 0);
	entry->base = segment->base;
	entry->size = segment->size;
	/* last: a pass that finds it finds all */
	atomic_store_explicit(&entry->id, segment->id, memory_order_release);
	pthread_mutex_unlock(&hccld_drive_mutex);
}

void hccld_drive_remove_segment(const struct hccld_segment *segment)
{
	struct direct_segment *entry = &hccld_drive_process.places[VIEW_INDEX(segment->id) % HCCLD_SEGMENTS_PER_SESSION].segment;

	if (atomic_load_explicit(&entry->id, memory_order_relaxed) != segment->id)
		return;
	pthread_mutex_lock(&hccld_drive_mutex);
	atomic_store(&entry->id, 0);
	await_passes();
	pthread_mutex_unlock(&hccld_drive_mutex);
}

/* ---- ranks ---- */

static _Atomic(struct direct_rank *) *rank_place(const struct hccld_comm *comm)
{
	return &hccld_drive_process.places[VIEW_INDEX(comm->task_rank) % HCCLD_RANKS_PER_SESSION].rank;
}

int hccld_drive_add_rank(struct hccld_comm *comm)
{
	struct hccld_drive_rank *rank;

	comm->drive = NULL;
	if (!comm->on->drives)
		return 0;
	rank = calloc(1, sizeof(*rank));
	if (rank)
		rank->direct.peers = calloc(comm->size, sizeof(*rank->direct.peers));
	if (!rank || !rank->direct.peers) {
		free(rank);
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a communicator of %u ranks", comm->size);
	}
	rank->on = comm->on;
	rank->direct.handle = comm->task_rank;
	rank->direct.region = comm->region;
	rank->direct.rank = comm->rank;
	rank->direct.size = comm->size;
	comm->drive = rank;
	pthread_mutex_lock(&hccld_drive_mutex);
	atomic_store_explicit(rank_place(comm), &rank->direct, memory_order_release);
	if (VIEW_INDEX(comm->task_rank) >= atomic_load(&hccld_drive_process.rank_limit))
		atomic_store(&hccld_drive_process.rank_limit, VIEW_INDEX(comm->task_rank) + 1);
	pthread_mutex_unlock(&hccld_drive_mutex);
	return 0;
}

void hccld_drive_remove_rank(struct hccld_comm *comm)
{
	if (!comm->drive)
		return;
	pthread_mutex_lock(&hccld_drive_mutex);
	if (atomic_load(rank_place(comm)) == &comm->drive->direct) {
		atomic_store(rank_place(comm), NULL);
		await_passes();
	}
	pthread_mutex_unlock(&hccld_drive_mutex);
}

void hccld_drive_free_rank(struct hccld_comm *comm)
{
	struct hccld_drive_rank *rank = comm->drive;

	if (!rank)
		return;
	hccld_drive_remove_rank(comm);
	for (uint32_t i = 0; i < comm->size; i++) {
		hccld_drive_unmap_peer(&rank->direct.peers[i]);
		free(rank->direct.peers[i].mapped);
	}
	for (uint32_t i = 0; i < rank->direct.extent_count; i++)
		hccld_mapping_free(rank->direct.extents[i].base, rank->direct.extents[i].size);
	free(rank->direct.peers);
	free(rank);
	comm->drive = NULL;
}

/* ---- submitting ---- */

void hccld_drive_submitted(struct hccld_context *context, const struct hccld_session *session)
{
	struct direct_context *direct = &context->direct;
	bool is_taken = context->drives && direct_take(direct);

	for (int i = 0; i < SUBMIT_ROUNDS && is_taken; i++) {
		enum direct_left left;
		struct direct_wish wish;

		direct->wish.need = NEED_NOTHING;
		direct->copies_sends = hccld_stream_wait_is_crowded();
		left = direct_pass(direct, SUBMIT_BUDGET, false);
		wish = direct->wish;
		/* room for what is to be complete without its receiver; all else can wait for who waits */
		if (__builtin_expect(wish.need < NEED_POOL || i == SUBMIT_ROUNDS - 1, 1)) {
			direct_leave(direct, left);
			return;
		}
		direct_go_away(direct);
		(void)hccld_drive_fulfil(&wish);
		is_taken = direct_come_back(direct);
	}
	hccld_handover_tell(&(struct hccld_handover){ context->words, context->bit_word, context->bit, session->beacon, session->event_fd });
}
