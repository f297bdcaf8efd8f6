/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of tenants, as one text: "1000=4 /slurm/uid_1001=2", a user or a control group and what is below it each. Who is not named has
 * 1. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WEIGHTS_MAX 256u /* bytes of the text with its end */
#define WEIGHTS_HIGHEST 64u
#define WEIGHTS_FORM "'equal', or UID=N and /CGROUP=N, separated by spaces or commas, N from 1 to 64"

bool weights_check(const char *text);
/* Of a text that is good. A group counts more than a user, a longer one more than a shorter one, the last of the same. */
uint32_t weights_find(const char *text, uint32_t uid, const char *cgroup);
