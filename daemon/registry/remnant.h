/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of a session that has ended before its process: places in the yard. A thread of the process may be about to leave a
 * context that it drove, and would write into the next one at that place; so the places are nobody's until the process has ended, or
 * nobody is left who shares the yard. Its rings and the items of its
 * batches are not punched, for that thread goes along the links in them. The records of session and contexts stay as they are, and the pidfd in the store; the next process
 * knows them by the socket that is missing. A remnant counts as a session of its tenant. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct quota;
struct registry;
struct session;
struct tenant;

struct remnant {
	struct list link; /* registry->remnants */
	struct registry *registry;
	struct tenant *tenant;
	struct quota *quota; /* a reference */
	uint64_t session;    /* id */
	int32_t pid;
	uint32_t record; /* of the session */
	int pidfd;
	void *watch; /* control's */
};

/* May @session, which has used a device, have driven contexts, and does its process live? */
bool session_leaves_remnant(const struct session *session);
/*
 * Of a session whose session->leaves_remnant says to its contexts, and to session_remove(), which comes next, that their records and
 * places stay. -ENOMEM: they stay until the daemon is restarted.
 */
int remnant_new(struct session *session, struct remnant **ret_remnant);
/* A session that had ended when the previous process did, by its record at @index. Takes @pidfd. -ESRCH: its process has ended, too. */
int remnant_restore(struct registry *registry, struct tenant *tenant, uint32_t index, int pidfd);
/* After that, one of its contexts. -ENOENT: it is of no remnant; -EPROTO: the place is another's. */
int remnant_restore_context(struct registry *registry, uint32_t index);
/* Its places are free. */
void remnant_remove(struct remnant *remnant);
/* Memory of this process only. */
struct remnant *remnant_free(struct remnant *remnant);
