/* SPDX-License-Identifier: Apache-2.0 */
/* Host kernels that have been running for long. Whether they compute or wait nobody but their program knows. Control thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct comm;
struct text;
struct waiting;

/*
 * Two ranks or more are left of @comm, and a host kernel of each has been running for @age_ms or longer: "host kernels of all 3 ranks of
 * communicator c have been running for 24.9 s or longer ...", and where to look. False: it is not so, nothing is added.
 */
bool kernels_describe_all(const struct comm *comm, uint64_t age_ms, struct text *text);
/* Of one that runs: "; gdb -p 4711 shows where, in threads called hccld-kernel" */
void kernels_advise(int32_t pid, struct text *text);
