/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose processes may share memory: for now a uid. A tenant has a yard, which stays for as long as
 * the daemon lives. Control thread.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "base/slots.h"
#include "engine/view.h"

struct registry;
struct record_tenant;

struct tenant {
	struct list link;
	uint64_t id;
	uint32_t uid;
	int yard_fd;
	struct view_yard view;
	struct slots contexts; /* places in the yard */
	bool is_scheduled;     /* the scheduler knows the yard */
};

/* The tenant of @uid, made if need be. -EDQUOT: too many. */
int tenant_get(struct registry *registry, uint32_t uid, struct tenant **ret_tenant);
/* From its record; takes @yard_fd. */
int tenant_restore(struct registry *registry, const struct record_tenant *record, int yard_fd,
		   struct tenant **ret_tenant);
struct tenant *tenant_free(struct tenant *tenant);
