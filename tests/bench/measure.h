/* SPDX-License-Identifier: Apache-2.0 */
/* Clock and memory. */
#pragma once

#include <stdint.h>

uint64_t measure_now_ns(void);
/* Proportional set size of a process in KiB; @pid 0: own. */
uint64_t measure_pss_kib(int pid);
