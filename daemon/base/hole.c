/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hole.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u
#define BATCH 65536u /* made at once, where all of it is a hole */

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* before Linux 5.11 root alone gets one */
#endif

#define NOT_TRIED (-0x10000)

static _Atomic int fault_fd = NOT_TRIED; /* as long as the process; or a negative errno */
static _Atomic int64_t room = INT64_MAX;
static _Atomic uint64_t taken; /* bytes, ever */

static int fault_open(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY), error;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) < 0) {
		error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int hole_watch(void *base, uint64_t bytes)
{
	struct uffdio_register watch = { .range = { (uintptr_t)base, bytes }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = atomic_load(&fault_fd);

	if (fd == NOT_TRIED) {
		fd = fault_open();
		atomic_store(&fault_fd, fd);
	}
	if (fd < 0)
		return fd;
	return ioctl(fd, UFFDIO_REGISTER, &watch) < 0 ? -errno : 0;
}

uint64_t hole_taken(void)
{
	return atomic_load(&taken);
}

void hole_set_room(uint64_t bytes, uint64_t taken_before)
{
	uint64_t since = atomic_load(&taken) - taken_before;

	bytes -= bytes < since ? bytes : since;
	atomic_store(&room, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
}

void hole_take_room(uint64_t bytes)
{
	atomic_fetch_add(&taken, bytes);
	atomic_fetch_sub(&room, (int64_t)bytes);
}

static void room_give(uint64_t bytes)
{
	int64_t before = atomic_load_explicit(&room, memory_order_relaxed), after;

	do
		after = before > INT64_MAX - (int64_t)bytes ? INT64_MAX : before + (int64_t)bytes;
	while (!atomic_compare_exchange_weak_explicit(&room, &before, after, memory_order_relaxed, memory_order_relaxed));
}

/* 0, or a negative errno: -EEXIST if there is a page. */
static int pages_make(uintptr_t page, uint64_t bytes, bool forced)
{
	struct uffdio_zeropage zero = { .range = { page, bytes } };
	int r = 0;

	atomic_fetch_add(&taken, bytes);
	if (!forced && atomic_fetch_sub(&room, (int64_t)bytes) < (int64_t)bytes)
		r = -ENOMEM;
	else if (ioctl(atomic_load(&fault_fd), UFFDIO_ZEROPAGE, &zero) < 0 && zero.zeropage <= 0)
		r = zero.zeropage < 0 ? (int)zero.zeropage : -errno;
	if (!forced)
		room_give(bytes - (r == 0 ? (uint64_t)zero.zeropage : 0));
	return r;
}

bool hole_fill(const void *address, bool forced)
{
	uintptr_t page = (uintptr_t)address & ~(uintptr_t)(PAGE - 1);
	int error = errno, r;

	if (atomic_load(&fault_fd) < 0)
		return false;
	/* a batch ends at the next page that is there, and fails beyond the end of the mapping */
	r = pages_make(page, BATCH - (page & (BATCH - 1)), forced);
	if (r < 0 && r != -EEXIST)
		r = pages_make(page, PAGE, forced);
	errno = error;
	return r == 0 || r == -EEXIST;
}
