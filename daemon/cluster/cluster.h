/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other nodes. Daemons that share a key and reach each other by TCP have one *link* for each pair of nodes, whoever has connected. It outlives
 * its connection: frames that must arrive are sent again on the next one (cluster/stream.h). A *dial* is the attempt, again and again, to
 * connect to an address.
 *
 * Which connection is a link's, when both connect at the same time (proto/link.proto: Hello, Hello, Welcome):
 *
 *   C1  Who has connected asks for it by his Hello, unless the link has a connection: then he hangs up.
 *   C2  Who has accepted answers Welcome, and it is the link's, in place of the one before. But if he has asked himself, on a connection of his,
 *       and his node has the lower id, he hangs up; with the higher one he hangs up the other.
 *
 * So of two that are asked for at the same time both sides keep the one of the lower id. Both sides judge by the same words whether the streams go on:
 * those of the Hello, and those of the link before it was judged, in the Welcome. For the thread of the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "cluster/address.h"
#include "cluster/key.h"
#include "cluster/stream.h"

#define CLUSTER_NAME_MAX 65u	 /* of a node, with the NUL */
#define CLUSTER_WHY_MAX 192u
#define CLUSTER_LISTENERS_MAX 8u
#define CLUSTER_ADDRESSES_MAX 8u /* of one host */
#define CLUSTER_LINKS_MAX 4096u

struct loop;
struct loop_fd;
struct loop_timer;
struct wire;

struct cluster_options {
	uint64_t node;		  /* id */
	char name[CLUSTER_NAME_MAX];
	const char *version, *soc_name;
	uint32_t incarnation; /* cluster_start() */
	uint32_t devices;
	const char *listen, *peers; /* lists of addresses */
	uint32_t port;		    /* where an address has none */
	uint32_t keepalive_ms, peer_timeout_ms;
};

enum link_state {
	LINK_UP,
	LINK_LOST,   /* it was up, and may go on */
	LINK_FAILED, /* not for peer_timeout, or another daemon is at its address: what was under way is lost */
};

struct link {
	struct list link;
	struct cluster *cluster;
	enum link_state state;
	uint64_t node;
	char name[CLUSTER_NAME_MAX], version[32], soc_name[64];
	uint64_t features;
	uint32_t incarnation, devices, port;
	char address[ADDRESS_TEXT_MAX]; /* of the node, as the last connection has found it */
	char advertised[ADDRESS_TEXT_MAX]; /* it says that it listens there; "": it does not say where */
	struct wire *wire;		/* NULL: none */
	struct dial *dial;		/* what reaches it; NULL: it has connected, and does not listen */
	struct stream stream;
	uint64_t own, met; /* proto/link.proto: Streams */
	struct loop_timer *timer;
	uint64_t since_ns, lost_ns;
	char why[CLUSTER_WHY_MAX]; /* it is not up */
	/* counts, of all its connections */
	uint64_t bytes_in, bytes_out, frames_in, frames_out, connections;
	uint64_t round_trip_ns; /* the last; 0: none yet */
	uint64_t beat_cookie, beat_ns;
	struct list pings;
};

enum dial_state {
	DIAL_RESOLVING,
	DIAL_CONNECTING, /* until its link is known */
	DIAL_ASKING,	 /* C1: it has sent its Hello */
	DIAL_DONE,	 /* its link has a connection, this one or another */
	DIAL_WAITING,	 /* for the next attempt */
};

struct dial {
	struct list link;
	struct cluster *cluster;
	enum dial_state state;
	bool is_static; /* of [links] peers */
	bool is_resolving; /* a job has the dial, whatever its state says by now */
	bool is_freed;	   /* when that is over */
	char target[ADDRESS_HOST_MAX + 8], host[ADDRESS_HOST_MAX];
	uint32_t port;
	struct address addresses[CLUSTER_ADDRESSES_MAX];
	int address_count, address_next;
	char problem[CLUSTER_WHY_MAX]; /* of the name */
	struct wire *wire;
	struct link *to; /* NULL: not known yet */
	struct loop_timer *timer;
	uint32_t delay_ms, attempts;
	uint64_t since_ns;
	char why[CLUSTER_WHY_MAX];
};

struct listening {
	int fd;
	struct loop_fd *watch;
	struct address address;
};

struct cluster {
	struct loop *loop;
	struct cluster_options options;
	struct key key;
	bool has_key;
	struct listening listening[CLUSTER_LISTENERS_MAX];
	uint32_t listening_count, link_count;
	struct loop_timer *pause;
	struct address absent[CLUSTER_LISTENERS_MAX]; /* to listen on, once this machine has them */
	uint32_t absent_count;
	struct loop_timer *retry;
	struct list links, dials, arrivals;
	uint32_t arrival_count;
	bool is_leaving;
};

/*
 * What cannot be (no key, an address that cannot be listened on) is in the log, and everything else goes on. -ENOMEM. Strings of @options stay the caller's.
 */
int cluster_new(struct loop *loop, const struct cluster_options *options, const char *key_file, struct cluster **ret_cluster);
/* Listens and dials from here on, as the @incarnation of its daemon. */
void cluster_start(struct cluster *cluster, uint32_t incarnation);
/* Says good-bye. Takes NULL. */
struct cluster *cluster_free(struct cluster *cluster);
/* The port that others are told; 0: nobody can connect. */
uint32_t cluster_port(const struct cluster *cluster);
const char *link_state_name(enum link_state state);
/* By its id (in hexadecimal digits), its name, or an address of a dial. NULL: there is none. */
struct link *cluster_find(struct cluster *cluster, const char *text);
/* The same by id. */
struct link *cluster_find_node(struct cluster *cluster, uint64_t node);

/* ---- pings ---- */

/* @done: once: the round trip, or 0: it did not come back in time, or the link is gone. */
struct link_ping {
	struct list link;
	uint64_t cookie, start_ns;
	void (*done)(struct link_ping *ping, uint64_t round_trip_ns);
};

/* Sends a beat with @size bytes, at most 32768; @ping stays the caller's. -ENOTCONN. */
int link_ping(struct link *link, size_t size, struct link_ping *ping);
/* It is not waited for any more. */
void link_ping_cancel(struct link_ping *ping);

/* ---- parts ---- */

/* -ENOMEM, -EINVAL: that is no address. It is tried from now on. */
int dial_new(struct cluster *cluster, const char *target, bool is_static, struct dial **ret_dial);
/* To link->address, which has a connection now. -ENOMEM. */
int dial_new_to(struct link *link);
struct dial *dial_free(struct dial *dial);
/* Its link has lost its connection: it is tried again, soon. */
void dial_again(struct dial *dial);
/* Its link has a connection that is not the one it has asked for. */
void dial_settle(struct dial *dial);

/* One of [links] listen. */
int listening_start(struct cluster *cluster, const struct address *address);
void listening_stop(struct cluster *cluster);

/* The link to the node that says @hello; it is made if there is none. NULL: no memory, or too many. */
struct link *link_meet(struct cluster *cluster, const void *hello);
struct link *link_free(struct link *link);
/* Another node answers where this one did: it has gone. */
void link_replaced(struct link *link);
/* C2: takes @wire, whose other end has sent @hello with @received, and answers. @wire has another owner then. 0, or why not. */
int link_accept(struct link *link, struct wire *wire, const void *hello, uint64_t received);
/* The other end of @wire, which has connected to it by a dial, has sent @welcome. */
int link_welcome(struct link *link, struct wire *wire, const void *welcome, uint64_t received);
/* Sends the own Hello; @link: NULL: to whom it is not known yet. */
void link_send_hello(struct cluster *cluster, struct wire *wire, const struct link *link);
/* Sends why there will be nothing more; the caller frees @wire. @reason: of Bye. */
void link_send_bye(struct wire *wire, int reason, const char *text);
