/* SPDX-License-Identifier: Apache-2.0 */
#include "client/comm_buffer.h"

#include "client/buffer.h"
#include "client/comm.h"
#include "client/error.h"
#include "client/registration.h"
#include "client/segment.h"
#include "proto/feature.h"

/* With `making`. */
static int buffer_make(struct hccld_comm *comm)
{
	uint64_t bytes = (uint64_t)comm->settings.buffer_mb * 2 << 20;
	struct hccld_segment segment;
	int r;

	r = hccld_segment_new_lazy(comm->on, comm->task_rank, bytes, &segment);
	if (r < 0)
		return r;
	r = hccld_buffer_add(&(struct hccld_mapping){ .base = segment.base, .bytes = segment.size, .segment = segment.id,
						      .memory = HCCLD_MEMORY_DEVICE, .context = comm->on });
	if (r < 0) {
		hccld_segment_free(&segment);
		return r;
	}
	comm->buffer_bytes = segment.size;
	comm->buffer_segment = segment.id;
	/* release: whoever sees the address finds the rest */
	atomic_store_explicit(&comm->buffer, segment.base, memory_order_release);
	return 0;
}

int hccld_comm_buffer_get(struct hccld_comm *comm, void **ret_base, uint64_t *ret_bytes, uint64_t *ret_segment)
{
	struct hccld_session *session;
	int cancel, r;

	r = hccld_comm_check_context(comm);
	if (r < 0)
		return r;
	if (!atomic_load_explicit(&comm->buffer, memory_order_acquire)) {
		r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "HCCL buffers", &session);
		if (r < 0)
			return r;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		pthread_mutex_lock(&comm->making);
		if (!atomic_load_explicit(&comm->buffer, memory_order_relaxed))
			r = buffer_make(comm);
		pthread_mutex_unlock(&comm->making);
		pthread_setcancelstate(cancel, NULL);
		if (r < 0)
			return r;
	}
	*ret_base = atomic_load_explicit(&comm->buffer, memory_order_acquire);
	*ret_bytes = comm->buffer_bytes;
	if (ret_segment)
		*ret_segment = comm->buffer_segment;
	return 0;
}

void hccld_comm_buffer_leaving(const struct hccld_comm *comm)
{
	const void *base = atomic_load_explicit(&comm->buffer, memory_order_acquire);

	if (base)
		hccld_registration_withdraw(base, comm->buffer_bytes);
}

void hccld_comm_buffer_end(struct hccld_comm *comm)
{
	struct hccld_segment segment = { .base = atomic_load_explicit(&comm->buffer, memory_order_relaxed), .size = comm->buffer_bytes };

	if (!segment.base)
		return;
	hccld_buffer_remove(segment.base);
	hccld_segment_unmap(&segment);
	atomic_store_explicit(&comm->buffer, NULL, memory_order_relaxed);
}
