/* SPDX-License-Identifier: Apache-2.0 */
#include "client/rank_graph.h"

#include <stdlib.h>
#include <string.h>

#include "client/comm.h"
#include "client/error.h"

struct hccld_rank_graph {
	uint32_t size, zero;
	uint32_t *ranks;
	_Atomic(CommLink *) *links; /* by source: one for each destination */
};

static struct hccld_rank_graph *graph_free(struct hccld_rank_graph *graph)
{
	if (!graph)
		return NULL;
	for (uint32_t i = 0; graph->links && i < graph->size; i++)
		free(atomic_load_explicit(&graph->links[i], memory_order_relaxed));
	free(graph->links);
	free(graph->ranks);
	free(graph);
	return NULL;
}

static struct hccld_rank_graph *graph_new(uint32_t size)
{
	struct hccld_rank_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	graph->size = size;
	graph->ranks = calloc(size, sizeof(*graph->ranks));
	graph->links = calloc(size, sizeof(*graph->links));
	if (!graph->ranks || !graph->links)
		return graph_free(graph);
	for (uint32_t i = 0; i < size; i++)
		graph->ranks[i] = i;
	return graph;
}

int hccld_rank_graph_get(struct hccld_comm *comm, struct hccld_rank_graph **ret_graph)
{
	struct hccld_rank_graph *graph = atomic_load_explicit(&comm->graph, memory_order_acquire), *made;

	if (!graph) {
		made = graph_new(comm->size);
		if (!made)
			return hccld_error(CAUSE_HOST_MEMORY, "no memory for the rank graph of %u ranks", comm->size);
		/* release: whoever finds it finds it filled; of two that make one the first counts */
		if (atomic_compare_exchange_strong_explicit(&comm->graph, &graph, made, memory_order_acq_rel, memory_order_acquire))
			graph = made;
		else
			graph_free(made);
	}
	*ret_graph = graph;
	return 0;
}

uint32_t *hccld_rank_graph_zero(struct hccld_rank_graph *graph)
{
	return &graph->zero;
}

uint32_t *hccld_rank_graph_sizes(struct hccld_rank_graph *graph)
{
	return &graph->size;
}

uint32_t *hccld_rank_graph_ranks(struct hccld_rank_graph *graph)
{
	return graph->ranks;
}

int hccld_rank_graph_endpoint(const struct hccld_comm *comm, uint32_t rank, EndpointDesc *ret_endpoint)
{
	const struct comm_member *member = &comm->region->members[rank];
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	EndpointDescInit(ret_endpoint, 1);
	ret_endpoint->protocol = strncmp(session->soc_name, "Ascend950", strlen("Ascend950")) == 0 ? COMM_PROTOCOL_UB_MEM :
												    COMM_PROTOCOL_HCCS;
	ret_endpoint->commAddr.type = COMM_ADDR_TYPE_ID;
	ret_endpoint->commAddr.id = member->device;
	ret_endpoint->loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
	ret_endpoint->loc.device = (EndpointLocDevice){ .devPhyId = member->device, .superDevId = member->device };
	return 0;
}

/* All links of a rank: who asks for one asks for the others, too. */
static int links_new(const struct hccld_comm *comm, uint32_t source, CommLink **ret_links)
{
	CommLink *links = calloc(comm->size, sizeof(*links));
	int r = 0;

	if (!links)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the links of %u ranks", comm->size);
	CommLinkInit(links, comm->size);
	for (uint32_t i = 0; i < comm->size && r == 0; i++) {
		r = hccld_rank_graph_endpoint(comm, source, &links[i].srcEndpointDesc);
		if (r == 0)
			r = hccld_rank_graph_endpoint(comm, i, &links[i].dstEndpointDesc);
		links[i].linkAttr.linkProtocol = links[i].srcEndpointDesc.protocol;
	}
	if (r < 0) {
		free(links);
		return r;
	}
	*ret_links = links;
	return 0;
}

int hccld_rank_graph_link(struct hccld_comm *comm, struct hccld_rank_graph *graph, uint32_t source, uint32_t destination,
			  CommLink **ret_link)
{
	CommLink *links = atomic_load_explicit(&graph->links[source], memory_order_acquire), *made = NULL;
	int r;

	if (!links) {
		r = links_new(comm, source, &made);
		if (r < 0)
			return r;
		if (atomic_compare_exchange_strong_explicit(&graph->links[source], &links, made, memory_order_acq_rel, memory_order_acquire))
			links = made;
		else
			free(made);
	}
	*ret_link = source == destination ? NULL : &links[destination];
	return 0;
}

void hccld_rank_graph_end(struct hccld_comm *comm)
{
	graph_free(atomic_exchange_explicit(&comm->graph, NULL, memory_order_relaxed));
}
