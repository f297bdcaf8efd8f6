/* SPDX-License-Identifier: Apache-2.0 */
/* Ended sessions whose processes live. */
#include "registry/remnant.h"

#include <errno.h>
#include <stdlib.h>

#include "base/process.h"
#include "proto/cleanup.h"
#include "proto/feature.h"
#include "registry/context.h"
#include "registry/quota.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"

#define REMNANT_DESCRIPTORS 1u /* its pidfd */

/* Records of contexts of a session, from @index on; UINT32_MAX: no more. */
static uint32_t next_context(const struct registry *registry, uint64_t session, uint32_t index)
{
	for (; index < records_limit(registry->records, RECORD_CONTEXT); index++) {
		const struct record_context *record = records_get(registry->records, RECORD_CONTEXT, index);

		if (record && record->session == session)
			return index;
	}
	return UINT32_MAX;
}

/* Who cannot drive takes no context, and leaves none. */
static bool drives(uint32_t features)
{
	return features & HCCLD_FEATURE_DIRECT;
}

bool session_leaves_remnant(const struct session *session)
{
	return drives(session->features) && session->pidfd >= 0 && !process_has_ended(session->pidfd);
}

/* Takes @pidfd. */
static int remnant_make(struct registry *registry, struct tenant *tenant, uint32_t index, int pidfd, struct remnant **ret_remnant)
{
	const struct record_session *record = records_get(registry->records, RECORD_SESSION, index);
	struct remnant *remnant = calloc(1, sizeof(*remnant));

	if (!remnant) {
		close_fdp(&pidfd);
		return -ENOMEM;
	}
	remnant->registry = registry;
	remnant->tenant = tenant;
	remnant->quota = quota_ref(tenant->quota);
	remnant->session = record->id;
	remnant->pid = record->pid;
	remnant->record = index;
	remnant->pidfd = pidfd;
	quota_force(remnant->quota, QUOTA_SESSIONS, 1);
	quota_force(remnant->quota, QUOTA_DESCRIPTORS, REMNANT_DESCRIPTORS);
	list_append(&registry->remnants, &remnant->link);
	registry->remnant_count++;
	*ret_remnant = remnant;
	return 0;
}

int remnant_new(struct session *session, struct remnant **ret_remnant)
{
	return remnant_make(session->registry, session->tenant, session->record, take_fd(&session->pidfd), ret_remnant);
}

int remnant_restore(struct registry *registry, struct tenant *tenant, uint32_t index, int pidfd)
{
	const struct record_session *record = records_get(registry->records, RECORD_SESSION, index);
	CLEANUP(close_fdp) int owned_fd = pidfd;
	struct remnant *remnant;

	if (!drives(record->features) || owned_fd < 0 || next_context(registry, record->id, 0) == UINT32_MAX || process_has_ended(owned_fd))
		return -ESRCH;
	return remnant_make(registry, tenant, index, take_fd(&owned_fd), &remnant);
}

static struct remnant *remnant_find(const struct registry *registry, uint64_t session)
{
	list_for_each(struct remnant, remnant, &registry->remnants, link)
		if (remnant->session == session)
			return remnant;
	return NULL;
}

int remnant_restore_context(struct registry *registry, uint32_t index)
{
	const struct record_context *record = records_get(registry->records, RECORD_CONTEXT, index);
	struct remnant *remnant = remnant_find(registry, record->session);

	if (!remnant)
		return -ENOENT;
	return slots_take_at(&remnant->tenant->contexts, record->yard_index) < 0 ? -EPROTO : 0;
}

void remnant_remove(struct remnant *remnant)
{
	struct registry *registry = remnant->registry;
	uint32_t index = 0;

	while ((index = next_context(registry, remnant->session, index)) != UINT32_MAX) {
		const struct record_context *record = records_get(registry->records, RECORD_CONTEXT, index);

		slots_give(&remnant->tenant->contexts, record->yard_index);
		records_remove(registry->records, RECORD_CONTEXT, index);
	}
	records_remove(registry->records, RECORD_SESSION, remnant->record);
	store_remove(registry->store, STORE_PIDFD, remnant->session);
	quota_refund(remnant->quota, QUOTA_SESSIONS, 1);
	quota_refund(remnant->quota, QUOTA_DESCRIPTORS, REMNANT_DESCRIPTORS);
	remnant_free(remnant);
}

struct remnant *remnant_free(struct remnant *remnant)
{
	if (!remnant)
		return NULL;
	list_remove(&remnant->link);
	remnant->registry->remnant_count--;
	quota_unref(remnant->quota);
	close_fdp(&remnant->pidfd);
	free(remnant);
	return NULL;
}
