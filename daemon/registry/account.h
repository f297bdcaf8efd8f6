/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of bytes and who holds how much of it: a device's memory, the node's host memory.
 * Control thread.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"

struct text;

struct account {
	uint64_t total, used;
	struct list holders;
};

/* Embedded in who is charged. Linked while it holds something. */
struct holder {
	struct list link;
	int32_t pid; /* 0: the daemon, for communicators */
	uint64_t used;
};

void account_init(struct account *account, uint64_t total);
void holder_init(struct holder *holder, int32_t pid);
/* -EDQUOT: more than what is left. */
int account_charge(struct account *account, struct holder *holder, uint64_t bytes);
/* What exists already: after a restart, whatever the budget says now. */
void account_force(struct account *account, struct holder *holder, uint64_t bytes);
void account_refund(struct account *account, struct holder *holder, uint64_t bytes);
/* "has 512 MiB, of which 500 MiB are in use (pid 4711: 300 MiB, ...)": the three largest holders */
void account_describe(const struct account *account, struct text *text);
