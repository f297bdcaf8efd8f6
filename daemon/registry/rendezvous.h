/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of a communicator that wait for the rest. Knows nothing of messages or memory. Control
 * thread.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "proto/limits.h"

struct comm;
struct context;
struct session;
struct text;

struct joiner {
	struct list link; /* session->joiners */
	struct comm *comm;
	struct session *session;
	struct context *context;
	uint32_t rank, device;
	int32_t pid;
	uint64_t request; /* id of the request */
	uint64_t since_ns, deadline_ns;
	char name[HCCLD_COMM_NAME_MAX];
	void *data; /* control's: whom to answer */
};

struct rendezvous {
	uint32_t size, joined;	 /* size 0: nobody has joined yet */
	struct joiner **joiners; /* by rank */
	uint64_t deadline_ns;	 /* the earliest of theirs */
};

/*
 * Adds @joiner, which stays the caller's. 1: it was the last one. 0: others are missing. -EINVAL:
 * @size or the rank do not fit, in words in @text. -ENOMEM.
 */
int rendezvous_add(struct rendezvous *rendezvous, struct joiner *joiner, uint32_t size,
		   struct text *text);
void rendezvous_remove(struct rendezvous *rendezvous, struct joiner *joiner);
void rendezvous_deinit(struct rendezvous *rendezvous);
/* The earliest deadline of those who wait; UINT64_MAX: nobody does. */
uint64_t rendezvous_deadline(const struct rendezvous *rendezvous);
/* "3 of 8 ranks are missing: ranks 2 and 5-6" */
void rendezvous_describe(const struct rendezvous *rendezvous, struct text *text);
