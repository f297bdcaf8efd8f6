/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a thread that takes memory without end once the file in HCCLD_TEST_EAT is there. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *eat(void *path)
{
	while (access(path, F_OK) < 0)
		usleep(10000);
	for (;;) {
		void *memory = malloc(1 << 20);

		if (memory)
			memset(memory, 1, 1 << 20);
	}
	return NULL;
}

__attribute__((constructor)) static void eat_init(void)
{
	pthread_t thread;
	char *path = getenv("HCCLD_TEST_EAT");

	if (path)
		pthread_create(&thread, NULL, eat, path);
}
