/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that exists in this daemon. */
#include "registry/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "base/memfd.h"
#include "proto/cleanup.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/remnant.h"
#include "registry/session.h"
#include "registry/tenant.h"

#define QUICK_STARTS_MAX 3u
#define BEACON_SIZE 4096u

struct registry *registry_free(struct registry *registry)
{

	if (!registry)
		return NULL;
	list_for_each(struct session, session, &registry->sessions, link)
		session_free(session);
	list_for_each(struct comm, comm, &registry->comms, link)
		comm_free(comm);
	list_for_each(struct remnant, remnant, &registry->remnants, link)
		remnant_free(remnant);
	list_for_each(struct tenant, tenant, &registry->tenants, link)
		tenant_free(tenant);
	idmap_deinit(&registry->session_ids);
	idmap_deinit(&registry->comm_ids);
	idmap_deinit(&registry->comm_keys);
	idmap_deinit(&registry->export_keys);
	idmap_deinit(&registry->registration_ids);
	idmap_deinit(&registry->channel_ids);
	memfd_unmap(registry->beacon, BEACON_SIZE);
	close_fdp(&registry->beacon_fd);
	close_fdp(&registry->beacon_read_only_fd);
	close_fdp(&registry->event_fd);
	records_free(registry->records);
	free(registry->devices);
	free(registry);
	return NULL;
}

static void registry_freep(struct registry **registry)
{
	registry_free(*registry);
}

/* The records of an earlier process, or NULL with a report. */
static struct records *records_inherit(const struct descriptor_store *store)
{
	struct records *records = NULL;
	int fd = store->take(store->data, STORE_REGISTRY);
	int more_fd = store->take(store->data, STORE_REGISTRY_MORE);
	uint32_t starts;
	int r;

	if (fd < 0) {
		close_fdp(&more_fd);
		return NULL;
	}
	r = records_new(fd, more_fd, &records);
	if (r < 0) {
		log_error(
			"the registry of the previous process cannot be used (%s): all sessions end",
			r == -EPROTO ? "another layout" : strerror(-r));
		return NULL;
	}
	starts = records_count_start(records);
	if (starts > QUICK_STARTS_MAX) {
		log_error(
			"hccld has ended %u times within 10 s of its start; what it keeps over restarts is taken for the cause, and is dropped: all sessions end",
			starts - 1);
		return records_free(records);
	}
	return records;
}

/* The beacon and the eventfd of an earlier process. -ENOENT. */
static int registry_inherit(struct registry *registry)
{
	const struct descriptor_store *store = registry->store;
	struct stat st;

	registry->records = records_inherit(store);
	if (!registry->records)
		return -ENOENT;
	registry->beacon_fd = store->take(store->data, STORE_BEACON);
	registry->event_fd = store->take(store->data, STORE_EVENT);
	if (registry->beacon_fd >= 0 && registry->event_fd >= 0 &&
	    fstat(registry->beacon_fd, &st) == 0 && st.st_size == BEACON_SIZE &&
	    /* new when the earlier process was of release 0.1.0 */
	    store->add(store->data, STORE_REGISTRY_MORE, records_more_fd(registry->records)) == 0)
		return 0;
	log_error(
		"the descriptor store has a registry but not what belongs to it: all sessions end");
	registry->records = records_free(registry->records);
	close_fdp(&registry->beacon_fd);
	close_fdp(&registry->event_fd);
	return -ENOENT;
}

static int registry_create(struct registry *registry)
{
	const struct descriptor_store *store = registry->store;
	int r;

	/* what an unusable registry has left there under these names */
	store->remove(store->data, STORE_REGISTRY);
	store->remove(store->data, STORE_REGISTRY_MORE);
	store->remove(store->data, STORE_BEACON);
	store->remove(store->data, STORE_EVENT);
	r = records_new(-1, -1, &registry->records);
	if (r < 0)
		return r;
	/* counted like every other start, in case this one ends within 10 s */
	records_count_start(registry->records);
	r = memfd_new("hccld-beacon", BEACON_SIZE, true, &registry->beacon_fd);
	if (r < 0)
		return r;
	registry->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (registry->event_fd < 0) {
		r = -errno;
		log_error("eventfd failed: %s", strerror(-r));
		return r;
	}
	r = store->add(store->data, STORE_BEACON, registry->beacon_fd);
	if (r < 0)
		return r;
	r = store->add(store->data, STORE_EVENT, registry->event_fd);
	if (r < 0)
		return r;
	r = store->add(store->data, STORE_REGISTRY_MORE, records_more_fd(registry->records));
	if (r < 0)
		return r;
	return store->add(store->data, STORE_REGISTRY, records_fd(registry->records));
}

static int registry_open_beacon(struct registry *registry)
{
	void *base;
	int r;

	r = memfd_map(registry->beacon_fd, BEACON_SIZE, true, &base);
	if (r < 0)
		return r;
	registry->beacon = base;
	registry->beacon->magic = YARD_MAGIC;
	registry->beacon->version = YARD_VERSION;
	/* those of the previous process are counted again as they are found */
	atomic_store_explicit(&registry->beacon->contexts, 0, memory_order_relaxed);
	registry_set_stopping(registry, BEACON_SERVES);
	return memfd_read_only(registry->beacon_fd, &registry->beacon_read_only_fd);
}

/* What the sessions of the previous process need. */
static uint32_t devices_in_use(struct registry *registry)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_CONTEXT); i++) {
		const struct record_context *record = records_get(registry->records, RECORD_CONTEXT, i);

		if (record && record->device >= count && record->device < HCCLD_DEVICES_MAX)
			count = record->device + 1;
	}
	return count;
}

/* Records are there. */
static int registry_add_devices(struct registry *registry, const struct registry_options *options)
{
	uint32_t in_use = devices_in_use(registry);

	/* fewer are for a start without sessions: a crash must not make that of this one */
	if (in_use > options->device_count)
		log_warning("devices is %" PRIu32 " for this start, not %" PRIu32 ": sessions of the previous process use them; drain and restart",
			    in_use, options->device_count);
	registry->device_count = in_use > options->device_count ? in_use : options->device_count;
	registry->devices = calloc(registry->device_count, sizeof(*registry->devices));
	if (!registry->devices)
		return -ENOMEM;
	for (uint32_t i = 0; i < registry->device_count; i++)
		account_init(&registry->devices[i].memory, options->device_memory);
	account_init(&registry->host, options->host_memory);
	holder_init(&registry->comm_holder, 0);
	return 0;
}

int registry_new(const struct registry_options *options, const struct descriptor_store *store,
		 struct registry **ret_registry, bool *ret_inherited)
{
	CLEANUP(registry_freep) struct registry *registry = calloc(1, sizeof(*registry));
	bool inherited;
	int r;

	if (!registry)
		return -ENOMEM;
	registry->store = store;
	registry->beacon_fd = registry->event_fd = registry->beacon_read_only_fd = -1;
	list_init(&registry->tenants);
	list_init(&registry->sessions);
	list_init(&registry->remnants);
	list_init(&registry->comms);
	list_init(&registry->quotas);
	list_init(&registry->lazy);
	registry->limits = options->limits;
	registry->notifies_per_device = options->notifies;
	registry->cores_per_device = options->cores_per_device;
	if (gethostname(registry->node, sizeof(registry->node)) < 0)
		registry->node[0] = 0;
	registry->node[sizeof(registry->node) - 1] = 0;
	inherited = registry_inherit(registry) == 0;
	if (!inherited) {
		r = registry_create(registry);
		if (r < 0)
			return r;
	}
	r = registry_add_devices(registry, options);
	if (r == 0)
		r = registry_open_beacon(registry);
	if (r < 0)
		return r;
	*ret_inherited = inherited;
	*ret_registry = take_ptr(&registry);
	return 0;
}

const struct record_drain *registry_draining(const struct registry *registry)
{
	return records_get(registry->records, RECORD_DRAIN, 0);
}

int registry_drain(struct registry *registry, uint32_t uid, int32_t pid)
{
	const struct record_drain record = { .since_ns = clock_now_ns(), .uid = uid, .pid = pid };
	uint32_t index;

	if (registry_draining(registry))
		return 0;
	return records_add(registry->records, RECORD_DRAIN, &record, &index);
}

void registry_undrain(struct registry *registry)
{
	if (registry_draining(registry))
		records_remove(registry->records, RECORD_DRAIN, 0);
}

int registry_node(struct registry *registry, uint64_t *ret_node)
{
	const struct record_node *found = records_get(registry->records, RECORD_NODE, 0);
	struct record_node record = { .id = found ? found->id : 0 };
	uint32_t index;
	int r;

	while (!record.id)
		if (getrandom(&record.id, sizeof(record.id), 0) < 0)
			return -errno;
	*ret_node = record.id;
	if (found)
		return 0;
	r = records_add(registry->records, RECORD_NODE, &record, &index);
	return r;
}

bool registry_has_work(const struct registry *registry)
{
	list_for_each(struct session, session, &registry->sessions, link) {
		for (uint32_t i = 0; !session->is_ending && i < HCCLD_STREAMS_PER_SESSION; i++) {
			const struct stream *stream = session->places[i].stream;

			if (stream && !stream->is_closing &&
			    atomic_load_explicit(&stream->ring->completed, memory_order_acquire) !=
				    atomic_load_explicit(&stream->ring->tail, memory_order_acquire))
				return true;
		}
	}
	return false;
}

void registry_set_stopping(struct registry *registry, enum beacon_stopping stopping)
{
	atomic_store_explicit(&registry->beacon->stopping, stopping, memory_order_release);
}

enum beacon_path registry_path(const struct registry *registry)
{
	return (enum beacon_path)atomic_load_explicit(&registry->beacon->local_path, memory_order_relaxed);
}
