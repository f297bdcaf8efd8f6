/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector cores of devices: a budget, counted in blocks of host kernels. They belong to streams, and go with them. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct registry;
struct stream;
struct text;

/*
 * The stream holds @count from now on, or what it holds already if that is more: asked again after a restart it is granted what it has.
 * -EXFULL: so many are not free; -ERANGE: the device has not so many at all; others from the records.
 */
int cores_take(struct stream *stream, uint32_t count);
/* It holds none. */
void cores_give(struct stream *stream);
/* From its record at @index. -EPROTO: it does not fit the rest. */
int cores_restore(struct registry *registry, uint32_t index);
/* Is @count as good as free: do streams hold so many that have no kernel queued, and are about to give them back? */
bool cores_will_come(const struct stream *stream, uint32_t count);
/* "has 48 vector cores, of which 44 are in use (pid 12 (program): 40, ...)": the three largest holders */
void cores_describe(const struct registry *registry, uint32_t device, struct text *text);
