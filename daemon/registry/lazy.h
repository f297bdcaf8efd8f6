/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HCCL buffers: segments of device memory whose pages exist once somebody has touched them, so that a communicator which never uses its
 * buffer costs address space alone. What exists is on the accounts as of the last look: programs may touch more than a limit allows, and
 * are refused new memory then. A rank has one at most, which goes with it. Control thread.
 *
 * Records: that of the kind RECORD_LAZY is there whenever the segment's is, so the next process never takes a buffer for a segment that is
 * backed in full. The opposite is harmless: ids are never used again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rank;
struct registry;
struct segment;

/*
 * The buffer of a rank that has none; @bytes: whole pages. As segment_new(), and -EFBIG: more address space than one user may have.
 */
int lazy_new(struct rank *rank, uint64_t bytes, struct segment **ret_segment);
/* Charges, or gives back, what the pages that exist have become more or fewer. Cheap enough to be called before every answer. */
void lazy_look(struct registry *registry);
/* What our own copies may take for pages of buffers, until the next time. Takes some time. */
void lazy_measure(struct registry *registry);
/* Segments and ranks are restored already, the former with all their bytes charged. */
void lazy_restore(struct registry *registry);
/* Has the rank of this buffer gone, and left it behind? After a restart. */
bool lazy_is_stray(const struct segment *segment);

/* For segment.c. The record of @segment, whose `rank` is set; the segment is being retired; it has gone. */
int lazy_record(struct segment *segment);
void lazy_close(struct segment *segment);
void lazy_forget(struct segment *segment);
