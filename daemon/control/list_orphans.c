/* SPDX-License-Identifier: Apache-2.0 */
/* In the list of what waits: host kernels that still run though their stream has gone, and hold vector cores. */
#include <inttypes.h>

#include "base/text.h"
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "proto/clock.h"
#include "proto/ring.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/cores.h"
#include "registry/record.h"
#include "registry/registry.h"
#include "registry/session.h"

#define ORPHAN_CURSOR (3ull << 62) /* with the place of the record: behind all else that waits */

/* The cores of the record at @index, if their stream has gone. */
static const struct cores *orphan_at(const struct registry *registry, uint32_t index)
{
	const struct record_cores *record = records_get(registry->records, RECORD_CORES, index);
	uint64_t holder = record ? atomic_load_explicit(&record->holder, memory_order_relaxed) : 0;
	const struct session *session = holder ? idmap_get(&registry->session_ids, record->session) : NULL;

	return session ? cores_find(session, holder) : NULL;
}

static Hccld__Control__Waiting *orphan_message(struct request *request, const struct cores *cores)
{
	const struct rank *rank = cores->rank ? session_rank(cores->session, cores->rank) : NULL;
	Hccld__Control__Waiting *message = query_waiting_new(request, cores->session, rank ? rank->comm : NULL, rank ? rank->rank : 0,
							     (clock_now_ns() - cores->since_ns) / 1000000);
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	if (!message)
		return NULL;
	message->task = TASK_HOST;
	message->blocks = cores->count;
	message->peer_posted = true;
	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "a host kernel of pid %d still runs on %" PRIu32 " vector cores of device %" PRIu32 ": its stream has gone before it ended",
		 cores->session->view.pid, cores->count, cores->device);
	message->reason = request_string(request, buffer);
	return message->reason ? message : NULL;
}

void list_orphans(struct page *page)
{
	const struct registry *registry = page->request->control->registry;

	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_CORES); i++) {
		const struct cores *cores = (ORPHAN_CURSOR | (i + 1)) > page->after ? orphan_at(registry, i) : NULL;
		Hccld__Control__Waiting *message;

		if (!cores || !query_sees(page->request, cores->session->uid))
			continue;
		message = orphan_message(page->request, cores);
		if (!page_add(page, message ? &message->base : NULL, ORPHAN_CURSOR | (i + 1)))
			return;
	}
}
