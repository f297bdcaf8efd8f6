/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HCCLD_STRICT_DEVICE: the program may not touch device memory by load and store, as on a machine with NPUs; whoever does so ends by
 * SIGSEGV at that instruction, with a line on standard error. Host kernels may. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 1: it is set; 0: it is not; -EBADMSG: its value is wrong, text set. */
int hccld_strict_mode(void);
/* Is device memory closed to this thread? Copies go by the engine then. */
bool hccld_strict_is_closed(void);

/* Device memory was mapped at @base. 0 or a negative errno; text set. */
int hccld_strict_protect(void *base, uint64_t size);
/*
 * The mapping at @zeros goes to @base, in the place of what is mapped there, in one step: no thread finds nothing there. @is_device: that is
 * protected, and stays so. 0 or a negative errno; no text.
 */
int hccld_strict_replace(void *base, void *zeros, uint64_t size, bool is_device);
/* It is about to be unmapped. Nothing happens if it is none. */
void hccld_strict_forget(const void *base, uint64_t size);

/* This thread may touch device memory until it has closed it as often. Without protection keys all threads may meanwhile. */
void hccld_strict_open(void);
void hccld_strict_close(void);
