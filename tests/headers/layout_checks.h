/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes, alignments and offsets of the public structs as measured with the headers of CANN 9.0
 * (those of 9.2 for what is new there). Included by test_headers.c and test_headers.cc.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

#ifdef __cplusplus
#define ALIGN_OF(type) alignof(type)
#else
#define ALIGN_OF(type) _Alignof(type)
#endif

#define LAYOUT(type, size, alignment) \
	static_assert(sizeof(type) == (size), "size of " #type); \
	static_assert(ALIGN_OF(type) == (alignment), "alignment of " #type)
#define OFFSET(type, field, offset) \
	static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)

LAYOUT(HcclRootInfo, 4108, 1);
OFFSET(HcclRootInfo, internal, 0);

LAYOUT(HcclCommConfig, 2240, 8);
OFFSET(HcclCommConfig, reserved, 0);
OFFSET(HcclCommConfig, hcclBufferSize, 24);
OFFSET(HcclCommConfig, hcclDeterministic, 28);
OFFSET(HcclCommConfig, hcclCommName, 32);
OFFSET(HcclCommConfig, hcclUdi, 160);
OFFSET(HcclCommConfig, hcclOpExpansionMode, 288);
OFFSET(HcclCommConfig, hcclRdmaTrafficClass, 292);
OFFSET(HcclCommConfig, hcclRdmaServiceLevel, 296);
OFFSET(HcclCommConfig, hcclWorldRankID, 300);
OFFSET(HcclCommConfig, hcclJobID, 304);
OFFSET(HcclCommConfig, aclGraphZeroCopyEnable, 312);
OFFSET(HcclCommConfig, hcclExecTimeOut, 316);
OFFSET(HcclCommConfig, hcclAlgo, 320);
OFFSET(HcclCommConfig, hcclRetryEnable, 1920);
OFFSET(HcclCommConfig, hcclRetryParams, 1970);
OFFSET(HcclCommConfig, hcclBufferName, 2098);
OFFSET(HcclCommConfig, hcclQos, 2228);
OFFSET(HcclCommConfig, hcclSymWinMaxMemSizePerRank, 2232);

LAYOUT(HcclSendRecvItem, 32, 8);
OFFSET(HcclSendRecvItem, sendRecvType, 0);
OFFSET(HcclSendRecvItem, buf, 8);
OFFSET(HcclSendRecvItem, count, 16);
OFFSET(HcclSendRecvItem, dataType, 24);
OFFSET(HcclSendRecvItem, remoteRank, 28);

LAYOUT(CommAbiHeader, 16, 4);
OFFSET(CommAbiHeader, version, 0);
OFFSET(CommAbiHeader, magicWord, 4);
OFFSET(CommAbiHeader, size, 8);
OFFSET(CommAbiHeader, reserved, 12);

LAYOUT(CommAddr, 40, 4);
OFFSET(CommAddr, type, 0);
OFFSET(CommAddr, raws, 4);

LAYOUT(EndpointLoc, 64, 4);
OFFSET(EndpointLoc, locType, 0);
OFFSET(EndpointLoc, raws, 4);

LAYOUT(EndpointDesc, 160, 4);
OFFSET(EndpointDesc, protocol, 0);
OFFSET(EndpointDesc, commAddr, 4);
OFFSET(EndpointDesc, loc, 44);
OFFSET(EndpointDesc, raws, 108);

LAYOUT(CommMem, 24, 8);
OFFSET(CommMem, type, 0);
OFFSET(CommMem, addr, 8);
OFFSET(CommMem, size, 16);

LAYOUT(HcclChannelDesc, 496, 8);
OFFSET(HcclChannelDesc, header, 0);
OFFSET(HcclChannelDesc, remoteRank, 16);
OFFSET(HcclChannelDesc, channelProtocol, 20);
OFFSET(HcclChannelDesc, localEndpoint, 24);
OFFSET(HcclChannelDesc, remoteEndpoint, 184);
OFFSET(HcclChannelDesc, notifyNum, 344);
OFFSET(HcclChannelDesc, memHandles, 352);
OFFSET(HcclChannelDesc, memHandleNum, 360);
OFFSET(HcclChannelDesc, raws, 364);

LAYOUT(HcommChannelDesc, 344, 8);
OFFSET(HcommChannelDesc, header, 0);
OFFSET(HcommChannelDesc, remoteEndpoint, 16);
OFFSET(HcommChannelDesc, notifyNum, 176);
OFFSET(HcommChannelDesc, exchangeAllMems, 180);
OFFSET(HcommChannelDesc, memHandles, 184);
OFFSET(HcommChannelDesc, memHandleNum, 192);
OFFSET(HcommChannelDesc, socket, 200);
OFFSET(HcommChannelDesc, role, 208);
OFFSET(HcommChannelDesc, port, 212);
OFFSET(HcommChannelDesc, raws, 216);

LAYOUT(CommLink, 464, 4);
OFFSET(CommLink, header, 0);
OFFSET(CommLink, srcEndpointDesc, 16);
OFFSET(CommLink, dstEndpointDesc, 176);
OFFSET(CommLink, linkAttr, 336);
OFFSET(CommLink, linkAttr.linkProtocol, 336);
OFFSET(CommLink, linkAttr.hop, 340);

LAYOUT(ThreadConfig, 32, 4);
OFFSET(ThreadConfig, header, 0);
OFFSET(ThreadConfig, notifyNumPerThread, 16);
OFFSET(ThreadConfig, reserved, 18);

LAYOUT(HcommBatchTransferDesc, 64, 8);
OFFSET(HcommBatchTransferDesc, transType, 0);
OFFSET(HcommBatchTransferDesc, reserved, 4);
OFFSET(HcommBatchTransferDesc, transferInfo, 8);

LAYOUT(HcclOpDesc, 360, 8);
OFFSET(HcclOpDesc, header, 0);
OFFSET(HcclOpDesc, opDescType, 16);
OFFSET(HcclOpDesc, opName, 20);
OFFSET(HcclOpDesc, raws, 280);

LAYOUT(HcclKernelFuncInfo, 528, 8);
OFFSET(HcclKernelFuncInfo, args, 512);
OFFSET(HcclKernelFuncInfo, argSize, 520);

LAYOUT(HcclKernelLaunchCfg, 128, 8);
OFFSET(HcclKernelLaunchCfg, header, 0);
OFFSET(HcclKernelLaunchCfg, timeOut, 16);
OFFSET(HcclKernelLaunchCfg, reserved, 24);

LAYOUT(HcclTeamCreateDesc, 88, 8);
OFFSET(HcclTeamCreateDesc, header, 0);
OFFSET(HcclTeamCreateDesc, rankIds, 16);
OFFSET(HcclTeamCreateDesc, rankNum, 24);
OFFSET(HcclTeamCreateDesc, selfRankId, 28);
OFFSET(HcclTeamCreateDesc, netLayer, 32);
OFFSET(HcclTeamCreateDesc, protocol, 36);
OFFSET(HcclTeamCreateDesc, requirement, 40);
OFFSET(HcclTeamCreateDesc, reserved, 72);

LAYOUT(HcclTeamCreateChannelsDesc, 48, 4);
OFFSET(HcclTeamCreateChannelsDesc, header, 0);
OFFSET(HcclTeamCreateChannelsDesc, engine, 16);
OFFSET(HcclTeamCreateChannelsDesc, notifyNum, 20);
OFFSET(HcclTeamCreateChannelsDesc, protocol, 24);
OFFSET(HcclTeamCreateChannelsDesc, channelCnt, 28);
OFFSET(HcclTeamCreateChannelsDesc, reserved, 32);

/* Not in that table, but fixed by the declarations. */
LAYOUT(HcclConfigValue, 4, 4);
LAYOUT(HcclOpP2pDesc, 48, 8);
LAYOUT(HcclP2pKernelParam, 8200, 8);
LAYOUT(HcommTeamSyncMemRequirement, 32, 4);
LAYOUT(aclrtStreamConfigHandle, 32, 8);
LAYOUT(aclrtMemLocation, 8, 4);
LAYOUT(aclrtPtrAttributes, 28, 4);
LAYOUT(aclrtMallocAttrValue, 8, 4);
LAYOUT(aclrtMallocAttribute, 12, 4);
LAYOUT(aclrtMallocConfig, 16, 8);
LAYOUT(aclrtMemFabricHandle, 128, 1);
LAYOUT(aclrtPhysicalMemProp, 32, 8);
LAYOUT(aclrtMemAccessDesc, 24, 4);
LAYOUT(aclrtMemcpyBatchAttr, 32, 4);
LAYOUT(aclrtIpcEventHandle, 64, 1);
LAYOUT(aclrtUuid, 16, 1);
LAYOUT(aclrtUtilizationInfo, 24, 8);
LAYOUT(aclrtMemUceInfo, 128, 8);
LAYOUT(aclrtCntNotifyRecordInfo, 8, 4);
LAYOUT(aclrtCntNotifyWaitInfo, 16, 4);
LAYOUT(aclrtLaunchKernelAttrValue, 16, 4);
LAYOUT(aclrtLaunchKernelAttr, 20, 4);
LAYOUT(aclrtLaunchKernelCfg, 16, 8);
LAYOUT(aclrtBinaryLoadOption, 20, 4);
LAYOUT(aclrtPlaceHolderInfo, 8, 4);
LAYOUT(aclrtStreamAttrValue, 16, 8);
LAYOUT(aclCANNPackageVersion, 512, 1);

/* Enumerations are ints, handles pointers or 64-bit numbers. */
LAYOUT(HcclResult, 4, 4);
LAYOUT(HcclDataType, 4, 4);
LAYOUT(HcclReduceOp, 4, 4);
LAYOUT(HcclSendRecvType, 4, 4);
LAYOUT(CommEngine, 4, 4);
LAYOUT(CommProtocol, 4, 4);
LAYOUT(CommMemType, 4, 4);
LAYOUT(aclDataType, 4, 4);
LAYOUT(aclrtMemMallocPolicy, 4, 4);
LAYOUT(aclrtMemcpyKind, 4, 4);
LAYOUT(aclError, 4, 4);
LAYOUT(HcommResult, 4, 4);
LAYOUT(HcclComm, 8, 8);
LAYOUT(HcclConn, 8, 8);
LAYOUT(HcclCommSymWindow, 8, 8);
LAYOUT(HcclMemHandle, 8, 8);
LAYOUT(HcommMemHandle, 8, 8);
LAYOUT(EndpointHandle, 8, 8);
LAYOUT(ChannelHandle, 8, 8);
LAYOUT(ThreadHandle, 8, 8);
LAYOUT(HcommTeamHandle, 8, 8);
LAYOUT(HcommWindowHandle, 8, 8);
LAYOUT(aclrtStream, 8, 8);
