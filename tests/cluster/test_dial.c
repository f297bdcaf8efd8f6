/* SPDX-License-Identifier: Apache-2.0 */
/* Two clusters on one loop, and names that are looked up slowly: a lookup is in a thread of its own, whatever becomes of its dial. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "cluster/cluster.h"
#include "cluster/wire.h"
#include "tests/support/test.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_slow;	/* lookups of names wait */
static int lookups;	/* that wait */

static void set_slow(bool slow)
{
	pthread_mutex_lock(&lock);
	is_slow = slow;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int lookup_count(void)
{
	int count;

	pthread_mutex_lock(&lock);
	count = lookups;
	pthread_mutex_unlock(&lock);
	return count;
}

/* All are this machine. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_found)
{
	struct addrinfo *found = calloc(1, sizeof(*found) + sizeof(struct sockaddr_in));
	struct sockaddr_in *here = (struct sockaddr_in *)(found + 1);

	pthread_mutex_lock(&lock);
	lookups++;
	while (is_slow && host[0] == 'n')
		pthread_cond_wait(&changed, &lock);
	lookups--;
	pthread_mutex_unlock(&lock);
	*here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	here->sin_port = htons((uint16_t)atoi(service));
	found->ai_family = AF_INET;
	found->ai_addr = (struct sockaddr *)here;
	found->ai_addrlen = sizeof(*here);
	*ret_found = found;
	return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
	free(found);
}

static int64_t later_s;

/* Time passes as the test says. */
int clock_gettime(clockid_t id, struct timespec *ret_now)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret_now);

	ret_now->tv_sec += later_s;
	return r;
}

static struct loop *loop;
static struct loop_timer *timer;
static struct cluster *a, *b;
static int phase;
static char texts[4][64]; /* addresses: of a; of b, by number and by name; a second one */

static uint32_t free_port(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(here);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	check_eq_int(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	check_eq_int(getsockname(fd, (struct sockaddr *)&here, &size), 0);
	close(fd);
	return ntohs(here.sin_port);
}

static struct cluster *begin(uint64_t node, const char *listen, const char *peers)
{
	struct cluster_options options = { .node = node, .version = "1", .soc_name = "", .port = 7411, .keepalive_ms = 1000, .peer_timeout_ms = 60000 };
	const char *path = test_path("key");
	struct cluster *cluster;
	FILE *file = fopen(path, "w");

	check_ptr(file);
	fputs("a key that is long enough", file);
	fchmod(fileno(file), 0600);
	fclose(file);
	snprintf(options.name, sizeof(options.name), "node%u", (unsigned)node);
	options.listen = listen;
	options.peers = peers;
	check_eq_int(cluster_new(loop, &options, path, &cluster), 0);
	check(cluster->has_key);
	cluster_start(cluster, 1);
	return cluster;
}

static struct link *link_of(struct cluster *cluster)
{
	return list_is_empty(&cluster->links) ? NULL : list_entry(cluster->links.next, struct link, link);
}

static bool is_up(struct cluster *cluster, uint64_t connections)
{
	const struct link *link = link_of(cluster);

	return link && link->state == LINK_UP && link->connections >= connections;
}

/* libuv keeps a pipe for signals from its first loop on; it is there before a case begins. */
__attribute__((constructor)) static void make_first_loop(void)
{
	struct loop *first;

	if (loop_new(&first) == 0)
		loop_free(first);
}

static void tick(void *data)
{
	void (*next)(void) = (void (*)(void))data;

	next();
}

static void run(void (*next)(void), bool has_two)
{
	static char listen[160], peers[160];
	uint32_t port = free_port(), second = free_port();

	check_eq_int(loop_new(&loop), 0);
	snprintf(texts[0], sizeof(texts[0]), "127.0.0.1:%u", free_port());
	snprintf(texts[1], sizeof(texts[1]), "127.0.0.1:%u", port);
	snprintf(texts[2], sizeof(texts[2]), "name:%u", port);
	snprintf(texts[3], sizeof(texts[3]), "name:%u", second);
	snprintf(listen, sizeof(listen), "%s 127.0.0.1:%u", texts[1], second);
	snprintf(peers, sizeof(peers), "%s %s", texts[2], texts[3]);
	b = begin(2, has_two ? listen : texts[1], "none");
	a = begin(1, texts[0], has_two ? peers : texts[2]);
	check_eq_int(loop_timer_new(loop, tick, (void *)next, &timer), 0);
	loop_timer_start(timer, 5, 5);
	loop_run(loop);
	loop_timer_free(timer);
	b = cluster_free(b);
	a = cluster_free(a);
	set_slow(false);
	loop_drain(loop);
	loop_free(loop);
}

/* The connection is lost; a looks the name up, slowly; meanwhile b has connected. Then a ends, and only then the lookup. */
static void end_during_lookup(void)
{
	switch (phase) {
	case 0:
		if (!is_up(a, 1) || !is_up(b, 1) || !link_of(b)->dial)
			return;
		set_slow(true);
		shutdown(link_of(a)->wire->fd, SHUT_RDWR);
		phase++;
		return;
	case 1:
		if (!is_up(a, 2) || !is_up(b, 2) || lookup_count() == 0)
			return;
		a = cluster_free(a);
		set_slow(false);
		phase++;
		return;
	default:
		if (lookup_count() == 0 && phase++ > 20)
			loop_stop(loop);
	}
}

TEST(end_during_a_lookup)
{
	run(end_during_lookup, false);
}

/* The connection is lost once more: one lookup of a dial is enough, and its answer is for one attempt. */
static void lose_during_lookup(void)
{
	switch (phase) {
	case 0:
		if (!is_up(a, 1) || !is_up(b, 1) || !link_of(b)->dial)
			return;
		set_slow(true);
		shutdown(link_of(a)->wire->fd, SHUT_RDWR);
		phase++;
		return;
	case 1:
	case 2:
		if (!is_up(a, (uint64_t)phase + 1) || !is_up(b, (uint64_t)phase + 1) || lookup_count() == 0)
			return;
		check_le_int(lookup_count(), 1);
		shutdown(link_of(a)->wire->fd, SHUT_RDWR);
		phase++;
		return;
	default:
		if (!is_up(a, 4) || !is_up(b, 4))
			return;
		check_le_int(lookup_count(), 1);
		loop_stop(loop);
	}
}

TEST(one_lookup_at_a_time)
{
	run(lose_during_lookup, false);
}

/* Two addresses have led to b; then another daemon is at the first of them, and b is forgotten after a while. Nothing leads to it. */
static void forget_a_node(void)
{
	struct dial *first = list_entry(a->dials.next, struct dial, link);
	struct dial *second = list_entry(first->link.next, struct dial, link);
	static char other[64];

	switch (phase) {
	case 0:
		if (!is_up(a, 1) || first->to != second->to || first->state != DIAL_DONE || second->state != DIAL_DONE)
			return;
		cluster_free(b);
		snprintf(other, sizeof(other), "127.0.0.1%s", strchr(texts[3], ':'));
		b = begin(3, first->to->dial == first ? texts[1] : other, "none");
		phase++;
		return;
	case 1:
		if (!cluster_find_node(a, 3) || cluster_find_node(a, 3)->state != LINK_UP)
			return;
		check_eq_int(cluster_find_node(a, 2)->state, LINK_FAILED);
		later_s = 700;
		phase++;
		return;
	default:
		if (cluster_find_node(a, 2))
			return;
		check(!first->to || first->to == cluster_find_node(a, 3));
		check(!second->to || second->to == cluster_find_node(a, 3));
		loop_stop(loop);
	}
}

TEST(nothing_leads_to_a_node_that_is_forgotten)
{
	run(forget_a_node, true);
}
