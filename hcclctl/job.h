/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a program: its ranks, their output, signals, the private daemon, the end. A loop around poll(); nothing in it blocks, so a rank
 * that prints without end or ends without notice holds up nobody.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hcclctl/guard.h"
#include "hcclctl/launch.h"

#define JOB_RANKS_MAX 4096u
/* Exit status when the run itself could not be done. */
#define JOB_FAILED 125

struct job;

/* Blocks the signals that it handles for the rest of the process' life. */
int job_new(const struct launch *launch, bool keep_going, uint32_t grace_s, struct job **ret_job);
struct job *job_free(struct job *job);
/* Brings the daemon up and gives its socket to the ranks. False: it did not come up; said why. */
bool job_start_daemon(struct job *job, const struct guard_options *options);
const struct guard *job_guard(const struct job *job);
/* Starts the ranks and returns the exit status when everything has ended. */
int job_run(struct job *job);
