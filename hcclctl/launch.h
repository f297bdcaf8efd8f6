/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and signalling the processes of ranks. Each is the leader of a process group of its own: a ^C at the terminal reaches us alone
 * and we pass it on once, to what the rank has started too. When we die, they are killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

struct rank {
	uint32_t number;
	pid_t pid; /* 0: not started */
	bool running;
	int status; /* of waitpid(), once it has ended */
};

/* What is the same for all ranks. */
struct launch {
	char **program; /* with its arguments */
	uint32_t rank_count, device_count;
	char job[48];		       /* HCCLD_JOB, unless that is set */
	const char *socket;	       /* HCCLD_SOCKET for the ranks; NULL: as it is */
	const char *library_directory; /* first in LD_LIBRARY_PATH; NULL: none */
	sigset_t signal_mask;	       /* to give to the program */
	struct rlimit file_limit;      /* likewise */
};

/*
 * Starts rank->number. The reading ends of its pipes are the caller's. Negative errno: of fork and the like with *@ret_executed false, of
 * exec with *@ret_executed true. rank->pid is set only on success.
 */
int launch_rank(const struct launch *launch, struct rank *rank, int *ret_out, int *ret_err,
		bool *ret_executed);
/* To the process group of a rank that was not reaped yet. */
void launch_signal(const struct rank *rank, int signal);
