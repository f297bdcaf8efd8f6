/* SPDX-License-Identifier: Apache-2.0 */
/* ASCEND_RT_VISIBLE_DEVICES of this process, and so of the programs that it starts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How many of @device_count devices they see. */
uint32_t visible_count(uint32_t device_count);
/* What is wrong with the list, in @buffer; NULL: nothing. */
const char *visible_error(uint32_t device_count, char *buffer, size_t size);
