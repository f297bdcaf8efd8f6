/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that somebody else has made. */
#include "base/discard.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct discarded {
	size_t count;
	int fds[];
};

static void *discard_main(void *arg)
{
	struct discarded *discarded = arg;

	for (size_t i = 0; i < discarded->count; i++)
		close(discarded->fds[i]);
	free(discarded);
	return NULL;
}

static int discard_start(struct discarded *discarded)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int r = pthread_attr_init(&attributes);

	if (r)
		return -r;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 65536);
	/* signals are for the loop */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(&thread, &attributes, discard_main, discarded);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}

void discard_fds(const int *fds, size_t count)
{
	struct discarded *discarded = malloc(sizeof(*discarded) + count * sizeof(int));

	if (discarded) {
		discarded->count = count;
		memcpy(discarded->fds, fds, count * sizeof(int));
		if (discard_start(discarded) == 0)
			return;
		free(discarded);
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}
