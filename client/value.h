/* SPDX-License-Identifier: Apache-2.0 */
/* Words of 64 bit in memory of the device that streams write and wait for. Any thread. */
#pragma once

#include <stdint.h>

/*
 * @address: 8 bytes of device or pinned host memory, a multiple of 8. The word is written, or compared, when the stream gets there; a
 * daemon that is restarted in between may write it twice. -ESPIPE: other memory.
 */
int hccld_value_write(void *address, uint64_t value, void *stream);
/* @comparison: enum comparison of proto/ring.h. */
int hccld_value_wait(void *address, uint64_t value, uint32_t comparison, void *stream);
