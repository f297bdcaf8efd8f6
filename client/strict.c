/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory is mapped with a memory protection key to which threads have no access; opening is a matter of the thread's own register.
 * The processor, or kernel, may have none (or HCCLD_STRICT_DEVICE=2 does without): then the mappings are made inaccessible by mprotect(),
 * and accessible, to all threads, while somebody has them open. For that they are in a list.
 */
#include "client/strict.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/buffer.h"
#include "client/channel.h"
#include "client/error.h"
#include "client/share.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int mode; /* as hccld_strict_mode() */
static int key = -1;
static struct sigaction previous;
static _Thread_local uint32_t depth; /* this thread has it open */

/* Without keys. */
struct area {
	struct area *next;
	char *base;
	uint64_t size;
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct area *areas;
static uint32_t open_count;

/* ---- the line on standard error, async-signal-safe ---- */

struct line {
	char text[768]; /* a tag has 255 */
	size_t length;
};

static void line_add(struct line *line, const char *text)
{
	while (*text && line->length < sizeof(line->text))
		line->text[line->length++] = *text++;
}

static void line_add_number(struct line *line, uint64_t number, unsigned int base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	if (base == 16)
		line_add(line, "0x");
	line_add(line, digits + at);
}

/* As loss_text(), which is not for signal handlers. */
static void line_add_loss(struct line *line, const struct hccld_loss *loss)
{
	const char *word = loss_word(loss->kind);

	if (!word)
		word = loss->kind == LOSS_FREED ? "has freed it" : "has freed it or ended";
	line_add(line, word);
	if (loss->kind != LOSS_ENDED || loss->exit < 0 || !WIFSIGNALED(loss->exit))
		return;
	line_add(line, " (killed by signal ");
	line_add_number(line, (uint64_t)WTERMSIG(loss->exit), 10);
	line_add(line, ")");
}

/* "of the HCCL buffer of rank 1", "of registered memory "tag" of rank 1": that is on none of this process's devices. */
static void line_add_owner(struct line *line, const struct hccld_channel_owner *owner)
{
	line_add(line, owner->tag ? " of registered memory \"" : " of the HCCL buffer");
	line_add(line, owner->tag ? owner->tag : "");
	line_add(line, owner->tag ? "\" of rank " : " of rank ");
	line_add_number(line, owner->peer, 10);
	line_add(line, ", which a channel has brought");
	if (!owner->is_lost)
		return;
	line_add(line, "; it is lost: rank ");
	line_add_number(line, owner->peer, 10);
	line_add(line, ", pid ");
	line_add_number(line, owner->lost.pid, 10);
	line_add(line, ", ");
	line_add_loss(line, &owner->lost.loss);
}

/* An address behind what the program has asked for is still in the allocation. */
static void line_add_extra(struct line *line, const void *address, const struct hccld_allocation *allocation)
{
	if ((uintptr_t)address - (uintptr_t)allocation->start < allocation->bytes - allocation->extra)
		return;
	line_add(line, " (behind its end; ");
	line_add_number(line, allocation->bytes, 10);
	line_add(line, " with the room behind it)");
}

static void line_add_import(struct line *line, const struct hccld_lost *lost)
{
	line_add(line, " of memory that was imported from pid ");
	line_add_number(line, lost->pid, 10);
	line_add(line, "; it is lost: pid ");
	line_add_number(line, lost->pid, 10);
	line_add(line, " ");
	line_add_loss(line, &lost->loss);
}

/* What was touched, or in whose guard. */
struct touched {
	bool is_beside;
	struct hccld_allocation allocation;
	bool is_peer;				/* memory that a channel has brought */
	struct hccld_channel_owner owner;
	bool is_import;				/* lost memory that a key or handle has brought */
	struct hccld_lost import;
};

/* Nothing is there, for nobody. */
static void line_add_beside(struct line *line, const void *address, const struct hccld_allocation *allocation)
{
	const uint64_t asked = allocation->bytes - allocation->extra;
	const bool is_before = (uintptr_t)address < (uintptr_t)allocation->start;

	line_add(line, "hccld: the program touches ");
	line_add_number(line, (uintptr_t)address, 16);
	if (!allocation->bytes) {
		line_add(line, ", beside memory that small allocations of aclrtMalloc share,");
		return;
	}
	line_add(line, ", ");
	line_add_number(line, is_before ? (uintptr_t)allocation->start - (uintptr_t)address : (uintptr_t)address - (uintptr_t)allocation->start - asked,
			10);
	line_add(line, is_before ? " bytes before the start" : " bytes behind the end");
	line_add(line, allocation->is_mapping ? " of device memory of " : " of the allocation of ");
	line_add_number(line, asked, 10);
	line_add(line, allocation->is_mapping ? " bytes mapped at " : " bytes by aclrtMalloc at ");
	line_add_number(line, (uintptr_t)allocation->start, 16);
}

static void line_add_touched(struct line *line, const void *address, const struct touched *touched)
{
	const struct hccld_allocation *allocation = &touched->allocation;

	line_add(line, "hccld: the program touches device memory at ");
	line_add_number(line, (uintptr_t)address, 16);
	if (allocation->bytes) {
		line_add(line, ", byte ");
		line_add_number(line, (uintptr_t)address - (uintptr_t)allocation->start, 10);
		line_add(line, " of ");
		line_add_number(line, allocation->bytes - allocation->extra, 10);
		line_add_extra(line, address, allocation);
		line_add(line, touched->is_peer || touched->is_import ? " mapped at " : " allocated at ");
		line_add_number(line, (uintptr_t)allocation->start, 16);
	} else {
		line_add(line, ", which is not allocated (freed, or behind the end of an allocation),");
	}
}

static void tell(const void *address, const struct touched *touched)
{
	struct line line = { .length = 0 };

	if (touched->is_beside)
		line_add_beside(&line, address, &touched->allocation);
	else
		line_add_touched(&line, address, touched);
	if (touched->is_peer) {
		line_add_owner(&line, &touched->owner);
	} else if (touched->is_import) {
		line_add_import(&line, &touched->import);
	} else {
		line_add(&line, " on device ");
		line_add_number(&line, (uint64_t)touched->allocation.device, 10);
	}
	line_add(&line, touched->is_beside ? "; nothing is there, neither for host code nor for host kernels\n" :
					     "; HCCLD_STRICT_DEVICE forbids that to host code: copy with aclrtMemcpy, or touch it in a host kernel\n");
	if (write(STDERR_FILENO, line.text, line.length) < 0) {
		/* nobody reads it */
	}
}

static void lost_as_allocation(const struct hccld_lost *lost, struct hccld_allocation *ret_allocation)
{
	*ret_allocation = (struct hccld_allocation){ lost->start, lost->bytes, 0, -1, HCCLD_MEMORY_DEVICE, true };
}

static bool look_beside(const void *address, struct touched *touched)
{
	const struct hccld_allocation *allocation = &touched->allocation;

	touched->is_beside = hccld_buffer_look_beside(address, &touched->allocation) && allocation->memory == HCCLD_MEMORY_DEVICE;
	touched->is_peer = touched->is_beside && allocation->is_mapping && hccld_channel_look(allocation->start, &touched->owner);
	return touched->is_beside;
}

/* Is it device memory, or beside it? What is lost is in the index of buffers no more. */
static bool look(const void *address, struct touched *ret_touched)
{
	*ret_touched = (struct touched){ 0 };
	ret_touched->is_peer = hccld_channel_look(address, &ret_touched->owner);
	if (hccld_buffer_look(address, &ret_touched->allocation)) {
		ret_touched->is_peer &= ret_touched->allocation.bytes != 0;
		return ret_touched->allocation.memory == HCCLD_MEMORY_DEVICE;
	}
	if (ret_touched->is_peer) {
		lost_as_allocation(&ret_touched->owner.lost, &ret_touched->allocation);
		return ret_touched->owner.is_lost;
	}
	ret_touched->is_import = hccld_share_look(address, &ret_touched->import);
	if (ret_touched->is_import)
		lost_as_allocation(&ret_touched->import, &ret_touched->allocation);
	return ret_touched->is_import || look_beside(address, ret_touched);
}

static void call_previous(int number, siginfo_t *info, void *context)
{
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(number, info, context);
	else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
		previous.sa_handler(number);
	else
		sigaction(SIGSEGV, &previous, NULL); /* and again at the same instruction */
}

static void fault(int number, siginfo_t *info, void *context)
{
	struct touched touched;
	int error = errno;

	/* an access of its own, and not a signal that somebody has sent */
	if (info->si_code > 0 && look(info->si_addr, &touched)) {
		tell(info->si_addr, &touched);
		sigaction(SIGSEGV, &previous, NULL); /* what comes now comes at that instruction */
	} else {
		call_previous(number, info, context);
	}
	errno = error;
}

/* ---- */

static void load(void)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	const char *value = getenv("HCCLD_STRICT_DEVICE");

	if (value)
		value += strspn(value, "0");
	if (!value || !*value)
		return;
	mode = strcmp(value, "1") == 0 || strcmp(value, "2") == 0 ? 1 : -EBADMSG;
	if (mode < 0)
		return;
	if (*value == '1')
		key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &previous);
}

int hccld_strict_mode(void)
{
	pthread_once(&once, load);
	if (mode < 0)
		return hccld_error(CAUSE_ENVIRONMENT,
				   "environment variable HCCLD_STRICT_DEVICE is \"%.64s\"; expected 0, 1, or 2 (1 without protection keys)",
				   getenv("HCCLD_STRICT_DEVICE"));
	return mode;
}

bool hccld_strict_is_closed(void)
{
	pthread_once(&once, load);
	return mode > 0 && !depth;
}

static int area_add(void *base, uint64_t size)
{
	struct area *area = malloc(sizeof(*area));
	int r = 0;

	if (!area)
		return -ENOMEM;
	*area = (struct area){ areas, base, size };
	pthread_mutex_lock(&mutex);
	if (!open_count && mprotect(base, size, PROT_NONE) < 0)
		r = -errno;
	area->next = areas;
	if (r == 0)
		areas = area;
	pthread_mutex_unlock(&mutex);
	if (r < 0)
		free(area);
	return r;
}

int hccld_strict_protect(void *base, uint64_t size)
{
	int r = hccld_strict_mode();

	if (r <= 0)
		return r;
	if (key >= 0)
		r = pkey_mprotect(base, size, PROT_READ | PROT_WRITE, key) < 0 ? -errno : 0;
	else
		r = area_add(base, size);
	if (r < 0)
		return hccld_error(CAUSE_HOST_MEMORY, "cannot protect %llu bytes of device memory (HCCLD_STRICT_DEVICE): %s",
				   (unsigned long long)size, strerror(-r));
	return 0;
}

static int move(void *base, void *from, uint64_t size)
{
	return mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, base) == MAP_FAILED ? -errno : 0;
}

int hccld_strict_replace(void *base, void *zeros, uint64_t size, bool is_device)
{
	int r = 0;

	pthread_once(&once, load);
	if (mode <= 0 || !is_device)
		return move(base, zeros, size);
	/* protected before it is there: host code never gets at it, and blocks of kernels that run do */
	if (key >= 0)
		return pkey_mprotect(zeros, size, PROT_READ | PROT_WRITE, key) < 0 ? -errno : move(base, zeros, size);
	/* its area stays in the list */
	pthread_mutex_lock(&mutex);
	if (!open_count && mprotect(zeros, size, PROT_NONE) < 0)
		r = -errno;
	if (r == 0)
		r = move(base, zeros, size);
	pthread_mutex_unlock(&mutex);
	return r;
}

void hccld_strict_forget(const void *base, uint64_t size)
{
	struct area **at = &areas, *area;
	const char *start = base;

	pthread_once(&once, load);
	if (mode <= 0 || key >= 0)
		return;
	pthread_mutex_lock(&mutex);
	while ((area = *at)) {
		if (area->base < start + size && start < area->base + area->size) {
			*at = area->next;
			free(area);
		} else {
			at = &area->next;
		}
	}
	pthread_mutex_unlock(&mutex);
}

static void protect_all(int protection)
{
	for (struct area *area = areas; area; area = area->next)
		(void)mprotect(area->base, area->size, protection);
}

void hccld_strict_open(void)
{
	pthread_once(&once, load);
	if (mode <= 0 || depth++)
		return;
	if (key >= 0) {
		pkey_set(key, 0);
		return;
	}
	pthread_mutex_lock(&mutex);
	if (!open_count++)
		protect_all(PROT_READ | PROT_WRITE);
	pthread_mutex_unlock(&mutex);
}

void hccld_strict_close(void)
{
	if (mode <= 0 || --depth)
		return;
	if (key >= 0) {
		pkey_set(key, PKEY_DISABLE_ACCESS);
		return;
	}
	pthread_mutex_lock(&mutex);
	if (!--open_count)
		protect_all(PROT_NONE);
	pthread_mutex_unlock(&mutex);
}
