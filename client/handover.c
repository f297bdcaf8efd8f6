/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handover.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	/* shared: the word lies in memory of several processes */
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void hccld_handover_tell(const struct hccld_handover *handover)
{
	static const uint64_t one = 1;
	uint64_t state;
	int cancel;

	/* with the fence of an engine that leaves: it sees our tail, or we see its state */
	atomic_thread_fence(memory_order_seq_cst);
	state = atomic_load_explicit(&handover->words->state, memory_order_relaxed);
	do {
		enum context_state kind = yard_kind(state);

		/* the engine's, with copies under way: it looks again for the bit */
		if (kind == CONTEXT_HELD)
			break;
		if (kind != CONTEXT_IDLE && kind != CONTEXT_PARKED && kind != CONTEXT_SLEEP && kind != CONTEXT_PATIENT)
			return;
	} while (!atomic_compare_exchange_weak(&handover->words->state, &state, yard_next(state, CONTEXT_LEFT)));

	atomic_fetch_or(handover->bit_word, handover->bit);
	/* the engine stores how it sleeps in `awake`, fences, reads the bits (R10) */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&handover->beacon->awake, memory_order_relaxed) == BEACON_AWAKE)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (write(handover->event_fd, &one, sizeof(one)) < 0) {
		/* full: the engine has been woken and has not come to read it */
	}
	pthread_setcancelstate(cancel, NULL);
}

bool hccld_handover_sleep(const struct hccld_handover *handover, bool (*is_over)(const void *arg), const void *arg, uint64_t ns)
{
	struct yard_context *words = handover->words;
	struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	uint32_t news = atomic_load(&words->news);
	bool expired = false;

	/* full barrier between `sleepers` and the look at `completed`: the engine stores `completed`, fences, reads `sleepers` (R1) */
	atomic_fetch_add(&words->sleepers, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (!is_over(arg))
		expired = futex(&words->news, FUTEX_WAIT, news, &timeout) < 0 && errno == ETIMEDOUT;
	atomic_fetch_sub(&words->sleepers, 1);
	return expired;
}

void hccld_handover_wake(const struct hccld_handover *handover)
{
	atomic_fetch_add(&handover->words->news, 1);
	futex(&handover->words->news, FUTEX_WAKE, INT_MAX, NULL);
}

void hccld_host_news_sleep(struct session_host *host, bool (*is_due)(void *arg), void *arg, uint64_t ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	uint32_t news;

	atomic_fetch_add(&host->sleepers, 1);
	/* with the fence of the engine: it sees the sleeper, or we see its news. The news before the look at what is due */
	atomic_thread_fence(memory_order_seq_cst);
	news = atomic_load(&host->news);
	if (!is_due(arg))
		futex(&host->news, FUTEX_WAIT, news, ns == UINT64_MAX ? NULL : &timeout);
	atomic_fetch_sub(&host->sleepers, 1);
}

void hccld_host_news_tell(struct session_host *host)
{
	atomic_fetch_add(&host->news, 1);
	if (atomic_load(&host->sleepers))
		futex(&host->news, FUTEX_WAKE, INT_MAX, NULL);
}
