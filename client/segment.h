/* SPDX-License-Identifier: Apache-2.0 */
/* A segment of the daemon, mapped whole, for those who manage its inside themselves. */
#pragma once

#include <stdint.h>

#include "client/session.h"

struct hccld_segment {
	uint64_t id;
	void *base;
	uint64_t size;
};

/* @kind: AllocateSegment.Kind. @asked: what the program itself has asked for, if it is less. -ENOMEM and others; text set. */
int hccld_segment_new(struct hccld_context *context, uint32_t kind, uint64_t size, uint64_t asked,
		      struct hccld_segment *ret_segment);
/* The HCCL buffer of @rank, the daemon's handle of (communicator, rank); asked for again it is the same, whatever the size. */
int hccld_segment_new_lazy(struct hccld_context *context, uint64_t rank, uint64_t size, struct hccld_segment *ret_segment);
/* Unmaps and gives back. Errors are of no interest: what the daemon does not know it has freed already. */
void hccld_segment_free(struct hccld_segment *segment);
/* The same, but what other processes have imported stays until they have given it back, or this process ends. */
void hccld_segment_free_after_imports(struct hccld_segment *segment);
/* Unmaps only: the daemon frees, or has freed, all of the context. */
void hccld_segment_unmap(struct hccld_segment *segment);
