/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of reductions once more, by another way: exact in wide numbers, then rounded bit by bit. Slow. For tests. */
#pragma once

#include <stdint.h>

/* a op b by HcclDataType and HcclReduceOp, all as bits of one element. */
uint64_t reference_of(uint32_t type, uint32_t op, uint64_t a, uint64_t b);
