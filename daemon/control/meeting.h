/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins without a root info: ranks that have the same rank table, or that make the same part of a
 * communicator, meet by what they say. Once the communicator is complete the same makes another
 * one.
 */
#pragma once

#include <stdbool.h>

#include "proto/control.pb-c.h"

struct comm;
struct control;
struct request;
struct session;

/* Does it have no root info? */
bool meeting_is(const Hccld__Control__JoinComm *join);
/*
 * The communicator that the request may join; made for the first rank. One that has failed: a rank
 * that belongs to it is told so once, and then it tries anew.
 */
int meeting_find(struct request *request, const Hccld__Control__JoinComm *join,
		 struct comm **ret_comm);
/* *ret_rank: what the request has got already, before the daemon was restarted; NULL: nothing. */
struct rank *meeting_again(struct request *request);
/* Ranks of a communicator end or leave: parts that wait for one of them end. */
void meetings_check(struct control *control);
/* The whole is being left by @session: its own joins to parts of it end. */
void meetings_leave(struct control *control, struct session *session, uint64_t parent_comm);
