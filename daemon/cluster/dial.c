/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to an address, until its node is found, and whenever the link to that node has lost its connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "cluster/cluster.h"
#include "cluster/wire.h"
#include "proto/clock.h"
#include "proto/link.pb-c.h"

#define CONNECT_MS 5000u
#define DELAY_FIRST_MS 100u
#define DELAY_MAX_MS 5000u
#define SETTLED_NS 5000000000u /* a connection that has lasted so long is a good one */
#define SELF_DELAY_MS 60000u /* interfaces may change */

static void dial_try(void *data);

static void dial_set_state(struct dial *dial, enum dial_state state)
{
	dial->state = state;
	dial->since_ns = clock_now_ns();
}

/* Again after @delay_ms, which doubles. What is the same each time is in the log once. */
static void dial_wait(struct dial *dial, const char *why)
{
	const uint32_t delay_ms = dial->delay_ms;

	dial->wire = wire_free(dial->wire);
	if (strcmp(dial->why, why) != 0) {
		snprintf(dial->why, sizeof(dial->why), "%s", why);
		log_notice("link to %s: %s; tried again", dial->target, why);
	}
	dial->delay_ms = delay_ms * 2 < DELAY_MAX_MS ? delay_ms * 2 : DELAY_MAX_MS;
	dial_set_state(dial, DIAL_WAITING);
	loop_timer_start(dial->timer, delay_ms, 0);
}

void dial_again(struct dial *dial)
{
	uint32_t delay_ms = 0;

	if (dial->state != DIAL_DONE)
		return;
	/* a link that is lost whenever it is up is tried more and more slowly */
	if (clock_now_ns() - dial->since_ns > SETTLED_NS) {
		dial->delay_ms = DELAY_FIRST_MS;
	} else {
		delay_ms = dial->delay_ms;
		dial->delay_ms = delay_ms * 2 < DELAY_MAX_MS ? delay_ms * 2 : DELAY_MAX_MS;
	}
	dial_set_state(dial, DIAL_WAITING);
	loop_timer_start(dial->timer, delay_ms, 0);
}

void dial_settle(struct dial *dial)
{
	if (dial->wire) {
		if (dial->wire->state == WIRE_UP)
			link_send_bye(dial->wire, HCCLD__LINK__BYE__REASON__DUPLICATE, "");
		dial->wire = wire_free(dial->wire);
	}
	loop_timer_stop(dial->timer);
	dial->why[0] = '\0';
	dial_set_state(dial, DIAL_DONE);
}

/* ---- the other end ---- */

static int dial_hello(struct dial *dial, const Hccld__Link__Hello *hello)
{
	struct cluster *cluster = dial->cluster;
	struct link *link;

	if (!hello->node)
		return -EPROTO;
	if (hello->node == cluster->options.node) {
		link_send_bye(dial->wire, HCCLD__LINK__BYE__REASON__SELF, "");
		return -ELOOP;
	}
	link = link_meet(cluster, hello);
	if (!link)
		return -ENOMEM;
	/* there was another one: its daemon has been stopped and started, or it is another machine */
	if (dial->to && dial->to != link)
		link_replaced(dial->to);
	dial->to = link;
	if (link->wire || (link->dial && link->dial != dial && link->dial->state == DIAL_ASKING))
		return -EALREADY;
	if (link->dial && link->dial != dial && !link->dial->is_static)
		dial_free(link->dial);
	link->dial = dial;
	link_send_hello(cluster, dial->wire, link);
	dial_set_state(dial, DIAL_ASKING);
	return 0;
}

static int dial_welcome(struct dial *dial, const Hccld__Link__Frame *frame)
{
	struct wire *wire = dial->wire;

	/* first: what takes the wire settles the dial */
	dial->wire = NULL;
	if (link_welcome(dial->to, wire, frame->welcome, frame->received) == 0)
		return 0;
	dial->wire = wire;
	return -EPROTO;
}

static int dial_take(struct dial *dial, const Hccld__Link__Frame *frame)
{
	if (frame->number)
		return -EPROTO;
	if (frame->body_case == HCCLD__LINK__FRAME__BODY_HELLO && dial->state == DIAL_CONNECTING)
		return dial_hello(dial, frame->hello);
	if (frame->body_case == HCCLD__LINK__FRAME__BODY_WELCOME && dial->state == DIAL_ASKING)
		return dial_welcome(dial, frame);
	if (frame->body_case == HCCLD__LINK__FRAME__BODY_BYE && frame->bye->reason == HCCLD__LINK__BYE__REASON__DUPLICATE)
		return -EALREADY;
	return frame->body_case == HCCLD__LINK__FRAME__BODY_BYE ? -ECONNRESET : -EPROTO;
}

static int dial_frame(void *data, const unsigned char *bytes, size_t size)
{
	Hccld__Link__Frame *frame = hccld__link__frame__unpack(NULL, size, bytes);
	int r;

	if (!frame)
		return -EPROTO;
	r = dial_take(data, frame);
	hccld__link__frame__free_unpacked(frame, NULL);
	return r;
}

static int dial_up(void *data)
{
	return 0;
}

static void dial_down(void *data, int error, const char *why)
{
	struct dial *dial = data;

	if (error == -ELOOP) {
		dial->delay_ms = SELF_DELAY_MS;
		dial_wait(dial, "it is this node itself");
	} else if (error == -EALREADY && dial->to && dial->to->wire) {
		/* the link has a connection; or another dial that is good for it */
		dial_settle(dial);
	} else if (error == -EALREADY) {
		dial->wire = wire_free(dial->wire);
		dial_set_state(dial, DIAL_WAITING);
		loop_timer_start(dial->timer, DELAY_FIRST_MS + CONNECT_MS / 10, 0);
	} else {
		dial_wait(dial, why);
	}
}

static const struct wire_events dial_events = { .up = dial_up, .frame = dial_frame, .down = dial_down };

/* ---- the address ---- */

static void dial_connect(struct dial *dial)
{
	const struct address *address = &dial->addresses[dial->address_next++ % dial->address_count];
	int r;

	dial_set_state(dial, DIAL_CONNECTING);
	r = wire_connect(dial->cluster->loop, &dial->cluster->key, address, CONNECT_MS, &dial_events, dial, &dial->wire);
	if (r < 0) {
		char why[CLUSTER_WHY_MAX];

		snprintf(why, sizeof(why), "cannot connect: %s", strerror(-r));
		dial_wait(dial, why);
	}
}

/* In a thread of its own. */
static void dial_resolve(void *arg)
{
	struct dial *dial = arg;

	dial->address_count = address_resolve(dial->host, dial->port, dial->addresses, CLUSTER_ADDRESSES_MAX, dial->problem, sizeof(dial->problem));
}

static void dial_resolved(void *arg)
{
	struct dial *dial = arg;

	dial->is_resolving = false;
	if (dial->is_freed)
		free(dial);
	else if (dial->state != DIAL_RESOLVING)
		; /* its link has a connection by now; or has lost it again, and the timer runs */
	else if (dial->address_count < 0)
		dial_wait(dial, dial->problem);
	else
		dial_connect(dial);
}

static void dial_try(void *data)
{
	struct dial *dial = data;

	if (dial->to && dial->to->wire) {
		dial_settle(dial);
		return;
	}
	if (dial->is_resolving) {
		loop_timer_start(dial->timer, DELAY_FIRST_MS, 0);
		return;
	}
	dial->attempts++;
	dial->is_resolving = true;
	/* names may mean another address by now; numbers are looked up at once, but in the same way */
	dial_set_state(dial, DIAL_RESOLVING);
	loop_job(dial->cluster->loop, dial_resolve, dial_resolved, dial);
}

/* ---- the object ---- */

int dial_new(struct cluster *cluster, const char *target, bool is_static, struct dial **ret_dial)
{
	struct dial *dial = calloc(1, sizeof(*dial));
	int r;

	if (!dial)
		return -ENOMEM;
	list_init(&dial->link);
	dial->cluster = cluster;
	dial->is_static = is_static;
	dial->delay_ms = DELAY_FIRST_MS;
	snprintf(dial->target, sizeof(dial->target), "%s", target);
	r = address_split(target, cluster->options.port, dial->host, &dial->port);
	if (r == 0)
		r = loop_timer_new(cluster->loop, dial_try, dial, &dial->timer);
	if (r < 0) {
		free(dial);
		return r;
	}
	dial_set_state(dial, DIAL_WAITING);
	list_append(&cluster->dials, &dial->link);
	loop_timer_start(dial->timer, 0, 0);
	if (ret_dial)
		*ret_dial = dial;
	return 0;
}

int dial_new_to(struct link *link)
{
	int r = dial_new(link->cluster, link->address, false, &link->dial);

	if (r == 0)
		link->dial->to = link;
	return r;
}

struct dial *dial_free(struct dial *dial)
{
	if (!dial)
		return NULL;
	wire_free(dial->wire);
	dial->wire = NULL;
	loop_timer_free(dial->timer);
	list_remove(&dial->link);
	if (dial->to && dial->to->dial == dial)
		dial->to->dial = NULL;
	if (dial->is_resolving)
		dial->is_freed = true;
	else
		free(dial);
	return NULL;
}
