/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody is at, while another one waits for it. Control thread. */
#pragma once

#include <stdbool.h>

struct target;
struct waiting;

/* The operation of @target that says most about why @of waits for it; false: it has nothing queued. */
bool cause_find(const struct waiting *of, const struct target *target, struct waiting *ret_cause);
