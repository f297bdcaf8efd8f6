/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random test: ranks exchange random batches and look at every byte. Everything but timing follows from the seed, which is printed first.
 *
 *	random --batches N --seed S [--ranks R] [--devices D] [--processes]
 *
 * R 2 to 16, D 1 to 8; by default each world (a set of ranks that lives for some batches) draws its own. Ranks are threads of this
 * process, with --processes processes. A batch is one round of a communicator, in which up to R ranks make one call. Uses the daemon of
 * HCCLD_SOCKET, else one of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plan.h"
#include "rank.h"
#include "tests/support/private_daemon.h"

struct options {
	uint64_t batches, seed;
	uint32_t ranks, devices;
	bool processes;
};

struct thread {
	pthread_t id;
	const struct plan_world *world;
	uint32_t rank, window_count;
	struct rank_shared *shared;
};

static void *thread_main(void *data)
{
	const struct thread *thread = data;

	rank_run(thread->world, thread->rank, thread->window_count, thread->shared);
	return NULL;
}

static int run_threads(const struct plan_world *world, uint32_t window_count, struct rank_shared *shared)
{
	struct thread threads[PLAN_RANKS];

	for (uint32_t i = 0; i < world->rank_count; i++) {
		threads[i] = (struct thread){ .world = world, .rank = i, .window_count = window_count, .shared = shared };
		if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]) != 0)
			return 1;
	}
	for (uint32_t i = 0; i < world->rank_count; i++)
		pthread_join(threads[i].id, NULL);
	return 0;
}

/* One rank that fails ends the others. */
static int run_processes(const struct plan_world *world, uint32_t window_count, struct rank_shared *shared)
{
	pid_t pids[PLAN_RANKS];
	int failed = 0;

	fflush(NULL);
	for (uint32_t i = 0; i < world->rank_count; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rank_run(world, i, window_count, shared);
			_exit(0);
		}
		if (pids[i] < 0)
			return 1;
	}
	for (uint32_t left = world->rank_count; left > 0; left--) {
		int status;
		pid_t pid = wait(&status);
		bool bad = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

		for (uint32_t i = 0; i < world->rank_count; i++) {
			if (pids[i] == pid)
				pids[i] = 0;
			if (pids[i] == pid && WIFSIGNALED(status) && !failed)
				fprintf(stderr, "rank %u was ended by signal %d\n", i, WTERMSIG(status));
		}
		for (uint32_t i = 0; bad && !failed && i < world->rank_count; i++)
			if (pids[i])
				kill(pids[i], SIGKILL);
		failed |= bad;
	}
	return failed;
}

/* Windows until @batches rounds are run. */
static uint32_t windows_for(const struct plan_world *world, uint64_t batches, uint64_t *ret_rounds)
{
	static struct plan_window window;
	uint32_t count = 0;

	*ret_rounds = 0;
	while (count < world->window_count && *ret_rounds < batches) {
		plan_window(world, count++, &window);
		*ret_rounds += window.round_count;
	}
	return count;
}

static int run(const struct options *options)
{
	struct rank_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t done = 0, bytes = 0, calls = 0;
	struct timespec start, end;
	uint32_t worlds = 0;

	if (shared == MAP_FAILED)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (done < options->batches) {
		struct plan_world world;
		uint64_t rounds;
		uint32_t windows;

		plan_world(options->seed, worlds++, options->ranks, options->devices, &world);
		windows = windows_for(&world, options->batches - done, &rounds);
		memset(shared, 0, sizeof(*shared));
		if (options->processes ? run_processes(&world, windows, shared) : run_threads(&world, windows, shared)) {
			fprintf(stderr, "repeat with --batches %lu --seed %lu%s\n", (unsigned long)options->batches,
				(unsigned long)options->seed, options->processes ? " --processes" : "");
			return 1;
		}
		done += rounds;
		bytes += atomic_load(&shared->bytes_checked);
		calls += atomic_load(&shared->calls);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("ok: %lu batches (%lu calls, %.1f MiB received and checked) in %u worlds, %.1f s\n", (unsigned long)done,
	       (unsigned long)calls, (double)bytes / 1048576, worlds,
	       (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: random --batches N [--seed S] [--ranks 2..%u] [--devices 1..%u] [--processes]\n", PLAN_RANKS, PLAN_DEVICES);
	return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i++) {
		uint64_t value;

		if (strcmp(argv[i], "--processes") == 0) {
			options->processes = true;
			continue;
		}
		if (i + 1 == argc)
			return -EINVAL;
		value = strtoull(argv[i + 1], NULL, 0);
		if (strcmp(argv[i], "--batches") == 0)
			options->batches = value;
		else if (strcmp(argv[i], "--seed") == 0)
			options->seed = value;
		else if (strcmp(argv[i], "--ranks") == 0)
			options->ranks = (uint32_t)value;
		else if (strcmp(argv[i], "--devices") == 0)
			options->devices = (uint32_t)value;
		else
			return -EINVAL;
		i++;
	}
	if (options->ranks == 1 || options->ranks > PLAN_RANKS || options->devices > PLAN_DEVICES || !options->batches)
		return -EINVAL;
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = { .batches = 1000 };
	struct private_daemon daemon;
	bool own_daemon = !getenv("HCCLD_SOCKET");
	int r;

	if (getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed) || parse(argc, argv, &options) < 0)
		return usage();
	printf("seed %lu\n", (unsigned long)options.seed);
	fflush(stdout);
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", 1);
	if (own_daemon && private_daemon_start(&daemon, NULL, NULL) < 0)
		return 1;
	r = run(&options);
	if (own_daemon && private_daemon_stop(&daemon) != 0) {
		fprintf(stderr, "the daemon did not end well\n");
		r = 1;
	}
	return r;
}
