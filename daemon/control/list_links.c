/* SPDX-License-Identifier: Apache-2.0 */
/* The list of links, and of attempts that have not found a node yet. Everybody may see it: it says nothing of users. */
#include "cluster/cluster.h"
#include "control/control.h"
#include "control/page.h"
#include "proto/clock.h"

static Hccld__Control__Link *link_message(struct request *request, struct link *link)
{
	Hccld__Control__Link *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__link__init(message);
	message->node = link->node;
	message->name = link->name;
	message->state = (char *)link_state_name(link->state);
	message->address = link->address;
	message->age_ms = (clock_now_ns() - link->since_ns) / 1000000;
	message->round_trip_ns = link->round_trip_ns;
	message->bytes_out = link->bytes_out;
	message->bytes_in = link->bytes_in;
	message->connections = link->connections;
	message->attempts = link->dial ? link->dial->attempts : 0;
	message->version = link->version;
	message->incarnation = link->incarnation;
	message->devices = link->devices;
	message->soc_name = link->soc_name;
	message->why = link->state != LINK_UP && link->dial && *link->dial->why ? link->dial->why : link->why;
	message->transport = (char *)"tcp";
	return message;
}

static Hccld__Control__Link *dial_message(struct request *request, struct dial *dial)
{
	Hccld__Control__Link *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__link__init(message);
	message->state = (char *)(dial->state == DIAL_WAITING ? "waiting" : "connecting");
	message->address = dial->target;
	message->age_ms = (clock_now_ns() - dial->since_ns) / 1000000;
	message->attempts = dial->attempts;
	message->why = dial->why;
	return message;
}

void list_links(struct page *page)
{
	struct cluster *cluster = page->request->control->options.cluster;
	uint64_t ordinal = 0;

	list_for_each(struct link, link, &cluster->links, link) {
		Hccld__Control__Link *message = ++ordinal > page->after ? link_message(page->request, link) : NULL;

		if (ordinal > page->after && !page_add(page, message ? &message->base : NULL, ordinal))
			return;
	}
	list_for_each(struct dial, dial, &cluster->dials, link) {
		Hccld__Control__Link *message;

		/* what has found its node is among the links */
		if (dial->to || ++ordinal <= page->after)
			continue;
		message = dial_message(page->request, dial);
		if (!page_add(page, message ? &message->base : NULL, ordinal))
			return;
	}
}
