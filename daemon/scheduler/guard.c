/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recovery point is not a jump but a page: the handler puts a private page of zeros where the fault was, the copy runs on, and
 * its caller learns of it. That costs two thread-local stores per copy and works on every architecture. The daemon's view of that
 * segment is spoilt by it; its session ends anyway.
 */
#include "scheduler/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hole.h"
#include "engine/copy.h"

static _Thread_local volatile sig_atomic_t active;
static _Thread_local const void *volatile lost;
static uintptr_t page_size;

static void guard_fault(int signal_number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);

	/* others than copies read single words, and cannot do without */
	if (hole_fill(info->si_addr, !active))
		return;
	if (!active || mmap((void *)page, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
			       MAP_FAILED) {
		signal(signal_number, SIG_DFL);	/* not ours: the instruction runs again and ends the process */
		return;
	}
	lost = info->si_addr;
}

int guard_install(void)
{
	struct sigaction action = { .sa_sigaction = guard_fault, .sa_flags = SA_SIGINFO };

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

void guard_begin(void)
{
	active = 1;
	atomic_signal_fence(memory_order_seq_cst);
}

const void *guard_end(void)
{
	const void *address;

	atomic_signal_fence(memory_order_seq_cst);
	active = 0;
	address = lost;
	if (address)
		lost = NULL;
	return address;
}

const void *guard_copy(void *destination, const void *source, size_t bytes, int value, bool non_temporal)
{
	guard_begin();
	if (!source)
		memset(destination, value, bytes);
	else if (non_temporal)
		copy_non_temporal(destination, source, bytes);
	else
		memmove(destination, source, bytes);	/* what a client lets overlap hurts nobody but itself */
	return guard_end();
}
