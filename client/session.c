/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one session of this process. Made under `mutex`, never taken down: the daemon notices the end of the process by itself, so there is
 * no destructor, and a forked child that exits touches nothing of its parent.
 */
#include "client/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/error.h"
#include "client/mapping.h"
#include "proto/cleanup.h"
#include "proto/feature.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct hccld_session session; /* complete once `current` points to it */
static _Atomic(struct hccld_session *) current;
static _Atomic bool connecting; /* a child forked now could find `mutex` locked for ever */
static _Atomic bool forked;

/* Async-signal-safe: other threads of the parent may have held any lock. */
static void forked_child(void)
{
	if (atomic_load(&current)) {
		hccld_connection_abandon(session.connection);
		close(session.event_fd);
		session.event_fd = -1;
	} else if (!atomic_load(&connecting)) {
		return; /* nothing of the parent's to share: the child makes a session of its own */
	}
	atomic_store(&forked, true);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

int hccld_session_check_fork(void)
{
	if (__builtin_expect(!atomic_load_explicit(&forked, memory_order_relaxed), 1))
		return 0;
	return hccld_error(CAUSE_FORKED, "%s", status_of(CAUSE_FORKED)->text);
}

int hccld_map(int fd, uint64_t size, int protection, void **ret_memory)
{
	struct stat st;
	void *memory;

	/* memory that ends early would be SIGBUS later */
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < size)
		return hccld_error(CAUSE_PROTOCOL,
				   "shared memory from hccld is too small: %lld bytes for %llu",
				   (long long)st.st_size, (unsigned long long)size);
	memory = hccld_mapping_new(fd, 0, size, protection);
	if (!memory)
		return hccld_error(
			CAUSE_HOST_MEMORY,
			"cannot map %llu bytes: %s (address space: ulimit -v, number of mappings: vm.max_map_count)",
			(unsigned long long)size, strerror(errno));
	*ret_memory = memory;
	return 0;
}

static void session_unmap(struct hccld_session *half)
{
	if (half->region)
		hccld_mapping_free(half->region, SESSION_REGION_SIZE);
	if (half->yard)
		hccld_mapping_free(half->yard, half->yard_bytes);
	if (half->beacon)
		hccld_mapping_free(half->beacon, sizeof(struct beacon));
	hccld_connection_free(half->connection);
	memset(half, 0, sizeof(*half));
}

/* Descriptors: session region, yard, beacon, eventfd. */
static int session_map(struct hccld_session *half, struct hccld_call *hello)
{
	struct stat st;
	void *memory;
	int r;

	if (hello->fd_count != 4)
		return hccld_error(CAUSE_PROTOCOL,
				   "hccld sent %u descriptors with its HELLO, expected 4",
				   hello->fd_count);
	r = hccld_map(hello->fds[0], SESSION_REGION_SIZE, PROT_READ | PROT_WRITE, &half->region);
	if (r < 0)
		return r;
	/* sealed: it stays as large as it is. One that a daemon of release 0.3 has made ends with the contexts */
	half->yard_bytes = fstat(hello->fds[1], &st) == 0 && (uint64_t)st.st_size >= sizeof(struct yard_region) ? sizeof(struct yard_region) : sizeof(struct yard);
	r = hccld_map(hello->fds[1], half->yard_bytes, PROT_READ | PROT_WRITE, &memory);
	if (r < 0)
		return r;
	half->yard = memory;
	r = hccld_map(hello->fds[2], sizeof(struct beacon), PROT_READ, &memory);
	if (r < 0)
		return r;
	half->beacon = memory;
	if (((struct session_region *)half->region)->magic != SESSION_MAGIC ||
	    half->yard->magic != YARD_MAGIC)
		return hccld_error(CAUSE_PROTOCOL,
				   "shared memory from hccld is not what it should be");
	if (((struct session_region *)half->region)->version != SESSION_VERSION ||
	    half->yard->version != YARD_VERSION)
		return hccld_error(
			CAUSE_VERSION,
			"the shared memory of hccld has another layout than this library knows");
	half->event_fd = take_fd(&hello->fds[3]);
	return 0;
}

static int session_open(void)
{
	CLEANUP(session_unmap)
	struct hccld_session half = { .event_fd = -1 };
	struct hccld_call hello;
	int r;

	r = hccld_connection_new(HCCLD__CONTROL__HELLO__ROLE__CLIENT, &hello, &half.connection);
	if (r < 0)
		return r;
	r = session_map(&half, &hello);
	if (r == 0) {
		const Hccld__Control__HelloReply *reply = hello.reply->hello;

		half.id = reply->session;
		half.features = reply->features & HCCLD_FEATURES;
		snprintf(half.daemon_version, sizeof(half.daemon_version), "%s", reply->daemon);
		half.device_count = reply->device_count < HCCLD_DEVICES_MAX ? reply->device_count
									    : HCCLD_DEVICES_MAX;
		half.allow_duplicate_items = reply->allow_duplicate_items;
		snprintf(half.soc_name, sizeof(half.soc_name), "%s", reply->soc_name);
	}
	hccld_call_end(&hello);
	if (r < 0)
		return r;
	hccld_connection_set_beacon(half.connection, half.beacon);
	session = half;
	memset(&half, 0, sizeof(half));
	atomic_store_explicit(&current, &session, memory_order_release);
	return 0;
}

int hccld_session_get(struct hccld_session **ret_session)
{
	int cancel, r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	*ret_session = atomic_load_explicit(&current, memory_order_acquire);
	if (__builtin_expect(*ret_session != NULL, 1))
		return 0;

	pthread_once(&once, watch_forks);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	if (!atomic_load(&current)) {
		atomic_store(&connecting, true);
		r = session_open();
		atomic_store(&connecting, false);
	}
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	if (r == 0)
		*ret_session = atomic_load(&current);
	return r;
}

int hccld_session_need(uint64_t feature, const char *what, struct hccld_session **ret_session)
{
	int r = hccld_session_get(ret_session);

	if (r == 0 && !((*ret_session)->features & feature))
		r = hccld_error(CAUSE_UNBUILT,
				"hccld %s, which serves this process, has no %s; update hccld and start the program again",
				(*ret_session)->daemon_version, what);
	return r;
}
