/* SPDX-License-Identifier: Apache-2.0 */
#include "control/obituary.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/text.h"
#include "proto/status.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"

#define RANKS_TOLD_MAX 16u

void exit_describe(int32_t exit, struct text *text)
{
	char how[64];

	exit_text(exit, how, sizeof(how));
	text_add(text, "%s", how);
}

static void rank_log(enum log_level level, const struct rank *rank, const char *how)
{
	const struct session *session = rank->session;
	const struct log_fields fields = { .event = EVENT_COMM_FAILED,
					   .session = session->view.id,
					   .pid = session->view.pid,
					   .comm = rank->comm->name,
					   .has_rank = true,
					   .rank = rank->rank };

	log_event(level, &fields, "communicator %s has lost rank %" PRIu32 " (pid %d): %s",
		  rank->comm->name, rank->rank, session->view.pid, how);
}

void obituary_log(const struct session *session, int32_t exit)
{
	bool has_failed = exit > 0; /* a status other than 0, or a signal */
	enum log_level level = has_failed ? LOG_LEVEL_NOTICE : LOG_LEVEL_DEBUG;
	const struct log_fields fields = { .event = has_failed ? EVENT_PROCESS_DIED : EVENT_NONE,
					   .session = session->view.id,
					   .pid = session->view.pid };
	uint32_t ranks = 0;
	char buffer[64];
	struct text how;

	text_init(&how, buffer, sizeof(buffer));
	exit_describe(exit, &how);
	log_event(level, &fields, "process '%s' (pid %d): %s; its session ends", session->process,
		  session->view.pid, buffer);
	for (uint32_t i = 0; i < session->registry->device_count; i++) {
		if (!session->contexts[i])
			continue;
		list_for_each(struct rank, rank, &session->contexts[i]->ranks,
			      link) if (ranks++ < RANKS_TOLD_MAX) rank_log(level, rank, buffer);
	}
	if (ranks > RANKS_TOLD_MAX)
		log_event(level, &fields, "and %" PRIu32 " more ranks of pid %d",
			  ranks - RANKS_TOLD_MAX, session->view.pid);
}
