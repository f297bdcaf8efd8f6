/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology of a communicator: layers (0 inside a node, 1 inside a group of nodes, 2 between), the
 * ranks in them and the links between ranks. Library libhcomm.so.
 *
 * Arrays that a function returns belong to the communicator and stay until it is destroyed.
 * Functions may be called from any thread. NULL: HCCL_E_PTR; unknown layer, rank: HCCL_E_PARA.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "../acl/acl.h"
#include "../hcomm/hcomm_res_defs.h"
#include "../securec.h"
#include "hccl_comm.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
static const uint32_t COMM_LINK_MAGIC_WORD = 0x0f0e0f0fU;
static const uint32_t COMM_LINK_VERSION = 1U;
#else
#define COMM_LINK_MAGIC_WORD 0x0f0e0f0fU
#define COMM_LINK_VERSION 1U
#endif

/* Types of the values of EndpointAttr. */
typedef uint32_t EndpointAttrBwCoeff;
typedef uint32_t EndpointAttrDieId;
typedef uint32_t EndpointAttrLocation;

typedef enum EndpointAttr {
	ENDPOINT_ATTR_INVALID = -1,
	ENDPOINT_ATTR_BW_COEFF = 0,
	ENDPOINT_ATTR_DIE_ID = 1,
	ENDPOINT_ATTR_LOCATION = 2,
} EndpointAttr;

typedef enum CommTopo {
	COMM_TOPO_RESERVED = -1,
	COMM_TOPO_CLOS = 0,
	COMM_TOPO_1DMESH = 1,
	COMM_TOPO_910_93 = 2,
	COMM_TOPO_310P = 3,
	COMM_TOPO_A2AXSERVER = 4,
	COMM_TOPO_CUSTOM = 5,
} CommTopo;

typedef enum HcclHeterogMode {
	HCCL_HETEROG_MODE_INVALID = -1,
	HCCL_HETEROG_MODE_HOMOGENEOUS = 0,
	HCCL_HETEROG_MODE_MIX_A2_A3 = 1,
} HcclHeterogMode;

/* A link between two ranks: what goes into HcclChannelDesc. */
typedef struct CommLink {
	CommAbiHeader header;
	EndpointDesc srcEndpointDesc;
	EndpointDesc dstEndpointDesc;
	union {
		uint8_t raws[128];
		__extension__ struct {
			CommProtocol linkProtocol;
			uint8_t hop;
		};
	} linkAttr;
} CommLink;

/* The layer numbers, netLayerNum elements. */
HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t **netLayers, uint32_t *netLayerNum);
/* The ranks in the own instance of a layer, rankNum elements. */
HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t **ranks,
		uint32_t *rankNum);
/* Number of ranks in the own instance of a layer. */
HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t *rankNum);
/* Shape of a layer. */
HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo *topoType);
/* Number of ranks in each instance of a layer, listSize elements. */
HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer,
		uint32_t **instSizeList, uint32_t *listSize);
/* The links from @srcRank to @dstRank in a layer; none: HCCL_SUCCESS and 0. */
HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank,
		uint32_t dstRank, CommLink **links, uint32_t *linkNum);
/* The topology instances of a layer. Experimental in CANN. */
HcclResult HcclRankGraphGetTopoInstsByLayer(HcclComm comm, uint32_t netLayer, uint32_t **topoInsts,
		uint32_t *topoInstNum);
/* Shape of a topology instance. Experimental in CANN. */
HcclResult HcclRankGraphGetTopoType(HcclComm comm, uint32_t netLayer, uint32_t topoInstId,
		CommTopo *topoType);
/* The ranks of a topology instance. Experimental in CANN. */
HcclResult HcclRankGraphGetRanksByTopoInst(HcclComm comm, uint32_t netLayer, uint32_t topoInstId,
		uint32_t **ranks, uint32_t *rankNum);
/* Whether the ranks run on different kinds of hardware. */
HcclResult HcclGetHeterogMode(HcclComm comm, HcclHeterogMode *mode);
/* Number of own endpoints in a topology instance. Experimental in CANN. */
HcclResult HcclRankGraphGetEndpointNum(HcclComm comm, uint32_t layer, uint32_t topoInstId,
		uint32_t *num);

/*
 * Own endpoints: @endpointDesc has room for *descNum, which becomes the number written.
 * Experimental in CANN.
 */
HcclResult HcclRankGraphGetEndpointDesc(HcclComm comm, uint32_t layer, uint32_t topoInstId,
		uint32_t *descNum, EndpointDesc *endpointDesc);

/*
 * Copies an attribute of an endpoint of @rankId to @info, which has @infoLen bytes; a wrong
 * infoLen gives HCCL_E_PARA. Experimental in CANN.
 */
HcclResult HcclRankGraphGetEndpointInfo(HcclComm comm, uint32_t rankId,
		const EndpointDesc *endpointDesc, EndpointAttr endpointAttr, uint32_t infoLen,
		void *info);

/* Fills @linkNum links with "not set", hop 1. HCCL_E_PTR: NULL. Works without the library. */
static inline HcclResult CommLinkInit(CommLink *commLink, uint32_t linkNum)
{
	uint32_t i;

	if (!commLink)
		return HCCL_E_PTR;
	for (i = 0; i < linkNum; i++) {
		memset(&commLink[i], 0xff, sizeof(commLink[i]));
		commLink[i].header.version = COMM_LINK_VERSION;
		commLink[i].header.magicWord = COMM_LINK_MAGIC_WORD;
		commLink[i].header.size = sizeof(commLink[i]);
		commLink[i].header.reserved = 0;
		commLink[i].linkAttr.hop = 1;
	}
	return HCCL_SUCCESS;
}

#ifdef __cplusplus
}
#endif
