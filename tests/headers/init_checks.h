/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the inline initialisers and the functions of securec.h do. Included by test_headers.c and
 * test_headers.cc, so everything is checked as C and as C++.
 */
#pragma once

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "public.h"

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

/* Is every byte of the region @value? */
static inline int all_bytes(const void *region, size_t size, int value)
{
	const unsigned char *bytes = (const unsigned char *)region;
	size_t i;

	for (i = 0; i < size; i++)
		if (bytes[i] != (unsigned char)value)
			return 0;
	return 1;
}

static inline int is_header(const CommAbiHeader *header, uint32_t version, uint32_t magic, uint32_t size)
{
	return header->version == version && header->magicWord == magic && header->size == size &&
	       header->reserved == 0;
}

static inline void check_comm_config(void)
{
	HcclCommConfig config;
	struct {
		size_t size;
		uint32_t magic, version;
		uint64_t reserved;
	} info;

	static_assert(sizeof(info) == sizeof(config.reserved), "packed");
	memset(&config, 0x5a, sizeof(config));
	HcclCommConfigInit(NULL);
	HcclCommConfigInit(&config);
	memcpy(&info, config.reserved, sizeof(info));
	CHECK(info.size == 2240 && info.magic == 0xf0f0f0f0 && info.version == 10 && info.reserved == 0);
	CHECK(config.hcclBufferSize == 0xffffffff && config.hcclDeterministic == 0xffffffff);
	CHECK(config.hcclRdmaTrafficClass == 0xffffffff && config.hcclRdmaServiceLevel == 0xffffffff);
	CHECK(config.hcclQos == 0xffffffff && config.hcclExecTimeOut == -1);
	CHECK(config.hcclOpExpansionMode == 0 && config.hcclWorldRankID == 0 && config.hcclJobID == 0);
	CHECK(config.aclGraphZeroCopyEnable == 0 && config.hcclSymWinMaxMemSizePerRank == 16);
	CHECK(config.hcclCommName[0] == 0 && config.hcclUdi[0] == 0 && config.hcclAlgo[0] == 0);
	CHECK(config.hcclRetryEnable[0] == 0 && config.hcclRetryParams[0] == 0 && config.hcclBufferName[0] == 0);
}

static inline void check_hccl_channel(void)
{
	HcclChannelDesc desc[3];

	CHECK(HcclChannelDescInit(NULL, 1) == HCCL_E_PTR && HcclChannelDescInit(NULL, 0) == HCCL_E_PTR);
	memset(desc, 0x5a, sizeof(desc));
	CHECK(HcclChannelDescInit(desc, 0) == HCCL_SUCCESS && all_bytes(desc, sizeof(desc), 0x5a));
	CHECK(HcclChannelDescInit(desc, 2) == HCCL_SUCCESS);
	CHECK(all_bytes(&desc[2], sizeof(desc[2]), 0x5a));
	CHECK(is_header(&desc[1].header, 1, 0x0f0f0f0f, 496));
	CHECK(desc[1].remoteRank == 0xffffffff && desc[1].channelProtocol == COMM_PROTOCOL_RESERVED);
	CHECK(all_bytes(&desc[1].localEndpoint, 320, 0xff) && all_bytes(desc[1].raws, 128, 0xff));
	CHECK(desc[1].notifyNum == 0 && desc[1].memHandles == NULL && desc[1].memHandleNum == 0);
	CHECK(desc[0].roceAttr.queueNum == 0xffffffff && desc[0].roceAttr.tc == 0xff);
}

static inline void check_hcomm_channel(void)
{
	HcommChannelDesc desc[3];

	CHECK(HcommChannelDescInit(NULL, 1) == HCCL_E_PTR);
	memset(desc, 0x5a, sizeof(desc));
	CHECK(HcommChannelDescInit(desc, 0) == HCCL_SUCCESS && all_bytes(desc, sizeof(desc), 0x5a));
	CHECK(HcommChannelDescInit(desc, 2) == HCCL_SUCCESS);
	CHECK(all_bytes(&desc[2], sizeof(desc[2]), 0x5a));
	CHECK(is_header(&desc[1].header, 1, 0x0fcf0f0f, 344));
	CHECK(all_bytes(&desc[1].remoteEndpoint, 160, 0xff) && all_bytes(desc[1].raws, 128, 0xff));
	CHECK(desc[1].notifyNum == 0 && !desc[1].exchangeAllMems && desc[1].memHandles == NULL);
	CHECK(desc[1].memHandleNum == 0 && desc[1].socket == NULL && desc[1].port == 0);
	CHECK(desc[1].role == HCOMM_SOCKET_ROLE_RESERVED);
}

static inline void check_endpoint_and_link(void)
{
	EndpointDesc endpoint[2];
	CommLink links[2];

	CHECK(EndpointDescInit(NULL, 1) == HCCL_E_PTR);
	memset(endpoint, 0x5a, sizeof(endpoint));
	CHECK(EndpointDescInit(endpoint, 0) == HCCL_SUCCESS && endpoint[0].raws[0] == 0x5a);
	CHECK(EndpointDescInit(endpoint, 2) == HCCL_SUCCESS && all_bytes(endpoint, sizeof(endpoint), 0xff));

	CHECK(CommLinkInit(NULL, 1) == HCCL_E_PTR);
	memset(links, 0x5a, sizeof(links));
	CHECK(CommLinkInit(links, 0) == HCCL_SUCCESS && all_bytes(links, sizeof(links), 0x5a));
	CHECK(CommLinkInit(links, 2) == HCCL_SUCCESS);
	CHECK(is_header(&links[1].header, 1, 0x0f0e0f0f, 464));
	CHECK(all_bytes(&links[1].srcEndpointDesc, 320, 0xff) && links[1].linkAttr.hop == 1);
	CHECK(links[1].linkAttr.linkProtocol == COMM_PROTOCOL_RESERVED && links[1].linkAttr.raws[5] == 0xff);
}

static inline void check_later_versions(void)
{
	ThreadConfig thread[2];
	HcclOpDesc op;
	HcclKernelLaunchCfg launch;
	HcclTeamCreateDesc team;
	HcclTeamCreateChannelsDesc channels;

	CHECK(ThreadConfigInit(NULL, 1) == HCCL_E_PTR && ThreadConfigInit(thread, 0) == HCCL_SUCCESS);
	memset(thread, 0x5a, sizeof(thread));
	CHECK(ThreadConfigInit(thread, 2) == HCCL_SUCCESS && is_header(&thread[1].header, 1, 0x0f0f0f2f, 32));
	CHECK(all_bytes(&thread[1].notifyNumPerThread, 16, 0));
	CHECK(HcclOpDescInit(NULL) == HCCL_E_PTR && HcclOpDescInit(&op) == HCCL_SUCCESS);
	CHECK(is_header(&op.header, 1, 0x0f0f0f0f, 360) && all_bytes(&op.opDescType, 344, 0xff));
	CHECK(HcclKernelLaunchCfgInit(NULL) == HCCL_E_PTR && HcclKernelLaunchCfgInit(&launch) == HCCL_SUCCESS);
	CHECK(is_header(&launch.header, 1, 0x0f0f0f0f, 128) && all_bytes(&launch.timeOut, 112, 0xff));
	CHECK(HcclTeamCreateDescInit(NULL) == HCCL_E_PTR && HcclTeamCreateDescInit(&team) == HCCL_SUCCESS);
	CHECK(is_header(&team.header, 1, 0x0fcf0f14, 88) && team.rankNum == 0 && team.protocol == COMM_PROTOCOL_RESERVED);
	CHECK(all_bytes(&team.requirement, sizeof(team.requirement), 0));
	CHECK(HcclTeamCreateChannelsDescInit(NULL) == HCCL_E_PTR);
	CHECK(HcclTeamCreateChannelsDescInit(&channels) == HCCL_SUCCESS);
	CHECK(is_header(&channels.header, 1, 0x0fcf0f15, 48) && channels.notifyNum == 0 && channels.channelCnt == 0);
	CHECK(channels.protocol == COMM_PROTOCOL_RESERVED && channels.engine == COMM_ENGINE_RESERVED);
}

static inline void check_securec_memory(void)
{
	char text[8];
	char *nothing = NULL;

	memset(text, 'x', sizeof(text));
	CHECK(memset_s(text, 4, 0, 3) == EOK && text[2] == 0 && text[3] == 'x');
	CHECK(memset_s(text, 4, 1, 5) == ERANGE_AND_RESET && all_bytes(text, 4, 1) && text[4] == 'x');
	CHECK(memset_s(text, 0, 0, 0) == ERANGE && memset_s(nothing, 4, 0, 4) == EINVAL);
	CHECK(memcpy_s(text, 8, "1234567", 8) == EOK && strcmp(text, "1234567") == 0);
	CHECK(memcpy_s(text, 4, "123456", 6) == ERANGE_AND_RESET && all_bytes(text, 4, 0) && text[4] == '5');
	CHECK(memcpy_s(text, 4, nothing, 1) == EINVAL_AND_RESET && memcpy_s(nothing, 4, text, 1) == EINVAL);
	CHECK(memcpy_s(text, 8, "1234567", 8) == EOK && memcpy_s(text, 8, text + 2, 4) == EOVERLAP_AND_RESET);
	CHECK(all_bytes(text, 8, 0) && memcpy_s(text, 8, text, 8) == EOK);
	CHECK(memcpy_s(text, 8, "1234567", 8) == EOK && memmove_s(text, 8, text + 2, 6) == EOK);
	CHECK(strcmp(text, "34567") == 0);
	CHECK(EINVAL_AND_RESET == 150 && ERANGE_AND_RESET == 162 && EOVERLAP_AND_RESET == 182);
}

static inline void check_securec_text(void)
{
	char text[8], list[] = ",a,,b";
	const char *nothing = NULL;
	const volatile unsigned number = 123456;	/* hides from the compiler what will be cut */
	char *context = NULL;

	CHECK(strcpy_s(text, 8, "1234567") == EOK && strcmp(text, "1234567") == 0);
	CHECK(strcpy_s(text, 8, "12345678") == ERANGE_AND_RESET && text[0] == 0);
	CHECK(strcpy_s(text, 8, nothing) == EINVAL_AND_RESET && strcpy_s(NULL, 8, "") == EINVAL);
	CHECK(strncpy_s(text, 4, "123456", 3) == EOK && strcmp(text, "123") == 0);
	CHECK(strncpy_s(text, 4, "123456", 4) == ERANGE_AND_RESET && text[0] == 0);
	CHECK(strcat_s(text, 8, "ab") == EOK && strcat_s(text, 8, "cd") == EOK && strcmp(text, "abcd") == 0);
	CHECK(strncat_s(text, 8, "efgh", 2) == EOK && strcmp(text, "abcdef") == 0);
	CHECK(strcat_s(text, 8, "12") == ERANGE_AND_RESET && text[0] == 0);
	memset(text, 'x', sizeof(text));
	CHECK(strcat_s(text, 8, "1") == EINVAL_AND_RESET && text[0] == 0);
	CHECK(sprintf_s(text, 8, "%u", number) == 6 && strcmp(text, "123456") == 0);
	CHECK(sprintf_s(text, 6, "%u", number) == -1 && text[0] == 0);
	CHECK(snprintf_s(text, 8, 7, "%u", number) == 6 && strcmp(text, "123456") == 0);
	CHECK(snprintf_s(text, 8, 3, "%u", number) == -1 && strcmp(text, "123") == 0);
	CHECK(snprintf_s(text, 4, 4, "%u", number) == -1 && text[0] == 0);
	CHECK(sprintf_s(NULL, 4, "%u", number) == -1 && sprintf_s(text, 0, "%u", number) == -1);
	CHECK(strcmp(strtok_s(list, ",", &context), "a") == 0 && strcmp(strtok_s(NULL, ",", &context), "b") == 0);
	CHECK(strtok_s(NULL, ",", &context) == NULL);
}

__attribute__((format(printf, 3, 4)))
static inline int print_list(char *text, size_t size, const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = vsnprintf_truncated_s(text, size, format, arguments);
	va_end(arguments);
	return r;
}

__attribute__((format(printf, 4, 5)))
static inline int print_both(char *text, char *other, size_t size, const char *format, ...)
{
	va_list arguments;
	int r, s;

	va_start(arguments, format);
	r = vsprintf_s(text, size, format, arguments);
	va_end(arguments);
	va_start(arguments, format);
	s = vsnprintf_s(other, size, size - 1, format, arguments);
	va_end(arguments);
	return r == s ? r : -2;
}

static inline void check_securec_printing(void)
{
	const volatile unsigned number = 123456;
	char text[8], other[8];

	CHECK(snprintf_truncated_s(text, 8, "%u", number) == 6 && strcmp(text, "123456") == 0);
	CHECK(snprintf_truncated_s(text, 7, "%u", number) == 6 && strcmp(text, "123456") == 0);
	CHECK(snprintf_truncated_s(text, 4, "%u", number) == 3 && strcmp(text, "123") == 0);
	CHECK(snprintf_truncated_s(text, 1, "%u", number) == 0 && text[0] == 0);
	CHECK(snprintf_truncated_s(text, 0, "%u", number) == -1 && snprintf_truncated_s(NULL, 8, "%u", number) == -1);
	CHECK(print_list(text, 4, "%u", number) == 3 && strcmp(text, "123") == 0);
	CHECK(print_both(text, other, 8, "%u", number) == 6 && strcmp(text, "123456") == 0 && strcmp(other, text) == 0);
	CHECK(print_both(text, other, 4, "%u", number) == -1 && text[0] == 0 && strcmp(other, "123") == 0);
}

static inline void check_all(void)
{
	check_comm_config();
	check_hccl_channel();
	check_hcomm_channel();
	check_endpoint_and_link();
	check_later_versions();
	check_securec_memory();
	check_securec_text();
	check_securec_printing();
}
