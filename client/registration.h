/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that communicators of this process have registered for channels. Handles are looked up, never followed. Any thread. */
#pragma once

#include <stdint.h>

#include "hcomm/hcomm_res_defs.h"

struct hccld_comm;

/*
 * HcclCommMemReg after its NULL checks; @comm is pinned. The same tag and region give the same handle. -EINVAL: the region, its type or
 * its overlap; -EDQUOT; text set.
 */
int hccld_registration_add(const struct hccld_comm *comm, const char *tag, const CommMem *mem, void **ret_handle);
/* The daemon's id. -ENOENT: no registered memory of @comm; text set, with @function. */
int hccld_registration_id(const char *function, const struct hccld_comm *comm, const void *handle, uint64_t *ret_id);
/* The allocation that starts at @start is about to be freed: what is registered of it is so no longer. Fast if nothing is. */
void hccld_registration_freeing(void *start);
/* The same for addresses that are about to be unmapped. @bytes 0: nothing. */
void hccld_registration_withdraw(const void *start, uint64_t bytes);
/* The communicator is gone, with all that it has registered. */
void hccld_registrations_forget(const struct hccld_comm *comm);
