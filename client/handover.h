/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of the hand-over protocol (tests/model/README.md) while the daemon's engine is the only executor: telling it of a
 * submitted task, sleeping until one is done. No session, no requests: tests run it against an executor in the same process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ring.h"
#include "proto/yard.h"

struct hccld_handover {
	struct yard_context *words;
	_Atomic uint64_t *bit_word;
	uint64_t bit;
	const struct beacon *beacon;
	int event_fd;			/* of the engine */
};

/*
 * R5, after the store of `tail` (release): whoever makes a free context LEFT sets its bit and wakes the engine, as does who finds it HELD; if it
 * is LEFT already, somebody else does or did; if it is owned, the owner looks again when it leaves. May be called at any time, needed or not.
 */
void hccld_handover_tell(const struct hccld_handover *handover);

/*
 * R6, not driver: sleeps on `news` unless @is_over(@arg), at most @ns. True if it slept to the end of the time. May return early.
 */
bool hccld_handover_sleep(const struct hccld_handover *handover, bool (*is_over)(const void *arg), const void *arg, uint64_t ns);
/* Wakes all that sleep on the context, in whatever process. */
void hccld_handover_wake(const struct hccld_handover *handover);

/*
 * Host functions: a thread that has one of its own to run when it is due sleeps on session_host.news, unless @is_due(@arg); at most
 * @ns, UINT64_MAX: for ever. May return early. The engine's side is in engine/meeting.c.
 */
void hccld_host_news_sleep(struct session_host *host, bool (*is_due)(void *arg), void *arg, uint64_t ns);
/* Another thread of this process may have one to run now. */
void hccld_host_news_tell(struct session_host *host);
