/* SPDX-License-Identifier: Apache-2.0 */
#include "control/last_look.h"

#include <stdlib.h>

#include "control/control.h"
#include "engine/engine.h"
#include "proto/clock.h"
#include "proto/limits.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "scheduler/scheduler.h"

#define LOOK_NS 100000000u /* a tenant's limit may hold sends back for ever */

struct last_look {
	struct scheduler_call call;
	void (*then)(void *arg);
	void *arg;
	struct session *session; /* a reference */
	uint64_t until_ns;
	uint32_t count;
	struct view_context *contexts[HCCLD_DEVICES_MAX];
};

/* Engine thread. In the session's line: what takes contexts away comes behind it. */
static bool look_run(struct engine *engine, void *arg)
{
	const struct last_look *look = arg;
	bool has_settled = true;

	(void)engine;
	for (uint32_t i = 0; i < look->count; i++)
		has_settled &= engine_context_has_settled(look->contexts[i]);
	return has_settled || clock_now_ns() > look->until_ns;
}

static void look_done(void *arg)
{
	struct last_look *look = arg;

	look->then(look->arg);
	session_unref(look->session);
	free(look);
}

void last_look(struct control *control, struct session *session, const struct context *only, void (*then)(void *arg), void *arg)
{
	struct last_look *look = control->is_stopping ? NULL : calloc(1, sizeof(*look));

	for (uint32_t i = 0; look && i < session->registry->device_count; i++) {
		struct context *context = session->contexts[i];

		if (context && (!only || context == only) && engine_context_has_undone(&context->view))
			look->contexts[look->count++] = &context->view;
	}
	if (!look || !look->count) {
		free(look);
		then(arg);
		return;
	}
	look->then = then;
	look->arg = arg;
	look->session = session_ref(session);
	look->until_ns = clock_now_ns() + LOOK_NS;
	look->call = (struct scheduler_call){ .run = look_run, .done = look_done, .arg = look, .line = &session->line };
	scheduler_call(control->scheduler, &look->call);
}
