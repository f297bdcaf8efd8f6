/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/report.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/text.h"
#include "registry/comm.h"
#include "registry/reason.h"
#include "registry/registry.h"
#include "registry/waiting.h"

#define NOTED_MS 2000u	   /* shorter waits are normal */
#define LANES_PER_STREAM 256u /* looked at: those that are done count, too */
#define LOOKED_AT_MAX 1024u /* of what waits: the line is an aid, hcclctl looks at all of it */

struct oldest {
	struct waiting waiting;
	uint32_t seen;
	bool is_there;
};

static bool oldest_add(void *data, const struct waiting *waiting)
{
	struct oldest *oldest = data;

	if (!oldest->is_there || waiting->age_ms > oldest->waiting.age_ms) {
		oldest->waiting = *waiting;
		oldest->is_there = true;
	}
	return ++oldest->seen < LOOKED_AT_MAX;
}

void report_line(struct registry *registry, char *line, size_t size)
{
	const struct waiting_filter filter = { .all_users = true, .lanes_per_stream = LANES_PER_STREAM };
	struct oldest oldest = { .seen = 0 };
	struct text text;

	text_init(&text, line, size);
	text_add(&text, "%" PRIu32 " device%s, %" PRIu32 " session%s, %" PRIu32 " communicator%s", registry->device_count,
		 registry->device_count == 1 ? "" : "s", registry->session_count, registry->session_count == 1 ? "" : "s",
		 registry->comm_count, registry->comm_count == 1 ? "" : "s");
	if (registry->session_count)
		waiting_walk(registry, &filter, oldest_add, &oldest);
	if (!oldest.is_there || oldest.waiting.age_ms < NOTED_MS)
		return;
	text_add(&text, "; longest: ");
	if (oldest.waiting.comm)
		text_add(&text, "communicator %s: ", oldest.waiting.comm->name);
	waiting_describe(&oldest.waiting, true, &text);
}
