/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies between the ranks of a communicator, as HcclRankGraph* tell it: one layer, inside the node, in which every rank reaches every
 * other one by one link. Arrays are made at the first question and stay until the communicator is destroyed. @comm is pinned. Any thread.
 */
#pragma once

#include <stdint.h>

#include "hccl/hccl_rank_graph.h"

struct hccld_comm;
struct hccld_rank_graph;

/* For whoever asks for arrays. -ENOBUFS; text set. */
int hccld_rank_graph_get(struct hccld_comm *comm, struct hccld_rank_graph **ret_graph);
/* { 0 }: numbers of layers and of topology instances; sizes of the instances; the ranks. Of 1, 1 and comm->size elements. */
uint32_t *hccld_rank_graph_zero(struct hccld_rank_graph *graph);
uint32_t *hccld_rank_graph_sizes(struct hccld_rank_graph *graph);
uint32_t *hccld_rank_graph_ranks(struct hccld_rank_graph *graph);
/* The link between two ranks; none from a rank to itself: NULL. -ENOBUFS, -ENOTCONN. */
int hccld_rank_graph_link(struct hccld_comm *comm, struct hccld_rank_graph *graph, uint32_t source, uint32_t destination,
			  CommLink **ret_link);
/* Where a rank is: its device, and the protocol of this kind of device. -ENOTCONN. */
int hccld_rank_graph_endpoint(const struct hccld_comm *comm, uint32_t rank, EndpointDesc *ret_endpoint);
/* The communicator has no pins and is no longer alive. */
void hccld_rank_graph_end(struct hccld_comm *comm);
