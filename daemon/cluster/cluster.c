/* SPDX-License-Identifier: Apache-2.0 */
/* All links of this node, and who connects to it. */
#include "cluster/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "cluster/wire.h"
#include "proto/cleanup.h"
#include "proto/link.pb-c.h"

#define ARRIVALS_MAX 64u    /* that have not proved who they are: the oldest goes when there are more */
#define ARRIVAL_MS 5000u    /* they have so long for it */
#define ACCEPTS_PER_TURN 16 /* others have a turn then */
#define PAUSE_MS 100u
#define RETRY_MS 1000u
#define BACKLOG 128

/* A connection that was accepted, until it is a link's. */
struct arrival {
	struct list link;
	struct cluster *cluster;
	struct wire *wire;
};

/* ---- arrivals ---- */

static void arrival_free(struct arrival *arrival)
{
	wire_free(arrival->wire);
	list_remove(&arrival->link);
	arrival->cluster->arrival_count--;
	free(arrival);
}

static int arrival_up(void *data)
{
	struct arrival *arrival = data;

	link_send_hello(arrival->cluster, arrival->wire, NULL);
	return 0;
}

static int arrival_take(struct arrival *arrival, const Hccld__Link__Frame *frame)
{
	const Hccld__Link__Hello *hello = frame->hello;
	struct cluster *cluster = arrival->cluster;
	struct link *link;
	int r;

	/* it has connected to itself, or the link has a connection by now */
	if (frame->body_case == HCCLD__LINK__FRAME__BODY_BYE)
		return -EALREADY;
	if (frame->body_case != HCCLD__LINK__FRAME__BODY_HELLO || !hello->node || !hello->streams || !hello->streams->own)
		return -EPROTO;
	if (hello->node == cluster->options.node) {
		link_send_bye(arrival->wire, HCCLD__LINK__BYE__REASON__SELF, "");
		return -EALREADY;
	}
	link = link_meet(cluster, hello);
	if (!link)
		return -ENOMEM;
	r = link_accept(link, arrival->wire, hello, frame->received);
	if (r == 0) {
		arrival->wire = NULL;
		arrival_free(arrival);
	}
	return r;
}

static int arrival_frame(void *data, const unsigned char *bytes, size_t size)
{
	Hccld__Link__Frame *frame = hccld__link__frame__unpack(NULL, size, bytes);
	int r;

	if (!frame)
		return -EPROTO;
	r = arrival_take(data, frame);
	hccld__link__frame__free_unpacked(frame, NULL);
	return r;
}

static void arrival_down(void *data, int error, const char *why)
{
	struct arrival *arrival = data;

	/* who has proved who he is and goes has his reasons, and a line for them on his side */
	if (error != -EALREADY && !(arrival->wire->handshake.is_done && error == -ECONNRESET))
		log_event(LOG_LEVEL_NOTICE, &(struct log_fields){ .is_frequent = true }, "connection from %s: %s", arrival->wire->peer, why);
	arrival_free(arrival);
}

static const struct wire_events arrival_events = { .up = arrival_up, .frame = arrival_frame, .down = arrival_down };

/* Takes @fd. */
static void arrival_add(struct cluster *cluster, int fd)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	struct arrival *arrival;

	if (cluster->arrival_count == ARRIVALS_MAX)
		arrival_down(list_entry(cluster->arrivals.next, struct arrival, link), -EBUSY, "too many connect at once and do not say who they are");
	arrival = calloc(1, sizeof(*arrival));
	if (!arrival)
		return;
	list_init(&arrival->link);
	arrival->cluster = cluster;
	if (wire_accept(cluster->loop, &cluster->key, take_fd(&owned_fd), ARRIVAL_MS, &arrival_events, arrival, &arrival->wire) < 0) {
		free(arrival);
		return;
	}
	list_append(&cluster->arrivals, &arrival->link);
	cluster->arrival_count++;
}

/* ---- listening ---- */

static void listening_resume(void *data)
{
	struct cluster *cluster = data;

	for (uint32_t i = 0; i < cluster->listening_count; i++)
		loop_fd_set(cluster->listening[i].watch, LOOP_READ);
}

static void listening_pause(struct cluster *cluster, int error)
{
	log_warning("no new connections of other nodes for %u ms: %s", PAUSE_MS, strerror(error));
	for (uint32_t i = 0; i < cluster->listening_count; i++)
		loop_fd_set(cluster->listening[i].watch, 0);
	loop_timer_start(cluster->pause, PAUSE_MS, 0);
}

static void listening_ready(void *data, int events)
{
	struct cluster *cluster = data;

	for (uint32_t i = 0; i < cluster->listening_count; i++) {
		for (int n = 0; n < ACCEPTS_PER_TURN; n++) {
			int fd = accept4(cluster->listening[i].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

			if (fd >= 0) {
				arrival_add(cluster, fd);
				continue;
			}
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
				listening_pause(cluster, errno);
				return;
			}
			if (errno == EAGAIN)
				break;
		}
	}
}

static int listening_open(const struct address *address)
{
	CLEANUP(close_fdp) int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	/* each address for itself: "*" is both families, as two sockets */
	if (address->socket.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 1 }, sizeof(int));
	if (bind(fd, (const struct sockaddr *)&address->socket, address->size) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

int listening_start(struct cluster *cluster, const struct address *address)
{
	struct listening *listening = &cluster->listening[cluster->listening_count];
	CLEANUP(close_fdp) int fd = -1;
	int r;

	if (cluster->listening_count == CLUSTER_LISTENERS_MAX)
		return -E2BIG;
	r = fd = listening_open(address);
	if (r < 0)
		return r;
	*listening = (struct listening){ .fd = -1, .address = *address };
	r = loop_fd_new(cluster->loop, fd, LOOP_READ, listening_ready, cluster, &listening->watch);
	if (r < 0)
		return r;
	listening->fd = take_fd(&fd);
	cluster->listening_count++;
	return 0;
}

void listening_stop(struct cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->listening_count; i++) {
		loop_fd_free(cluster->listening[i].watch);
		close(cluster->listening[i].fd);
	}
	cluster->listening_count = 0;
}

/* Interfaces may come up later than the daemon. */
static void listening_defer(struct cluster *cluster, const struct address *address)
{
	if (cluster->absent_count == CLUSTER_LISTENERS_MAX)
		return;
	cluster->absent[cluster->absent_count++] = *address;
	loop_timer_start(cluster->retry, RETRY_MS, RETRY_MS);
}

static void listening_retry(void *data)
{
	struct cluster *cluster = data;
	char text[ADDRESS_TEXT_MAX];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cluster->absent_count; i++) {
		const struct address address = cluster->absent[i];
		int r = listening_start(cluster, &address);

		address_text(&address, text);
		if (r == 0)
			log_info("other nodes connect to %s", text);
		else if (r == -EADDRNOTAVAIL)
			cluster->absent[kept++] = address;
		else
			log_error("[links] listen: %s: %s", text, strerror(-r));
	}
	cluster->absent_count = kept;
	if (!kept)
		loop_timer_stop(cluster->retry);
}

/* One of the list, which may stand for several: "*", a name. */
static void listening_add(struct cluster *cluster, const char *text)
{
	struct address addresses[CLUSTER_ADDRESSES_MAX];
	char host[ADDRESS_HOST_MAX], problem[CLUSTER_WHY_MAX];
	uint32_t port, before = cluster->listening_count;
	int count, r = 0;

	if (address_split(text, cluster->options.port, host, &port) < 0) {
		log_error("[links] listen: %s is no address", text);
		return;
	}
	count = address_resolve(host, port, addresses, CLUSTER_ADDRESSES_MAX, problem, sizeof(problem));
	if (count < 0) {
		log_error("[links] listen: %s", problem);
		return;
	}
	for (int i = 0; i < count; i++) {
		int error = listening_start(cluster, &addresses[i]);

		r = error < 0 ? error : r;
		if (error == -EADDRNOTAVAIL)
			listening_defer(cluster, &addresses[i]);
	}
	/* a machine without one of the families is no trouble, as long as something is left */
	if (cluster->listening_count == before)
		log_error("[links] listen: %s: %s", text, strerror(-r));
	else
		log_info("other nodes connect to %s", text);
}

uint32_t cluster_port(const struct cluster *cluster)
{
	return cluster->listening_count ? address_port(&cluster->listening[0].address) : 0;
}

/* ---- the whole ---- */

struct link *cluster_find_node(struct cluster *cluster, uint64_t node)
{
	list_for_each(struct link, link, &cluster->links, link)
		if (link->node == node)
			return link;
	return NULL;
}

static bool link_is(const struct link *link, const char *text)
{
	char id[24];

	snprintf(id, sizeof(id), "%016" PRIx64, link->node);
	return strcmp(id, text) == 0 || strcmp(link->name, text) == 0 || strcmp(link->address, text) == 0;
}

struct link *cluster_find(struct cluster *cluster, const char *text)
{
	struct link *found = NULL;

	list_for_each(struct dial, dial, &cluster->dials, link)
		if (dial->to && (strcmp(dial->target, text) == 0 || strcmp(dial->host, text) == 0))
			found = dial->to;
	/* of two with one name the one that is up: the other was there before */
	list_for_each(struct link, link, &cluster->links, link)
		if (link_is(link, text) && (!found || found->state != LINK_UP))
			found = link;
	return found;
}

static void cluster_begin(struct cluster *cluster)
{
	char text[ADDRESS_HOST_MAX + 8];
	size_t position = 0;

	while (address_next(cluster->options.listen, &position, text) > 0)
		listening_add(cluster, text);
	position = 0;
	while (address_next(cluster->options.peers, &position, text) > 0)
		if (dial_new(cluster, text, true, NULL) < 0)
			log_error("[links] peers: %s is no address", text);
}

int cluster_new(struct loop *loop, const struct cluster_options *options, const char *key_file, struct cluster **ret_cluster)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));
	bool is_wanted = strcmp(options->listen, "none") != 0 || strcmp(options->peers, "none") != 0;
	char problem[512];
	int r;

	if (!cluster)
		return -ENOMEM;
	cluster->loop = loop;
	cluster->options = *options;
	list_init(&cluster->links);
	list_init(&cluster->dials);
	list_init(&cluster->arrivals);
	r = sodium_init() < 0 ? -ENOSYS : loop_timer_new(loop, listening_resume, cluster, &cluster->pause);
	if (r == 0)
		r = loop_timer_new(loop, listening_retry, cluster, &cluster->retry);
	if (r < 0) {
		loop_timer_free(cluster->pause);
		free(cluster);
		return r;
	}
	*ret_cluster = cluster;
	cluster->has_key = key_read(key_file, &cluster->key, problem, sizeof(problem)) == 0;
	if (!cluster->has_key && is_wanted)
		log_error("[links] key_file: %s; there are no links to other nodes", problem);
	return 0;
}

void cluster_start(struct cluster *cluster, uint32_t incarnation)
{
	cluster->options.incarnation = incarnation;
	if (cluster->has_key)
		cluster_begin(cluster);
}

struct cluster *cluster_free(struct cluster *cluster)
{
	if (!cluster)
		return NULL;
	cluster->is_leaving = true;
	listening_stop(cluster);
	list_for_each(struct arrival, arrival, &cluster->arrivals, link)
		arrival_free(arrival);
	list_for_each(struct dial, dial, &cluster->dials, link)
		dial_free(dial);
	list_for_each(struct link, link, &cluster->links, link)
		link_free(link);
	loop_timer_free(cluster->pause);
	loop_timer_free(cluster->retry);
	key_wipe(&cluster->key);
	free(cluster);
	return NULL;
}
