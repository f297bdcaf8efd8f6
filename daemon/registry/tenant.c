/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants and their yards. */
#include "registry/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memfd.h"
#include "proto/cleanup.h"
#include "registry/quota.h"
#include "registry/record.h"
#include "registry/registry.h"

struct tenant *tenant_free(struct tenant *tenant)
{
	if (!tenant)
		return NULL;
	list_remove(&tenant->link);
	slots_deinit(&tenant->contexts);
	if (tenant->quota)
		tenant->quota->tenants--;
	sparse_free(tenant->view.contexts, HCCLD_YARD_CONTEXTS * sizeof(*tenant->view.contexts));
	memfd_unmap(tenant->view.yard, tenant->yard_bytes);
	close_fdp(&tenant->yard_fd);
	quota_unref(tenant->quota);
	free(tenant);
	return NULL;
}

static void tenant_freep(struct tenant **tenant)
{
	tenant_free(*tenant);
}

/* Without record and store. Takes @yard_fd. */
static int tenant_open(struct registry *registry, uint64_t id, const struct tenant_key *key,
		       int yard_fd, struct tenant **ret_tenant)
{
	CLEANUP(close_fdp) int fd = yard_fd;
	CLEANUP(tenant_freep) struct tenant *tenant = NULL;
	struct stat st;
	void *base;
	int r;

	/* sealed: it stays as it is. A daemon of release 0.3 or before has made it without room for copies */
	if (fstat(fd, &st) < 0 || (st.st_size != sizeof(struct yard_region) && st.st_size != sizeof(struct yard)))
		return -EPROTO;
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return -ENOMEM;
	list_init(&tenant->link);
	tenant->registry = registry;
	tenant->id = id;
	tenant->key = *key;
	tenant->yard_fd = take_fd(&fd);
	tenant->quota = quota_get(registry, key->uid, key->cgroup);
	if (!tenant->quota)
		return -ENOMEM;
	tenant->quota->tenants++;
	tenant->view.share = &tenant->quota->share;
	r = slots_init(&tenant->contexts, HCCLD_YARD_CONTEXTS);
	if (r < 0)
		return r;
	r = sparse_new(HCCLD_YARD_CONTEXTS * sizeof(*tenant->view.contexts), &base);
	if (r < 0)
		return r;
	tenant->view.contexts = base;
	tenant->yard_bytes = (uint64_t)st.st_size;
	r = memfd_map(tenant->yard_fd, tenant->yard_bytes, true, &base);
	if (r < 0)
		return r;
	tenant->view.yard = base;
	if (tenant->yard_bytes == sizeof(struct yard_region))
		tenant->view.copies = &((struct yard_region *)base)->copies;
	*ret_tenant = take_ptr(&tenant);
	return 0;
}

int tenant_restore(struct registry *registry, uint32_t index, int yard_fd)
{
	const struct record_tenant *record = records_get(registry->records, RECORD_TENANT, index);
	const struct tenant_key key = { .uid = record->uid };
	struct tenant *tenant;
	int r;

	r = tenant_open(registry, record->id, &key, yard_fd, &tenant);
	if (r < 0)
		return r;
	tenant->record = index;
	list_append(&registry->tenants, &tenant->link);
	return 0;
}

static struct tenant *tenant_find(struct registry *registry, uint64_t id)
{
	list_for_each(struct tenant, tenant, &registry->tenants, link)
		if (tenant->id == id)
			return tenant;
	return NULL;
}

int tenant_restore_key(struct registry *registry, uint32_t index)
{
	const struct record_tenant_key *record =
		records_get(registry->records, RECORD_TENANT_KEY, index);
	struct tenant *tenant = tenant_find(registry, record->tenant);
	struct quota *quota;

	if (!tenant || tenant->has_key_record)
		return -ENOENT;
	tenant->key.is_private = record->is_private;
	tenant->key.user_namespace = record->user_namespace;
	memcpy(tenant->key.cgroup, record->cgroup, sizeof(tenant->key.cgroup));
	tenant->key.cgroup[sizeof(tenant->key.cgroup) - 1] = 0;
	tenant->key_record = index;
	tenant->has_key_record = true;
	quota = quota_get(registry, tenant->key.uid, tenant->key.cgroup);
	if (!quota)
		return -ENOMEM;
	tenant->quota->tenants--;
	quota_unref(tenant->quota);
	tenant->quota = quota;
	quota->tenants++;
	tenant->view.share = &quota->share;
	return 0;
}

static int tenant_record_key(struct tenant *tenant)
{
	struct record_tenant_key record = { .tenant = tenant->id,
					    .user_namespace = tenant->key.user_namespace,
					    .is_private = tenant->key.is_private };
	int r;

	memcpy(record.cgroup, tenant->key.cgroup, sizeof(record.cgroup));
	r = records_add(tenant->registry->records, RECORD_TENANT_KEY, &record,
			&tenant->key_record);
	tenant->has_key_record = r == 0;
	return r;
}

void tenant_adopt_key(struct tenant *tenant, uint64_t user_namespace)
{
	if (tenant->has_key_record)
		return;
	tenant->key.user_namespace = user_namespace;
	if (tenant_record_key(tenant) < 0)
		log_warning("the user namespace of uid %u could not be recorded", tenant->key.uid);
}

/* Store and records. The key first: a record of a key without tenant is dropped. */
static int tenant_store(struct tenant *tenant)
{
	struct registry *registry = tenant->registry;
	struct record_tenant record = { .id = tenant->id, .uid = tenant->key.uid };
	int r;

	r = store_add(registry->store, STORE_YARD, tenant->id, tenant->yard_fd);
	if (r < 0)
		return r;
	r = tenant_record_key(tenant);
	if (r == 0)
		r = records_add(registry->records, RECORD_TENANT, &record, &tenant->record);
	if (r < 0) {
		if (tenant->has_key_record)
			records_remove(registry->records, RECORD_TENANT_KEY, tenant->key_record);
		store_remove(registry->store, STORE_YARD, tenant->id);
	}
	return r;
}

/* For each session anew: a process of the tenant that is gone may have written anything there. */
static void yard_sign(struct yard *yard)
{
	yard->magic = YARD_MAGIC;
	yard->version = YARD_VERSION;
	yard->context_count = HCCLD_YARD_CONTEXTS;
}

static int tenant_new(struct registry *registry, const struct tenant_key *key,
		      struct tenant **ret_tenant)
{
	CLEANUP(tenant_freep) struct tenant *tenant = NULL;
	int fd, r;

	r = memfd_new("hccld-yard", sizeof(struct yard_region), true, &fd);
	if (r < 0)
		return r;
	r = tenant_open(registry, records_next_id(registry->records), key, fd, &tenant);
	if (r < 0)
		return r;
	if (tenant->quota->tenants > HCCLD_TENANTS_PER_USER)
		return -EUSERS;
	yard_sign(tenant->view.yard);
	r = tenant_store(tenant);
	if (r < 0)
		return r;
	list_append(&registry->tenants, &tenant->link);
	*ret_tenant = take_ptr(&tenant);
	return 0;
}

static bool tenant_has_key(const struct tenant *tenant, const struct tenant_key *key)
{
	return !tenant->is_leaving && !tenant->key.is_private && tenant->key.uid == key->uid &&
	       tenant->key.user_namespace == key->user_namespace &&
	       strcmp(tenant->key.cgroup, key->cgroup) == 0;
}

int tenant_get(struct registry *registry, const struct tenant_key *key, struct tenant **ret_tenant)
{
	if (key->is_private)
		return tenant_new(registry, key, ret_tenant);
	list_for_each(struct tenant, tenant, &registry->tenants, link) {
		if (tenant_has_key(tenant, key)) {
			yard_sign(tenant->view.yard);
			*ret_tenant = tenant;
			return 0;
		}
	}
	return tenant_new(registry, key, ret_tenant);
}

void tenant_remove(struct tenant *tenant)
{
	struct registry *registry = tenant->registry;

	/* the key last: a tenant without it would count as one of 0.1.0 */
	records_remove(registry->records, RECORD_TENANT, tenant->record);
	if (tenant->has_key_record)
		records_remove(registry->records, RECORD_TENANT_KEY, tenant->key_record);
	store_remove(registry->store, STORE_YARD, tenant->id);
	tenant_free(tenant);
}
