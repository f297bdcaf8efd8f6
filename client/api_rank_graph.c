/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology of communicators, in libhcomm.so. A node is one layer, number 0, of one topology instance, number 0: a full mesh of all ranks.
 * Functions that CANN has for 950 alone answer for every kind of device.
 */
#include <string.h>

#include "client/argument.h"
#include "client/comm.h"
#include "client/rank_graph.h"
#include "hccl/hccl_rank_graph.h"
#include "proto/cleanup.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))

/* What all have in common: a communicator and its graph. */
struct question {
	const char *function;
	struct hccld_comm *comm; /* pinned */
	struct hccld_rank_graph *graph;
};

static void question_end(struct question *question)
{
	hccld_comm_putp(&question->comm);
}

static int question_begin(struct question *question, const char *function, HcclComm comm)
{
	int r;

	question->function = function;
	r = hccld_comm_get(comm, &question->comm);
	if (r == 0)
		r = hccld_rank_graph_get(question->comm, &question->graph);
	return r;
}

static int check_layer(const struct question *question, uint32_t layer)
{
	if (layer == 0)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "%s: there is no layer %u; the ranks of one node are in layer 0", question->function, layer);
}

static int check_instance(const struct question *question, uint32_t layer, uint32_t instance)
{
	int r = check_layer(question, layer);

	if (r < 0 || instance == 0)
		return r;
	return hccld_error(CAUSE_ARGUMENT, "%s: layer 0 has no topology instance %u, only 0", question->function, instance);
}

static int check_rank(const struct question *question, const char *name, uint32_t rank)
{
	if (rank < question->comm->size)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "%s: %s is %u; communicator %s has %u ranks, counted from 0", question->function, name, rank,
			   question->comm->name, question->comm->size);
}

/* ---- layers ---- */

HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t **netLayers, uint32_t *netLayerNum)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!netLayers)
		return null_argument(__func__, "netLayers");
	if (!netLayerNum)
		return null_argument(__func__, "netLayerNum");
	r = question_begin(&question, __func__, comm);
	if (r < 0)
		return API(r);
	*netLayers = hccld_rank_graph_zero(question.graph);
	*netLayerNum = 1;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t **ranks, uint32_t *rankNum)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!ranks)
		return null_argument(__func__, "ranks");
	if (!rankNum)
		return null_argument(__func__, "rankNum");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_layer(&question, netLayer);
	if (r < 0)
		return API(r);
	*ranks = hccld_rank_graph_ranks(question.graph);
	*rankNum = question.comm->size;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t *rankNum)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!rankNum)
		return null_argument(__func__, "rankNum");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_layer(&question, netLayer);
	if (r < 0)
		return API(r);
	*rankNum = question.comm->size;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo *topoType)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!topoType)
		return null_argument(__func__, "topoType");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_layer(&question, netLayer);
	if (r < 0)
		return API(r);
	*topoType = COMM_TOPO_1DMESH;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer, uint32_t **instSizeList, uint32_t *listSize)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!instSizeList)
		return null_argument(__func__, "instSizeList");
	if (!listSize)
		return null_argument(__func__, "listSize");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_layer(&question, netLayer);
	if (r < 0)
		return API(r);
	*instSizeList = hccld_rank_graph_sizes(question.graph);
	*listSize = 1;
	return HCCL_SUCCESS;
}

/* A rank has no link to itself: its own memory it reaches without one. */
HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank, uint32_t dstRank, CommLink **links,
				 uint32_t *linkNum)
{
	CLEANUP(question_end) struct question question = { 0 };
	CommLink *link;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!links)
		return null_argument(__func__, "links");
	if (!linkNum)
		return null_argument(__func__, "linkNum");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_layer(&question, netLayer);
	if (r == 0)
		r = check_rank(&question, "srcRank", srcRank);
	if (r == 0)
		r = check_rank(&question, "dstRank", dstRank);
	if (r == 0)
		r = hccld_rank_graph_link(question.comm, question.graph, srcRank, dstRank, &link);
	if (r < 0)
		return API(r);
	*links = link;
	*linkNum = link != NULL;
	return HCCL_SUCCESS;
}

/* ---- topology instances ---- */

HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer, uint32_t **topoInsts, uint32_t *topoInstNum)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!topoInsts)
		return null_argument(__func__, "topoInsts");
	if (!topoInstNum)
		return null_argument(__func__, "topoInstNum");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_layer(&question, netLayer);
	if (r < 0)
		return API(r);
	*topoInsts = hccld_rank_graph_zero(question.graph);
	*topoInstNum = 1;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, CommTopo *topoType)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!topoType)
		return null_argument(__func__, "topoType");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_instance(&question, netLayer, topoInstId);
	if (r < 0)
		return API(r);
	*topoType = COMM_TOPO_1DMESH;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId, uint32_t **ranks, uint32_t *rankNum)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!ranks)
		return null_argument(__func__, "ranks");
	if (!rankNum)
		return null_argument(__func__, "rankNum");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_instance(&question, netLayer, topoInstId);
	if (r < 0)
		return API(r);
	*ranks = hccld_rank_graph_ranks(question.graph);
	*rankNum = question.comm->size;
	return HCCL_SUCCESS;
}

HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode *mode)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!mode)
		return null_argument(__func__, "mode");
	r = question_begin(&question, __func__, comm);
	if (r < 0)
		return API(r);
	*mode = HCCL_HETEROG_MODE_HOMOGENEOUS;
	return HCCL_SUCCESS;
}

/* ---- endpoints ---- */

HcclResult HcclRankGraphGetEndpointNum(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t *num)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!num)
		return null_argument(__func__, "num");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_instance(&question, layer, topoInstId);
	if (r < 0)
		return API(r);
	*num = 1;
	return HCCL_SUCCESS;
}

HcclResult HcclRankGraphGetEndpointDesc(HcclComm comm, uint32_t layer, uint32_t topoInstId, uint32_t *descNum,
					EndpointDesc *endpointDesc)
{
	CLEANUP(question_end) struct question question = { 0 };
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!descNum)
		return null_argument(__func__, "descNum");
	if (!endpointDesc)
		return null_argument(__func__, "endpointDesc");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_instance(&question, layer, topoInstId);
	if (r == 0 && *descNum == 0)
		r = hccld_error(CAUSE_ARGUMENT, "%s: *descNum is 0, and this rank has 1 endpoint; HcclRankGraphGetEndpointNum tells how many",
				__func__);
	if (r == 0)
		r = hccld_rank_graph_endpoint(question.comm, question.comm->rank, endpointDesc);
	if (r < 0)
		return API(r);
	*descNum = 1;
	return HCCL_SUCCESS;
}

/* Is it the endpoint of that rank, as far as HCCL looks: protocol, address, place? */
static int check_endpoint(const struct question *question, uint32_t rank, const EndpointDesc *given)
{
	EndpointDesc endpoint;
	int r;

	r = hccld_rank_graph_endpoint(question->comm, rank, &endpoint);
	if (r < 0)
		return r;
	if (given->protocol == endpoint.protocol && given->commAddr.type == endpoint.commAddr.type &&
	    given->commAddr.id == endpoint.commAddr.id && given->loc.locType == endpoint.loc.locType &&
	    given->loc.device.devPhyId == endpoint.loc.device.devPhyId)
		return 0;
	return hccld_error(CAUSE_ARGUMENT,
			   "%s: endpointDesc is no endpoint of rank %u; expected one of HcclRankGraphGetLinks or HcclRankGraphGetEndpointDesc",
			   question->function, rank);
}

/* All links are equally fast, on die 0, and end on devices. */
static int attribute_read(const char *function, EndpointAttr attribute, uint32_t length, uint32_t *ret_value)
{
	static const uint32_t values[] = {
		[ENDPOINT_ATTR_BW_COEFF] = 1, [ENDPOINT_ATTR_DIE_ID] = 0, [ENDPOINT_ATTR_LOCATION] = ENDPOINT_LOC_TYPE_DEVICE
	};

	if (attribute < ENDPOINT_ATTR_BW_COEFF || attribute > ENDPOINT_ATTR_LOCATION)
		return hccld_error(CAUSE_ARGUMENT, "%s: endpointAttr is %d, expected 0 to 2 (EndpointAttr)", function, (int)attribute);
	if (length != sizeof(*ret_value))
		return hccld_error(CAUSE_ARGUMENT, "%s: infoLen is %u, expected %zu", function, length, sizeof(*ret_value));
	*ret_value = values[attribute];
	return 0;
}

HcclResult HcclRankGraphGetEndpointInfo(HcclComm comm, uint32_t rankId, const EndpointDesc *endpointDesc, EndpointAttr endpointAttr,
					uint32_t infoLen, void *info)
{
	CLEANUP(question_end) struct question question = { 0 };
	uint32_t value = 0;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!endpointDesc)
		return null_argument(__func__, "endpointDesc");
	if (!info)
		return null_argument(__func__, "info");
	r = question_begin(&question, __func__, comm);
	if (r == 0)
		r = check_rank(&question, "rankId", rankId);
	if (r == 0)
		r = attribute_read(__func__, endpointAttr, infoLen, &value);
	if (r == 0)
		r = check_endpoint(&question, rankId, endpointDesc);
	if (r < 0)
		return API(r);
	memcpy(info, &value, sizeof(value));
	return HCCL_SUCCESS;
}
