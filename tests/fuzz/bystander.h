/* SPDX-License-Identifier: Apache-2.0 */
/* Two honest processes that go on exchanging data whatever else happens to the daemon (honest.c). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct bystander {
	pid_t pids[2];
	int input; /* closed: stop */
};

/* Starts them; they are in their rounds when it returns. HONEST_BINARY, HCCLD_SOCKET. A round may take @limit_ms. */
void bystander_start(struct bystander *bystander, uint32_t limit_ms);
/* Ends them; fails the case unless every byte was right and no round took too long. */
void bystander_stop(struct bystander *bystander);

/* What the daemon with this pid holds. */
struct holdings {
	int fds, maps;
	long rss_kib;
};
struct holdings holdings_of(pid_t pid);
/*
 * Waits until the daemon has no sessions, communicators, streams and used memory, and no more descriptors and mappings than @before;
 * fails the case if that does not come.
 */
void holdings_settle(pid_t pid, const struct holdings *before);
