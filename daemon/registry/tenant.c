/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants and their yards. */
#include "registry/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memfd.h"
#include "proto/cleanup.h"
#include "registry/record.h"
#include "registry/registry.h"

struct tenant *tenant_free(struct tenant *tenant)
{
	if (!tenant)
		return NULL;
	list_remove(&tenant->link);
	slots_deinit(&tenant->contexts);
	sparse_free(tenant->view.contexts, HCCLD_YARD_CONTEXTS * sizeof(*tenant->view.contexts));
	memfd_unmap(tenant->view.yard, sizeof(struct yard));
	close_fdp(&tenant->yard_fd);
	free(tenant);
	return NULL;
}

static void tenant_freep(struct tenant **tenant)
{
	tenant_free(*tenant);
}

/* Without record and store. Takes @yard_fd. */
static int tenant_open(uint64_t id, uint32_t uid, int yard_fd, struct tenant **ret_tenant)
{
	CLEANUP(close_fdp) int fd = yard_fd;
	CLEANUP(tenant_freep) struct tenant *tenant = NULL;
	void *base;
	int r;

	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return -ENOMEM;
	list_init(&tenant->link);
	tenant->id = id;
	tenant->uid = uid;
	tenant->yard_fd = take_fd(&fd);
	r = slots_init(&tenant->contexts, HCCLD_YARD_CONTEXTS);
	if (r < 0)
		return r;
	r = sparse_new(HCCLD_YARD_CONTEXTS * sizeof(*tenant->view.contexts), &base);
	if (r < 0)
		return r;
	tenant->view.contexts = base;
	r = memfd_map(tenant->yard_fd, sizeof(struct yard), true, &base);
	if (r < 0)
		return r;
	tenant->view.yard = base;
	*ret_tenant = take_ptr(&tenant);
	return 0;
}

int tenant_restore(struct registry *registry, const struct record_tenant *record, int yard_fd,
		   struct tenant **ret_tenant)
{
	struct tenant *tenant;
	struct stat st;
	int r;

	if (fstat(yard_fd, &st) < 0 || st.st_size != sizeof(struct yard)) {
		close(yard_fd);
		return -EPROTO;
	}
	r = tenant_open(record->id, record->uid, yard_fd, &tenant);
	if (r < 0)
		return r;
	list_append(&registry->tenants, &tenant->link);
	*ret_tenant = tenant;
	return 0;
}

static int tenant_new(struct registry *registry, uint32_t uid, struct tenant **ret_tenant)
{
	CLEANUP(tenant_freep) struct tenant *tenant = NULL;
	struct record_tenant record = { .uid = uid };
	uint32_t index;
	int fd, r;

	r = memfd_new("hccld-yard", sizeof(struct yard), true, &fd);
	if (r < 0)
		return r;
	record.id = records_next_id(registry->records);
	r = tenant_open(record.id, uid, fd, &tenant);
	if (r < 0)
		return r;
	tenant->view.yard->magic = YARD_MAGIC;
	tenant->view.yard->version = YARD_VERSION;
	tenant->view.yard->context_count = HCCLD_YARD_CONTEXTS;
	r = store_add(registry->store, STORE_YARD, tenant->id, tenant->yard_fd);
	if (r < 0)
		return r;
	r = records_add(registry->records, RECORD_TENANT, &record, &index);
	if (r < 0) {
		store_remove(registry->store, STORE_YARD, tenant->id);
		return r;
	}
	list_append(&registry->tenants, &tenant->link);
	*ret_tenant = take_ptr(&tenant);
	return 0;
}

int tenant_get(struct registry *registry, uint32_t uid, struct tenant **ret_tenant)
{

	list_for_each(struct tenant, tenant, &registry->tenants, link) {
		if (tenant->uid == uid) {
			*ret_tenant = tenant;
			return 0;
		}
	}
	return tenant_new(registry, uid, ret_tenant);
}
