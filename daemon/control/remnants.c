/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the ends of processes whose sessions have ended. */
#include "control/remnants.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/loop.h"
#include "control/control.h"
#include "control/retry.h"
#include "registry/registry.h"
#include "registry/remnant.h"
#include "registry/session.h"

static void process_ended(void *data, int events)
{
	struct remnant *remnant = data;
	struct control *control = remnant->registry->data;

	(void)events;
	remnant->watch = loop_fd_free(remnant->watch);
	log_debug("pid %d has ended: its places in the yard are free", remnant->pid);
	remnant_remove(remnant);
	retry_soon(control);
}

static void remnant_watch(struct control *control, struct remnant *remnant)
{
	struct loop_fd *watch;

	if (loop_fd_new(control->loop, remnant->pidfd, LOOP_READ, process_ended, remnant, &watch) == 0)
		remnant->watch = watch;
	else
		log_error("no memory to wait for the end of pid %d: its places in the yard stay taken", remnant->pid);
}

void remnants_add(struct control *control, struct session *session)
{
	struct remnant *remnant;

	/* the records say it all to the next process */
	if (control->is_stopping)
		return;
	if (remnant_new(session, &remnant) < 0) {
		log_error("no memory to wait for the end of pid %d: its places in the yard stay taken", session->view.pid);
		return;
	}
	log_debug("session %" PRIu64 " has ended, and its process (pid %d) lives: its places in the yard stay taken until that ends",
		  session->view.id, session->view.pid);
	remnant_watch(control, remnant);
}

void remnants_watch(struct control *control)
{
	list_for_each(struct remnant, remnant, &control->registry->remnants, link)
		remnant_watch(control, remnant);
}

void remnants_drop(struct control *control, const struct tenant *tenant)
{
	list_for_each(struct remnant, remnant, &control->registry->remnants, link) {
		if (remnant->tenant != tenant)
			continue;
		remnant->watch = loop_fd_free(remnant->watch);
		remnant_remove(remnant);
	}
}

void remnants_forget(struct control *control)
{
	list_for_each(struct remnant, remnant, &control->registry->remnants, link)
		remnant->watch = loop_fd_free(remnant->watch);
}
