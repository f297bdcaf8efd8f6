/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquiring channels: descriptors are checked, ends offered, waited for, and taken into the table. `taking` is held while ends are taken in,
 * so that two threads that want the same channel get the same handle; nobody holds it while he waits for a peer, or threads that acquire
 * channels to different peers would wait for each other in a circle.
 */
#include "client/channel_acquire.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/channel.h"
#include "client/channel_request.h"
#include "client/comm.h"
#include "client/comm_buffer.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/registration.h"
#include "client/share.h"
#include "proto/channel.h"
#include "proto/cleanup.h"

#define COUNT_MAX 1048576u
#define OFFER_ATTEMPTS 3
#define DESC_SIZE_MAX 4096u /* of later releases */

static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

struct acquire {
	const char *function;
	struct hccld_comm *comm; /* pinned */
	uint32_t engine, count;
	const HcclChannelDesc *descs;
	struct hccld_channel_config config;
	ChannelHandle *handles;		    /* [count], 0: not there yet */
	struct hccld_channel_offer *offers; /* [offer_count] */
	uint64_t *ids;			    /* the daemon's, of the offers */
	uint32_t *of;			    /* which descriptor an offer is of */
	uint32_t offer_count;
};

/* ---- descriptors ---- */

/* A program for a later release has larger ones. */
static const HcclChannelDesc *desc_at(const struct acquire *acquire, uint32_t index)
{
	return (const HcclChannelDesc *)((const char *)acquire->descs + (size_t)index * acquire->descs[0].header.size);
}

static int header_check(const struct acquire *acquire, uint32_t index)
{
	const CommAbiHeader *header = &desc_at(acquire, index)->header;
	const uint32_t size = acquire->descs[0].header.size;

	if (header->magicWord != HCCL_CHANNEL_MAGIC_WORD || header->version < HCCL_CHANNEL_VERSION || header->size != size ||
	    size < sizeof(HcclChannelDesc) || size > DESC_SIZE_MAX || size % _Alignof(HcclChannelDesc))
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: channelDescs[%u].header is version %u, magic word %#x, size %u; expected what HcclChannelDescInit writes: %u, %#x, %zu",
				   acquire->function, index, header->version, header->magicWord, header->size, HCCL_CHANNEL_VERSION,
				   HCCL_CHANNEL_MAGIC_WORD, sizeof(HcclChannelDesc));
	return 0;
}

static int path_check(const struct acquire *acquire, uint32_t index)
{
	const HcclChannelDesc *desc = desc_at(acquire, index);
	const uint32_t protocol = (uint32_t)desc->channelProtocol;

	if (protocol >= CHANNEL_PROTOCOLS)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: channelDescs[%u].channelProtocol is %d; expected COMM_PROTOCOL_HCCS (0) to COMM_PROTOCOL_UBG (9): HcclRankGraphGetLinks tells which link two ranks",
				   acquire->function, index, (int)desc->channelProtocol);
	if (!hccld_environment_intra_roce() || !channel_protocol_is_mapped(protocol))
		return 0;
	return hccld_error(CAUSE_NO_PATH,
			   "%s: channelDescs[%u]: rank %u and rank %u cannot reach each other by %s: HCCL_INTRA_ROCE_ENABLE is 1, so ranks of a server use RoCE; use COMM_PROTOCOL_ROCE, or set HCCL_INTRA_PCIE_ENABLE=1 and HCCL_INTRA_ROCE_ENABLE=0",
			   acquire->function, index, acquire->comm->rank, desc->remoteRank, channel_protocol_name(protocol));
}

static int desc_check(const struct acquire *acquire, uint32_t index)
{
	const HcclChannelDesc *desc = desc_at(acquire, index);
	const struct hccld_comm *comm = acquire->comm;
	int r = header_check(acquire, index);

	if (r < 0)
		return r;
	if (desc->remoteRank >= comm->size || desc->remoteRank == comm->rank)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: channelDescs[%u].remoteRank is %u; expected another rank than %u, below %u, the size of communicator %s",
				   acquire->function, index, desc->remoteRank, comm->rank, comm->size, comm->name);
	r = path_check(acquire, index);
	if (r < 0)
		return r;
	if (desc->notifyNum > HCCLD_NOTIFIES_MAX)
		return hccld_error(CAUSE_ARGUMENT, "%s: channelDescs[%u].notifyNum is %u; expected at most %u", acquire->function, index, desc->notifyNum,
				   HCCLD_NOTIFIES_MAX);
	if (desc->memHandleNum > HCCLD_CHANNEL_MEMORIES_MAX)
		return hccld_error(CAUSE_ARGUMENT, "%s: channelDescs[%u].memHandleNum is %u; expected at most %u", acquire->function, index,
				   desc->memHandleNum, HCCLD_CHANNEL_MEMORIES_MAX);
	if (desc->memHandleNum && !desc->memHandles)
		return hccld_error(CAUSE_NULL, "%s: channelDescs[%u].memHandles is NULL, but memHandleNum is %u", acquire->function, index,
				   desc->memHandleNum);
	return 0;
}

/* Queues that are shared make no difference here: nothing is queued. */
static int config_check(const struct acquire *acquire)
{
	if (!acquire->config.is_shared)
		return 0;
	if (!*acquire->config.tag)
		return hccld_error(CAUSE_ARGUMENT, "%s: config asks for a shared queue and has no HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG", acquire->function);
	if (acquire->engine != CHANNEL_ENGINE_AIV)
		return hccld_error(CAUSE_NOT_SUPPORTED, "%s: engine is %s; only channels of COMM_ENGINE_AIV share a queue", acquire->function,
				   channel_engine_name(acquire->engine));
	for (uint32_t i = 0; i < acquire->count; i++)
		if (!channel_protocol_is_ub((uint32_t)desc_at(acquire, i)->channelProtocol))
			return hccld_error(CAUSE_NOT_SUPPORTED, "%s: channelDescs[%u].channelProtocol is %s; only channels of Unified Bus (UB_*) share a queue",
					   acquire->function, i, channel_protocol_name((uint32_t)desc_at(acquire, i)->channelProtocol));
	return 0;
}

static int acquire_check(const struct acquire *acquire, int32_t engine)
{
	int r = 0;

	if (engine < 0 || (uint32_t)engine >= CHANNEL_ENGINES)
		return hccld_error(CAUSE_ARGUMENT, "%s: engine is %d; expected COMM_ENGINE_CPU (0) to COMM_ENGINE_CCU (5)", acquire->function, engine);
	if (!acquire->count || acquire->count > COUNT_MAX)
		return hccld_error(CAUSE_ARGUMENT, "%s: channelNum is %u; expected 1 to %u", acquire->function, acquire->count, COUNT_MAX);
	for (uint32_t i = 0; i < acquire->count && r == 0; i++)
		r = desc_check(acquire, i);
	return r < 0 ? r : config_check(acquire);
}

/* ---- offers ---- */

static void acquire_free(struct acquire *acquire)
{
	for (uint32_t i = 0; i < acquire->offer_count; i++)
		free((void *)acquire->offers[i].registrations);
	free(acquire->handles);
	free(acquire->offers);
	free(acquire->ids);
	free(acquire->of);
	if (acquire->comm)
		hccld_comm_put(acquire->comm);
}

static int acquire_begin(struct acquire *acquire, void *comm, int32_t engine, void *config)
{
	int r = hccld_comm_get(comm, &acquire->comm);

	acquire->engine = (uint32_t)engine;
	if (r == 0)
		r = hccld_channel_config_read(config, &acquire->config);
	if (r == 0)
		r = acquire_check(acquire, engine);
	if (r < 0)
		return r;
	acquire->handles = calloc(acquire->count, sizeof(*acquire->handles));
	acquire->offers = calloc(acquire->count, sizeof(*acquire->offers));
	acquire->ids = calloc(acquire->count, sizeof(*acquire->ids));
	acquire->of = calloc(acquire->count, sizeof(*acquire->of));
	if (!acquire->handles || !acquire->offers || !acquire->ids || !acquire->of)
		return hccld_error(CAUSE_HOST_MEMORY, "%s: no memory for %u channels", acquire->function, acquire->count);
	return 0;
}

static uint64_t find(const struct acquire *acquire, uint32_t index)
{
	const HcclChannelDesc *desc = desc_at(acquire, index);

	return hccld_channel_find(acquire->comm, acquire->engine, desc->remoteRank, (uint32_t)desc->channelProtocol);
}

static int offer_fill(struct acquire *acquire, uint32_t index)
{
	const HcclChannelDesc *desc = desc_at(acquire, index);
	uint64_t *registrations = calloc(desc->memHandleNum + 1, sizeof(*registrations));
	int r = 0;

	if (!registrations)
		return hccld_error(CAUSE_HOST_MEMORY, "%s: no memory for %u channels", acquire->function, acquire->count);
	acquire->of[acquire->offer_count] = index;
	acquire->offers[acquire->offer_count++] = (struct hccld_channel_offer){ .peer = desc->remoteRank,
										.protocol = (uint32_t)desc->channelProtocol,
										.notify_count = desc->notifyNum,
										.registrations = registrations,
										.registration_count = desc->memHandleNum };
	for (uint32_t i = 0; i < desc->memHandleNum && r == 0; i++)
		r = hccld_registration_id(acquire->function, acquire->comm, desc->memHandles[i], &registrations[i]);
	return r;
}

/*
 * A channel that is there already: its peer must be there, too. One whose peer has gone is the program's to end, if it has the handle;
 * otherwise, after a call that failed for another channel's sake, it is ended here, and *ret_is_there is false.
 */
static int old_check(const struct acquire *acquire, uint64_t handle, bool *ret_is_there)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	int r = hccld_channel_get(acquire->function, handle, &channel);

	*ret_is_there = true;
	if (r == 0)
		r = hccld_channel_check(channel, acquire->function);
	if (r == 0 || !channel || atomic_load_explicit(&channel->is_told, memory_order_relaxed))
		return r;
	hccld_error_forget();
	hccld_error_mute(true);
	(void)hccld_channel_destroy(acquire->comm, handle);
	hccld_error_mute(false);
	*ret_is_there = false;
	return 0;
}

/* What is there already, and offers for the rest. */
static int acquire_sort(struct acquire *acquire)
{
	int r = 0;

	for (uint32_t i = 0; i < acquire->count && r == 0; i++) {
		bool is_there = false;

		acquire->handles[i] = find(acquire, i);
		if (acquire->handles[i])
			r = old_check(acquire, acquire->handles[i], &is_there);
		if (r == 0 && !is_there)
			r = offer_fill(acquire, i);
	}
	return r;
}

/* With `taking`. */
static int channel_take(struct acquire *acquire, uint32_t offer)
{
	const uint32_t lost = hccld_share_lost_count();
	struct hccld_channel *channel;
	int r = hccld_channel_new(acquire->comm, &channel);

	if (r < 0)
		return r;
	channel->id = acquire->ids[offer];
	channel->engine = acquire->engine;
	channel->peer = acquire->offers[offer].peer;
	channel->protocol = acquire->offers[offer].protocol;
	r = hccld_channel_request_describe(channel);
	if (r == 0)
		r = hccld_channel_publish(channel);
	if (r < 0) {
		hccld_channel_drop(channel);
		return r;
	}
	acquire->handles[acquire->of[offer]] = channel->handle;
	/* what was lost before it could be found in the table */
	hccld_share_refresh_since(lost);
	return 0;
}

/* @is_partial: as many as can be. */
static int acquire_take(struct acquire *acquire, bool is_partial)
{
	int cancel, r = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&taking);
	for (uint32_t i = 0; i < acquire->offer_count && (r == 0 || is_partial); i++) {
		uint64_t *handle = &acquire->handles[acquire->of[i]];

		*handle = find(acquire, acquire->of[i]);
		if (!*handle)
			r = channel_take(acquire, i);
	}
	pthread_mutex_unlock(&taking);
	pthread_setcancelstate(cancel, NULL);
	return r;
}

/* -ENOENT: another thread, whose time was over, has taken back an end that both had offered. */
static int acquire_offer(struct acquire *acquire, uint64_t buffer, bool *ret_is_offered)
{
	int r = hccld_channel_request_offer(acquire->comm->task_rank, acquire->engine, buffer, acquire->offers, acquire->offer_count, acquire->ids);

	*ret_is_offered = r == 0;
	return r < 0 ? r : hccld_channel_request_await(acquire->ids, acquire->offer_count, hccld_environment_connect_timeout_ms());
}

static int acquire_new(struct acquire *acquire)
{
	uint64_t segment, bytes;
	bool is_offered;
	void *buffer;
	int r = hccld_comm_buffer_get(acquire->comm, &buffer, &bytes, &segment);

	if (r < 0)
		return r;
	for (int attempt = 0; attempt < OFFER_ATTEMPTS; attempt++) {
		if (attempt)
			hccld_error_forget();
		r = acquire_offer(acquire, segment, &is_offered);
		if (!is_offered)
			return r;
		if (status_cause(r) != CAUSE_NOT_FOUND)
			break;
	}
	if (r == 0)
		r = acquire_take(acquire, false);
	if (r < 0) {
		hccld_error_mute(true);
		(void)hccld_channel_request_close(acquire->ids, acquire->offer_count, true);
		/* those that stay are complete: their peers have them, and so must we */
		(void)acquire_take(acquire, true);
		hccld_error_mute(false);
	}
	return r;
}

/* From now on they are the program's to end. */
static void acquire_tell(const struct acquire *acquire, ChannelHandle *ret_channels)
{
	for (uint32_t i = 0; i < acquire->count; i++) {
		CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;

		ret_channels[i] = acquire->handles[i];
		hccld_error_mute(true);
		if (ret_channels[i] && hccld_channel_get(acquire->function, ret_channels[i], &channel) == 0)
			atomic_store_explicit(&channel->is_told, true, memory_order_relaxed);
		hccld_error_mute(false);
	}
}

int hccld_channel_acquire(const char *function, void *comm, int32_t engine, const HcclChannelDesc *descs, uint32_t count, void *config,
			  ChannelHandle *ret_channels)
{
	CLEANUP(acquire_free) struct acquire acquire = { .function = function, .descs = descs, .count = count };
	int r = acquire_begin(&acquire, comm, engine, config);

	if (r == 0)
		r = hccld_comm_check_context(acquire.comm);
	if (r == 0)
		r = acquire_sort(&acquire);
	if (r == 0 && acquire.offer_count)
		r = acquire_new(&acquire);
	if (r == 0)
		acquire_tell(&acquire, ret_channels);
	return r;
}

int hccld_channel_query(const char *function, void *comm, int32_t engine, const HcclChannelDesc *descs, uint32_t count,
			ChannelHandle *ret_channels)
{
	CLEANUP(acquire_free) struct acquire acquire = { .function = function, .descs = descs, .count = count };
	int r = acquire_begin(&acquire, comm, engine, NULL);

	if (r == 0)
		r = hccld_comm_check_context(acquire.comm);
	for (uint32_t i = 0; i < count && r == 0; i++)
		acquire.handles[i] = find(&acquire, i);
	if (r == 0)
		acquire_tell(&acquire, ret_channels);
	return r;
}

int hccld_channels_destroy(void *comm_handle, const ChannelHandle *channels, uint32_t count)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *comm = NULL;
	int r = hccld_comm_get(comm_handle, &comm), first = 0;

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++) {
		hccld_error_mute(first < 0);
		r = hccld_channel_destroy(comm, channels[i]);
		if (first == 0)
			first = r;
	}
	hccld_error_mute(false);
	return first;
}
