/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions in memory, as tasks of a stream. Any thread. */
#pragma once

#include <stdint.h>

struct hccld_place;
struct hccld_stream;

/*
 * @to[i] = @to[i] op @from[i], @count elements of @type (HcclDataType), @op: HcclReduceOp, which is HcommReduceOp; what each gives, NaN,
 * overflow and rounding included, says engine/arithmetic.h. Both are device memory, or host memory of aclrtMallocHost, of this process or
 * shared with it, at a multiple of the element's size. The same memory twice is a op a. Checks in this order: daemon too old (-EOPNOTSUPP),
 * @op and @type (-EPROTOTYPE), @count 0 (0), @count too large (-EINVAL), NULL (-EFAULT), alignment (-EINVAL), memory (-ESPIPE, -ESTALE; ends in
 * between: -EINVAL), overlap in part (-EINVAL); text set, with @function.
 */
int hccld_reduce_submit(const char *function, struct hccld_stream *stream, void *to, const void *from, uint64_t count, uint32_t type,
			uint32_t op);
/* The same with a place for a side whose address this process cannot look up (a peer's, by a channel); NULL: it can. @stream NULL: checks only. */
int hccld_reduce_submit_at(const char *function, struct hccld_stream *stream, void *to, const struct hccld_place *to_place, const void *from,
			   const struct hccld_place *from_place, uint64_t count, uint32_t type, uint32_t op);
