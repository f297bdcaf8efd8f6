/* SPDX-License-Identifier: Apache-2.0 */
/* A link: its connections, one after the other, and what goes over them. */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "cluster/cluster.h"
#include "cluster/wire.h"
#include "proto/cleanup.h"
#include "proto/clock.h"
#include "proto/link.pb-c.h"

#define STREAM_MAX (2u << 20) /* bytes under way that must arrive; less than a wire takes */
#define FAILED_KEPT_NS 600000000000u /* shown for so long */
#define SILENCE_BEATS 5u	/* without a sign of life a connection is lost */

const char *link_state_name(enum link_state state)
{
	static const char *const names[] = { [LINK_UP] = "up", [LINK_LOST] = "lost", [LINK_FAILED] = "failed" };

	return state <= LINK_FAILED ? names[state] : "?";
}

static uint64_t random_id(void)
{
	uint64_t id;

	do
		randombytes_buf(&id, sizeof(id));
	while (!id);
	return id;
}

/* ---- sending ---- */

/* Of at most WIRE_FRAME_MAX bytes. NULL: no memory. */
static void *frame_pack(const Hccld__Link__Frame *frame, size_t *ret_size)
{
	size_t size = hccld__link__frame__get_packed_size(frame);
	void *data = malloc(size ? size : 1);

	if (data)
		*ret_size = hccld__link__frame__pack(frame, data);
	return data;
}

/* What is lost with the connection. */
static void frame_send(struct wire *wire, const Hccld__Link__Frame *frame)
{
	CLEANUP(freep) void *data = NULL;
	size_t size;

	data = frame_pack(frame, &size);
	if (data)
		wire_send(wire, data, size);
}

static Hccld__Link__Frame frame_of(const struct link *link)
{
	Hccld__Link__Frame frame = HCCLD__LINK__FRAME__INIT;

	frame.received = link ? link->stream.received : 0;
	return frame;
}

void link_send_hello(struct cluster *cluster, struct wire *wire, const struct link *link)
{
	const struct cluster_options *options = &cluster->options;
	Hccld__Link__Frame frame = frame_of(link);
	Hccld__Link__Hello hello = HCCLD__LINK__HELLO__INIT;
	Hccld__Link__Streams streams = HCCLD__LINK__STREAMS__INIT;
	char texts[CLUSTER_LISTENERS_MAX][ADDRESS_TEXT_MAX], *addresses[CLUSTER_LISTENERS_MAX];

	hello.node = options->node;
	hello.name = (char *)options->name;
	hello.version = (char *)options->version;
	hello.soc_name = (char *)options->soc_name;
	hello.incarnation = options->incarnation;
	hello.devices = options->devices;
	hello.port = cluster_port(cluster);
	for (uint32_t i = 0; i < cluster->listening_count; i++) {
		if (address_is_any(&cluster->listening[i].address))
			continue;
		address_text(&cluster->listening[i].address, texts[i]);
		addresses[hello.n_addresses++] = texts[i];
	}
	hello.addresses = addresses;
	if (link) {
		streams.own = link->own;
		streams.met = link->met;
		hello.streams = &streams;
	}
	frame.body_case = HCCLD__LINK__FRAME__BODY_HELLO;
	frame.hello = &hello;
	frame_send(wire, &frame);
}

void link_send_bye(struct wire *wire, int reason, const char *text)
{
	Hccld__Link__Frame frame = HCCLD__LINK__FRAME__INIT;
	Hccld__Link__Bye bye = HCCLD__LINK__BYE__INIT;

	bye.reason = (Hccld__Link__Bye__Reason)reason;
	bye.text = (char *)text;
	frame.body_case = HCCLD__LINK__FRAME__BODY_BYE;
	frame.bye = &bye;
	frame_send(wire, &frame);
}

static void link_send_welcome(const struct link *link, struct wire *wire)
{
	Hccld__Link__Frame frame = frame_of(link);
	Hccld__Link__Welcome welcome = HCCLD__LINK__WELCOME__INIT;
	Hccld__Link__Streams streams = HCCLD__LINK__STREAMS__INIT;

	streams.own = link->own;
	streams.met = link->met;
	welcome.streams = &streams;
	frame.body_case = HCCLD__LINK__FRAME__BODY_WELCOME;
	frame.welcome = &welcome;
	frame_send(wire, &frame);
}

static void link_send_beat(struct link *link, uint64_t cookie, size_t size)
{
	CLEANUP(freep) unsigned char *filling = NULL;
	Hccld__Link__Frame frame = frame_of(link);
	Hccld__Link__Beat beat = HCCLD__LINK__BEAT__INIT;

	filling = calloc(1, size ? size : 1);
	beat.cookie = cookie;
	if (filling)
		beat.filling = (ProtobufCBinaryData){ size, filling };
	frame.body_case = HCCLD__LINK__FRAME__BODY_BEAT;
	frame.beat = &beat;
	frame_send(link->wire, &frame);
}

static void link_answer(struct link *link, const Hccld__Link__Beat *beat)
{
	Hccld__Link__Frame frame = frame_of(link);
	Hccld__Link__Answer answer = HCCLD__LINK__ANSWER__INIT;

	answer.cookie = beat->cookie;
	answer.filling = beat->filling;
	frame.body_case = HCCLD__LINK__FRAME__BODY_ANSWER;
	frame.answer = &answer;
	frame_send(link->wire, &frame);
}

static void link_pump(struct link *link)
{
	const void *data;
	size_t size;

	while (link->wire && stream_pop(&link->stream, &data, &size)) {
		wire_send(link->wire, data, size);
		link->frames_out++;
	}
}

/* ---- pings ---- */

static void pings_end(struct link *link)
{
	while (!list_is_empty(&link->pings)) {
		struct link_ping *ping = list_entry(link->pings.next, struct link_ping, link);

		list_remove(&ping->link);
		ping->done(ping, 0);
	}
}

int link_ping(struct link *link, size_t size, struct link_ping *ping)
{
	list_init(&ping->link);
	if (!link->wire)
		return -ENOTCONN;
	ping->cookie = random_id();
	ping->start_ns = clock_now_ns();
	list_append(&link->pings, &ping->link);
	link_send_beat(link, ping->cookie, size);
	return 0;
}

void link_ping_cancel(struct link_ping *ping)
{
	list_remove(&ping->link);
}

static void link_answered(struct link *link, const Hccld__Link__Answer *answer)
{
	uint64_t now = clock_now_ns();

	if (answer->cookie == link->beat_cookie && link->beat_ns) {
		link->round_trip_ns = now - link->beat_ns;
		link->beat_ns = 0;
		return;
	}
	list_for_each(struct link_ping, ping, &link->pings, link) {
		if (ping->cookie != answer->cookie)
			continue;
		list_remove(&ping->link);
		link->round_trip_ns = now - ping->start_ns;
		ping->done(ping, link->round_trip_ns);
		return;
	}
}

/* ---- its connection ---- */

static void link_set_state(struct link *link, enum link_state state)
{
	if (link->state == state)
		return;
	link->state = state;
	link->since_ns = clock_now_ns();
}

static void link_count(struct link *link)
{
	if (!link->wire)
		return;
	link->bytes_in += link->wire->bytes_in;
	link->bytes_out += link->wire->bytes_out;
	link->wire->bytes_in = link->wire->bytes_out = 0;
}

/* What was under way is lost. Both sides do it when they meet, and each alone when it gives the other one up. */
static void link_reset(struct link *link)
{
	stream_reset(&link->stream);
	link->met = 0;
}

static void link_fail(struct link *link, const char *why)
{
	if (link->state == LINK_FAILED)
		return;
	link_set_state(link, LINK_FAILED);
	link_reset(link);
	/* the other side may not have given us up: what it goes on with is not ours */
	link->own = random_id();
	log_warning("link to node %s (%s): given up: %s", link->name, link->address, why);
}

void link_replaced(struct link *link)
{
	if (link->wire)
		return;
	list_for_each(struct dial, dial, &link->cluster->dials, link) {
		if (dial->to != link)
			continue;
		dial->to = NULL;
		dial_again(dial);
	}
	link->dial = NULL;
	snprintf(link->why, sizeof(link->why), "another daemon has been started at its address");
	link_fail(link, link->why);
}

static void link_lost(struct link *link, const char *why)
{
	link_count(link);
	link->wire = wire_free(link->wire);
	link->lost_ns = clock_now_ns();
	snprintf(link->why, sizeof(link->why), "%s", why);
	if (link->state == LINK_UP)
		link_set_state(link, LINK_LOST);
	link->beat_ns = 0;
	pings_end(link);
}

static int link_bye(struct link *link, const Hccld__Link__Bye *bye)
{
	char text[CLUSTER_WHY_MAX - 48];

	text_clean(text, sizeof(text), bye->text);
	switch (bye->reason) {
	case HCCLD__LINK__BYE__REASON__STOPPING:
		snprintf(link->why, sizeof(link->why), "hccld is being stopped there");
		break;
	case HCCLD__LINK__BYE__REASON__REPLACED:
		snprintf(link->why, sizeof(link->why), "the other side has connected again");
		break;
	default:
		snprintf(link->why, sizeof(link->why), "the other side has closed the connection%s%s", *text ? ": " : "", text);
	}
	return -ECONNRESET;
}

/* A frame with a number, which is new: nothing of that kind is known yet. */
static int link_deliver(struct link *link, const Hccld__Link__Frame *frame)
{
	link->frames_in++;
	return 0;
}

static int link_take_frame(struct link *link, const Hccld__Link__Frame *frame)
{
	int r = stream_ack(&link->stream, frame->received);

	if (r < 0)
		return r;
	if (frame->number) {
		r = stream_take(&link->stream, frame->number);
		return r > 0 ? link_deliver(link, frame) : r;
	}
	switch (frame->body_case) {
	case HCCLD__LINK__FRAME__BODY_BEAT:
		link_answer(link, frame->beat);
		return 0;
	case HCCLD__LINK__FRAME__BODY_ANSWER:
		link_answered(link, frame->answer);
		return 0;
	case HCCLD__LINK__FRAME__BODY_BYE:
		return link_bye(link, frame->bye);
	case HCCLD__LINK__FRAME__BODY_HELLO:
	case HCCLD__LINK__FRAME__BODY_WELCOME:
		return -EPROTO;
	default:
		/* of a later version: it would not have been sent without a feature */
		return 0;
	}
}

static int link_frame(void *data, const unsigned char *bytes, size_t size)
{
	Hccld__Link__Frame *frame = hccld__link__frame__unpack(NULL, size, bytes);
	int r;

	if (!frame)
		return -EPROTO;
	r = link_take_frame(data, frame);
	hccld__link__frame__free_unpacked(frame, NULL);
	return r;
}

/* By all addresses that are known. */
static void link_dial_again(struct link *link)
{
	list_for_each(struct dial, dial, &link->cluster->dials, link)
		if (dial->to == link)
			dial_again(dial);
}

static void link_down(void *data, int error, const char *why)
{
	struct link *link = data;
	char said[CLUSTER_WHY_MAX];

	/* what the other end has said is better */
	snprintf(said, sizeof(said), "%s", link->why[0] ? link->why : why);
	log_notice("link to node %s (%s): connection lost: %s", link->name, link->address, said);
	link_lost(link, said);
	link_dial_again(link);
}

static const struct wire_events link_events = { .frame = link_frame, .down = link_down };

/* Where the node is found: where we have connected to, or where it listens. */
static void link_set_address(struct link *link, const struct wire *wire)
{
	struct address address = { .size = sizeof(address.socket) };

	memcpy(link->address, wire->peer, sizeof(link->address));
	if (wire->handshake.is_connector || !link->port)
		return;
	if (*link->advertised) {
		memcpy(link->address, link->advertised, sizeof(link->address));
		return;
	}
	if (getpeername(wire->fd, (struct sockaddr *)&address.socket, &address.size) < 0)
		return;
	address_unmap(&address);
	address_set_port(&address, link->port);
	address_text(&address, link->address);
}

/* It is the link's from here on. @goes_on: as the streams say, and the other side has @received. */
static void link_take(struct link *link, struct wire *wire, bool goes_on)
{
	bool was_failed = link->state == LINK_FAILED;

	link->wire = wire;
	wire_set_owner(wire, &link_events, link);
	link_set_address(link, wire);
	link->why[0] = '\0';
	link->connections++;
	link->beat_ns = 0;
	link_set_state(link, LINK_UP);
	log_notice("link to node %s (%s): up%s", link->name, link->address,
		   goes_on ? ", goes on" : link->connections > 1 || was_failed ? ", begins again: what was under way is lost" : "");
	if (!link->dial && link->port)
		(void)dial_new_to(link);
	list_for_each(struct dial, dial, &link->cluster->dials, link)
		if (dial->to == link)
			dial_settle(dial);
	link_pump(link);
}

/* Do the streams go on? The words of both sides are as they were before either judged. -EPROTO: they contradict each other. */
static int link_judge(struct link *link, const Hccld__Link__Streams *theirs, uint64_t received, bool *ret_goes_on)
{
	*ret_goes_on = link->met && theirs->own == link->met && theirs->met == link->own;
	if (*ret_goes_on)
		return stream_resume(&link->stream, received);
	link_reset(link);
	link->met = theirs->own;
	return 0;
}

static int link_contradicts(struct link *link, struct wire *wire)
{
	link_reset(link);
	link->own = random_id();
	link_send_bye(wire, HCCLD__LINK__BYE__REASON__PROTOCOL, "what both sides have received contradicts each other");
	link_dial_again(link);
	return -EPROTO;
}

int link_accept(struct link *link, struct wire *wire, const void *message, uint64_t received)
{
	const Hccld__Link__Hello *hello = message;
	bool goes_on;

	/* C2 */
	if (link->dial && link->dial->state == DIAL_ASKING && link->cluster->options.node < link->node) {
		link_send_bye(wire, HCCLD__LINK__BYE__REASON__DUPLICATE, "");
		return -EALREADY;
	}
	if (link->dial && link->dial->state == DIAL_ASKING)
		dial_settle(link->dial);
	if (link->wire) {
		link_send_bye(link->wire, HCCLD__LINK__BYE__REASON__REPLACED, "");
		link_lost(link, "the other side has connected again");
	}
	link_send_welcome(link, wire);
	if (link_judge(link, hello->streams, received, &goes_on) < 0)
		return link_contradicts(link, wire);
	link_take(link, wire, goes_on);
	return 0;
}

int link_welcome(struct link *link, struct wire *wire, const void *message, uint64_t received)
{
	const Hccld__Link__Welcome *welcome = message;
	bool goes_on;

	if (!welcome->streams || !welcome->streams->own)
		return -EPROTO;
	if (link_judge(link, welcome->streams, received, &goes_on) < 0)
		return link_contradicts(link, wire);
	link_take(link, wire, goes_on);
	return 0;
}

/* By an administrator. */
static bool link_is_named(const struct link *link)
{
	list_for_each(struct dial, dial, &link->cluster->dials, link)
		if (dial->to == link && dial->is_static)
			return true;
	return false;
}

static void link_tick(void *data)
{
	struct link *link = data;
	const struct cluster_options *options = &link->cluster->options;
	uint64_t now = clock_now_ns();

	if (!link->wire) {
		if (link->state == LINK_LOST && now - link->lost_ns > options->peer_timeout_ms * 1000000ull)
			link_fail(link, link->why);
		if (link->state == LINK_FAILED && clock_now_ns() - link->since_ns > FAILED_KEPT_NS && !link_is_named(link))
			link_free(link);
		return;
	}
	if (now - link->wire->heard_ns > SILENCE_BEATS * options->keepalive_ms * 1000000ull) {
		link_down(link, -ETIMEDOUT, "nothing was heard of it");
		return;
	}
	link_count(link);
	link->beat_cookie = random_id();
	link->beat_ns = now;
	link_send_beat(link, link->beat_cookie, 0);
}

/* ---- the object ---- */

static struct link *link_new(struct cluster *cluster, uint64_t node)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	list_init(&link->link);
	list_init(&link->pings);
	link->cluster = cluster;
	link->node = node;
	link->own = random_id();
	link->state = LINK_LOST;
	link->since_ns = link->lost_ns = clock_now_ns();
	stream_init(&link->stream, STREAM_MAX);
	if (loop_timer_new(cluster->loop, link_tick, link, &link->timer) < 0) {
		free(link);
		return NULL;
	}
	loop_timer_start(link->timer, cluster->options.keepalive_ms, cluster->options.keepalive_ms);
	list_append(&cluster->links, &link->link);
	cluster->link_count++;
	return link;
}

struct link *link_meet(struct cluster *cluster, const void *message)
{
	const Hccld__Link__Hello *hello = message;
	struct link *link = cluster_find_node(cluster, hello->node);
	char host[ADDRESS_HOST_MAX];
	uint32_t port;

	if (!link && cluster->link_count < CLUSTER_LINKS_MAX)
		link = link_new(cluster, hello->node);
	if (!link)
		return NULL;
	text_clean(link->name, sizeof(link->name), hello->name);
	text_clean(link->version, sizeof(link->version), hello->version);
	text_clean(link->soc_name, sizeof(link->soc_name), hello->soc_name);
	link->features = hello->features;
	link->incarnation = hello->incarnation;
	link->devices = hello->devices;
	link->port = hello->port <= 65535 ? hello->port : 0;
	link->advertised[0] = '\0';
	if (hello->n_addresses && address_split(hello->addresses[0], 1, host, &port) == 0)
		text_clean(link->advertised, sizeof(link->advertised), hello->addresses[0]);
	return link;
}

struct link *link_free(struct link *link)
{
	if (!link)
		return NULL;
	pings_end(link);
	if (link->wire)
		link_send_bye(link->wire, HCCLD__LINK__BYE__REASON__STOPPING, "");
	wire_free(link->wire);
	if (link->dial && !link->dial->is_static)
		dial_free(link->dial);
	list_for_each(struct dial, dial, &link->cluster->dials, link)
		if (dial->to == link)
			dial->to = NULL;
	loop_timer_free(link->timer);
	stream_deinit(&link->stream);
	list_remove(&link->link);
	link->cluster->link_count--;
	free(link);
	return NULL;
}
