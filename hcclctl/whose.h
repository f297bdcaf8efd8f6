/* SPDX-License-Identifier: Apache-2.0 */
/* --session and --pid of lists that can be asked for one process only (listing.h). */
#pragma once

#include "hcclctl/options.h"
#include "hcclctl/query.h"

#define WHOSE_OPTIONS 2
extern const struct extra_option whose_options[WHOSE_OPTIONS];

bool whose_filter(Hccld__Control__List *list);
int whose_check(struct query *query);
