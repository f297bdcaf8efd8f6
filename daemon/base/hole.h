/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory whose pages come when they are touched (HCCL buffers), as far as this process touches it. The kernel would take a page that has no
 * room in the control group by killing us. So an access to a hole is made a SIGBUS (userfaultfd), and the handler makes the page, as long as
 * there is room. Where the kernel gives us no userfaultfd, a hole is filled as everywhere else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Holes in a mapping of whole pages are told from now on, until it is unmapped. Negative errno: they are not. Control thread. */
int hole_watch(void *base, uint64_t bytes);
/*
 * What may be taken for holes, in bytes; until the first call as much as there is. @taken: hole_taken() before that was measured, for what
 * other threads have taken since may not be in it.
 */
void hole_set_room(uint64_t bytes, uint64_t taken);
uint64_t hole_taken(void);
/* Less, because it is used for something else. Any thread. */
void hole_take_room(uint64_t bytes);
/*
 * For the handler of SIGBUS. True: there is a page at @address now, which may be touched again. False: it is in no such memory, or there is
 * no room for it; with @forced room is not asked for. Any thread; async-signal-safe.
 */
bool hole_fill(const void *address, bool forced);
