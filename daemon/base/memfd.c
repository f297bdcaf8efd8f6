/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is shared with clients. */
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/hole.h"
#include "base/log.h"
#include "base/memory_group.h"
#include "base/process.h"
#include "proto/cleanup.h"
#include "proto/clock.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define LARGE (UINT64_C(4) << 20)
/* Of what the control group may take, for our own needs; less small regions, so that those have room when there are no large ones. */
#define RESERVE_OF_LARGE (UINT64_C(32) << 20)
#define RESERVE (UINT64_C(8) << 20)
/* The same of the node: the kernel would kill somebody. */
#define RESERVE_OF_NODE (UINT64_C(256) << 20)

/* The errno as the table of causes knows it: no memory, or a limit. */
static int memfd_failed(const char *call, const char *name)
{
	int error = errno;

	log_warning("%s for memory '%s' failed: %s", call, name, strerror(error));
	if (error == ENOSPC || error == EFBIG)
		return -ENOMEM;
	if (error == EMFILE || error == ENFILE)
		return -EDQUOT;
	return -error;
}

/*
 * One look at the group takes 30 system calls, and a process that starts needs some six small regions. So a look that found that much more
 * than was asked for is good for as much, for a moment.
 */
#define CREDIT (INT64_C(4) << 20)
#define CREDIT_NS UINT64_C(20000000)

/* What is being backed right now: the account of the group may not show it yet. */
static _Atomic uint64_t in_progress;
static _Atomic uint64_t credit_until_ns;
static _Atomic int64_t credit;

static bool credit_take(uint64_t bytes)
{
	if (bytes >= LARGE || clock_now_ns() >= atomic_load(&credit_until_ns))
		return false;
	return atomic_fetch_sub(&credit, (int64_t)bytes) >= (int64_t)bytes;
}

static void credit_give(uint64_t spare)
{
	if (spare < CREDIT)
		return;
	atomic_store(&credit, CREDIT);
	atomic_store(&credit_until_ns, clock_now_ns() + CREDIT_NS);
}

/* Where a control group has no room the kernel does not refuse: it kills us, and would again when we are asked again. */
static bool group_has_room(uint64_t wanted, uint64_t bytes)
{
	static const struct log_fields refused = { .event = EVENT_LIMIT_REFUSED, .is_frequent = true };
	uint64_t reserve = bytes >= LARGE ? RESERVE_OF_LARGE : RESERVE, available;
	struct memory_group group;

	if (credit_take(bytes))
		return true;
	memory_group_self(&group);
	available = memory_group_available(&group);
	if (available >= reserve && wanted <= available - reserve) {
		credit_give(available - reserve - wanted);
		return true;
	}
	log_event(LOG_LEVEL_WARNING, &refused,
		  "the control group of hccld may take %" PRIu64 " MiB more, %" PRIu64 " are kept for itself: no %" PRIu64
		  " KiB for a region",
		  available >> 20, reserve >> 20, bytes >> 10);
	return false;
}

uint64_t memfd_room(void)
{
	struct memory_group group;
	uint64_t node = memory_available(), available;

	memory_group_self(&group);
	available = memory_group_available(&group);
	node -= node < RESERVE_OF_NODE ? node : RESERVE_OF_NODE;
	available -= available < RESERVE_OF_LARGE ? available : RESERVE_OF_LARGE;
	return available < node ? available : node;
}

int memfd_back(int fd, uint64_t offset, uint64_t bytes)
{
	uint64_t wanted = atomic_fetch_add(&in_progress, bytes) + bytes;
	int r = group_has_room(wanted, bytes) ? 0 : -ENOMEM;

	while (r == 0 && fallocate(fd, 0, (off_t)offset, (off_t)bytes) < 0)
		if (errno != EINTR)
			r = memfd_failed("fallocate", "region");
	atomic_fetch_sub(&in_progress, bytes);
	if (r == 0)
		hole_take_room(bytes);
	return r;
}

int memfd_new(const char *name, uint64_t bytes, bool backed, int *ret_fd)
{
	CLEANUP(close_fdp) int fd = -1;
	int r;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return memfd_failed("memfd_create", name);
	if (fchmod(fd, 0) < 0)
		return memfd_failed("fchmod", name);
	if (ftruncate(fd, (off_t)bytes) < 0)
		return memfd_failed("ftruncate", name);
	/* SEAL too: a client must not add a seal that keeps the next daemon from mapping it */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return memfd_failed("sealing", name);
	if (backed) {
		r = memfd_back(fd, 0, bytes);
		if (r < 0)
			return r;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

void memfd_punch(int fd, uint64_t offset, uint64_t bytes)
{
	while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			 (off_t)bytes) < 0) {
		if (errno == EINTR)
			continue;
		memfd_failed("punching a hole", "region");
		return;
	}
}

int memfd_map(int fd, uint64_t bytes, bool populate, void **ret_base)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | (populate ? MAP_POPULATE : 0), fd, 0);

	if (base == MAP_FAILED)
		return memfd_failed("mmap", "region");
	/* advice only: nothing depends on it */
	(void)madvise(base, bytes, MADV_DONTDUMP);
	(void)madvise(base, bytes, MADV_DONTFORK);
	*ret_base = base;
	return 0;
}

void memfd_unmap(void *base, uint64_t bytes)
{
	if (base)
		munmap(base, bytes);
}

int memfd_read_only(int fd, int *ret_fd)
{
	char path[64];
	int reopened, error = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/*
	 * without a right to read, only root could open it; the time is short, and nobody can write
	 * by it
	 */
	if (fchmod(fd, 0400) < 0)
		return memfd_failed("fchmod", "region");
	reopened = open(path, O_RDONLY | O_CLOEXEC);
	if (reopened < 0)
		error = memfd_failed("open", path);
	if (fchmod(fd, 0) < 0)
		memfd_failed("fchmod", "region");
	if (reopened < 0)
		return error;
	*ret_fd = reopened;
	return 0;
}

int sparse_new(uint64_t bytes, void **ret_base)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -ENOMEM;
	*ret_base = base;
	return 0;
}

void sparse_free(void *base, uint64_t bytes)
{
	if (base)
		munmap(base, bytes);
}
