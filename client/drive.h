/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor of this process (engine/direct.h): its tables, and who drives when. Everything here does nothing, or says no, where the daemon
 * is to move all bytes: an old daemon, HCCLD_STRICT_DEVICE (memory is closed to the threads that would copy).
 *
 * Whatever is about to be taken away by a request (a stream, a rank, a segment, tasks) is taken out of here first: from then on no thread of
 * this process works on it, and the daemon may.
 */
#pragma once

#include "client/comm.h"
#include "client/segment.h"

struct hccld_stream;

/* The context is open, or is about to be closed: its streams, ranks and words are no longer ours. */
void hccld_drive_open(struct hccld_context *context, const struct hccld_session *session);
void hccld_drive_close(struct hccld_context *context);

void hccld_drive_add_stream(struct hccld_context *context, struct stream_ring *ring);
void hccld_drive_remove_stream(struct hccld_context *context, struct stream_ring *ring);

/* Nothing of the context is driven in between. */
void hccld_drive_pause(struct hccld_context *context);
void hccld_drive_resume(struct hccld_context *context);

/* A segment of ours that tasks may name. */
void hccld_drive_add_segment(const struct hccld_segment *segment);
/* Before it is unmapped. Unknown ones are fine. */
void hccld_drive_remove_segment(const struct hccld_segment *segment);

/* The rank of @comm, which is not alive yet. -ENOMEM; text set. */
int hccld_drive_add_rank(struct hccld_comm *comm);
/* No task of it is driven from here on. May be called again. */
void hccld_drive_remove_rank(struct hccld_comm *comm);
/* It and its mappings go. */
void hccld_drive_free_rank(struct hccld_comm *comm);
/* Does OpenPairs have to ask for the rings? And how many pairs are mapped. */
bool hccld_drive_maps(const struct hccld_comm *comm, uint32_t *ret_pairs);
/* With comm->opening. The rings that came with the reply to OpenPairs. Errors are none: the engine does what cannot be done here. */
void hccld_drive_map_pairs(struct hccld_comm *comm, struct hccld_call *call);
/* All rings of these peers that are mapped can be used. */
void hccld_drive_use_pairs(struct hccld_comm *comm, const uint32_t *peers, size_t count);

/* R5, behind the store of the tail: does what goes at once, tells the engine of the rest. */
void hccld_drive_submitted(struct hccld_context *context, const struct hccld_session *session);
/* What a pass has missed is asked for; no context is taken. False: it is not to be had. */
bool hccld_drive_fulfil(const struct direct_wish *wish);
