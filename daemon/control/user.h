/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user of the socket, by uid: how many connections and requests it has, and its share of the
 * control thread. Users get turns in time, their connections one after the other, so that no number
 * of connections or requests of one user makes another wait for more than a turn of each.
 *
 * While somebody else has sessions, a user has a sixteenth of a core of this thread and its workers, after a burst: what a flood of
 * requests makes the daemon do would be missing where others work. Root and the daemon's user are not held back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct connection;
struct control;

struct user {
	struct list link; /* control->users */
	struct control *control;
	uint32_t uid;
	uint32_t connections, requests, jobs;
	uint32_t clients; /* connections with a session */
	struct list ready;	/* connections with something to read, in turn */
	uint32_t held;		/* requests, retry.h */
	uint32_t retries;	/* that run now: they are charged afterwards */
	struct list turn;	/* in control->turns while there are such */
	struct list queued_jobs;
	int64_t credit_ns;	/* of time on the control thread; below 0: others first */
	int64_t budget_ns;	/* what it may use while there are others */
	uint64_t refilled_ns;	/* when that was looked at */
	uint64_t window_ns, spent_ns; /* lately, without a turn */
};

/* Made if need be; NULL: out of memory. Goes when nothing is counted in it any more. */
struct user *user_get(struct control *control, uint32_t uid);
/* NULL: there is none. */
struct user *user_find(const struct control *control, uint32_t uid);
/* Frees it unless something is counted in it. */
void user_collect(struct user *user);
/* Memory only. */
void user_free(struct user *user);
/* Root, or the user the daemon runs as: the last places are for them. */
bool user_is_special(const struct user *user);

/* A session has begun (@change 1) or ended (-1). */
void user_count_client(struct user *user, int change);
/* Time of this thread, or of a worker, that went into what @user has asked for. */
void user_charge(struct user *user, uint64_t ns);
/* @connection is readable: reads from it, at once or when its user's turn comes. */
void user_readable(struct connection *connection);
/* The timer of control: the turns of those who wait. */
void users_take_turns(void *data);

/* loop_job(), but only some for each user at a time. */
void user_job(struct control *control, uint32_t uid, void (*run)(void *arg),
	      void (*done)(void *arg), void *arg);
