/* SPDX-License-Identifier: Apache-2.0 */
/* The rank graph: one layer, a full mesh, links with the endpoints of devices. */
#include <pthread.h>
#include <string.h>

#include "tests/support/job.h"
#include "hccl/hccl_channel.h"
#include "hccl/hccl_rank_graph.h"

#define SIZE 6u
#define DEVICES 4u

static void check_endpoint(const EndpointDesc *endpoint, uint32_t device, CommProtocol protocol)
{
	EndpointDesc expected;

	check_eq_int(EndpointDescInit(&expected, 1), 0);
	expected.protocol = protocol;
	expected.commAddr.type = COMM_ADDR_TYPE_ID;
	expected.commAddr.id = device;
	expected.loc.locType = ENDPOINT_LOC_TYPE_DEVICE;
	expected.loc.device = (EndpointLocDevice){ device, device, 0, 0 };
	check_eq_mem(endpoint, &expected, sizeof(expected));
}

static void check_link(HcclComm comm, uint32_t source, uint32_t destination, CommProtocol protocol)
{
	CommLink *links = NULL, *again = NULL;
	HcclChannelDesc channel;
	uint32_t count = 7;

	check_ok(HcclRankGraphGetLinks(comm, 0, source, destination, &links, &count));
	if (source == destination) {
		check_eq_uint(count, 0);
		return;
	}
	check_eq_uint(count, 1);
	check_eq_uint(links[0].header.version, COMM_LINK_VERSION);
	check_eq_uint(links[0].header.magicWord, COMM_LINK_MAGIC_WORD);
	check_eq_uint(links[0].header.size, sizeof(CommLink));
	check_eq_uint(links[0].header.reserved, 0);
	check_eq_int(links[0].linkAttr.linkProtocol, protocol);
	check_eq_uint(links[0].linkAttr.hop, 1);
	check_endpoint(&links[0].srcEndpointDesc, source % DEVICES, protocol);
	check_endpoint(&links[0].dstEndpointDesc, destination % DEVICES, protocol);
	/* the same until the communicator is destroyed */
	check_ok(HcclRankGraphGetLinks(comm, 0, source, destination, &again, &count));
	check_eq_ptr(again, links);
	check_eq_int(HcclChannelDescInit(&channel, 1), HCCL_SUCCESS);
	channel.channelProtocol = links[0].linkAttr.linkProtocol;
	channel.localEndpoint = links[0].srcEndpointDesc;
	channel.remoteEndpoint = links[0].dstEndpointDesc;
	check_eq_int(channel.remoteEndpoint.protocol, protocol);
}

static void check_layers(HcclComm comm)
{
	uint32_t *layers, *ranks, *sizes, *instances, count = 0;
	HcclHeterogMode mode = HCCL_HETEROG_MODE_INVALID;
	CommTopo topo = COMM_TOPO_RESERVED;

	check_ok(HcclRankGraphGetLayers(comm, &layers, &count));
	check_eq_uint(count, 1);
	check_eq_uint(layers[0], 0);
	check_ok(HcclRankGraphGetRanksByLayer(comm, 0, &ranks, &count));
	check_eq_uint(count, SIZE);
	for (uint32_t i = 0; i < SIZE; i++)
		check_eq_uint(ranks[i], i);
	count = 0;
	check_ok(HcclRankGraphGetRankSizeByLayer(comm, 0, &count));
	check_eq_uint(count, SIZE);
	check_ok(HcclRankGraphGetTopoTypeByLayer(comm, 0, &topo));
	check_eq_int(topo, COMM_TOPO_1DMESH);
	check_ok(HcclRankGraphGetInstSizeListByLayer(comm, 0, &sizes, &count));
	check_eq_uint(count, 1);
	check_eq_uint(sizes[0], SIZE);
	check_ok(HcclRankGraphGetTopoInstsByLayer(comm, 0, &instances, &count));
	check_eq_uint(count, 1);
	check_eq_uint(instances[0], 0);
	topo = COMM_TOPO_RESERVED;
	check_ok(HcclRankGraphGetTopoType(comm, 0, 0, &topo));
	check_eq_int(topo, COMM_TOPO_1DMESH);
	check_ok(HcclRankGraphGetRanksByTopoInst(comm, 0, 0, &ranks, &count));
	check_eq_uint(count, SIZE);
	check_eq_uint(ranks[SIZE - 1], SIZE - 1);
	check_ok(HcclGetHeterogMode(comm, &mode));
	check_eq_int(mode, HCCL_HETEROG_MODE_HOMOGENEOUS);
}

static void check_endpoints(const struct job_rank *rank, CommProtocol protocol)
{
	EndpointDesc own[3];
	CommLink *links;
	uint32_t count = 0, value = 77, peer = (rank->rank + 1) % SIZE;

	check_ok(HcclRankGraphGetEndpointNum(rank->comm, 0, 0, &count));
	check_eq_uint(count, 1);
	count = 3;
	check_ok(HcclRankGraphGetEndpointDesc(rank->comm, 0, 0, &count, own));
	check_eq_uint(count, 1);
	check_endpoint(&own[0], rank->rank % DEVICES, protocol);
	check_ok(HcclRankGraphGetEndpointInfo(rank->comm, rank->rank, own, ENDPOINT_ATTR_BW_COEFF, sizeof(value), &value));
	check_eq_uint(value, 1);
	check_ok(HcclRankGraphGetEndpointInfo(rank->comm, rank->rank, own, ENDPOINT_ATTR_DIE_ID, sizeof(value), &value));
	check_eq_uint(value, 0);
	value = 77;
	check_ok(HcclRankGraphGetLinks(rank->comm, 0, rank->rank, peer, &links, &count));
	check_ok(HcclRankGraphGetEndpointInfo(rank->comm, peer, &links[0].dstEndpointDesc, ENDPOINT_ATTR_LOCATION, sizeof(value), &value));
	check_eq_uint(value, ENDPOINT_LOC_TYPE_DEVICE);
	value = 77;
	check_fails(HcclRankGraphGetEndpointInfo(rank->comm, rank->rank, &links[0].dstEndpointDesc, ENDPOINT_ATTR_DIE_ID, sizeof(value),
						 &value),
		    HCCL_E_PARA, "is no endpoint of rank");
	check_eq_uint(value, 77);
}

static void looks(struct job_rank *rank)
{
	CommProtocol protocol = *(CommProtocol *)rank->data;

	check_layers(rank->comm);
	for (uint32_t i = 0; i < SIZE; i++)
		for (uint32_t k = 0; k < SIZE; k++)
			check_link(rank->comm, i, k, protocol);
	check_endpoints(rank, protocol);
}

static void looks_910(void)
{
	CommProtocol protocol = COMM_PROTOCOL_HCCS;

	job_ranks(SIZE, DEVICES, looks, &protocol);
}

static void looks_950(void)
{
	CommProtocol protocol = COMM_PROTOCOL_UB_MEM;

	job_ranks(SIZE, DEVICES, looks, &protocol);
}

TEST(every_rank_has_a_link_to_every_other_one)
{
	job_run(looks_910);
}

TEST(links_have_the_protocol_of_the_device)
{
	static const char *const options[] = { "--soc-name", "Ascend950PR_9579", NULL };

	job_set_options(options);
	job_run(looks_950);
}

static void refuses_null(HcclComm comm)
{
	uint32_t *array, count = 1;
	HcclHeterogMode mode;
	EndpointDesc endpoint;
	CommLink *links;
	CommTopo topo;

	check_fails(HcclRankGraphGetLayers(NULL, &array, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetLayers(comm, NULL, &count), HCCL_E_PTR, "netLayers is NULL");
	check_fails(HcclRankGraphGetLayers(comm, &array, NULL), HCCL_E_PTR, "netLayerNum is NULL");
	check_fails(HcclRankGraphGetRanksByLayer(NULL, 0, &array, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetRanksByLayer(comm, 0, NULL, &count), HCCL_E_PTR, "ranks is NULL");
	check_fails(HcclRankGraphGetRanksByLayer(comm, 0, &array, NULL), HCCL_E_PTR, "rankNum is NULL");
	check_fails(HcclRankGraphGetRankSizeByLayer(NULL, 0, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetRankSizeByLayer(comm, 0, NULL), HCCL_E_PTR, "rankNum is NULL");
	check_fails(HcclRankGraphGetTopoTypeByLayer(NULL, 0, &topo), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetTopoTypeByLayer(comm, 0, NULL), HCCL_E_PTR, "topoType is NULL");
	check_fails(HcclRankGraphGetInstSizeListByLayer(NULL, 0, &array, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetInstSizeListByLayer(comm, 0, NULL, &count), HCCL_E_PTR, "instSizeList is NULL");
	check_fails(HcclRankGraphGetInstSizeListByLayer(comm, 0, &array, NULL), HCCL_E_PTR, "listSize is NULL");
	check_fails(HcclRankGraphGetLinks(NULL, 0, 0, 0, &links, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetLinks(comm, 0, 0, 0, NULL, &count), HCCL_E_PTR, "links is NULL");
	check_fails(HcclRankGraphGetLinks(comm, 0, 0, 0, &links, NULL), HCCL_E_PTR, "linkNum is NULL");
	check_fails(HcclRankGraphGetTopoInstsByLayer(NULL, 0, &array, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetTopoInstsByLayer(comm, 0, NULL, &count), HCCL_E_PTR, "topoInsts is NULL");
	check_fails(HcclRankGraphGetTopoInstsByLayer(comm, 0, &array, NULL), HCCL_E_PTR, "topoInstNum is NULL");
	check_fails(HcclRankGraphGetTopoType(NULL, 0, 0, &topo), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetTopoType(comm, 0, 0, NULL), HCCL_E_PTR, "topoType is NULL");
	check_fails(HcclRankGraphGetRanksByTopoInst(NULL, 0, 0, &array, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetRanksByTopoInst(comm, 0, 0, NULL, &count), HCCL_E_PTR, "ranks is NULL");
	check_fails(HcclRankGraphGetRanksByTopoInst(comm, 0, 0, &array, NULL), HCCL_E_PTR, "rankNum is NULL");
	check_fails(HcclGetHeterogMode(NULL, &mode), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclGetHeterogMode(comm, NULL), HCCL_E_PTR, "mode is NULL");
	check_fails(HcclRankGraphGetEndpointNum(NULL, 0, 0, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetEndpointNum(comm, 0, 0, NULL), HCCL_E_PTR, "num is NULL");
	check_fails(HcclRankGraphGetEndpointDesc(NULL, 0, 0, &count, &endpoint), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetEndpointDesc(comm, 0, 0, NULL, &endpoint), HCCL_E_PTR, "descNum is NULL");
	check_fails(HcclRankGraphGetEndpointDesc(comm, 0, 0, &count, NULL), HCCL_E_PTR, "endpointDesc is NULL");
	check_fails(HcclRankGraphGetEndpointInfo(NULL, 0, &endpoint, 0, 4, &count), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclRankGraphGetEndpointInfo(comm, 0, NULL, 0, 4, &count), HCCL_E_PTR, "endpointDesc is NULL");
	check_fails(HcclRankGraphGetEndpointInfo(comm, 0, &endpoint, 0, 4, NULL), HCCL_E_PTR, "info is NULL");
}

static void refuses_ranges(HcclComm comm)
{
	uint32_t *array = NULL, count = 1;
	EndpointDesc endpoint;
	CommLink *links = NULL;
	CommTopo topo = COMM_TOPO_RESERVED;

	check_fails(HcclRankGraphGetRanksByLayer(comm, 1, &array, &count), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetRankSizeByLayer(comm, 2, &count), HCCL_E_PARA, "there is no layer 2");
	check_fails(HcclRankGraphGetTopoTypeByLayer(comm, UINT32_MAX, &topo), HCCL_E_PARA, "there is no layer 4294967295");
	check_fails(HcclRankGraphGetInstSizeListByLayer(comm, 1, &array, &count), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetLinks(comm, 1, 0, 0, &links, &count), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetLinks(comm, 0, 1, 0, &links, &count), HCCL_E_PARA, "srcRank is 1");
	check_fails(HcclRankGraphGetLinks(comm, 0, 0, UINT32_MAX, &links, &count), HCCL_E_PARA, "dstRank is 4294967295");
	check_fails(HcclRankGraphGetTopoInstsByLayer(comm, 1, &array, &count), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetTopoType(comm, 1, 0, &topo), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetTopoType(comm, 0, 1, &topo), HCCL_E_PARA, "no topology instance 1");
	check_fails(HcclRankGraphGetRanksByTopoInst(comm, 1, 0, &array, &count), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetRanksByTopoInst(comm, 0, 9, &array, &count), HCCL_E_PARA, "no topology instance 9");
	check_fails(HcclRankGraphGetEndpointNum(comm, 1, 0, &count), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetEndpointNum(comm, 0, 1, &count), HCCL_E_PARA, "no topology instance 1");
	check_fails(HcclRankGraphGetEndpointDesc(comm, 1, 0, &count, &endpoint), HCCL_E_PARA, "there is no layer 1");
	check_fails(HcclRankGraphGetEndpointDesc(comm, 0, 1, &count, &endpoint), HCCL_E_PARA, "no topology instance 1");
	check_eq_uint(count, 1);
	count = 0;
	check_fails(HcclRankGraphGetEndpointDesc(comm, 0, 0, &count, &endpoint), HCCL_E_PARA, "*descNum is 0");
	check_eq_uint(count, 0);
	count = 1;
	check_ok(HcclRankGraphGetEndpointDesc(comm, 0, 0, &count, &endpoint));
	check_fails(HcclRankGraphGetEndpointInfo(comm, 1, &endpoint, ENDPOINT_ATTR_DIE_ID, 4, &count), HCCL_E_PARA, "rankId is 1");
	check_fails(HcclRankGraphGetEndpointInfo(comm, 0, &endpoint, ENDPOINT_ATTR_INVALID, 4, &count), HCCL_E_PARA, "endpointAttr is -1");
	check_fails(HcclRankGraphGetEndpointInfo(comm, 0, &endpoint, (EndpointAttr)3, 4, &count), HCCL_E_PARA, "endpointAttr is 3");
	check_fails(HcclRankGraphGetEndpointInfo(comm, 0, &endpoint, ENDPOINT_ATTR_DIE_ID, 8, &count), HCCL_E_PARA, "infoLen is 8");
	check_fails(HcclRankGraphGetEndpointInfo(comm, 0, &endpoint, ENDPOINT_ATTR_DIE_ID, 0, &count), HCCL_E_PARA, "infoLen is 0");
	check_null(array);
	check_null(links);
	check_eq_int(topo, COMM_TOPO_RESERVED);
	check_eq_uint(count, 1);
}

static void refuses(void)
{
	uint32_t *array, count;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	refuses_null(comm);
	refuses_ranges(comm);
	check_ok(HcclCommDestroy(comm));
	check_fails(HcclRankGraphGetLayers(comm, &array, &count), HCCL_E_PARA, "was destroyed");
	check_fails(HcclRankGraphGetLayers(&count, &array, &count), HCCL_E_PARA, "no communicator");
}

TEST(bad_arguments_are_refused_by_name)
{
	job_run(refuses);
}

static HcclComm common;

static void *asks(void *arg)
{
	CommLink *links;
	uint32_t *ranks, count;

	for (uint32_t i = 0; i < 20000; i++) {
		check_ok(HcclRankGraphGetLinks(common, 0, i % SIZE, (i + 1) % SIZE, &links, &count));
		check_eq_uint(links[0].srcEndpointDesc.loc.device.devPhyId, i % SIZE % DEVICES);
		check_ok(HcclRankGraphGetRanksByLayer(common, 0, &ranks, &count));
		check_eq_uint(ranks[count - 1], SIZE - 1);
	}
	return NULL;
}

static void all_ask(struct job_rank *rank)
{
	pthread_t threads[4];

	if (rank->rank)
		return;
	common = rank->comm;
	for (int i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, asks, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void asks_at_once(void)
{
	job_ranks(SIZE, DEVICES, all_ask, NULL);
}

TEST(threads_may_ask_at_once)
{
	job_run(asks_at_once);
}
